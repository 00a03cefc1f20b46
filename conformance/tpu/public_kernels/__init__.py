"""Kernels of public libraries, each with arguments of sizes that are used: those of JAX, and of tpu-inference, sglang-jax, tokamax
and maxtext where their checkouts are on the path (`PYTHONPATH=tpu-inference:sglang-jax/python:tokamax:maxtext/src`).

Nothing of them is kept here: only how each is called. What they import to serve or to train, and no kernel needs, is stood in for.
"""

from . import attention, others, products, serving, stand_ins  # noqa: F401 - each adds its own
from .registry import PUBLIC, Public, array, bf16, f8, f32, i8, ints

__all__ = ["PUBLIC", "Public", "array", "bf16", "f8", "f32", "i8", "ints"]
