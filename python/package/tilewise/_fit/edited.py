"""Makes a program again from its sources, some of whose lines are edited."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, cast

from tilewise._base.errors import Skip
from tilewise._base.modules import module
from tilewise._jax.lowering import Request
from tilewise._tilewise import LineEdit


def remade(request: Request, edits: Iterable[LineEdit]) -> Request:
    """The request of edited sources, which are run again in memory; it skips one that can't be made again so."""
    texts = _texts(edits)
    beside = _beside(texts)
    again = request.again or _imported(request, beside)
    with _sources(texts, beside):
        try:
            made = again()
        # A file of Python may raise anything.
        except Exception as error:
            raise Skip(f"the edited file can't be run: {type(error).__name__}: {error}") from error
    return replace(request, f=made.f, args=made.args)


def _imported(request: Request, beside: Collection[str]) -> Callable[[], Request]:
    """Makes the request again by the name of its function in its module, one of those that are imported anew."""
    f, args = request.f, request.args
    home = str(getattr(inspect.unwrap(f), "__module__", None))
    # To run a script again may train.
    named = {} if home == "__main__" else vars(sys.modules.get(home, object))
    name = next((name for name, value in named.items() if value is f), None)
    if name is None or home not in beside:
        raise Skip("its function isn't one of a module beside the edited file, which could be imported again")
    if _holds(module("jax").tree.structure(args), beside):
        raise Skip(
            "its arguments hold functions of its modules: `tilewise audit FILE.py:FACTORY` makes them again, too"
        )
    return lambda: replace(request, f=getattr(importlib.import_module(home), name))


def _holds(tree: Any, homes: Collection[str]) -> bool:
    """Whether nodes of a tree hold values of these modules, such as the method of a model, beside arrays."""
    node = tree.node_data()
    values: list[Any] = [] if node is None else [node[1]]
    while values:
        value = values.pop()
        if isinstance(value, (tuple, list)):
            values.extend(cast("Iterable[Any]", value))
        elif getattr(value, "__module__", None) in homes or type(value).__module__ in homes:
            return True
    return any(_holds(child, homes) for child in tree.children())


def _texts(edits: Iterable[LineEdit]) -> dict[Path, str]:
    """The edited files."""
    by_file: dict[Path, list[LineEdit]] = {}
    for edit in edits:
        by_file.setdefault(Path(edit.file).resolve(), []).append(edit)
    return {path: _text(path, each) for path, each in by_file.items()}


def _text(path: Path, edits: list[LineEdit]) -> str:
    """A file with its edits made, the last line first: their numbers count lines as they were before."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Skip(f"{path.name} can't be read: {error}") from error
    for edit in sorted(edits, key=lambda edit: edit.line, reverse=True):
        start = edit.line - 1
        before = [line.strip() for line in edit.before.splitlines()]
        places = slice(start, start + len(before))
        if [line.strip() for line in lines[places]] != before:
            raise Skip(f"line {edit.line} of {path.name} is another one now")
        indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
        lines[places] = [indent + line for line in edit.after.splitlines()]
    text = "\n".join(lines) + "\n"
    if "functools." in text and not re.search(r"^import functools\b", text, re.MULTILINE):
        text = re.sub(r"^(?=import |from (?!__future__))", "import functools; ", text, count=1, flags=re.MULTILINE)
    return text


def _beside(texts: Iterable[Path]) -> dict[str, Any]:
    """The modules in the folders of files and below them, but for installed packages and the script that runs."""
    folders = [path.parent for path in texts]
    found: dict[str, Any] = {}
    for name, each in [*sys.modules.items()]:
        file = getattr(each, "__file__", None)
        path = Path(file).resolve() if file else Path()
        is_installed = not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
        if name != "__main__" and not is_installed and any(map(path.is_relative_to, folders)):
            found[name] = each
    return found


@contextlib.contextmanager
def _sources(texts: Mapping[Path, str], beside: Mapping[str, Any]) -> Generator[None]:
    """While it lasts, files are imported with these texts, and these modules anew."""
    own = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        text = texts.get(Path(loader.path).resolve())
        # Compiled files are of the text on the disk.
        return own(loader, fullname) if text is None else compile(text, loader.path, "exec", dont_inherit=True)

    for name in beside:
        del sys.modules[name]
    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        SourceFileLoader.get_code = own  # type: ignore[method-assign]
        for name in _beside(texts):
            del sys.modules[name]
        sys.modules.update(beside)
