"""Records where the vendors' own libraries put elements, for the formats that `tilewise tiles` names.

    python record.py onednn | nvmath | ttnn | iree
    python record.py libxsmm | kleidiai | fastertransformer FOLDER

prints rows of `facts/tile_formats.csv`: the format, the bounds, some indices as row-major positions, and the offset of
each in the library's buffer. Each library is asked in an environment of its own (`requirements-LIBRARY.txt`; NumPy is
enough for the last three). FOLDER has the files of Debian's libxsmm-dev (`dpkg -x`), or a checkout of
github.com/ARM-software/kleidiai or github.com/NVIDIA/FasterTransformer; a C compiler is needed.
"""

import csv
import ctypes
import random
import re
import subprocess
import sys
import tempfile
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
    # A tile of AMX is what this tag blocks by, so one row or one column of tiles is AMX's, whatever the order of tiles.
    amx = [
        ("amx-b", "BA16a16b2a", "ab", (320, 16)),
        ("amx-b", "BA16a16b2a", "ab", (32, 330)),
        ("amx-b-int8", "BA16a16b4a", "ab", (640, 16)),
        ("amx-b-int8", "BA16a16b4a", "ab", (64, 330)),
    ]
    tags_of_its_own = [
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
    ]
    for name, tag, plain, dims in [(f"onednn-{tag}", tag, plain, dims) for tag, plain, dims in tags_of_its_own] + amx:
        bounds = (ctypes.c_int64 * 12)(*dims)
        shape = len(dims), bounds, s32
        descriptions = [made(dnnl.dnnl_memory_desc_create_with_tag, *shape, tags[f"dnnl_{t}"]) for t in (plain, tag)]
        size = dnnl.dnnl_memory_desc_get_size(descriptions[1]) // 4
        logical = np.arange(1, np.prod(dims) + 1, dtype=np.int32)
        destination = np.zeros(size, dtype=np.int32)
        memories = [
            made(dnnl.dnnl_memory_create, description, engine, ctypes.c_void_p(array.ctypes.data))
            for description, array in zip(descriptions, (logical, destination))
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
        source = f"onednn-cpu-gomp {version}: a reorder on the CPU" + (f" to {tag}" if name.startswith("amx") else "")
        yield sampled(name, dims, places(destination), source)


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


def compiled(*arguments):
    """A shared library of C, made by the system's compiler."""
    path = Path(tempfile.mkdtemp()) / "library.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, *arguments], check=True)
    return ctypes.CDLL(str(path))


def commit(folder):
    described = subprocess.run(["git", "-C", folder, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True)
    return described.stdout.strip()


def in_planes(count, numbers_of):
    """Extends a function of numbers below 100 to larger ones, two digits at a time."""
    planes = -(-len(str(count)) // 2)
    return sum(numbers_of(np.arange(count) // 100**plane % 100).astype(np.int64) * 100**plane for plane in range(planes))


def libxsmm(folder):
    """Intel's LIBXSMM multiplies a matrix B [K,N] "up-front packed" by the identity: what it reads at each offset is B."""
    libraries = [f"{folder}/usr/lib/{name}.a" for name in ("libxsmm", "libxsmmnoblas")]
    library = compiled("-Wl,--whole-archive", *libraries, "-Wl,--no-whole-archive", "-lpthread", "-ldl", "-lm")
    packed_flag = 32768  # LIBXSMM_GEMM_FLAG_VNNI_A; its matrices are column-major, so that its A is our B

    def bfloat16(numbers):
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)

    for name, kernel, cast, result, dims in [
        ("vnni", "bsmm", bfloat16, np.float32, (64, 48)),
        ("vnni-int8", "subimm", lambda numbers: numbers.astype(np.int8), np.int32, (96, 32)),
    ]:
        rows, columns = dims
        dispatch = getattr(library, f"libxsmm_{kernel}dispatch")
        dispatch.restype = ctypes.c_void_p
        made = dispatch(columns, rows, rows, None, None, None, None, None, ctypes.byref(ctypes.c_int(packed_flag)), None)
        multiply = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(made)

        def unpacked(numbers):
            packed, identity, matrix = cast(numbers), cast(np.eye(rows)), np.zeros(dims, result)
            multiply(packed.ctypes.data, identity.ctypes.data, matrix.ctypes.data)
            return matrix

        offsets = in_planes(rows * columns, unpacked).ravel()
        yield sampled(name, dims, offsets.__getitem__, f"LIBXSMM 1.17 (Debian): libxsmm_{kernel}dispatch with VNNI_A")


def kleidiai(folder):
    """Arm's KleidiAI packs a right-hand side [N,K] of 8-bit integers."""
    function = "rhs_pack_nxk_qsi8cxp_qsi8cx_neon"
    library = compiled("-I", folder, f"{folder}/kai/ukernels/matmul/pack/kai_{function}.c")
    stride_of = getattr(library, f"kai_get_rhs_packed_stride_{function}")
    stride_of.restype = ctypes.c_size_t
    pack = getattr(library, f"kai_run_{function}")
    for nr, kr, dims in [(4, 8, (90, 96)), (8, 4, (40, 64)), (4, 16, (18, 160))]:
        n, k = dims
        sizes = [ctypes.c_size_t(size) for size in (nr, kr, 1)]
        stride = stride_of(ctypes.c_size_t(k), *sizes)
        groups = -(-n // nr)

        def packed(numbers):
            buffer = np.zeros((groups, stride), np.int8)
            numbers, scale, zero_point = numbers.astype(np.int8), np.ones(n, np.float32), np.zeros(2, np.int32)
            arguments = [ctypes.c_size_t(size) for size in (1, n, k)] + sizes
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in (numbers, scale, buffer, zero_point)]
            pack(*arguments, pointers[0], None, pointers[1], pointers[2], ctypes.c_size_t(0), pointers[3])
            # Behind each group of rows are their sums, scales and biases.
            return buffer[:, : nr * k].ravel()

        buffer = in_planes(n * k, packed)
        # Rows past the last repeat it: the first place of a number is its own.
        where = {int(number): offset for offset, number in reversed(list(enumerate(buffer)))}
        yield sampled(f"kleidiai-{nr}x{kr}", dims, where.__getitem__, f"KleidiAI {commit(folder)}: kai_run_{function}")


def fastertransformer(folder):
    """NVIDIA's FasterTransformer computes where cuBLASLt wants int8 weights."""
    path = "src/fastertransformer/tf_op/bert/weight_quantize_op.cc"
    text = (Path(folder) / path).read_text()
    orders = ["COL4_4R2_8C", "COL32_2R_4R4"]
    functions = [re.search(rf"^int index_CUBLASLT_ORDER_{order}\(.*?^}}", text, re.M | re.S).group() for order in orders]
    source = Path(tempfile.mkdtemp()) / "orders.c"
    source.write_text("#include <stdbool.h>\n" + "\n".join(functions))
    library = compiled(source)
    for order, dims in [("COL4_4R2_8C", (72, 96)), ("COL32_2R_4R4", (96, 128))]:
        function = getattr(library, f"index_CUBLASLT_ORDER_{order}")

        def offset(position):
            row, column = divmod(position, dims[1])
            return function(column, row, 32 * dims[0])

        name = f"cublaslt-{order.lower().replace('_', '-')}"
        yield sampled(name, dims, offset, f"NVIDIA FasterTransformer {commit(folder)}: index_CUBLASLT_ORDER_{order}")


if __name__ == "__main__":
    csv.writer(sys.stdout, lineterminator="\n").writerows(globals()[sys.argv[1]](*sys.argv[2:]))
