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
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from tilewise._base.modules import module
from tilewise._compiler.program import Program, attempted
from tilewise._jax import internals
from tilewise._jax.dump import dumping
from tilewise._jax.topologies import devices_of

PASSED = "after_optimizations_after_buffer_assignment.txt"
"""Suffix of the file that libtpu writes once it has found that the program fits, before generating code."""

_POLL_SECONDS = 0.004


Reply: TypeAlias = Callable[..., None]
"""Sends a reply of a kind, with its fields."""

Request: TypeAlias = Callable[[Reply], Any]
"""A function that replies: of this module, with its other arguments."""


def main(file: int, folder: str) -> None:
    """Answer requests until the connection ends; then the folder, which is this process's, is removed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection: Connection[tuple[str, Any], Any] = Connection(file)
    requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(connection, requests, folder), daemon=True).start()
    lock = threading.Lock()

    def reply(kind: str, **fields: Any) -> None:
        with lock:
            connection.send((kind, fields))

    while True:
        requests.get()(reply)


def _read(connection: Connection[Any, Any], requests: queue.SimpleQueue[Request], folder: str) -> None:
    while True:
        try:
            requests.put(connection.recv())
        except (EOFError, ConnectionResetError):
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)
        except Exception as error:
            # The user's factory may not be importable here.
            requests.put(functools.partial(unread, f"{type(error).__name__}: {error}"))


def unread(words: str, reply: Reply) -> None:
    reply("untraceable", made=words, error=words)


def start(reply: Reply) -> None:
    """Load the compiler, which takes seconds the first time."""
    module("jax")
    module("jax.experimental.topologies")
    reply("ready")


def trace(make: Callable[[], Program], reply: Reply) -> None:
    """Call a function that returns a `Program`."""
    kind, made = attempted(make)
    reply(kind, made=made)


def compile_for(program: Program, folder: str, options: dict[str, Any], reply: Reply) -> None:
    """Compile a program, with further options and dumps into a folder; a first reply says that it fits."""
    jax = module("jax")
    found = {device.id: device for device in devices_of(program.topology)}
    devices = [found[number] for number in program.devices]
    compile_it = internals.compiled(program.module, program.options, {**dumping(folder), **options}, devices)
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(program.name, folder, reply, over), daemon=True)
    watcher.start()
    compiled, refused = None, ""
    try:
        compiled = compile_it()
    except (jax.errors.JaxRuntimeError, ValueError, NotImplementedError) as error:
        refused = str(error)
    over.set()
    watcher.join()
    if compiled is None:
        reply("error", error=refused)
        return
    said = compiled.get_compiled_memory_stats()
    kinds = ("argument", "output", "alias", "temp", "generated_code")
    sizes = tuple(getattr(said, f"{kind}_size_in_bytes") for kind in kinds)
    reply("compiled", sizes=sizes, cost=_cost(compiled))


def _watch(name: str, folder: str, reply: Reply, over: threading.Event) -> None:
    begun, done = time.perf_counter(), False
    while not done:
        # Once more when all is over.
        done = over.wait(_POLL_SECONDS)
        # Helpers that the compiler compiles on the way have other names.
        if any(name in file and file.endswith(f".{PASSED}") for file in os.listdir(folder)):
            reply("passed", seconds=time.perf_counter() - begun)
            return


def _cost(compiled: Any) -> dict[str, float] | None:
    try:
        return {name: float(value) for name, value in compiled.cost_analysis().items()}
    except Exception:
        # It is the compiler's business whether it gives one.
        return None
