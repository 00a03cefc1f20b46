"""Layouts from and to JAX, and trees of arrays. JAX is imported only to create its objects."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from tilewise._errors import ShapeError
from tilewise._modules import module
from tilewise._tilewise import ElementType, Layout, Shape, predict

if TYPE_CHECKING:
    from jax.experimental.layout import Layout as _JaxLayout

    from tilewise._types import HasLayout, HasMajorToMinor, JaxArray, Tpu

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
        return _layout(value, memory_space=0)
    if hasattr(value, "format"):
        dimensions = value.sharding.shard_shape(value.shape)
        return Shape.array(value.dtype, dimensions, _layout_of_format(value.format))
    if hasattr(value, "layout") and hasattr(value, "sharding"):
        return _layout_of_format(value)
    if hasattr(value, "dtype"):
        ElementType(value.dtype)  # Says why JAX's keys have no layout.
    message = f"from_jax takes a jax.Array, a Format or a Layout, not {type(value).__name__}"
    raise TypeError(message)


def _layout_of_format(form: Any) -> Layout:
    if not hasattr(form.layout, "major_to_minor"):
        raise ShapeError("the layout is left to the compiler", kind="missing_layout")
    on_host = form.sharding.memory_kind == "pinned_host"
    return _layout(form.layout, memory_space=_HOST if on_host else 0)


def _layout(layout: Any, *, memory_space: int) -> Layout:
    return Layout(
        tuple(reversed(layout.major_to_minor)),
        # XLA's `*` is a negative size.
        tiles=[[size if size >= 0 else None for size in tile] for tile in layout.tiling or ()],
        element_size_in_bits=layout.sub_byte_element_size_in_bits or None,
        memory_space=memory_space,
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
    order = tuple(reversed(layout.minor_to_major))
    if not tiles:
        return JaxLayout(major_to_minor=order)
    combined = -(2**63)
    return JaxLayout(
        major_to_minor=order,
        tiling=tuple(tuple(combined if size is None else size for size in tile) for tile in layout.tiles),
        sub_byte_element_size_in_bits=layout.element_size_in_bits or 0,
    )


@dataclass(frozen=True)
class TreeLeaf:
    """An array of a tree, as it lies on a TPU. Sizes are in bytes.

    Attributes:
        path: where it is in the tree, such as ``"layer/kernel"``: as the library names it.
        shape: its `Shape` with the layout that the TPU picks; of a sharded array one device's shard.
        sharding: how it is divided, as JAX prints it; ``None`` for an array without sharding.

    Examples:
        >>> import numpy as np
        >>> predict_tree({"w": np.zeros((400000, 12), np.float32)}, tpu="v5e")[0].path
        'w'
    """

    path: str
    shape: Shape
    sharding: str | None

    @property
    def element_type(self) -> ElementType:
        """The element type."""
        return self.shape.element_type

    @property
    def logical_bytes(self) -> int:
        """Bytes of data."""
        return self.shape.logical_bytes

    @property
    def physical_bytes(self) -> int:
        """Bytes taken."""
        return self.shape.physical_bytes

    @property
    def padding_bytes(self) -> int:
        """Bytes of padding."""
        return self.shape.padding_bytes


@dataclass(frozen=True)
class TreePrediction:
    """The arrays of a tree as they lie on a TPU, a row each, and their totals in bytes.

    Returned by `predict_tree`. A sequence of `TreeLeaf`; ``str`` is a table.

    Examples:
        >>> import numpy as np
        >>> tree = predict_tree([np.zeros((8, 128), np.float32)] * 2, tpu="v5e")
        >>> len(tree), tree.physical_bytes, tree.padding_bytes
        (2, 8192, 0)
    """

    leaves: tuple[TreeLeaf, ...]

    @property
    def logical_bytes(self) -> int:
        """Bytes of data of all arrays."""
        return sum(leaf.logical_bytes for leaf in self.leaves)

    @property
    def physical_bytes(self) -> int:
        """Bytes that all arrays take."""
        return sum(leaf.physical_bytes for leaf in self.leaves)

    @property
    def padding_bytes(self) -> int:
        """Padding of all arrays, in bytes."""
        return sum(leaf.padding_bytes for leaf in self.leaves)

    def __len__(self) -> int:
        return len(self.leaves)

    def __iter__(self) -> Iterator[TreeLeaf]:
        return iter(self.leaves)

    def __getitem__(self, number: int) -> TreeLeaf:
        return self.leaves[number]

    def to_dict(self) -> dict[str, list[Any]]:
        """Every row, by column.

        Examples:
            >>> import numpy as np
            >>> predict_tree([np.zeros((400000, 12), np.float32)], tpu="v5e").to_dict()["padding_bytes"]
            [6400000]
        """
        return {
            "path": [leaf.path for leaf in self],
            "shape": [str(leaf.shape) for leaf in self],
            "sharding": [leaf.sharding for leaf in self],
            "logical_bytes": [leaf.logical_bytes for leaf in self],
            "physical_bytes": [leaf.physical_bytes for leaf in self],
            "padding_bytes": [leaf.padding_bytes for leaf in self],
        }

    def to_pandas(self) -> Any:
        """Every row, as a ``pandas.DataFrame``.

        Raises:
            ImportError: pandas is not installed.

        Examples:
            >>> import numpy as np
            >>> predict_tree([np.zeros((8, 128), np.float32)], tpu="v5e").to_pandas()["shape"][0]
            'f32[8,128]{1,0:T(8,128)}'
        """
        return module("pandas").DataFrame(self.to_dict())

    def __str__(self) -> str:
        rows = [("path", "shape", "bytes", "padding")]
        rows += [(leaf.path, str(leaf.shape), str(leaf.physical_bytes), str(leaf.padding_bytes)) for leaf in self]
        rows.append(("total", f"{len(self)} arrays", str(self.physical_bytes), str(self.padding_bytes)))
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        return "\n".join(
            f"{path:<{widths[0]}}  {shape:<{widths[1]}}  {taken:>{widths[2]}}  {padding:>{widths[3]}}"
            for path, shape, taken, padding in rows
        )


def predict_tree(tree: Any, /, *, tpu: Tpu, per_device: bool = True) -> TreePrediction:
    """Predict how the arrays of a tree lie on a TPU: parameters or an optimizer's state, of any library.

    Args:
        tree: a pytree of arrays, real or abstract (``jax.eval_shape``). Leaves that are no arrays are passed over; keys
            of random numbers are the integers that they consist of.
        tpu: the generation, under any of its names (``"v5e"``).
        per_device: whether a sharded array counts as one device's shard, or as a whole.

    Raises:
        ImportError: JAX is not installed.
        ParseError: ``tpu`` names no TPU generation.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> abstract = jax.ShapeDtypeStruct
        >>> params = {"w": abstract((400000, 12), jnp.bfloat16), "b": abstract((12,), jnp.float32)}
        >>> print(predict_tree(params, tpu="v5e"))
        path ...
        b      f32[12]{0:T(128)} ...
        w      bf16[400000,12]{0,1:T(8,128)(2,1)} ...
        total  2 arrays ...
    """
    jax = module("jax")
    leaves: list[TreeLeaf] = []
    for path, leaf in _leaves(jax, tree):
        if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            continue
        array = leaf
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            array = jax.eval_shape(jax.random.key_data, leaf)
        sharding = getattr(array, "sharding", None)
        if sharding is not None and not per_device:
            array = jax.ShapeDtypeStruct(array.shape, array.dtype)
        shape = predict(array, tpu=tpu)
        leaves.append(TreeLeaf(path, shape, None if sharding is None else str(sharding)))
    return TreePrediction(tuple(leaves))


def _leaves(jax: Any, tree: Any) -> Iterator[tuple[str, Any]]:
    """The leaves and their paths, without Flax's containers, which users don't see."""
    known = {"flax.nnx": "Variable", "flax.core.meta": "AxisMetadata"}
    boxes = tuple(getattr(sys.modules[name], box) for name, box in known.items() if name in sys.modules)
    flatten = jax.tree_util.tree_flatten_with_path

    def is_box(node: Any) -> bool:
        return isinstance(node, boxes)

    for path, node in flatten(tree, is_leaf=is_box)[0]:
        for inner, leaf in flatten(node)[0]:
            keys = (*path, *inner[1:])
            yield "/".join(jax.tree_util.keystr((key,), simple=True) for key in keys), leaf
