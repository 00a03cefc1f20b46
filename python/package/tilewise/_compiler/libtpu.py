"""The libtpu that compiles: the installed one, or another version, kept beside its answers."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tilewise._base.errors import Error
from tilewise._base.files import cache_folder
from tilewise._base.progress import Ticker

_VERSION = re.compile(r"\d+\.\d+\.\d+(?:\.\d+)?")


def libtpu_version() -> str | None:
    """The version of libtpu that compiles, such as ``0.0.50.1``; ``None`` where it is not the installed one."""
    spec = importlib.util.find_spec("libtpu")
    # JAX sets it, to the installed one.
    path = os.environ.get("TPU_LIBRARY_PATH")
    if spec is None or spec.origin is None or (path and not path.startswith(os.path.dirname(spec.origin))):
        return None
    # Nightly builds end in a date.
    found = _VERSION.match(_installed("libtpu"))
    return None if found is None else found[0]


def other_version(version: str | None) -> str | None:
    """That version, if it is another than the installed one."""
    if version is None or version == libtpu_version():
        return None
    if not _VERSION.fullmatch(version):
        raise ValueError(f"a version of libtpu is written 0.0.52, not {version!r}")
    return version


def compiler_version(version: str | None = None) -> str:
    """The compiler with this libtpu, the installed one by default, as ``libtpu 0.0.52, jaxlib 0.12.0.1``."""
    libtpu = version or _installed("libtpu")
    return f"libtpu {libtpu}, jaxlib {_installed('jaxlib')}"


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return f"of {os.environ.get('TPU_LIBRARY_PATH', 'an unknown version')}"


def library(version: str) -> Path:
    """The library of that version; installed from PyPI the first time, beside the kept answers: 0.7 GB."""
    folder = cache_folder() / "libtpu"
    kept = folder / version / "libtpu.so"
    if kept.exists():
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as made, Ticker(f"installing libtpu {version} in {folder}"):
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", made, f"libtpu=={version}"]
        done = subprocess.run(pip, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        found = Path(made) / "libtpu" / "libtpu.so"
        if done.returncode or not found.exists():
            words = next(iter(done.stderr.strip().splitlines()[-1:]), f"status {done.returncode}")
            message = f"pip can't install libtpu {version} here: {words.removeprefix('ERROR: ')}"
            raise Error(message, kind="no_libtpu", help="`pip index versions libtpu` lists the versions that there are")
        kept.parent.mkdir(exist_ok=True)
        # Another process may have been faster: either is right.
        shutil.move(found, kept)
    return kept
