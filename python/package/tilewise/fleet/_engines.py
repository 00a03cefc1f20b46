"""Runs tasks: in threads, or on the workers of Ray or Dask. Retries are the engines' own."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Literal, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_RETRIES = 3
_LOG = logging.getLogger(__name__)


def run(
    engine: Literal["ray", "dask", "threads"], function: Callable[[T], R], tasks: Sequence[T]
) -> Iterator[tuple[int, R]]:
    """Calls the function with each task; the tasks' numbers and results, in any order.

    A task that still raises, or still loses its worker, after the engine's retries is logged and left out. A task may
    run more than once, so the function must not mind.

    Raises:
        ImportError: the engine is not installed.
        ValueError: there is no such engine.
    """
    engines: dict[str, Callable[..., Iterator[tuple[int, R]]]] = {"ray": _ray, "dask": _dask, "threads": _threads}
    if engine not in engines:
        raise ValueError(f"engine must be 'ray', 'dask' or 'threads', not {engine!r}")
    return engines[engine](function, tasks) if tasks else iter(())


def _threads(function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        numbers = {pool.submit(function, task): number for number, task in enumerate(tasks)}
        for future in as_completed(numbers):
            number = numbers.pop(future)
            error = future.exception()
            if error is None:
                yield number, future.result()
            else:
                _LOG.warning("a task failed", exc_info=error)
    finally:
        # The rest isn't needed once the caller has given up.
        pool.shutdown(cancel_futures=True)


def _ray(function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
    import ray

    def call(task: T) -> R:
        return function(task)

    there = ray.remote(num_cpus=1, max_retries=_RETRIES, retry_exceptions=True)(call)
    numbers = {there.remote(task): number for number, task in enumerate(tasks)}
    try:
        while numbers:
            [done], _ = ray.wait(list(numbers))
            number = numbers.pop(done)
            try:
                result = ray.get(done)
            except ray.exceptions.RayError as error:
                _LOG.warning("a task failed: %s", error)
            else:
                yield number, result
    finally:
        # The rest isn't needed once the caller has given up.
        for left in numbers:
            ray.cancel(left)


def _dask(function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
    import distributed

    try:
        client = contextlib.nullcontext(distributed.get_client())
    except ValueError:
        client = distributed.Client()
    with client as current:
        futures = current.map(function, tasks, retries=_RETRIES, pure=False)
        numbers = {future.key: number for number, future in enumerate(futures)}
        completed = distributed.as_completed(futures, with_results=True, raise_errors=False)
        # Dask keeps the results that somebody holds.
        del futures
        for future, result in completed:
            if future.status == "finished":
                yield numbers[future.key], result
            else:
                _LOG.warning("a task failed: %s", result)
