"""Changes that are made in the lines of the program's source, and compiled."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tilewise as tw
from tilewise._fit import advice
from tilewise._fit.edited import remade
from tilewise._jax.lowering import Request
from tilewise._verbs import Answers, audited

jax = pytest.importorskip("jax")

STEP = """
import jax
import jax.numpy as jnp
from jax import lax


def layer(x, w):
    h = jax.nn.gelu(x @ w[0])
    return x + jnp.tanh(h @ w[1]), None


def loss(ws, x):
    x, _ = lax.scan(layer, x, ws)
    return jnp.mean(x * x)


step = jax.jit(jax.grad(loss))


def arguments():
    shapes = ((16, 2, 1024, 1024), (16384, 1024))
    return tuple(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes)


def make():
    return step, arguments()
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "layers_in_turn.py"
    path.write_text(STEP)
    monkeypatch.syspath_prepend(tmp_path)
    yield path
    sys.modules.pop(path.stem, None)


def test_the_line_that_is_printed_is_compiled(path: Path) -> None:
    pytest.importorskip("libtpu")
    module = importlib.import_module(path.stem)
    report = tw.audit(module.step, *module.arguments(), tpu="v5e", hbm_limit="4GiB")
    (row,) = report.check().rows
    edit = row.change.edit
    assert edit is not None
    assert edit.before == "x, _ = lax.scan(layer, x, ws)"
    assert edit.after == "x, _ = lax.scan(jax.checkpoint(layer), x, ws)"
    # By the compiler's own plan of the file with that line, which is as it was.
    own = STEP.replace(edit.before, edit.after)
    alone: dict[str, Any] = {}
    exec(compile(own, "own.py", "exec"), alone)
    measured = tw.audit(alone["step"], *module.arguments(), tpu="v5e", hbm_limit="4GiB").peak_bytes
    assert report.peak_bytes is not None
    assert measured is not None
    assert row.freed_bytes == report.peak_bytes - measured > 0
    assert row.fits is (measured <= 4 << 30)
    assert path.read_text() == STEP
    assert sys.modules[path.stem] is module


def test_the_command_line_checks_a_factory(path: Path) -> None:
    pytest.importorskip("libtpu")
    out = io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):
        audited([f"{path}:make", "--tpu", "v5e", "--check"], Answers(out))
    table = out.getvalue().partition("Made, and compiled:\n")[2].splitlines()
    assert table[0].split() == ["promised", "freed", "needs"]
    assert "Recompute" in table[1]
    for more in (["--against", "plan.lock"], ["--format", "json"], ["--together"]):
        with pytest.raises(ValueError, match="--check"):
            audited([f"{path}:make", "--tpu", "v5e", "--check", *more], Answers(out))
    with pytest.raises(ValueError, match="--check"):
        audited([f"{path}:make", "program.hlo", "--tpu", "v5e", "--check"], Answers(out))


def test_changes_are_tried_until_one_fits(path: Path) -> None:
    pytest.importorskip("libtpu")
    # By its limit it fits with the first change.
    make = f"{path}:make"
    for limit, status in (("2GiB", 1), ("15GiB", 0)):
        out = io.StringIO()
        with contextlib.redirect_stderr(io.StringIO()):
            assert audited([make, "--tpu", "v5e", "--hbm-limit", limit], Answers(out)) == status
        table = out.getvalue().partition("Made, and compiled:\n")[2].splitlines()
        assert [" fits " in line for line in table[1:]] == [True] * status


def test_a_change_that_fails_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("libtpu")
    module = importlib.import_module(path.stem)
    report = tw.audit(module.step, *module.arguments(), tpu="v5e", hbm_limit="4GiB")

    def fails(x: object, ws: object) -> object:
        raise TypeError("no such argument\nin two lines")

    monkeypatch.setattr(advice, "remade", lambda request, _: replace(request, f=fails))
    (row,) = report.check().rows
    assert (row.freed_bytes, row.fits, row.why_not) == (None, None, "TypeError: no such argument")


def test_functions_that_are_not_made_again_are_skipped(path: Path) -> None:
    module = importlib.import_module(path.stem)

    def inside(x: object) -> object:
        return module.step(x)

    edit = SimpleNamespace(file=str(path), line=4, before="from jax import lax", after="from jax import lax")
    with pytest.raises(tw.Skip, match="isn't one of a module"):
        remade(Request(inside, (), "v5e"), [edit])  # type: ignore[list-item]
    with pytest.raises(tw.Skip, match="another one now"):
        remade(Request(module.step, (), "v5e"), [SimpleNamespace(**{**vars(edit), "line": 5})])  # type: ignore[list-item]

    @jax.tree_util.register_static
    class Model:
        apply = module.loss
        __module__ = path.stem

    with pytest.raises(tw.Skip, match="hold functions of its modules"):
        remade(Request(module.step, (Model(),), "v5e"), [edit])  # type: ignore[list-item]
    assert sys.modules[path.stem] is module
