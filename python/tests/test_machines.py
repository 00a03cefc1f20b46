"""Programs of GPUs and CPUs: as texts, and as functions compiled without the hardware."""

from __future__ import annotations

import importlib.util
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import tilewise as tw

PROGRAMS = Path(__file__).parents[2] / "examples/machines"

needs_gpu_compiler = pytest.mark.skipif(
    importlib.util.find_spec("jax_cuda12_plugin") is None, reason="jax[cuda12] is not installed"
)


def step() -> tuple[Any, tuple[Any, ...]]:
    """A step of SGD on two layers, and its arguments."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def sgd(weights: Any, x: Any) -> Any:
        def loss(weights: Any) -> Any:
            return jnp.mean(jnp.tanh(x @ weights["a"]) @ weights["b"])

        return jax.tree.map(lambda p, g: p - 0.1 * g, weights, jax.grad(loss)(weights))

    weights = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in (("a", (256, 512)), ("b", (512, 256)))}
    return sgd, (weights, jax.ShapeDtypeStruct((128, 256), jnp.float32))


def sizes(found: Any) -> tuple[int, int, int, int]:
    """The sizes by `memory_analysis`."""
    said = found.memory_analysis()
    return (
        said.argument_size_in_bytes,
        said.output_size_in_bytes,
        said.alias_size_in_bytes,
        said.temp_size_in_bytes,
    )


def test_texts() -> None:
    # XLA's own sizes: `memory_analysis` of the programs when they were compiled.
    for name, machine, temporaries in [
        ("attention.h100.hlo", "gpu:h100", 25165824),
        ("attention.h100.hlo", "gpu", 25165824),
        ("attention.cpu.hlo", "cpu", 52428800),
    ]:
        report = tw.audit(PROGRAMS / name, machine=machine)
        assert (report.machine, report.temporary_bytes, report.tpu) == (machine, temporaries, None)
        assert pickle.loads(pickle.dumps(report)) == report
        assert tw.Report.from_json(report.to_json()) == report
        assert json.loads(report.to_json())["machine"] == machine
    # JAX's pool takes three quarters of a card.
    assert tw.audit(PROGRAMS / "attention.h100.hlo", machine="gpu:h100").hbm_limit == 84_929_347_584 * 3 // 4
    assert tw.audit(PROGRAMS / "attention.h100.hlo", machine="gpu:h200", hbm_limit="90%").hbm_limit == 136_257_837_465
    assert tw.audit(PROGRAMS / "attention.h100.hlo", machine="gpu:h100") != tw.audit(PROGRAMS / "attention.h100.hlo")
    tiled = PROGRAMS.parent / "gnn_large.v5e.hlo"
    assert tw.audit(tiled, machine="tpu:v5e") == tw.audit(tiled, tpu="v5e")


def test_what_is_refused() -> None:
    program = PROGRAMS / "attention.cpu.hlo"
    with pytest.raises(tw.ParseError, match="`gpu:tpu` isn't a machine"):
        tw.audit(program, machine="gpu:tpu")
    with pytest.raises(tw.NotATpuProgram):
        tw.audit(program, machine="tpu:v5e")
    with pytest.raises(tw.HloError) as refused:
        tw.audit(PROGRAMS.parent / "gnn_large.v5e.hlo", machine="cpu")
    assert refused.value.kind == "not_this_machine"
    with pytest.raises(TypeError):
        tw.audit(program, tpu="v5e", machine="cpu")
    # A text that doesn't show its machine fits nothing for sure.
    unknown = "HloModule m, is_scheduled=true\nENTRY e { ROOT x = f32[8]{0} parameter(0) }"
    report = tw.audit(unknown, hbm_limit=1024)
    assert (report.fits, report.machine) == (None, "cpu")
    assert "assumed_machine" in [each.kind for each in report.warnings]
    assert tw.audit(unknown, hbm_limit=1024, machine="gpu").fits is True


def test_a_function_on_this_cpu() -> None:
    jax = pytest.importorskip("jax")
    f, args = step()
    options = {"donate_argnums": 0}
    report = tw.audit(f, *args, machine="cpu", jit_options=options)
    compiled = jax.jit(f, **options).lower(*args).compile()
    assert (report.argument_bytes, report.output_bytes, report.alias_bytes, report.temporary_bytes) == sizes(compiled)
    assert (report.machine, report.source, report.hbm_limit) == ("cpu", "sgd", None)
    with pytest.raises(TypeError):
        tw.audit(f, *args, machine="cpu", topology="v5e:2x2")
    mesh = jax.sharding.AbstractMesh((1000,), ("d",))
    place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    with pytest.raises(tw.Error) as refused:
        tw.audit(jax.numpy.tanh, jax.ShapeDtypeStruct((1000,), jax.numpy.float32, sharding=place), machine="cpu")
    assert refused.value.kind == "too_few_devices"


@pytest.mark.slow
def test_advice_for_a_cpu_comes_true() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def training_step(wrapped: Any) -> Any:
        def step(weights: Any, x: Any) -> Any:
            def layer(x: Any, weights: Any) -> Any:
                return jnp.tanh(jnp.tanh(x @ weights["a"]) @ weights["b"]), None

            def loss(weights: Any) -> Any:
                return jnp.mean(jax.lax.scan(wrapped(layer), x, weights)[0] ** 2)

            return jax.tree.map(lambda p, g: p - 0.1 * g, weights, jax.grad(loss)(weights))

        return step

    weights = {"a": (16, 256, 2048), "b": (16, 2048, 256)}
    args = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in weights.items()}
    x = jax.ShapeDtypeStruct((4096, 256), jnp.float32)
    before = tw.audit(training_step(lambda layer: layer), args, x, machine="cpu")
    after = tw.audit(training_step(jax.checkpoint), args, x, machine="cpu")
    (advice,) = [piece for piece in before.advice if piece.kind == "checkpoint"]
    assert advice.peak_bytes_saved is not None
    assert before.peak_bytes is not None
    assert after.peak_bytes is not None
    # "At best" is not less than half of what it turns out to be, as for TPUs.
    assert before.peak_bytes - after.peak_bytes >= advice.peak_bytes_saved / 2
    # Donation gains less on a CPU than the size of what is donated: nothing is promised.
    assert not any(piece.kind == "donate" and piece.peak_bytes_saved for piece in before.advice)


@needs_gpu_compiler
@pytest.mark.parametrize("card", ["a100", "h100", "b200"])
def test_a_function_on_a_card_that_is_not_there(card: str) -> None:
    f, args = step()
    report = tw.audit(f, *args, machine=f"gpu:{card}", jit_options={"donate_argnums": 0})
    assert (report.machine, report.fits) == (f"gpu:{card}", True)
    assert report.alias_bytes == 2 * 256 * 512 * 4


@pytest.mark.skipif(importlib.util.find_spec("jax_cuda12_plugin") is not None, reason="jax[cuda12] is installed")
def test_without_the_compiler_it_says_what_to_install() -> None:
    f, args = step()
    with pytest.raises(tw.Error) as refused:
        tw.audit(f, *args, machine="gpu:h100")
    assert (refused.value.kind, refused.value.help) == ("needs_gpu_compiler", "pip install 'jax[cuda12]'")
    compared = tw.compare_machines(f, *args, machines=["gpu:h100", "cpu"])
    assert compared[0].peak_bytes is None
    assert "jax[cuda12]" in str(compared)


def test_machines_side_by_side() -> None:
    pytest.importorskip("libtpu")
    f, args = step()
    compared = tw.compare_machines(f, *args, machines=["tpu:v5e", "cpu"])
    assert [row.machine for row in compared] == ["tpu:v5e", "cpu"]
    assert [row.peak_bytes for row in compared] == [row.report.peak_bytes if row.report else None for row in compared]
    assert all(row.error is None for row in compared)
    assert str(compared).splitlines()[0].split() == [
        "machine",
        "arguments",
        "results",
        "temporaries",
        "in",
        "all",
        "of",
        "fits",
    ]
    with pytest.raises(tw.ParseError):
        tw.compare_machines(f, *args, machines=["abacus"])
