"""Trees of the libraries that people train with: Flax, Equinox, Haiku, Optax; each test needs its library."""

from __future__ import annotations

from typing import Any

import pytest

import tilewise as tw

jax = pytest.importorskip("jax")
jnp = jax.numpy

pytestmark = pytest.mark.slow

X = jax.ShapeDtypeStruct((4, 300), jnp.float32)
KEY = jax.eval_shape(lambda: jax.random.key(0))


def rows(tree: Any) -> dict[str, str]:
    """Each array without its layout, by its path."""
    return {leaf.path: str(leaf.shape.without_layout()) for leaf in tw.predict_tree(tree, tpu="v5e")}


def check(make: Any, arguments: tuple[Any, ...], expected: dict[str, str]) -> None:
    """The abstract tree has these arrays, the real one the same, and the compiler gives them as many bytes."""
    abstract = jax.eval_shape(make, *arguments)
    assert rows(abstract) == expected
    real = make(*jax.tree.map(as_real, arguments))
    assert tw.predict_tree(real, tpu="v5e").physical_bytes == tw.predict_tree(abstract, tpu="v5e").physical_bytes
    pytest.importorskip("libtpu")
    compiled = tw.compile_for(negated, jax.tree.leaves(abstract), tpu="v5e")
    assert compiled.memory_analysis().argument_size_in_bytes == tw.predict_tree(abstract, tpu="v5e").physical_bytes


def as_real(abstract: Any) -> Any:
    is_key = jax.dtypes.issubdtype(abstract.dtype, jax.dtypes.prng_key)
    return jax.random.key(0) if is_key else jnp.zeros(abstract.shape, abstract.dtype)


def negated(arrays: list[Any]) -> list[Any]:
    return [-array for array in arrays]


def test_flax_linen() -> None:
    nn = pytest.importorskip("flax.linen")
    model = nn.Sequential([nn.Dense(12), nn.BatchNorm(use_running_average=False), nn.Dense(3)])
    norm = {
        "batch_stats/layers_1/mean": "f32[12]",
        "batch_stats/layers_1/var": "f32[12]",
        "params/layers_0/bias": "f32[12]",
        "params/layers_0/kernel": "f32[300,12]",
        "params/layers_1/bias": "f32[12]",
        "params/layers_1/scale": "f32[12]",
        "params/layers_2/bias": "f32[3]",
        "params/layers_2/kernel": "f32[12,3]",
    }
    check(model.init, (KEY, X), norm)


def test_flax_linen_with_names_of_axes() -> None:
    nn = pytest.importorskip("flax.linen")
    by_data = nn.with_partitioning(nn.initializers.lecun_normal(), ("data", None))
    model = nn.Dense(12, kernel_init=by_data)
    assert rows(jax.eval_shape(model.init, KEY, X)) == {"params/bias": "f32[12]", "params/kernel": "f32[300,12]"}


def test_a_train_state() -> None:
    nn, optax = pytest.importorskip("flax.linen"), pytest.importorskip("optax")
    from flax.training.train_state import TrainState

    model = nn.Dense(12)

    def make(key: Any, x: Any) -> Any:
        return TrainState.create(apply_fn=model.apply, params=model.init(key, x)["params"], tx=optax.adamw(1e-3))

    both = {"bias": "f32[12]", "kernel": "f32[300,12]"}
    assert rows(jax.eval_shape(make, KEY, X)) == {
        "step": "s32[]",
        **{f"params/{name}": shape for name, shape in both.items()},
        "opt_state/0/count": "s32[]",
        **{f"opt_state/0/{moment}/{name}": shape for moment in ("mu", "nu") for name, shape in both.items()},
    }


def test_flax_nnx() -> None:
    nnx = pytest.importorskip("flax.nnx")
    optax = pytest.importorskip("optax")

    class Model(nnx.Module):  # type: ignore[misc, name-defined]
        def __init__(self, rngs: Any) -> None:
            self.dense = nnx.Linear(300, 12, rngs=rngs)
            # An attribute of this name is no box of Flax.
            self.value = nnx.Linear(12, 3, rngs=rngs)

    def make() -> Any:
        return Model(nnx.Rngs(0))

    expected = {
        "dense/bias": "f32[12]",
        "dense/kernel": "f32[300,12]",
        "value/bias": "f32[3]",
        "value/kernel": "f32[12,3]",
    }
    for tree in (make(), nnx.state(make()), nnx.eval_shape(make), nnx.state(nnx.eval_shape(make))):
        assert rows(tree) == expected
    state = rows(nnx.state(nnx.eval_shape(lambda: nnx.Optimizer(make(), optax.adam(1e-3), wrt=nnx.Param))))
    assert state["opt_state/0/mu/dense/kernel"] == "f32[300,12]"
    assert state["opt_state/0/count"] == "s32[]"


def test_flax_nnx_shards() -> None:
    nnx = pytest.importorskip("flax.nnx")
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    sharding = NamedSharding(AbstractMesh((4,), ("x",)), PartitionSpec("x", None))
    kernel = jax.ShapeDtypeStruct((400, 12), jnp.float32, sharding=sharding)
    tree = tw.predict_tree({"kernel": nnx.Param(kernel)}, tpu="v5e")
    assert [(leaf.path, leaf.shape.dimensions) for leaf in tree] == [("kernel", (100, 12))]


def test_equinox() -> None:
    eqx = pytest.importorskip("equinox")

    def make(key: Any) -> Any:
        return eqx.filter(eqx.nn.MLP(300, 3, 12, 1, key=key), eqx.is_array)

    expected = {
        "layers/0/weight": "f32[12,300]",
        "layers/0/bias": "f32[12]",
        "layers/1/weight": "f32[3,12]",
        "layers/1/bias": "f32[3]",
    }
    check(make, (KEY,), expected)
    # With the functions that are leaves of the whole module.
    assert rows(eqx.filter_eval_shape(eqx.nn.MLP, 300, 3, 12, 1, key=jax.random.key(0))) == expected


def test_haiku() -> None:
    hk = pytest.importorskip("haiku")

    def forward(x: Any) -> Any:
        return hk.nets.MLP([12, 3])(x)

    expected = {
        "mlp/~/linear_0/b": "f32[12]",
        "mlp/~/linear_0/w": "f32[300,12]",
        "mlp/~/linear_1/b": "f32[3]",
        "mlp/~/linear_1/w": "f32[12,3]",
    }
    check(hk.transform(forward).init, (KEY, X), expected)


def test_optax() -> None:
    optax = pytest.importorskip("optax")
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    expected = {"1/0/count": "s32[]", "1/0/mu/w": "f32[300,12]", "1/0/nu/w": "f32[300,12]"}
    check(optimizer.init, ({"w": jax.ShapeDtypeStruct((300, 12), jnp.float32)},), expected)
