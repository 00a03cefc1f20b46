"""Progress of a search: one updating line on a terminal, elsewhere a line every ten seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tilewise._fit.combination import Task
from tilewise._fit.rows import FitRow
from tilewise._fit.search import Found
from tilewise._progress import Ticker


class Progress:
    """Counts and shows questions, with the seconds so far, since a compilation may take minutes."""

    def __init__(self, tasks: Sequence[Task], *, shown: bool) -> None:
        self._tasks, self._ticker = tasks, Ticker(self._text, shown=shown)
        self._counts: Counter[str] = Counter()
        self._last = f"1/{len(tasks)} {tasks[0].tpu}: starting the compiler"
        self._within = ""

    def __enter__(self) -> Progress:
        self._ticker.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._ticker.__exit__()

    def _text(self) -> str:
        return f"{self._last}; {self._within}" if self._within else self._last

    def within(self, words: str) -> None:
        self._within = words

    def row(self, number: int, found: Found, row: FitRow) -> None:
        self._within = ""
        self._counts["asked"] += 1
        self._counts["refused"] += row.status == "refused" and row.mode != "probe"
        self._counts["compiled"] += row.status == "fits" and not row.cached
        task = self._tasks[number]
        settings = ", ".join(f"{name}={value}" for name, value in row.settings.items())
        best = f"best {found.size}" if found.size is not None else f"{found.below or '?'} fits by its plan"
        left = f", {found.left} left" if found.left is not None else ""
        counts = ", ".join(f"{self._counts[name]} {name}" for name in ("asked", "refused", "compiled"))
        self._last = f"{number + 1}/{len(self._tasks)} {task.tpu} {settings}: {counts}{left}; {best}"
        self._ticker.show()
