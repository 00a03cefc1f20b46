"""The programs that `cargo xtask tpu` compiles: each module adds its classes to `CLASSES`."""

from . import basics, composed, control, machine, several, training, types
from .draw import ALL, CLASSES, Class, Draw, Program, convolved, pinned

__all__ = ["ALL", "CLASSES", "Class", "Draw", "Program", "convolved", "pinned"]
