"""VMEM and SMEM of Pallas kernels: from their texts, and from a function's jaxpr."""

from __future__ import annotations

import doctest
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, rows

import tilewise as tw
from tilewise import kernels
from tilewise.__main__ import main
from tilewise._kernel import index_maps


def test_declared_bytes_are_the_compilers() -> None:
    for row in rows("tpu_kernels.csv"):
        found = kernels.budget(row["kernel"])
        assert (found.vmem_bytes, found.smem_bytes) == (int(row["vmem_bytes"]), int(row["smem_bytes"])), row["id"]


def test_what_is_scoped_may_be_dropped() -> None:
    """The compiler took the 1,048,576 bytes of the windows for the first, with libtpu 0.0.52."""
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
    jnp = jax.numpy
    x = jax.ShapeDtypeStruct((256, 1024), jnp.float32)

    block = pl.BlockSpec((64, 1024), lambda i: (i, 0))
    far = pl.BlockSpec(memory_space=getattr(pl, "ANY", None) or pltpu.ANY)

    def budget(body: Any, operand: Any) -> Any:
        call = pl.pallas_call(body, grid=4, in_specs=[operand], out_specs=block, out_shape=x)
        return tw.kernel_budget(call, x, tpu="v6e")[0]

    def doubled(x: Any, y: Any) -> None:
        def scope(one: Any, other: Any) -> None:
            one[...] = x[...] * 2
            other[...] = one[...].astype(other.dtype)
            y[...] = one[...] + other[...]

        pl.run_scoped(scope, pltpu.VMEM((64, 1024), jnp.float32), pltpu.VMEM((64, 1024), jnp.bfloat16))

    def copied(x: Any, y: Any) -> None:
        def scope(scratch: Any, arrived: Any) -> None:
            copy = pltpu.make_async_copy(x.at[pl.ds(0, 64)], scratch, arrived)
            copy.start()
            copy.wait()
            y[...] = scratch[...]

        pl.run_scoped(scope, pltpu.VMEM((64, 1024), jnp.float32), pltpu.SemaphoreType.DMA)

    found = budget(doubled, block)
    assert (found.vmem_bytes - found.may_be_dropped_bytes, found.may_be_dropped_bytes) == (1_048_576, 393_216)
    assert budget(copied, far).may_be_dropped_bytes == 0


def test_the_module_s_examples() -> None:
    assert doctest.testmod(kernels).failed == 0


def test_the_document_s_programs() -> None:
    pytest.importorskip("jax.experimental.pallas.ops.tpu.flash_attention")
    program: dict[str, Any] = {}
    for block in re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8"), re.DOTALL
    ):
        exec(block, program)
    assert (program["found"].vmem_bytes, program["found"][0].guess_bytes) == (1_835_008, 1_048_576)
    assert program["choices"][0].sizes == {"bm": 256, "bn": 512, "bk": 4096}
    assert 32 << 20 < program["raised"][0].limit_needed_bytes <= 64 << 20


def test_texts() -> None:
    text = "tpu v5e\ngrid 4\nin f32[64,500] block 12,500 @ 0,-\nscratch dma\nlimit 1MiB"
    found = kernels.budget(text)
    assert pickle.loads(pickle.dumps(found)) == found
    assert found.rows[0].nearest_block == (8, 500)
    assert "such block is 8,500" in " ".join(str(found).split())
    assert (found.limit_bytes, found.verdict, found.measured_bytes) == (1 << 20, "declared_fits", None)
    assert not kernels.fits(text), "the block can't be compiled"
    assert kernels.fits(text.replace("12,", "8,"))
    assert not kernels.fits(text.replace("12,", "8,"), 32767)
    assert kernels.budget(text, tpu="v7x").tpu == "v7x"
    narrow = kernels.budget("grid 1\nin s4[64,128] block 64,128 @ -,-", tpu="v5p").rows[0]
    assert (narrow.bytes, narrow.logical_bytes, narrow.padding_bytes) == (4096, 4096, 0)
    with pytest.raises(tw.ParseError) as caught:
        kernels.fits("tpu v5e\nin b16[8]")
    assert caught.value.text is not None
    assert caught.value.text[slice(*caught.value.span or ())] == "b16"
    with pytest.raises(ValueError, match="which TPU"):
        kernels.fits("grid 4")


