"""Seconds to the report of `tw.audit` beside those of a full compilation, and whether both have the same sizes.

`bench.py audit FOLDER [NAME…]` takes the folder that `bench.py fit` takes. Where the libraries that it needs are
installed, BERT's training step of ``examples/fit_models.py`` is among the programs.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

import tilewise as tw
from tilewise._compiler import process

PROGRAMS: dict[str, dict[str, Any]] = {
    "gpt": {"batch": 4},
    "mlp": {"batch": 8},
    "decode": {"batch": 1},
    "small adam": {"batch": 8},
    "small cache": {"batch": 8},
    "small tokens": {"batch": 8},
    "small blocks": {"batch": 1},
    "small fold": {"batch": 13},
    "small rnn": {"batch": 1},
}
SHARDINGS: dict[str, tuple[PartitionSpec, PartitionSpec]] = {
    "data parallel on 2x2": (PartitionSpec(), PartitionSpec(("x", "y"))),
    "tensor parallel on 2x2": (PartitionSpec(None, ("x", "y")), PartitionSpec()),
    "both on 2x2": (PartitionSpec("x", "y"), PartitionSpec("x")),
}


def divided(weights: PartitionSpec, rows: PartitionSpec) -> Any:
    """A step of a perceptron, of which both are divided."""
    mesh = AbstractMesh((2, 2), ("x", "y"))

    def array(shape: tuple[int, ...], spec: PartitionSpec) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))

    def step(weights: Any, x: Any) -> Any:
        return weights - 0.1 * jax.grad(lambda weights: jnp.mean(jnp.tanh(x @ weights) ** 2))(weights)

    return step, (array((1024, 2048), weights), array((4096, 1024), rows)), {"donate_argnums": 0}


def factories(folder: Path) -> dict[str, Callable[[], Any]]:
    """A factory for each program."""
    sys.path[:0] = [str(folder), str(Path(__file__).resolve().parents[1] / "examples")]
    found: dict[str, Callable[[], Any]] = {}
    for name, settings in PROGRAMS.items():
        program, *kind = name.split()
        found[name] = functools.partial(importlib.import_module(f"programs.{program}").make, *kind, **settings)
    for name, specs in SHARDINGS.items():
        found[name] = functools.partial(divided, *specs)
    try:
        found["BERT's training step on 2x2"] = functools.partial(importlib.import_module("fit_models").bert, batch=8)
    except ImportError as error:
        print(f"without BERT: {error}", file=sys.stderr)
    return found


def main(folder: str, *only: str) -> None:
    """Prints a table, as it comes; of all programs, or of those whose names have one of these texts."""
    print("| program | report | full compilation | the same sizes |\n| --- | --- | --- | --- |", flush=True)
    same: list[bool] = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TILEWISE_CACHE"] = cache
        # The compiler is started and tried out once, on both sides.
        tw.audit(jnp.tanh, jnp.zeros(8), tpu="v5e")
        tw.compile_for(jnp.tanh, jnp.zeros(8), tpu="v5e")
        for name, make in factories(Path(folder)).items():
            if only and not any(text in name for text in only):
                continue
            f, args, options = make()
            begun = time.monotonic()
            report = tw.audit(f, *args, tpu="v5e", jit_options=options)
            middle = time.monotonic()
            said = tw.compile_for(f, *args, tpu="v5e", jit_options=options).memory_analysis()
            end = time.monotonic()
            planned = (report.argument_bytes, report.output_bytes, report.alias_bytes, report.temporary_bytes)
            sizes = ("argument_size", "output_size", "alias_size", "temp_size")
            same.append(planned == tuple(getattr(said, f"{size}_in_bytes") for size in sizes))
            answer = "yes" if same[-1] else "no"
            print(f"| {name} | {middle - begun:.1f} s | {end - middle:.1f} s | {answer} |", flush=True)
    process.close_shared()
    print(f"| {sum(same)} of {len(same)} | | | |")
