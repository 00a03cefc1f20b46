"""VMEM of the bodies of Pallas kernels: the estimate, and the upper bound."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import rows

import tilewise as tw
from tilewise._body import Body
from tilewise._kernel_text import kernels_of


def test_nine_bodies_of_ten_take_no_more_than_is_said() -> None:
    """Bounds against the compiler, for generated bodies and for those of libraries (`conformance/tpu/bodies.py`)."""
    below: list[bool] = []
    for row in rows("tpu_bodies.csv"):
        body = Body(*(int(row[name]) for name in Body.__dataclass_fields__))
        below.append(int(row["used_bytes"]) <= int(row["declared_bytes"]) + body.most_bytes)
    assert len(below) > 300
    assert sum(below) >= 0.9 * len(below)


def test_what_is_reduced_and_not_read_again_is_not_guessed() -> None:
    """libtpu 0.0.52 takes nothing for the body of the first on a v6e, and 1,888,256 bytes for that of the second."""
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    jnp = jax.numpy
    x = jax.ShapeDtypeStruct((2048, 2048), jnp.float32)

    def guess(kernel: Any) -> int | None:
        block = pl.BlockSpec((256, 2048), lambda i: (i, 0))
        call = pl.pallas_call(kernel, grid=8, in_specs=[block], out_specs=block, out_shape=x)
        return tw.kernel_budget(call, x, tpu="v6e")[0].guess_bytes

    def norm(x: Any, y: Any) -> None:
        square = x[...] * x[...]
        y[...] = x[...] * jax.lax.rsqrt(jnp.mean(square, -1, keepdims=True))

    def softmax(x: Any, y: Any) -> None:
        power = jnp.exp(x[...])
        y[...] = power / jnp.sum(power, -1, keepdims=True)

    assert guess(norm) == 0
    assert guess(softmax) == 256 * 2048 * 4


def test_unrolled_loops_come_together_where_the_grid_decides_branches() -> None:
    """As of the recorded bodies: batches add up where the grid has one step along keys, and share where it has two."""
    taken = {row["kernel"]: int(row["used_bytes"]) - int(row["declared_bytes"]) for row in rows("tpu_bodies.csv")}
    assert taken["unrolled 4x64x20x128 of 1"] > 2 * taken["unrolled 4x64x20x256 of 2"]
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
    jnp = jax.numpy

    def most(parts: int) -> int:
        def kernel(q: Any, keys: Any, out: Any, sums: Any) -> None:
            for batch in range(4):

                @pl.when(pl.program_id(0) == 0)
                def _(batch: int = batch) -> None:
                    sums[batch] = jnp.zeros((64, 128), jnp.float32)

                def step(at: Any, _: None, batch: int = batch) -> None:
                    here = keys[batch, pl.ds(at * 128, 128)]
                    scores = jnp.exp(jax.lax.dot_general(q[batch], here, (((1,), (1,)), ((), ()))))
                    scores = scores / jnp.sum(scores, -1, keepdims=True)
                    sums[batch] += jnp.dot(scores, here)

                jax.lax.fori_loop(0, 16, step, None, unroll=True)
            out[...] = sums[...]

        whole = pl.BlockSpec((4, 64, 128), lambda i: (0, 0, 0))
        call = pl.pallas_call(
            kernel,
            grid=parts,
            in_specs=[whole, pl.BlockSpec((4, 2048, 128), lambda i: (0, i, 0))],
            out_specs=whole,
            out_shape=jax.ShapeDtypeStruct((4, 64, 128), jnp.float32),
            scratch_shapes=[pltpu.VMEM((4, 64, 128), jnp.float32)],
        )
        x = jax.ShapeDtypeStruct((4, 64, 128), jnp.float32)
        keys = jax.ShapeDtypeStruct((4, 2048 * parts, 128), jnp.float32)
        return tw.kernel_budget(call, x, keys, tpu="v6e")[0].body_most_bytes or 0

    assert most(1) > 3 * most(2)


def test_the_compiler_is_to_be_asked_in_doubt() -> None:
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
    x = jax.ShapeDtypeStruct((8, 1024, 2048), jax.numpy.float32)

    def heads(limit: int) -> Any:
        def kernel(x: Any, y: Any) -> None:
            for head in range(8):
                scaled = jax.numpy.exp(x[head])
                y[head] = scaled / jax.numpy.sum(scaled, -1, keepdims=True)

        block = pl.BlockSpec((8, 64, 2048), lambda i: (0, i, 0))
        params = (getattr(pltpu, "CompilerParams", None) or pltpu.TPUCompilerParams)(vmem_limit_bytes=limit)
        call = pl.pallas_call(kernel, grid=16, in_specs=[block], out_specs=block, out_shape=x, compiler_params=params)
        return tw.kernel_budget(call, x, tpu="v5e")[0]

    declared, guess = 4 * 8 * 64 * 2048 * 4, 64 * 2048 * 4
    found = {more: heads(declared + (more << 20)) for more in (0, 1, 4)}
    assert (found[1].vmem_bytes, found[1].guess_bytes) == (declared, guess)
    # Eight values of a kind may be spilled, or one.
    assert guess < found[1].body_most_bytes < 8 * guess
    assert [each.verdict for each in found.values()] == ["probably_does_not_fit", "ask", "probably_fits"]
    assert "for the body, in nine kernels of ten, with which it doesn't fit" in str(found[1])


def test_values_of_unrolled_heads_may_come_together() -> None:
    """Eight softmaxes, each of which holds its exponentials from one step to the next."""
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    x = jax.ShapeDtypeStruct((8, 512, 1024), jax.numpy.float32)

    def kernel(x: Any, y: Any) -> None:
        for head in range(8):
            scaled = jax.numpy.exp(x[head])
            y[head] = scaled / jax.numpy.sum(scaled, -1, keepdims=True)

    def call(x: Any) -> Any:
        return pl.pallas_call(kernel, out_shape=x)(x)

    (found,), _ = kernels_of(jax.make_jaxpr(call)(x).jaxpr, "v6e")
    one = 512 * 1024 * 4
    assert one <= found.body.in_order_bytes < 2 * one
    assert 8 * one <= found.body.together_bytes < 9 * one
