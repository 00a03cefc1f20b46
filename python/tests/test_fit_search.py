"""The search, driven by tables instead of a compiler: whatever they hold, the answer is their maximum."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from tilewise._compiler.compile import Cache
from tilewise._compiler.process import Answer, Sizes, Status
from tilewise._compiler.program import Program
from tilewise._fit import combination
from tilewise._fit.combination import Combination, FitRow, Task, search_task
from tilewise._fit.result import Fit
from tilewise._fit.run import Log
from tilewise._fit.search import Found, Kind, search

LIMIT = 1000
HOLES = sorted(set(get_args(Status)) - {"fits", "planned", "refused"})


@dataclass(frozen=True)
class Said:
    status: str
    total_bytes: int | None
    limit_bytes: int = LIMIT


class Table:
    """A made-up compiler: each size's bytes by plan, which rematerialisation may lower, and its verdict."""

    def __init__(self, generator: random.Random) -> None:
        self.sizes = sorted(generator.sample(range(1, 300), generator.randint(1, 40)))
        shape = generator.choice(["line", "steps", "noise", "holes", "none", "all"])
        slope = generator.uniform(1, 40)
        self.plans: dict[int, int | None] = {}
        self.verdicts: dict[int, str] = {}
        for size in self.sizes:
            plan = {"none": LIMIT, "all": LIMIT - 1}.get(shape, int(slope * size))
            if shape == "steps":
                plan = int(plan * (1 if size % 8 == 0 else generator.choice([1, 1.5])))
            if shape in ("noise", "holes"):
                plan = generator.randint(1, 2 * LIMIT)
            real = plan - generator.choice([0, 0, 0, 200])
            # Code counts, too: some plans below the limit are refused late.
            late = generator.random() < 0.05
            self.plans[size], self.verdicts[size] = plan, "fits" if real < LIMIT and not late else "refused"
            if generator.random() < (0.4 if shape == "holes" else 0.02):
                self.plans[size], self.verdicts[size] = None, generator.choice(HOLES)
        self.asked: list[tuple[int, Kind]] = []

    @property
    def answer(self) -> int | None:
        return max((size for size in self.sizes if self.verdicts[size] == "fits"), default=None)

    def ask(self, size: int, kind: Kind) -> Said:
        assert (size, kind) not in self.asked
        self.asked.append((size, kind))
        plan = self.plans[size]
        if plan is None:
            return Said(self.verdicts[size], None)
        if kind == "plan":
            return Said("planned" if plan < LIMIT else "refused", plan)
        return Said(self.verdicts[size], plan)


