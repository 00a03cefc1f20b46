"""Plan locks: a program's memory plan in a file that is committed, and what changed since.

The file has sorted keys, no times, no line numbers and no absolute paths: written twice, it is the same bytes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from tilewise import _tilewise
from tilewise._fit.rows import recomputed
from tilewise._limits import in_words
from tilewise._tilewise import Report
from tilewise._ways import compiler_version, write_whole

SCHEMA = "tilewise.plan.lock/1"

Verdict: TypeAlias = (
    Literal["same"] | Literal["better"] | Literal["worse"] | Literal["changed"] | Literal["other compiler"]
)

_OWNERS = 10
_COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")
_COLLECTIVE = re.compile(
    rf"^\s*(?:ROOT )?\S+ = (?:\(.*?\)|\S+) (?:ragged-)?({'|'.join(_COLLECTIVES)})(?:-start)?\(", re.MULTILINE
)
_ROOTS = (".git", ".hg", "pyproject.toml")
_SHARE, _LEAST = 0.01, 2**20
_PLANNED = ("argument", "output", "alias", "temporary")


@dataclass(frozen=True)
class Change:
    """One thing that differs from the lock.

    Attributes:
        what: which, such as ``total`` or ``copies``.
        before, after: its values; bytes, counts, or words.
        owner: what it belongs to; ``None`` for the whole program.
        verdict: whether that is ``better``, ``worse`` or only ``changed``.

    Examples:
        >>> Change("total", 100, 300, None, "worse").verdict
        'worse'
    """

    what: str
    before: Any
    after: Any
    owner: str | None
    verdict: Verdict


@dataclass(frozen=True)
class Comparison:
    """A program beside its lock.

    Attributes:
        name: the program's name in the lock.
        verdict: ``same``, ``better``, ``worse``, or ``other compiler``, whose plan isn't comparable.
        changes: what differs.
        advice: what the audit advises first, where it is worse.
    """

    name: str
    verdict: Verdict
    changes: tuple[Change, ...]
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    advice: str | None = None

    def to_json(self) -> str:
        """One line of JSON."""
        held = {
            "schema": 1,
            "program": self.name,
            "verdict": self.verdict,
            "before": dict(self.before),
            "after": dict(self.after),
            "changes": [asdict(each) for each in self.changes],
        }
        return json.dumps(held)

    def __str__(self) -> str:
        """In words."""
        head = f"{self.name}: {self.verdict}"
        if self.verdict == "other compiler":
            then, now = (each.get("compiler") for each in (self.before, self.after))
            if then == now:
                flags = "its flags (LIBTPU_INIT_ARGS, XLA_FLAGS) differ"
                return f"{head}: the same program has other bytes, so the compiler or {flags}; renew the lock"
            return f"{head}: locked with {then}, compiled with {now}; compare with {_pin(then, now)} or renew the lock"
        lines = [f"  {each.what}{f' of {each.owner}' if each.owner else ''}: {_words(each)}" for each in self.changes]
        if self.advice:
            lines.append(f"  try: {self.advice}")
        return "\n".join([head, *lines])


def entry(
    report: Report,
    *,
    tpu: str,
    topology: str | None = None,
    settings: Mapping[str, Any] | None = None,
    hlo: str | None = None,
    root: Path | None = None,
) -> dict[str, Any]:
    """What a lock says of a program.

    Args:
        report: its audit.
        tpu, topology, settings: what it was made for, and of.
        hlo: the program's hash, without source locations.
        root: the folder that files are relative to.
    """
    sizes = {
        "argument": report.argument_bytes,
        "output": report.output_bytes,
        "alias": report.alias_bytes,
        "temporary": report.temporary_bytes or 0,
    }
    sizes["total"] = sizes["argument"] + sizes["output"] - sizes["alias"] + sizes["temporary"]
    sizes["padding"] = report.peak_padding_bytes or 0
    sizes["limit"] = report.hbm_limit or _tilewise.hbm_bytes(tpu)
    owners = [
        {
            "op": row.op_name or row.instruction,
            "shape": str(row.shape),
            "bytes": row.bytes,
            "file": None if row.source is None else _relative(row.source.file, root),
            # Said where a change is; not written, since it changes with every edit above it.
            "line": None if row.source is None else row.source.line,
        }
        for row in report.peak_buffers
    ]
    owners.sort(key=lambda each: (-int(str(each["bytes"])), str(each["op"]), str(each["shape"])))
    copies = report.copies
    return {
        "tpu": tpu,
        "topology": topology,
        "settings": dict(settings or {}),
        "hlo": None if hlo is None else f"sha256:{hlo}",
        "bytes": sizes,
        "owners": owners[:_OWNERS],
        "copies": {"count": len(copies), "bytes": sum(copy.written_bytes * (copy.trips or 1) for copy in copies)},
        "collectives": _collectives(report),
        "recomputed": recomputed(report.text),
    }


def _collectives(report: Report) -> dict[str, dict[str, int]]:
    """Collectives by kind: how many, and the bytes of their results, loops times their trips."""
    counts = Counter(_COLLECTIVE.findall(report.text))
    _, _, sent = _tilewise.work_of(report)
    return {kind: {"count": count, "bytes": sent.get(kind, 0)} for kind, count in counts.items()}


def _relative(file: str, root: Path | None) -> str:
    """A path that is the same on other machines."""
    path = Path(file)
    if root is not None and path.is_absolute() and path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    parts = path.parts
    if "site-packages" in parts:
        return Path(*parts[parts.index("site-packages") + 1 :]).as_posix()
    return path.name if path.is_absolute() else path.as_posix()


def root_of(path: Path) -> Path:
    """The repository that a file is in; its folder, where there is none."""
    folder = path.resolve().parent
    return next((each for each in (folder, *folder.parents) if any((each / name).exists() for name in _ROOTS)), folder)


def compiler() -> dict[str, str]:
    """The compiler's versions, as a lock has them."""
    return dict(part.split(" ", 1) for part in compiler_version().split(", "))


