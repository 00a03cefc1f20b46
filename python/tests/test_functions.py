"""Functions of every kind, lowered for TPUs that aren't there: to the programs that JAX makes on a TPU's devices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewise as tw
from tilewise._compiler.program import Program, sendable
from tilewise._jax import internals
from tilewise._jax.lowering import Request, TracedProgram, lower_on
from tilewise._jax.topologies import devices_of

jax = pytest.importorskip("jax")
pytest.importorskip("libtpu")
jnp = jax.numpy

S, P = jax.ShapeDtypeStruct, jax.sharding.PartitionSpec
X, W = S((4096, 256), jnp.float32), S((256, 128), jnp.float32)


def f(x: Any, w: Any, *, scale: float = 1.0, mode: str = "tanh") -> Any:
    return (jnp.tanh if mode == "tanh" else jnp.sin)(x @ w) * scale


class Model:
    def f(self, x: Any, w: Any) -> Any:
        return f(x, w)


def program(function: Any, *args: Any, topology: str | None = None, **kwargs: Any) -> Program:
    """The program that the compiler is handed for it."""
    name, lowered = lower_on(Request(function, args, "v5e", topology, kwargs=kwargs))
    return sendable(lowered, "v5e", name, 0.0)


def on_tpu(function: Any, *args: Any, sharding: Any = None) -> Program:
    """The program from JAX alone, with arguments on the TPU's devices."""
    own = sharding or jax.sharding.SingleDeviceSharding(devices_of("v5e:2x2")[0])
    placed = [S(each.shape, each.dtype, sharding=own) for each in args]
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    return sendable(jitted.lower(*placed), "v5e", None, 0.0)


def named_f(change: Callable[..., Any]) -> Callable[..., Any]:
    change.__name__ = "f"
    return change


def test_arguments_of_every_kind() -> None:
    plain = on_tpu(f, X, W)
    assert plain.topology == "v5e:2x2"
    assert program(f, X, W).hash == plain.hash
    assert program(Model().f, X, W).hash == plain.hash
    assert program(jax.jit(f), X, W).hash == plain.hash
    assert program(jax.jit(f).trace(X, W)).hash == plain.hash
    assert program(jax.jit(f).trace(jnp.ones(X.shape), np.ones(W.shape, np.float32))).hash == plain.hash
    sine = on_tpu(named_f(lambda x, w: f(x, w, mode="sine")), X, W)
    assert sine.hash != plain.hash
    assert program(jax.jit(f, static_argnames="mode"), X, W, mode="sine").hash == sine.hash
    assert program(named_f(functools.partial(f, mode="sine")), X, W).hash == sine.hash
    threefold = on_tpu(named_f(lambda n, x: n * x), S((), jnp.int32), X)
    assert program(named_f(lambda n, x: n * x), np.int32(3), x=X).devices == threefold.devices == (0,)


def test_what_was_lowered_or_exported() -> None:
    report = tw.audit(f, X, W, tpu="v5e")
    anywhere = jax.jit(f).trace(X, W).lower(lowering_platforms=("tpu",))
    assert not tw.audit(anywhere, tpu="v5e").diff(report).changes
    exported = jax.export.export(jax.jit(f), platforms=["tpu"])(X, W)
    assert not tw.audit(exported, tpu="v5e").diff(report).changes
    for wrong in (jax.jit(f).lower(X, W), jax.export.export(jax.jit(f), platforms=["cpu"])(X, W)):
        with pytest.raises(tw.NotATpuProgram, match="for cpu"):
            tw.audit(wrong, tpu="v5e")


def host_mesh(**options: Any) -> Any:
    return jax.sharding.Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"), **options)


@pytest.fixture(scope="module")
def tpu_mesh() -> Any:
    return tw.mesh("v5e:2x4", ("data", "model"), shape=(4, 2))


def with_shard_map(mesh: Any) -> Any:
    def f(x: Any, w: Any) -> Any:
        return jax.lax.psum(jnp.tanh(x @ w).sum(), ("data", "model"))

    return jax.shard_map(f, mesh=mesh, in_specs=(P("data", None), P(None, "model")), out_specs=P())


def with_constraint(mesh: Any) -> Any:
    def f(x: Any, w: Any) -> Any:
        return jnp.tanh(jax.lax.with_sharding_constraint(x @ w, jax.sharding.NamedSharding(mesh, P("data", "model"))))

    return f


def with_loop(mesh: Any) -> Any:
    def f(x: Any, w: Any) -> Any:
        def body(carry: Any, _: Any) -> tuple[Any, None]:
            rows = jax.sharding.NamedSharding(mesh, P("data", None))
            return jax.lax.with_sharding_constraint(jnp.tanh(carry @ w @ w.T), rows), None

        return jax.lax.scan(jax.checkpoint(body), x, None, length=4)[0].sum()

    return jax.grad(f, argnums=1)


def with_in_shardings(mesh: Any) -> Any:
    return jax.jit(f, in_shardings=jax.sharding.NamedSharding(mesh, P("data", None)), donate_argnums=0)


@pytest.mark.parametrize("make", [with_shard_map, with_constraint, with_loop])
def test_meshes_inside_are_laid_out_over_the_topology(make: Callable[[Any], Any], tpu_mesh: Any) -> None:
    expected = on_tpu(make(tpu_mesh), X, W, sharding=jax.sharding.NamedSharding(tpu_mesh, P()))
    assert len(expected.devices) == 8
    assert program(make(host_mesh()), X, W).hash == expected.hash
    # A mesh of the TPU's devices says which slice it is.
    assert program(make(tpu_mesh), X, W).hash == expected.hash


