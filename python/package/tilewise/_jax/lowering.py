"""Lowers functions for devices that needn't be there: places their arguments, or their traced programs, on them."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilewise import _tilewise
from tilewise._base.errors import Error, NotATpuProgram
from tilewise._base.modules import module
from tilewise._base.types import Tpu
from tilewise._jax import internals
from tilewise._jax.device import traced_for
from tilewise._jax.topologies import jax_for_tpus, slice_of, slice_with


@dataclass(frozen=True)
class Request:
    """A function to compile for a TPU, or for another machine in its place.

    Attributes:
        f, args, tpu, topology, jit_options, kwargs: as `compile_for` takes them; or the result of the function's
            ``lower``, without arguments.
        libtpu: the version that compiles, by default the installed one.
        again: makes the request again, of files that are run anew; ``None`` where nothing but `f` is known.
    """

    f: Any
    args: tuple[Any, ...]
    tpu: Tpu
    topology: str | None = None
    jit_options: Mapping[str, Any] | None = None
    libtpu: str | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    again: Callable[[], Request] | None = None

    @property
    def generation(self) -> str:
        """The generation's own name, whichever was given."""
        return _tilewise.generation_name(self.tpu)

    @property
    def options(self) -> dict[str, Any]:
        """The options of ``jax.jit``."""
        return dict(self.jit_options or {})

    def with_options(self, **options: Any) -> Request:
        """The request with these options of ``jax.jit``, too."""
        return replace(self, jit_options={**self.options, **options})

    def abstract(self) -> Request:
        """The request without its arguments' values, which a report shall not keep alive."""
        jax = module("jax")

        def one(leaf: Any) -> Any:
            if not isinstance(leaf, jax.Array):
                return leaf
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding, weak_type=leaf.weak_type)

        args, kwargs = jax.tree.map(one, (self.args, self.kwargs))
        return replace(self, args=args, kwargs=kwargs)


def lower_on(request: Request) -> tuple[str, Any]:
    """The slice that was picked, such as ``v5e:2x2``, and the function lowered for its devices."""
    generation = request.generation
    jax, f, topology = jax_for_tpus(), request.f, request.topology
    if isinstance(f, module("jax.export").Exported):
        if "tpu" not in f.platforms:
            raise NotATpuProgram(
                f"{f.fun_name} was exported for {', '.join(f.platforms)}",
                kind="not_tpu",
                help="`jax.export.export(jax.jit(f), platforms=['tpu'])` exports for TPUs, and needs none",
            )
        _, devices = slice_with(generation, topology, f.nr_devices)
        mesh = jax.sharding.Mesh(np.array(devices[: f.nr_devices]), "devices")
        request = replace(request, f=f.call, args=request.args or _exported_for(jax, f, mesh))
    devices = slice_with(generation, topology, 1)[1]
    return traced_for(generation, lambda: _lowered(request), devices)


def _lowered(request: Request) -> tuple[str, Any]:
    """Lowered as it is with arguments on the TPU, or moved there once it is traced."""
    jax, f, kwargs, options = module("jax"), request.f, dict(request.kwargs), request.options
    is_plain, is_traced = not hasattr(f, "lower"), isinstance(f, jax.stages.Traced)
    if is_plain or (options and not is_traced) or is_jitted(f):
        try:
            meshes = meshes_of((request.args, kwargs, options))
            name, devices = _slice(request, meshes)
            return name, Place(jax, devices, meshes).lowered(request)
        except (ValueError, TypeError) as error:
            # JAX names the devices of meshes in the function that are not the arguments'.
            if "device" not in str(error).lower() and "mesh" not in str(error).lower():
                raise
        f = jax.jit(f, **options) if is_plain or options else f
    is_done = is_traced or hasattr(f, "jit_wrapped")
    traced = TracedProgram(jax, f) if is_done else TracedProgram.of(jax, f, request.args, kwargs)
    meshes = traced.meshes()
    name, devices = _slice(request, meshes)
    return name, traced.lower(Place(jax, devices, meshes))


def _slice(request: Request, meshes: list[Any]) -> tuple[str, tuple[Any, ...]]:
    """The topology, and its devices: the one that is named, the meshes' own, or the smallest with enough."""
    own = None if request.topology else next(filter(None, map(slice_of, meshes)), None)
    needed = max((mesh.size for mesh in meshes), default=1)
    return own or slice_with(request.generation, request.topology, needed)


def is_jitted(f: Any) -> bool:
    """Whether ``jax.jit`` returned it, and not another library's."""
    return type(f) is type(module("jax").jit(is_jitted))


def meshes_of(value: Any) -> list[Any]:
    jax = module("jax")

    def is_leaf(value: Any) -> bool:
        return isinstance(value, jax.sharding.Sharding)

    leaves = jax.tree.leaves(value, is_leaf=is_leaf)
    shardings: list[Any] = [leaf if hasattr(leaf, "mesh") else getattr(leaf, "sharding", None) for leaf in leaves]
    return [sharding.mesh for sharding in shardings if getattr(sharding, "mesh", None) is not None]


