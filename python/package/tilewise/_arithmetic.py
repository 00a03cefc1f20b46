"""Primitives of JAX that compute each element of their result from one element of each operand."""

from __future__ import annotations

ARITHMETIC = frozenset([
    "abs", "add", "add_any", "and", "atan2", "ceil", "clamp", "convert_element_type", "copy", "cos", "div", "eq",
    "erf", "exp", "exp2", "expm1", "floor", "ge", "gt", "integer_pow", "is_finite", "le", "log", "log1p",
    "logistic", "lt", "max", "min", "mul", "ne", "neg", "not", "or", "pow", "rem", "round", "rsqrt", "select_n",
    "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sqrt", "square", "sub", "tan",
    "tanh", "xor",
])  # fmt: skip
"""Those that the TPU's compiler was seen to compute block by block, where a kernel lets it (`allow_input_fusion`)."""
