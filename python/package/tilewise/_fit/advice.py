"""`Report.check`: makes the changes that a report advises, and measures the bytes that they free."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from tilewise._base.errors import Error, Skip
from tilewise._base.files import cache_folder
from tilewise._base.limits import in_columns, rounded
from tilewise._compiler.compile import Cache, plan_of
from tilewise._compiler.process import shared
from tilewise._compiler.program import with_donations
from tilewise._fit.candidates import donatable, formats, known, rematerialised
from tilewise._fit.edited import remade
from tilewise._fit.factory import parameters_of
from tilewise._jax.lowering import Request, is_jitted
from tilewise._microbatch import microbatch
from tilewise._remat.search import MOST_COMPILED, Search
from tilewise._remat.step import Step
from tilewise._tilewise import Comparison, LineEdit, PlannedChange, Recommendation, Report


@dataclass(frozen=True)
class CheckedAdvice:
    """One change, and the compiler's figures for it.

    Attributes:
        change: the change; its edit of the program's source is tried as it is printed, in memory.
        promised_bytes: the fall in the program's bytes that the report promises, after the changes before it; ``None``
            where it promises nothing.
        freed_bytes: the fall after the changes applied before it; negative if the bytes rose; ``None`` where it was
            not applied.
        peak_bytes: the program's bytes with it, and with the changes applied before it; ``None`` where it was not
            applied.
        fits: whether the program fits with it; ``None`` where it was not applied, or no limit is known.
        why_not: why it was not applied.
        time: the relative change of the estimated time of a run: 0.25 is a quarter longer. ``None`` where both
            programs weren't compiled in full, can't be compared, or differ by a tenth at most.
    """

    change: PlannedChange
    promised_bytes: int | None
    freed_bytes: int | None
    peak_bytes: int | None
    fits: bool | None
    why_not: str | None
    time: float | None

    @property
    def recommendation(self) -> Recommendation:
        """More about the change."""
        return self.change.recommendation


@dataclass(frozen=True)
class AdviceCheck:
    """Promised and freed bytes of each change of a report; ``str`` is a table. Returned by `Report.check`.

    Attributes:
        comparison: the program without and with all that was applied.
        rows: a row for each change, in the order in which to try them.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> x = jax.ShapeDtypeStruct((400000, 128), jnp.float32)
        >>> checked = audit(lambda x: x + 1, x, tpu="v5e").check()
        >>> [(row.change.kind, row.freed_bytes) for row in checked.rows]
        [('donate', 204800000)]
    """

    comparison: Comparison
    rows: tuple[CheckedAdvice, ...]

    @property
    def peak_bytes_saved(self) -> int:
        """The fall in the program's bytes."""
        return self.comparison.peak_bytes_saved

    def __str__(self) -> str:
        cells: list[tuple[str, ...]] = [("promised", "freed", "needs", "", "est. time", "")]
        for row in self.rows:
            advised, freed = row.recommendation, row.freed_bytes
            least = "up to " if advised.is_bound else "about " if advised.is_estimate else ""
            sign = "-" if freed is not None and freed < 0 else ""
            cells.append(
                (
                    "" if row.promised_bytes is None else f"{least}{rounded(row.promised_bytes)}",
                    "not applied" if freed is None else f"{sign}{rounded(abs(freed))}",
                    "" if row.peak_bytes is None else rounded(row.peak_bytes),
                    {True: "fits", False: "does not fit", None: ""}[row.fits],
                    "" if row.time is None else f"{row.time:+.0%}",
                    row.change.do + (f" ({row.why_not})" if row.why_not else ""),
                )
            )
        used = [at for at in range(6) if any(row[at] for row in cells[1:])]
        return in_columns([tuple(row[at] for at in used) for row in cells])


@dataclass(frozen=True)
class _Changed:
    """A program with lines of its source edited, and with changes applied from outside after that."""

    origin: Request
    limit: int | None
    confirm: bool
    edits: tuple[LineEdit, ...] = ()
    outside: tuple[Recommendation, ...] = ()

    def with_change(self, change: PlannedChange) -> tuple[_Changed, Request]:
        """The program with one change more: in the line that it edits, or else from outside."""
        outside = replace(self, outside=(*self.outside, change.recommendation))
        if change.edit is None:
            return outside, outside.request()
        edited = replace(self, edits=(*self.edits, change.edit))
        try:
            return edited, edited.request()
        except Skip as error:
            with contextlib.suppress(Skip):
                return outside, outside.request()
            raise error

    def request(self) -> Request:
        made = remade(self.origin, self.edits) if self.edits else self.origin
        made = with_donations(made) if self.outside and is_jitted(made.f) else made
        for advised in self.outside:
            made = applied(made, advised, self.limit, self.confirm)
        return made