def test_meshes_of_arguments_and_contexts(tpu_mesh: Any) -> None:
    sharding = jax.sharding.NamedSharding(tpu_mesh, P("data", None))
    expected = on_tpu(with_in_shardings(tpu_mesh), X, S((256, 128), jnp.float32), sharding=sharding)
    assert program(with_in_shardings(host_mesh()), X, W).hash == expected.hash
    explicit = (jax.sharding.AxisType.Explicit,) * 2
    for options in ({}, {"axis_types": explicit}):
        mesh = host_mesh(**options)
        with jax.set_mesh(mesh):
            rows = S(X.shape, X.dtype, sharding=jax.sharding.NamedSharding(mesh, P("data", None)))
            assert len(program(jax.jit(lambda x: jnp.tanh(x).sum(0)), rows).devices) == 8
            assert len(program(jax.jit(lambda x: x + 1, in_shardings=P("data", None)), X).devices) == 8
    mapped = jax.pmap(lambda x: jax.lax.psum(jnp.tanh(x).sum(), "i"), axis_name="i")
    assert len(program(mapped, S((8, 128, 256), jnp.float32)).devices) == 8


@pytest.mark.slow
def test_the_figures_of_a_mesh_inside_are_the_compiler_s() -> None:
    report = tw.audit(with_constraint(host_mesh()), X, W, tpu="v5e")
    said = tw.compile_for(with_constraint(host_mesh()), X, W, tpu="v5e").memory_analysis()
    assert (report.argument_bytes, report.output_bytes, report.reported_temporary_bytes) == (
        said.argument_size_in_bytes,
        said.output_size_in_bytes,
        said.temp_size_in_bytes,
    )
    assert report.partitions == 8
    # Replicated arguments, and an eighth of the result, whose 64 columns the compiler may keep on the lanes, padded.
    assert report.argument_bytes == 4096 * 256 * 4 + 256 * 128 * 4
    assert report.output_bytes in (4096 * 128 * 4 // 8, 4096 * 128 * 4 * 2 // 8)


def test_slices_of_several_hosts_and_several_slices() -> None:
    assert len(devices_of("v5e:4x8")) == 32
    assert program(f, X, W, topology="v5e:4x8").topology == "v5e:4x8"
    two = tw.mesh("v5e:2x2*2", ("data", "model"), shape=(4, 2))
    assert {device.slice_index for device in two.devices.flat} == {0, 1}
    rows = S(X.shape, X.dtype, sharding=jax.sharding.NamedSharding(two, P("data", None)))
    assert program(lambda x: jnp.tanh(x).sum(0), rows).topology == "v5e:2x2*2"
    with pytest.raises(ValueError, match="has 8 devices, which do not make a mesh"):
        tw.mesh("v5e:2x4", ("data", "model"), shape=(2, 2))


@pytest.mark.slow
def test_equinox(tpu_mesh: Any) -> None:
    eqx = pytest.importorskip("equinox")

    @eqx.filter_jit
    def step(model: Any, x: Any) -> Any:
        grads = eqx.filter_grad(lambda model: jnp.mean(jax.vmap(model)(x) ** 2))(model)
        return eqx.apply_updates(model, jax.tree.map(lambda each: -0.1 * each, grads))

    def make() -> Any:
        return eqx.nn.MLP(256, 128, 512, 1, key=jax.random.key(0))

    real = program(step, make(), jnp.ones(X.shape))
    assert program(step, eqx.filter_eval_shape(make), X).hash == real.hash
    with pytest.raises(tw.Error, match="not abstract ones with shardings"):
        program(step, make(), S(X.shape, X.dtype, sharding=jax.sharding.NamedSharding(tpu_mesh, P())))


@pytest.mark.parametrize("donate", ["none", "all", "all-except-first"])
def test_equinox_s_arguments_have_the_function_s_names(donate: str) -> None:
    eqx = pytest.importorskip("equinox")

    @eqx.filter_jit(donate=donate)
    def step(model: Any, *rows: Any, scale: float = 1.0, **more: Any) -> Any:
        return [jax.vmap(model)(each) * scale for each in rows], more

    model = eqx.filter_eval_shape(lambda: eqx.nn.MLP(256, 4, 8, 1, key=jax.random.key(0)))
    kwargs = {"scale": 2.0, "mask": {"a": S((3,), jnp.bool_)}}
    traced = TracedProgram.of(jax, step, (model, X, X), kwargs)
    layers = [f"model.layers[{number}].{name}" for number in range(2) for name in ("weight", "bias")]
    rest = ["rows[0]", "rows[1]", "mask['a']"]
    names = rest + layers if donate == "all-except-first" else layers + rest
    assert list(internals.argument_names(traced.parts.params)) == names


@pytest.mark.slow
def test_flax_nnx() -> None:
    nnx = pytest.importorskip("flax.nnx")

    def make() -> Any:
        return nnx.Linear(256, 128, rngs=nnx.Rngs(0))

    @nnx.jit
    def apply(model: Any, x: Any) -> Any:
        return jnp.tanh(model(x))

    real = program(apply, make(), jnp.ones(X.shape))
    assert program(apply, nnx.eval_shape(make), X).hash == real.hash
    assert program(make(), X).devices == (0,)


def test_lines_of_the_functions_file_are_quoted() -> None:
    """A report quotes the file that has the function, and no other."""
    causes = tw.audit(f, X, W, tpu="v5e").causes
    quotes = [cause.quote for cause in causes if cause.source is not None and cause.source.file == __file__]
    assert quotes
    assert set(quotes) == {'return (jnp.tanh if mode == "tanh" else jnp.sin)(x @ w) * scale'}
