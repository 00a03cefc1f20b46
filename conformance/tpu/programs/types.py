"""Element types: integers and floats of few bits, complex numbers, 64-bit numbers."""

import jax
import jax.numpy as jnp
from jax import lax

from .draw import Draw, Program, program


@program()
def int8_matmul(draw: Draw) -> Program:
    m, k, n = (draw.size(8, 2000) for _ in range(3))
    types = draw.one((jnp.int8, jnp.int8), (jnp.uint8, jnp.uint8), (jnp.int8, jnp.int8))

    def function(x, w, scale):
        product = lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
        scaled = product.astype(jnp.float32) * scale
        return jnp.clip(jnp.round(scaled), -128, 127).astype(types[0]), scaled.astype(jnp.bfloat16)

    return Program(function, (draw.array((m, k), types[0]), draw.array((k, n), types[1]), draw.array((n,))))


@program()
def int4_weights(draw: Draw) -> Program:
    m, k, n = draw.size(8, 400), draw.even(64, 1024, 64), draw.even(128, 1024, 128)

    def function(x, w, scale):
        return x @ (w.astype(jnp.bfloat16) * scale), w[: k // 2]

    weights = draw.array((k, n), draw.one(jnp.int4, jnp.uint4))
    return Program(function, (draw.array((m, k), jnp.bfloat16), weights, draw.array((n,), jnp.bfloat16)))


@program("v5e", "v5p", "v6e", "v7x")
def int2_weights(draw: Draw) -> Program:
    k, n = draw.even(128, 1024, 128), draw.even(128, 1024, 128)

    def function(x, w):
        return x @ w.astype(jnp.bfloat16), (x > 0).astype(jnp.int2)

    return Program(function, (draw.array((16, k), jnp.bfloat16), draw.array((k, n), jnp.int2)))


@program("v5e", "v5p", "v6e", "v7x")
def float8(draw: Draw) -> Program:
    m, k, n = (draw.even(32, 1024, 32) for _ in range(3))
    dtype = draw.one(jnp.float8_e4m3fn, jnp.float8_e5m2)

    def function(x, w):
        narrow = (x / jnp.max(jnp.abs(x))).astype(dtype)
        return lax.dot_general(narrow, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32), narrow

    return Program(function, (draw.array((m, k), jnp.bfloat16), draw.array((k, n), dtype)))


@program("v7x")
def float4(draw: Draw) -> Program:
    m, k, n = (draw.even(128, 512, 128) for _ in range(3))

    def function(x, w):
        return x @ w.astype(jnp.bfloat16), x.astype(jnp.float4_e2m1fn)

    return Program(function, (draw.array((m, k), jnp.bfloat16), draw.array((k, n), jnp.float4_e2m1fn)))


@program()
def complex_numbers(draw: Draw) -> Program:
    m, n = draw.size(2, 300), draw.size(2, 300)

    def function(x, y):
        return jnp.einsum("ij,kj->ik", x, y.conj()), jnp.abs(x) + y.real

    return Program(function, (draw.array((m, n), jnp.complex64), draw.array((m, n), jnp.complex64)))


@program()
def wide_numbers(draw: Draw) -> Program:
    """64-bit integers, whatever jax's own default."""
    n = draw.size(2, 3000)

    def function(x, y):
        with jax.enable_x64(True):
            wide = x.astype(jnp.int64) * 1_000_003 + y.astype(jnp.int64)
            return jnp.cumsum(wide), (wide % 97).astype(jnp.int32), x.astype(jnp.float64).sum()

    return Program(function, (draw.array((n,), jnp.int32), draw.array((n,), jnp.int32)))


@program()
def short_integers(draw: Draw) -> Program:
    shape = draw.size(1, 500), draw.size(1, 500)
    first, second = draw.one(jnp.int8, jnp.uint8, jnp.int16), draw.one(jnp.uint16, jnp.int16, jnp.bool_)

    def function(x, y):
        both = x.astype(jnp.int32) + y.astype(jnp.int32)
        return both.astype(first), (both > 3) & (y.astype(jnp.bool_)), jnp.packbits(both > 0, axis=1), x.sum(axis=1)

    return Program(function, (draw.array(shape, first), draw.array(shape, second)))
