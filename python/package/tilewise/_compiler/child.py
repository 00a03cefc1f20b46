"""The process that asks the compiler, so that a crash, an endless compilation or a stopped one ends nothing else.

`_compiler` starts it, sends requests and reads replies through a connection. It ends with the connection, even while it
is compiling.
"""

from __future__ import annotations

import functools
import os
import queue
import shutil
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from tilewise._base.modules import module
from tilewise._compiler.program import Program, attempted
from tilewise._jax import internals
from tilewise._jax.dump import dumping
from tilewise._jax.topologies import devices_of

Reply: TypeAlias = tuple[str, dict[str, Any]]
"""A reply's kind, and its fields."""


def main(file: int, folder: str) -> None:
    """Answer requests until the connection ends; then the folder, which is this process's, is removed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection: Connection[tuple[str, Any], Any] = Connection(file)
    requests: queue.SimpleQueue[Callable[[], Reply]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(connection, requests, folder), daemon=True).start()
    while True:
        connection.send(requests.get()())


def _read(connection: Connection[Any, Any], requests: queue.SimpleQueue[Callable[[], Reply]], folder: str) -> None:
    while True:
        try:
            requests.put(connection.recv())
        except (EOFError, ConnectionResetError):
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)
        except Exception as error:
            # The user's factory may not be importable here.
            requests.put(functools.partial(unread, f"{type(error).__name__}: {error}"))


def unread(words: str) -> Reply:
    return "untraceable", {"made": words, "error": words}


def start() -> Reply:
    """Load the compiler, which takes seconds the first time."""
    module("jax")
    module("jax.experimental.topologies")
    return "ready", {}


def trace(make: Callable[[], Program]) -> Reply:
    """Call a function that returns a `Program`."""
    kind, made = attempted(make)
    return kind, {"made": made}


def compile_for(program: Program, folder: str, options: dict[str, Any]) -> Reply:
    """Compile a program, with further options and dumps into a folder."""
    jax = module("jax")
    found = {device.id: device for device in devices_of(program.topology)}
    devices = [found[number] for number in program.devices]
    compile_it = internals.compiled(program.module, program.options, {**dumping(folder), **options}, devices)
    try:
        compiled = compile_it()
    except (jax.errors.JaxRuntimeError, ValueError, NotImplementedError) as error:
        return "error", {"error": str(error)}
    said = compiled.get_compiled_memory_stats()
    kinds = ("argument", "output", "alias", "temp", "generated_code")
    sizes = tuple(getattr(said, f"{kind}_size_in_bytes") for kind in kinds)
    return "compiled", {"sizes": sizes, "cost": _cost(compiled)}


def _cost(compiled: Any) -> dict[str, float] | None:
    try:
        return {name: float(value) for name, value in compiled.cost_analysis().items()}
    except Exception:
        # It is the compiler's business whether it gives one.
        return None
