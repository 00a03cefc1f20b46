"""`Comparison`: the differences between two programs, or between one and its plan lock."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tilewise import _tilewise
from tilewise._base.results import Shown
from tilewise._base.types import Tpu
from tilewise._compiler.compile import plan_of
from tilewise._jax.lowering import Request
from tilewise._tilewise import Report

Outcome: TypeAlias = (
    Literal["same"] | Literal["better"] | Literal["worse"] | Literal["changed"] | Literal["other compiler"]
)

ALLOWED: Mapping[str, Any] = {"tolerance": 0.01, "exact": False, "any_compiler": False}
"""The differences that aren't told, by default."""


@dataclass(frozen=True)
class Owner:
    """A buffer that takes memory in a program, such as at its peak.

    Attributes:
        file: where it was written; ``None`` if the program does not say.
        line: the line there, from 1.
        op: its name, as JAX gives it.
        shape: its shape and layout.
        bytes: its size, padding included.
        padding_bytes: the padding in it.

    Examples:
        >>> str(Owner("src/model.py", 12, "dot", "f32[8,128]{1,0:T(8,128)}", 4096))
        'model.py:12 f32[8,128]'
    """

    file: str | None
    line: int | None
    op: str
    shape: str
    bytes: int
    padding_bytes: int = 0

    def __str__(self) -> str:
        where = f"{Path(self.file).name}:{self.line}" if self.file else self.op
        return f"{where} {self.shape.partition('{')[0]}"


@dataclass(frozen=True)
class Change:
    """One difference between two programs.

    Attributes:
        what: ``total``, ``argument``, ``output``, ``alias``, ``constant``, ``temporary``, ``padding``, ``limit``,
            ``copies``, the opcode of a collective, ``kernel_copies``, ``vmem`` and other memories, ``recomputed``,
            ``fits``, ``time``, ``owner``, ``layout`` or ``settings``.
        before, after: its values: bytes, a count, whether, a layout, settings, or the estimated seconds of a run;
            ``None`` on the side that doesn't have it.
        owner: whose it is, and its shape; ``None`` for the whole program.
        file, line: where the owner is written.
        verdict: whether that is ``better``, ``worse`` or only ``changed``.
    """

    what: str
    before: Any
    after: Any
    owner: str | None
    file: str | None
    line: int | None
    verdict: Outcome


@dataclass(frozen=True)
class ComparedProgram:
    """One of two programs that are compared; sizes are in bytes, on one device.

    Attributes:
        source: where its text came from; empty if a lock has it.
        tpu, topology: the TPU generation and the slice that it is for.
        settings: the arguments of its factory.
        argument_bytes, output_bytes, alias_bytes, constant_bytes, temporary_bytes: its bytes by kind.
        peak_bytes: their sum; results that lie in donated arguments count once.
        peak_padding_bytes: padding of what is alive at the peak.
        hbm_limit: the memory that it has to fit, if known.
        owners: the buffers alive at the peak, the largest first.
        recomputed: how many instructions the compiler computes twice to save memory.
        estimate_seconds: how long a run takes, estimated from the compiler's own cycle counts, not measured; ``None``
            where its text has none.
    """

    source: str
    tpu: str | None
    topology: str | None
    settings: Mapping[str, Any]
    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    constant_bytes: int
    temporary_bytes: int
    peak_bytes: int
    peak_padding_bytes: int
    hbm_limit: int | None
    owners: tuple[Owner, ...]
    recomputed: int
    estimate_seconds: float | None


