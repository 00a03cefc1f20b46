"""`compile_for`, which compiles a function for a TPU without one, and the topologies it compiles for."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import math
import os
import re
import threading
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewise import _tilewise
from tilewise._device import abstract_device, asks_for_the_device
from tilewise._errors import NotATpuProgram
from tilewise._modules import module
from tilewise._place import Place, TracedProgram, exported, meshes_of

if TYPE_CHECKING:
    from jax.sharding import Mesh as _Mesh
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
# What `compile_for` compiled: JAX can't print every program, and the compiler's dump is of what was lowered.
_LOWERED: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def compile_for(
    f: Callable[..., Any],
    /,
    *args: Any,
    tpu: Tpu,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> _Compiled:
    """Compile a function for a TPU generation, on any Linux machine: no TPU is needed.

    Needs JAX and libtpu, the compiler: ``pip install 'tilewise[tpu]'``.

    Args:
        f: the function: plain, bound or partial; jitted by ``jax.jit``, ``jax.pmap``, Flax or Equinox; what
            ``jax.jit(f).trace(…)`` returns; or a ``jax.export.Exported``, whose arguments are optional.
        args: its arguments, abstract (``jax.ShapeDtypeStruct``) or real. Meshes of their shardings, and those in the
            function, are laid out over the TPU's devices, whether they are abstract or of this machine's devices: by
            the devices' numbers. `mesh` makes one of the TPU's.
        tpu: the generation, under any of its names (``"v5e"``).
        topology: the slice, such as ``"v5e:4x4"``, or ``"v5e:4x4*2"`` for two; ``None`` for the smallest with enough
            devices for the meshes.
        jit_options: arguments of ``jax.jit``, such as ``{"donate_argnums": 0}``.
        kwargs: the function's keyword arguments. Those that are named like the above, ``functools.partial`` takes.

    Returns:
        A ``jax.stages.Compiled``: ``memory_analysis()`` and ``as_text()`` work, calling it does not.

    Raises:
        ImportError: JAX or libtpu is missing or too old.
        NotATpuProgram: the function was exported or lowered for another machine.
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
    _, lowered = lower_on(f, args, kwargs, tpu=tpu, topology=topology, jit_options=jit_options)
    compiled: _Compiled = lowered.compile()
    _LOWERED[compiled] = lowered
    return compiled


def lowered_of(compiled: Any) -> Any:
    """What `compile_for` compiled into this; ``None`` for what was compiled elsewhere."""
    try:
        return _LOWERED.get(compiled)
    except TypeError:  # Nothing of JAX: no weak reference can be made to it.
        return None


def mesh(topology: str, axis_names: Sequence[str] | str, *, shape: Sequence[int] | None = None) -> _Mesh:
    """A mesh of a slice's devices, for functions that need one with devices: no TPU is needed.

    Args:
        topology: the slice, such as ``"v5e:4x2"``, or ``"v5e:4x4*2"`` for two.
        axis_names: the names of the mesh's axes.
        shape: the axes' sizes; by default those of the slice, where it has as many, and for one axis all devices.

    Raises:
        ImportError: JAX or libtpu is missing or too old.
        ValueError: there is no such topology, or it has another number of devices.

    Examples:
        >>> devices = mesh("v5e:4x2", ("data", "model"))
        >>> devices.shape["data"], devices.shape["model"]
        (4, 2)
    """
    jax = jax_for_tpus()
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    devices = devices_of(topology)
    if shape is None:
        sizes = [int(size) for size in re.findall(r"\d+", topology.partition(":")[2].partition("*")[0])]
        shape = (len(devices),) if len(names) == 1 else sizes
    if len(shape) != len(names) or math.prod(shape) != len(devices):
        message = f"{topology} has {len(devices)} devices, which do not make a mesh {tuple(shape)} of axes {names}"
        raise ValueError(f"{message}: say shape=…")
    made: _Mesh = jax.sharding.Mesh(np.array(devices, dtype=object).reshape(tuple(shape)), names)
    return made


def lower_on(
    f: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    tpu: Tpu,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
) -> tuple[str, Any]:
    """The slice that was picked, such as ``v5e:2x2``, and the function lowered for its devices."""
    generation = _tilewise.generation_name(tpu)
    jax = jax_for_tpus()
    request = _Request(jax, generation, topology)
    named = dict(kwargs or {})
    if isinstance(f, module("jax.export").Exported):
        if "tpu" not in f.platforms:
            raise NotATpuProgram(
                f"{f.fun_name} was exported for {', '.join(f.platforms)}",
                kind="not_tpu",
                help="`jax.export.export(jax.jit(f), platforms=['tpu'])` exports for TPUs, and needs none",
            )
        _, devices = slice_with(generation, topology, f.nr_devices)
        args = exported(jax, f, args, jax.sharding.Mesh(np.array(devices[: f.nr_devices]), "devices"))
        f = f.call
    try:
        return request.lowered(f, args, named, dict(jit_options or {}))
    except Exception as error:
        # Pallas asks which TPU a kernel runs on, where it has blocks of one dimension or `emit_pipeline`.
        device = abstract_device(generation) if asks_for_the_device(error) else None
        if device is None:
            raise
        with device:
            return request.lowered(f, args, named, dict(jit_options or {}))


