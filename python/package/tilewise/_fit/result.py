"""The results of a search, as a table, as data, as Markdown and as a page with a curve of bytes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilewise import _tilewise
from tilewise._base.limits import in_columns, in_words
from tilewise._fit.combination import Combination, FitRow
from tilewise._tilewise import Tabular

_STEERING = ("fits", "planned", "refused")


class Fit(Tabular):
    """The results of `fit`. ``print`` shows a table: a row for each combination.

    As data it is a table with a row for each program, and a column for each setting.

    Attributes:
        combinations: for each combination of the grid, its largest sizes, gaps and rows.
        target: the fixed sizes, where they were given.
        interrupted: whether Ctrl-C ended the search.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> def make(batch):
        ...     return jnp.tanh, (jax.ShapeDtypeStruct((batch, 2**14, 2**14), jnp.float32),)
        >>> found = fit(make, tpu="v5e", largest={"batch": range(1, 9)}, cache=None)
        >>> found[{"batch": 8}].status
        'refused'
    """

    def __init__(
        self,
        combinations: Sequence[Combination],
        *,
        axes: Mapping[str, Sequence[float]],
        target: Mapping[str, Any] | None,
        interrupted: bool,
    ) -> None:
        self.combinations, self.target, self.interrupted = list(combinations), target, interrupted
        self._axes = axes

    @property
    def rows(self) -> list[FitRow]:
        """A row for each program that was asked about."""
        return [row for combination in self.combinations for row in combination.rows]

    @property
    def largest(self) -> dict[str, Any] | None:
        """The settings of the combination whose largest size is the largest of all; ``None`` if nothing fits.

        Where several are as large, the one that is first in the grid.
        """
        answered = [each for each in self.combinations if each.largest is not None]
        if not answered:
            return None
        best = max(answered, key=lambda each: tuple((each.largest or {}).values()))
        return {**(best.largest or {}), **best.settings}

    @property
    def best(self) -> dict[str, Any] | None:
        """Of the combinations that fit the target, the one with the least work; ``None`` if none fits, or no target.

        Of those with as many operations, one whose estimated time is shorter by more than a tenth comes first, where
        both are compiled in full and the same operations are without cycle counts.
        """
        if self.target is None:
            return None
        fitting = [(each, row) for each in self.combinations if (row := each.answer) is not None]
        if not fitting:
            return None

        def work(pair: tuple[Combination, FitRow]) -> tuple[int, int, int]:
            return pair[1].flops or 0, pair[1].hbm_bytes_moved or 0, pair[1].total_bytes or 0

        best, row = min(fitting, key=work)
        for other, another in fitting:
            if (another.tpu, another.flops) == (row.tpu, row.flops) and _is_faster(another, row):
                best, row = other, another
        several = [name for name in ("tpu", "topology") if len({getattr(each, name) for each in self.combinations}) > 1]
        return {**best.settings, **{name: getattr(best, name) for name in several}}

    @property
    def gaps(self) -> list[dict[str, Any]]:
        """Settings with sizes above the answers that were not tried and may fit."""
        return [gap for combination in self.combinations for gap in combination.gaps]

    @property
    def errors(self) -> list[FitRow]:
        """Rows that say neither that a program fits nor that HBM is too small."""
        return [row for row in self.rows if row.status not in _STEERING]

    @property
    def answered(self) -> bool:
        """Whether the compiler found any program to fit or not: false where the factory always raises."""
        return any(row.status in (*_STEERING, "other_memory", "skipped") for row in self.rows) or not self.errors

    def __getitem__(self, settings: Mapping[str, Any]) -> FitRow:
        """The row of a program; ``tpu`` and ``topology`` are needed where there are several."""
        wanted = dict(settings)
        tpu, topology = wanted.pop("tpu", None), wanted.pop("topology", None)
        for row in self.rows:
            is_on = tpu in (None, row.tpu) and (topology is None or topology in (row.topology or ""))
            if row.settings == wanted and is_on:
                return row
        raise KeyError(settings)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[FitRow]:
        return iter(self.rows)

    def __bool__(self) -> bool:
        """Whether there is an answer."""
        return any(combination.largest is not None for combination in self.combinations)

    def __str__(self) -> str:
        return "\n".join([in_columns(self._table()), *self._notes()])

    def _table(self) -> list[list[str]]:
        """Cells of the table, a row for each combination, below the header."""
        settings = list(dict.fromkeys(name for each in self.combinations for name in each.settings))
        slices = len({(each.tpu, each.topology) for each in self.combinations}) > 1
        header = [*(["tpu", "topology"] if slices else []), *settings]
        header += [f"largest {axis}" for axis in self._axes] or ["fits"]
        is_priced = any(row.flops for row in self.rows)
        # Programs chosen by time show it.
        is_timed = any("auto" in each.settings.values() for each in self.combinations)
        header += ["bytes", "left", "largest at the peak", *(["work"] if is_priced else [])]
        header += ["est. time"] if is_timed else []
        reference = next((row for each in self.combinations if (row := each.answer) is not None), None)
        rows = [header]
        for each in self.combinations:
            row = each.answer
            cells = [each.tpu, each.topology or (row.topology if row and row.topology else "")] if slices else []
            cells += [str(each.settings.get(name, "")) for name in settings]
            if row is None:
                none = _why_none(each)
                cells += ["none"] * max(1, len(self._axes)) + [none, "", *([""] * (1 + is_priced + is_timed))]
            else:
                said = "yes" if row.status == "fits" else "planned"
                cells += [str(size) for size in (each.largest or {}).values()] or [said]
                cells += [_gib(row.total_bytes), _gib(row.headroom_bytes), str(row.owner or "")]
                cells += [_times(row, reference, next(iter(self._axes), "batch"))] if is_priced else []
                cells += [f"{1e3 * row.seconds:.1f} ms" if row.seconds else ""] if is_timed else []
            rows.append(cells)
        return rows

    def _notes(self) -> list[str]:
        """Notes that the table has no column for."""
        notes: list[str] = []
        for each in self.combinations:
            row = each.answer
            if row is None:
                continue
            name = _named(each)
            if row.recomputed:
                what = f"{row.recomputed} instruction" + ("s" if row.recomputed > 1 else "")
                notes.append(f"{name}the compiler recomputes {what}{_without_recomputing(each, row, self._axes)}.")
            if row.status == "planned":
                notes.append(f"{name}planned, not compiled in full.")
        inferred = sum(each.inferred for each in self.combinations)
        if inferred:
            notes.append(
                f"Larger sizes that do not fit because smaller ones do not: {inferred}; above='all' asks each."
            )
        if self.gaps:
            notes.append(f"Larger sizes that were not tried: {len(self.gaps)}; `gaps` lists them.")
        if self.errors:
            first = self.errors[0]
            words = ": ".join([first.status, *(first.error or "").strip().splitlines()[:1]])[:200]
            notes.append(f"Programs without an answer: {len(self.errors)}, such as {dict(first.settings)}: {words}")
        if self.interrupted:
            known = [each for each in self.combinations if each.largest is None and each.planned]
            sizes = (", ".join(f"{axis} {size}" for axis, size in (each.planned or {}).items()) for each in known)
            fitting = (f"; {_named(each)}{said} fits by its plan" for each, said in zip(known, sizes, strict=True))
            notes.append(f"Interrupted{''.join(fitting)}.")
        compiler = next((row.compiler for row in self.rows if row.compiler), None)
        if compiler is not None:
            notes.append(f"Programs that {compiler} was asked about: {len(self.rows)}. No TPU was used.")
        return notes

    def to_dicts(self) -> list[dict[str, Any]]:
        """A mapping for each row, as JSON has it.

        Examples:
            >>> [row["status"] for row in found.to_dicts()]
            ['fits', 'refused']
        """
        return [row.to_dict() for row in self.rows]

    def to_json(self) -> str:
        """JSON Lines: an object for each row.

        Examples:
            >>> found.to_json().count("\\n")
            1
        """
        return "\n".join(row.to_json() for row in self.rows)

    def to_csv(self) -> str:
        """The rows as CSV; dicts in them are JSON.

        Examples:
            >>> found.to_csv().splitlines()[0][:27]
            'settings,tpu,topology,statu'
        """
        file = io.StringIO()
        rows = self.to_dicts()
        writer = csv.DictWriter(file, list(rows[0]) if rows else ["settings"], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
        return file.getvalue()

    def to_markdown(self) -> str:
        """The table as Markdown.

        Examples:
            >>> found.to_markdown().splitlines()[0]
            '| largest batch | bytes | left | largest at the peak |'
        """
        return _tilewise.markdown(self._table(), self._notes())

    def to_html(self) -> str:
        """A page: the table, and bytes over the first axis with the limit.

        Examples:
            >>> found.to_html()[:15]
            '<!doctype html>'
        """
        return _tilewise.search_page(self._table(), self._owners(), self._notes(), *self._curves())

    def _repr_html_(self) -> str:
        return self.to_html()

    def plot(self) -> str:
        """The curve of bytes over the first axis, as SVG.

        Examples:
            >>> found.plot()[:4]
            '<svg'
        """
        return _tilewise.search_curves(*self._curves())

    def _curves(self) -> tuple[str, list[tuple[str, list[tuple[int, int, int, str]]]]]:
        """The first axis, and for each combination its settings and its points along that axis."""
        axis = next(iter(self._axes), "")
        return axis, [(_settings(each), _along(each, axis)) for each in self.combinations if axis]

    def _owners(self) -> list[str]:
        """The largest owners on both sides of the limit."""
        lines: list[str] = []
        axis = next(iter(self._axes), "")
        for each in self.combinations if axis else ():
            answer = each.answer
            if answer is None:
                continue
            above = [row for row in each.rows if row.status == "refused" and row.settings[axis] > answer.settings[axis]]
            for row in (answer, *sorted(above, key=lambda row: row.settings[axis])[:1]):
                lines.append(f"{axis} {row.settings[axis]}, {row.status}: {row.owner or ''}")
        return lines

    def _rows(self) -> list[dict[str, Any]]:
        return [{**row.pop("settings"), **{name: _cell(each) for name, each in row.items()}} for row in self.to_dicts()]


def _cell(value: Any) -> Any:
    return json.dumps(value, default=str) if isinstance(value, dict) else value


def _is_faster(row: FitRow, than: FitRow) -> bool:
    """By the estimate, where both can be compared."""
    before, after = than.report, row.report
    if before is None or after is None:
        return False
    return any(each.what == "time" and each.after < each.before for each in before.diff(after).changes)


def _times(row: FitRow, reference: FitRow | None, axis: str) -> str:
    """The work for each of an axis beside the first combination's."""
    if reference is None or not row.flops or not reference.flops:
        return ""
    sizes = [float(each.settings.get(axis, 1)) for each in (row, reference)]
    return f"{row.flops / reference.flops * sizes[1] / sizes[0]:.2f}x"


