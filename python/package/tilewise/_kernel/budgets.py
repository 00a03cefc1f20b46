"""`kernel_budget`: the VMEM and SMEM of a function's Pallas kernels, from its jaxpr."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tilewise import _tilewise
from tilewise._audit.audit import audit
from tilewise._base.errors import Error
from tilewise._base.modules import module
from tilewise._base.results import Listed
from tilewise._base.types import Tpu
from tilewise._explain import explain
from tilewise._jax.device import traced_for
from tilewise._jax.dump import dumped
from tilewise._jax.jaxprs import is_literal, variables
from tilewise._jax.lowering import Request, lower_on
from tilewise._kernel.text import Kernel, kernels_of
from tilewise.kernels import KernelBudget, KernelRow, budget

# XLA keeps no operand in VMEM as a whole, so that all windows are allocated; which counts differs by generation.
_ALL_WINDOWS = {"xla_vf_vmem_memory_space_assignment": False, "xla_gf_vmem_memory_space_assignment": False}

VERDICTS = ("fits", "probably_fits", "declared_fits", "ask", "probably_does_not_fit", "does_not_fit")
"""From the surest to the worst."""


@dataclass(frozen=True)
class KernelBudgets(Listed[KernelBudget]):
    """The Pallas kernels of a function, in its order; a sequence of `KernelBudget`. ``str`` is all of their tables.

    Attributes:
        kernels: a budget for each.
        not_covered: parts not known here: kernels of other kinds (``core_map``, those of SparseCores), and of the
            kernels blocks of kinds whose bytes were never compared (``BoundedSlice``, ``Element`` beside plain ones,
            lookahead).

    Examples:
        >>> KernelBudgets((), ()).vmem_bytes
        0
    """

    kernels: tuple[KernelBudget, ...]
    not_covered: tuple[str, ...]

    @property
    def vmem_bytes(self) -> int:
        """The most VMEM that one of them declares."""
        return max((kernel.vmem_bytes for kernel in self.kernels), default=0)

    @property
    def smem_bytes(self) -> int:
        """The most SMEM that one of them declares."""
        return max((kernel.smem_bytes for kernel in self.kernels), default=0)

    @property
    def verdict(self) -> str | None:
        """The worst of their verdicts; ``None`` without one."""
        verdicts = [kernel.verdict for kernel in self.kernels if kernel.verdict is not None]
        return max(verdicts, key=VERDICTS.index, default=None)

    @property
    def unsupported(self) -> tuple[str, ...]:
        """Why the compiler refuses some, whatever their size: a sentence for each block, with the nearest it takes."""
        return tuple(f"{kernel.name}, {words}" for kernel in self.kernels for words in kernel.unsupported)

    @property
    def rows(self) -> tuple[KernelRow, ...]:
        """The rows of all of them."""
        return tuple(row for kernel in self.kernels for row in kernel.rows)

    def __str__(self) -> str:
        tables = [str(kernel) for kernel in self.kernels]
        if self.not_covered:
            tables.append(f"Not covered: {', '.join(self.not_covered)}")
        return "\n\n".join(tables) or "no Pallas kernels"


def kernel_budget(
    f: Callable[..., Any], /, *args: Any, tpu: Tpu, compile: bool = False, confirm: bool = False, **kwargs: Any
) -> KernelBudgets:
    """Budget the VMEM and SMEM of a function's Pallas kernels on a TPU generation, without a TPU or its compiler.

    The function is traced, and every ``pallas_call`` in it is found: inside ``jit``, loops, branches, ``shard_map``,
    and derivatives. A kernel's declared bytes are exact, unless XLA keeps a small operand in VMEM. The bytes of its
    body are guessed: the largest value above 256 KiB that a matrix product has on its left, or that is reduced and
    read again.

    The function's questions to JAX about its device while it is traced, ``jax.devices()``, ``jax.default_backend()``,
    ``pltpu.get_tpu_info()``, are answered for that TPU; a warning lists the unanswered ones.

    Needs JAX 0.6 or newer; kernels with ``emit_pipeline`` need 0.10.

    Args:
        f: the function.
        args: its arguments, abstract (``jax.ShapeDtypeStruct``) or real.
        tpu: the generation, under any of its names (``"v6e"``).
        compile: whether to ask the compiler about each kernel by itself: ``measured_bytes`` is its account, and the
            verdict ``fits`` or ``does_not_fit``, with all windows allocated: in a program XLA may keep small operands
            in VMEM. A kernel refused for another reason has its words as ``refusal``. It takes a fraction of a second
            for most kernels, once the compiler is loaded. A kernel that can't be lowered alone, such as one that talks
            to other chips, keeps its guess.
        confirm: whether to compile the whole function, as `compile_for` does, for the ``measured_bytes`` of each
            kernel: the compiler's own account, or that of its message where it refuses. They are told apart by their
            names, else by their order. ``None`` where that leaves a doubt, and where a block is ``unsupported``.
        kwargs: its arguments by name.

    Raises:
        ParseError: ``tpu`` names no TPU generation.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> from jax.experimental import pallas as pl
        >>> def double(x):
        ...     def kernel(x_ref, y_ref):
        ...         y_ref[...] = 2 * x_ref[...]
        ...     block = pl.BlockSpec((8, 128), lambda i: (i, 0))
        ...     return pl.pallas_call(kernel, grid=8, in_specs=[block], out_specs=block, out_shape=x)(x)
        >>> found = kernel_budget(double, jax.ShapeDtypeStruct((64, 128), jnp.float32), tpu="v6e")
        >>> found.vmem_bytes, found.verdict, [row.buffers for row in found.rows]
        (16384, 'probably_fits', [2, 2])
    """
    generation = _tilewise.generation_name(tpu)
    jax = module("jax")
    jaxpr = traced_for(generation, lambda: jax.make_jaxpr(f)(*args, **kwargs).jaxpr)
    found, others = kernels_of(jaxpr, generation)
    kernels = tuple(_known(each, generation) for each in found)
    parts = [f"{kernel.name}, {what}" for kernel, each in zip(kernels, found, strict=True) for what in each.not_covered]
    not_covered = (*others, *parts)
    if compile:
        kernels = _all_asked(kernels, [each.call for each in found], generation)
    if confirm and kernels and not any(kernel.unsupported for kernel in kernels):
        kernels = _confirmed(kernels, Request(f, args, generation, kwargs=kwargs))
    return KernelBudgets(kernels, not_covered)


def _known(found: Kernel, generation: str) -> KernelBudget:
    """The budget of a kernel, with the scratch that the compiler may do without, which its text doesn't tell apart."""
    kernel = budget(found.text, tpu=generation)
    dropped, limit = found.may_be_dropped, kernel.limit_bytes
    may_fit = limit is not None and kernel.vmem_bytes - dropped <= limit < kernel.vmem_bytes
    return replace(kernel, may_be_dropped_bytes=dropped, verdict="ask" if may_fit else kernel.verdict)


