"""Candidates: what each changes of a program, what it must not change, and what is skipped."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import EXAMPLES

import tilewise as tw
from tilewise._compiler.process import Compiler, Sizes
from tilewise._fit import advice, candidates
from tilewise._fit.candidates import Place
from tilewise._fit.factory import program, program_of
from tilewise._fit.run import Progress
from tilewise._jax.equations import Reader
from tilewise._jax.internals import Scan
from tilewise._jax.lowering import Request

jax = pytest.importorskip("jax")
jnp = jax.numpy

S = jax.ShapeDtypeStruct
WIDTH, LAYERS, TOKENS = 16, 4, 32


def layer(x: Any, w: Any) -> Any:
    return x + jnp.tanh(jax.nn.gelu(x @ w)), None


def make(batch: int, loss: Callable[..., Any] | None = None) -> Any:
    """A step whose loop keeps what its gradient reads; the update divides by the gradient's norm."""

    def mean(weights: Any, x: Any, y: Any) -> Any:
        return jnp.mean((jax.lax.scan(layer, x, weights)[0] - y) ** 2)

    @jax.jit
    def step(weights: Any, x: Any, y: Any) -> Any:
        value, gradient = jax.value_and_grad(loss or mean)(weights, x, y)
        return weights - 0.1 * gradient / jnp.linalg.norm(gradient), {"loss": value}

    rows = S((batch, TOKENS, WIDTH), jnp.float32)
    return step, (S((LAYERS, WIDTH, WIDTH), jnp.float32), rows, rows)


def counting(weights: Any, x: Any, y: Any) -> Any:
    return jnp.sum((jax.lax.scan(layer, x, weights)[0] - y) ** 2)


def normalised(weights: Any, x: Any, y: Any) -> Any:
    """Statistics of the batch: a part of it has others."""
    x = jax.lax.scan(layer, (x - x.mean(0)) / (x.std(0) + 1e-3), weights)[0]
    return jnp.mean((x - y) ** 2)


def unrolled(weights: Any, x: Any, y: Any) -> Any:
    for w in weights:
        x = x + jnp.tanh(jax.nn.gelu(x @ w) @ w)
    return jnp.mean((x - y) ** 2)


def looped(weights: Any, x: Any, y: Any) -> Any:
    """Layers that are written out, with a loop in each, as those of Mamba-2."""
    for w in weights:
        rows = x.swapaxes(0, 1)
        before = jax.lax.scan(lambda state, row: (jnp.tanh(state + row), state), jnp.zeros_like(rows[0]), rows)[1]
        x = x + jnp.tanh(jax.nn.gelu(before.swapaxes(0, 1) @ w) @ w)
    return jnp.mean((x - y) ** 2)


def numbers(batch: int) -> list[Any]:
    random = np.random.default_rng(1)
    return [jnp.asarray(random.normal(size=each.shape) / 8, jnp.float32) for each in make(batch)[1]]


def changed(factory: Callable[..., Any] = make, batch: int = 8, tpu: str = "v5e", **settings: Any) -> Request:
    return program(factory, {"batch": batch, **settings}, Place(tpu, None))


@pytest.mark.parametrize(
    ("settings", "loss"),
    [
        pytest.param({"remat": "dots"}, None, marks=pytest.mark.slow),
        pytest.param({"remat": "full"}, None, marks=pytest.mark.slow),
        ({"remat": "full"}, unrolled),
        pytest.param({"remat": "full"}, looped, marks=pytest.mark.slow),
        pytest.param({"microbatch": 4}, counting, marks=pytest.mark.slow),
        # Statistics of the batch are gone through first.
        ({"microbatch": 2}, normalised),
        ({"remat": "full", "microbatch": 4}, None),
    ],
)
def test_rewritten_steps_compute_the_same(settings: dict[str, Any], loss: Any) -> None:
    values = numbers(8)
    before = make(8, loss)[0](*values)
    # A factory's comparisons are kept: other tests have the same.
    made = changed(make if loss is None else functools.partial(make, loss=loss), **settings)
    after = jax.jit(made.f)(*values)
    assert jax.tree.structure(before) == jax.tree.structure(after)
    for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert made.f.__name__ == "step"


