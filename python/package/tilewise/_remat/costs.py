"""Times of a traced step's equations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tilewise import _tilewise
from tilewise._jax.equations import BODIES, bytes_of
from tilewise._jax.internals import Scan
from tilewise._jax.jaxprs import is_literal, opened

NEVER = math.inf

PRODUCTS = ("dot_general", "conv_general_dilated")

_FREE = frozenset(
    {"broadcast_in_dim", "reshape", "iota", "squeeze", "convert_element_type", "transpose", "name", "copy", "slice"}
    | {"sharding_constraint", "expand_dims", "stop_gradient", "bitcast_convert_type", "rev", "pvary"}
)
"""Primitives that the compiler fuses into their readers."""
_NEVER = frozenset(("while", "infeed", "outfeed", "rng_uniform", "optimization_barrier"))
"""Primitives that aren't repeated: their time isn't known, or they must stay as they are."""
_SCATTERED = ("gather", "scatter", "dynamic_update_slice", "sort", "cumsum", "cumlogsumexp", "cummax", "cumprod")
_SCATTERED_PASSES = 4
"""The factor by which unordered access to memory is slower than its rate; a guess."""
_COLLECTIVES = ("psum", "all_gather", "all_to_all", "reduce_scatter", "ppermute", "psum_invariant", "pmax")


@dataclass(frozen=True)
class Costs:
    """Times of equations on a TPU, by its rates per second."""

    flops: float
    hbm_bytes: float
    link_bytes: float

    @classmethod
    def of(cls, tpu: str) -> Costs:
        return cls(*_tilewise.rates(tpu))

    def seconds(self, equation: Any) -> float:
        """Seconds of repeating an equation; infinite where it must not be repeated."""
        name, params = equation.primitive.name, equation.params
        if equation.effects or name in _NEVER:
            return NEVER
        if is_fused(equation):
            return 0.0
        reads = sum(bytes_of(atom) for atom in equation.invars if not is_literal(atom))
        makes = sum(map(bytes_of, equation.outvars))
        moved = (reads + makes) / self.hbm_bytes
        if name == "dot_general":
            (contracted, _), _ = params["dimension_numbers"]
            depth = math.prod(equation.invars[0].aval.shape[at] for at in contracted)
            return self._product(equation, depth, moved)
        if name == "conv_general_dilated":
            kernel, numbers = equation.invars[1].aval.shape, params["dimension_numbers"]
            depth = math.prod(kernel) // kernel[numbers.rhs_spec[0]]
            return self._product(equation, depth, moved)
        if name == "scan":
            return int(params["length"]) * self.all_of(Scan.of(equation).body)
        if name == "cond":
            return max(self.all_of(branch) for branch in params["branches"])
        if name == "pallas_call":
            noted = params.get("cost_estimate")
            return max(getattr(noted, "flops", 0) / self.flops, moved)
        if name in BODIES:
            return self.all_of(params[BODIES[name]])
        if name.startswith(_COLLECTIVES):
            return makes / self.link_bytes
        if name.startswith(_SCATTERED):
            return _SCATTERED_PASSES * makes / self.hbm_bytes
        if name in ("custom_call", "ffi_call", "pure_callback", "io_callback", "custom_linear_solve"):
            return NEVER
        if name.startswith(("reduce", "arg")):
            return reads / self.hbm_bytes / 2
        # Most of its operands are made, and its results read, in one fusion.
        return makes / self.hbm_bytes / 4

    def _product(self, equation: Any, depth: int, moved: float) -> float:
        """Seconds of a product, which is read by the operations after it in its own fusion, or made in theirs."""
        flops = 2 * math.prod(equation.outvars[0].aval.shape) * depth
        return float(max(flops / self.flops, moved / 2))

    def all_of(self, program: Any) -> float:
        return sum(map(self.seconds, opened(program).eqns))


def is_fused(equation: Any) -> bool:
    """Whether the compiler fuses it into whatever reads it, so that it costs nothing."""
    return equation.primitive.name in _FREE
