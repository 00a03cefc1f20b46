"""The compiler's own dump of a program."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any


def dumped(lowered: Any) -> str:
    """The text of the program after optimisation, as the compiler dumps it."""
    with tempfile.TemporaryDirectory() as folder:
        lowered.compile({"xla_dump_to": folder, "xla_dump_hlo_as_text": True})
        found = sorted(Path(folder).glob("*after_optimizations.txt"), key=lambda path: path.stat().st_size)
        return found[-1].read_text(encoding="utf-8")
