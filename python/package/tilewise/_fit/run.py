"""`fit` and `fit_row`."""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from tilewise import _tilewise
from tilewise._base.files import cache_folder, write_whole
from tilewise._base.limits import bytes_of
from tilewise._base.progress import Ticker
from tilewise._base.types import Tpu
from tilewise._compiler.libtpu import compiler_version
from tilewise._compiler.process import Compiler
from tilewise._fit.combination import Combination, FitRow, Task, search_task
from tilewise._fit.factory import Stretched, check_settings, travels
from tilewise._fit.result import Fit
from tilewise._fit.search import Above, Found

_Known: TypeAlias = Mapping[int, Sequence[FitRow]]
"""Rows of an earlier search, by the numbers of their tasks."""

DEFAULT_CACHE = "default"
"""Stands for the folder in the user's cache."""


def fit(
    make: Callable[..., Any],
    /,
    *args: Any,
    tpu: Tpu | Sequence[Tpu],
    topology: str | Sequence[str] | None = None,
    largest: Mapping[str, Sequence[float]] | Sequence[float] | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    target: Mapping[str, Any] | None = None,
    in_axes: Any = None,
    batch_size: int | None = None,
    jit_options: Mapping[str, Any] | None = None,
    confirm: Literal["answer", "all", "none"] = "answer",
    above: Above = "auto",
    reserve: int | str = 0,
    hbm_limit: int | str | None = None,
    cache: str | os.PathLike[str] | None = DEFAULT_CACHE,
    engine: Literal["processes", "ray", "dask"] = "processes",
    workers: int = 1,
    timeout: float | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Fit:
    """Find the largest sizes of a program that fit a TPU, with no TPU: the compiler is asked, and each answer compiled.

    A larger size may take less: see ``above``. A size that doesn't fit is refused in about a second.

    Args:
        make: a factory: takes settings, such as ``batch=8, remat="full"``, and returns ``(f, args)`` or ``(f, args,
            jit_options)``, with abstract arguments. It may raise `Skip`. With ``args``, the function itself.
        args: the function's arguments, where there is no factory; ``in_axes`` says which axes grow.
        tpu: the generation, or several, each searched.
        topology: the slice, such as ``"2x2"``, or several; ``None`` for the smallest with enough devices.
        largest: an ordered axis and its sizes, ascending, such as ``{"batch": range(1, 513)}``; several are searched in
            turn, those that follow at their smallest.
        grid: unordered axes, such as ``{"remat": ["none", "full"]}``; each combination is searched. Some need no
            parameter of the factory: ``donate`` (True donates arguments that fit a result), ``formats`` (``"auto"``:
            the compiler picks layouts of arguments and results), ``sharding`` (``"data"``, ``"fsdp"``, ``"tensor"`` or
            ``"fsdp+tensor"``, by rule over the slice), ``remat`` (``"full"``, ``"dots"``, which keeps results of
            matrix multiplications, or ``"auto"``, the fastest choice of `remat`: values computed again for the
            gradient) and ``microbatch`` (in how many parts). The last two rewrite the step, operation by operation;
            its results stay, but for rounding. Changes that don't apply are skipped, with the reason.
        target: fixed sizes, such as ``{"batch": 256}``: which combinations fit?
        in_axes: for each of ``args`` the axis that is the batch, as `jax.vmap` names them.
        batch_size: the batch that ``args`` have; by default the size of the first marked axis.
        jit_options: arguments of ``jax.jit`` for ``args``.
        confirm: the programs compiled in full: each ``"answer"``, ``"all"`` whose plan fits, or ``"none"``.
        above: the sizes above the first estimate to ask about. ``"auto"``: at ratios up to twice the answer, and
            the next of each power of two that divides a size; where bytes do not rise with such sizes, all of them. Of
            the others a smaller one does not fit. ``"all"`` asks about each; ``"near"`` (the next two and the next
            multiples of 8 and 128), or for how many seconds, leave the others in ``gaps``.
        reserve: HBM to keep free, in bytes or as ``"512MiB"``.
        hbm_limit: HBM that there is, where it is less than the generation's.
        cache: a folder of earlier answers, by default the one that `clear_cache` empties; ``None`` for none.
        engine: where combinations are searched: in ``workers`` processes of this machine, or by Ray or Dask.
        workers: how many combinations at once; each takes a core, and 0.4 to 1 GB.
        timeout: seconds for each question.
        out: a file of JSON Lines that rows are appended to; the same call resumes from it.
        progress: show one line of progress on standard error; elsewhere than on a terminal a line every ten seconds.

    Returns:
        A `Fit`, which prints as a table. Ctrl-C ends the search, and returns the results so far, with ``interrupted``.

    Raises:
        ImportError: JAX or libtpu is missing.
        ParseError: ``tpu`` names no TPU generation.
        TypeError, ValueError: the arguments make no search.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> def make(batch):
        ...     return jnp.tanh, (jax.ShapeDtypeStruct((batch, 2**14, 2**14), jnp.float32),)
        >>> found = fit(make, tpu="v5e", largest={"batch": range(1, 9)}, cache=None)
        >>> found.largest, found.gaps
        ({'batch': 7}, [])
    """
    if confirm not in ("answer", "all", "none"):
        raise ValueError(f"confirm must be 'answer', 'all' or 'none', not {confirm!r}")
    if not isinstance(above, (int, float)) and above not in ("auto", "all", "near"):
        raise ValueError(f"above must be 'auto', 'all', 'near' or seconds, not {above!r}")
    if largest is not None and target is not None:
        raise ValueError("largest asks for a size and target gives it: say one of them")
    axes, grid = _axes(largest), grid or {}
    if args or in_axes is not None:
        make = Stretched(make, args, in_axes, next(iter(axes), "batch"), batch_size, jit_options)
    elif jit_options is not None:
        raise TypeError("a factory returns its jit_options itself")
    folder = cache_folder() if cache == DEFAULT_CACHE else cache
    tasks = [
        Task(
            make=make,
            settings={**settings, **(target or {})},
            axes=axes,
            tpu=generation,
            topology=each,
            confirm=confirm,
            above=above,
            reserve=int(bytes_of(reserve, _tilewise.hbm_bytes(generation))),
            hbm_limit=None if hbm_limit is None else int(bytes_of(hbm_limit, _tilewise.hbm_bytes(generation))),
            cache=None if folder is None else Path(folder),
            timeout=timeout,
        )
        for generation in [_tilewise.generation_name(each) for each in _several(tpu)]
        for each in _several(topology)
        for settings in (dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values()))
    ]
    if not tasks:
        raise ValueError("an empty grid has no combination")
    check_settings(make, {*axes, *grid, *(target or {})})
    log = None if out is None else Log(Path(out), _described(make, tasks))
    known: defaultdict[int, list[FitRow]] = defaultdict(list)
    for held in () if log is None else log.read():
        known[held["task"]].append(FitRow.from_dict(held))
    done, interrupted = [Combination.unsearched(task) for task in tasks], False
    try:
        if engine == "processes":
            _search_here(tasks, done, known, log, Progress(tasks, shown=progress), workers)
        else:
            _search_on(engine, tasks, done, known, log)
    except KeyboardInterrupt:
        interrupted = True
    return Fit(done, axes=axes, target=target, interrupted=interrupted)


