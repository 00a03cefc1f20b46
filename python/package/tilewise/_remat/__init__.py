"""`remat`: a training step within a memory budget, at the least time, judged by the compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewise import _tilewise
from tilewise._base.files import cache_folder
from tilewise._base.limits import bytes_of
from tilewise._base.progress import Ticker
from tilewise._base.types import Limit, Tpu
from tilewise._compiler.compile import Cache
from tilewise._compiler.process import shared
from tilewise._compiler.program import with_donations
from tilewise._jax.lowering import Request, is_jitted
from tilewise._remat.result import Remat
from tilewise._remat.search import Search
from tilewise._remat.step import Step


def remat(
    step: Callable[..., Any],
    /,
    *args: Any,
    tpu: Tpu,
    hbm_limit: Limit | None = None,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
    offload: bool = False,
    progress: bool = True,
) -> Remat:
    """Choose the values that a training step keeps for its backward pass, so that it fits and is as fast as possible.

    The step is traced, and a minimum cut chooses, for a price, values to keep and to compute again; an author's own
    ``jax.checkpoint`` is one of the choices. The TPU's compiler plans the choices, and compiles the best in full: no
    TPU is needed. The results stay those of the step, but for rounding.

    Args:
        step: a function of arrays that computes its own gradient; it may be under `jax.jit`.
        args: its arguments, abstract (``jax.ShapeDtypeStruct``) or real.
        tpu: the generation that runs it.
        hbm_limit: the memory that it has to fit into, as `audit` takes it; by default the generation's.
        topology: the slice, as `compile_for` takes it.
        jit_options: arguments of ``jax.jit``, such as ``{"donate_argnums": 0}``.
        offload: also try choices whose kept values lie in the host's memory between both passes. Transfers that the
            compiler hides behind the computation are estimated only roughly.
        progress: show one line of progress on standard error.

    Returns:
        A `Remat`: ``step`` is the function to use in place of the given one. Where nothing fits, ``fits`` is false, and
        it is the smallest that was found.

    Raises:
        Error: the step has no gradient, so that nothing is kept for one, or can't be planned.
        ImportError: JAX or libtpu is missing.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> def step(weights, x):
        ...     def loss(weights):
        ...         h = x
        ...         for w in weights:
        ...             h = jnp.tanh(h @ w)
        ...         return (h**2).mean()
        ...     return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(loss)(weights))
        >>> x = jax.ShapeDtypeStruct((2**17, 256), jnp.bfloat16)
        >>> weights = [jax.ShapeDtypeStruct((256, 256), jnp.bfloat16)] * 8
        >>> found = remat(step, weights, x, tpu="v5e", hbm_limit="400MiB", progress=False)
        >>> found.fits, found.rows[0].name, found.rows[0].fits
        (True, 'as written', False)
    """
    request = Request(step, args, _tilewise.generation_name(tpu), topology, jit_options)
    request = with_donations(request) if is_jitted(step) else request
    whole = _tilewise.hbm_bytes(request.tpu)
    limit = whole if hbm_limit is None else bytes_of(hbm_limit, whole)
    traced = Step.of(request)
    said = ["reading the step"]
    with Ticker(lambda: f"remat for {request.tpu}: {said[0]}", shown=progress), shared() as compiler:
        cache = Cache(cache_folder())
        search = Search(traced, limit, compiler, cache, offload=offload, say=lambda words: said.__setitem__(0, words))
        return Remat(search.run(), search)