def read(path: Path) -> dict[str, Any]:
    """A lock.

    Raises:
        OSError: it can't be read.
        ValueError: it is none, or of another version.
    """
    text = path.read_text(encoding="utf-8")
    number = next((at for at, line in enumerate(text.splitlines(), 1) if line.startswith(_CONFLICT)), None)
    if number is not None:
        raise _damaged(path, "two versions of it were merged, and the conflict is still there", number)
    try:
        held: Any = json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise _damaged(path, error.msg, error.lineno) from None
    except _RepeatedError as error:
        raise _damaged(path, f"{error.key!r} is given twice", _line(text, error.key, error.key)) from None
    locked: dict[str, Any] = cast("dict[str, Any]", held) if isinstance(held, dict) else {}
    if locked.get("schema") != SCHEMA:
        message = f"{path} isn't a plan lock of the form {SCHEMA}"
        raise ValueError(message)
    if not _is_texts(locked.get("compiler")):
        raise _damaged(path, "it has no compiler", _line(text, "compiler"))
    programs: Any = locked.get("programs")
    if not isinstance(programs, dict):
        raise _damaged(path, "it has no programs", _line(text, "programs"))
    for name, program in cast("dict[str, Any]", programs).items():
        lacking = _lacking(program)
        if lacking is not None:
            part, what = lacking
            raise _damaged(path, f"{what} of {name}", _line(text, "programs", name, part))
    return locked


_CONFLICT = ("<<<<<<<", "=======", ">>>>>>>")


class _RepeatedError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held: dict[str, Any] = {}
    for key, value in pairs:
        if key in held:
            raise _RepeatedError(key)
        held[key] = value
    return held


def _damaged(path: Path, what: str, line: int) -> ValueError:
    return ValueError(f"{path} is damaged: {what}, line {line}; take the committed one again, or renew it")


