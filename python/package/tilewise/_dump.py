"""The compiler's own dump of a program."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any


def dumped_text(folder: str) -> str | None:
    """The optimised program in a folder of dumps; ``None`` where there is none."""
    found = sorted(Path(folder).glob("*after_optimizations.txt"), key=lambda path: path.stat().st_size)
    return found[-1].read_text(encoding="utf-8") if found else None


def dumped(lowered: Any) -> str:
    """The text of the program after optimisation, as the compiler dumps it, also where it then refuses the program."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            lowered.compile({"xla_dump_to": folder, "xla_dump_hlo_as_text": True})
        except RuntimeError:
            text = dumped_text(folder)
            if text is None:
                raise
            return text
        text = dumped_text(folder)
        if text is None:
            raise RuntimeError("the compiler dumped no program")
        return text
