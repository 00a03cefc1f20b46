"""The process that asks the compiler, so that a crash, an endless compilation or a stopped one ends nothing else.

`_compiler` starts it, sends requests and reads replies through a connection. It ends with the connection, even while it
is compiling.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from tilewise import _internals
from tilewise._dump import dumping
from tilewise._modules import module
from tilewise._program import Program, attempted

PASSED = "after_optimizations_after_buffer_assignment.txt"
"""Suffix of the file that libtpu writes once it has found that the program fits, before generating code."""

_POLL_SECONDS = 0.004


def main(file: int, folder: str) -> None:
    """Answer requests until the connection ends; then the folder, which is this process's, is removed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection: Connection[tuple[str, Any], Any] = Connection(file)
    requests: queue.SimpleQueue[Callable[[Replies], Any]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(connection, requests, folder), daemon=True).start()
    replies = Replies(connection)
    while True:
        requests.get()(replies)


def _read(connection: Connection[Any, Any], requests: queue.SimpleQueue[Callable[[Replies], Any]], folder: str) -> None:
    while True:
        try:
            requests.put(connection.recv())
        except (EOFError, ConnectionResetError):
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)
        except Exception as error:
            # The user's factory may not be importable here.
            requests.put(Raised(type(error).__name__, str(error)))


class Replies:
    def __init__(self, connection: Connection[Any, Any]) -> None:
        self._connection, self._lock = connection, threading.Lock()

    def send(self, kind: str, **fields: Any) -> None:
        with self._lock:
            self._connection.send((kind, fields))


class Raised:
    """A request that can't be read."""

    def __init__(self, error: str, message: str) -> None:
        self.error, self.message = error, message

    def __call__(self, replies: Replies) -> None:
        words = f"{self.error}: {self.message}"
        replies.send("untraceable", made=words, error=words)


class Start:
    """Load the compiler, which takes seconds the first time."""

    def __call__(self, replies: Replies) -> None:
        module("jax")
        module("jax.experimental.topologies")
        replies.send("ready")


class Trace:
    """Call a function that returns a `Program`."""

    def __init__(self, make: Callable[[], Program]) -> None:
        self.make = make

    def __call__(self, replies: Replies) -> None:
        kind, made = attempted(self.make)
        replies.send(kind, made=made)


class Compile:
    """Compile a program, with further options, and dump it on the way."""

    def __init__(self, program: Program, folder: str, options: dict[str, Any]) -> None:
        self.program, self.folder, self.options = program, folder, options

    def __call__(self, replies: Replies) -> None:
        """Reply once the program is known to fit, and again when it is compiled; or with the compiler's words."""
        from tilewise._topologies import devices_of

        jax = module("jax")
        program = self.program
        found = {device.id: device for device in devices_of(program.topology)}
        devices = [found[number] for number in program.devices]
        ours = {**dumping(self.folder), **self.options}
        compile_it = _internals.compiled(program.module, program.options, ours, devices)
        begun = time.perf_counter()
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(replies, over, begun), daemon=True)
        watcher.start()
        compiled, refused = None, ""
        try:
            compiled = compile_it()
        except (jax.errors.JaxRuntimeError, ValueError, NotImplementedError) as error:
            refused = str(error)
        over.set()
        watcher.join()
        if compiled is None:
            replies.send("error", error=refused)
            return
        said = compiled.get_compiled_memory_stats()
        replies.send(
            "compiled",
            sizes=(
                said.argument_size_in_bytes,
                said.output_size_in_bytes,
                said.alias_size_in_bytes,
                said.temp_size_in_bytes,
                said.generated_code_size_in_bytes,
            ),
            cost=_cost(compiled),
        )

    def _watch(self, replies: Replies, over: threading.Event, begun: float) -> None:
        end = f".{PASSED}"
        done = False
        while not done:
            # Once more when all is over.
            done = over.wait(_POLL_SECONDS)
            # Helpers that the compiler compiles on the way have other names.
            if any(self.program.name in name and name.endswith(end) for name in os.listdir(self.folder)):
                replies.send("passed", seconds=time.perf_counter() - begun)
                return


def _cost(compiled: Any) -> dict[str, float] | None:
    try:
        return {name: float(value) for name, value in compiled.cost_analysis().items()}
    except Exception:
        # It is the compiler's business whether it gives one.
        return None
