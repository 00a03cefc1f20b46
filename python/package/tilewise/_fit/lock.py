"""Plan locks: memory plans in a file that is committed. The native half reads, writes and compares them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewise import _tilewise
from tilewise._audit.comparison import Comparison
from tilewise._base.files import write_whole
from tilewise._compiler.libtpu import compiler_version
from tilewise._tilewise import Report

_ROOTS = (".git", ".hg", "pyproject.toml")


def entry(
    report: Report,
    *,
    tpu: str,
    topology: str | None = None,
    settings: Mapping[str, Any] | None = None,
    hlo: str | None = None,
    root: Path | None = None,
) -> dict[str, Any]:
    """A program's entry in a lock, with its hash without source locations, and files relative to a folder."""
    held: dict[str, Any] = json.loads(_tilewise.compared_program(report, root))
    held["bytes"]["limit"] = report.hbm_limit or _tilewise.hbm_bytes(tpu)
    named = {"tpu": tpu, "topology": topology, "settings": dict(settings or {})}
    return {**held, **named, "hlo": None if hlo is None else f"sha256:{hlo}"}


def root_of(path: Path) -> Path:
    """The repository that a file is in; its folder if it is in none."""
    folder = path.resolve().parent
    return next((each for each in (folder, *folder.parents) if any((each / name).exists() for name in _ROOTS)), folder)


def compiler(libtpu: str | None = None) -> dict[str, str]:
    return dict(part.split(" ", 1) for part in compiler_version(libtpu).split(", "))


def read(path: Path) -> dict[str, Any]:
    """A lock: ``compiler`` and ``programs``.

    Raises:
        OSError: it can't be read.
        ValueError: it isn't a lock, or of another version.
    """
    try:
        versions, programs = _tilewise.read_lock(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return {"compiler": versions, "programs": {name: json.loads(each) for name, each in programs.items()}}


def update(path: Path, programs: Mapping[str, Mapping[str, Any]]) -> None:
    """Write programs to a lock, beside the others that it has.

    Raises:
        ValueError: the others are another compiler's, or not all of a program could be read and sized.
    """
    for name in (name for name, each in programs.items() if not each.get("is_complete", True)):
        raise ValueError(f"{name} can't be locked: not all of it could be read and sized")
    held: dict[str, Any] = read(path) if path.exists() else {"programs": {}}
    kept = {name: each for name, each in held["programs"].items() if name not in programs}
    if kept and held["compiler"] != compiler():
        message = f"{path} was made with {json.dumps(held['compiler'])}: renew all of it (`tilewise lock --update`)"
        raise ValueError(message)
    texts = {name: json.dumps(each) for name, each in {**kept, **programs}.items()}
    write_whole(path, _tilewise.lock_text(compiler(), texts).encode())


def compare(
    name: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    compilers: tuple[Mapping[str, str] | None, Mapping[str, str] | None] = (None, None),
    tolerance: float = 0.01,
    exact: bool = False,
    any_compiler: bool = False,
    report: Report | None = None,
) -> Comparison:
    """The changes from one entry to another.

    Args:
        compilers: of both; ``None`` where it isn't known.
        tolerance: the share that bytes may grow by; a MiB is always allowed.
        any_compiler: compare plans of different compilers, too. The same program with other bytes is one's, too.
        report: of the second, whose advice is given if it is worse.
    """
    old, new = (
        json.dumps({**held, "compiler": versions}) for held, versions in zip((before, after), compilers, strict=True)
    )
    allowed: dict[str, Any] = {"tolerance": tolerance, "exact": exact, "any_compiler": any_compiler}
    return Comparison(_tilewise.compare_programs(name, old, new, report, **allowed))
