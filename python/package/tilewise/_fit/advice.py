"""`Report.check`: applies the advice that needs no change of the function, and measures the bytes that it frees."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewise._base.errors import Error, Skip
from tilewise._base.files import cache_folder
from tilewise._base.limits import in_columns, in_words
from tilewise._compiler.compile import Cache, plan_of
from tilewise._compiler.process import shared
from tilewise._fit.candidates import donatable, formats, known, rematerialised
from tilewise._fit.factory import parameters_of
from tilewise._jax.lowering import Request
from tilewise._microbatch import microbatch
from tilewise._remat.search import MOST_COMPILED, Search
from tilewise._remat.step import Step
from tilewise._tilewise import Comparison, Recommendation, Report


@dataclass(frozen=True)
class CheckedAdvice:
    """One recommendation, and the compiler's figures for it.

    Attributes:
        recommendation: the advice.
        freed_bytes: the fall in the program's bytes, after the advice applied before it; negative if they rose;
            ``None`` where it was not applied.
        why_not: why it was not applied.
        time: the relative change of the estimated time of a run: 0.25 is a quarter longer. ``None`` where both
            programs weren't compiled in full, can't be compared, or differ by a tenth at most.
    """

    recommendation: Recommendation
    freed_bytes: int | None
    why_not: str | None
    time: float | None


@dataclass(frozen=True)
class AdviceCheck:
    """Promised and freed bytes of each recommendation; ``str`` is a table. Returned by `Report.check`.

    Attributes:
        comparison: the program without and with all that was applied.
        rows: a row for each recommendation.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> x = jax.ShapeDtypeStruct((400000, 128), jnp.float32)
        >>> checked = audit(lambda x: x + 1, x, tpu="v5e").check()
        >>> [(row.recommendation.kind, row.freed_bytes) for row in checked.rows]
        [('donate', 204800000)]
    """

    comparison: Comparison
    rows: tuple[CheckedAdvice, ...]

    @property
    def peak_bytes_saved(self) -> int:
        """The fall in the program's bytes."""
        return self.comparison.peak_bytes_saved

    def __str__(self) -> str:
        cells: list[tuple[str, ...]] = [("promised", "freed", "est. time", "")]
        for row in self.rows:
            advised, freed = row.recommendation, row.freed_bytes
            least = "up to " if advised.is_bound else "about " if advised.is_estimate else ""
            sign = "-" if freed is not None and freed < 0 else ""
            cells.append(
                (
                    "" if advised.peak_bytes_saved is None else f"{least}{in_words(advised.peak_bytes_saved)}",
                    "not applied" if freed is None else f"{sign}{in_words(abs(freed))}",
                    "" if row.time is None else f"{row.time:+.0%}",
                    advised.sentence + (f" ({row.why_not})" if row.why_not else ""),
                )
            )
        if all(row.time is None for row in self.rows):
            cells = [(*row[:2], row[3]) for row in cells]
        return in_columns(cells)


def check(report: Report, origin: Request | None, confirm: bool) -> AdviceCheck:
    """Apply a report's advice, one after the other; times are told only if all is confirmed: compiled to the end."""
    if origin is None:
        raise TypeError("check asks the compiler about a function: the report is to be of audit(f, *args, tpu=…)")

    def planned(request: Request) -> Report:
        return plan_of(request, hbm_limit=report.hbm_limit, confirm=confirm).report

    request, held = origin, report
    if confirm and report.time is None:
        held = planned(request)
    rows: list[CheckedAdvice] = []
    for advised in report.advice:
        try:
            changed = applied(request, advised, report.hbm_limit if report.fits is False else None, confirm)
            found = planned(changed)
        except Skip as error:
            rows.append(CheckedAdvice(advised, None, str(error), None))
            continue
        freed = (held.peak_bytes or 0) - (found.peak_bytes or 0)
        times = [each for each in held.diff(found).changes if each.what == "time" and each.before]
        rows.append(CheckedAdvice(advised, freed, None, times[0].after / times[0].before - 1 if times else None))
        if freed > 0:
            request, held = changed, found
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