def _program(held: dict[str, Any]) -> dict[str, Any]:
    """A program of a comparison's JSON, as `ComparedProgram` has it."""
    sizes: dict[str, Any] = held["bytes"]
    time: dict[str, Any] = held.get("time") or {}
    kinds = ("argument", "output", "alias", "constant", "temporary")
    return {
        "source": "",
        **held,
        **{f"{kind}_bytes": sizes.get(kind, 0) for kind in kinds},
        "peak_bytes": sizes["total"],
        "peak_padding_bytes": sizes["padding"],
        "hbm_limit": sizes["limit"],
        "estimate_seconds": time.get("estimate_seconds"),
    }


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """The differences between two programs; false if there are none. ``str`` lists them.

    Returned by `Report.diff` and `check_fix`. Two buffers are the same if the framework's name of their operation,
    their opcode, shape and memory space are: compilers number instructions anew, and a comment moves all lines. As a
    table, it has a row for each change.

    Attributes:
        text: all of it, as the JSON that ``tilewise audit --against`` prints.
        program: the program's name, without the ``jit_`` of its framework.
        headline: the totals and their difference, in words.
        verdict: ``same``, ``better``, ``worse``, or ``other compiler``, whose plan isn't comparable. Worse is: a larger
            total, or more bytes of copies or collectives, by more than 1 % and a MiB; more that the compiler
            recomputes; or that it no longer fits.
        before, after: the programs.
        changes: the differences: the program's numbers, its owners, its copies; the largest difference first.
        removed, added: the buffers that only the first or only the second program has, the largest first.
        advice: the first change to try, if it is worse.

    Examples:
        >>> before = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
        >>> after = audit("x = f32[50000,12]{1,0:T(8,128)} parameter(0)")
        >>> difference = before.diff(after)
        >>> [(owner.bytes, owner.shape) for owner in (*difference.removed, *difference.added)]
        [(204800000, 'f32[400000,12]{1,0:T(8,128)}'), (25600000, 'f32[50000,12]{1,0:T(8,128)}')]
    """

    text: str
    program: str = field(init=False, compare=False)
    headline: str = field(init=False, compare=False)
    verdict: Outcome = field(init=False, compare=False)
    before: ComparedProgram = field(init=False, compare=False)
    after: ComparedProgram = field(init=False, compare=False)
    changes: tuple[Change, ...] = field(init=False, compare=False)
    removed: tuple[Owner, ...] = field(init=False, compare=False)
    added: tuple[Owner, ...] = field(init=False, compare=False)
    advice: str | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        held = json.loads(self.text)
        self._view({**held, "before": _program(held["before"]), "after": _program(held["after"])})

    @property
    def peak_bytes_saved(self) -> int:
        """By how much the program's bytes fall; negative if they rise."""
        return self.before.peak_bytes - self.after.peak_bytes

    def __bool__(self) -> bool:
        return self.verdict == "other compiler" or any((self.changes, self.removed, self.added))

    def __str__(self) -> str:
        return _tilewise.comparison_words([self.text], "human")

    def __repr__(self) -> str:
        return f"<Comparison {self.program}: {self.verdict}, {self.headline}>"

    def to_markdown(self) -> str:
        """Markdown for a pull request: a table, and below it the largest buffers that are new.

        Examples:
            >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
            >>> print(report.diff(report).to_markdown().splitlines()[0])
            | program | total before | after | left | verdict |
        """
        return _tilewise.comparison_words([self.text], "markdown")

    def _rows(self) -> list[dict[str, Any]]:
        return [asdict(each) for each in self.changes]

    def _held(self) -> dict[str, Any]:
        return dict(json.loads(self.text))

    @classmethod
    def _of_held(cls, held: dict[str, Any]) -> Comparison:
        found = cls(json.dumps({name: value for name, value in held.items() if name != "schema"}))
        str(found)  # Checks that nothing is missing.
        return found


def compare(before: Report, after: Report, name: str | None = None, **allowed: Any) -> Comparison:
    return Comparison(_tilewise.compare_reports(before, after, name, **{**ALLOWED, **allowed}))


def check_fix(
    f: Callable[..., Any],
    g: Callable[..., Any],
    /,
    *args: Any,
    tpu: Tpu,
    args_after: Sequence[Any] | None = None,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
    confirm: bool = False,
    **kwargs: Any,
) -> Comparison:
    """Compile a function before and after a change, and compare the compiler's plans.

    Programs that don't fit are compared, too.

    Args:
        f: the function as it is.
        g: the function with the change.
        args: the arguments of both, as `compile_for` takes them.
        tpu: the generation, under any of its names (``"v5e"``).
        args_after: the arguments of ``g``, where the change is to them.
        topology, jit_options: as `compile_for` takes them, for both.
        confirm: compile both to the end, as `audit` does with it.
        kwargs: the keyword arguments of both.

    Raises:
        ImportError: JAX or libtpu is missing.
        ParseError: ``tpu`` names no TPU generation.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> rows = jax.ShapeDtypeStruct((524288, 8, 4), jnp.float32)
        >>> checked = check_fix(
        ...     lambda x: x.sum(), lambda x: x.sum(), rows, tpu="v5e", args_after=[rows.update(shape=(524288, 32))]
        ... )
        >>> checked.peak_bytes_saved >= 0
        True
    """

    def report(function: Callable[..., Any], args: tuple[Any, ...]) -> Report:
        return plan_of(Request(function, args, tpu, topology, jit_options, kwargs=kwargs), confirm=confirm).report

    return compare(report(f, args), report(g, args if args_after is None else tuple(args_after)))
