"""With PyTorch's tensors of every dtype."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewise as tw

torch = pytest.importorskip("torch")

# Of XLA's element types, by PyTorch's names; the bits are arbitrary.
DTYPES = [
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64",
    "float16 bfloat16 float32 float64 complex64 complex128",
    "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu",
]


def tensor(name: str, *bounds: int) -> Any:
    dtype = getattr(torch, name)
    if dtype == torch.bool:
        return torch.arange(np.prod(bounds)).reshape(bounds) % 3 == 0
    count = int(np.prod(bounds)) * dtype.itemsize
    return (torch.arange(count) * 37 % 113).to(torch.uint8).view(dtype).reshape(bounds)


def bits(value: Any) -> list[int]:
    listed: list[int] = value.contiguous().reshape(-1).view(torch.uint8).tolist()
    return listed


@pytest.mark.parametrize("name", " ".join(DTYPES).split())
def test_every_dtype_in_and_out(name: str) -> None:
    x = tensor(name, 19, 300)
    assert tw.ElementType(x.dtype).bits == 8 * x.dtype.itemsize or name == "bool"
    shape = tw.Shape.of(x, layout="{1,0:T(8,128)}")
    assert shape.dimensions == (19, 300)
    assert tw.predict(x, tpu="v5e").element_type == shape.element_type
    device = tw.tile(x, "{1,0:T(8,128)}")
    width = x.dtype.itemsize
    at = shape.offset((7, 200)) * width
    assert device[at : at + width].tolist() == bits(x[7, 200])
    out = torch.zeros_like(x)
    assert tw.untile(device, shape, out=out) is out
    assert bits(out) == bits(x)
    # Into a tensor's memory, and from a tensor of bytes.
    memory = torch.zeros(shape.physical_bytes, dtype=torch.uint8)
    assert tw.relayout(x, tw.Shape.of(x), shape, out=memory) is memory
    assert memory.numpy().tobytes() == device.tobytes()
    assert np.array_equal(tw.relayout(memory, shape, tw.Shape.of(x)).tolist(), bits(x))
    assert tw.tile(x, shape, out=torch.empty_like(memory)).numpy().tobytes() == device.tobytes()
    # Without `out`, the result is a tensor by DLPack.
    assert torch.from_dlpack(device).view(x.dtype).numel() == shape.physical_elements


def test_values_are_those_of_ml_dtypes() -> None:
    x = torch.arange(15).reshape(3, 5).to(torch.bfloat16)
    device = tw.tile(x, "{1,0:T(2,2)}").view(ml_dtypes.bfloat16)
    assert device[17] == 13


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_every_kind_of_tensor() -> None:
    layout = "{1,0:T(2,2)}"
    x = torch.arange(15, dtype=torch.float32).reshape(3, 5)
    expected = tw.tile(x, layout).tobytes()
    for same in (x.T.contiguous().T, x.clone().requires_grad_(), torch.nn.Parameter(x), x[:, :]):
        assert tw.tile(same, layout).tobytes() == expected
    assert tw.tile(torch.zeros((0, 5)), layout).size == 0
    assert tw.untile(tw.tile(torch.tensor(2.0, dtype=torch.bfloat16), "{}"), "bf16[]") == 2
    z = torch.tensor([[1 + 2j, 3 - 1j]])
    assert tw.tile(z.conj(), "{1,0}").view(np.complex64).tolist() == [1 - 2j, 3 + 1j]
    refused = [(torch.zeros(3, device="meta"), "cpu"), (torch.zeros(3, dtype=torch.complex32), "complex32")]
    for tensor, why in refused:
        with pytest.raises(tw.Error, match=why):
            tw.tile(tensor, "{0}")
    with pytest.raises(tw.RelayoutError, match="contiguous"):
        tw.untile(expected, "f32[3,5]{1,0:T(2,2)}", out=torch.zeros(5, 3).T)
    with pytest.raises(tw.RelayoutError, match="dimensions and dtype"):
        tw.untile(expected, "f32[3,5]{1,0:T(2,2)}", out=torch.zeros(3, 5, dtype=torch.float64))
    with pytest.raises(TypeError, match="array"):
        tw.untile(expected, "f32[3,5]{1,0:T(2,2)}", out=bytearray(60))  # type: ignore[type-var]