def _all_asked(kernels: tuple[KernelBudget, ...], calls: list[Any], generation: str) -> tuple[KernelBudget, ...]:
    """The kernels with the compiler's answer about each; it is asked once about those that are the same."""
    keys = [(kernel.text, str(call.params)) for kernel, call in zip(kernels, calls, strict=True)]
    known: dict[tuple[str, str], KernelBudget] = {}
    for key, kernel, call in zip(keys, kernels, calls, strict=True):
        if key not in known:
            known[key] = kernel if kernel.unsupported else _asked(kernel, call, generation)
    return tuple(known[key] for key in keys)


def _asked(kernel: KernelBudget, call: Any, generation: str) -> KernelBudget:
    """The kernel with the compiler's answer about it alone; as it is where it can't be compiled so."""
    jax = module("jax")

    def alone(*arrays: Any) -> Any:
        values = iter(arrays)
        operands = [operand.val if is_literal(operand) else next(values) for operand in call.invars]
        return call.primitive.bind(*operands, **call.params)

    avals = [each.aval for each in variables(call.invars)]
    try:
        arrays = tuple(jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals)
        _, lowered = lower_on(Request(alone, arrays, generation))
    except Exception:
        return kernel
    try:
        rows = audit(str(lowered.compile(_ALL_WINDOWS).as_text()), tpu=generation).kernels
    except Exception as error:  # JAX has a class of its own for some of Mosaic's messages.
        try:
            refused = explain(str(error), tpu=generation)
        except Error:
            refused = None
        if refused is None or refused.memory_space_name != "vmem":
            return replace(kernel, refusal=_first_words(error))
        return replace(kernel, measured_bytes=refused.used_bytes, verdict="does_not_fit")
    if len(rows) != 1 or rows[0].used_bytes is None:
        return kernel
    return replace(kernel, measured_bytes=rows[0].used_bytes, verdict="fits")


def _first_words(error: Exception) -> str:
    """The start of a compiler's message, before it lists places and operations."""
    words = str(error).split("\n\n")[0].split("\nSee ")[0]
    return " ".join(words.rpartition("`: ")[2].split())


def _confirmed(kernels: tuple[KernelBudget, ...], request: Request) -> tuple[KernelBudget, ...]:
    jax, generation = module("jax"), request.tpu
    _, lowered = lower_on(request)
    try:
        compiled = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        refused = explain(str(error), tpu=generation)
        if refused.memory_space_name != "vmem":
            raise
        named = [kernel for kernel in kernels if len(kernels) == 1 or f"{_sanitized(kernel.name)}." in str(error)]
        return tuple(
            replace(kernel, measured_bytes=refused.used_bytes) if [kernel] == named else kernel for kernel in kernels
        )
    try:
        text = str(compiled.as_text())
    except jax.errors.JaxRuntimeError:
        # JAX can't print some programs with SparseCore calls; the compiler's own dump can.
        text = dumped(lowered, "after_codegen")
    rows = audit(text, tpu=generation).kernels
    used: dict[str, set[int | None]] = {}
    for row in rows:
        # XLA numbers instructions of one name: `flash_attention.2`.
        used.setdefault(row.instruction.rstrip("0123456789").removesuffix("."), set()).add(row.used_bytes)
    in_order = [row.used_bytes for row in rows] if len(kernels) == len(rows) else [None] * len(kernels)

    def measured(kernel: KernelBudget, size: int | None) -> KernelBudget:
        # Kernels with one name may be copies of each other: then they use equal bytes.
        sizes = used.get(_sanitized(kernel.name), {size})
        size = next(iter(sizes)) if len(sizes) == 1 else None
        is_possible = size is not None and size >= kernel.vmem_bytes - kernel.may_be_kept_bytes
        return replace(kernel, measured_bytes=size if is_possible else None)

    return tuple(map(measured, kernels, in_order))


def _sanitized(name: str | None) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name or "")