def _gib(count: int | None) -> str:
    return "" if count is None else in_words(count) if abs(count) < 2**20 else f"{count / 2**30:.2f} GiB"


def _settings(each: Combination) -> str:
    return ", ".join(f"{name}={value}" for name, value in each.settings.items())


def _named(each: Combination) -> str:
    return f"{_settings(each)}: " if each.settings else ""


def _why_none(each: Combination) -> str:
    refused = [row for row in each.rows if row.status == "refused" and row.total_bytes is not None]
    if refused:
        smallest = min(refused, key=lambda row: row.total_bytes or 0)
        return f"needs {_gib(smallest.total_bytes)} of {_gib(smallest.limit_bytes)}"
    return each.rows[0].status if each.rows else "not asked"


def _without_recomputing(each: Combination, answer: FitRow, axes: Mapping[str, Sequence[float]]) -> str:
    """Words on the size that fits with nothing computed twice."""
    if answer.settings in each.without_recomputing:
        return ", but would fit without"
    if len(axes) != 1 or not each.without_recomputing:
        return " to make it fit"
    (axis,) = axes
    return f" to make it fit; {axis} {max(settings[axis] for settings in each.without_recomputing)} fits without"


def _along(combination: Combination, axis: str) -> list[tuple[int, int, int, str]]:
    """The searched sizes, ascending, with their bytes, limits and statuses; the other axes are at their smallest."""

    def others(row: FitRow) -> dict[str, Any]:
        return {name: value for name, value in row.settings.items() if name != axis}

    rows = [row for row in combination.rows if others(row) == others(combination.rows[0])]
    found = (
        (int(row.settings[axis]), row.total_bytes, row.limit_bytes, row.status)
        for row in rows
        if row.total_bytes is not None
    )
    return sorted(found, key=lambda point: point[0])
