"""The compiler's answer on a program's memory, as early as possible.

libtpu lays out, fuses, schedules, rematerialises and assigns buffers, compares their sum with the HBM, dumps the
program, and generates code only then, which is nearly all of the time. So there are three ways to ask:

- ``full``: compile it. A program that does not fit is refused early, with its plan;
- ``stop``: compile it at the real limit, and end the process once the plan is dumped;
- ``probe``: lower the limit, so that everything is refused with its plan, and the process can go on. It is exact on one
  chip where the compiler does not rematerialise: a tight limit changes schedules of sharded programs.

``probe`` rests on undocumented options and ``stop`` on the order of dumps: `canary` tries both on a small program.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.metadata
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from tilewise import _tilewise
from tilewise._base.errors import MessageError
from tilewise._base.files import cache_folder, write_whole
from tilewise._base.modules import module
from tilewise._compiler import child
from tilewise._compiler.libtpu import compiler_version, library, libtpu_version, other_version
from tilewise._compiler.program import NotSendable, Program, trace
from tilewise._jax.dump import dumped_text
from tilewise._jax.lowering import Request
from tilewise._jax.topologies import ENVIRONMENT, ONLY_COMPILES
from tilewise._tilewise import Report

Mode: TypeAlias = Literal["probe", "stop", "full"]
Status: TypeAlias = Literal[
    "fits", "planned", "refused", "other_memory", "untraceable", "skipped", "failed", "crashed", "timeout"
]

own_sessions = True
"""Whether workers lead a session each, so that Ctrl-C is for this process to handle. A server's end with its group."""

PREFIX = "tilewise-compiler-"
"""Prefix of the workers' folders, which the temporary folder has only while they run."""

_PROBE = {"xla_tpu_max_hbm_size_mib": 64, "xla_tpu_rematerialization_min_size_in_bytes": 2**60}

_LAST_WORDS = 4096
_PASSED = ".after_optimizations_after_buffer_assignment.txt"
_POLL_SECONDS = 0.004

_START_SECONDS = 300.0
_IDLE_SECONDS = 60.0

_GRACE_SECONDS, _GRACE_SHARE = 0.75, 0.1


@dataclass(frozen=True)
class Sizes:
    """Bytes of a program on one device, as ``memory_analysis()`` has them; code where it was compiled in full."""

    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temporary_bytes: int
    # No plan tells it.
    code_bytes: int | None = field(default=None, compare=False)

    @property
    def total_bytes(self) -> int:
        return self.argument_bytes + self.output_bytes - self.alias_bytes + self.temporary_bytes

    @classmethod
    def planned(cls, report: Report) -> Sizes | None:
        """Those of a plan; ``None`` where the program is not scheduled."""
        if report.temporary_bytes is None:
            return None
        return cls(report.argument_bytes, report.output_bytes, report.alias_bytes, report.temporary_bytes)


@dataclass(frozen=True)
class Answer:
    """The compiler's answer on a program, whose status is one of `FitRow`'s, with the audit of its plan."""

    status: Status
    mode: Mode
    # The compiler's where it was compiled, else the plan's.
    sizes: Sizes | None = None
    # The bytes needed, by the message.
    message_bytes: int | None = None
    error: str | None = None
    report: Report | None = None
    # Whether the plan was dumped, and found to fit, before code was generated.
    passed: bool = False
    cost: Mapping[str, float] | None = None
    seconds: float = 0.0


class _Ended(Exception):  # noqa: N818 - an event
    def __init__(self, status: Status, words: str) -> None:
        super().__init__(words)
        self.status: Status = status
        self.words = words


