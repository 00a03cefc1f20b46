"""Layouts from and to JAX, which is imported only to create its objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from tilewise._base.errors import ShapeError
from tilewise._tilewise import ElementType, Layout, Shape

if TYPE_CHECKING:
    from jax.experimental.layout import Layout as _JaxLayout

    from tilewise._base.types import HasLayout, HasMajorToMinor, JaxArray

_HOST = 5


@overload
def from_jax(value: JaxArray, /) -> Shape: ...
@overload
def from_jax(value: HasLayout | HasMajorToMinor, /) -> Layout: ...
def from_jax(value: Any, /) -> Shape | Layout:
    """The layout of a JAX object.

    Args:
        value: a ``jax.Array``, a ``Format`` such as ``array.format``, or a ``Layout`` of ``jax.experimental.layout``.

    Returns:
        For an array, its `Shape` on one device: for a sharded array that of a shard. For any other object, its
        `Layout`.

    Raises:
        ShapeError: the layout is left to the compiler.
        TypeError: any other object.

    Examples:
        >>> import jax.numpy as jnp
        >>> from_jax(jnp.ones((3, 5)))
        Shape('f32[3,5]{1,0}')
        >>> from_jax(jnp.ones((3, 5)).format)
        Layout((1, 0))
    """
    if hasattr(value, "major_to_minor"):
        return _layout(value)
    if hasattr(value, "format") and hasattr(value, "sharding"):
        layout = _layout(value.format.layout, value.format.sharding)
        return Shape.array(value.dtype, value.sharding.shard_shape(value.shape), layout)
    if hasattr(value, "layout") and hasattr(value, "sharding"):
        return _layout(value.layout, value.sharding)
    if hasattr(value, "dtype"):
        ElementType(value.dtype)  # Says why JAX's keys have no layout.
    raise TypeError(f"from_jax takes a jax.Array, a Format or a Layout, not {type(value).__name__}")


def _layout(layout: Any, sharding: Any = None) -> Layout:
    if not hasattr(layout, "major_to_minor"):
        raise ShapeError("the layout is left to the compiler", kind="missing_layout")
    return Layout(
        tuple(reversed(layout.major_to_minor)),
        # XLA's `*` is a negative size.
        tiles=[[size if size >= 0 else None for size in tile] for tile in layout.tiling or ()],
        element_size_in_bits=layout.sub_byte_element_size_in_bits or None,
        memory_space=_HOST if getattr(sharding, "memory_kind", None) == "pinned_host" else 0,
    )


def to_jax(layout: Layout | Shape, /, *, tiles: bool = False) -> _JaxLayout:
    """The layout as a JAX object, for ``with_layout_constraint``, ``Format``, and the shardings of ``jax.jit``.

    Args:
        layout: a `Layout`, or a `Shape` that has one.
        tiles: whether to include the tiles; most programs fix the order and leave the tiles to the compiler.

    Raises:
        ImportError: JAX is not installed.

    Examples:
        >>> to_jax(Shape("f32[400000,12]{0,1:T(8,128)}")).major_to_minor
        (1, 0)
    """
    from jax.experimental.layout import Layout as JaxLayout

    if isinstance(layout, Shape):
        layout = layout.layout
    if not isinstance(layout, Layout):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"to_jax takes a Layout or a Shape that has one, not {type(layout).__name__}")
    order = tuple(reversed(layout.minor_to_major))
    if not tiles:
        return JaxLayout(major_to_minor=order)
    combined = -(2**63)
    return JaxLayout(
        major_to_minor=order,
        tiling=tuple(tuple(combined if size is None else size for size in tile) for tile in layout.tiles),
        sub_byte_element_size_in_bits=layout.element_size_in_bits or 0,
    )