class Place:
    """The devices of a topology, in place of those that meshes have, or that abstract meshes lack."""

    def __init__(self, jax: Any, devices: tuple[Any, ...], meshes: list[Any]) -> None:
        self.jax, self.devices = jax, devices
        self.default = jax.sharding.SingleDeviceSharding(devices[0])
        if meshes:
            # An array without a sharding of its own is on every device of the others.
            largest = max(meshes, key=lambda mesh: int(mesh.size))
            self.default = jax.sharding.NamedSharding(self.mesh(largest), jax.sharding.PartitionSpec())

    def mesh(self, mesh: Any) -> Any:
        """The mesh, of the topology's devices: each of another machine's devices is the one with its number here."""
        sizes = tuple(mesh.axis_sizes)
        numbers = np.arange(math.prod(sizes))
        if isinstance(mesh, self.jax.sharding.Mesh):
            if mesh.devices.flat[0] in self.devices:
                return mesh
            own = np.array([device.id for device in mesh.devices.flat])
            numbers = own if own.max() < len(self.devices) else np.argsort(np.argsort(own))
        devices = np.array(self.devices, dtype=object)[numbers].reshape(sizes)
        return self.jax.sharding.Mesh(devices, mesh.axis_names, axis_types=mesh.axis_types)

    def sharding(self, sharding: Any) -> Any:
        kind = getattr(sharding, "memory_kind", None)
        kind = kind if kind in ("device", "pinned_host") else None
        if getattr(sharding, "mesh", None) is not None:
            return self.jax.sharding.NamedSharding(self.mesh(sharding.mesh), sharding.spec, memory_kind=kind)
        return self.default if kind is None else self.default.with_memory_kind(kind)

    def shardings(self, tree: Any) -> Any:
        def one(value: Any) -> Any:
            if hasattr(value, "layout") and hasattr(value, "sharding"):
                return type(value)(value.layout, self.sharding(value.sharding))
            return self.sharding(value) if isinstance(value, self.jax.sharding.Sharding) else value

        def is_leaf(value: Any) -> bool:
            return hasattr(value, "sharding") or isinstance(value, self.jax.sharding.Sharding)

        return self.jax.tree.map(one, tree, is_leaf=is_leaf)

    def lowered(self, request: Request) -> Any:
        jax, f, options = self.jax, request.f, request.options
        args, kwargs = request.args, dict(request.kwargs)
        for key in ("in_shardings", "out_shardings"):
            if key in options:
                options = {**options, key: self.shardings(options[key])}
        leaves = jax.tree.leaves((args, kwargs))
        if not any(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves):
            # Only the results' shardings place the program.
            options = {"out_shardings": self.default, **options}
        jitted: Any = f if hasattr(f, "lower") and not options else jax.jit(f, **options)
        at = functools.partial(self.leaf, has_own="in_shardings" in options)
        return jitted.lower(*jax.tree.map(at, args), **jax.tree.map(at, kwargs))

    def leaf(self, leaf: Any, *, has_own: bool) -> Any:
        """An argument's leaf as an abstract array on the topology; other values as they are."""
        if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            return leaf
        sharding = getattr(leaf, "sharding", None)
        place = None if has_own and getattr(sharding, "mesh", None) is None else self.sharding(sharding)
        layout = getattr(getattr(leaf, "format", None), "layout", None)
        if isinstance(leaf, self.jax.ShapeDtypeStruct) and layout is not None and place is not None:
            place = type(leaf.format)(layout, place)
        weak = bool(getattr(leaf, "weak_type", False))
        return self.jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=place, weak_type=weak)


