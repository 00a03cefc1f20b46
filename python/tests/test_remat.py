"""`remat`: choices of what is kept compute what the step does, and are the least; the compiler judges them."""

from __future__ import annotations

import importlib
import itertools
import linecache
import math
import pickle
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import tilewise as tw
from tilewise._jax.equations import Reader, bytes_of
from tilewise._jax.internals import is_of_gradient
from tilewise._jax.lowering import Request
from tilewise._remat import regions
from tilewise._remat.costs import Costs
from tilewise._remat.cut import cheapest, minimum_cut
from tilewise._remat.regions import region
from tilewise._remat.result import code as code_of
from tilewise._remat.result import difference, summed
from tilewise._remat.search import Decision, Outcomes, RematRow, Tried
from tilewise._remat.step import Choice, Chooser, Step

jax = pytest.importorskip("jax")
jnp = jax.numpy

S = jax.ShapeDtypeStruct
LAYERS, WIDTH, ROWS = 6, 16, 32
COSTS = Costs(197e12, 819e9, 45e9)
WEIGHTS = jax.random.normal(jax.random.key(0), (LAYERS, WIDTH, WIDTH)) / 4
X = jax.random.normal(jax.random.key(1), (ROWS, WIDTH))


def layer(x: Any, w: Any) -> Any:
    return x + jnp.tanh(jax.nn.softmax(x @ w) @ w.T)


def updated(loss: Callable[..., Any]) -> Callable[..., Any]:
    def step(weights: Any, x: Any) -> Any:
        value, slope = jax.value_and_grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, slope), value

    return step


def in_line(layer: Callable[..., Any] = layer) -> Callable[..., Any]:
    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = layer(x, w)
        return (x**2).mean()

    return updated(loss)


def in_loop(layer: Callable[..., Any] = layer) -> Callable[..., Any]:
    def loss(weights: Any, x: Any) -> Any:
        return (jax.lax.scan(lambda x, w: (layer(x, w), None), x, weights)[0] ** 2).mean()

    return updated(loss)


def nested(weights: Any, x: Any) -> Any:
    """Time around layers, both in loops; their outputs are read by others, too."""

    def loss(weights: Any, x: Any) -> Any:
        def turn(state: Any, row: Any) -> Any:
            state, means = jax.lax.scan(lambda x, w: (layer(x, w), x.mean()), state + row, weights)
            return state, (state, means)

        state, (states, means) = jax.lax.scan(turn, jnp.zeros_like(x), jnp.stack([x, 2 * x, 3 * x]))
        return (state**2).mean() + (states**3).mean() + means.sum()

    return updated(loss)(weights, x)


def in_parts(weights: Any, x: Any) -> Any:
    """Microbatches: both passes are in the body of a loop."""

    def one(total: Any, rows: Any) -> Any:
        moved, value = in_loop()(weights, rows)
        return total + (weights - moved), value

    total, values = jax.lax.scan(one, jnp.zeros_like(weights), x.reshape(4, -1, WIDTH))
    return weights - total, values.sum()


def dropout(weights: Any, x: Any) -> Any:
    def noisy(x: Any, w: Any) -> Any:
        key = jax.random.fold_in(jax.random.key(0), 3)
        return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), layer(x, w), 0)

    return in_line(noisy)(weights, x)


MESH = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices("cpu")[:1])
ROWS_OF = jax.sharding.PartitionSpec("data")
WHOLE = jax.sharding.PartitionSpec()


def mapped(weights: Any, x: Any) -> Any:
    """The function that runs on each device has both passes."""

    def mean(weights: Any, x: Any) -> Any:
        return in_line()(weights, x)[0], jax.lax.pmean((x**2).mean(), "data")

    specs = {"in_specs": (WHOLE, ROWS_OF), "out_specs": (WHOLE, WHOLE), "check_vma": False}
    return jax.shard_map(mean, mesh=MESH, **specs)(weights, x)


def placed(weights: Any, x: Any) -> Any:
    """A call that says where its arguments lie stays a call."""
    places = tuple(jax.sharding.NamedSharding(MESH, each) for each in (WHOLE, ROWS_OF))
    return jax.jit(in_line(), in_shardings=places)(weights, x)


