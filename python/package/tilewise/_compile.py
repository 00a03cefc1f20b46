"""`compile_for`, which compiles a function for a TPU without one."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import os
import threading
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from tilewise import _tilewise
from tilewise._device import abstract_device, asks_for_the_device
from tilewise._modules import module

if TYPE_CHECKING:
    from jax.stages import Compiled as _Compiled

    from tilewise._types import Tpu

_INSTALL = "pip install 'tilewise[tpu]'"

# Chips along each axis, by rising count; the last is the largest slice that the generation comes in.
_SQUARES = ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16", "16x32", "32x32")
_CUBES = ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16", "8x16x16", "16x16x16")
_SLICES = {
    "v2": ("v2", _SQUARES),
    "v3": ("v3", _SQUARES),
    "v4": ("v4", _CUBES),
    "v5e": ("v5e", _SQUARES[:7]),
    "v5p": ("v5p", _CUBES),
    "v6e": ("v6e", _SQUARES[:7]),
    "v7x": ("tpu7x", _CUBES),
}

# Without these, libtpu asks the machine's surroundings for a TPU, for minutes, and locks it against other processes.
ENVIRONMENT = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
}

_LOCK = threading.Lock()
_TOPOLOGIES: dict[str, tuple[Any, ...]] = {}


def compile_for(
    f: Callable[..., Any],
    /,
    *args: Any,
    tpu: Tpu,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
) -> _Compiled:
    """Compile a function for a TPU generation, on any Linux machine: no TPU is needed.

    Needs JAX and libtpu, the compiler: ``pip install 'tilewise[tpu]'``.

    Args:
        f: the function, or the result of ``jax.jit``.
        args: its arguments, abstract (``jax.ShapeDtypeStruct``) or real. A ``NamedSharding`` is laid out over the TPU's
            devices, whether its mesh is an ``AbstractMesh`` or one of this machine's devices.
        tpu: the generation, under any of its names (``"v5e"``).
        topology: the slice, such as ``"v5e:4x4"``; ``None`` for the smallest with enough devices for the arguments'
            meshes.
        jit_options: arguments of ``jax.jit``, such as ``{"donate_argnums": 0}``.

    Returns:
        A ``jax.stages.Compiled``: ``memory_analysis()`` and ``as_text()`` work, calling it does not.

    Raises:
        ImportError: JAX or libtpu is missing or too old.
        ParseError: ``tpu`` names no TPU generation.
        RuntimeError: libtpu can't start, for example since another process holds it.
        ValueError: there is no such topology, or none with enough devices.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> x = jax.ShapeDtypeStruct((400000, 12), jnp.float32)
        >>> compiled = compile_for(jnp.tanh, x, tpu="v5e")
        >>> compiled.memory_analysis().argument_size_in_bytes
        25600000
    """
    return lower_for(f, *args, tpu=tpu, topology=topology, jit_options=jit_options).compile()


def lower_for(
    f: Callable[..., Any],
    /,
    *args: Any,
    tpu: Tpu,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
) -> Any:
    """The function lowered for devices of a TPU."""
    return lower_on(f, *args, tpu=tpu, topology=topology, jit_options=jit_options)[1]


def lower_on(
    f: Callable[..., Any],
    /,
    *args: Any,
    tpu: Tpu,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
) -> tuple[str, Any]:
    """The slice that was picked, such as ``v5e:2x2``, and the function lowered for its devices."""
    generation = _tilewise.generation_name(tpu)
    jax = _jax()
    options = dict(jit_options or {})
    meshes = [mesh for value in (args, options) for mesh in meshes_of(value)]
    needed = max((mesh.size for mesh in meshes), default=1)
    slice_name, devices = _slice(generation, topology, needed)
    place = _Place(jax, devices, meshes)
    for name in ("in_shardings", "out_shardings"):
        if name in options:
            options[name] = place.shardings(options[name])
    leaves = jax.tree.leaves(args)
    if not any(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves):
        # Nothing else says where the program runs.
        options.setdefault("out_shardings", place.default)
    jitted: Any = f if hasattr(f, "lower") and not options else jax.jit(f, **options)
    placed = jax.tree.map(functools.partial(place.leaf, has_own="in_shardings" in options), args)
    try:
        return slice_name, jitted.lower(*placed)
    except Exception as error:
        # Pallas asks which TPU a kernel runs on, where it has blocks of one dimension or `emit_pipeline`.
        device = abstract_device(jax, generation) if asks_for_the_device(error) else None
        if device is None:
            raise
        with device:
            return slice_name, jitted.lower(*placed)


def _jax() -> Any:
    """JAX, which can compile for TPUs."""
    try:
        jax = module("jax")
        topologies = module("jax.experimental.topologies")
    except ImportError as error:
        message = f"compiling for a TPU needs JAX and libtpu: {_INSTALL}"
        raise ImportError(message) from error
    if not hasattr(topologies, "get_topology_desc") or not hasattr(jax.sharding, "AbstractMesh"):
        message = f"JAX {jax.__version__} is too old to compile for TPUs that aren't there: {_INSTALL}"
        raise ImportError(message)
    if importlib.util.find_spec("libtpu") is None and "TPU_LIBRARY_PATH" not in os.environ:
        message = f"compiling for a TPU needs libtpu, the compiler (Linux): {_INSTALL}"
        raise ImportError(message)
    return jax


def _slice(generation: str, topology: str | None, needed: int) -> tuple[str, tuple[Any, ...]]:
    """The name and devices of the topology, or of the smallest one that has enough."""
    prefix, slices = _SLICES[generation]
    devices: tuple[Any, ...] = ()
    for chips in slices if topology is None else (topology,):
        name = chips if ":" in chips else f"{prefix}:{chips}"
        devices = devices_of(name)
        if len(devices) >= needed:
            return name, devices
    have = f"no topology of {generation} as many" if topology is None else f"the topology {len(devices)}"
    message = f"the arguments' mesh has {needed} devices, {have}"
    raise ValueError(message)


def devices_in(tpu: str, topology: str | None) -> int:
    """How many devices a slice has; without a topology, the smallest slice of the generation."""
    return len(_slice(tpu, topology, 1)[1])


def devices_of(name: str) -> tuple[Any, ...]:
    """The devices of a topology, such as ``v5e:2x2``; libtpu is loaded with the first."""
    jax = module("jax")
    topologies = module("jax.experimental.topologies")
    # The environment is one for all threads.
    with _LOCK, _environment():
        if name not in _TOPOLOGIES:
            try:
                found = topologies.get_topology_desc(platform="tpu", topology_name=name)
            except (jax.errors.JaxRuntimeError, RuntimeError) as error:
                raise _explained(error, name) from error
            _TOPOLOGIES[name] = tuple(found.devices)
        return _TOPOLOGIES[name]


@contextlib.contextmanager
def _environment() -> Generator[None]:
    """What libtpu reads when it starts, where the user has not set it."""
    missing = {name: value for name, value in ENVIRONMENT.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            os.environ.pop(name, None)


def _explained(error: Exception, topology: str) -> Exception:
    text = str(error)
    if "already in use" in text or "lockfile" in text:
        message = (
            "another process holds libtpu. Set ALLOW_MULTIPLE_LIBTPU_LOAD=1 before JAX starts, or end that process; "
            f"if there is none, remove /tmp/libtpu_lockfile. libtpu says: {text}"
        )
        return RuntimeError(message)
    if "INVALID_ARGUMENT" in text or "topology" in text.lower():
        message = f"libtpu knows no topology {topology!r}: {text}"
        return ValueError(message)
    message = f"libtpu can't start: {text}"
    return RuntimeError(message)


def meshes_of(value: Any) -> list[Any]:
    """The meshes of all shardings in a tree."""
    jax = module("jax")

    def is_leaf(value: Any) -> bool:
        return isinstance(value, jax.sharding.Sharding)

    leaves = jax.tree.leaves(value, is_leaf=is_leaf)
    shardings: list[Any] = [leaf if hasattr(leaf, "mesh") else getattr(leaf, "sharding", None) for leaf in leaves]
    return [sharding.mesh for sharding in shardings if getattr(sharding, "mesh", None) is not None]


class _Place:
    """Where arguments lie: on the devices of a topology, arranged as the meshes that the arguments had."""

    def __init__(self, jax: Any, devices: tuple[Any, ...], meshes: list[Any]) -> None:
        self.jax, self.devices = jax, devices
        self.default = jax.sharding.SingleDeviceSharding(devices[0])
        if meshes:
            # What has no sharding of its own is on every device of the others.
            largest = max(meshes, key=lambda mesh: int(mesh.size))
            self.default = jax.sharding.NamedSharding(self.mesh(largest), jax.sharding.PartitionSpec())

    def mesh(self, mesh: Any) -> Any:
        """The mesh, of devices of the topology."""
        import numpy as np

        if isinstance(mesh, self.jax.sharding.Mesh) and mesh.devices.flat[0] in self.devices:
            return mesh
        sizes = tuple(mesh.axis_sizes)
        devices = np.array(self.devices[: math.prod(sizes)], dtype=object).reshape(sizes)
        return self.jax.sharding.Mesh(devices, mesh.axis_names, axis_types=mesh.axis_types)

    def sharding(self, sharding: Any) -> Any:
        """The sharding, over devices of the topology."""
        kind = getattr(sharding, "memory_kind", None)
        kind = kind if kind in ("device", "pinned_host") else None
        if getattr(sharding, "mesh", None) is not None:
            return self.jax.sharding.NamedSharding(self.mesh(sharding.mesh), sharding.spec, memory_kind=kind)
        return self.default if kind is None else self.default.with_memory_kind(kind)

    def shardings(self, tree: Any) -> Any:
        """The shardings and formats of a tree, as ``in_shardings`` takes it."""

        def one(value: Any) -> Any:
            if hasattr(value, "layout") and hasattr(value, "sharding"):
                return type(value)(value.layout, self.sharding(value.sharding))
            return self.sharding(value) if isinstance(value, self.jax.sharding.Sharding) else value

        def is_leaf(value: Any) -> bool:
            return hasattr(value, "sharding") or isinstance(value, self.jax.sharding.Sharding)

        return self.jax.tree.map(one, tree, is_leaf=is_leaf)

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
