"""Objects are shared between threads, and long calls release the GIL."""

from __future__ import annotations

import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tilewise as tw

ARRAY = np.random.default_rng(3).standard_normal((1030, 2050), dtype=np.float32)
SHAPE = tw.Shape("f32[1030,2050]{1,0:T(8,128)}")
CALLS = 2000
"""How many calls another thread may need to wake up."""


def test_relayout_from_eight_threads_at_once() -> None:
    expected = tw.tile(ARRAY, SHAPE)
    start = threading.Barrier(8)

    def work(number: int) -> bool:
        start.wait()
        out = np.empty(SHAPE.physical_bytes, np.uint8)
        for turn in range(5):
            tw.tile(ARRAY, SHAPE, out=out, threads=1 + (number + turn) % 3)
            if not np.array_equal(out, expected) or not np.array_equal(tw.untile(out, SHAPE), ARRAY):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_memory_in_use_is_refused() -> None:
    out, indices = np.zeros(SHAPE.physical_bytes, np.uint8), np.zeros((1_000_000, 2), np.uint64)
    offsets = np.zeros(len(indices), np.int64)
    refused = []

    def ask(work: Callable[[], object]) -> None:
        for _ in range(5):
            try:
                work()
            except tw.Error as error:
                refused.append(error.kind)

    works = (
        lambda: tw.tile(ARRAY, SHAPE, out=out),
        lambda: tw.untile(out, SHAPE),
        lambda: SHAPE.offsets(indices, out=offsets),
        lambda: SHAPE.indices(offsets),
    )
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, works * 2))
    assert set(refused) <= {"buffer_in_use", "buffer_not_writable"}


def test_objects_are_shared_between_threads(program: Path) -> None:
    shape = tw.Shape("bf16[300,500]{1,0:T(8,128)(2,1)}")
    indices = np.random.default_rng(5).integers(0, 300, (20_000, 2))
    expected, report = shape.offsets(indices), tw.audit(program)

    def work(_: int) -> bool:
        fresh = np.array_equal(shape.offsets(indices), expected) and shape.offset((1, 0)) == 1
        return fresh and str(tw.audit(program)) == str(report) and len(report.buffers) == len(report.to_dict()["shape"])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(32)))


def lets_others_run(work: object) -> bool:
    """Whether another thread runs during calls, with a switch interval that never interrupts them.

    On a busy machine it may wake up too late for many of them.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    ticks, done = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0)

    other = threading.Thread(target=tick)
    try:
        other.start()
        before = ticks
        for _ in range(CALLS):
            work()  # type: ignore[operator]
            if ticks > before:
                return True
        return False
    finally:
        done.set()
        sys.setswitchinterval(interval)
        other.join()


def test_the_gil_is_released() -> None:
    out = np.empty(SHAPE.physical_bytes, np.uint8)
    indices = np.zeros((2_000_000, 2), np.int64)
    text = "ENTRY main {\n" + "  x = f32[400000,12]{1,0:T(8,128)} negate(y)\n" * 30_000 + "}\n"
    for work in (
        lambda: tw.tile(ARRAY, SHAPE, out=out),
        lambda: SHAPE.offsets(indices),
        lambda: SHAPE.indices(indices[:200_000, 0]),
        lambda: tw.audit(text),
    ):
        assert lets_others_run(work)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="needs free-threaded Python")
def test_the_gil_stays_off_in_free_threaded_python() -> None:
    assert not sys._is_gil_enabled()  # type: ignore[attr-defined]