def fit_row(
    make: Callable[..., Any],
    settings: Mapping[str, Any],
    /,
    *,
    tpu: Tpu,
    topology: str | None = None,
    confirm: Literal["answer", "none"] = "answer",
    cache: str | os.PathLike[str] | None = DEFAULT_CACHE,
    timeout: float | None = None,
) -> FitRow:
    """One row of `fit`: whether one program fits.

    Args:
        make, tpu, topology, confirm, cache, timeout: as `fit` takes them.
        settings: the factory's arguments.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> def make(batch):
        ...     return jnp.tanh, (jax.ShapeDtypeStruct((batch, 2**14, 2**14), jnp.float32),)
        >>> fit_row(make, {"batch": 1}, tpu="v5e", cache=None).total_bytes
        2147483648
    """
    found = fit(
        make, tpu=tpu, topology=topology, target=settings, confirm=confirm, cache=cache, timeout=timeout, progress=False
    )
    return found.rows[0]


def _axes(largest: Mapping[str, Sequence[float]] | Sequence[float] | None) -> dict[str, Sequence[float]]:
    named = {} if largest is None else largest if isinstance(largest, Mapping) else {"batch": largest}
    for name, sizes in named.items():
        if len(sizes) == 0:
            raise ValueError(f"{name} has no sizes")
        if any(low >= high for low, high in itertools.pairwise(sizes)):
            raise ValueError(f"the sizes of {name} must ascend")
    return {name: list(sizes) for name, sizes in named.items()}


