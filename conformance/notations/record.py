"""Records what other systems' own libraries make of the texts that `tilewise show --as` prints.

    python record.py TILEWISE > ../facts/notations.csv

Each text is read by the library whose notation it is: PJRT's and JAX's layouts, MLIR and Mosaic's dialect inside jaxlib,
NumPy, einops, and pycute, the layout algebra that NVIDIA ships with CUTLASS. A row has the shape, the notation, the text,
and what the library says: XLA's layout for `pjrt` and `jax`, and the offset of some elements, given by their row-major
positions.
"""

import csv
import itertools
import json
import re
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pycute
from jax._src.lib import tpu, xla_client
from jax.experimental.layout import Layout
from jaxlib.mlir import ir
from numpy.lib.stride_tricks import as_strided

SHAPES = """
f32[3,5]{1,0}
f32[3,5]{0,1}
f32[7]{0}
f32[3,5]{1,0:T(2,2)}
f32[3,5]{0,1:T(2,2)}
f32[3,5]{1,0:T(8,128)}
bf16[20,300]{1,0:T(8,128)(2,1)}
bf16[3,20,300]{2,1,0:T(16,128)(2,1)}
bf16[3,20,300]{1,2,0:T(8,128)(2,1)}
s8[70,300]{1,0:T(32,128)(4,1)}
f32[2,3,4,5]{0,2,1,3}
f32[5,4]{1,0:T(*,2)}
f32[100,300]@tt-tile
u8[200,9]@nvidia-scale-128x4
s8[70,90]@cublaslt-col32-2r-4r4
f32[2,20,5,6]@onednn-nChw16c
f32[20,35,3,2]@onednn-OIhw4i16o4i
s4[64,128]{1,0:T(64,128)(8,1)E(4)}
""".split()
SAMPLES = 60


DTYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16, "s8": jnp.int8, "u8": jnp.uint8, "s4": jnp.int4}


def evaluate(affine_map, index, result=0):
    constants = ir.AffineMap.get(0, 0, [ir.AffineConstantExpr.get(i) for i in index])
    return ir.AffineConstantExpr(affine_map.results[result].compose(constants)).value


def jax(text, shape, dims):
    dtype = DTYPES[shape.split("[")[0]]
    return str(eval(text, {"Layout": Layout})._to_xla_layout(np.dtype(dtype))), None


def pjrt(text, shape, dims):
    """The layout of the fields, else of the serialized text; and what NumPy reads at byte strides, as PJRT has them."""
    forms = dict(line.split(maxsplit=1) for line in text.splitlines())
    braces = [
        [int(number) for number in numbers.split(",") if number] for numbers in re.findall(r"\{(.*?)\}", forms["tiled"])
    ]
    if forms["tiled"].startswith("none"):
        layout = xla_client.Shape(shape[: shape.index("]") + 1] + forms["serialized"]).layout()
    else:
        order, sizes, lengths = braces
        sizes = iter(sizes)
        layout = xla_client.Layout(order, [tuple(itertools.islice(sizes, length)) for length in lengths], 0)
    if forms["strides"].startswith("none"):
        return str(layout), None
    strides = eval(f"({forms['strides'].split('{')[1][:-1]},)")
    size = np.dtype(DTYPES[shape.split("[")[0]]).itemsize
    # Each byte of an element holds the element's number.
    memory = np.arange(1 << 16).repeat(size)
    view = as_strided(memory, dims, [stride * memory.itemsize for stride in strides])
    return str(layout), lambda index: view[tuple(index)]


def mlir(text, shape, dims):
    _, physical, _, offset = [ir.Attribute.parse(line).value if line[0] == "a" else None for line in text.splitlines()]
    described = subprocess.run([sys.argv[1], "show", "--format", "json", shape], capture_output=True, text=True).stdout
    bounds = json.loads(described)["physical_dimensions"]

    def place(index):
        found = evaluate(offset, index)
        axes = [evaluate(physical, index, result) for result in range(len(bounds))]
        assert np.ravel_multi_index(axes, bounds) == found
        return found

    return place


def einops(text, shape, dims):
    program = {}
    exec(text, program)
    logical = np.arange(1, np.prod(dims) + 1).reshape(dims)
    buffer = program["to_buffer"](logical)
    assert (program["from_buffer"](buffer) == logical).all()
    return lambda index: np.flatnonzero(buffer == logical[tuple(index)])[0]


def memref(text, shape, dims):
    memref = ir.MemRefType(ir.Type.parse(text))
    if len(memref.affine_map.results) == 1:
        return lambda index: evaluate(memref.affine_map, index)
    strides, offset = memref.get_strides_and_offset()
    return lambda index: offset + int(np.dot(index, strides))


def mosaic(text, shape, dims):
    tiled, *vector = text.splitlines()
    for line in vector:
        assert str(ir.Attribute.parse(line)) == line
    return memref(f"memref<{'x'.join(map(str, dims))}xi32, {tiled}>", shape, dims)


def numpy(text, shape, dims):
    x = np.arange(1 << 20, dtype=np.int32)
    view = eval(text, {"as_strided": as_strided, "x": x})
    assert view.shape == tuple(dims)
    return lambda index: view[tuple(index)]


def dlpack(text, shape, dims):
    bounds, strides = (eval(f"({values},)") for values in re.findall(r"\{(.*?)\}", text))
    x = np.arange(1 << 20, dtype=np.int32)
    view = as_strided(x, bounds, [stride * x.itemsize for stride in strides])
    return lambda index: view[tuple(index)]


def cute(text, shape, dims):
    modes, strides = (eval(side[:-1] + ",)") for side in text.split(":"))
    layout = pycute.Layout(modes, strides)
    return lambda index: layout(tuple(index))


def main():
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(["shape", "notation", "text", "layout", "positions", "offsets"])
    context = ir.Context()
    tpu.register_dialect(context)
    with context:
        for read in (pjrt, jax, mlir, memref, mosaic, numpy, dlpack, cute, einops):
            command = [sys.argv[1], "show", "--as", read.__name__, "--format", "json", *SHAPES]
            for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines():
                item = json.loads(line)
                if "error" in item:
                    assert item["error"]["kind"] == "not_expressible", item
                    continue
                text, shape = item["rendering"].strip(), item["shape"]
                dims = [int(bound) for bound in shape[shape.index("[") + 1 : shape.index("]")].split(",")]
                answer = read(text, shape, dims)
                layout, place = answer if isinstance(answer, tuple) else ("", answer)
                row = [shape, read.__name__, text, layout]
                if place is None:
                    rows.writerow([*row, "", ""])
                    continue
                count = int(np.prod(dims))
                positions = sorted(set(np.random.default_rng(1).integers(0, count, SAMPLES).tolist()) | {0, count - 1})
                offsets = [int(place([int(i) for i in np.unravel_index(position, dims)])) for position in positions]
                rows.writerow([*row, " ".join(map(str, positions)), " ".join(map(str, offsets))])


if __name__ == "__main__":
    main()
