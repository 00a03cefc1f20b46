"""``tilewise kernel FILE.py:FACTORY``: the kernels of a function, which is traced here."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from typing import Any

from tilewise._blocks import suggest_blocks
from tilewise._fit.command import factory, setting, values
from tilewise._kernels import KernelBudgets, kernel_budget


def main(arguments: Sequence[str]) -> int:
    """Print what the kernels take, or which blocks to try; 1 if one doesn't fit or no choice is left, 2 for errors."""
    given = _parser().parse_args(arguments)
    try:
        make = factory(given.program)
        settings = dict(map(setting, given.set))
        if given.space:
            with_settings = functools.partial(make, **settings)
            space = dict(map(values, given.space))
            found = suggest_blocks(with_settings, tpu=given.tpu, space=space, compile=given.compile)
            print(found)
            return 0 if found.choices else 1
        f, *args = make(**settings)
        kernels = kernel_budget(f, *args, tpu=given.tpu, compile=given.compile)
    # The file and what it calls may raise anything.
    except Exception as error:
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(kernels)
    return _status(kernels)


def _status(kernels: KernelBudgets) -> int:
    is_refused = any(kernel.refusal is not None for kernel in kernels)
    return 1 if is_refused or kernels.unsupported or kernels.verdict == "does_not_fit" else 0


def _parser() -> Any:
    parser = argparse.ArgumentParser(prog="tilewise kernel")
    parser.add_argument("program", metavar="FILE.py:FACTORY")
    parser.add_argument("--tpu", required=True)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--space", action="append", default=[], metavar="NAME=A,B,C")
    return parser
