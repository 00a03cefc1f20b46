"""Compares what `tilewise.kernel_budget` says of JAX's own kernels with what the TPU compiler allocates for them.

Prints two Markdown tables: of the kernels, and of nine choices of blocks for a matrix product that by what they declare just
fit. Needs the Python package with its compiler: `pip install './python[tpu]'`. Arguments choose kernels by how their names begin.
"""

import os
import re
import statistics
import sys

os.environ["JAX_PLATFORMS"] = "cpu"

import jax.numpy as jnp
import tilewise as tw
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from public_kernels import PUBLIC, array

GENERATIONS = ["v5e", "v6e"]


def jax_own(name, *options, **more):
    """A factory of one of JAX's kernels, called with values of these options."""
    return lambda *values: PUBLIC[f"jax_{name}"].make(**dict(zip(options, values, strict=True)), **more)


def grouped(*tiles):
    return PUBLIC["jax_grouped_product"].make(tiles=tiles, k=4096, n=4096)


KERNELS = {
    "flash attention, block_q, block_k": (
        jax_own("flash", "q", "k", length=4096),
        [(256, 256), (512, 512), (1024, 1024), (2048, 1024)],
    ),
    "grouped product, m, k, n": (grouped, [(128, 128, 128), (256, 512, 512), (512, 512, 512), (512, 1024, 1024)]),
    "paged attention, pages": (jax_own("paged_attention", "pages"), [(4,), (8,), (16,), (32,)]),
    "ragged paged attention, pages, queries": (
        jax_own("ragged_paged_attention", "pages", "queries"),
        [(4, 16), (8, 32), (16, 64), (32, 128)],
    ),
    "splash attention, block_q, block_kv": (
        jax_own("splash", "q", "kv"),
        [(256, 256), (512, 512), (512, 1024), (1024, 1024)],
    ),
}


# By what they declare, these fit the default limit, and no block could be larger.
CHOICES = {
    "v5e": [(512, 1024, 2048), (1024, 512, 2048), (1024,) * 3, (256, 512, 4096), (256, 2048, 1024), (512, 256, 4096)],
    "v6e": [(512, 2048, 2048), (512, 1024, 4096), (1024, 512, 4096)],
}


def product(bm, bn, bk):
    def kernel(a, b, out, sums):
        @pl.when(pl.program_id(2) == 0)
        def _():
            sums[...] = jnp.zeros_like(sums)

        sums[...] += jnp.dot(a[...], b[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            out[...] = sums[...].astype(out.dtype)

    x = array(8192, 8192)
    call = pl.pallas_call(
        kernel,
        grid=(8192 // bm, 8192 // bn, 8192 // bk),
        in_specs=[pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)), pl.BlockSpec((bk, bn), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        out_shape=x,
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
    )
    return call, (x, x)


def products():
    print("\n| TPU | bm × bn × bk | declared | guess | verdict | compiler |\n| --- | --- | --- | --- | --- | --- |")
    right = 0
    for tpu, choices in CHOICES.items():
        for blocks in choices:
            call, arguments = product(*blocks)
            (kernel,) = tw.kernel_budget(call, *arguments, tpu=tpu, confirm=True)
            fits = kernel.measured_bytes <= kernel.limit_bytes
            right += fits == (kernel.verdict == "probably_fits")
            said = f"{'takes' if fits else 'refuses'} {kernel.measured_bytes:,}"
            cells = [tpu, " × ".join(map(str, blocks)), f"{kernel.vmem_bytes:,}", f"{kernel.guess_bytes:,}"]
            print(f"| {' | '.join(cells)} | {kernel.verdict} | {said} |", flush=True)
    print(f"\n{right} of 9 verdicts are the compiler's.")


def kept(kernel, call, arguments):
    """The windows of a kernel whose arrays lie in VMEM in the compiled program, as their names and bytes."""
    report = tw.audit(tw.compile_for(call, *arguments, tpu=kernel.tpu), tpu=kernel.tpu)
    # Bitcasts are no buffers of their own.
    shapes = dict(re.findall(r"^\s*(?:ROOT )?%([\w.-]+) = (\S+)", report.text, re.MULTILINE))
    in_vmem = {name for name, shape in shapes.items() if shape.endswith("S(1)}")}
    (use,) = [each for each in report.kernels if each.used_bytes == kernel.measured_bytes]
    operands = re.search(rf"%{re.escape(use.instruction)} = .*? custom-call\(([^)]*)\)", report.text)[1]
    scalars = sum(row.operand.startswith("prefetch") for row in kernel.rows)
    held = {
        f"in{number - scalars}" for number, name in enumerate(re.findall(r"%([\w.-]+)", operands)) if name in in_vmem
    }
    results = [buffer for buffer in report.buffers if buffer.instruction == use.instruction]
    held |= {f"out{number}" for number, buffer in enumerate(results) if buffer.memory_space == 1}
    rows = [row for row in kernel.rows if row.operand in held and row.memory_space == "vmem"]
    return ", ".join(row.operand for row in rows), sum(row.bytes for row in rows)


def main():
    print("| kernel | TPU | blocks | declared | guess | measured | declared, error | with the guess, error |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    errors = {"declared": [], "guess": []}
    below = compared = 0
    chosen = {name: each for name, each in KERNELS.items() if not sys.argv[1:] or name.startswith(tuple(sys.argv[1:]))}
    for name, (make, choices) in chosen.items():
        for tpu in GENERATIONS:
            for blocks in choices:
                call, arguments = make(*blocks)
                found = tw.kernel_budget(call, *arguments, tpu=tpu, confirm=True)
                kernel = max(found, key=lambda each: each.vmem_bytes)
                measured, declared = kernel.measured_bytes, kernel.vmem_bytes
                cells = [name, tpu, " × ".join(map(str, blocks)), f"{declared:,}", f"{kernel.guess_bytes:,}"]
                if measured:
                    off = [(size - measured) / measured for size in (declared, declared + kernel.guess_bytes)]
                    compared += 1
                    is_moved = declared > measured
                    below += not is_moved
                    if not is_moved:
                        errors["declared"].append(abs(off[0]))
                        errors["guess"].append(abs(off[1]))
                    note = ""
                    if is_moved:
                        windows, size = kept(kernel, call, arguments)
                        note = f" ({windows} in VMEM: without their windows {declared - size:,})"
                    cells += [f"{measured:,}{note}", *(f"{each:+.1%}" for each in off)]
                else:
                    cells += ["not reported", "", ""]
                print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\nDeclared bytes are at most the measured ones in {below} of {compared}. Of those, the error is", end="")
    for name, values in errors.items():
        print(f" {statistics.median(values):.1%} in the median and {max(values):.1%} at worst for {name},", end="")
    print()
    if not sys.argv[1:]:
        products()


if __name__ == "__main__":
    main()
