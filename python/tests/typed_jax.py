"""A user's program with JAX's own types. Only pyright reads it: for mypy, JAX is without types."""

from __future__ import annotations

import jax
import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import tilewise as tw


def layouts(array: jax.Array, abstract: jax.ShapeDtypeStruct) -> None:
    assert_type(tw.from_jax(array), tw.Shape)
    assert_type(tw.from_jax(tw.to_jax(tw.Layout((1, 0)))), tw.Layout)
    assert_type(tw.predict(array, tpu="v5e"), tw.Shape)
    assert_type(tw.predict(abstract, tpu="v5e"), tw.Shape)
    assert_type(tw.Shape.of(array), tw.Shape)
    assert_type(tw.tile(array, "{1,0}"), npt.NDArray[np.uint8])
