"""Plan locks: a program's memory plan in a file that is committed, and what changed since.

The file has sorted keys, no times, no line numbers and no absolute paths: written twice, it is the same bytes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
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
            return f"{head}: locked with {then}, compiled with {now}; compare with {_pin(then)} or renew the lock"
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
    held: Any = json.loads(path.read_text(encoding="utf-8"))
    locked: dict[str, Any] = cast("dict[str, Any]", held) if isinstance(held, dict) else {}
    if locked.get("schema") != SCHEMA:
        message = f"{path} isn't a plan lock of the form {SCHEMA}"
        raise ValueError(message)
    return locked


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
    held = {"schema": SCHEMA, "compiler": compiler(), "programs": programs}
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
    """Owners that came, left or changed; a renamed file is none of these."""

    def keyed(owners: list[dict[str, Any]]) -> dict[str, int]:
        held: dict[str, int] = {}
        for each in owners:
            key = f"{each['op']} {each['shape'].partition('{')[0]}"
            held[key] = held.get(key, 0) + each["bytes"]
        return held

    old, new = keyed(before), keyed(after)
    return [
        Change("owner", old.get(key), new.get(key), key, "changed")
        for key in dict.fromkeys([*new, *old])
        if old.get(key) != new.get(key)
    ]


def _words(change: Change) -> str:
    before, after = (
        in_words(each)
        if isinstance(each, int) and not isinstance(each, bool) and change.what != "recomputed"
        else str(each)
        for each in (change.before, change.after)
    )
    if change.before is None:
        return f"new, {after}"
    if change.after is None:
        return f"gone, was {before}"
    return f"{before} → {after}, {change.verdict}"


def _pin(versions: Mapping[str, str] | None) -> str:
    return " ".join(f"{name}=={version}" for name, version in (versions or {}).items() if name == "libtpu")


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
