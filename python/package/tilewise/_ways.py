"""Which ways to ask the compiler can be trusted, and where what it said is kept."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewise._ask import Compiler, Sizes
from tilewise._modules import module
from tilewise._program import trace


@dataclass(frozen=True)
class Ways:
    """Which ways to ask are exact with this compiler."""

    probe: bool
    stop: bool


_WAYS: dict[str, Ways] = {}


def ways(compiler: Compiler) -> Ways:
    """The ways that can be trusted: tried on a small program, once for each version of the compiler."""
    version = compiler_version()
    if version not in _WAYS:
        kept = cache_folder() / f"ways-{importlib.metadata.version('tilewise')}.json"
        held = _held(kept)
        if version not in held:
            found = canary(compiler)
            if found is None:
                return Ways(probe=False, stop=False)
            held[version] = {"probe": found.probe, "stop": found.stop}
            # Another process may write it, too: either is right.
            with contextlib.suppress(OSError):
                write_whole(kept, json.dumps(held, sort_keys=True).encode())
        _WAYS[version] = Ways(**held[version])
        if not (_WAYS[version].probe and _WAYS[version].stop):
            warnings.warn(f"plans of {version} can't be trusted: everything is compiled in full", stacklevel=3)
    return _WAYS[version]


def canary(compiler: Compiler) -> Ways | None:
    """Which ways are exact for a small program; ``None`` if the compiler can't be asked now."""
    jax, jnp = module("jax"), module("jax.numpy")

    def twice(x: Any) -> Any:
        return jnp.exp(jax.lax.optimization_barrier(jnp.tanh(x)))

    program = trace(twice, (jax.ShapeDtypeStruct((100_000, 300), jnp.float32),), "v5e", None, None)
    full, probe = compiler.ask(program, "full"), compiler.ask(program, "probe")
    if full.status != "fits":
        return None
    plan = full.report
    is_exact = plan is not None and Sizes.planned(plan) == full.sizes
    probed = probe.status == "planned" and probe.sizes == full.sizes
    return Ways(probe=is_exact and probed, stop=is_exact and full.passed)


def _held(path: Path) -> dict[str, dict[str, bool]]:
    try:
        held: dict[str, dict[str, bool]] = json.loads(path.read_text(encoding="utf-8"))
        return {version: {name: bool(found[name]) for name in ("probe", "stop")} for version, found in held.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def cache_folder() -> Path:
    """Where what the compiler said is kept: ``$TILEWISE_CACHE``, by default ``$XDG_CACHE_HOME/tilewise``."""
    own = os.environ.get("TILEWISE_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(own) if own else Path(base) / "tilewise"


def clear_cache() -> None:
    """Forget what the compiler said of programs: the next call compiles them again.

    `audit`, `check_fix` and `fit` keep the plans of functions in the folder that the environment variable
    ``TILEWISE_CACHE`` names, by default ``~/.cache/tilewise``. A plan is used again only for the same program, lines of
    its source included, options and version of the compiler.

    Examples:
        >>> clear_cache()
    """
    for kept in cache_folder().glob("*.answer"):
        kept.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that readers see either whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _compiler_version() -> str:
    versions: list[str] = []
    for name in ("libtpu", "jaxlib"):
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"{name} of {os.environ.get('TPU_LIBRARY_PATH', 'an unknown version')}")
    return ", ".join(versions)


# Called, not a decorator: stubtest takes its type for another than the function's.
compiler_version: Callable[[], str] = functools.cache(_compiler_version)
"""The compiler, as ``libtpu 0.0.52, jaxlib 0.10.2``."""
