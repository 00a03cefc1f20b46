"""Functions compiled for TPUs that aren't there, and what the compiler says of them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest

import tilewise as tw
from tilewise._jax import topologies

jax = pytest.importorskip("jax")
pytest.importorskip("libtpu")
jnp = jax.numpy

S = jax.ShapeDtypeStruct


def loss(w: Any, x: Any, y: Any) -> Any:
    hidden = jnp.tanh(x @ w["a"]) @ w["b"]
    return jnp.mean((hidden - y) ** 2)


def step(w: Any, x: Any, y: Any) -> Any:
    return jax.tree.map(lambda p, d: p - 0.1 * d, w, jax.grad(loss)(w, x, y))


ARGS = ({"a": S((300, 130), jnp.float32), "b": S((130, 12), jnp.float32)}, S((4000, 300), jnp.float32))
ARGS = (*ARGS, S((4000, 12), jnp.float32))


@pytest.mark.parametrize(
    "tpu", [pytest.param(tpu, marks=[pytest.mark.slow] if tpu != "v5e" else []) for tpu in tw.TPU_GENERATIONS]
)
def test_the_report_has_the_compiler_s_numbers(tpu: str) -> None:
    compiled = tw.compile_for(step, *ARGS, tpu=tpu)
    said = compiled.memory_analysis()
    report = tw.audit(step, *ARGS, tpu=tpu)
    assert (report.argument_bytes, report.output_bytes, report.alias_bytes, report.reported_temporary_bytes) == (
        said.argument_size_in_bytes,
        said.output_size_in_bytes,
        said.alias_size_in_bytes,
        said.temp_size_in_bytes,
    )
    assert (report.source, report.tpu) == ("step", tpu)
    assert tw.audit(compiled).libtpu == report.libtpu == version("libtpu")
    assert report.buffer_assignment
    assert f"Exact for libtpu {version('libtpu')}" in str(report)
    assert pickle.loads(pickle.dumps(report)) == report == tw.Report.from_json(report.to_json())
    # A report that travels quotes and edits no lines of files, which may be others there.
    here, there = (str(one).partition("\nIn detail") for one in (report, pickle.loads(pickle.dumps(report))))
    assert here[2] == there[2]
    assert not any(" │ " in line or line.startswith("          - ") for line in there[0].splitlines())
    assert any(row.source and row.source.file == __file__ for row in report.peak_buffers)


@pytest.mark.slow
def test_real_arguments_donation_and_jitted_functions() -> None:
    real = jax.tree.map(lambda s: np.zeros(s.shape, s.dtype), ARGS)
    assert not tw.audit(step, *real, tpu="v5e").diff(tw.audit(step, *ARGS, tpu="v5e")).changes
    donated = tw.audit(step, *ARGS, tpu="v5e", jit_options={"donate_argnums": 0})
    # The result's own table of pointers is new.
    assert donated.alias_bytes == donated.output_bytes - 512 > 0
    assert tw.audit(jax.jit(step, donate_argnums=0), *ARGS, tpu="v5e").alias_bytes == donated.alias_bytes
    assert tw.audit(lambda: jnp.zeros((400000, 12)), tpu="v5e").output_bytes == 25_600_000
    scaled = tw.audit(lambda x, k: x * k, ARGS[1], 3.0, tpu="v5e")
    assert scaled.argument_bytes > tw.predict(ARGS[1], tpu="v5e").physical_bytes


@pytest.mark.parametrize("concrete", [False, True])
def test_shardings_are_laid_out_over_the_topology(concrete: bool) -> None:
    from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()[:1]), ("x",)) if concrete else AbstractMesh((8,), ("x",))
    x = S((4096, 256), jnp.float32, sharding=NamedSharding(mesh, PartitionSpec("x", None)))
    report = tw.audit(lambda x, w: jnp.tanh(x @ w), x, S((256, 256), jnp.float32), tpu="v5e")
    assert report.partitions == mesh.size
    assert report.argument_bytes == 4096 * 256 * 4 // mesh.size + 256 * 256 * 4


def test_the_topology_is_as_large_as_the_mesh() -> None:
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    assert len(topologies.slice_with("v5e", None, 1)[1]) == 4
    assert len(topologies.slice_with("v5e", "4x4", 1)[1]) == 16
    assert len(topologies.slice_with("v5p", None, 100)[1]) == 128
    sharding = NamedSharding(AbstractMesh((8,), ("x",)), PartitionSpec("x"))
    with pytest.raises(ValueError, match="8 devices, the topology 4"):
        tw.compile_for(jnp.tanh, S((64,), jnp.float32, sharding=sharding), tpu="v5e", topology="v5e:2x2")
    with pytest.raises(ValueError, match="9x9"):
        tw.compile_for(jnp.tanh, S((64,), jnp.float32), tpu="v5e", topology="9x9")


def test_what_is_missing_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    x = S((64,), jnp.float32)
    with pytest.raises(tw.ParseError):
        tw.compile_for(jnp.tanh, x, tpu="v99")
    with pytest.raises(TypeError, match="tpu="):
        tw.audit(jnp.tanh, x)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="arguments"):
        tw.audit("x = f32[2] parameter(0)", x, tpu="v5e")  # type: ignore[call-overload]
    held = topologies._explained(RuntimeError("The TPU is already in use by process with pid 7."), "v5e:2x2")
    assert "ALLOW_MULTIPLE_LIBTPU_LOAD" in str(held)
    assert "pid 7" in str(held)
    monkeypatch.delenv("TPU_LIBRARY_PATH", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"tilewise\[tpu\]"):
        tw.compile_for(jnp.tanh, x, tpu="v5e")
    monkeypatch.setitem(sys.modules, "jax.experimental.topologies", None)
    monkeypatch.delattr("jax.experimental.topologies", raising=False)
    with pytest.raises(ImportError, match=r"tilewise\[tpu\]"):
        tw.compile_for(jnp.tanh, x, tpu="v5e")


@pytest.mark.slow
def test_two_processes_compile_at_once() -> None:
    program = (
        "import sys, jax, jax.numpy as jnp, tilewise as tw\n"
        "tw.compile_for(jnp.tanh, jax.ShapeDtypeStruct((8,), jnp.float32), tpu='v5e')\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
    )
    names = [name for name in os.environ if name.startswith("TPU_") or name == "ALLOW_MULTIPLE_LIBTPU_LOAD"]
    environment = {name: value for name, value in os.environ.items() if name not in names}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    both = [subprocess.Popen([sys.executable, "-c", program], **pipes) for _ in range(2)]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.communicate("\n")
        assert process.returncode == 0


def test_a_change_is_checked() -> None:
    def sums(x: Any) -> Any:
        return jnp.tanh(x).sum(axis=0)

    rows, columns = S((400000, 12), jnp.float32), S((12, 400000), jnp.float32)
    same = tw.check_fix(sums, sums, rows, tpu="v5e")
    assert same.peak_bytes_saved == 0
    said = tw.compile_for(sums, rows, tpu="v5e").memory_analysis()
    assert same.before.temporary_bytes == same.after.temporary_bytes == said.temp_size_in_bytes
    assert not same
    checked = tw.check_fix(lambda x: x + 1, lambda x: x.astype(jnp.bfloat16), columns, tpu="v5e")
    assert checked.peak_bytes_saved == checked.before.peak_bytes - checked.after.peak_bytes > 0
    assert checked.verdict == "better"
    assert str(checked).splitlines()[1].startswith(f"  total: {checked.before.peak_bytes / 2**20:.2f} MiB")


def test_a_program_that_jax_can_not_print(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = tw.compile_for(jnp.tanh, S((400000, 12), jnp.float32), tpu="v5e")
    report = tw.audit(compiled, tpu="v5e")

    def as_text(_: Any) -> str:
        raise RuntimeError("UNIMPLEMENTED: async-update")

    monkeypatch.setattr(type(compiled), "as_text", as_text)
    assert not tw.audit(compiled, tpu="v5e").diff(report).changes
    elsewhere = jax.jit(jnp.tanh).lower(S((8,), jnp.float32)).compile()
    with pytest.raises(tw.HloError, match="can't be printed: UNIMPLEMENTED") as refused:
        tw.audit(elsewhere)
    assert refused.value.kind == "not_printable"


def test_a_cpu_s_programs_are_refused() -> None:
    lowered = jax.jit(loss).lower(*ARGS)
    for program in (lowered, lowered.compile(), lowered.compile().as_text()):
        with pytest.raises(tw.NotATpuProgram, match="audit\\(f, \\*args, tpu=…\\)"):
            tw.audit(program, tpu="v5e")
