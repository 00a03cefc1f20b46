"""`compile_for`, which compiles a function for a TPU without one."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tilewise._jax.lowering import Request, lower_on

if TYPE_CHECKING:
    from jax.stages import Compiled as _Compiled

    from tilewise._base.types import Tpu

# The lowered program of each result of `compile_for`: JAX can't print every one; the compiler dumps lowered ones.
_LOWERED: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def compile_for(
    f: Callable[..., Any],
    /,
    *args: Any,
    tpu: Tpu,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> _Compiled:
    """Compile a function for a TPU generation, on any Linux machine: no TPU is needed.

    Needs JAX and libtpu, the compiler: ``pip install 'tilewise[tpu]'``.

    Args:
        f: the function: plain, bound or partial; jitted by ``jax.jit``, ``jax.pmap``, Flax or Equinox; a result of
            ``jax.jit(f).trace(…)``; or a ``jax.export.Exported``, whose arguments are optional.
        args: its arguments, abstract (``jax.ShapeDtypeStruct``) or real. Meshes of their shardings, and those in the
            function, are laid out over the TPU's devices, whether they are abstract or of this machine's devices: by
            the devices' numbers. `mesh` makes one of the TPU's.
        tpu: the generation, under any of its names (``"v5e"``).
        topology: the slice, such as ``"v5e:4x4"``, or ``"v5e:4x4*2"`` for two; ``None`` for the smallest with enough
            devices for the meshes.
        jit_options: arguments of ``jax.jit``, such as ``{"donate_argnums": 0}``.
        kwargs: the function's keyword arguments. Pass those that share a name with the above by ``functools.partial``.

    Returns:
        A ``jax.stages.Compiled``: ``memory_analysis()`` and ``as_text()`` work, calling it does not.

    Raises:
        ImportError: JAX or libtpu is missing or too old.
        NotATpuProgram: the function was exported or lowered for another machine.
        ParseError: ``tpu`` names no TPU generation.
        RuntimeError: libtpu can't start, for example since another process holds it.
        ValueError: there is no such topology, or none with enough devices.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> x = jax.ShapeDtypeStruct((400000, 12), jnp.float32)
        >>> compiled = compile_for(jnp.tanh, x, tpu="v5e")
        >>> compiled.memory_analysis().argument_size_in_bytes
        25600000
    """
    _, lowered = lower_on(Request(f, args, tpu, topology, jit_options, kwargs=kwargs))
    compiled: _Compiled = lowered.compile()
    _LOWERED[compiled] = lowered
    return compiled


def lowered_of(compiled: Any) -> Any:
    """The lowered program that `compile_for` compiled into this; ``None`` if it was compiled elsewhere."""
    try:
        return _LOWERED.get(compiled)
    except TypeError:  # Not JAX's: it allows no weak reference.
        return None
