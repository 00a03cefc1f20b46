"""`kernel_budget`, the VMEM and SMEM of a function's Pallas kernels, from its jaxpr; `suggest_blocks`, sizes to try."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewise import _tilewise
from tilewise._audit.audit import audit
from tilewise._base.errors import Error, Skip
from tilewise._base.limits import in_words
from tilewise._base.modules import module
from tilewise._base.results import Listed
from tilewise._base.types import Tpu
from tilewise._explain import explain
from tilewise._jax.device import traced_for
from tilewise._jax.dump import dumped
from tilewise._jax.jaxprs import is_literal, variables
from tilewise._jax.lowering import Request, lower_on
from tilewise._kernel.text import kernels_of
from tilewise._tilewise import KernelBudget, KernelRow, kernel_measured

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
    kernels = tuple(
        _tilewise.kernel_budget(each.text, tpu=generation, may_be_dropped_bytes=each.may_be_dropped) for each in found
    )
    parts = [f"{kernel.name}, {what}" for kernel, each in zip(kernels, found, strict=True) for what in each.not_covered]
    not_covered = (*others, *parts)
    if compile:
        kernels = _all_asked(kernels, [each.call for each in found], generation)
    if confirm and kernels and not any(kernel.unsupported for kernel in kernels):
        kernels = _confirmed(kernels, Request(f, args, generation, kwargs=kwargs))
    return KernelBudgets(kernels, not_covered)


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
        with contextlib.suppress(Error):
            refused = explain(str(error), tpu=generation)
            if refused.memory_space_name == "vmem":
                return kernel_measured(kernel, refused.used_bytes, verdict="does_not_fit")
        return kernel_measured(kernel, refusal=_first_words(error))
    if len(rows) != 1 or rows[0].used_bytes is None:
        return kernel
    return kernel_measured(kernel, rows[0].used_bytes, verdict="fits")


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
        return tuple(kernel_measured(kernel, refused.used_bytes) if [kernel] == named else kernel for kernel in kernels)
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
        return kernel_measured(kernel, size if is_possible else None)

    return tuple(map(measured, kernels, in_order))


def _sanitized(name: str | None) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name or "")


@dataclass(frozen=True)
class SuggestedBlocks:
    """A choice of block sizes that may compile.

    Attributes:
        sizes: the choice, by the names of the space.
        vmem_bytes: bytes of VMEM that the kernel then declares: of several, the largest.
        guess_bytes: bytes that its body is guessed to take besides.
        moved_bytes: bytes that the windows of all kernels move over the whole grid: fewer where blocks are used more
            often before they are replaced. ``None`` where only the run knows the grid.
        verdict: that of `KernelBudgets`.
        measured_bytes: bytes of VMEM by the compiler's own account, of several kernels the largest; ``None`` unless it
            was asked.
    """

    sizes: dict[str, Any]
    vmem_bytes: int
    guess_bytes: int
    moved_bytes: int | None
    verdict: str | None
    measured_bytes: int | None


@dataclass(frozen=True)
class BlockSuggestions(Listed[SuggestedBlocks]):
    """Block sizes found by `suggest_blocks`, best first; a sequence of `SuggestedBlocks`. ``str`` is a table.

    Attributes:
        choices: those that may compile. First those that probably fit, the fewest moved bytes first.
        removed: those that can't, each with the reason.

    Examples:
        >>> BlockSuggestions((), ()).removed_share
        0.0
    """

    choices: tuple[SuggestedBlocks, ...]
    removed: tuple[tuple[dict[str, Any], str], ...]

    @property
    def removed_share(self) -> float:
        """The share of the space that need not be tried."""
        count = len(self.choices) + len(self.removed)
        return len(self.removed) / count if count else 0.0

    def __str__(self) -> str:
        lines = [f"{len(self.choices)} choices to try, {len(self.removed)} that can't compile"]
        for choice in self.choices:
            sizes = ", ".join(f"{name}={size}" for name, size in choice.sizes.items())
            moved = "?" if choice.moved_bytes is None else in_words(choice.moved_bytes)
            verdict = (choice.verdict or "unknown").replace("_", " ")
            if choice.verdict == "does_not_fit":
                verdict = "fits only if XLA keeps operands in VMEM"
            taken = "" if choice.measured_bytes is None else f"{in_words(choice.measured_bytes)} taken, "
            lines.append(f"  {sizes}: {verdict}, {taken}{in_words(choice.vmem_bytes)} declared, {moved} moved")
        return "\n".join(lines)


def suggest_blocks(
    make: Callable[..., Any], /, *, tpu: Tpu, space: Mapping[str, Iterable[Any]], compile: bool = False
) -> BlockSuggestions:
    """Suggest block sizes of a space to try on a TPU, best first, with no TPU.

    Each choice is traced, and its kernels are budgeted as `kernel_budget` does. Only choices that certainly don't
    compile are left out: refused blocks, and kernels above the limit even if XLA keeps all operands that it could in
    VMEM. The others come in this order: by their verdict (a guess of the body, or with ``compile`` the
    compiler's), then by the bytes that their windows move, then the larger blocks first, which take fewer steps.

    Args:
        make: called with a choice by name. It returns the function and its arguments, such as ``(f, x, y)``. Where the
            choice makes no kernel it raises `Skip`, ``ValueError`` or ``AssertionError``, as checks of divisibility do.
        tpu: the generation.
        space: the sizes to try, by name.
        compile: whether to ask the compiler about each choice that is left; refused ones are left out, too.

    Raises:
        ParseError: ``tpu`` names no TPU generation.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> from jax.experimental import pallas as pl
        >>> x = jax.ShapeDtypeStruct((8192, 8192), jnp.float32)
        >>> def make(rows):
        ...     def double(x):
        ...         def kernel(x_ref, y_ref):
        ...             y_ref[...] = 2 * x_ref[...]
        ...         block = pl.BlockSpec((rows, 8192), lambda i: (i, 0))
        ...         return pl.pallas_call(kernel, grid=8192 // rows, in_specs=[block], out_specs=block, out_shape=x)(x)
        ...     return double, x
        >>> found = suggest_blocks(make, tpu="v6e", space={"rows": [4, 64, 128, 256, 512]})
        >>> [choice.sizes["rows"] for choice in found], [choice["rows"] for choice, _ in found.removed]
        ([256, 128, 64], [4, 512])
    """
    choices: list[SuggestedBlocks] = []
    removed: list[tuple[dict[str, Any], str]] = []
    for sizes in itertools.product(*space.values()):
        choice = dict(zip(space, sizes, strict=True))
        try:
            f, *args = make(**choice)
            found = kernel_budget(f, *args, tpu=tpu, compile=compile)
        except (Skip, ValueError, AssertionError) as error:
            removed.append((choice, f"{type(error).__name__}: {' '.join(str(error).split())}"))
            continue
        reason = _refused(found)
        if reason is not None:
            removed.append((choice, reason))
            continue
        moved = [kernel.moved_bytes for kernel in found]
        known = [each for each in moved if each is not None]
        guess = max((kernel.guess_bytes or 0 for kernel in found), default=0)
        total = sum(known) if len(known) == len(moved) else None
        measured = max((kernel.measured_bytes for kernel in found if kernel.measured_bytes is not None), default=None)
        choices.append(SuggestedBlocks(choice, found.vmem_bytes, guess, total, found.verdict, measured))
    order = (*VERDICTS, None)

    def rank(choice: SuggestedBlocks) -> tuple[int, bool, int, int]:
        moved = choice.moved_bytes
        # At equal moved bytes, larger blocks take fewer steps.
        return order.index(choice.verdict), moved is None, moved or 0, -choice.vmem_bytes

    return BlockSuggestions(tuple(sorted(choices, key=rank)), tuple(removed))


def _refused(found: KernelBudgets) -> str | None:
    if found.unsupported:
        return found.unsupported[0]
    for kernel in found:
        if kernel.refusal is not None:
            return f"{kernel.name}: {kernel.refusal}"
        size, limit = kernel.measured_bytes, kernel.limit_bytes
        if size is not None:
            if kernel.verdict == "does_not_fit":
                return f"{kernel.name}: the compiler takes {in_words(size)} of VMEM"
            continue
        least = kernel.vmem_bytes - kernel.may_be_kept_bytes - kernel.may_be_dropped_bytes
        if limit is not None and least > limit:
            return f"{kernel.name}: declares {in_words(least)} of VMEM at least, of {in_words(limit)}"
    return None
