"""PyTorch's tensors as NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewise._base.errors import RelayoutError
from tilewise._base.modules import module
from tilewise._tilewise import ElementType

if TYPE_CHECKING:
    import numpy.typing as npt


def as_numpy(tensor: Any) -> npt.NDArray[Any]:
    """The tensor as an array with the dtype of ml_dtypes where NumPy has none: the same memory if it is contiguous.

    ``tensor.numpy()`` and DLPack refuse bfloat16, float8, and tensors with gradients.
    """
    dtype = ElementType(tensor.dtype).dtype
    if tensor.device.type != "cpu":
        raise RelayoutError(f"the tensor is on {tensor.device}: give `tensor.cpu()`", kind="not_on_cpu")
    # Conjugated and negated views are computed only when they are read.
    elements = tensor.detach().resolve_conj().resolve_neg().contiguous()
    as_bytes: Any = elements.reshape(-1).view(module("torch").uint8).numpy()
    array: npt.NDArray[Any] = as_bytes.view(dtype).reshape(tuple(tensor.shape))
    return array