class _Worker:
    """A process of `child`, and a folder that goes with it."""

    def __init__(self, libtpu: str | None) -> None:
        own = {} if libtpu is None else {"TPU_LIBRARY_PATH": str(library(libtpu))}
        self.folder = tempfile.mkdtemp(prefix=PREFIX)
        try:
            self._start({**ENVIRONMENT, **os.environ, **ONLY_COMPILES, **own})
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self._is_ready = False
        self.send(child.start)

    def _start(self, environment: Mapping[str, str]) -> None:
        self._connection, theirs = multiprocessing.Pipe()
        call = f"from tilewise._compiler import child; child.main({theirs.fileno()}, {self.folder!r})"
        with theirs, open(Path(self.folder) / "output", "wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {call}"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                pass_fds=[theirs.fileno()],
                start_new_session=own_sessions,
            )

    def send(self, request: Callable[[], child.Reply]) -> None:
        # The reply says that the process died.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._connection.send(request)

    def wait(self) -> None:
        """Until the process has started, which nothing that is asked of it is to blame for."""
        if not self._is_ready:
            self.reply(time.monotonic() + _START_SECONDS)
            self._is_ready = True

    def has_reply(self, deadline: float | None) -> bool:
        """Waits for a reply until then."""
        return self._connection.poll(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def reply(self, deadline: float | None) -> child.Reply:
        """The next reply; `_Ended` if the process died, or the deadline passed."""
        try:
            if not self.has_reply(deadline):
                raise _Ended("timeout", "too slow")
            reply: child.Reply = self._connection.recv()
        except (EOFError, ConnectionResetError):
            raise _Ended("crashed", self._last_words()) from None
        return reply

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        code = self._process.returncode
        how = f"exit status {code}"
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = signal.Signals(-code).name
        # Its output may be of any length.
        with open(Path(self.folder) / "output", "rb") as printed:
            printed.seek(max(0, printed.seek(0, os.SEEK_END) - _LAST_WORDS))
            said = printed.read().decode(errors="replace").strip().splitlines()
        return "; ".join([f"the process died: {how}", *said[-1:]])

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._connection.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Compiler:
    """Asks libtpu in a process of its own, which is started when it is needed, and again when it had to be ended.

    Use it as a context manager, or call `close`: nothing is left behind. One that works ahead starts a second process
    whenever the first may have to be ended.
    """

    def __init__(self, *, ahead: bool = False, libtpu: str | None = None) -> None:
        self._ahead, self.libtpu = ahead, other_version(libtpu)
        # The one that is asked, and the one that works ahead.
        self._workers: list[_Worker] = []
        self._cancelled = False
        self._lock = threading.Lock()

    def __enter__(self) -> Compiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cancel(self) -> None:
        """End the process from another thread, for good; whoever waits for its answer is interrupted."""
        self._cancelled = True
        for worker in list(self._workers):
            worker.end()

    def start(self) -> None:
        """Start the process now: by the time it is needed, it is there."""
        if self._cancelled:
            raise KeyboardInterrupt
        if not self._workers:
            self._workers.append(_Worker(self.libtpu))

    @property
    def version(self) -> str:
        return compiler_version(self.libtpu)

    def trace(self, make: Callable[[], Program], timeout: float | None = None) -> Program | Answer:
        """The program that a picklable function returns, called in the process; an answer where it raised or died."""
        with self._lock, self._ending():
            try:
                worker = self._ready()
                worker.send(functools.partial(child.trace, make))
                kind, fields = worker.reply(_deadline(timeout))
            except _Ended as ended:
                self._end()
                return Answer(ended.status, "full", error=f"tracing: {ended.words}")
        made: Program | Answer = traced(kind, fields["made"])
        return made

    def ask(
        self,
        program: Program,
        mode: Mode,
        *,
        limit: int | None = None,
        timeout: float | None = None,
        source: str | None = None,
        hbm_limit: int | None = None,
    ) -> Answer:
        """Ask about a program, of a device with that HBM, in whole MiB, by default the generation's.

        The report's source and limit are by default the module's name, and ``limit``.
        """
        options: dict[str, Any] = dict(_PROBE) if mode == "probe" else {}
        available = limit or _tilewise.hbm_bytes(program.tpu)
        if limit is not None and mode != "probe":
            available = max(0, available >> 20 << 20)
            options["xla_tpu_max_hbm_size_mib"] = available >> 20
        begun = time.monotonic()
        with self._lock, self._ending():
            kind, fields, text, assignment, passed = self._compiled(program, options, mode == "stop", timeout)
        report = None
        if text is not None:
            # For a probe, with so little HBM, the compiler packs in another way.
            packed, name = None if mode == "probe" else assignment, source or program.name
            report = report_of(text, name, program.tpu, hbm_limit or available, packed, self.libtpu)
        answer = _understood(mode, kind, fields, report, program.tpu)
        return replace(answer, passed=passed, seconds=time.monotonic() - begun)

    def _compiled(
        self, program: Program, options: dict[str, Any], stop: bool, timeout: float | None
    ) -> tuple[str, dict[str, Any], str | None, str | None, bool]:
        """The last reply, the dump of the program and of its plan, and whether that was said to fit."""
        passed, folder = False, ""
        try:
            worker = self._ready()
            folder = tempfile.mkdtemp(dir=worker.folder)
            if stop and self._ahead and len(self._workers) == 1:
                self._workers.append(_Worker(self.libtpu))
            worker.send(functools.partial(child.compile_for, program, folder, options))
            begun, deadline = time.monotonic(), _deadline(timeout)
            while stop and not (passed := _has_passed(program, folder)):
                at = time.monotonic() + _POLL_SECONDS
                if worker.has_reply(at) or (deadline is not None and at > deadline):
                    break
            if passed:
                # A compilation that is nearly done costs less than another process.
                deadline = time.monotonic() + _GRACE_SECONDS + _GRACE_SHARE * (time.monotonic() - begun)
            kind, fields = worker.reply(deadline)
        except _Ended as ended:
            is_stopped = passed and ended.status == "timeout"
            kind, fields = "stopped" if is_stopped else ended.status, {"error": ended.words}
        text = assignment = None
        if folder:
            passed = passed or _has_passed(program, folder)
            # Only the last stage has the compiler's cycle counts, and the kernels' VMEM.
            text = dumped_text(folder, "after_codegen") if kind == "compiled" else None
            text = text or dumped_text(folder)
            assignment = dumped_text(folder, "after_optimizations-buffer-assignment")
        if kind in ("stopped", "timeout", "crashed"):
            self._end()
        else:
            shutil.rmtree(folder, ignore_errors=True)
        return kind, fields, text, assignment, passed

    def _ready(self) -> _Worker:
        self.start()
        self._workers[0].wait()
        return self._workers[0]

    def _end(self) -> None:
        if self._workers:
            self._workers.pop(0).end()

    @contextlib.contextmanager
    def _ending(self) -> Generator[None]:
        """Ends the process if the caller is interrupted: its answer is no longer needed."""
        try:
            yield
        except BaseException:
            self._end()
            raise

    def close(self) -> None:
        with self._lock:
            while self._workers:
                self._end()


_SHARED: dict[str | None, tuple[Compiler, threading.RLock, list[threading.Timer]]] = {}


@contextlib.contextmanager
def shared(libtpu: str | None = None) -> Generator[Compiler]:
    """For single questions, the compiler of all; its process ends when nothing was asked for a while."""
    version = other_version(libtpu)
    compiler, lock, closing = _SHARED.setdefault(version, (Compiler(libtpu=version), threading.RLock(), []))
    with lock:
        while closing:
            closing.pop().cancel()
        try:
            yield compiler
        finally:
            timer = threading.Timer(_IDLE_SECONDS, compiler.close)
            timer.daemon = True
            timer.start()
            closing.append(timer)


def close_shared() -> None:
    for compiler, lock, _ in _SHARED.values():
        with lock:
            compiler.close()


atexit.register(close_shared)
if sys.platform != "win32":
    # In a forked process: the other one's processes aren't ours to end.
    os.register_at_fork(after_in_child=_SHARED.clear)


_SAID: set[str] = set()


def report_of(
    text: str, source: str, tpu: str, hbm_limit: int | None, assignment: str | None = None, libtpu: str | None = None
) -> Report:
    """The audit of a program by this version of libtpu (default: the installed one), with its buffer assignment."""
    version = libtpu or libtpu_version()
    report = _tilewise.audit_text(text, source, tpu, hbm_limit, libtpu=version, buffer_assignment=assignment)
    for warning in report.warnings:
        if warning.kind == "other_build" and warning.message not in _SAID:
            _SAID.add(warning.message)
            warnings.warn(warning.message, stacklevel=1)
    return report


def traced(kind: str, made: Any) -> Any:
    """The result of an attempt to trace; an answer where that raised anything but `NotSendable`."""
    if kind == "not_sendable":
        raise NotSendable(made)
    if kind == "traced":
        return made
    return Answer("skipped" if kind == "skipped" else "untraceable", "full", error=made)


def _has_passed(program: Program, folder: str) -> bool:
    """Whether libtpu has found that the program fits, and dumped that, which it does before it generates code."""
    # Helpers that the compiler compiles on the way have other names.
    return any(program.name in file and file.endswith(_PASSED) for file in os.listdir(folder))


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _understood(mode: Mode, kind: str, fields: dict[str, Any], report: Report | None, tpu: str) -> Answer:
    sizes = None if report is None else Sizes.planned(report)
    if kind in ("compiled", "stopped") and sizes is None:
        return Answer("failed", mode, error="the compiler's dump has no plan")
    if kind == "compiled":
        # With options of ours it is not the program that was asked for.
        status: Status = "planned" if mode == "probe" else "fits"
        said = Sizes(*fields["sizes"])
        # Before libtpu 0.0.51, it reports more than it allocates.
        counts_twice = report is not None and report.reported_temporary_bytes != report.temporary_bytes
        if counts_twice and sizes is not None and sizes.temporary_bytes <= said.temporary_bytes:
            said = replace(sizes, code_bytes=said.code_bytes)
        return Answer(status, mode, said, report=report, cost=fields["cost"])
    if kind == "stopped":
        return Answer("planned", mode, sizes, report=report)
    if kind in ("timeout", "crashed"):
        return Answer("timeout" if kind == "timeout" else "crashed", mode, error=fields["error"])
    words = str(fields["error"])
    status, needed = _refusal(words, tpu)
    if status != "refused":
        return Answer(status, mode, error=words)
    if mode == "probe" and sizes is not None:
        return Answer("planned", mode, sizes, needed, report=report)
    return Answer("refused", mode, sizes, needed, words, report)


def _refusal(words: str, tpu: str) -> tuple[Status, int | None]:
    """The status of a refusal in the compiler's words, and the bytes of HBM that it needs, if known."""
    try:
        explained = _tilewise.explain_text(words, tpu)
    except MessageError:
        return "failed", None
    if explained.verdict in ("padding", "arguments", "size", "fragmentation") and explained.memory_space_name == "hbm":
        needed = explained.used_bytes
        if needed is not None and explained.limit_bytes is not None and explained.exceeded_bytes is not None:
            needed = explained.limit_bytes + explained.exceeded_bytes
        return "refused", needed
    return "other_memory", None


class Modes(NamedTuple):
    """Whether each mode gives the sizes of a full compilation."""

    probe: bool
    stop: bool


_KNOWN: dict[str, Modes] = {}


def exact_modes(compiler: Compiler) -> Modes:
    """The exact modes: tried on a small program, once for each version of the compiler."""
    version = compiler.version
    if version not in _KNOWN:
        kept, held = cache_folder() / f"modes-{importlib.metadata.version('tilewise')}.json", dict[str, Any]()
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            held = dict(json.loads(kept.read_text(encoding="utf-8")))
            _KNOWN[version] = Modes(**held[version])
        if version not in _KNOWN:
            found = canary(compiler)
            if found is None:
                return Modes(probe=False, stop=False)
            _KNOWN[version] = found
            # Another process may write it, too: either is right.
            with contextlib.suppress(OSError):
                write_whole(kept, json.dumps({**held, version: found._asdict()}, sort_keys=True).encode())
        if not all(_KNOWN[version]):
            warnings.warn(f"plans of {version} can't be trusted: everything is compiled in full", stacklevel=3)
    return _KNOWN[version]


def canary(compiler: Compiler) -> Modes | None:
    """The exact modes for a small program; ``None`` if the compiler can't be asked now."""
    jax, jnp = module("jax"), module("jax.numpy")

    def twice(x: Any) -> Any:
        return jnp.exp(jax.lax.optimization_barrier(jnp.tanh(x)))

    program = trace(Request(twice, (jax.ShapeDtypeStruct((100_000, 300), jnp.float32),), "v5e"))
    full, probe = compiler.ask(program, "full"), compiler.ask(program, "probe")
    if full.status != "fits":
        return None
    plan = full.report
    is_exact = plan is not None and Sizes.planned(plan) == full.sizes
    probed = probe.status == "planned" and probe.sizes == full.sizes
    return Modes(probe=is_exact and probed, stop=is_exact and full.passed)
