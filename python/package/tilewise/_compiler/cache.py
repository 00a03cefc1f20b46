"""A folder of the compiler's earlier answers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tilewise._base.files import write_whole
from tilewise._compiler.libtpu import compiler_version
from tilewise._compiler.process import Answer, Mode, Sizes, report_of
from tilewise._compiler.program import Program

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
