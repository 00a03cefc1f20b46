"""VMEM of the bodies of Pallas kernels, as it is guessed."""

from __future__ import annotations

from typing import Any

import pytest

import tilewise as tw


def test_the_left_operand_of_a_product_is_guessed() -> None:
    """libtpu 0.0.51 takes 31,834,112 bytes for the first on a v6e, and refuses the second, which takes 33,952,891."""
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
    jnp = jax.numpy
    x = jax.ShapeDtypeStruct((8192, 8192), jnp.bfloat16)

    def product(bm: int, bn: int, bk: int) -> Any:
        def kernel(a: Any, b: Any, out: Any, sums: Any) -> None:
            sums[...] += jnp.dot(a[...], b[...], preferred_element_type=jnp.float32)
            out[...] = sums[...].astype(out.dtype)

        call = pl.pallas_call(
            kernel,
            grid=(8192 // bm, 8192 // bn, 8192 // bk),
            in_specs=[pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)), pl.BlockSpec((bk, bn), lambda i, j, k: (k, j))],
            out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
            out_shape=x,
            scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
        )
        return tw.kernel_budget(call, x, x, tpu="v6e")[0]

    found = [product(512, 2048, 2048), product(512, 1024, 4096)]
    assert [(each.vmem_bytes, each.guess_bytes) for each in found] == [(28 << 20, 2 << 20), (28 << 20, 4 << 20)]
    assert [each.verdict for each in found] == ["probably_fits", "probably_does_not_fit"]
    assert "body       2.00 MiB (2097152), a guess" in str(found[0])
    # Registers hold 256 KiB.
    assert [product(256, 256, size).guess_bytes for size in (512, 1024)] == [0, 512 << 10]


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


def test_values_of_unrolled_heads_are_guessed_as_one() -> None:
    """Eight softmaxes, of which the compiler may hold several at a time."""
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    x = jax.ShapeDtypeStruct((8, 512, 1024), jax.numpy.float32)

    def kernel(x: Any, y: Any) -> None:
        for head in range(8):
            scaled = jax.numpy.exp(x[head])
            y[head] = scaled / jax.numpy.sum(scaled, -1, keepdims=True)

    found = tw.kernel_budget(lambda x: pl.pallas_call(kernel, out_shape=x)(x), x, tpu="v6e")[0]
    assert found.guess_bytes == 512 * 1024 * 4