def _line(text: str, *keys: str) -> int:
    """The line of a key within others, from 1; of the last that there is."""
    at = 0
    for key in keys:
        found = text.find(f"{json.dumps(key)}:", at)
        if found < 0:
            break
        at = found + 1
    return text.count("\n", 0, at) + 1


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in cast("dict[str, Any]", value).values())


def _are_counts(value: Any, *names: str) -> bool:
    """Whether it has these whole numbers, none of them negative."""
    if not isinstance(value, dict):
        return False
    counts = [cast("dict[str, Any]", value).get(name) for name in names]
    return all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in counts)


def _lacking(program: Any) -> tuple[str, str] | None:
    """Where an entry isn't as `entry` makes it, and what is wrong there."""
    if not isinstance(program, dict):
        return "programs", "no entry"
    held = cast("dict[str, Any]", program)
    sizes, owners, collectives = held.get("bytes"), held.get("owners"), held.get("collectives")
    if not isinstance(held.get("tpu"), str):
        return "tpu", "no TPU"
    if not _are_counts(sizes, *_PLANNED, "total", "padding", "limit"):
        return "bytes", "bytes are missing or no numbers"
    of: Any = sizes
    if of["total"] != of["argument"] + of["output"] - of["alias"] + of["temporary"]:
        return "total", "the total isn't the sum"
    if not isinstance(owners, list) or not all(_are_counts(each, "bytes") for each in cast("list[Any]", owners)):
        return "owners", "owners without bytes"
    if not all(_is_texts({name: each.get(name) for name in ("op", "shape")}) for each in cast("list[Any]", owners)):
        return "owners", "owners without a name or shape"
    if not _are_counts(held.get("copies"), "count", "bytes"):
        return "copies", "copies are missing or no numbers"
    kinds: list[Any] = [*cast("dict[str, Any]", collectives).values()] if isinstance(collectives, dict) else [None]
    if not all(_are_counts(each, "count", "bytes") for each in kinds):
        return "collectives", "collectives are missing or no numbers"
    if not _are_counts(held, "recomputed"):
        return "recomputed", "a count is missing"
    return None


def update(path: Path, programs: Mapping[str, Mapping[str, Any]]) -> None:
    """Write programs to a lock, beside the others that it has: sorted, an owner a line.

    Raises:
        ValueError: the others are another compiler's.
    """
    held: dict[str, Any] = read(path) if path.exists() else {"programs": {}}
    kept = {name: each for name, each in held["programs"].items() if name not in programs}
    if kept and held["compiler"] != compiler():
        message = f"{path} was made with {json.dumps(held['compiler'])}: renew all of it (`tilewise lock --update`)"
        raise ValueError(message)
    write_whole(path, text({**kept, **programs}).encode())


