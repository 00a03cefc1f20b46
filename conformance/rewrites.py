"""Programs rewritten so that they mean the same: what is told of each must stay, sizes, verdict and advice.

    python conformance/rewrites.py [COUNT] [SEED] [FOLDER…]

Needs the Python package. Programs are those of `examples` and `testing/programs`, or of the folders. Names in answers are of the
rewritten program; so figures are compared, and the kinds of advice with what each frees. The exit status is 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import gzip
import itertools
import json
import operator
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tilewise as tw

ROOT = Path(__file__).resolve().parents[1]
MOST = 120
LARGEST = 300_000
"""Bytes of a program: many rewrites of small ones find more than few of large ones."""

Rewrite = Callable[[random.Random, str], str]


def programs(folders: list[Path]) -> Iterator[tuple[str, str]]:
    """Names and texts of programs."""
    for folder in folders:
        for path in sorted(folder.rglob("*.hlo*")):
            if ".pb" in path.suffixes:
                continue
            data = path.read_bytes()
            text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
            # A file may hold several.
            for number, module in enumerate(re.split(r"^(?=HloModule )", text, flags=re.MULTILINE)):
                if module.strip() and len(module) <= LARGEST:
                    yield f"{path.relative_to(folder)}:{number}", module


def readable(folders: list[Path]) -> Iterator[tuple[str, str]]:
    """Those that are programs, from all over the list."""
    every = list(programs(folders))
    for name, text in every[:: max(1, len(every) // MOST)]:
        with contextlib.suppress(tw.Error):
            told(text)
            yield name, text


def told(program: str) -> Any:
    """The figures of a program's audit, without its names."""
    report = tw.audit(program)
    of_space = operator.attrgetter("memory_space", "physical_bytes", "padding_bytes", "peak_live_bytes")
    advice = [(each.kind, each.peak_bytes_saved) for each in report.advice]
    sizes = (report.argument_bytes, report.output_bytes, report.alias_bytes, report.temporary_bytes)
    found = {"spaces": list(map(of_space, report.memory_spaces)), "advice": advice, "sizes": sizes}
    return found | {"tpu": report.tpu, "fits": report.fits, "total": report.peak_bytes}


