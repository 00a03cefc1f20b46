"""Functions compiled for machines that aren't there: by `compile_for` in full, for `audit` as far as a plan."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.resources
import importlib.util
import inspect
import json
import os
import tempfile
import time
import weakref
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewise import _tilewise
from tilewise._base.errors import Error
from tilewise._base.files import cache_folder, write_whole
from tilewise._base.modules import module
from tilewise._base.progress import Ticker
from tilewise._compiler.libtpu import compiler_version
from tilewise._compiler.process import Answer, Mode, Sizes, exact_modes, report_of, shared
from tilewise._compiler.program import NotSendable, Program, sendable
from tilewise._explain import explain_oom
from tilewise._jax.dump import dumped, dumped_text, dumping
from tilewise._jax.lowering import Place, Request, lower_on, meshes_of

# Answers with another status may differ the next time.
_KEPT = ("fits", "planned", "refused", "other_memory")
_SURROUNDINGS = ("LIBTPU_INIT_ARGS", "XLA_FLAGS")


class Cache:
    """Answers by program, compiler, options and way of asking, in a folder; without one, none are kept."""

    def __init__(self, folder: Path | None, libtpu: str | None = None) -> None:
        self._folder, self._libtpu = folder, libtpu

    def asked(
        self, program: Program, mode: Mode, limit: int | None, ask: Callable[[], Answer], source: str | None = None
    ) -> tuple[Answer, bool]:
        """The answer of the last time, or that to a question which is kept; and whether it is the last time's."""
        if self._folder is None:
            return ask(), False
        surroundings = [os.environ.get(name, "") for name in _SURROUNDINGS]
        # A program for one device is the same on every generation.
        machine = [program.tpu, program.topology, program.devices]
        key = json.dumps([program.hash, *machine, mode, limit, compiler_version(self._libtpu), surroundings])
        # A file is whole or not there.
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.answer"
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, zlib.error):
            head, _, packed = path.read_bytes().partition(b"\n")
            held: dict[str, Any] = json.loads(head)
            if held["sizes"] is not None:
                held["sizes"] = Sizes(**held["sizes"])
            report = None
            if packed:
                text, assignment = json.loads(zlib.decompress(packed))
                report = report_of(text, source or program.name, program.tpu, limit, assignment, self._libtpu)
            return Answer(**held, report=report), True
        answer = ask()
        if answer.status in _KEPT:
            held, report = asdict(replace(answer, report=None)), answer.report
            del held["report"]
            made_of = None if report is None else json.dumps([report.text, report.buffer_assignment])
            packed = b"" if made_of is None else zlib.compress(made_of.encode())
            # A folder that can't be written to isn't a reason to fail.
            with contextlib.suppress(OSError):
                write_whole(path, json.dumps(held).encode() + b"\n" + packed)
        return answer, False


if TYPE_CHECKING:
    from jax.stages import Compiled as _Compiled

    from tilewise._base.types import Tpu
    from tilewise._tilewise import Report

# The lowered program of each result of `compile_for`: JAX can't print every one; the compiler dumps lowered ones.
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
        f: the function: plain, bound or partial; jitted by ``jax.jit``, ``jax.pmap``, Flax or Equinox; a result of
            ``jax.jit(f).trace(…)``; or a ``jax.export.Exported``, whose arguments are optional.
        args: its arguments, abstract (``jax.ShapeDtypeStruct``) or real. Meshes of their shardings, and those in the
            function, are laid out over the TPU's devices, whether they are abstract or of this machine's devices: by
            the devices' numbers. `mesh` makes one of the TPU's.
        tpu: the generation, under any of its names (``"v5e"``).
        topology: the slice, such as ``"v5e:4x4"``, or ``"v5e:4x4*2"`` for two; ``None`` for the smallest with enough
            devices for the meshes.
        jit_options: arguments of ``jax.jit``, such as ``{"donate_argnums": 0}``.
        kwargs: the function's keyword arguments. Pass those that share a name with the above by ``functools.partial``.

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
    _, lowered = lower_on(Request(f, args, tpu, topology, jit_options, kwargs=kwargs))
    compiled: _Compiled = lowered.compile()
    _LOWERED[compiled] = lowered
    return compiled


