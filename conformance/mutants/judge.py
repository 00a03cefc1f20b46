"""Mutated programs, held against one byte less than the whole's total: what is said to fit must be a program to XLA.

A mutant that takes less may be sound: then XLA reads and verifies it. One that XLA refuses must be refused here, too,
or read with a warning, of unknown fit. XLA's parser is jaxlib's; its verifier that of the import to StableHLO,
where the program itself passes it. Both run in a process for each mutant, since some texts abort XLA.

    python judge.py --tilewise target/release/tilewise --count 16000 > conformance/mutants/TABLE.md
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMES = """fp4_scaled.v6e gnn.v6e host_compute2.v6e host_weights_scan.v5e int4_weights.v4 int8_matmul.v3 pallas_kernel.v5e
pallas_prefetch_alias.v7x ragged_all_to_all.v5e reductions_kinds.v4 rigid_frames.v5e sampler_loop.v6e""".split()
PROGRAMS = [f"testing/programs/{name}.hlo" for name in NAMES]
SHAPE = re.compile(r"\b(?:f|bf|s|u|pred|c)\w*\[[\d,]*\](?:\{[^{}]*\})?")
NAME = re.compile(r"%[\w.-]+")
NUMBER = re.compile(r"\b\d+\b")
TYPE = re.compile(r"\b(pred|bf16|f16|f32|s4|s8|s16|s32|u8|u32)\[")
OPCODE = re.compile(r"(?<=[\]})] )([a-z][a-z-]*)\(")
ATTRIBUTE = re.compile(r", [a-z_]+=(?:\{[^{}]*\}|[^,{}\s]+)")
OPCODES = (
    "add copy bitcast tuple get-tuple-element custom-call opt-barrier negate convert reshape parameter fusion".split()
)
# Floats of several widths meet in HLO (`ShapeUtil::SameElementTypeIgnoringFpPrecision`), and don't in StableHLO.
FLOAT = re.compile(r"\b(?:bf16|f16|f32)(?=\[)")
# Memory limit of a process of XLA: a mutant may ask for any size.
MEMORY = 6 << 30
AT_ONCE = 50


def one_of(random: random.Random, pattern: re.Pattern[str], text: str, make) -> str:
    """The text with one match of a pattern made another."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = random.choice(found)
    return text[: match.start()] + make(match) + text[match.end() :]