@pytest.mark.parametrize("seed", range(10))
def test_the_answer_is_the_maximum(seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(1000):
        table = Table(generator)
        found = search(table.sizes, table.ask, above="all")
        assert (found.size, found.gaps) == (table.answer, [])
        asked = [size for size, kind in table.asked if kind == "real"]
        assert asked == [size for size in reversed(table.sizes) if found.size is None or size >= found.size]


def asking(plan: Callable[[int], float], real: Callable[[int], float]) -> tuple[list[tuple[int, Kind]], Any]:
    """The sizes asked about so far, and the function that answers with these bytes."""
    asked: list[tuple[int, Kind]] = []

    def ask(size: int, kind: Kind) -> Said:
        assert (size, kind) not in asked
        asked.append((size, kind))
        if kind == "plan":
            return Said("planned" if plan(size) < LIMIT else "refused", int(plan(size)))
        return Said("fits" if real(size) < LIMIT else "refused", int(real(size)))

    return asked, ask


@pytest.mark.parametrize("seed", range(5))
def test_few_are_asked_where_bytes_rise(seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(300):
        end, slope, base = generator.choice([48, 128, 512, 2000]), generator.uniform(0.6, 60), generator.uniform(0, 400)

        def line(size: int, slope: float = slope, base: float = base) -> float:
            return base + slope * size

        asked, ask = asking(line, line)
        found = search(range(1, end + 1), ask)
        fitting = [size for size in range(1, end + 1) if int(line(size)) < LIMIT]
        assert (found.size, found.gaps) == (max(fitting, default=None), [])
        assert len(asked) <= 26
        compiled = [size for size, kind in asked if kind == "real" and line(size) < LIMIT]
        assert compiled == ([found.size] if found.size else [])
        # Answers for the other sizes follow from a smaller size that is refused.
        refused = [size for size, kind in asked if kind == "real" and size not in compiled]
        assert all(min(refused) <= size for size in found.inferred)


def by_eight(size: int) -> float:
    """Rows of a batch are laid out without a copy where it is a multiple of 8 (a reshape, recorded)."""
    return size * (7.4 if size % 8 == 0 else 10.5)


def in_blocks(size: int) -> float:
    """A program that divides its batch into the largest of 8, 4, 2 and 1 parts that it can."""
    parts = next(parts for parts in (8, 4, 2, 1) if size % parts == 0)
    return 290 + 232 * size / parts + 0.6 * size


def recomputing(size: int) -> float:
    """From 64 on the compiler computes some again."""
    return 14 * size if size < 64 else 800 + (size - 64) * 7.9


def by_thirty(size: int) -> float:
    return size * (7.4 if size % 30 == 0 else 10.5)


@pytest.mark.parametrize(
    ("plan", "real", "end"),
    [
        (by_eight, by_eight, 160),
        (in_blocks, in_blocks, 64),
        (lambda size: 15 * size, recomputing, 128),
        (lambda size: {1: 66, 2: 132}.get(size, 193 * size),) * 2 + (32,),
        (by_thirty, by_thirty, 160),
    ],
)
def test_programs_that_are_not_monotone(plan: Any, real: Any, end: int) -> None:
    asked, ask = asking(plan, real)
    found = search(range(1, end + 1), ask)
    answer = max(size for size in range(1, end + 1) if real(size) < LIMIT)
    if real is by_thirty:
        # Nothing about the sizes says that 30 matters: only asking about each finds it.
        assert search(range(1, end + 1), asking(plan, real)[1], above="all").size == answer
        return
    assert (found.size, found.gaps) == (answer, [])
    assert len(asked) < end * 3 / 4


def test_a_factory_that_raises_the_same_is_asked_three_times() -> None:
    @dataclass(frozen=True)
    class Raised(Said):
        error: str = "TypeError: no"

    asked: list[int] = []

    def ask(size: int, kind: Kind) -> Said:
        asked.append(size)
        return Raised("untraceable", None) if size != good else Said("fits", 1)

    good = 0
    found = search(range(1, 65), ask)
    assert (asked, found.size, len(found.gaps)) == ([64, 1, 32], None, 64)
    good = 1
    assert search(range(1, 65), ask).size == 1


def test_an_answer_of_a_few_questions_fits() -> None:
    generator = random.Random(4)
    for _ in range(1000):
        table = Table(generator)
        found = search(table.sizes, table.ask)
        asked = {size for size, kind in table.asked if kind == "real"}
        assert found.size is None or table.verdicts[found.size] == "fits"
        larger = {size for size in table.sizes if found.size is None or size > found.size}
        assert larger == (larger & asked) | found.inferred | set(found.gaps)
        assert all(table.verdicts[size] != "fits" for size in larger & asked)


def test_what_is_not_asked_is_a_gap() -> None:
    generator = random.Random(1)
    for _ in range(1000):
        table = Table(generator)
        above: Any = generator.choice(["near", 0, 3])
        ticks = iter(range(10_000))
        found = search(table.sizes, table.ask, above=above, clock=functools.partial(next, ticks))
        asked = {size for size, kind in table.asked if kind == "real"}
        assert found.size is None or table.verdicts[found.size] == "fits"
        larger = [size for size in table.sizes if found.size is None or size > found.size]
        assert found.gaps == [size for size in larger if size not in asked]
        assert all(table.verdicts[size] != "fits" for size in larger if size in asked)


def test_on_a_line_few_sizes_are_planned() -> None:
    table = Table(random.Random(0))
    table.sizes = list(range(1, 513))
    table.plans = {size: 11 * size for size in table.sizes}
    table.verdicts = {size: "fits" if 11 * size < LIMIT else "refused" for size in table.sizes}
    found = search(table.sizes, table.ask, above="near")
    assert (found.size, found.below) == (90, 90)
    assert len(table.asked) <= 14
    assert found.gaps == [size for size in range(93, 513) if size not in (96, 128)]


class Interrupted(BaseException):
    pass


class Faked:
    """Stands for `Asker`: rows from a table, until it is interrupted."""

    table: Table
    left: int

    def __init__(self, task: Task, compiler: object, known: list[FitRow], on_row: Any, within: object) -> None:
        self._known = {(row.settings["batch"], row.mode): row for row in known}
        self._on_row = on_row

    def ask(self, settings: dict[str, Any], kind: Kind) -> FitRow:
        size = settings["batch"]
        for mode in ("full", "probe") if kind == "plan" else ("full",):
            if (size, mode) in self._known:
                return self._known[size, mode]
        if Faked.left == 0:
            raise Interrupted
        Faked.left -= 1
        said = Faked.table.ask(size, kind)
        hole = said.total_bytes is None
        row = FitRow.from_dict(
            {
                "settings": dict(settings),
                "tpu": "v5e",
                "status": said.status,
                "limit_bytes": LIMIT,
                "total_bytes": said.total_bytes,
                "mode": "full" if kind == "real" or hole else "probe",
            }
        )
        self._known[size, row.mode] = row
        self._on_row(row)
        return row


def append(log: Log, found: Found, row: FitRow) -> None:
    log.append([row.to_dict()])


def test_a_search_resumes_where_it_was_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(combination, "Asker", Faked)
    generator = random.Random(2)
    for number in range(300):
        Faked.table = Table(generator)
        task = Task(print, {"remat": "none"}, {"batch": Faked.table.sizes}, "v5e", None, above="all")
        path = tmp_path / f"{number}.jsonl"
        while True:
            log = Log(path, {"make": "print"})
            known = [FitRow.from_dict(held) for held in log.read()]
            done = Combination(task.settings, "v5e", None)
            # Any number of questions at a time, the last line torn.
            Faked.left = generator.randint(0, 30)
            try:
                search_task(task, object(), done, known, functools.partial(append, log))  # type: ignore[arg-type]
            except Interrupted:
                unknown = {gap["batch"] for gap in done.gaps}
                assert done.largest is None
                known = (done.planned or {}).get("batch", 0)
                assert Faked.table.answer is None or Faked.table.answer in unknown or Faked.table.answer <= known
                assert all(size > known for size in unknown)
                with open(path, "ab") as file:
                    file.write(b'{"settings": {"ba')
                continue
            break
        assert (done.largest or {}).get("batch") == Faked.table.answer
        assert done.gaps == []
        assert len(set(Faked.table.asked)) == len(Faked.table.asked)


def test_answers_are_kept_where_they_can_be(tmp_path: Path) -> None:
    program = Program("jit_f", "v5e", "v5e:2x2", b"", b"", (0,), "hash", 0.0)
    answer = Answer("refused", "full", Sizes(8, 8, 0, 16), 32, "too large")
    file = tmp_path / "file"
    file.touch()
    other = Answer("failed", "full")
    for folder, is_kept in ((tmp_path / "folder", True), (file, False)):
        cache = Cache(folder)
        assert cache.asked(program, "full", LIMIT, lambda: answer) == (answer, False)
        assert cache.asked(program, "full", LIMIT, lambda: other) == ((answer, True) if is_kept else (other, False))
        assert cache.asked(program, "full", LIMIT + 1, lambda: other) == (other, False)
        assert cache.asked(replace(program, tpu="v6e"), "full", LIMIT, lambda: other) == (other, False)


def test_another_search_s_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert Log(path, {"make": "a"}).read() == []
    assert Log(path, {"make": "a"}).read() == []
    with pytest.raises(ValueError, match="another search"):
        Log(path, {"make": "b"}).read()


def test_a_page_draws_the_first_axis() -> None:
    sizes = ((1, 128, "fits"), (2, 128, "refused"), (1, 256, "refused"), (1, 192, "fits"))
    rows = [
        FitRow.from_dict(
            {
                "settings": {"batch": batch, "seq": seq},
                "tpu": "v5e",
                "status": status,
                "limit_bytes": LIMIT,
                "total_bytes": 2 * batch * seq,
                "flops": batch * seq,
            }
        )
        for batch, seq, status in sizes
    ]
    done = Combination({}, "v5e", None, {"batch": 1, "seq": 192}, [], rows)
    found = Fit([done], axes={"batch": [1, 2], "seq": [128, 192, 256]}, target=None, interrupted=False)
    assert found.plot().count("<circle") == 2
    assert str(found).splitlines()[1].split()[:2] == ["1", "192"]


def test_what_is_recomputed_is_said() -> None:
    def note(*said: tuple[int, str, int]) -> str:
        done = Combination({}, "v5e", None, {"batch": 3})
        for batch, mode, count in said:
            status = "fits" if mode == "full" else "planned"
            done.add(
                FitRow.from_dict(
                    {
                        "settings": {"batch": batch},
                        "tpu": "v5e",
                        "status": status,
                        "mode": mode,
                        "recomputed": count,
                        "limit_bytes": LIMIT,
                    }
                )
            )
        found = Fit([done], axes={"batch": [1, 2, 3]}, target=None, interrupted=False)
        return next((line for line in str(found).splitlines() if "recomputes" in line), "")

    # A probe does not rematerialise.
    assert note((3, "probe", 0), (3, "full", 0)) == ""
    assert note((2, "probe", 0), (3, "full", 1)).endswith(
        "recomputes 1 instruction to make it fit; batch 2 fits without."
    )
    assert note((3, "probe", 0), (3, "full", 2)).endswith("recomputes 2 instructions, but would fit without.")


def test_what_is_not_searched_is_a_gap() -> None:
    task = Task(print, {"remat": "none"}, {"batch": [1, 2], "seq": [8, 16]}, "v5e", None)
    settings = [{"remat": "none", "batch": batch, "seq": 8} for batch in (1, 2)]
    assert Combination.unsearched(task).gaps == settings


def test_rows_travel() -> None:
    row = FitRow.from_dict(
        {"settings": {"batch": 8}, "tpu": "v5e", "status": "refused", "limit_bytes": LIMIT, "total_bytes": 1500}
    )
    assert FitRow.from_dict(row.to_dict()) == row
    assert row.headroom_bytes == -500
    assert replace(row, status="fits") != row
    assert Found().gaps == []