CHECKPOINTED = jax.checkpoint(layer)
DOTS = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable)
STEPS = {
    "in line": in_line(),
    "in line, checkpointed": in_line(CHECKPOINTED),
    "in line, dots": in_line(DOTS),
    "in a loop": in_loop(),
    "in a loop, checkpointed": in_loop(CHECKPOINTED),
    "in a loop, dots": in_loop(DOTS),
    "nested": nested,
    "in parts": in_parts,
    "dropout": dropout,
    "mapped": mapped,
    "placed": placed,
}
CHOICES = (
    Choice(1e6),
    Choice(1e6, 0.25, is_tied=True, releases=True),
    Choice(1e11, is_tied=True),
    Choice(1e12, 1.0),
    Choice(1e16),
    Choice(1e12, offloads=True),
)


def chosen(step: Callable[..., Any], choice: Choice) -> tuple[Any, Any]:
    read = region(Reader().block(jax.make_jaxpr(step)(WEIGHTS, X)))
    chooser = Chooser(COSTS, choice)
    closed = chooser.program(read).closed()
    jax.extend.core.check_jaxpr(getattr(closed, "jaxpr", closed))
    return closed, chooser.chosen


@pytest.mark.parametrize("name", STEPS)
def test_each_choice_computes_what_the_step_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "_LEAST_BYTES", 1)
    step = STEPS[name]
    wanted = jax.tree.leaves(jax.jit(step)(WEIGHTS, X))
    bytes_kept = set()
    for choice in CHOICES:
        closed, found = chosen(step, choice)
        bytes_kept.add(found.bytes)
        for one, other in zip(wanted, jax.jit(jax.extend.core.jaxpr_as_fun(closed))(WEIGHTS, X), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5 * float(abs(one).max()))
    assert len(bytes_kept) > 1


def test_a_gradient_reads_a_weight_behind_the_barrier_of_what_is_made_again_of_it() -> None:
    weights = tuple(WEIGHTS)
    read = region(Reader().block(jax.make_jaxpr(in_line())(weights, X)))
    block = Chooser(COSTS, Choice(1e9, 0.25, is_tied=True)).program(read)
    given, passed = set(block.inputs[:LAYERS]), set[Any]()
    for equation in block.equations:
        reads = given.intersection(atom for atom in equation.invars if not hasattr(atom, "val"))
        if equation.primitive.name == "optimization_barrier":
            passed |= reads
        elif is_of_gradient(equation):
            assert not passed & reads
    # The last layers are not repeated, and an optimizer's barrier would keep its weights from being donated.
    assert 0 < len(passed) < LAYERS
    own = [equation for equation in block.equations if equation.primitive.name == "sub" and equation.invars[0] in given]
    assert len(own) == LAYERS


@pytest.mark.parametrize("kind", ["in line", "in a loop"])
@pytest.mark.parametrize("author", ["checkpointed", "dots"])
def test_what_an_author_repeats_is_computed_once(kind: str, author: str) -> None:
    """Once it is read, a step with checkpoints has the operations of the step without."""

    def operations(name: str) -> Counter[str]:
        read = region(Reader().block(jax.make_jaxpr(STEPS[name])(WEIGHTS, X)))
        equations = [*read.block.equations, *(each for pair in read.pairs for each in (*pair.early, *pair.late))]
        return Counter(each.primitive.name for each in equations)

    one, other = operations(kind), operations(f"{kind}, {author}")
    # JAX linearizes what is under a checkpoint with a few other selections and sums.
    assert all(one[name] == other[name] > 0 for name in ("dot_general", "exp", "tanh", "reduce_max"))


def test_a_lower_price_keeps_no_more() -> None:
    for name, step in STEPS.items():
        kept = [chosen(step, Choice(price))[1].bytes for price in (1e6, 1e10, 1e11, 1e12, 1e16)]
        assert kept == sorted(kept), name


