"""`suggest_blocks`: drops the block sizes of a grid that can't compile, and orders the rest."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewise._base.errors import Skip
from tilewise._base.limits import in_words
from tilewise._base.results import Listed
from tilewise._base.types import Tpu
from tilewise._kernel.budgets import VERDICTS, KernelBudgets, kernel_budget


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