# Strings, and what isn't in one.
_PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|[^"]+')


def _outside_strings(text: str, change: Callable[[str], str]) -> str:
    return _PARTS.sub(lambda part: part[0] if part[0].startswith('"') else change(part[0]), text)


def _renamed(chance: random.Random, text: str) -> str:
    """Computations by other names. Instructions keep theirs: the compiler's order of equals is of their names."""
    prefix = chance.choice(("zz_", "a", "renamed.", "_"))
    names = set(re.findall(r"^(?:ENTRY )?%([\w.-]+) \(", text, re.MULTILINE))
    entry = re.search(r"^ENTRY %([\w.-]+) ", text, re.MULTILINE)
    names -= {entry[1]} if entry else set()
    if not names:
        return text
    found = re.compile(r"%(" + "|".join(sorted(map(re.escape, names), key=len, reverse=True)) + r")(?![\w.-])")
    instructions = set(re.findall(r"^\s+(?:ROOT )?%([\w.-]+) =", text, re.MULTILINE))
    return _outside_strings(
        text, lambda part: found.sub(lambda name: name[0] if name[1] in instructions else f"%{prefix}{name[1]}", part)
    )


def _without_marks(_: random.Random, text: str) -> str:
    """Names without `%`, as XLA's shorter texts have them."""
    return _outside_strings(text, lambda part: re.sub(r"%(?=[A-Za-z_])", "", part))


def _spaced(chance: random.Random, text: str) -> str:
    """Other white space between lines and before them."""
    indent = chance.choice(("", " ", "\t", "        "))
    lines = (line.replace("  ", indent, 1) if line.startswith("  ") else line for line in text.split("\n"))
    end = chance.choice(("\n", "\n\n", " \n", "\r\n"))
    return end.join(lines)


def _commented(chance: random.Random, text: str) -> str:
    """Comments where XLA prints none."""
    words = chance.choice(("/*index=5*/", "/* a, b = c(d) */", "/*}*/", "/*HloModule*/"))
    return re.sub(
        r"^(  (?:ROOT )?%?[\w.-]+ = )",
        lambda start: start[1] + (words if chance.random() < 0.3 else ""),
        text,
        flags=re.MULTILINE,
    )


def _without_comments(_: random.Random, text: str) -> str:
    return _outside_strings(text, lambda part: re.sub(r"/\*index=\d+\*/", "", part))


def _without_locations(_: random.Random, text: str) -> str:
    """Columns and ends of source lines, which no answer has."""
    return re.sub(r" (?:source_column|source_end_line|source_end_column)=\d+", "", text)


def _moved(chance: random.Random, text: str) -> str:
    """Computations in another order, each before its caller: the first two that don't call each other."""
    blocks = re.split(r"(?<=^}\n)", text, flags=re.MULTILINE)
    for at in (
        chance.sample(range(1, max(2, len(blocks) - 2)), k=max(1, min(8, len(blocks) - 3))) if len(blocks) > 4 else ()
    ):
        one, other = blocks[at], blocks[at + 1]
        # A block may hold several: the brace of one that runs on a thread of its own doesn't end its line.
        names = re.findall(r"^%?([\w.-]+) \(", one, re.MULTILINE)
        is_entry = "ENTRY " in one or "ENTRY " in other
        if names and not is_entry and not any(re.search(re.escape(name) + r"(?![\w.-])", other) for name in names):
            blocks[at], blocks[at + 1] = other, one
    return "".join(blocks)


def _wrapped(chance: random.Random, text: str) -> str:
    """As it comes from mails, chats, terminals and logs."""
    lines = text.split("\n")
    ways: tuple[Callable[[], str], ...] = (
        lambda: "\n".join(f"> {line}" for line in lines),
        lambda: "\n".join(f"{number}:{line}" for number, line in enumerate(lines, 1)),
        lambda: "\n".join(f"[worker-{chance.randrange(10)}] {line}" for line in lines),
        lambda: "\n".join(
            f"I1125 10:00:0{number % 10}.000000 7 dump.cc:12] {line}" for number, line in enumerate(lines)
        ),
        lambda: f"The program:\n```hlo\n{text}\n```\nand a question\n",
        lambda: "\n".join(f"\x1b[36m{line}\x1b[0m" for line in lines),
        lambda: "\ufeff" + text,
        lambda: json.dumps({"id": 7, "result": {"text": text}}),
        lambda: "".join(json.dumps({"time": "10:00", "message": line}) + "\n" for line in lines),
        lambda: f"hlo = {text!r}\n",
        lambda: repr(text.encode()),
        lambda: text.replace(" ", "\u00a0") if "\u00a0" not in text else text,
    )
    return chance.choice(ways)()


REWRITES: tuple[Rewrite, ...] = (
    _renamed,
    _without_marks,
    _spaced,
    _commented,
    _without_comments,
    _without_locations,
    _moved,
)


def main(count: int, seed: int, folders: list[Path]) -> int:
    """Compare, and print the differences."""
    chance = random.Random(seed)
    known = [(name, text, told(text)) for name, text in itertools.islice(readable(folders), MOST)]
    differing: collections.Counter[str] = collections.Counter()
    for number in range(count):
        name, text, before = known[number % len(known)]
        chosen = chance.sample(REWRITES, k=chance.randint(1, 3))
        rewritten = text
        for rewrite in chosen:
            rewritten = rewrite(chance, rewritten)
        ways = [rewrite.__name__ for rewrite in chosen]
        if chance.random() < 0.3 and _spaced not in chosen:
            rewritten = _wrapped(chance, rewritten)
            ways.append("_wrapped")
        try:
            after = told(rewritten)
        except tw.Error as error:
            after = {"error": str(error).splitlines()[0]}
        if after != before:
            parts = [part for part in {**before, **after} if before.get(part) != after.get(part)]
            differing[f"{name}: {'+'.join(ways)}: {parts}"] += 1
            if differing.total() <= 20:
                with tempfile.NamedTemporaryFile("w", suffix=".hlo", delete=False) as kept:
                    kept.write(rewritten)
                found = [(before.get(part), after.get(part)) for part in parts][:1]
                print(f"{kept.name}: {name}: {'+'.join(ways)}: {found}"[:400])
    print(f"{count} rewrites of {len(known)} programs: {differing.total()} differences")
    return int(differing.total() > 0)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("count", type=int, nargs="?", default=10_000)
    arguments.add_argument("seed", type=int, nargs="?", default=1)
    arguments.add_argument("folders", type=Path, nargs="*", default=[ROOT / "examples", ROOT / "testing/programs"])
    sys.exit(main(**vars(arguments.parse_args())))
