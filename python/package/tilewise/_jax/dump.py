"""The compiler's own dump of a program."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any


def dumping(folder: str) -> dict[str, Any]:
    """Options of a compilation that dumps into this folder, whichever modules the environment's flags name."""
    return {"xla_dump_to": folder, "xla_dump_hlo_as_text": True, "xla_dump_hlo_module_re": ".*"}


def dumped_text(folder: str, stage: str = "after_optimizations") -> str | None:
    """The optimised program in a folder of dumps, as it was at a stage; ``None`` if it is missing."""
    found = sorted(Path(folder).glob(f"*{stage}.txt"), key=lambda path: path.stat().st_size)
    return found[-1].read_text(encoding="utf-8") if found else None


def dumped(lowered: Any, stage: str = "after_optimizations") -> str:
    """The text of the program after optimisation, as the compiler dumps it, also where it then refuses the program.

    Only the text of the stage ``after_codegen`` has the VMEM that instructions use.
    """
    refused: RuntimeError | None = None
    with tempfile.TemporaryDirectory() as folder:
        try:
            lowered.compile(dumping(folder))
        except RuntimeError as error:
            refused = error
        text = dumped_text(folder, stage)
    if text is None:
        raise refused or RuntimeError("the compiler dumped no program")
    return text