def lowered_of(compiled: Any) -> Any:
    """The lowered program that `compile_for` compiled into this; ``None`` if it was compiled elsewhere."""
    try:
        return _LOWERED.get(compiled)
    except TypeError:  # Not JAX's: it allows no weak reference.
        return None


@dataclass(frozen=True)
class Plan:
    """The compiler's plan of a function: its audit, its code's bytes if compiled in full, and the program."""

    report: Report
    code_bytes: int | None
    program: Program | None

    def with_source(self, request: Request) -> Plan:
        """With a report that quotes the function's file and the files below its folder, and that can be checked."""
        folder = _folder_of(request.f)
        report = self.report if folder is None else _tilewise.quoting(self.report, folder)
        _tilewise.set_origin(report, request.abstract())
        return replace(self, report=report)


def _folder_of(function: Any) -> str | None:
    """The folder of the file that has a function, whose lines the report may quote."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:
        return None
    return os.path.dirname(os.path.abspath(file)) if file is not None and os.path.isfile(file) else None


def plan_of(request: Request, *, hbm_limit: int | None = None, confirm: bool = False) -> Plan:
    """The plan of a function, also where it does not fit; JAX's error where it is refused for another reason."""
    f, tpu = request.f, request.tpu
    source = getattr(f, "__name__", type(f).__name__)
    begun = time.perf_counter()
    with shared(request.libtpu) as compiler:
        compiler.start()
        name, lowered = request.topology, getattr(f, "lowered", f)
        if not hasattr(lowered, "compile"):
            with Ticker(f"tracing {source}"):
                name, lowered = lower_on(request)
        try:
            program = sendable(lowered, request.generation, name, begun)
        except NotSendable:
            if compiler.libtpu is not None:
                message = (
                    f"libtpu {compiler.libtpu} runs in a process of its own, and this program calls back into this one"
                )
                raise Error(message, kind="not_sendable") from None
            # Compiled in full, in this process.
            with explain_oom(tpu=tpu):
                text = dumped(lowered)
            return Plan(report_of(text, source, request.generation, hbm_limit), None, None)
        mode: Mode = "full" if confirm or not exact_modes(compiler).stop else "stop"

        def ask() -> Answer:
            with Ticker(f"compiling {source} for {program.topology} with {compiler.version}"):
                return compiler.ask(program, mode, source=source, hbm_limit=hbm_limit)

        cache = Cache(cache_folder(), compiler.libtpu)
        answer, _ = cache.asked(program.with_lines, mode, hbm_limit, ask, source)
    report = answer.report
    is_late = confirm and answer.status == "refused" and report is not None and report.fits
    if answer.status == "failed" and compiler.libtpu is not None:
        message = f"{compiler.version} can't compile what JAX lowers here: {answer.error}"
        help = "JAX writes Pallas kernels for the libtpu of its own time; older ones may not read them"
        raise Error(message, kind="other_libtpu", help=help)
    if report is None or is_late or answer.status not in ("fits", "planned", "refused"):
        raised = module("jax").errors.JaxRuntimeError
        with explain_oom(tpu=tpu):
            raise raised(answer.error)
    return Plan(report, None if answer.sizes is None else answer.sizes.code_bytes, program)


_INSTALL = "pip install 'jax[cuda12]'"

# Autotuning needs the card.
_GPU_OPTIONS = {"xla_gpu_autotune_level": 0}


def report_on(machine: str, request: Request, hbm_limit: int | None) -> Report:
    """The audit of a function on a GPU or a CPU; an `Error` where this JAX can't compile for it."""
    name, _ = _tilewise.machine_name(machine)
    jax, f = module("jax"), request.f
    meshes = meshes_of((request.args, request.kwargs, request.options))
    needed = max((int(mesh.size) for mesh in meshes), default=1)
    devices = _cpus(jax, needed) if name == "cpu" else _gpus(name.partition(":")[2] or "h100", needed)
    lowered = Place(jax, devices, meshes).lowered(request)
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
