"""Functions compiled for GPUs and CPUs, in this process and without the GPU."""

from __future__ import annotations

import importlib.resources
import importlib.util
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from tilewise import _tilewise
from tilewise._base.errors import Error
from tilewise._base.modules import module
from tilewise._jax.dump import dumped_text, dumping
from tilewise._jax.lowering import Place, meshes_of
from tilewise._tilewise import Report

_INSTALL = "pip install 'jax[cuda12]'"

# Autotuning needs the card.
_GPU_OPTIONS = {"xla_gpu_autotune_level": 0}


def report_on(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: dict[str, Any],
    *,
    machine: str,
    hbm_limit: int | None,
) -> Report:
    """The audit of a function on a GPU or a CPU; an `Error` where this JAX can't compile for it."""
    name, _ = _tilewise.machine_name(machine)
    jax = module("jax")
    meshes = meshes_of((args, kwargs, options))
    needed = max((int(mesh.size) for mesh in meshes), default=1)
    devices = _cpus(jax, needed) if name == "cpu" else _gpus(name.partition(":")[2] or "h100", needed)
    lowered = Place(jax, devices, meshes).lowered(f, args, kwargs, options)
    text = _text(lowered, {} if name == "cpu" else _GPU_OPTIONS)
    return _tilewise.audit_text(text, getattr(f, "__name__", type(f).__name__), None, hbm_limit, name)


def _text(lowered: Any, options: Mapping[str, Any]) -> str:
    """The text of the compiled program; older versions of JAX keep none of a GPU's, and it is their dump's."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = lowered.compile({**options, **dumping(folder)})
        text = compiled.as_text() or dumped_text(folder)
    if text is None:
        raise Error("JAX keeps no text of this program", kind="no_text", help=f"a newer JAX does: {_INSTALL}")
    return str(text)


def _cpus(jax: Any, needed: int) -> tuple[Any, ...]:
    devices = tuple(jax.devices("cpu"))
    if len(devices) < needed:
        raise Error(
            f"the arguments' mesh has {needed} devices, and JAX has {len(devices)} of the CPU",
            kind="too_few_devices",
            help=f"`jax.config.update('jax_num_cpu_devices', {needed})`, before JAX is used, makes as many",
        )
    return devices


def _gpus(card: str, needed: int) -> tuple[Any, ...]:
    topologies = module("jax.experimental.topologies")
    has_plugin = any(importlib.util.find_spec(f"jax_cuda{version}_plugin") for version in (12, 13))
    if not has_plugin or not hasattr(topologies, "get_topology_desc"):
        message = "compiling for a GPU needs JAX's plugin for them, which works without a card"
        raise Error(message, kind="needs_gpu_compiler", help=_INSTALL)
    # The card's description in XLA's own repository (`xla/backends/gpu/target_config/specs`).
    described = importlib.resources.files("tilewise").joinpath(f"gpus/{card}.pbtxt").read_text(encoding="utf-8")
    try:
        found = topologies.get_topology_desc(platform="cuda", target_config=described, topology=f"1x1x{needed}")
    except Exception as error:
        message = f"JAX's plugin for GPUs does not start: {error}"
        raise Error(message, kind="needs_gpu_compiler", help=_INSTALL) from error
    return tuple(found.devices)