def test_layers_around_loops_are_repeated() -> None:
    def products(**settings: Any) -> int:
        made = changed(functools.partial(make, loss=looped), **settings)
        block = Reader().block(jax.make_jaxpr(made.f)(*made.args))
        return sum(each.primitive.name == "dot_general" for each in block.equations)

    assert products(remat="full") > products(remat="none")


def kept(made: Request) -> int:
    """Elements of what loops stack."""
    block = Reader().block(jax.make_jaxpr(made.f)(*made.args))
    return sum(
        each.aval.size
        for equation in block.equations
        if equation.primitive.name == "scan" and not equation.params["reverse"]
        for each in equation.outvars[Scan.of(equation).carry :]
    )


def test_remat_keeps_less() -> None:
    plain, dots, full = (changed(remat=remat) for remat in ("none", "dots", "full"))
    one = LAYERS * 8 * TOKENS * WIDTH
    assert kept(plain) >= 5 * one
    # The carry, and the result of the multiplication where the gradient reads it.
    assert kept(full) == one < kept(dots) <= 2 * one


@pytest.mark.slow
def test_what_does_not_apply_is_skipped() -> None:
    for settings, loss, words in (
        ({"microbatch": 3}, None, "equal parts"),
        ({"sharding": "data", "batch": 6}, None, "between 4 devices"),
    ):
        if "sharding" in settings:
            pytest.importorskip("libtpu")
        with pytest.raises(tw.Skip, match=words):
            changed(functools.partial(make, loss=loss), **settings)
    for settings in ({"microbatch": "two"}, {"remat": "some"}, {"sharding": "rows"}, {"formats": "row"}):
        with pytest.raises(ValueError, match=next(iter(settings))):
            changed(**settings)
    with pytest.raises(tw.Skip, match="no gradient"):
        changed(lambda batch: (jnp.tanh, (S((batch, WIDTH), jnp.float32),)), remat="full")
    # A parameter of the factory itself isn't changed.
    with pytest.raises(TypeError, match="of mine"):
        changed(lambda batch, remat: pytest.fail if remat == "none" else _raising("of mine"), remat="full")


def _raising(words: str) -> Any:
    raise TypeError(words)


@pytest.mark.slow
def test_random_numbers_of_a_batch_stay_in_its_parts() -> None:
    def dropping(batch: int) -> Any:
        def step(w: Any, x: Any, key: Any) -> Any:
            kept = jax.random.bernoulli(key, 0.5, x.shape)
            return jax.grad(lambda w: jnp.mean((jnp.where(kept, x, 0) @ w) ** 2))(w)

        key = jax.eval_shape(lambda: jax.random.key(0))
        return step, (S((WIDTH, WIDTH), jnp.float32), S((batch, WIDTH), jnp.float32), key)

    step, (w, x, _) = dropping(8)
    values = [jnp.linspace(-1, 1, each.size).reshape(each.shape) for each in (w, x)]
    given = *values, jax.random.key(1)
    np.testing.assert_allclose(changed(dropping, microbatch=2).f(*given), step(*given), rtol=1e-4, atol=1e-6)


def test_options_of_jit() -> None:
    pytest.importorskip("libtpu")
    assert changed(donate=True).options["donate_argnums"] == (0,)
    assert changed(donate=False).options["donate_argnums"] == ()

    def donating(batch: int) -> Any:
        step, args = make(batch)
        return jax.jit(step, donate_argnums=0), args

    assert changed(donating, sharding="data").options["donate_argnums"] == (0,)
    specs = {
        name: [tuple(each.spec) for each in jax.tree.leaves(changed(sharding=name).options["in_shardings"])[:2]]
        for name in candidates.SHARDINGS
    }
    batch = ("data", None, None)
    assert specs == {
        "data": [(None, None, None), batch],
        "fsdp": [(None, "data", None), batch],
        "tensor": [(None, None, "model"), batch],
        "fsdp+tensor": [(None, "data", "model"), batch],
    }