def _several(value: Any) -> list[Any]:
    return list(cast("Sequence[Any]", value)) if isinstance(value, (list, tuple)) else [value]


def _described(make: Callable[..., Any], tasks: Sequence[Task]) -> dict[str, Any]:
    """A description that equal searches share."""
    name = getattr(make, "__qualname__", None) or getattr(make, "name", type(make).__name__)
    described = [[each.tpu, each.topology, dict(each.settings), dict(each.axes), each.limit] for each in tasks]
    return {"make": name, "compiler": compiler_version(), "tasks": described}


class Log:
    """A file of JSON Lines that rows are appended to as they come; the first line says whose they are."""

    def __init__(self, path: Path, search: Mapping[str, Any]) -> None:
        self._path = path
        self._head = json.dumps({"schema": 1, "search": dict(search)}, sort_keys=True, default=str)

    def read(self) -> list[dict[str, Any]]:
        """The rows that are there. A line that was cut off is removed; another search's file is a `ValueError`."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            content = b""
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.decode(errors="replace").splitlines()
        if lines and lines[0] != self._head:
            raise ValueError(f"{self._path} has the rows of another search: {lines[0][:300]}")
        if not lines:
            write_whole(self._path, self._head.encode() + b"\n")
        elif len(whole) != len(content):
            write_whole(self._path, whole)
        return [json.loads(line) for line in lines[1:]]

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        with open(self._path, "ab") as file:
            for row in rows:
                file.write(json.dumps(row, default=str).encode() + b"\n")


class Progress(Ticker):
    """Counts and shows questions, with the seconds so far, since a compilation may take minutes."""

    def __init__(self, tasks: Sequence[Task], *, shown: bool) -> None:
        super().__init__(lambda: f"{self._last}; {self._within}" if self._within else self._last, shown=shown)
        self._tasks = tasks
        self._counts: Counter[str] = Counter()
        self._last = f"1/{len(tasks)} {tasks[0].tpu}: starting the compiler"
        self._within = ""

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
        self.show()


def _search_here(
    tasks: Sequence[Task], done: list[Combination], known: _Known, log: Log | None, progress: Progress, workers: int
) -> None:
    """Fills in the combinations, in as many threads, each with a compiler of its own."""
    compilers: list[Compiler] = []
    here, lock = threading.local(), threading.Lock()

    def search(number: int) -> None:
        if not hasattr(here, "compiler"):
            here.compiler = Compiler(ahead=True)
            compilers.append(here.compiler)
            here.compiler.start()

        def on_row(found: Found, row: FitRow) -> None:
            with lock:
                if log is not None:
                    log.append([{"task": number, **row.to_dict()}])
                progress.row(number, found, row)

        search_task(tasks[number], here.compiler, done[number], known.get(number, ()), on_row, progress.within)

    def cancel() -> None:
        for compiler in compilers:
            compiler.cancel()

    def in_threads() -> None:
        pool = ThreadPoolExecutor(workers)
        try:
            for future in as_completed(pool.submit(search, number) for number in range(len(tasks))):
                future.result()
        except BaseException:
            # Threads that wait for an answer would wait on.
            cancel()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    try:
        with progress:
            if workers > 1:
                in_threads()
            else:
                for number in range(len(tasks)):
                    search(number)
    finally:
        cancel()


def _search_on(engine: str, tasks: Sequence[Task], done: list[Combination], known: _Known, log: Log | None) -> None:
    """As `_search_here`, on workers of a cluster. Rows are logged once their combination is done."""
    if engine not in ("ray", "dask"):
        raise ValueError(f"engine must be 'processes', 'ray' or 'dask', not {engine!r}")
    if not travels(tasks[0].make):
        message = f"engine={engine!r} needs a factory that its workers can import, not one of __main__ or a closure"
        raise ValueError(message)
    from tilewise.fleet import _engines

    held = [(task, known.get(number, ())) for number, task in enumerate(tasks)]
    for number, combination in _engines.run(engine, _searched, held):  # type: ignore[arg-type]
        done[number] = combination
        if log is not None:
            new = [row for row in combination.rows if row not in held[number][1]]
            log.append({"task": number, **row.to_dict()} for row in new)


def _searched(held: tuple[Task, Sequence[FitRow]]) -> Combination:
    task, known = held
    done = Combination.unsearched(task)
    with Compiler(ahead=True) as compiler:
        search_task(task, compiler, done, known)
    return done
