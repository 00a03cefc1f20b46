"""Fixtures and helpers of the tests."""

from __future__ import annotations

import atexit
import csv
import functools
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import tilewise as tw
from tilewise._compiler.process import Compiler
from tilewise._fit import run
from tilewise._fit.combination import Combination

# With libtpu installed, JAX would look for a TPU.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Meshes of several devices, as code for TPUs has them.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
# A shell's background job ignores Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The compiler's answers in other runs aren't read.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="tilewise-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def is_recorded_with(jax: str, libtpu: str) -> bool:
    """Whether these are the versions that are installed: another JAX traces other programs, with other figures."""
    return (version("jax"), version("libtpu")) == (jax, libtpu)


def rows(name: str) -> list[dict[str, str]]:
    """Rows of the conformance facts."""
    with open(ROOT / "conformance" / "facts" / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def unescaped(fact: dict[str, str]) -> str:
    """The text of a row, which is the body of a JSON string where `escaped` is 1."""
    return str(json.loads(f'"{fact["text"]}"')) if fact["escaped"] == "1" else fact["text"]


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number)


@pytest.fixture
def message() -> str:
    return (EXAMPLES / "out_of_memory.txt").read_text(encoding="utf-8")


@pytest.fixture
def program() -> Path:
    return EXAMPLES / "gnn_large.v5e.hlo"


class KeptCompiler(Compiler):
    """One process for the searches of all tests, which is seconds of start for each."""

    def cancel(self) -> None:
        """A search that is over does not end it."""


@pytest.fixture(scope="session")
def kept_compiler() -> Iterator[KeptCompiler]:
    with KeptCompiler(ahead=True) as compiler:
        yield compiler


@pytest.fixture(autouse=True)
def _compilers(kept_compiler: KeptCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "Compiler", lambda **_: kept_compiler)


@pytest.fixture
def own_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each search starts and ends its own, as users' do."""
    monkeypatch.setattr(run, "Compiler", Compiler)


@pytest.fixture(autouse=True)
def _names(doctest_namespace: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "python")
    doctest_namespace.update({name: getattr(tw, name) for name in tw.__all__})
    doctest_namespace.update(found=found(), server=server())


@functools.cache
def server() -> tw.Together:
    """The memory of one program that takes and returns 4 MiB."""
    array = "f32[1024,1024]{1,0:T(8,128)}"
    lines = ("HloModule jit_tanh, is_scheduled=true", "", "ENTRY main {", f"x = {array} parameter(0)")
    program = "\n".join([*lines, f"ROOT y = {array} tanh(x)", "}"])
    return tw.audit_together({"tanh": program}, tpu="v5e")


def found() -> tw.Fit:
    """The answer of `fit` for a program that takes 2 GiB for each of the batch."""
    sizes = {7: "fits", 8: "refused"}
    rows = [
        tw.FitRow.from_dict(
            {
                "settings": {"batch": batch},
                "tpu": "v5e",
                "topology": "v5e:2x2",
                "status": status,
                "total_bytes": batch * 2**31,
                "limit_bytes": tw.hbm_bytes("v5e"),
            }
        )
        for batch, status in sizes.items()
    ]
    combination = Combination({}, "v5e", "v5e:2x2", {"batch": 7}, [], rows)
    return tw.Fit([combination], axes={"batch": [7, 8]}, target=None, interrupted=False)


def tile_elementwise(array: np.ndarray, shape: tw.Shape) -> np.ndarray:
    """The result that `tile` must have, computed element by element."""
    width = array.dtype.itemsize
    buffer = np.zeros((shape.physical_bytes // width, width), np.uint8)
    for index in np.ndindex(*array.shape):
        buffer[shape.offset(index)] = np.frombuffer(array[index].tobytes(), np.uint8)
    return buffer.reshape(-1)
