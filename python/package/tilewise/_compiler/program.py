"""A lowered program that can be sent to another process, and compiled there."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewise._base.errors import NotATpuProgram, Skip
from tilewise._base.modules import module
from tilewise._jax import internals
from tilewise._jax.lowering import Request, lower_on
from tilewise._jax.topologies import slice_with, topology_of

_UNUSED = "xla_tilewise_unused"
_NUMBERS = itertools.count()


class NotSendable(Exception):  # noqa: N818 - a property of the program, no mistake of anyone's
    """This JAX hands its programs to the compiler in another way, or the program calls back into this process."""


@dataclass(frozen=True)
class Program:
    """A program as JAX hands it to the compiler, for a slice that libtpu names, such as ``v5e:2x2``."""

    name: str
    tpu: str
    topology: str
    # StableHLO with source locations, as MLIR's bytecode; and the serialised options.
    module: bytes
    options: bytes
    # The numbers of the topology's devices that run it.
    devices: tuple[int, ...]
    # Of the StableHLO without locations, and of the options.
    hash: str
    trace_seconds: float

    @property
    def is_sharded(self) -> bool:
        return len(self.devices) > 1

    @property
    def with_lines(self) -> Program:
        """The program under a hash of the lines of its source, too, which reports name."""
        return replace(self, hash=hashlib.sha256(self.module + self.options).hexdigest())


def trace(request: Request) -> Program:
    """Trace and lower a function for a TPU, as `compile_for` does, without compiling it; see `sendable`."""
    begun = time.perf_counter()
    name, lowered = lower_on(request)
    return sendable(lowered, request.generation, name, begun)


def attempted(make: Callable[[], Any]) -> tuple[str, Any]:
    """A result, or the reason for its failure, behind its kind: ``traced``, or that of the failure."""
    try:
        return "traced", make()
    except NotSendable as error:
        return "not_sendable", str(error)
    except Skip as error:
        return "skipped", str(error)
    except (Exception, SystemExit) as error:
        return "untraceable", f"{type(error).__name__}: {error}"


def with_donations(request: Request) -> Request:
    """The request with its jitted function's donations among the options: an outer ``jax.jit`` doesn't see them."""
    if {"donate_argnums", "donate_argnames"} & set(request.options):
        return request
    jax, args = module("jax"), request.args
    equations = jax.make_jaxpr(request.f)(*args).jaxpr.eqns
    is_one = len(equations) == 1 and "donated_invars" in equations[0].params
    flags = iter(equations[0].params["donated_invars"] if is_one else ())
    held = [[next(flags, False) for _ in jax.tree.leaves(arg)] for arg in args]
    return request.with_options(donate_argnums=tuple(at for at, each in enumerate(held) if each and all(each)))


def sendable(lowered: Any, tpu: str, topology: str | None, begun: float) -> Program:
    """The program that JAX would hand to the compiler for ``lowered.compile()``; `NotSendable` where it can't go.

    It is lowered for devices of a topology or, with ``lowering_platforms=("tpu",)``, of any: then for the slice, or
    the smallest with enough. Tracing began when ``time.perf_counter()`` was `begun`.
    """
    handed = internals.handed(lowered, {_UNUSED: next(_NUMBERS)})
    if handed is None:
        raise NotSendable("JAX hands the program to the compiler in another way")
    computation, options, devices, calls_back = handed
    if calls_back:
        raise NotSendable("the program calls functions of this process")
    numbers = [int(device.id) for device in devices]
    of = topology_of(devices[0])
    if of is None:
        _check_platform(lowered, devices[0].platform)
        of, there = slice_with(tpu, topology, len(numbers))
        numbers = [int(device.id) for device in there[: len(numbers)]]
        internals.assign_devices(options, np.array(numbers).reshape(options.num_replicas, options.num_partitions))
    serialised = options.SerializeAsString()
    operation = computation.operation
    text = operation.get_asm(enable_debug_info=False)
    return Program(
        name=str(operation.attributes["sym_name"]).strip('"'),
        tpu=tpu,
        topology=of,
        module=internals.module_bytes(computation),
        options=serialised,
        devices=tuple(numbers),
        hash=hashlib.sha256(b"\0".join((text.encode(), serialised, of.encode()))).hexdigest(),
        trace_seconds=time.perf_counter() - begun,
    )


def _check_platform(lowered: Any, platform: str) -> None:
    """Refuses programs lowered for other machines: a TPU's would be another."""
    platforms = internals.platforms_of(lowered) or (platform,)
    if "tpu" not in platforms:
        raise NotATpuProgram(
            f"this {type(lowered).__name__} is lowered for {', '.join(platforms)}",
            kind="not_tpu",
            help="`audit(f, *args, tpu=…)` lowers and compiles the function for that TPU, and needs none; "
            "`jax.jit(f).trace(…).lower(lowering_platforms=('tpu',))` lowers it for any",
        )
