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
from tilewise._tilewise import KernelBudget, KernelRow

if TYPE_CHECKING:
    from tilewise._base.types import Tpu

__all__ = ["BlockChoice", "KernelBudget", "KernelRow", "budget", "fits", "largest_blocks"]


def budget(text: str, /, *, tpu: Tpu | None = None) -> KernelBudget:
    """The memory that a kernel takes.

    Args:
        text: the kernel, as ``tilewise kernel`` reads it.
        tpu: a generation, in place of the one that the text names.

    Raises:
        ParseError: the text isn't a kernel, or ``tpu`` names no TPU.
        ValueError: no TPU is given.
    """
    return _tilewise.kernel_budget(text, tpu=tpu)


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
