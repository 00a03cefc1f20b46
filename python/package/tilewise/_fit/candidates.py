"""Changes of a program that need no parameter of its factory: names that `fit`'s ``grid`` knows.

`donate`, `formats` and `sharding` are arguments of ``jax.jit``, which leave the function as it is. `remat` and
`microbatch` rewrite it, by the known properties of each of its operations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tilewise._base.errors import Error, Skip
from tilewise._base.modules import module
from tilewise._compiler.program import with_donations
from tilewise._jax.lowering import Request, meshes_of
from tilewise._jax.topologies import slice_with
from tilewise._microbatch import parted
from tilewise._remat.step import POLICIES, Step

SHARDINGS = ("data", "fsdp", "tensor", "fsdp+tensor")


Factory: TypeAlias = Callable[[int | None], Request]
"""The program of a batch; of ``None`` where the search has no batch."""
_Axes: TypeAlias = Callable[[], list["int | None"]]
"""For each leaf of the arguments its axis that grows with the batch."""


@dataclass(frozen=True)
class Place:
    """The slice that a candidate is tried on, and the setting that is the batch."""

    tpu: str
    topology: str | None
    axis: str = "batch"


def candidate(factory: Factory, wanted: Mapping[str, Any], batch: int | None) -> Request:
    """The program of a batch with the wanted changes; ``None``, False, ``"none"`` and 1 change nothing."""
    made = factory(batch)
    if hasattr(made.f, "lower"):
        made = with_donations(made)

    def axes() -> list[int | None]:
        if batch is None:
            raise Skip("the search has no batch")
        return batch_axes(made, factory(2 * batch))

    for name, change in _CHANGES.items():
        value = wanted.get(name)
        if name in wanted and (name == "donate" or value not in (None, False, "none", 1)):
            made = change(made, value, axes)
    return made


def _donated(made: Request, value: Any, _: _Axes) -> Request:
    options = {name: held for name, held in made.options.items() if name not in ("donate_argnums", "donate_argnames")}
    return replace(made, jit_options={**options, "donate_argnums": donatable(made.f, made.args) if value else ()})


def donatable(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[int, ...]:
    """The arguments whose every array has a result of its own shape and type to lie in, each result taken once."""
    jax = module("jax")

    def key(leaf: Any) -> tuple[Any, ...]:
        return tuple(leaf.shape), str(leaf.dtype)

    results = Counter(key(leaf) for leaf in jax.tree.leaves(jax.eval_shape(f, *args)))
    found: list[int] = []
    for number, arg in enumerate(args):
        leaves = Counter(key(leaf) for leaf in jax.tree.leaves(arg) if hasattr(leaf, "shape"))
        if leaves and leaves <= results:
            found.append(number)
            results -= leaves
    return tuple(found)


def _formatted(made: Request, value: Any, _: _Axes) -> Request:
    if value not in (True, "auto"):
        raise ValueError(f"formats is 'auto' or 'none', not {value!r}")
    return made.with_options(**formats(made))


def formats(made: Request) -> dict[str, Any]:
    """``in_shardings`` and ``out_shardings`` with layouts that the compiler picks."""
    jax = module("jax")
    layouts = module("jax.experimental.layout")
    if meshes_of((made.args, made.options)):
        raise Skip("formats: the program is sharded")
    # Any device stands for the slice's.
    here = jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])

    def free(_: Any) -> Any:
        return layouts.Format(layouts.Layout.AUTO, here)

    results = jax.eval_shape(made.f, *made.args)
    return {"in_shardings": jax.tree.map(free, made.args), "out_shardings": jax.tree.map(free, results)}


def _sharded(made: Request, value: Any, axes: _Axes) -> Request:
    """Shardings by rule: the batch over ``data``; of other arrays the largest dimension, or the last over ``model``."""
    jax = module("jax")
    if value not in SHARDINGS:
        raise ValueError(f"sharding is one of {', '.join(SHARDINGS)}, not {value!r}")
    if "in_shardings" in made.options or meshes_of(made.args):
        raise Skip("sharding: the program has shardings of its own")
    devices = len(slice_with(made.generation, made.topology, 1)[1])
    model = {"tensor": devices, "fsdp+tensor": 2}.get(value, 1)
    data = devices // model
    mesh = jax.sharding.AbstractMesh((data, model), ("data", "model"))

    def sharding(leaf: Any, axis: int | None) -> Any:
        names: list[str | None] = [None] * len(leaf.shape)
        if axis is not None:
            if leaf.shape[axis] % data:
                raise Skip(f"sharding={value}: {leaf.shape[axis]} can't be divided between {data} devices")
            names[axis] = "data"
        else:
            if "tensor" in value and leaf.shape and leaf.shape[-1] % model == 0:
                names[-1] = "model"
            free = [n for n, size in enumerate(leaf.shape) if names[n] is None and size % data == 0]
            if "fsdp" in value and free:
                names[max(free, key=lambda n: (leaf.shape[n], -n))] = "data"
        return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*names))

    leaves, tree = jax.tree.flatten(made.args)
    shardings = [sharding(leaf, axis) for leaf, axis in zip(leaves, axes(), strict=True)]
    return made.with_options(in_shardings=jax.tree.unflatten(tree, shardings))


def batch_axes(made: Request, other: Request) -> list[int | None]:
    """For each leaf of the arguments its axis that grows with the batch, read off the program of another batch."""
    jax = module("jax")
    if jax.tree.structure(made.args) != jax.tree.structure(other.args):
        raise Skip("the arguments are others for another batch")

    def axis(one: Any, two: Any) -> int | None:
        changed = [n for n, (a, b) in enumerate(zip(one.shape, two.shape, strict=False)) if a != b]
        if len(one.shape) != len(two.shape) or len(changed) > 1:
            raise Skip("an argument has another form for another batch")
        return changed[0] if changed else None

    found = [axis(*pair) for pair in zip(jax.tree.leaves(made.args), jax.tree.leaves(other.args), strict=True)]
    if all(axis is None for axis in found):
        raise Skip("no argument grows with the batch")
    return found


def rematerialised(made: Request, policy: str) -> Request:
    """The program with a policy around each of its layers; ``auto`` is chosen elsewhere, by asking the compiler."""
    if policy not in POLICIES:
        raise ValueError(f"remat is none, auto, {' or '.join(POLICIES)}, not {policy!r}")
    try:
        return _replaced(made, Step.of(made).with_policy(policy))
    except Error as error:
        raise Skip(error.message) from None


def _microbatched(made: Request, value: Any, axes: _Axes) -> Request:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"microbatch is how many parts, not {value!r}")
    along = axes()
    return known(made, lambda *args: parted(made.f, args, {}, value, along))


def known(made: Request, step: Callable[..., Any]) -> Request:
    """The program whose step runs in parts of its batch, where these are known to compute the same."""
    try:
        module("jax").eval_shape(step, *made.args)
    except Error as error:
        raise Skip(error.message) from None
    return _replaced(made, step)


def _replaced(made: Request, f: Callable[..., Any]) -> Request:
    def step(*args: Any) -> Any:
        return f(*args)

    step.__name__ = getattr(made.f, "__name__", "step")
    return replace(made, f=step)


# Later changes apply to the programs that earlier ones make.
_CHANGES: dict[str, Callable[[Request, Any, _Axes], Request]] = {
    "microbatch": _microbatched,
    "remat": lambda made, value, _: rematerialised(made, value),
    "sharding": _sharded,
    "donate": _donated,
    "formats": _formatted,
}

NAMES = tuple(_CHANGES)
