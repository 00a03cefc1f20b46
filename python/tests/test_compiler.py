"""The compiler asked in a process of its own: the three ways agree, and nothing is left behind."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tilewise as tw
from tilewise._compiler import process
from tilewise._compiler.process import Answer, Compiler
from tilewise._compiler.program import Program, trace
from tilewise._jax.lowering import Request

jax = pytest.importorskip("jax")
pytest.importorskip("libtpu")
jnp = jax.numpy

S = jax.ShapeDtypeStruct


def twice(x: Any) -> Any:
    return jnp.exp(jax.lax.optimization_barrier(jnp.tanh(x)))


def rows(count: int) -> Program:
    return trace(Request(twice, (S((count, 300), jnp.float32),), "v5e"))


def aborting() -> Program:
    os.abort()


def endless() -> Program:
    while True:
        time.sleep(1)


def raising() -> Program:
    raise ValueError("3 does not divide 8")


def folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob(f"{process.PREFIX}*"))


@pytest.fixture(scope="module", autouse=True)
def _temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Other programs' processes have folders elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        process.close_shared()
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))
        yield
        process.close_shared()
        assert not folders()


@pytest.fixture(scope="module")
def compiler() -> Iterator[Compiler]:
    with Compiler() as compiler:
        yield compiler


@pytest.mark.slow
def test_the_ways_agree(compiler: Compiler) -> None:
    program = rows(100_000)
    stop, full, probe = (compiler.ask(program, mode) for mode in ("stop", "full", "probe"))
    said = tw.compile_for(twice, S((100_000, 300), jnp.float32), tpu="v5e").memory_analysis()
    assert full.sizes is not None
    assert full.sizes.argument_bytes == said.argument_size_in_bytes
    assert full.sizes.temporary_bytes == said.temp_size_in_bytes > 0
    assert stop.sizes == probe.sizes == full.sizes
    # A compilation that is nearly done isn't stopped.
    assert (full.status, probe.status) == ("fits", "planned")
    assert stop.status in ("fits", "planned")
    assert process.canary(compiler) == process.Modes(probe=True, stop=True)


def test_a_refusal_has_words_and_a_plan(compiler: Compiler) -> None:
    answer = compiler.ask(rows(20_000_000), "full")
    assert answer.status == "refused"
    assert "E1000" in (answer.error or "")
    assert answer.sizes is not None
    assert answer.message_bytes is not None
    assert abs(answer.sizes.total_bytes - answer.message_bytes) < 2**30 / 100
    assert answer.report is not None
    assert answer.report.fits is False
    assert any(row.source and row.source.file == __file__ for row in answer.report.peak_buffers)
    limited = compiler.ask(rows(100_000), "full", limit=2**27)
    assert limited.status == "refused"
    assert limited.report is not None
    assert limited.report.hbm_limit == 2**27
    reserved = compiler.ask(rows(100_000), "full", limit=2**27)
    assert reserved.status == "refused"


def test_a_function_that_does_not_fit_is_audited() -> None:
    report = tw.audit(twice, S((20_000_000, 300), jnp.float32), tpu="v5e")
    assert report.fits is False
    assert report.advice
    confirmed = tw.audit(twice, S((100_000, 300), jnp.float32), tpu="v5e", confirm=True)
    assert confirmed == tw.audit(twice, S((100_000, 300), jnp.float32), tpu="v5e")


@pytest.mark.slow
def test_the_environment_s_flags_hide_no_program(tmp_path: Path) -> None:
    program = (
        "import jax, tilewise as tw\n"
        "x = jax.ShapeDtypeStruct((8, 128), 'float32')\n"
        "print(tw.audit(jax.numpy.tanh, x, tpu='v5e', confirm=True).time is not None)\n"
    )
    flags = "--xla_dump_hlo_module_re=jit_train_step --xla_dump_to=/nowhere"
    given = {**os.environ, "XLA_FLAGS": flags, "TILEWISE_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


def test_crashes_are_answers(compiler: Compiler) -> None:
    crashed = compiler.trace(aborting)
    assert isinstance(crashed, Answer)
    assert crashed.status == "crashed"
    assert "SIGABRT" in (crashed.error or "")
    slow = compiler.trace(endless, timeout=0.2)
    assert isinstance(slow, Answer)
    assert slow.status == "timeout"
    raised = compiler.trace(raising)
    assert isinstance(raised, Answer)
    assert (raised.status, raised.error) == ("untraceable", "ValueError: 3 does not divide 8")
    traced = compiler.trace(functools.partial(rows, 8))
    assert isinstance(traced, Program)
    assert traced.hash == rows(8).hash != rows(9).hash


def test_a_kernel_s_memory_is_not_hbm() -> None:
    words = (
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem while allocating on stack for %kernel. Scoped "
        "allocation with size 32.00M and limit 16.00M exceeded scoped vmem limit by 16.00M."
    )
    assert process._refusal(words, "v5e") == ("other_memory", None)
    assert process._refusal("INVALID_ARGUMENT: something else", "v5e") == ("failed", None)
    late = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 15.75G of 15.75G hbm. Exceeded hbm "
    assert process._refusal(f"{late}capacity by 2.81M.", "v5e")[0] == "refused"


def test_an_interruption_ends_the_process() -> None:
    before = folders()
    compiler = Compiler()
    compiler.start()
    started = compiler._workers[0]
    started.wait()
    interrupt = threading.Timer(0.2, signal.pthread_kill, [threading.get_ident(), signal.SIGINT])
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        compiler.trace(endless)
    assert started._process.returncode == -signal.SIGKILL
    assert folders() <= before


@pytest.mark.slow
def test_the_process_ends_with_the_one_that_started_it() -> None:
    program = (
        "from tilewise._compiler.process import Compiler\n"
        "compiler = Compiler(); compiler.start(); worker = compiler._workers[0]; worker.wait()\n"
        "print(worker._process.pid, worker.folder, flush=True)\n"
        "import time; time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        number, folder = parent.stdout.readline().split()
        parent.kill()
    deadline = time.monotonic() + 20
    while (Path(folder).exists() or Path(f"/proc/{number}/exe").exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(folder).exists()