def test_the_cut_is_the_least_of_all_choices() -> None:
    """Compared with every set of values that could be kept."""

    def forward(a: Any, b: Any) -> Any:
        c = jnp.sin(a)
        d = c @ b
        e = d[:, :2] * 2
        f = jnp.exp(d) + a
        return c, d, e, f

    def is_made(atom: Any) -> bool:
        return not isinstance(atom, jax.extend.core.Literal) and atom in made

    equations = jax.make_jaxpr(forward)(jnp.ones((4, 4)), jnp.ones((4, 4))).jaxpr.eqns
    made = {variable: at for at, each in enumerate(equations) for variable in each.outvars}
    random = np.random.default_rng(0)
    for _ in range(40):
        wanted = [each for each in made if random.random() < 0.5]
        seconds = [float(random.integers(0, 60)) if random.random() < 0.9 else float("inf") for _ in equations]

        def cost(kept: Any, wanted: list[Any] = wanted, seconds: list[float] = seconds) -> float:
            again, waiting = set(), [each for each in wanted if each not in kept]
            while waiting:
                at = made.get(waiting.pop())
                if at is not None and at not in again:
                    again.add(at)
                    waiting += [each for each in equations[at].invars if is_made(each) and each not in kept]
            return sum(map(bytes_of, kept)) + sum(seconds[at] for at in again)

        subsets = itertools.chain.from_iterable(itertools.combinations(made, n) for n in range(len(made) + 1))
        least = min(cost(set(each)) for each in subsets)
        cut = minimum_cut(equations, wanted, seconds)
        assert cost(set(cut.kept)) <= least + len(made)  # Bytes are rounded to whole units.


def test_segments_are_cut_at_the_cheapest_places() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        count = int(random.integers(2, 9))
        weight, bytes_ = ([int(each) for each in random.integers(1, 20, count)] for _ in range(2))
        made = [0, *itertools.accumulate(bytes_)]
        segment = float(random.integers(max(bytes_), made[-1] + 1))

        def is_allowed(places: tuple[int, ...], made: list[int] = made, segment: float = segment) -> bool:
            bounds = [0, *(made[at + 1] for at in places)]
            return all(two - one <= segment for one, two in itertools.pairwise(bounds))

        def held(
            places: Sequence[int], made: list[int] = made, weight: list[int] = weight, segment: float = segment
        ) -> float:
            last = made[-1] - (made[places[-1] + 1] if places else 0)
            return sum(weight[at] for at in places) + 0.25 * max(0.0, last - segment)

        ways = (each for size in range(count + 1) for each in itertools.combinations(range(count), size))
        found = cheapest(weight, made, segment, 0.25)
        assert is_allowed(tuple(found))
        assert held(found) == min(held(each) for each in ways if is_allowed(each))


def test_what_came_of_a_choice_is_foretold_of_those_like_it() -> None:
    def row(peak_bytes: int, seconds: float | None = 1.0) -> RematRow:
        return RematRow("cut", peak_bytes, peak_bytes <= 1000, None, seconds, None, None, compiled=False)

    outcomes = Outcomes(1000)
    assert not outcomes.foretell(row(998))
    outcomes.add(row(998), row(1003))
    # A full compilation took 5 bytes more than its probe.
    assert outcomes.foretell(row(996, 2.0))
    assert not outcomes.foretell(row(995, 2.0))
    # One like it that holds less may fit.
    assert not outcomes.foretell(row(994))
    outcomes.add(row(994), row(994))
    assert outcomes.foretell(row(991))
    assert not outcomes.foretell(row(991, 0.9))
    assert not outcomes.foretell(row(900))
    # A row that takes far more than its probe has another schedule: it tells nothing of the others.
    outcomes = Outcomes(1000)
    outcomes.add(row(985), row(1150))
    assert not outcomes.foretell(row(986, 2.0))
    # Nor of one like it: two that took 5.23 GiB each in their probes came to 5.59 and 4.98 of 5.11 GiB.
    assert not outcomes.foretell(row(986))
    # Those without cycle counts are alike if their bytes are.
    outcomes.add(row(500, None), row(500, None))
    assert outcomes.foretell(row(501, None))
    assert not outcomes.foretell(row(501))


