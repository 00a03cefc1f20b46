"""``tilewise kernel FILE.py:FACTORY``: the kernels of a function, which is traced here."""

from __future__ import annotations

import argparse
import functools
import json
import os
from collections.abc import Sequence
from typing import Any

from tilewise._base.answers import Answers
from tilewise._fit.factory import factory, setting, values
from tilewise._jax.topologies import ENVIRONMENT, ONLY_COMPILES
from tilewise._kernel.budgets import BlockSuggestions, KernelBudgets, kernel_budget, suggest_blocks

_ALL = ("v3", "v4", "v5e", "v5p", "v6e", "v7x")


def main(arguments: Sequence[str], answers: Answers) -> int:
    """Print the kernels' budgets, or the blocks to try; 1 if one doesn't fit or no choice is left, 2 for errors."""
    given = _parser().parse_args(arguments)
    # Before JAX is imported: libtpu looks around for a TPU when it is loaded, and logs its absence.
    os.environ.update({**ENVIRONMENT, **os.environ, **ONLY_COMPILES})
    try:
        make = factory(given.program, given.allow_module)
        settings = dict(map(setting, given.set))
        if given.space:
            with_settings = functools.partial(make, **settings)
            space = dict(map(values, given.space))
            found = suggest_blocks(with_settings, tpu=given.tpu, space=space, compile=given.compile)
            answers.text(_suggestions(given.program, found) if given.format == "json" else found)
            return 0 if found.choices else 1
        f, *args = make(**settings)
        tpus = _ALL if given.tpu == "all" else (given.tpu,)
        budgets = [kernel_budget(f, *args, tpu=tpu, compile=given.compile) for tpu in tpus]
    # The file and the functions that it calls may raise anything.
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        if given.format == "json":
            answers.text(_line(given.program, error={"kind": "python", "message": message, "span": None}))
        else:
            answers.error(message)
        return 2
    if given.format == "json":
        answers.text("\n".join(_budgets(given.program, kernels) for kernels in budgets))
    else:
        answers.text(budgets[0] if len(budgets) == 1 else _side_by_side(budgets))
    is_refused = any(kernel.refusal is not None for kernels in budgets for kernel in kernels)
    return int(is_refused or any(each.unsupported or each.verdict == "does_not_fit" for each in budgets))


def _side_by_side(budgets: Sequence[KernelBudgets]) -> str:
    rows = [("", "VMEM", "limit", "verdict", "kernel")]
    for kernel in (kernel for kernels in budgets for kernel in kernels):
        limit = "-" if kernel.limit_bytes is None else f"{kernel.limit_bytes / 2**20:.2f} MiB"
        verdict = "refused" if kernel.unsupported or kernel.refusal else (kernel.verdict or "unknown").replace("_", " ")
        size = kernel.vmem_bytes if kernel.measured_bytes is None else kernel.measured_bytes
        rows.append((kernel.tpu, f"{size / 2**20:.2f} MiB", limit, verdict, kernel.name or ""))
    return "\n".join(
        f"  {tpu:3}  {size:>10}  {limit:>10}  {verdict:22}  {name}" for tpu, size, limit, verdict, name in rows
    )


def _line(program: str, **fields: Any) -> str:
    return json.dumps({"schema": 1, "input": program, **fields}, ensure_ascii=False, separators=(",", ":"))


def _budgets(program: str, kernels: KernelBudgets) -> str:
    """`KernelBudgets` of ``docs/json.md``."""
    rows = [
        {**{name: value for name, value in vars(kernel).items() if name != "rows"}, "unsupported": kernel.unsupported}
        for kernel in kernels
    ]
    return _line(program, kernels=rows, not_covered=kernels.not_covered, verdict=kernels.verdict)


def _suggestions(program: str, found: BlockSuggestions) -> str:
    """`BlockSuggestions` of ``docs/json.md``."""
    removed = [{"sizes": sizes, "reason": reason} for sizes, reason in found.removed]
    return _line(program, choices=[vars(choice) for choice in found], removed=removed)


def _parser() -> Any:
    parser = argparse.ArgumentParser(prog="tilewise kernel")
    parser.add_argument("program", metavar="FILE.py:FACTORY")
    parser.add_argument("--tpu", required=True, help="a generation, or all; with --space one")
    parser.add_argument("--allow-module", action="append", default=[])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--space", action="append", default=[], metavar="NAME=A,B,C")
    parser.add_argument("--format", choices=("human", "json"), default="human")
    return parser
