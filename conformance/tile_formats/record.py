"""Records where the vendors' own libraries put elements, for the formats that `tilewise tiles` names.

    python record.py onednn | nvmath | ttnn | iree

prints rows of `facts/tile_formats.csv`: the format, the bounds, some indices as row-major positions, and the offset of
each in the library's buffer. Each library is asked in an environment of its own (`requirements-LIBRARY.txt`).
"""

import csv
import ctypes
import random
import re
import sys
from importlib import metadata
from pathlib import Path

import numpy as np

SAMPLES = 1000


def sampled(name, dims, offset_of, source):
    """A row: the offsets of some elements, chosen by a fixed seed."""
    count = int(np.prod(dims))
    positions = sorted(random.Random(f"{name}{dims}").sample(range(count), min(count, SAMPLES)))
    offsets = [int(offset_of(position)) for position in positions]
    return [name, "x".join(map(str, dims)), " ".join(map(str, positions)), " ".join(map(str, offsets)), source]


def places(buffer):
    """Where each value 1, 2, … lies in a buffer that has 0 as padding."""
    where = np.zeros(int(buffer.max()) + 1, dtype=np.int64)
    where[buffer] = np.arange(buffer.size)
    return lambda position: where[position + 1]


def onednn():
    """Reorders run on the CPU, from the plain tag to the blocked one."""
    prefix = Path(sys.prefix)
    dnnl = ctypes.CDLL(str(prefix / "lib" / "libdnnl.so"))
    header = (prefix / "include" / "oneapi" / "dnnl" / "dnnl_types.h").read_text()
    body = re.search(r"typedef enum \{([^}]*dnnl_format_tag_undef[^}]*)\} dnnl_format_tag_t;", header).group(1)
    body = re.sub(r"/\*.*?\*/|//[^\n]*", "", body, flags=re.S)
    tags, value = {}, -1
    for entry in filter(None, map(str.strip, body.split(","))):
        name, _, alias = map(str.strip, entry.partition("="))
        value = value + 1 if not alias else tags[alias] if alias in tags else int(alias, 0)
        tags[name] = value

    def call(function, *arguments):
        status = function(*arguments)
        assert status == 0, f"{function.__name__}: status {status}"

    def made(function, *arguments):
        result = ctypes.c_void_p()
        call(function, ctypes.byref(result), *arguments)
        return result

    cpu, s32 = 1, 4
    engine = made(dnnl.dnnl_engine_create, cpu, ctypes.c_size_t(0))
    stream = made(dnnl.dnnl_stream_create, engine, 1)
    dnnl.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
    version = metadata.version("onednn-cpu-gomp")
    for tag, plain, dims in [
        ("nChw16c", "abcd", (3, 40, 7, 5)),
        ("nChw8c", "abcd", (2, 19, 6, 9)),
        ("nCdhw16c", "abcde", (2, 33, 3, 4, 5)),
        ("OIhw16i16o", "abcd", (20, 35, 3, 3)),
        ("OIhw4i16o4i", "abcd", (40, 33, 3, 2)),
        ("gOIhw4o8i8o4i", "abcde", (2, 33, 36, 2, 2)),
        ("BA16a16b2a", "ab", (100, 70)),
        ("BA16a64b4a", "ab", (130, 200)),
        ("ABcd16b16a4b", "abcd", (20, 70, 2, 3)),
        ("nhwc", "abcd", (3, 10, 7, 9)),
        ("hwio", "abcd", (10, 11, 3, 5)),
    ]:
        bounds = (ctypes.c_int64 * 12)(*dims)
        shape = len(dims), bounds, s32
        descriptions = [made(dnnl.dnnl_memory_desc_create_with_tag, *shape, tags[f"dnnl_{t}"]) for t in (plain, tag)]
        size = dnnl.dnnl_memory_desc_get_size(descriptions[1]) // 4
        source = np.arange(1, np.prod(dims) + 1, dtype=np.int32)
        destination = np.zeros(size, dtype=np.int32)
        memories = [
            made(dnnl.dnnl_memory_create, description, engine, ctypes.c_void_p(array.ctypes.data))
            for description, array in zip(descriptions, (source, destination))
        ]
        reorder = made(
            dnnl.dnnl_reorder_primitive_desc_create, descriptions[0], engine, descriptions[1], engine, None
        )
        primitive = made(dnnl.dnnl_primitive_create, reorder)

        class Argument(ctypes.Structure):
            _fields_ = [("arg", ctypes.c_int), ("memory", ctypes.c_void_p)]

        arguments = (Argument * 2)(Argument(1, memories[0]), Argument(17, memories[1]))
        call(dnnl.dnnl_primitive_execute, primitive, stream, 2, arguments)
        call(dnnl.dnnl_stream_wait, stream)
        yield sampled(f"onednn-{tag}", dims, places(destination), f"onednn-cpu-gomp {version}: a reorder on the CPU")