def mutate(text: str, others: list[str], random: random.Random) -> tuple[str, str]:
    """A kind of change, and the text with it."""
    lines = text.split("\n")
    at = random.choice([number for number, line in enumerate(lines) if " = " in line or line.startswith("HloModule")])
    line = lines[at]
    names = NAME.findall(text)

    def smaller(match: re.Match[str]) -> str:
        number = int(match[0])
        return str(random.choice([number // 2, number - 1 if number else 0, 0, 1, number * 2, number + 1, 2**63]))

    def in_shape(change) -> str:
        return one_of(random, SHAPE, line, lambda match: change(match[0]))

    kinds = {
        "a bound": lambda: in_shape(
            lambda shape: one_of(random, NUMBER, shape.partition("{")[0], smaller) + "".join(shape.partition("{")[1:])
        ),
        "a layout": lambda: in_shape(
            lambda shape: shape.partition("{")[0] + one_of(random, NUMBER, "".join(shape.partition("{")[1:]), smaller)
        ),
        "a type": lambda: one_of(
            random, TYPE, line, lambda _: random.choice(["pred", "bf16", "f32", "s4", "s8", "s32", "f33"]) + "["
        ),
        "a memory space": lambda: in_shape(
            lambda shape: re.sub(r"(?:S\(\d+\))?\}$", f"S({random.choice([0, 1, 2, 5, 6, 9, 127])})}}", shape)
        ),
        "an operand": lambda: one_of(random, NAME, line, lambda _: random.choice(names)),
        "an opcode": lambda: one_of(random, OPCODE, line, lambda _: f"{random.choice(OPCODES)}("),
        "an attribute gone": lambda: one_of(random, ATTRIBUTE, line, lambda _: ""),
        "an attribute twice": lambda: one_of(random, ATTRIBUTE, line, lambda match: match[0] + match[0]),
        "an attribute of another line": lambda: (
            line + random.choice(ATTRIBUTE.findall(random.choice(lines)) or [", x=1"])
        ),
        "a number": lambda: one_of(random, NUMBER, line, smaller),
        "a byte": lambda: (lambda k: line[:k] + random.choice('{}()[]",=%#x0 \t\r') + line[k + 1 :])(
            random.randrange(len(line) or 1)
        ),
        "bytes gone": lambda: (lambda k: line[:k] + line[k + random.randrange(1, 40) :])(
            random.randrange(len(line) or 1)
        ),
        "a line gone": lambda: None,
        "a line twice": lambda: f"{line}\n{line}",
        "a line of another place": lambda: random.choice(lines),
        "a line of another program": lambda: random.choice(random.choice(others).split("\n")),
        "an alias": lambda: (
            line + f", input_output_alias={{ {{{random.randrange(3)}}}: ({random.randrange(4)}, {{}}, may-alias) }}"
            if line.startswith("HloModule")
            else line + ", output_to_operand_aliasing={{}: (0, {})}"
        ),
        "lines swapped": lambda: lines[at + 1] + "\n" + line if at + 1 < len(lines) else line,
    }
    kind = random.choice(list(kinds))
    changed = kinds[kind]()
    if kind == "lines swapped":
        del lines[at + 1 : at + 2]
    lines[at : at + 1] = [] if changed is None else [changed]
    return kind, "\n".join(lines)


def audited(tilewise: str, arguments: list[str], files: list[Path]) -> dict[str, dict]:
    """The audit of each file, by its path."""
    done = subprocess.run([tilewise, "audit", "--format", "json", *arguments, *map(str, files)], capture_output=True)
    if done.returncode not in (0, 1, 2):
        raise SystemExit(f"{tilewise} ended with {done.returncode}: {done.stderr[-400:].decode(errors='replace')}")
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return {each["input"]: each for each in said}


def missed(tilewise: str, tpu: str, path: Path) -> list[str]:
    """The arguments for a limit that the program misses by a byte: near a limit the compiler packs in another way."""
    limit = ["--tpu", tpu]
    while (whole := audited(tilewise, limit, [path])[str(path)])["fits"]:
        limit = ["--tpu", tpu, "--hbm-limit", str(whole["at_most_bytes"] - 1)]
    return limit


def xla(text: str, verified: bool) -> str | None:
    """Why XLA refuses a text; ``None`` where it doesn't."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        words = ""
        try:
            refusal(text, verified)
        except Exception as error:
            words = " ".join(str(error).split())[:300] or type(error).__name__
        os.write(write, json.dumps(words).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as out:
        answer = out.read()
    os.waitpid(child, 0)
    words = json.loads(answer) if answer else "XLA aborts"
    return words or None


def refusal(text: str, verified: bool) -> None:
    """Raise what XLA says of a text that it refuses."""
    from jaxlib import _hlo, _jax

    proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    if verified:
        from jax._src.interpreters import mlir
        from jaxlib.mlir import ir

        stablehlo = _jax.mlir.hlo_to_stablehlo(proto)
        ir.Module.parse(stablehlo, context=mlir.make_ir_context()).operation.verify()


def main() -> int:
    """Mutate, ask, tell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tilewise", required=True)
    parser.add_argument("--count", type=int, default=16_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="where mutants without justification are written")
    given = parser.parse_args()
    chance = random.Random(given.seed)
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in PROGRAMS}
    # Imported once, for all processes.
    with contextlib.suppress(ImportError):
        import jax
        from jaxlib import _hlo  # noqa: F401

        version = jax.__version__
    each = -(-given.count // len(texts))
    rows, wrong, unknown = [], [], Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            tpu = Path(name).name.split(".")[-2]
            limit = missed(given.tilewise, tpu, ROOT / name)
            verified = xla(text, True) is None
            if xla(text, verified) is not None:
                raise SystemExit(f"XLA refuses {name} itself: {xla(text, verified)}")
            counts = Counter()
            for first in range(0, each, AT_ONCE):
                mutants = {}
                for number in range(first, min(first + AT_ONCE, each)):
                    path = Path(folder) / f"{number}.hlo"
                    kind, mutant = mutate(text, list(texts.values()), chance)
                    path.write_text(mutant, encoding="utf-8")
                    mutants[str(path)] = kind, mutant
                said = audited(given.tilewise, limit, [Path(path) for path in mutants])
                for path, (kind, mutant) in mutants.items():
                    answer = said.get(path) or {"error": {}}
                    counts["mutants"] += 1
                    if answer.get("error") is not None:
                        counts["refused"] += 1
                        continue
                    fits = answer.get("fits")
                    counts[{True: "fit", False: "do not fit", None: "unknown"}[fits]] += 1
                    asked = verified and FLOAT.sub("f", mutant) != FLOAT.sub("f", text)
                    if fits is True and (why := xla(mutant, asked)) is not None:
                        counts["wrong"] += 1
                        wrong.append((name, kind, why))
                        unknown[kind] += 1
                        if given.keep:
                            given.keep.mkdir(parents=True, exist_ok=True)
                            (given.keep / f"{len(wrong)}.{Path(name).name}").write_text(mutant, encoding="utf-8")
            rows.append((name, verified, counts))
            print(name, dict(counts), file=sys.stderr, flush=True)
    print(table(rows, version, given))
    for name, kind, why in wrong[:40]:
        print(f"{name}: {kind}: {why}", file=sys.stderr)
    print(dict(unknown), file=sys.stderr)
    return 1 if wrong else 0


def table(rows: list, version: str, given: argparse.Namespace) -> str:
    """The counts as a table."""
    columns = ("mutants", "refused", "unknown", "do not fit", "fit", "wrong")
    lines = [
        "# Mutated programs",
        "",
        f"`python conformance/mutants/judge.py --count {given.count} --seed {given.seed}`, with jaxlib {version}:",
        "programs with one change each, held against one byte less than the whole's total. What fits must be a",
        "program to XLA: to its parser, and where marked to the verifier of its import to StableHLO; else it is wrong.",
        "",
        f"| program | verified | {' | '.join(columns)} |",
        f"| --- | --- | {' | '.join('---' for _ in columns)} |",
    ]
    total = Counter()
    for name, verified, counts in rows:
        total += counts
        cells = " | ".join(str(counts[each]) for each in columns)
        lines.append(f"| {Path(name).name} | {'yes' if verified else 'parser'} | {cells} |")
    lines.append(f"| all | | {' | '.join(str(total[each]) for each in columns)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
