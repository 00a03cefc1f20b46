"""A program to judge."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Step:
    """A training step, its abstract arguments, and which of them are donated."""

    function: Callable
    arguments: tuple
    donated: tuple[int, ...] = (0, 1)


Programs = dict[str, list[tuple[str, str, Callable[[], Step]]]]
"""By name, each as written, and with each change: the kind of advice that it follows, or `none` where none is to be
given, what it is, and the step."""