def test_the_smallest_is_compiled_before_it_is_said_to_fit() -> None:
    def tried(peak_bytes: int, floor: float) -> Tried:
        row = RematRow("cut", peak_bytes, peak_bytes <= 1000, None, floor, None, None, compiled=False)
        program: Any = SimpleNamespace(is_sharded=False)
        return Tried(print, None, program, cast("Any", None), cast("Any", None), row)

    def decided(full: Mapping[int, int | None], most: int = 3) -> tuple[int, bool, list[int]]:
        """The bytes of the best, whether it is compiled, and the probes of those that were; `full` has its bytes."""
        asked: list[int] = []

        def ask(each: Tried, mode: str) -> None:
            probe = each.row.peak_bytes
            found = full[probe] if mode == "full" else probe
            if mode == "full":
                asked.append(probe)
            if found is None:
                each.row, each.has_failed = replace(each.row, fits=False), True
            else:
                fits = found <= 1000
                each.row = replace(each.row, peak_bytes=found, fits=fits, compiled=mode == "full" and fits, seconds=1.0)

        every = [tried(2000, 0.1), *(tried(990 - 80 * at, 0.2 + at / 10) for at in range(6))]
        best = Decision(every, 1000, most, shrinks=False, can_stop=True, ask=ask, say=lambda words: None).made()
        return best.row.peak_bytes, best.row.compiled, asked

    # Full compilations take 210 bytes more than probes.
    above: dict[int, int | None] = {990 - 80 * at: 1200 - 80 * at for at in range(6)}
    assert decided(above) == (800, True, [990, 910, 830, 590])
    assert decided(dict.fromkeys(above, 1500)) == (1500, False, [990, 910, 830, 590, 670, 750])
    assert decided(dict.fromkeys(above), most=1) == (670, False, [990, 590])
    assert decided(above, most=0) == (990, False, [])
    # Those far behind one that was compiled aren't.
    assert decided({990 - 80 * at: 990 - 80 * at for at in range(6)}) == (990, True, [990])


def test_choices_a_hairs_breadth_apart_are_compiled() -> None:
    def tried(peak_bytes: int, floor: float) -> Tried:
        row = RematRow("cut", peak_bytes, peak_bytes <= 1000, None, floor, None, None, compiled=False)
        return Tried(print, None, cast("Any", None), cast("Any", None), cast("Any", None), row)

    def ask(each: Tried, mode: str) -> None:
        seconds = {800: 1.0, 700: 0.9, 600: 0.1}[each.row.peak_bytes]
        each.row = replace(each.row, compiled=mode == "full", seconds=seconds)

    # At full rates 700 is slower by a four-hundredth than 800, and 600 by a half.
    every = [tried(2000, 0.1), tried(800, 0.2), tried(700, 0.2005), tried(600, 0.3)]
    best = Decision(every, 1000, 4, shrinks=False, can_stop=False, ask=ask, say=lambda words: None).made()
    assert (best.row.peak_bytes, every[3].row.compiled) == (700, False)


def test_a_step_that_is_refused_fits_and_is_compiled() -> None:
    weights, x = [S((256, 256), jnp.bfloat16)] * 8, S((2**17, 256), jnp.bfloat16)
    found = tw.remat(in_line(), weights, x, tpu="v5e", hbm_limit="900MiB", progress=False)
    assert found.fits
    assert not found.rows[0].fits
    assert found.peak_bytes <= 900 * 2**20 < found.rows[0].peak_bytes
    assert found.seconds is not None
    audited = tw.audit(found.step, weights, x, tpu="v5e")
    assert audited.peak_bytes == found.peak_bytes
    assert found.recomputed
    assert "chosen" in str(found)
    picture = found.draw({"by hand": found.report})
    assert picture.to_svg().count("<title>") == 1 + len(found.rows) + 1
    assert "as written" in str(picture)
    assert "by hand" in str(picture)
    assert picture == pickle.loads(pickle.dumps(picture))
    assert picture.to_png()[1:4] == b"PNG"


IN_LINE = """
def loss(weights, x):
    for w in weights:
        x = layer(x, w)
    return x.sum()
"""
IN_LOOP = """
def loss(weights, x):
    return jax.lax.scan(lambda x, w: (layer(x, w), None), x, weights)[0].sum()
"""


