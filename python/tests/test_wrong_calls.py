"""Calls with wrong arguments: each ends with a TypeError, a ValueError, or the package's own error, within little memory."""

# ruff: noqa: E501 - of a program in a string
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CALLS = 2500

_PROGRAM = r"""
import contextlib, faulthandler, inspect, io, os, random, resource, sys, tempfile

faulthandler.enable()
# JAX alone takes half of it.
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import numpy as np
import tilewise as tw

seed, count = int(sys.argv[1]), int(sys.argv[2])
chance = random.Random(seed)
os.chdir(tempfile.mkdtemp())

class Odd:
    def __index__(self): raise TypeError("no index")
    def __iter__(self): raise TypeError("no items")
    def __str__(self): return "f32[8]"
    shape = dtype = None

program = "HloModule m, is_scheduled=true\nENTRY e {\n  x = f32[8,128]{1,0:T(8,128)} parameter(0)\n  ROOT y = f32[8,128]{1,0:T(8,128)} negate(x)\n}\n"
values = [
    None, True, 0, -1, 1, 2, 10**9, 2**31, 2**63, -2**63, 2**64, 10**30, 0.5, float("nan"), float("inf"), 1j,
    "", "x", "f32[8,128]", "bf16[300,500]{1,0:T(8,128)(2,1)}", "f32[9223372036854775807,9]", "v5e", "f32[", "\0", "\ud800", "a" * 10**6,
    program, program.encode(), "Ran out of memory in memory space hbm. Used 16.1G of 15.7G hbm.", b"", b"\xff" * 9, bytearray(9), memoryview(b"12"),
    (), (1,), (1, 2), (-1, 10**9), (10**9,) * 3, [0, 1], [None], ["x"], {}, {"a": 1}, {"x": "f32[8]"}, set(), range(10**9), range(3),
    iter([1]), object(), Odd(), Odd, len, lambda *a, **k: None, np.zeros(3), np.zeros((2, 2), bool), np.float32(1), np.int64(-1), np.dtype("float32"),
    np.broadcast_to(np.zeros(1), (1 << 40,)), slice(None), slice(0, 10**18), Ellipsis, type, sys, Exception("x"),
    tw.Shape("f32[8,128]{1,0:T(8,128)}"), tw.Shape("(f32[8], token[])"), tw.audit(program),
]
with contextlib.suppress(Exception):
    values.append(tw.explain("Ran out of memory in memory space hbm. Used 16.1G of 15.7G hbm. Exceeded by 400M"))
for name in ("Layout", "Tile", "ElementType"):
    with contextlib.suppress(Exception):
        values.append(getattr(tw, name))

# Those that start compilers or JAX, wait for clusters, or are told what to run.
LEFT_OUT = {"compile_for", "fit", "fit_row", "remat", "fleet", "check_fix", "clear_cache", "kernel_budget", "suggest_blocks", "measure", "profile", "live", "mesh", "compare_machines"}

def is_static(held, inner):
    kept = vars(held).get(inner)
    return not inner.startswith("_") and isinstance(kept, (staticmethod, classmethod))

def callables():
    for name in tw.__all__:
        held = getattr(tw, name)
        if not callable(held) or name in LEFT_OUT:
            continue
        yield name, held
        if inspect.isclass(held) and not issubclass(held, BaseException):
            # A method is called of an object, but for those of the class.
            for inner in dir(held):
                if not inner.startswith("_") and inspect.ismethod(getattr(held, inner, None)) or is_static(held, inner):
                    yield f"{name}.{inner}", getattr(held, inner)
    for value in values:
        if type(value).__module__.startswith("tilewise"):
            for inner in dir(value):
                if inner.startswith("_") and inner not in ("__getitem__", "__eq__", "__lt__", "__format__", "__contains__"):
                    continue
                # Properties that this shape doesn't have raise an error.
                with contextlib.suppress(ValueError):
                    if callable(getattr(value, inner, None)):
                        yield f"<{type(value).__name__}>.{inner}", getattr(value, inner)

found = list(callables())
wrong = 0
for _ in range(count):
    name, call = chance.choice(found)
    arguments = [chance.choice(values) for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3)))]
    keywords = {}
    with contextlib.suppress(ValueError, TypeError):
        known = [each.name for each in inspect.signature(call).parameters.values() if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)]
        if known and chance.random() < 0.4:
            keywords = {chance.choice(known): chance.choice(values)}
    print("calling", name, [type(each).__name__ for each in arguments], keywords.keys(), file=sys.stderr, flush=True)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            call(*arguments, **keywords)
    # A text may be the name of a file that isn't there.
    except (TypeError, ValueError, tw.Skip, ImportError, FileNotFoundError):
        pass
    except Exception as error:
        wrong += 1
        print(f"{type(error).__name__} {name}({', '.join(repr(each)[:60] for each in arguments)}, {str(keywords)[:90]}): {error}"[:400])
sys.exit(wrong != 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by the system")
@pytest.mark.parametrize("seed", range(4))
def test_wrong_calls(seed: int, tmp_path: Path) -> None:
    program = tmp_path / "calls.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    command = [sys.executable, str(program), str(seed), str(CALLS // 4)]
    ran = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
