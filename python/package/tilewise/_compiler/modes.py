"""The modes of asking the compiler that are exact."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import warnings
from typing import Any, NamedTuple

from tilewise._base.files import cache_folder, write_whole
from tilewise._base.modules import module
from tilewise._compiler.process import Compiler, Sizes
from tilewise._compiler.program import trace
from tilewise._jax.lowering import Request


class Modes(NamedTuple):
    """Whether each mode gives the sizes of a full compilation."""

    probe: bool
    stop: bool


_KNOWN: dict[str, Modes] = {}


def exact_modes(compiler: Compiler) -> Modes:
    """The exact modes: tried on a small program, once for each version of the compiler."""
    version = compiler.version
    if version not in _KNOWN:
        kept, held = cache_folder() / f"modes-{importlib.metadata.version('tilewise')}.json", dict[str, Any]()
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            held = dict(json.loads(kept.read_text(encoding="utf-8")))
            _KNOWN[version] = Modes(**held[version])
        if version not in _KNOWN:
            found = canary(compiler)
            if found is None:
                return Modes(probe=False, stop=False)
            _KNOWN[version] = found
            # Another process may write it, too: either is right.
            with contextlib.suppress(OSError):
                write_whole(kept, json.dumps({**held, version: found._asdict()}, sort_keys=True).encode())
        if not all(_KNOWN[version]):
            warnings.warn(f"plans of {version} can't be trusted: everything is compiled in full", stacklevel=3)
    return _KNOWN[version]


def canary(compiler: Compiler) -> Modes | None:
    """The exact modes for a small program; ``None`` if the compiler can't be asked now."""
    jax, jnp = module("jax"), module("jax.numpy")

    def twice(x: Any) -> Any:
        return jnp.exp(jax.lax.optimization_barrier(jnp.tanh(x)))

    program = trace(Request(twice, (jax.ShapeDtypeStruct((100_000, 300), jnp.float32),), "v5e"))
    full, probe = compiler.ask(program, "full"), compiler.ask(program, "probe")
    if full.status != "fits":
        return None
    plan = full.report
    is_exact = plan is not None and Sizes.planned(plan) == full.sizes
    probed = probe.status == "planned" and probe.sizes == full.sizes
    return Modes(probe=is_exact and probed, stop=is_exact and full.passed)
