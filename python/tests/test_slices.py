"""Runs of slices, and reshardings."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tilewise as tw


@pytest.mark.parametrize("order", ["memory", "slice"])
@pytest.mark.parametrize("strides", [None, (1, 3), (2, 1)])
@pytest.mark.parametrize(
    "text", ["bf16[19,300]{1,0:T(8,128)(2,1)}", "s4[19,300]{0,1:T(8,128)E(4)}", "f32[19,300]{1,0}"]
)
def test_runs_are_the_elements_offsets(text: str, strides: tuple[int, int] | None, order: str) -> None:
    shape = tw.Shape(text)
    start, limit = (3, 17), (19, 141)
    steps = strides or (1, 1)
    axes = [np.arange(a, b, step) for a, b, step in zip(start, limit, steps, strict=True)]
    indices = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    bits = {"bf16": 16, "s4": 4, "f32": 32}[text.split("[")[0]]
    offsets = shape.offsets(indices).ravel()
    if order == "memory":
        offsets.sort()
    runs = shape.slice_runs(start, limit, strides=strides, order=order)  # type: ignore[arg-type]
    assert (runs.dtype, runs.ndim) == (np.dtype("i8"), 2)
    told = [np.arange(at // bits, (at + length) // bits) for at, length in runs.tolist()]
    np.testing.assert_array_equal(np.concatenate(told), offsets)
    # Neighbours are merged.
    assert not np.any(runs[:-1].sum(axis=1) == runs[1:, 0])


def test_slices_outside() -> None:
    shape = tw.Shape("f32[3,5]{1,0:T(2,2)}")
    assert shape.slice_runs((1, 5), (3, 5)).shape == (0, 2)
    with pytest.raises(tw.OutOfRangeError):
        shape.slice_runs((0, 0), (4, 5))
    with pytest.raises(tw.ShapeError):
        shape.slice_runs((0,), (3,))
    with pytest.raises(ValueError, match="order"):
        shape.slice_runs((0, 0), (3, 5), order="row-major")  # type: ignore[arg-type]


def test_shards_through_tiles() -> None:
    array = np.arange(40 * 300, dtype=np.float32).reshape(40, 300)
    layout = "{1,0:T(8,128)}"
    rows = [tw.tile(part, layout) for part in np.split(array, 4)]
    made = tw.reshard(rows, f"f32[40,300]{layout}", "{devices=[4,1]<=[4]}", "f32[40,300]", "{devices=[1,4]<=[4]}")
    for device, part in enumerate(np.split(array, 4, axis=1)):
        np.testing.assert_array_equal(made[device].view(np.float32).reshape(part.shape), part)
    with pytest.raises(tw.RelayoutError):
        tw.reshard([None, *rows[1:]], f"f32[40,300]{layout}", "{devices=[4,1]<=[4]}", "f32[40,300]", "{replicated}")
    with pytest.raises(tw.ParseError):
        tw.reshard(rows, f"f32[40,300]{layout}", "{devices=[4]", "f32[40,300]", "{replicated}")


# On eight devices of the CPU, which jax makes only where nothing has asked for any.
DEVICE_PUT = """
import itertools
import jax, numpy as np, tilewise as tw
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
devices = jax.devices("cpu")
array = np.arange(16 * 24, dtype=np.int32).reshape(16, 24)
meshes = [
    Mesh(np.array(devices).reshape(4, 2), tuple("ab")),
    Mesh(np.array(devices)[::-1].reshape(2, 2, 2), tuple("abc")),
]
specs = [P(), P("a"), P(None, "a"), P("a", "b"), P("b", "a"), P(("b", "a")), P(("a", "b"), None)]
shardings = [NamedSharding(mesh, spec) for mesh in meshes for spec in specs]

# XLA numbers devices by their place in the mesh.
def shards(x):
    held = {shard.device: np.asarray(shard.data) for shard in x.addressable_shards}
    return [np.ascontiguousarray(held[device]) for device in x.sharding.mesh.devices.flat]

text = lambda sharding: str(sharding._to_xla_hlo_sharding(2))
pairs = 0
for before, after in itertools.product(shardings, shardings):
    x = jax.device_put(array, before)
    sources = [shard.reshape(-1).view(np.uint8) for shard in shards(x)]
    made = tw.reshard(sources, "s32[16,24]", text(before), "s32[16,24]", text(after))
    for own, wanted in zip(made, shards(jax.device_put(x, after)), strict=True):
        np.testing.assert_array_equal(own.view(np.int32), wanted.reshape(-1), f"{text(before)} {text(after)}")
    pairs += 1
print(pairs)
"""


def test_reshardings_are_device_put() -> None:
    pytest.importorskip("jax")
    done = subprocess.run([sys.executable, "-c", DEVICE_PUT], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "196"
