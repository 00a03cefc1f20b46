"""One line of progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tilewise._fit.combination import Task
from tilewise._fit.rows import FitRow
from tilewise._fit.search import Found
from tilewise._progress import Line


class Progress:
    """Counts what was asked, and shows it where standard error is a terminal."""

    def __init__(self, tasks: Sequence[Task], *, shown: bool) -> None:
        self._tasks, self._line = tasks, Line(shown=None if shown else False)
        self._counts: Counter[str] = Counter()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.clear()

    def row(self, number: int, found: Found, row: FitRow) -> None:
        """Count a row of a task."""
        self._counts["asked"] += 1
        self._counts["refused"] += row.status == "refused" and row.mode != "probe"
        self._counts["compiled"] += row.status == "fits" and not row.cached
        if not self._line.is_shown:
            return
        task = self._tasks[number]
        settings = ", ".join(f"{name}={value}" for name, value in row.settings.items())
        bracket = f"{found.below or '?'} fits, {found.above or '?'} may not"
        counts = ", ".join(f"{self._counts[name]} {name}" for name in ("asked", "refused", "compiled"))
        self._line.show(f"{number + 1}/{len(self._tasks)} {task.tpu} {settings}: {counts}; {bracket}")