def test_the_largest_blocks_are_those_that_can_t_grow() -> None:
    def make(rows: int, columns: int) -> str:
        return f"tpu v6e\ngrid 2\nin f32[8192,8192] block {rows},{columns} @ 0,-"

    sizes = (128, 256, 512, 1024, 2048, 4096)
    found = kernels.largest_blocks(make, {"rows": sizes, "columns": sizes})
    assert found[0].limit_needed_bytes == 32 << 20
    fitting = {(a, b) for a in sizes for b in sizes if kernels.fits(make(a, b))}
    assert fitting == {(a, b) for a in sizes for b in sizes if 8 * a * b <= 32 << 20}
    maximal = {(a, b) for a, b in fitting if not any((c, d) != (a, b) and c >= a and d >= b for c, d in fitting)}
    assert {(each.sizes["rows"], each.sizes["columns"]) for each in found} == maximal
    raised = kernels.largest_blocks(make, {"rows": sizes, "columns": sizes}, limit=64 << 20)
    assert raised[0].vmem_bytes == raised[0].limit_needed_bytes == 64 << 20


def test_the_kernels_of_a_function() -> None:
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
    jnp = jax.numpy
    x = jax.ShapeDtypeStruct((32, 128), jnp.float32)
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))

    def budget(f: Any, *args: Any, tpu: str = "v6e") -> tw.KernelBudgets:
        return tw.kernel_budget(f, *args, tpu=tpu)

    def double(x: Any, index: Any = lambda i: (i, 0), **options: Any) -> Any:
        def kernel(x_ref: Any, y_ref: Any, *_: Any) -> None:
            y_ref[...] = 2 * x_ref[...]

        out = pl.BlockSpec((8, 128), index)
        return pl.pallas_call(kernel, grid=(4,), in_specs=[block], out_specs=out, out_shape=x, **options)(x)

    # Wherever it is called.
    def nested(x: Any) -> Any:
        x, _ = jax.lax.scan(lambda carry, _: (double(carry), None), x, None, length=3)
        x = jax.lax.cond(x[0, 0] > 0, jax.jit(double), lambda x: x, x)
        return jax.lax.while_loop(lambda x: x[0, 0] < 3, double, x)

    found = budget(nested, x)
    assert [(each.name, each.vmem_bytes) for each in found] == [("kernel", 16384)] * 3
    assert (found.vmem_bytes, found.smem_bytes, found.verdict, found.not_covered) == (16384, 0, "probably_fits", ())
    assert [row.operand for row in found.rows[:2]] == ["in0", "out0"]
    batched = budget(jax.vmap(double), jax.ShapeDtypeStruct((3, 32, 128), jnp.float32))
    assert (batched[0].rows[0].block, batched.vmem_bytes) == ((None, 8, 128), 16384)

    # Which windows move: the compiler folds products with 0, and no quotients.
    for index, buffers in [
        (lambda i: (i, 0), 2),
        (lambda i: (0, 0), 1),
        (lambda i: (i * 0, 0), 1),
        (lambda i: (i // 8, 0), 2),
        (lambda i: (jnp.minimum(i, 0), 0), 2),
    ]:
        found = budget(lambda x, index=index: double(x, index), x)
        assert found[0].rows[1].buffers == buffers

    scratch = [pltpu.VMEM((200,), jnp.float32), pltpu.SMEM((5,), jnp.int32), pltpu.SemaphoreType.DMA((2,))]
    params = getattr(pltpu, "CompilerParams", None) or pltpu.TPUCompilerParams
    found = budget(lambda x: double(x, scratch_shapes=scratch, compiler_params=params(vmem_limit_bytes=17408)), x)
    assert (found.vmem_bytes, found.smem_bytes, found[0].limit_bytes) == (17408, 512, 17408)
    assert budget(lambda x: x + 1, x).kernels == ()
    with pytest.raises(tw.ParseError):
        budget(double, x, tpu="v9")
    with pytest.raises(ZeroDivisionError):
        budget(lambda x: 1 // 0, x)

    def prefetched(indices: Any, x: Any) -> Any:
        def kernel(indices_ref: Any, x_ref: Any, y_ref: Any) -> None:
            y_ref[...] = x_ref[...]

        moving = pl.BlockSpec((8, 128), lambda i, indices: (indices[i], 0))
        staying = pl.BlockSpec((8, 128), lambda i, indices: (indices[0], 0))
        spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,), in_specs=[moving], out_specs=staying)
        return pl.pallas_call(kernel, grid_spec=spec, out_shape=x)(indices, x)

    found = budget(prefetched, jax.ShapeDtypeStruct((4,), jnp.int32), x)
    assert (found.vmem_bytes, found.smem_bytes) == (8192 + 4096, 512)


def test_a_device_s_part_of_a_sharded_kernel() -> None:
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    if not hasattr(jax, "shard_map"):
        pytest.skip("jax.shard_map is missing")

    def double(x: Any) -> Any:
        def kernel(x_ref: Any, y_ref: Any) -> None:
            y_ref[...] = 2 * x_ref[...]

        block = pl.BlockSpec((x.shape[0], 128), lambda i: (0, i))
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(kernel, grid=(3,), in_specs=[block], out_specs=block, out_shape=shape)(x)

    spec = jax.sharding.PartitionSpec("d", None)
    mesh = jax.sharding.AbstractMesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    sharded = jax.shard_map(double, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    (found,) = tw.kernel_budget(sharded, jax.ShapeDtypeStruct((64, 384), jax.numpy.float32), tpu="v6e")
    # A quarter of the rows, in two buffers each.
    assert (found.rows[0].shape, found.rows[0].block) == ("f32[16,384]", (16, 128))
    assert found.vmem_bytes == 2 * 2 * 16 * 128 * 4


@pytest.mark.parametrize(
    ("shape", "block", "buffers", "nearest"),
    [
        # The rules of JAX's own lowering, which refuses each of these.
        ((64, 512), (7, 100), None, (8, 128)),
        ((64, 512), (65, 512), None, (64, 512)),
        ((4096,), (100,), None, (128,)),
        ((64, 512), (8, 128), 3, None),
    ],
)
def test_blocks_that_the_compiler_refuses(
    shape: tuple[int, ...], block: tuple[int, ...], buffers: int | None, nearest: tuple[int, ...] | None
) -> None:
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    if buffers and not hasattr(pl, "Buffered"):
        pytest.skip("pl.Buffered is missing")
    mode = {"pipeline_mode": pl.Buffered(buffers)} if buffers else {}
    spec = pl.BlockSpec(block, lambda i: (i, 0)[: len(block)], **mode)
    x = jax.ShapeDtypeStruct(shape, jax.numpy.float32)

    def double(x: Any) -> Any:
        def doubling(x_ref: Any, y_ref: Any) -> None:
            y_ref[...] = 2 * x_ref[...]

        return pl.pallas_call(doubling, grid=(4,), in_specs=[spec], out_specs=spec, out_shape=x)(x)

    found = tw.kernel_budget(double, x, tpu="v6e", confirm=True)
    assert found[0].rows[0].nearest_block == nearest
    assert len(found.unsupported) == len(found[0].unsupported) == 2
    assert found.unsupported[0].startswith("doubling, in0: ")
    assert found[0].measured_bytes is None


def test_scopes_inside_a_kernel() -> None:
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
    jnp = jax.numpy
    x = jax.ShapeDtypeStruct((8, 128), jnp.float32)

    def scoped(x: Any) -> Any:
        def kernel(x_ref: Any, y_ref: Any) -> None:
            def alone(a: Any) -> None:
                a[...] = jnp.ones((128, 128), jnp.float32)
                y_ref[...] = a[:8]

            def outer(a: Any) -> None:
                a[...] = jnp.ones((256, 128), jnp.float32)

                def inner(b: Any) -> None:
                    b[...] = a[:8]
                    y_ref[...] = b[...]

                pl.run_scoped(inner, pltpu.VMEM((8, 128), jnp.float32))

            pl.run_scoped(alone, pltpu.VMEM((128, 128), jnp.float32))
            pl.run_scoped(outer, pltpu.VMEM((256, 128), jnp.float32))

        return pl.pallas_call(kernel, out_shape=x)(x)

    # Those beside each other share; 8192 are the windows of x and the result.
    assert tw.kernel_budget(scoped, x, tpu="v7x").vmem_bytes == (256 + 8) * 128 * 4 + 8192


def test_buffers_of_a_pipeline_inside_a_kernel() -> None:
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
    if jax.__version_info__ < (0, 7):
        pytest.skip("the `emit_pipeline` of JAX 0.6 asks for a TPU that is there")

    def pipelined(x: Any) -> Any:
        def step(x_ref: Any, y_ref: Any) -> None:
            y_ref[...] = x_ref[...] + 1

        def kernel(x_ref: Any, y_ref: Any) -> None:
            block = pl.BlockSpec((64, 128), lambda i: (i, 0))
            pltpu.emit_pipeline(step, grid=(4,), in_specs=[block], out_specs=[block])(x_ref, y_ref)

        anywhere = pl.BlockSpec(memory_space=pl.ANY)
        return pl.pallas_call(kernel, in_specs=[anywhere], out_specs=anywhere, out_shape=x)(x)

    tall = jax.ShapeDtypeStruct((256, 128), jax.numpy.float32)
    assert tw.kernel_budget(pipelined, tall, tpu="v6e").vmem_bytes == 2 * 2 * 64 * 128 * 4


# Buffers that libtpu 0.0.52 allocates on v5e and v6e for a block with this index, on a grid of 4 × 4.
ONE_BUFFER = (
    "i-i, i^i, i&0, i+j-j-i, i*1-i, (i<<0)-i, i%1, i*0, i*2-2*i, (i+j)-(j+i), (i+1)-(i+1), ((i+j)+1)-(i+j), (-i)+i, "
    "i-(i-j)-j, (i|0)-i, ~(~i)^i, i&(~i), (i^j)^j^i, (i>>0)-i, i*-1+i, i//1-i, (i*3)*0+1, i*i-i*i, (i*j)-(j*i), "
    "(i&1)&2, (i|-1)+1, (i+5)-5-i, 5-i-(5-i), (i*2)*3-i*6, i**0, where(i==i;0;i), where(i==0;i;0), where(i<j;0;0), "
    "minimum(i;i)^i, where(i<2;j;j)-j, ((i|1)|-2)+1"
)
TWO_BUFFERS = (
    "i, minimum(i;0), i//4, clip(i;0;0), (i-j)+(j-i), (i<<1)-(i*2), ((i<<1)>>1)-i, where(i<2;0;i), i*2-i-i, i*2-(i+i), "
    "i%4, maximum(i;0)-i, where(i>=0;0;1)"
)


def test_index_maps_that_the_compiler_simplifies() -> None:
    jax = pytest.importorskip("jax", minversion="0.10")  # Older ones come with a canonicalizer of fewer rules.
    names = {name: getattr(jax.numpy, name) for name in ("minimum", "maximum", "clip", "where")}
    for buffers, forms in ((1, ONE_BUFFER), (2, TWO_BUFFERS)):
        for form in forms.split(", "):
            index = eval(f"lambda i, j: {form.replace(';', ',')}", names)
            jaxpr = jax.make_jaxpr(index)(jax.numpy.int32(0), jax.numpy.int32(0))
            assert 1 + bool(index_maps.axes(jaxpr, 2)[0]) == buffers, form


def test_simplifying_shares_what_is_equal() -> None:
    jax = pytest.importorskip("jax")

    def deep(i: Any) -> Any:
        for _ in range(60):
            i = i * i + i
        return i - i

    # As a tree it would have 3^60 nodes.
    assert index_maps.axes(jax.make_jaxpr(deep)(jax.numpy.int32(0)), 1) == [set()]


def test_the_device_that_is_asked_for() -> None:
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    x = jax.ShapeDtypeStruct((1024, 128), jax.numpy.float32)

    @jax.jit
    def copied(x: Any) -> Any:
        def kernel(x_ref: Any, y_ref: Any) -> None:
            y_ref[...] = x_ref[...]

        assert jax.default_backend() == "tpu"
        rows = {"TPU v5 lite": 64, "TPU v6 lite": 128, "TPU7x": 256}[jax.devices()[0].device_kind]
        block = pl.BlockSpec((rows, 128), lambda i: (i, 0))
        return pl.pallas_call(kernel, grid=1024 // rows, in_specs=[block], out_specs=block, out_shape=x)(x)

    before = jax.devices()
    for tpu, height in (("v5e", 64), ("v7x", 256), ("v6e", 128), ("v5e", 64)):
        assert tw.kernel_budget(copied, x, tpu=tpu).vmem_bytes == 4 * height * 128 * 4, tpu
    assert jax.devices() == before


def test_what_cannot_be_answered_is_warned_about() -> None:
    jax = pytest.importorskip("jax")
    x = jax.ShapeDtypeStruct((8, 128), jax.numpy.float32)

    def curious(x: Any) -> Any:
        return x if hasattr(jax.devices()[0], "firmware") else -x

    with pytest.warns(UserWarning, match="a device's `firmware`, which is not known of a v6e"):
        tw.kernel_budget(curious, x, tpu="v6e")

    def only_here(x: Any) -> Any:
        return x + (1, 2)[jax.default_backend() == "tpu" and int("?")]

    with pytest.warns(UserWarning, match="was traced with this machine's devices: ValueError"):
        tw.kernel_budget(only_here, x, tpu="v6e")


def test_fused_operands_have_the_windows_of_what_they_are_computed_from() -> None:
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
    if not hasattr(pltpu, "CompilerParams"):
        pytest.skip("this JAX names the parameters otherwise")
    x = jax.ShapeDtypeStruct((512, 128), jax.numpy.float32)

    def added(computed: Any) -> Any:
        def kernel(x_ref: Any, y_ref: Any, z_ref: Any) -> None:
            z_ref[...] = x_ref[...] + y_ref[...]

        block = pl.BlockSpec((128, 128), lambda i: (i, 0))
        params = pltpu.CompilerParams(allow_input_fusion=[True, False])
        call = pl.pallas_call(
            kernel, grid=4, in_specs=[block, block], out_specs=block, out_shape=x, compiler_params=params
        )
        return lambda x, y: call(computed(x), y)

    window = 2 * 128 * 128 * 4
    for computed, windows in (
        (lambda x: x, 3),  # Nothing is fused.
        (lambda x: 2 * x, 3),
        (lambda x: jax.numpy.broadcast_to(x[:1], x.shape), 2),
        (lambda x: x.astype(jax.numpy.bfloat16).astype(jax.numpy.float32), 3),
    ):
        # libtpu 0.0.52 for v6e.
        assert tw.kernel_budget(added(computed), x, x, tpu="v6e").vmem_bytes == windows * window


def test_kernels_over_a_mesh_of_tensor_cores() -> None:
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
    if tuple(map(int, jax.__version__.split(".")[:2])) < (0, 12):
        pytest.skip("`pl.kernel` is another primitive")
    jnp = jax.numpy
    x = jax.ShapeDtypeStruct((256, 128), jnp.float32)

    def body(x_ref: Any, y_ref: Any, held: Any, counts: Any, _: Any) -> None:
        pltpu.sync_copy(x_ref.at[:64], held)
        counts[0] = 1

        def inner(part: Any) -> None:
            part[...] = held[:32]
            pltpu.sync_copy(part, y_ref.at[64:96])

        pl.run_scoped(inner, pltpu.VMEM((32, 128), jnp.float32))

    scratch = [pltpu.VMEM((64, 128), jnp.float32), pltpu.SMEM((4,), jnp.int32), pltpu.SemaphoreType.DMA]
    mesh = pltpu.TensorCoreMesh(axis_name="core", num_cores=1)
    found = tw.kernel_budget(pl.kernel(body, out_type=x, mesh=mesh, scratch_types=scratch), x, tpu="v6e")
    # By libtpu 0.0.52.
    assert (found.vmem_bytes, found.smem_bytes, found.not_covered) == (49_152, 512, ())


def test_suggested_blocks() -> None:
    jax = pytest.importorskip("jax")
    pl = pytest.importorskip("jax.experimental.pallas")
    x = jax.ShapeDtypeStruct((8192, 8192), jax.numpy.bfloat16)

    def make(bm: int, bn: int, bk: int) -> Any:
        if bn > bk:
            raise tw.Skip("not tried")

        def kernel(a: Any, b: Any, out: Any) -> None:
            out[...] += jax.numpy.dot(a[...], b[...], preferred_element_type=jax.numpy.float32).astype(out.dtype)

        call = pl.pallas_call(
            kernel,
            grid=(8192 // bm, 8192 // bn, 8192 // bk),
            in_specs=[pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)), pl.BlockSpec((bk, bn), lambda i, j, k: (k, j))],
            out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
            out_shape=x,
        )
        return call, x, x

    space = {"bm": [100, 512, 1024], "bn": [512, 4096], "bk": [512, 4096]}
    found = tw.suggest_blocks(make, tpu="v6e", space=space)
    tried = {(*choice.sizes.values(),): choice for choice in found}
    why = {(*choice.values(),): reason for choice, reason in found.removed}
    assert len(tried) + len(why) == 12
    assert "multiples of 8 and 128" in why[100, 512, 512]
    assert "Skip" in why[512, 4096, 512]
    assert "at least, of" in why[1024, 4096, 4096]
    assert (found[0].verdict, found[0].sizes) == ("probably_fits", {"bm": 1024, "bn": 512, "bk": 512})
    # All of the left operand for each column of blocks, of the right for each row of them, and the result once.
    array = 8192 * 8192 * 2
    assert tried[512, 512, 512].moved_bytes == 16 * array + 16 * array + array


def test_the_compiler_is_asked_about_each_kernel() -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("libtpu")
    pl = pytest.importorskip("jax.experimental.pallas")
    x = jax.ShapeDtypeStruct((1024, 1024), jax.numpy.float32)

    def copied(x: Any, rows: int, name: str) -> Any:
        def kernel(x_ref: Any, y_ref: Any) -> None:
            y_ref[...] = x_ref[...]

        block = pl.BlockSpec((rows, 1024), lambda i: (i, 0))
        call = pl.pallas_call(
            kernel, grid=x.shape[0] // rows, in_specs=[block], out_specs=block, out_shape=x, name=name
        )
        return call(x)

    found = tw.kernel_budget(lambda x: copied(copied(x, 8, "a"), 1024, "b"), x, tpu="v5e", compile=True)
    assert [(each.verdict, each.measured_bytes) for each in found] == [("fits", 4 * 8 * 4096), ("fits", 8 << 20)]
    large = jax.ShapeDtypeStruct((8192, 1024), jax.numpy.float32)
    refused = tw.kernel_budget(lambda x: copied(x, 8192, "c"), large, tpu="v5e", compile=True)
    assert (refused.verdict, refused[0].measured_bytes) == ("does_not_fit", 64 << 20)


def test_the_compiler_confirms() -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("libtpu")
    pl = pytest.importorskip("jax.experimental.pallas")
    pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
    x = jax.ShapeDtypeStruct((8192, 8192), jax.numpy.float32)

    def copied(x: Any, rows: int) -> Any:
        def kernel(x_ref: Any, y_ref: Any) -> None:
            y_ref[...] = x_ref[...]

        block = pl.BlockSpec((rows, 512), lambda i: (i, 0))
        # An array that stays in HBM, so that the window is allocated.
        x = pltpu.with_memory_space_constraint(x, pltpu.HBM)
        return pl.pallas_call(kernel, grid=8192 // rows, in_specs=[block], out_specs=block, out_shape=x, name="copied")(
            x
        )

    found = tw.kernel_budget(lambda x: copied(x, 256), x, tpu="v5e", confirm=True)
    assert found[0].measured_bytes == found.vmem_bytes == 4 * 256 * 512 * 4
    if jax.__version_info__ < (0, 7):
        pytest.skip("the compiler of JAX 0.6, libtpu 0.0.17, gives windows one buffer where two don't fit")
    refused = tw.kernel_budget(lambda x: copied(x, 4096), x, tpu="v5e", confirm=True)
    assert (refused.verdict, refused[0].measured_bytes) == ("does_not_fit", 32 << 20)


def test_kernels_of_jax() -> None:
    jax = pytest.importorskip("jax")
    flash = pytest.importorskip("jax.experimental.pallas.ops.tpu.flash_attention")
    q = jax.ShapeDtypeStruct((1, 8, 2048, 128), jax.numpy.bfloat16)
    sizes = flash.BlockSizes(block_q=512, block_k_major=512, block_k=512, block_b=1)
    found = tw.kernel_budget(lambda q, k, v: flash.flash_attention(q, k, v, block_sizes=sizes), q, q, q, tpu="v6e")
    # Declared, and the scores that the body holds; the compiler took 2,859,008.
    assert (found.vmem_bytes, found[0].guess_bytes) == (1_835_008, 1_048_576)
    gradient = jax.grad(lambda q: flash.flash_attention(q, q, q).astype(jax.numpy.float32).sum())
    assert [each.vmem_bytes for each in tw.kernel_budget(gradient, q, tpu="v6e")] == [720_896, 917_504, 786_432]


def test_kernels_of_a_function_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jax.experimental.pallas")
    (tmp_path / "mine.py").write_text(
        """
import jax
from jax.experimental import pallas as pl

def make(rows, columns=512):
    def kernel(x, y):
        y[...] = 2 * x[...]
    x = jax.ShapeDtypeStruct((65536, columns), jax.numpy.float32)
    block = pl.BlockSpec((rows, columns), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=65536 // rows, in_specs=[block], out_specs=block, out_shape=x), x
"""
    )
    program = f"{tmp_path}/mine.py:make"
    assert main(["kernel", program, "--tpu", "v6e", "--set", "rows=8"]) == 0
    assert "64.00 KiB (65536) declared" in capsys.readouterr().out
    assert main(["kernel", program, "--tpu", "all", "--set", "rows=4096"]) == 1
    said = [line.split()[0::5][:2] for line in capsys.readouterr().out.splitlines()[1:]]
    # 16 MiB are all that most kernels may have by default, and 32 on these two.
    assert said == [
        [tpu, "probably" if tpu in ("v6e", "v7x") else "does"] for tpu in ["v3", "v4", "v5e", "v5p", "v6e", "v7x"]
    ]
    space = "rows=4,8,1024,4096"
    assert main(["kernel", program, "--tpu", "v6e", "--set", "columns=2048", "--space", space]) == 0
    # Of what moves as much, the larger first; 4096 rows declare 128 MiB, and 4 are no block.
    assert capsys.readouterr().out.splitlines()[0] == "2 choices to try, 2 that can't compile"
    assert main(["kernel", program, "--tpu", "v6e"]) == 2
    assert "rows" in capsys.readouterr().err

    # The JSON has exactly the fields listed in `docs/json.md`.
    document = (Path(__file__).parents[2] / "docs" / "json.md").read_text()

    def fields(name: str) -> list[str]:
        section = document.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        return re.findall(r"^\| `(\w+)`", section, re.MULTILINE)

    as_json = ["kernel", program, "--tpu", "v6e", "--format=json"]
    assert main([*as_json, "--set", "rows=8"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(said) == ["schema", "input", *fields("KernelBudgets")]
    assert [list(kernel) for kernel in said["kernels"]] == [fields("KernelBudget")]
    assert said["kernels"][0]["vmem_bytes"] == 65536
    assert main([*as_json, "--set", "columns=2048", "--space", space]) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(said) == ["schema", "input", *fields("BlockSuggestions")]
    assert [list(choice) for choice in said["choices"]] == [fields("SuggestedBlocks")] * 2
    assert [list(choice) for choice in said["removed"]] == [fields("RemovedBlocks")] * 2
    assert main(as_json) == 2
    assert list(json.loads(capsys.readouterr().out)["error"]) == ["kind", "message", "span"]
