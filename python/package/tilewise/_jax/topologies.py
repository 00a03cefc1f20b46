"""The devices of the TPU slices that libtpu compiles for; no TPU is needed."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import re
import threading
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewise._base.modules import module

if TYPE_CHECKING:
    from jax.sharding import Mesh as _Mesh

_INSTALL = "pip install 'tilewise[tpu]'"

# Chips along each axis, by rising count; the last is the largest slice that the generation comes in.
_SQUARES = ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16", "16x32", "32x32")
_CUBES = ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16", "8x16x16", "16x16x16")
_SLICES = {
    **dict.fromkeys(("v2", "v3"), _SQUARES),
    **dict.fromkeys(("v5e", "v6e"), _SQUARES[:7]),
    **dict.fromkeys(("v4", "v5p", "v7x"), _CUBES),
}
# Generations that libtpu names otherwise.
_PREFIXES = {"v7x": "tpu7x"}

# Without these, libtpu asks the machine's surroundings for a TPU, for minutes, and locks it against other processes.
ENVIRONMENT = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
}

# Variables of a process that only compiles, whatever the user has set.
ONLY_COMPILES = {
    # A TPU of this machine is not for it to take.
    "JAX_PLATFORMS": "cpu",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    # Without files in /tmp/tpu_logs.
    "TPU_LOG_DIR": "disabled",
}

_LOCK = threading.Lock()
_TOPOLOGIES: dict[str, tuple[Any, ...]] = {}


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
    if not isinstance(topology, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a topology is written as v5e:4x2, not {type(topology).__name__}")
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


def jax_for_tpus() -> Any:
    try:
        jax = module("jax")
        topologies = module("jax.experimental.topologies")
    except ImportError as error:
        raise ImportError(f"compiling for a TPU needs JAX and libtpu: {_INSTALL}") from error
    if not hasattr(topologies, "get_topology_desc") or not hasattr(jax.sharding, "AbstractMesh"):
        raise ImportError(f"JAX {jax.__version__} is too old to compile for TPUs that aren't there: {_INSTALL}")
    if importlib.util.find_spec("libtpu") is None and "TPU_LIBRARY_PATH" not in os.environ:
        raise ImportError(f"compiling for a TPU needs libtpu, the compiler (Linux): {_INSTALL}")
    return jax


def slice_with(generation: str, topology: str | None, needed: int) -> tuple[str, tuple[Any, ...]]:
    """The name and devices of the topology, or of the smallest one that has enough."""
    devices: tuple[Any, ...] = ()
    for chips in _SLICES[generation] if topology is None else (topology,):
        name = chips if ":" in chips else f"{_PREFIXES.get(generation, generation)}:{chips}"
        devices = devices_of(name)
        if len(devices) >= needed:
            return name, devices
    have = f"no topology of {generation} as many" if topology is None else f"the topology {len(devices)}"
    raise ValueError(f"the program's mesh has {needed} devices, {have}")


def slice_of(mesh: Any) -> tuple[str, tuple[Any, ...]] | None:
    if not isinstance(mesh, module("jax").sharding.Mesh) or mesh.devices.flat[0].platform != "tpu":
        return None
    name = topology_of(mesh.devices.flat[0])
    return None if name is None else (name, devices_of(name))


def topology_of(device: Any) -> str | None:
    """The topology that a device is of; ``None`` if none that this process has asked for."""
    return next((name for name, devices in list(_TOPOLOGIES.items()) if device in devices), None)


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
    """Sets the variables that libtpu reads when it starts, unless the user has set them."""
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
        return ValueError(f"libtpu knows no topology {topology!r}: {text}")
    return RuntimeError(f"libtpu can't start: {text}")
