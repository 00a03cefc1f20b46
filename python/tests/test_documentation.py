"""Runs every example in docstrings and READMEs; every public name has a docstring and a type."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import EXAMPLES, is_recorded_with

import tilewise as tw
from tilewise import _tilewise

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "package" / "tilewise"


# Their examples compile for a TPU.
COMPILING = {
    "AdviceCheck",
    "Fit",
    "Remat",
    "remat",
    "Report.check",
    "audit_together",
    "check_fix",
    "compile_for",
    "fit",
    "fit_row",
    "mesh",
}


def documented() -> dict[str, Any]:
    """Everything public, by its name."""
    found: dict[str, Any] = {"tilewise": tw}
    for name in tw.__all__:
        value = getattr(tw, name)
        if inspect.isclass(value) or callable(value):
            found[name] = value
        if inspect.isclass(value):
            members = vars(value) if not issubclass(value, Exception) else {}
            found.update(
                {f"{name}.{member}": getattr(value, member) for member in members if not member.startswith("_")}
            )
    return found


def is_row(value: Any) -> bool:
    """Whether this has fields and properties alone: what returns it shows it."""
    members = (each for name, each in vars(value).items() if not name.startswith("_")) if inspect.isclass(value) else ()
    return dataclasses.is_dataclass(value) and not any(map(callable, members))


@pytest.mark.parametrize(("name", "value"), documented().items(), ids=documented())
def test_docstrings(name: str, value: Any, doctest_namespace: dict[str, Any]) -> None:
    text = inspect.getdoc(value)
    assert text, f"{name} has no docstring"
    assert ">>>" in text or inspect.isdatadescriptor(value) or is_row(value), f"{name} has no example"
    if "jax" in text and ">>>" in text:
        pytest.importorskip("jax")
    if COMPILING & {name, name.split(".")[0]}:
        pytest.importorskip("libtpu")
    test = doctest.DocTestParser().get_doctest(text, dict(doctest_namespace), name, None, None)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags)
    output: list[str] = []
    runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)


def test_the_readme() -> None:
    pytest.importorskip("jax")
    pytest.importorskip("libtpu")
    text = (HERE.parent / "README.md").read_text(encoding="utf-8")
    program: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        exec(block, program)
    shown = re.search(r"```\ntilewise\.ParseError: (.*?)```", text, re.DOTALL)
    assert shown
    with pytest.raises(tw.ParseError) as caught:
        tw.Shape("b16[2,3]")
    assert str(caught.value) == shown[1].rstrip()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("document", "libraries"),
    [
        ("jax.md", ("flax", "optax", "equinox", "haiku", "libtpu")),
        ("fit.md", ("jax", "libtpu")),
        ("remat.md", ("jax", "libtpu")),
        ("frameworks.md", ("flax", "optax", "equinox", "flatbuffers", "libtpu")),
    ],
)
def test_the_walk_through(document: str, libraries: tuple[str, ...], tmp_path: Path) -> None:
    """Its programs print what it says, or run, with another JAX; `WALK_THROUGH=overwrite` stores what they print."""
    for library in libraries:
        pytest.importorskip(library)
    path = HERE.parents[1] / "docs" / document
    text = fresh = path.read_text(encoding="utf-8")
    # Reports show the last two parts of a path.
    folder = tmp_path / "train"
    folder.mkdir()
    for block in re.finditer(r"```(python|console|text)\n(.*?)```", text, re.DOTALL):
        if block[1] == "python":
            # The prose before names it.
            name = re.findall(r"`(\w+\.py)`", text[: block.start()])[-1]
            (folder / name).write_text(block[2], encoding="utf-8")
            continue
        command = block[2].splitlines()[0]
        if not command.startswith(("$ python ", "$ tilewise fit ")) or block[2].count("\n$ "):
            continue
        tool, *arguments = command.removeprefix("$ ").split()
        before = ["-m", "tilewise"] if tool == "tilewise" else []
        done = subprocess.run([sys.executable, *before, *arguments], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        fresh = fresh.replace(block[0], f"```{block[1]}\n{command}\n{done.stdout.rstrip()}\n```")
    if os.environ.get("WALK_THROUGH") == "overwrite":
        path.write_text(fresh, encoding="utf-8")
    elif is_recorded_with("0.12.0.1", "0.0.52"):
        assert fresh == text


def test_the_project_s_readme() -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("libtpu")
    text = (HERE.parents[1] / "README.md").read_text(encoding="utf-8")
    program: dict[str, Any] = {"jax": jax, "f": jax.numpy.tanh, "x": jax.numpy.ones(3), "step": id, "state": None}
    program["make"] = lambda batch: (jax.numpy.tanh, (jax.ShapeDtypeStruct((batch, 8), jax.numpy.float32),))
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, program)
        for expression, answer in re.findall(r"^(s\..*?) +# (.*)$", block, re.MULTILINE):
            assert str(eval(expression, program)) == f"({answer})"


def run(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=HERE.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_loaded_that_is_not_asked_for() -> None:
    program = "import sys, tilewise as tw; tw.Shape('f32[3,5]'); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.slow
def test_the_bench_runs() -> None:
    """The bench checks every contender's result."""
    command = [sys.executable, "bench.py", "--quick", "--json"]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {row["contender"] for row in json.loads(done.stdout)} > {"floor", "`offsets(indices)`"}


# Users' programs; for mypy, JAX is without types.
TYPED = [str(HERE / name) for name in ("typed.py", "typed_fields.py", "typed_shapes.py", "typed_jax.py")]


def test_typed_programs_use_everything() -> None:
    text = "".join(Path(path).read_text(encoding="utf-8") for path in TYPED)
    native = [value for value in vars(_tilewise).values() if inspect.isclass(value)]
    unused = [
        name
        for name, value in documented().items()
        if name != "tilewise"
        # Classes of the native half and their fields: their types are made of Rust's.
        and not (value in native or inspect.isgetsetdescriptor(value))
        and not (inspect.getdoc(value) or "").startswith("The old name of")
        and not re.search(r"\." + name.rpartition(".")[2] + r"\b", text)
    ]
    assert not unused


@pytest.mark.slow
def test_types_are_complete_and_right(tmp_path: Path) -> None:
    run("mypy", "--strict", "--config-file", "pyproject.toml", str(PACKAGE), *TYPED[:2])
    # The stub has each name once, where it is imported; `__all__` is made of that.
    (tmp_path / "allowed").write_text("tilewise.__all__\n", encoding="utf-8")
    allowed = ["--allowlist", str(tmp_path / "allowed")]
    run("mypy.stubtest", "tilewise", "--mypy-config-file", "pyproject.toml", *allowed)


def test_style() -> None:
    for verb in (["check"], ["format", "--check"]):
        run("ruff", *verb, "--config", "pyproject.toml", ".", str(EXAMPLES))


@pytest.mark.slow
def test_pyright() -> None:
    pytest.importorskip("pyright")
    run("pyright", "--pythonpath", sys.executable, str(PACKAGE), *TYPED)