def check(report: Report, origin: Request | None, confirm: bool, until_fits: bool) -> AdviceCheck:
    """Make a report's changes, one after the other; times are told only if all is confirmed: compiled to the end."""
    if origin is None:
        raise TypeError("check asks the compiler about a function: the report is to be of audit(f, *args, tpu=…)")

    def planned(request: Request) -> Report:
        return plan_of(request, hbm_limit=report.hbm_limit, confirm=confirm).report

    program, held = _Changed(origin, report.hbm_limit if report.fits is False else None, confirm), report
    if confirm and report.time is None:
        held = planned(origin)
    rows: list[CheckedAdvice] = []
    before = report.peak_bytes
    for change in report.changes:
        promised = None if before is None or change.bytes_after is None else before - change.bytes_after
        before = change.bytes_after
        try:
            changed, request = program.with_change(change)
            found = planned(request)
        except Skip as error:
            rows.append(CheckedAdvice(change, promised, None, None, None, str(error), None))
            continue
        # Changed code may raise anything as it is traced.
        except Exception as error:
            first = next(iter(str(error).splitlines()), "")
            rows.append(CheckedAdvice(change, promised, None, None, None, f"{type(error).__name__}: {first}", None))
            continue
        freed = (held.peak_bytes or 0) - (found.peak_bytes or 0)
        # From outside, tw.remat chooses what is kept, which may be something else than what is printed.
        is_remade = change.recommendation.kind == "checkpoint" and changed.edits == program.edits
        if is_remade and promised is not None and freed < promised / 2:
            rows.append(
                CheckedAdvice(change, promised, None, None, None, "it is code to write: tw.remat doesn't do it", None)
            )
            continue
        times = [each for each in held.diff(found).changes if each.what == "time" and each.before]
        time = times[0].after / times[0].before - 1 if times else None
        rows.append(CheckedAdvice(change, promised, freed, found.peak_bytes, found.fits, None, time))
        if freed > 0:
            program, held = changed, found
        if until_fits and found.fits:
            break
    return AdviceCheck(report.diff(held), tuple(rows))


def applied(request: Request, advised: Recommendation, limit: int | None = None, confirm: bool = False) -> Request:
    """The program with one recommendation; with a limit, it has to fit that.

    It skips what can't be applied from outside the function.
    """
    if advised.kind == "donate":
        donated = _advised_arguments(request, advised) or donatable(request.f, request.args)
        if not donated:
            raise Skip("no argument has results to lie in")
        before = request.options.get("donate_argnums", ())
        both = {*((before,) if isinstance(before, int) else before), *donated}
        return request.with_options(donate_argnums=tuple(sorted(both)))
    if advised.kind == "order" and advised.target in ("argument", "result"):
        return request.with_options(**formats(request))
    if advised.kind == "checkpoint":
        return _recomputing(request, limit, confirm)
    if advised.inputs and advised.parts:
        # In the parts that the advice is priced for.
        return known(request, microbatch(request.f, advised.parts, batch_argnames=advised.inputs))
    if made := advised.made:
        changed = microbatch(request.f, made.parts, made_at=made.made_at, size=made.size, axis=made.axis)
        return known(request, changed)
    raise Skip("it changes the program itself")


def _recomputing(request: Request, limit: int | None, confirm: bool) -> Request:
    """The fastest choice of kept values that fits; without a limit, full rematerialisation, which frees most."""
    if limit is None:
        return rematerialised(request, "full")
    try:
        step, cache = Step.of(request), Cache(cache_folder(), request.libtpu)
        with shared(request.libtpu) as compiler:
            search = Search(step, limit, compiler, cache)
            return replace(request, f=search.run(MOST_COMPILED if confirm else 0).step)
    except Error as error:
        raise Skip(error.message) from None


def _advised_arguments(request: Request, advised: Recommendation) -> tuple[int, ...]:
    parameters = list(parameters_of(request.f) or ())
    return tuple(at for at, name in enumerate(parameters[: len(request.args)]) if name in advised.donate)
