"""Private parts of JAX that the package uses, in the JAX that is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewise as tw
from tilewise._jax import internals
from tilewise._jax.internals import Scan, Traced
from tilewise._jax.lowering import TracedProgram
from tilewise._jax.topologies import devices_of

jax = pytest.importorskip("jax")
jnp = jax.numpy
core = pytest.importorskip("jax.extend.core")

PartitionSpec = jax.sharding.PartitionSpec
X = jax.ShapeDtypeStruct((8, 128), jnp.float32)


def test_the_versions_that_are_known() -> None:
    # Of 0.6.0, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1 all of it was run; another JAX needs that first.
    assert (internals.OLDEST, internals.NEWEST) == ((0, 6), (0, 12))
    assert internals.OLDEST <= tuple(jax.__version_info__[:2]) <= internals.NEWEST


def test_a_traced_program_is_lowered_from_its_parts() -> None:
    def f(x: Any, y: Any) -> Any:
        return jnp.tanh(x) @ y["w"]

    jitted = jax.jit(f)
    args = (X, {"w": jnp.ones((128, 64))})
    traced = jitted.trace(*args)
    parts = Traced.of(traced)
    assert len(parts.arguments) == 2
    assert parts.lowered(traced).as_text() == traced.lower().as_text()
    assert internals.argument_names(parts.params) == ("x", "y['w']")
    named = Traced(parts.arguments, internals.with_argument_names(parts.params, ("a", "b")))
    assert internals.argument_names(named.params) == ("a", "b")
    assert all(map(internals.is_unspecified, parts.params["in_shardings"]))
    # The traced program itself is as it was.
    assert internals.argument_names(Traced.of(traced).params) == ("x", "y['w']")


def test_meshes_are_replaced_inside_nested_programs() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("d",))
    other = jax.sharding.Mesh(np.array(jax.devices()[4:8]), ("d",))

    @jax.jit
    def inner(x: Any) -> Any:
        return jax.lax.with_sharding_constraint(x, jax.sharding.NamedSharding(mesh, PartitionSpec("d")))

    def f(x: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, x: inner(x) + 1, x)

    class There:
        default = jax.sharding.NamedSharding(other, PartitionSpec())

        def mesh(self, _: Any) -> Any:
            return other

        def sharding(self, sharding: Any) -> Any:
            return jax.sharding.NamedSharding(other, sharding.spec)

    traced = TracedProgram(jax, jax.jit(f).trace(X))
    assert {id(each) for each in traced.meshes()} == {id(mesh)}
    compiled = traced.lower(There()).compile()
    (result,) = jax.tree.leaves(compiled.output_shardings)
    assert set(result.device_set) == set(other.devices.flat)


def test_loops_are_taken_apart_and_put_together() -> None:
    def f(w: Any, x: Any, rows: Any) -> Any:
        return jax.lax.scan(lambda carry, row: (carry + row @ w, (carry.sum(), row)), x, rows)

    args = (np.ones((4, 3), np.float32), np.zeros(3, np.float32), np.arange(20, dtype=np.float32).reshape(5, 4))
    closed = jax.make_jaxpr(f)(*args)
    (number,) = [i for i, each in enumerate(closed.jaxpr.eqns) if each.primitive.name == "scan"]
    equation = closed.jaxpr.eqns[number]
    loop = Scan.of(equation)
    assert (loop.consts, loop.carry, len(loop.body.in_avals)) == (1, 1, 3)

    doubled = jax.make_jaxpr(lambda *values: [2 * each for each in core.jaxpr_as_fun(loop.body)(*values)])
    twice = Scan(loop.consts, loop.carry, doubled(*loop.body.in_avals))
    new = twice.put_into(equation, equation.invars, equation.outvars)
    assert Scan.of(new) == twice
    equations = [new if i == number else each for i, each in enumerate(closed.jaxpr.eqns)]
    found = core.jaxpr_as_fun(internals.changed(closed, closed.consts, eqns=equations))(*args)
    carry = args[1]
    for row in args[2]:
        carry = 2 * (carry + row @ args[0])
    np.testing.assert_allclose(found[0], carry)


def test_what_the_compiler_is_handed() -> None:
    pytest.importorskip("libtpu")
    device = devices_of("v5e:2x2")[0]
    x = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=jax.sharding.SingleDeviceSharding(device))
    lowered = jax.jit(lambda x: x + 1).lower(x)
    handed = internals.handed(lowered, {"xla_tilewise_unused": 1})
    assert handed is not None
    computation, given, devices, calls_back = handed
    assert (calls_back, devices) == (False, [device])
    assert not given.env_option_overrides
    content, options = internals.module_bytes(computation), given.SerializeAsString()
    compiled = internals.compiled(content, options, {}, devices)()
    assert compiled.get_compiled_memory_stats().argument_size_in_bytes == 8 * 128 * 4
    assert internals.platforms_of(lowered) in ((), ("tpu",))


def test_an_unknown_jax_ends_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "__version__", "0.99.0")
    closed = jax.make_jaxpr(lambda x: jax.lax.scan(lambda h, _: (h, h), x, None, 3))(1.0)
    (loop,) = (each for each in closed.jaxpr.eqns if each.primitive.name == "scan")
    other = loop.replace(params={"body": loop.params["jaxpr"]})
    for call in (
        lambda: Traced.of(object()),
        lambda: Scan.of(other),
        lambda: internals.argument_names({}),
        lambda: internals.placed(object(), None),
        lambda: TracedProgram(jax, object()),
    ):
        with pytest.raises(tw.Error, match=r"^this tilewise knows JAX 0\.6 to 0\.12, and JAX 0\.99\.0 keeps") as raised:
            call()
        assert raised.value.kind == "unknown_jax"
