"""Plan locks: memory plans in a file that is committed. The native half reads, writes and compares them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewise import _tilewise
from tilewise._base.files import write_whole
from tilewise._compiler.compile import plan_of
from tilewise._compiler.libtpu import compiler_version
from tilewise._jax.lowering import Request
from tilewise._tilewise import Comparison, Report

_ROOTS = (".git", ".hg", "pyproject.toml")


@dataclass(frozen=True)
class Made:
    """A program as it was audited: its entry in a lock, and the versions that compiled it; ``None`` of a file."""

    report: Report
    entry: dict[str, Any]
    compiler: dict[str, str] | None = None


def entry(report: Report, root: Path | None = None, *, tpu: str, **named: Any) -> dict[str, Any]:
    """A program's entry in a lock, with files relative to a folder."""
    held: dict[str, Any] = json.loads(_tilewise.compared_program(report, root))
    held["bytes"]["limit"] = report.hbm_limit or _tilewise.hbm_bytes(tpu)
    return {**held, "tpu": tpu, "topology": None, "settings": {}, "hlo": None, **named}


def of_function(
    request: Request, settings: Mapping[str, Any], root: Path, *, hbm_limit: int | None = None, **named: Any
) -> Made:
    """A function, with the hash of its program without source locations."""
    plan = plan_of(request, hbm_limit=hbm_limit).with_source(request)
    named = {"topology": request.topology, **named}
    if plan.program is not None:
        named.update(topology=plan.program.topology, hlo=f"sha256:{plan.program.hash}")
    held = entry(plan.report, root, tpu=request.generation, settings=dict(settings), **named)
    return Made(plan.report, held, compiler(request.libtpu))


def root_of(path: Path) -> Path:
    """The repository that a file is in; its folder if it is in none."""
    folder = path.resolve().parent
    return next((each for each in (folder, *folder.parents) if any((each / name).exists() for name in _ROOTS)), folder)


def compiler(libtpu: str | None = None) -> dict[str, str]:
    return dict(part.split(" ", 1) for part in compiler_version(libtpu).split(", "))


def read(path: Path) -> dict[str, Any]:
    """A lock: ``compiler`` and ``programs``; `ValueError` if it isn't one, or of another version."""
    try:
        versions, programs = _tilewise.read_lock(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return {"compiler": versions, "programs": {name: json.loads(each) for name, each in programs.items()}}


def update(path: Path, programs: Mapping[str, Mapping[str, Any]]) -> None:
    """Write programs to a lock, beside the others that it has, which are to be of one compiler."""
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
    name: str, before: Mapping[str, Any], after: Made, compiler: Mapping[str, str] | None, **allowed: Any
) -> Comparison:
    """The changes from an entry, of that compiler, to a program, with its advice if it is worse."""
    old, new = json.dumps({**before, "compiler": compiler}), json.dumps({**after.entry, "compiler": after.compiler})
    return _tilewise.compare_programs(name, old, new, after.report, **allowed)