class TracedProgram:
    """A traced program, whatever devices its arguments, meshes and shardings are of, within it or without.

    JAX lowers it for those devices only, and has no public way to say others: they are replaced in its parts.
    """

    def __init__(self, jax: Any, traced: Any) -> None:
        self.jax = jax
        # Flax has its own class around JAX's.
        self._traced = getattr(traced, "traced", traced)
        self.parts = internals.Traced.of(self._traced)

    @classmethod
    def of(cls, jax: Any, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedProgram:
        if hasattr(f, "trace"):
            return cls(jax, f.trace(*args, **kwargs))
        leaves, tree = jax.tree.flatten((args, kwargs))
        numbers = [number for number, leaf in enumerate(leaves) if isinstance(leaf, jax.ShapeDtypeStruct)]
        abstract = [leaves[number] for number in numbers]
        if meshes_of(abstract):
            raise Error(
                f"{type(f).__name__} takes arrays only, not abstract ones with shardings",
                kind="abstract_sharding",
                help="give arrays, or a function that `jax.jit` has jitted",
            )
        found: list[Any] = []

        def lower(arrays: list[Any]) -> tuple[()]:
            for number, array in zip(numbers, arrays, strict=True):
                leaves[number] = array
            args, kwargs = jax.tree.unflatten(tree, leaves)
            found.extend(internals.captured(jax.stages.Traced, "lower", lambda: f.lower(*args, **kwargs)) or ())
            return ()

        # Equinox takes a leaf that isn't an array for a constant; functions are traced with arrays.
        jax.eval_shape(lower, abstract)
        if not found:
            raise internals.unknown(f"the `lower` of {type(f).__name__}")
        program = cls(jax, found[0])
        program.parts = _with_own_names(jax, program.parts, f, args, kwargs)
        return program

    def meshes(self) -> list[Any]:
        """Every mesh, abstract ones only of arguments and results."""
        found: list[Any] = []

        def one(value: Any) -> Any:
            if isinstance(value, self.jax.sharding.Mesh):
                found.append(value)
            elif getattr(value, "mesh", None) is not None:
                found.append(value.mesh)
            return value

        self._replaced(one)
        return [mesh for mesh in found if mesh.size > 0 and mesh.axis_names]

    def lower(self, place: Place) -> Any:
        def one(value: Any) -> Any:
            if isinstance(value, self.jax.sharding.Mesh):
                return place.mesh(value) if value.axis_names else value
            return place.sharding(value)

        parts = self._replaced(one)
        arguments, params = parts.arguments, parts.params
        for number, (argument, own) in enumerate(zip(arguments, params["in_shardings"], strict=True)):
            if internals.is_unspecified(own) and argument.sharding is None:
                arguments[number] = internals.placed(argument, place.default)
        if not arguments:
            # Only the results' shardings place the program.
            outs = params["out_shardings"]
            params["out_shardings"] = tuple(place.default if internals.is_unspecified(out) else out for out in outs)
        return parts.lowered(self._traced)

    def _replaced(self, one: Callable[[Any], Any]) -> internals.Traced:
        """The program's parts, with `one` applied to meshes and shardings."""

        def argument(old: Any) -> Any:
            has_mesh = getattr(old.sharding, "mesh", None) is not None
            return internals.placed(old, one(old.sharding) if has_mesh else None)

        # Jaxprs are shared, and lowered once each.
        seen: dict[int, tuple[Any, Any]] = {}
        containers: tuple[Any, ...] = (tuple, list, dict)

        def replaced(value: Any) -> Any:
            """A parameter of a jaxpr, as deep as it goes. Parts without meshes stay the same objects."""
            if isinstance(value, (self.jax.sharding.Mesh, self.jax.sharding.Sharding)):
                return one(value)
            if internals.is_jaxpr(value):
                if id(value) not in seen:
                    params = [each.params for each in value.eqns]
                    new = replaced(params)
                    seen[id(value)] = value, value if new is params else internals.with_params(value, new)
                return seen[id(value)][1]
            if value.__class__ not in containers:
                return value
            is_dict = hasattr(value, "values")
            old: list[Any] = list(value.values() if is_dict else value)
            items = [replaced(each) for each in old]
            if all(map(operator.is_, items, old)):
                return value
            return value.__class__(zip(value, items, strict=True) if is_dict else items)

        return internals.Traced([argument(each) for each in self.parts.arguments], dict(replaced(self.parts.params)))


_NUMBERED = re.compile(r"dynamic_(?:no)?donate\['(first|rest)'\]\[(\d+)\]")


def _with_own_names(
    jax: Any, traced: internals.Traced, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> internals.Traced:
    """The traced program with the function's names of its arguments, whose leaves Equinox numbers."""
    numbered = internals.argument_names(traced.params)
    if not any(map(_NUMBERED.fullmatch, numbered)):
        return traced
    bound = inspect.signature(f).bind(*args, **kwargs)
    labels: list[str] = []
    for name, value in bound.arguments.items():
        is_many = bound.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        labels += [f"{name}[{number}]" for number in range(len(value))] if is_many else [name]
    with_path, keystr = jax.tree_util.tree_leaves_with_path, jax.tree_util.keystr
    names: dict[str, list[str]] = {
        "first": [labels[0] + keystr(path[1:]) for path, _ in with_path(bound.args[:1])],
        "rest": [
            *(labels[1 + path[0].idx] + keystr(path[1:]) for path, _ in with_path(bound.args[1:])),
            *(path[0].key + keystr(path[1:]) for path, _ in with_path(bound.kwargs)),
        ],
    }

    def own(name: str) -> str:
        found = _NUMBERED.fullmatch(name)
        return name if found is None else names[found[1]][int(found[2])]

    params = internals.with_argument_names(traced.params, tuple(map(own, numbered)))
    return internals.Traced(traced.arguments, params)


def _exported_for(jax: Any, f: Any, mesh: Any) -> tuple[Any, ...]:
    """Abstract arguments of the shapes that a ``jax.export.Exported`` was exported for."""
    shardings: Iterator[Any] = iter(f.in_shardings_jax(mesh) if f.nr_devices > 1 else [None] * len(f.in_avals))
    leaves = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=next(shardings)) for a in f.in_avals]
    placed, named = jax.tree.unflatten(f.in_tree, leaves)
    if named:
        raise Error("a function that was exported with keyword arguments needs them: audit(exported, x, name=y)")
    return tuple(placed)