def nvmath():
    """NVIDIA's nvmath computes the offsets of scale factors as cuBLAS wants them."""
    import types

    # It asks torch for one thing only: whether an index is a tensor.
    sys.modules.setdefault("torch", types.SimpleNamespace(Tensor=type("Tensor", (), {}), Size=tuple))
    from nvmath.linalg.advanced.helpers import matmul

    version = metadata.version("nvmath-python")
    for dims in [(128, 8), (384, 20)]:
        def offset(position):
            index = divmod(position, dims[1])
            shape = (dims[0], dims[1] * 16)
            return matmul.get_block_scale_offset(index, shape, matmul.BlockScalingFormat.NVFP4, axis=-1)

        yield sampled("nvidia-scale-128x4", dims, offset, f"nvmath-python {version}: get_block_scale_offset")


def ttnn():
    """Tenstorrent's library lays a tensor out in tiles on the host."""
    import ttnn as tt

    version = metadata.version("ttnn")
    for dims in [(100, 300), (3, 40, 70), (32, 32)]:
        array = np.arange(1, np.prod(dims) + 1, dtype=np.int32).reshape(dims)
        tensor = tt.Tensor(array, tt.int32, layout=tt.TILE_LAYOUT)
        shard = tensor.host_buffer().get_shard(tt.MeshCoordinate(0, 0))
        buffer = np.from_dlpack(shard).view(np.int32).ravel()
        yield sampled("tt-tile", dims, places(buffer), f"ttnn {version}: Tensor in TILE_LAYOUT on the host")


def iree():
    """IREE compiles and runs `linalg.pack` on the CPU."""
    import iree.compiler
    import iree.runtime

    version = metadata.version("iree-base-compiler")
    for name, dims, position, tiles, order in [
        ("linalg-pack-0:8,1:32", (20, 100), [0, 1], [8, 32], [0, 1]),
        ("linalg-pack-1:16,0:2", (33, 50), [1, 0], [16, 2], [0, 1]),
        ("linalg-pack-1:4", (9, 30, 7), [1], [4], [0, 1, 2]),
    ]:
        count = [-(-d // dict(zip(position, tiles)).get(i, 1)) for i, d in enumerate(dims)]
        packed = "x".join(map(str, [count[i] for i in order] + tiles))
        logical = "x".join(map(str, dims))
        program = f"""
            func.func @pack(%from: tensor<{logical}xi32>) -> tensor<{packed}xi32> {{
              %zero = arith.constant 0 : i32
              %to = tensor.empty() : tensor<{packed}xi32>
              %packed = linalg.pack %from padding_value(%zero : i32) outer_dims_perm = {order}
                inner_dims_pos = {position} inner_tiles = {tiles} into %to
                : tensor<{logical}xi32> -> tensor<{packed}xi32>
              return %packed : tensor<{packed}xi32>
            }}"""
        options = ["--iree-llvmcpu-target-cpu=generic"]
        binary = iree.compiler.compile_str(program, target_backends=["llvm-cpu"], extra_args=options)
        module = iree.runtime.load_vm_flatbuffer(binary, driver="local-sync")
        array = np.arange(1, np.prod(dims) + 1, dtype=np.int32).reshape(dims)
        result = module.pack(array)
        buffer = np.array(result.to_host()).ravel()
        yield sampled(name, dims, places(buffer), f"iree-base-compiler {version}: linalg.pack on the CPU")


if __name__ == "__main__":
    csv.writer(sys.stdout, lineterminator="\n").writerows(globals()[sys.argv[1]]())
