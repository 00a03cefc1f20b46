"""Trees of arrays, and arrays that are sharded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewise as tw

jax = pytest.importorskip("jax")
jnp = jax.numpy

S = jax.ShapeDtypeStruct


class State(NamedTuple):
    """As Optax's states are."""

    count: Any
    mu: Any


def sharded(*bounds: int, by: tuple[str | None, ...]) -> Any:
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    mesh = AbstractMesh((4, 2), ("x", "y"))
    return S(bounds, jnp.float32, sharding=NamedSharding(mesh, PartitionSpec(*by)))


def test_a_row_for_each_array() -> None:
    params = {"dense": {"kernel": S((400000, 12), jnp.bfloat16), "bias": np.zeros(12, np.float32)}, "name": "mlp"}
    tree = tw.predict_tree({"params": params, "opt": State(jnp.int32(0), None), "f": jnp.tanh}, tpu="v5e")
    assert [leaf.path for leaf in tree] == ["opt/count", "params/dense/bias", "params/dense/kernel"]
    kernel = tree[2]
    assert kernel.shape == tw.predict("bf16[400000,12]", tpu="v5e")
    assert tree.physical_bytes == sum(leaf.physical_bytes for leaf in tree)
    assert tree.padding_bytes == tree.physical_bytes - tree.logical_bytes
    assert str(tree).splitlines()[-1].split()[:3] == ["total", "3", "arrays"]
    assert tree.to_pandas()["physical_bytes"].sum() == tree.physical_bytes
    assert len(tw.predict_tree({}, tpu="v5e")) == 0


def test_one_device_s_shard_counts() -> None:
    leaf = sharded(4096, 256, by=("x", None))
    tree = tw.predict_tree([leaf, sharded(64, 256, by=("x", "y"))], tpu="v5e")
    assert [leaf.shape.dimensions for leaf in tree] == [(1024, 256), (16, 128)]
    assert tree.physical_bytes == 1024 * 256 * 4 + 16 * 128 * 4
    assert tw.predict(leaf, tpu="v5e").dimensions == tw.Shape.of(leaf).dimensions == (1024, 256)
    assert tw.predict_tree([leaf], tpu="v5e", per_device=False)[0].shape.dimensions == (4096, 256)
    array = jax.device_put(jnp.ones((8, 128)), jax.devices()[0])
    assert tw.predict(array, tpu="v5e").dimensions == tw.from_jax(array).dimensions


def test_keys_of_random_numbers() -> None:
    tree = tw.predict_tree(
        [jax.random.key(0), jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 5))], tpu="v5e"
    )
    assert [leaf.shape.dimensions for leaf in tree] == [(2,), (5, 2)]
    keys = jax.random.key(0)
    refused = (lambda: tw.predict(keys, tpu="v5e"), lambda: tw.Shape.of(keys), lambda: tw.ElementType(keys.dtype))
    for call in (*refused, lambda: tw.from_jax(keys), lambda: tw.tile(keys, "{}")):
        with pytest.raises(TypeError, match="key_data"):
            call()