class _Request:
    """The TPU that something is lowered for."""

    def __init__(self, jax: Any, generation: str, topology: str | None) -> None:
        self.jax, self.generation, self.topology = jax, generation, topology

    def slice(self, meshes: list[Any]) -> tuple[str, tuple[Any, ...]]:
        """The topology, and its devices: the one that is named, the meshes' own, or the smallest with enough."""
        own = None if self.topology else next(filter(None, map(_slice_of, meshes)), None)
        return own or slice_with(self.generation, self.topology, max((mesh.size for mesh in meshes), default=1))

    def lowered(
        self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: dict[str, Any]
    ) -> tuple[str, Any]:
        """Lowered for it: as it is with arguments there, or moved there once it is traced."""
        jax = self.jax
        is_plain = not hasattr(f, "lower")
        if is_plain or (options and not isinstance(f, jax.stages.Traced)) or type(f) is type(jax.jit(_nothing)):
            try:
                return self._placed(f, args, kwargs, options)
            except (ValueError, TypeError) as error:
                # JAX names the devices of meshes in the function that are not the arguments'.
                if "device" not in str(error).lower() and "mesh" not in str(error).lower():
                    raise
            f = jax.jit(f, **options) if is_plain or options else f
        if isinstance(f, jax.stages.Traced) or hasattr(f, "jit_wrapped"):
            return self._moved(TracedProgram(jax, f))
        return self._moved(TracedProgram.of(jax, f, args, kwargs))

    def _placed(
        self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: dict[str, Any]
    ) -> tuple[str, Any]:
        """Lowered with arguments that lie on the TPU."""
        jax = self.jax
        meshes = meshes_of((args, kwargs, options))
        name, devices = self.slice(meshes)
        place = Place(jax, devices, meshes)
        for key in ("in_shardings", "out_shardings"):
            if key in options:
                options = {**options, key: place.shardings(options[key])}
        leaves = jax.tree.leaves((args, kwargs))
        if not any(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves):
            # Nothing else says where the program runs.
            options = {"out_shardings": place.default, **options}
        jitted: Any = f if hasattr(f, "lower") and not options else jax.jit(f, **options)
        at = functools.partial(place.leaf, has_own="in_shardings" in options)
        return name, jitted.lower(*jax.tree.map(at, args), **jax.tree.map(at, kwargs))

    def _moved(self, traced: TracedProgram) -> tuple[str, Any]:
        """Lowered as it was traced, with other devices."""
        meshes = traced.meshes()
        name, devices = self.slice(meshes)
        return name, traced.lower(Place(self.jax, devices, meshes))


def _nothing() -> None:
    """A function to jit."""


def jax_for_tpus() -> Any:
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


def slice_with(generation: str, topology: str | None, needed: int) -> tuple[str, tuple[Any, ...]]:
    """The name and devices of the topology, or of the smallest one that has enough."""
    prefix, slices = _SLICES[generation]
    devices: tuple[Any, ...] = ()
    for chips in slices if topology is None else (topology,):
        name = chips if ":" in chips else f"{prefix}:{chips}"
        devices = devices_of(name)
        if len(devices) >= needed:
            return name, devices
    have = f"no topology of {generation} as many" if topology is None else f"the topology {len(devices)}"
    message = f"the program's mesh has {needed} devices, {have}"
    raise ValueError(message)


def devices_in(tpu: str, topology: str | None) -> int:
    """How many devices a slice has; without a topology, the smallest slice of the generation."""
    return len(slice_with(tpu, topology, 1)[1])


def _slice_of(mesh: Any) -> tuple[str, tuple[Any, ...]] | None:
    """The topology whose devices a mesh has."""
    if not isinstance(mesh, module("jax").sharding.Mesh) or mesh.devices.flat[0].platform != "tpu":
        return None
    devices = mesh.devices
    return next(((name, devices_of(name)) for name in known_topologies() if devices.flat[0] in devices_of(name)), None)


def known_topologies() -> list[str]:
    """The topologies that were asked for in this process."""
    return list(_TOPOLOGIES)


def devices_of(name: str) -> tuple[Any, ...]:
    """The devices of a topology, such as ``v5e:2x2``, or ``v5e:2x2*2`` for two slices. The first loads libtpu."""
    jax = module("jax")
    topologies = module("jax.experimental.topologies")
    # The environment is one for all threads.
    with _LOCK, _environment():
        if name not in _TOPOLOGIES:
            try:
                chips, _, slices = name.partition("*")
                several = {"num_slices": int(slices)} if slices else {}
                found = topologies.get_topology_desc(platform="tpu", topology_name=chips, **several)
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
