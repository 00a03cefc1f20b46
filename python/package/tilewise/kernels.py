"""The VMEM and SMEM of Pallas kernels, from their texts: for autotuners, with neither JAX nor a TPU.

A kernel is a text with one declaration a line, as ``tilewise kernel`` reads it:

>>> from tilewise import kernels
>>> def matmul(bm, bn, bk):
...     return f'''tpu v5e
...         grid {8192 // bm},{8192 // bn},{8192 // bk}
...         in  bf16[8192,8192] block {bm},{bk} @ 0,2
...         in  bf16[8192,8192] block {bk},{bn} @ 2,1
...         out bf16[8192,8192] block {bm},{bn} @ 0,1
...         scratch vmem f32[{bm},{bn}]
...         body {2 * bm * bk}'''
>>> kernels.fits(matmul(512, 1024, 1024)), kernels.fits(matmul(1024, 1024, 1024))
(True, False)
>>> sizes = [256, 512, 1024, 2048, 4096]
>>> for choice in kernels.largest_blocks(matmul, {"bm": sizes, "bn": sizes, "bk": sizes}):
...     if choice.sizes["bk"] >= 1024:
...         print(choice.sizes, choice.vmem_bytes)
{'bm': 256, 'bn': 512, 'bk': 4096} 13631488
{'bm': 256, 'bn': 2048, 'bk': 1024} 13631488
{'bm': 256, 'bn': 1024, 'bk': 2048} 12582912
{'bm': 512, 'bn': 512, 'bk': 2048} 10485760
{'bm': 512, 'bn': 1024, 'bk': 1024} 10485760
{'bm': 1024, 'bn': 512, 'bk': 1024} 10485760
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewise import _tilewise
from tilewise._base.results import read

if TYPE_CHECKING:
    from tilewise._base.types import Tpu

__all__ = ["BlockChoice", "KernelBudget", "KernelRow", "budget", "fits", "largest_blocks"]


@dataclass(frozen=True)
class KernelRow:
    """The memory of a window, prefetched scalars or scratch of a kernel.

    Attributes:
        operand: ``in0``, ``out0``, ``prefetch0``, ``scratch0``, ….
        shape: the whole array; ``None`` for semaphores.
        block: the bounds of a block, ``None`` where a dimension is squeezed; ``None`` without a window.
        memory_space_name: ``vmem``, ``smem``, ``any``, ``hbm`` or ``semaphore``.
        padded_block: the bounds with the padding of the tiles; ``None`` if it takes nothing.
        buffers: how many blocks are held at a time.
        bytes: bytes of all of them.
        moved_bytes: bytes copied to or from the window over the whole grid; ``None`` if it isn't a window, and where
            only the run knows the grid.
        cause: of the buffer count: ``moves``, ``as_asked``, ``constant``, ``one_step``, ``no_window``, ``one_element``,
            ``fused``; ``None`` if it isn't a window.
        may_be_kept: whether XLA may keep the whole array in VMEM, so that the window is not allocated.
        unsupported: why the compiler refuses such a block; ``None`` if it doesn't.
        nearest_block: the nearest block that it takes; ``None`` without one.
    """

    operand: str
    shape: str | None
    block: tuple[int | None, ...] | None
    memory_space_name: str
    padded_block: tuple[int, ...] | None
    buffers: int
    bytes: int
    moved_bytes: int | None
    cause: str | None
    may_be_kept: bool
    unsupported: str | None
    nearest_block: tuple[int, ...] | None

    @property
    def logical_bytes(self) -> int:
        """Bytes of the elements of all of its blocks, without the padding of their tiles."""
        if self.shape is None or self.bytes == 0:
            return self.bytes
        whole = _tilewise.Shape(self.shape)
        bounds = whole.dimensions if self.block is None else [bound or 1 for bound in self.block]
        block = _tilewise.Shape(f"{whole.element_type}[{','.join(map(str, bounds))}]")
        return self.buffers * block.logical_bytes

    @property
    def padding_bytes(self) -> int:
        """Bytes of padding."""
        return self.bytes - self.logical_bytes


@dataclass(frozen=True)
class KernelBudget:
    """The VMEM and SMEM of a kernel on a TPU generation. ``str`` is a table.

    Declared bytes are exact; the bytes of its body are a guess, or not known. Sizes are in bytes.

    Attributes:
        text: the kernel, as ``tilewise kernel`` reads it.
        name: its name.
        tpu: the generation.
        rows: windows, prefetched scalars and scratch.
        vmem_bytes: bytes of VMEM that it declares.
        smem_bytes: bytes of SMEM that it declares.
        guess_bytes: bytes of VMEM that its body is guessed to take; ``None`` without a guess.
        limit_bytes: the limit of VMEM in force; ``None`` where it is not known.
        cap_bytes: the largest ``vmem_limit_bytes`` that is honoured.
        limit_needed_bytes: the limit that it needs, in whole MiB; ``None`` if no limit is enough.
        may_be_kept_bytes: bytes of windows that aren't allocated if XLA keeps their arrays in VMEM.
        may_be_dropped_bytes: bytes of scratch that the compiler may do without: allocations of ``pl.run_scoped``,
            unless copies from HBM fill it. 0 of a text, which doesn't tell it from other scratch.
        moved_bytes: bytes that all windows move over the whole grid; ``None`` where only the run knows the grid.
        libtpu: the versions of libtpu whose limits these are; ``None`` where there are none.
        verdict: ``does_not_fit``, ``declared_fits``, and with a guess ``probably_fits`` or ``probably_does_not_fit``;
            ``ask``, the compiler, where it fits only without ``may_be_dropped_bytes``. Of its size alone, also where
            ``unsupported`` says that the compiler refuses a block. ``fits`` and ``does_not_fit`` where the compiler was
            asked.
        measured_bytes: bytes of VMEM by the compiler's own account; ``None`` unless it was asked.
        refusal: the compiler's words where it was asked and refuses the kernel for something else than its memory;
            ``None`` where it doesn't.

    Examples:
        >>> from tilewise import kernels
        >>> found = kernels.budget("grid 8\\nin f32[64,128] block 8,128 @ 0,-", tpu="v6e")
        >>> found.vmem_bytes, found.verdict, found.rows[0].cause
        (8192, 'declared_fits', 'moves')
        >>> kernels.budget("grid 8\\nin f32[64,512] block 7,100 @ 0,0", tpu="v6e").unsupported[0].split("; ")[1]
        'the nearest such block is 8,128'
    """

    name: str | None
    tpu: str
    text: str
    rows: tuple[KernelRow, ...]
    vmem_bytes: int
    smem_bytes: int
    guess_bytes: int | None
    measured_bytes: int | None
    limit_bytes: int | None
    cap_bytes: int | None
    limit_needed_bytes: int | None
    may_be_kept_bytes: int
    may_be_dropped_bytes: int
    moved_bytes: int | None
    libtpu: str | None
    verdict: str | None
    refusal: str | None

    @property
    def unsupported(self) -> tuple[str, ...]:
        """Why the compiler refuses its blocks: a sentence for each, with the nearest legal block."""
        return tuple(f"{row.operand}: {row.unsupported}" for row in self.rows if row.unsupported is not None)

    def __str__(self) -> str:
        table = _tilewise.kernel_table(self.text, tpu=self.tpu, measured_bytes=self.measured_bytes)
        return table if self.refusal is None else f"{table}\n  refused    {self.refusal}"


def budget(text: str, /, *, tpu: Tpu | None = None) -> KernelBudget:
    """The memory that a kernel takes.

    Args:
        text: the kernel, as ``tilewise kernel`` reads it.
        tpu: a generation, in place of the one that the text names.

    Raises:
        ParseError: the text isn't a kernel, or ``tpu`` names no TPU.
        ValueError: no TPU is given.
    """
    unknown = {"may_be_dropped_bytes": 0, "measured_bytes": None, "refusal": None}
    found: KernelBudget = read(KernelBudget, {"text": text, **_tilewise.kernel_budget(text, tpu=tpu), **unknown})
    return found


def fits(text: str, limit: int | None = None, /, *, tpu: Tpu | None = None) -> bool:
    """Whether a kernel fits: its declared bytes, with the guess of its ``body`` line and a tenth of it, if it has one.

    A kernel with a block that the compiler refuses does not fit.

    Args:
        text, tpu: as `budget` takes them, with its errors.
        limit: bytes of VMEM, in place of the text's own limit or the generation's default.
    """
    return _tilewise.kernel_fits(text, limit, tpu=tpu)[2]


@dataclass(frozen=True)
class BlockChoice:
    """Block sizes that fit and can't grow.

    Attributes:
        sizes: the choice, by the names of the candidates.
        vmem_bytes: bytes of VMEM that the kernel then declares.
        guess_bytes: bytes that its body is guessed to take, 0 without a guess.
        limit_needed_bytes: the limit that it needs, in whole MiB.
    """

    sizes: dict[str, int]
    vmem_bytes: int
    guess_bytes: int
    limit_needed_bytes: int | None


def largest_blocks(
    make: Callable[..., str],
    candidates: Mapping[str, Iterable[int]],
    /,
    *,
    tpu: Tpu | None = None,
    limit: int | None = None,
) -> list[BlockChoice]:
    """The choices of block sizes that fit and where no size can grow; the most declared bytes first.

    Args:
        make: the text of the kernel with these sizes, given by their names. With a line ``body`` the guess counts, with
            a tenth of it.
        candidates: the sizes to try, by name.
        tpu: as `budget` takes it, with its errors.
        limit: bytes of VMEM, such as a ``vmem_limit_bytes`` that is to be asked for.
    """
    fitting: list[BlockChoice] = []
    for sizes in itertools.product(*candidates.values()):
        choice = dict(zip(candidates, sizes, strict=True))
        declared, guess, is_fitting, needed = _tilewise.kernel_fits(make(**choice), limit, tpu=tpu)
        if is_fitting:
            fitting.append(BlockChoice(choice, declared, guess, needed))
    # A choice is dominated by one that no size of it exceeds: seen first, since the sum of its sizes is larger.
    largest: list[BlockChoice] = []
    for found in sorted(fitting, key=lambda each: -sum(each.sizes.values())):
        if not any(all(size <= other.sizes[name] for name, size in found.sizes.items()) for other in largest):
            largest.append(found)
    return sorted(largest, key=lambda found: -found.vmem_bytes)