@pytest.mark.slow
def test_the_compiler_prices_candidates(kept_compiler: Compiler) -> None:
    pytest.importorskip("libtpu")

    def sizes(**settings: Any) -> Sizes:
        asked = program_of(make, {"batch": 4096, **settings}, Place("v5e", None))
        planned = kept_compiler.ask(asked, "probe").sizes
        assert planned is not None
        return planned

    plain, full, parts = (sizes(**settings).total_bytes for settings in ({}, {"remat": "full"}, {"microbatch": 4}))
    assert sizes(remat="full", microbatch=4).total_bytes <= min(full, parts) <= max(full, parts) < plain
    # The columns lie on 128 lanes.
    assert sizes(donate=True).alias_bytes == LAYERS * WIDTH * 128 * 4
    assert sizes(formats="auto").total_bytes > 0


def test_the_fastest_that_fits_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("libtpu")
    shown: list[str] = []
    monkeypatch.setattr(Progress, "within", lambda _, words: shown.append(words))

    def layers(batch: int) -> Any:
        def step(weights: Any, x: Any) -> Any:
            def loss(weights: Any) -> Any:
                h = x
                for w in weights:
                    h = h + jax.nn.gelu(h @ w) @ w.T
                return (h.astype(jnp.float32) ** 2).mean()

            return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(loss)(weights))

        return step, ([S((256, 1024), jnp.bfloat16)] * 6, S((batch, 256), jnp.bfloat16))

    found = tw.fit(
        layers,
        tpu="v5e",
        target={"batch": 2**17},
        grid={"remat": ["auto"]},
        hbm_limit="768MiB",
        confirm="none",
        cache=None,
        progress=False,
    )
    (row,) = found.rows
    # As it is written, its plan takes 1.5 GiB.
    assert row.status == "planned"
    assert row.total_bytes is not None
    assert row.total_bytes < 768 * 2**20
    assert shown[-1].endswith("choices of what is kept")
    assert "est. time" in str(found)
    (inference,) = tw.fit(
        lambda batch: (jnp.tanh, (S((batch, 2**14, 2**14), jnp.float32),)),
        tpu="v5e",
        target={"batch": 9},
        grid={"remat": ["auto"]},
        cache=None,
        progress=False,
    ).rows
    assert (inference.status, "no gradient" in (inference.error or "")) == ("skipped", True)


def test_advice_is_checked() -> None:
    pytest.importorskip("libtpu")
    checked = tw.audit(lambda x: x + 1, S((400000, 128), jnp.float32), tpu="v5e").check()
    (donated,) = checked.rows
    assert donated.recommendation.kind == "donate"
    assert (
        donated.freed_bytes == donated.recommendation.peak_bytes_saved == checked.peak_bytes_saved == 400000 * 128 * 4
    )
    assert (checked.comparison.before.alias_bytes, checked.comparison.after.alias_bytes) == (0, donated.freed_bytes)
    assert str(checked).splitlines()[0].split() == ["promised", "freed", "needs"]
    with pytest.raises(TypeError, match="about a function"):
        tw.audit(EXAMPLES / "gnn_large.v5e.hlo").check()


def test_advice_on_a_tree_is_checked() -> None:
    pytest.importorskip("libtpu")

    def step(batch: dict[str, Any]) -> dict[str, Any]:
        return {name: leaf + 1 for name, leaf in batch.items()}

    batch = {"unroll": S((), jnp.int32), "mask": S((400000, 128), jnp.float32)}
    (donated,) = tw.audit(step, batch, tpu="v5e").check().rows
    assert donated.recommendation.kind == "donate"
    # A scalar takes 512 bytes.
    assert donated.freed_bytes == donated.recommendation.peak_bytes_saved == 400000 * 128 * 4 + 512


def test_advice_is_applied_from_outside() -> None:
    advised = tw.audit(EXAMPLES / "gnn_large.v5e.hlo").advice[0]
    step, args = make(8)
    made = Request(step, args, "v5e")
    with pytest.raises(tw.Skip, match="the program itself"):
        advice.applied(made, advised)
    again = advice.applied(made, SimpleNamespace(kind="checkpoint"))  # type: ignore[arg-type]
    assert kept(again) < kept(made)
