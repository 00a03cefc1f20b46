"""Trees of arrays, as they lie on a TPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tilewise._base.limits import in_columns
from tilewise._base.modules import module
from tilewise._base.results import Listed, Shown
from tilewise._base.types import Tpu
from tilewise._tilewise import ElementType, Shape, predict


@dataclass(frozen=True)
class TreeLeaf:
    """An array of a tree, as it lies on a TPU. Sizes are in bytes.

    Attributes:
        path: where it is in the tree, such as ``"layer/kernel"``: as the library names it.
        shape: its `Shape` with the layout that the TPU picks; of a sharded array one device's shard.
        sharding: how it is divided, as JAX prints it; ``None`` for an array without sharding.
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
    def bytes(self) -> int:
        """Bytes taken: `physical_bytes`, by the name that rows of all tables have."""
        return self.shape.physical_bytes

    @property
    def padding_bytes(self) -> int:
        """Bytes of padding."""
        return self.shape.padding_bytes


@dataclass(frozen=True)
class TreePrediction(Listed[TreeLeaf], Shown):
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

    def _rows(self) -> list[dict[str, Any]]:
        sizes = ("bytes", "logical_bytes", "physical_bytes", "padding_bytes")
        sized = ((leaf, {size: getattr(leaf, size) for size in sizes}) for leaf in self)
        return [{**vars(leaf), "shape": str(leaf.shape), **each} for leaf, each in sized]

    def table(self, *, depth: int | None = None, sort: Literal["path", "bytes", "padding"] = "path") -> str:
        """The arrays as text, or their modules.

        Args:
            depth: how many parts of their paths tell modules apart, each with the sums of its arrays; ``None`` for a
                row for each array.
            sort: by path, or the largest first.

        Examples:
            >>> import numpy as np
            >>> layer = {"w": np.zeros((8, 128), np.float32), "b": np.zeros(128, np.float32)}
            >>> print(predict_tree({"first": layer, "second": layer}, tpu="v5e").table(depth=1))
            module  arrays    bytes  padding
            first   2 arrays   4608        0
            second  2 arrays   4608        0
            total   4 arrays   9216        0
        """

        def summed(name: str, leaves: Sequence[TreeLeaf], words: str | None = None) -> tuple[str, str, int, int]:
            count = "1 array" if len(leaves) == 1 else f"{len(leaves)} arrays"
            sizes = sum(each.bytes for each in leaves), sum(each.padding_bytes for each in leaves)
            return name, words or count, *sizes

        rows = [summed(leaf.path, [leaf], str(leaf.shape)) for leaf in self]
        if depth is not None:
            modules: dict[str, list[TreeLeaf]] = {}
            for leaf in self:
                modules.setdefault("/".join(leaf.path.split("/")[:depth]), []).append(leaf)
            rows = [summed(name, leaves) for name, leaves in modules.items()]
        if sort != "path":
            rows.sort(key=lambda row: -(row[2] if sort == "bytes" else row[3]))
        head = ("path", "shape") if depth is None else ("module", "arrays")
        rows.append(summed("total", self.leaves))
        return in_columns([(*head, "bytes", "padding"), *(tuple(map(str, row)) for row in rows)], numbers=2)

    def __str__(self) -> str:
        return self.table()


def predict_tree(tree: Any, /, *, tpu: Tpu, per_device: bool = True) -> TreePrediction:
    """Predict how the arrays of a tree lie on a TPU: parameters or an optimizer's state, of any library.

    Args:
        tree: a pytree of arrays, real or abstract (``jax.eval_shape``). Leaves that aren't arrays are skipped; keys
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