def text(programs: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of a lock."""
    written = {
        name: {**each, "owners": [{part: owner[part] for part in owner if part != "line"} for owner in each["owners"]]}
        for name, each in programs.items()
    }
    held = {"schema": SCHEMA, "compiler": compiler(), "programs": written}
    lines = json.dumps(held, indent=1, sort_keys=True).splitlines()
    joined: list[str] = []
    # An object without objects in it is one line.
    number = 0
    while number < len(lines):
        end, depth = number, len(lines[number]) - len(lines[number].lstrip())
        if lines[number].endswith(("{", "[")):
            end = next(
                index
                for index in range(number + 1, len(lines))
                if len(lines[index]) - len(lines[index].lstrip()) <= depth
            )
        inner = lines[number : end + 1]
        if len(inner) > 1 and depth >= 3 and not any(line.endswith(("{", "[")) for line in inner[1:]):
            joined.append(inner[0] + " ".join(line.strip() for line in inner[1:-1]) + inner[-1].strip())
            number = end + 1
        else:
            joined.append(lines[number])
            number += 1
    return "\n".join(joined) + "\n"


def compare(
    name: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    compilers: tuple[Mapping[str, str] | None, Mapping[str, str] | None] = (None, None),
    tolerance: float = _SHARE,
    exact: bool = False,
    any_compiler: bool = False,
    advice: str | None = None,
) -> Comparison:
    """What changed from one entry to another.

    Args:
        name: the program's.
        before, after: the entries.
        compilers: of both; ``None`` where it isn't known.
        tolerance: the share that bytes may grow by; a MiB is always allowed.
        exact: any change is worse.
        any_compiler: compare plans of different compilers, too. The same program with other bytes is one's, too.
        advice: what to try.
    """
    then, now = compilers
    if then is not None and now is not None and then != now and not any_compiler:
        return Comparison(name, "other compiler", (), {**before, "compiler": then}, {**after, "compiler": now})
    is_same = before.get("hlo") is not None and before["hlo"] == after.get("hlo")
    if is_same and not any_compiler and any(before["bytes"][what] != after["bytes"][what] for what in _PLANNED):
        return Comparison(name, "other compiler", (), before, after)
    changes: list[Change] = []

    def grew(what: str, old: int, new: int, *, judged: bool = True) -> None:
        if old == new:
            return
        allowed = 0 if exact else max(tolerance * old, _LEAST)
        verdict: Verdict = "changed"
        if judged and new - old > allowed:
            verdict = "worse"
        elif judged and old - new > allowed:
            verdict = "better"
        changes.append(Change(what, old, new, None, verdict))

    for what in ("total", "argument", "output", "alias", "temporary", "padding", "limit"):
        grew(what, before["bytes"][what], after["bytes"][what], judged=what == "total")
    grew("copies", before["copies"]["bytes"], after["copies"]["bytes"])
    for kind in sorted({*before["collectives"], *after["collectives"]}):
        old, new = (each["collectives"].get(kind, {"bytes": 0})["bytes"] for each in (before, after))
        grew(kind, old, new)
    if before["recomputed"] != after["recomputed"]:
        is_more = after["recomputed"] > before["recomputed"]
        changes.append(
            Change("recomputed", before["recomputed"], after["recomputed"], None, "worse" if is_more else "better")
        )
    fits = [each["bytes"]["total"] < each["bytes"]["limit"] for each in (before, after)]
    if fits[0] != fits[1]:
        changes.append(Change("fits", fits[0], fits[1], None, "better" if fits[1] else "worse"))
    changes += _owners(before["owners"], after["owners"])
    if before.get("settings") != after.get("settings"):
        changes.append(Change("settings", before.get("settings"), after.get("settings"), None, "changed"))
    verdicts = {each.verdict for each in changes}
    verdict: Verdict = "same"
    if "worse" in verdicts or (exact and changes):
        verdict = "worse"
    elif "better" in verdicts:
        verdict = "better"
    return Comparison(name, verdict, tuple(changes), before, after, advice if verdict == "worse" else None)


def _owners(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[Change]:
    """Owners that came, left or changed. A renamed file is none of these, and a renamed or grown array has changed."""
    old, new = _by(before, _named), _by(after, _named)
    changes = [
        Change("owner", sum(map(_bytes, old[key])), sum(map(_bytes, new[key])), key, "changed")
        for key in new
        if key in old and sum(map(_bytes, old[key])) != sum(map(_bytes, new[key]))
    ]
    lost = [each for key, owners in old.items() if key not in new for each in owners]
    come = [each for key, owners in new.items() if key not in old for each in owners]
    # Layers are numbered, and a change of the program numbers instructions anew.
    for alike in (_operation, _place):
        olds, news = _by(lost, alike), _by(come, alike)
        for key in [key for key in news if key in olds]:
            then, now = sum(map(_bytes, olds[key])), sum(map(_bytes, news[key]))
            if then != now:
                changes.append(Change("owner", then, now, _said(news[key]), "changed"))
            lost = [each for each in lost if each not in olds[key]]
            come = [each for each in come if each not in news[key]]
    changes += [Change("owner", None, each["bytes"], _named(each), "changed") for each in come]
    changes += [Change("owner", each["bytes"], None, _named(each), "changed") for each in lost]
    return changes


def _by(owners: list[dict[str, Any]], key: Callable[[dict[str, Any]], str]) -> dict[str, list[dict[str, Any]]]:
    held: dict[str, list[dict[str, Any]]] = {}
    for each in owners:
        held.setdefault(key(each), []).append(each)
    return held


def _bytes(owner: Mapping[str, Any]) -> int:
    return int(owner["bytes"])


def _named(owner: Mapping[str, Any]) -> str:
    return f"{owner['op']} {owner['shape'].partition('{')[0]}"


_NUMBERED = re.compile(r"\d+")


def _operation(owner: Mapping[str, Any]) -> str:
    """The operation of a file, without the instruction's number."""
    return f"{owner.get('file')} {_NUMBERED.sub('', owner['op'])}"


def _place(owner: Mapping[str, Any]) -> str:
    """The file, the type and the rank."""
    shape = owner["shape"].partition("{")[0]
    return f"{owner.get('file')} {shape.partition('[')[0]} {shape.count(',')}"


def _said(owners: list[dict[str, Any]]) -> str:
    """Where arrays are written, or what they are."""
    largest = max(owners, key=_bytes)
    line = f":{largest['line']}" if largest.get("line") else ""
    return f"{_named(largest)} at {largest['file']}{line}" if largest.get("file") else _named(largest)


def _words(change: Change) -> str:
    is_bytes = change.what != "recomputed" and not isinstance(change.before or change.after, (bool, dict))
    before, after = (
        in_words(each) if is_bytes and isinstance(each, int) else str(each) for each in (change.before, change.after)
    )
    if change.before is None:
        return f"new, {after}"
    if change.after is None:
        return f"gone, was {before}"
    share = f" ({(change.after - change.before) / change.before:+.0%})" if is_bytes and change.before else ""
    return f"{before} → {after}{share}, {change.verdict}"


def _pin(versions: Mapping[str, str] | None, now: Mapping[str, str] | None) -> str:
    """The packages of other versions than now."""
    differ = {name: each for name, each in (versions or {}).items() if (now or {}).get(name) != each}
    return " ".join(f"{name}=={version}" for name, version in differ.items()) or "the same packages"


_LEVELS = {"worse": "error", "other compiler": "warning"}


def workflow_command(compared: Comparison) -> str:
    """For the log of a GitHub job, at the line of what holds the most that did not."""
    grown = {change.owner for change in compared.changes if change.what == "owner" and change.after}
    owners = [each for each in compared.after.get("owners", []) if each.get("file") and each.get("line")]
    place = next((each for each in owners if _named(each) in grown or _said([each]) in grown), None)
    title = _escaped(f"tilewise: {compared.name} is {compared.verdict}").replace(":", "%3A").replace(",", "%2C")
    at = "" if place is None else f"file={_escaped(place['file']).replace(',', '%2C')},line={place['line']},"
    return f"::{_LEVELS.get(compared.verdict, 'notice')} {at}title={title}::{_escaped(str(compared))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def markdown(compared: list[Comparison]) -> str:
    """For a pull request: a table, and below it what holds the most that did not."""
    lines = ["| program | total before | after | left | verdict |", "| --- | --- | --- | --- | --- |"]
    for each in compared:
        old, new = each.before["bytes"], each.after["bytes"]
        left = in_words(new["limit"] - new["total"]) if new["total"] <= new["limit"] else "does not fit"
        lines.append(f"| {each.name} | {in_words(old['total'])} | {in_words(new['total'])} | {left} | {each.verdict} |")
    for each in compared:
        entered = [change for change in each.changes if change.owner is not None]
        if entered:
            lines += ["", f"{each.name}:", ""]
            lines += [f"- {change.owner}: {_words(change)}" for change in entered]
        if each.advice:
            lines += ["", f"Try: {each.advice}"]
    return "\n".join(lines)