@pytest.mark.parametrize("around", [IN_LINE, IN_LOOP])
def test_the_code_keeps_what_the_step_keeps(around: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
import jax
import jax.numpy as jnp

def layer(x, w):
    up = x @ w
    hidden = jnp.tanh(up)
    down = hidden @ w.T
    y = x + down
    return y
"""

    def model(text: str) -> Any:
        file = tmp_path / "model.py"
        file.write_text(text)
        linecache.checkcache(str(file))
        held: dict[str, Any] = {}
        exec(compile(text, str(file), "exec"), held)
        return held["loss"]

    weights: Any = S((LAYERS, WIDTH, 4 * WIDTH), jnp.float32)
    weights, x = (
        [S(weights.shape[1:], weights.dtype)] * LAYERS if around is IN_LINE else weights,
        S((ROWS, WIDTH), jnp.float32),
    )
    traced = Step.of(Request(jax.value_and_grad(model(text + around)), (weights, x), "v5e"))
    _, chosen = traced.chosen(Choice(1.0, keeps_products=True, is_of_loops=around is IN_LOOP))
    code = code_of(summed(chosen.kept))
    lines = [line[2:] for line in code.splitlines() if line.startswith(("- ", "+ "))]
    text = code.splitlines()[0] + text
    for before, after in zip(lines[::2], lines[1::2], strict=True):
        assert before in text
        text = text.replace(before, after)
    policy = code[code.index("policy = ") :]
    jax_code = importlib.import_module("jax.ad_checkpoint")
    jax_code.print_saved_residuals(model(text + "\n" + policy + around), weights, x)
    said = capsys.readouterr().out
    found = re.findall(r"^f32\[([\d,]*)\] (?!from the arg)", said, re.MULTILINE)
    assert sum(4 * math.prod(map(int, each.split(","))) for each in found if each) == sum(
        each.bytes
        for each in chosen.kept
        # The passes may meet behind the first operations of the gradient.
        if each.ends_line and (each.equation is None or not is_of_gradient(each.equation))
    )


def test_what_cannot_be_had_is_said() -> None:
    found = tw.remat(in_line(), [S((256, 256), jnp.bfloat16)] * 4, S((2**16, 256), jnp.bfloat16),
                     tpu="v5e", hbm_limit="1MiB", progress=False)  # fmt: skip
    assert not found.fits
    assert str(found).startswith("Does not fit: the least that was found is ")
    assert found.peak_bytes == min(row.peak_bytes for row in found.rows)


def test_inference_has_nothing_to_keep() -> None:
    with pytest.raises(tw.Error, match="no gradient"):
        tw.remat(lambda x: jnp.tanh(x) @ x, S((128, 128), jnp.float32), tpu="v5e", progress=False)


def test_results_are_compared_on_this_machine() -> None:
    found = tw.remat(in_line(), WEIGHTS, X, tpu="v5e", progress=False)
    assert found.check() < 1e-4
    assert found.check((WEIGHTS, X)) < 1e-4


def test_what_is_computed_in_few_bits_is_rounded_so() -> None:
    narrow = in_line(lambda x, w: layer(x.astype("bfloat16"), w.astype("bfloat16")).astype(x.dtype))
    found = tw.remat(narrow, WEIGHTS, X, tpu="v5e", progress=False)
    assert found.check() < 1e-2

    def other(weights: Any, x: Any) -> Any:
        return narrow(1.1 * weights, x)

    with pytest.raises(tw.Skip, match="changes by"):
        difference(narrow, other, (WEIGHTS, X))


def test_random_keys_are_results_too() -> None:
    def step(weights: Any, key: Any, x: Any) -> Any:
        ours, key = jax.random.split(key)
        return in_line()(weights, x + jax.random.normal(ours, x.shape)), key

    found = tw.remat(step, WEIGHTS, jax.random.key(3), X, tpu="v5e", progress=False)
    assert found.check() < 1e-4


def test_a_step_of_equinox_keeps_its_form() -> None:
    """Functions among the arguments and the results are no arrays."""
    eqx = pytest.importorskip("equinox")
    network = eqx.nn.MLP(8, 8, 64, 4, key=jax.random.key(0))

    @eqx.filter_jit
    def step(network: Any, x: Any) -> Any:
        value, slopes = eqx.filter_value_and_grad(lambda network: (jax.vmap(network)(x) ** 2).mean())(network)
        return eqx.apply_updates(network, jax.tree.map(lambda slope: -0.1 * slope, slopes)), value

    x = jax.random.normal(jax.random.key(1), (256, 8))
    found = tw.remat(step, network, x, tpu="v5e", progress=False)
    wanted, given = (jax.tree.leaves(eqx.filter(each(network, x), eqx.is_array)) for each in (step, found.step))
    for one, other in zip(wanted, given, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)
