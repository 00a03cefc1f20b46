"""Compiles Pallas kernels for TPUs, without one.

Each line of standard input is a kernel, each line of standard output what the compiler says that it takes of VMEM, both in
JSON; a first line says that the worker is ready. Operands are kept in HBM, so that all windows are allocated: by
constraints, which JAX can't put on booleans, and by the compiler's options.
"""

import re

from worker import TYPES, devices, serve  # It also says what the compiler should assume.

import jax
import jax.numpy as jnp
from jax._src.mesh import AbstractDevice
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

# XLA moves nothing to VMEM of its own accord; which of the two counts differs by generation.
IN_HBM = {"xla_vf_vmem_memory_space_assignment": False, "xla_gf_vmem_memory_space_assignment": False}
SPACES = {"vmem": pltpu.VMEM, "smem": pltpu.SMEM, "any": pl.ANY}


def spec(operand, ranked):
    """The BlockSpec of an operand, for a grid of `ranked` axes."""
    if operand["memory"] == "any":
        return pl.BlockSpec(memory_space=pl.ANY)

    def index_map(*values):
        steps, scalars = values[:ranked], values[ranked:]
        read = [
            scalars[0][steps[axis]] if operand["by_scalar"] else steps[axis] for axis in operand["index"] if axis >= 0
        ]
        read = iter(read)
        return tuple(0 if axis < 0 else next(read) for axis in operand["index"])

    mode = {"pipeline_mode": pl.Buffered(operand["buffered"])} if operand["buffered"] else {}
    return pl.BlockSpec(tuple(operand["block"]), index_map, memory_space=SPACES[operand["memory"]], **mode)


def function(kernel):
    """The function that calls the kernel, and its abstract arguments."""
    grid = tuple(kernel["grid"])
    inputs = [each for each in kernel["operands"] if each["role"] == "in"]
    outputs = [each for each in kernel["operands"] if each["role"] == "out"]
    scalars, scratch = kernel["prefetch"], kernel["scratch"]

    def body(*refs):
        # Scratch that nothing touches is dropped: what is in VMEM goes to the last outputs.
        outs = refs[len(scalars) + len(inputs) :][: len(outputs)]
        *arrays, semaphore = refs[len(scalars) + len(inputs) + len(outputs) :]
        copied = iter(outs[len(outputs) - sum(each["memory"] == "vmem" for each in scratch) :])
        for each, ref in zip(scratch, arrays, strict=True):
            if each["memory"] == "vmem":
                copy = pltpu.make_async_copy(ref, next(copied), semaphore)
                copy.start()
                copy.wait()
            else:
                ref[(0,) * len(each["shape"])] = jnp.zeros((), ref.dtype)

    def call(*arguments):
        arrays = [
            each if each.dtype == jnp.bool_ else pltpu.with_memory_space_constraint(each, pltpu.HBM)
            for each in arguments[len(scalars) :]
        ]
        return pl.pallas_call(
            body,
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=len(scalars),
                grid=grid,
                in_specs=[spec(each, len(grid)) for each in inputs],
                out_specs=[spec(each, len(grid)) for each in outputs],
                scratch_shapes=[
                    *(SPACES[each["memory"]](tuple(each["shape"]), TYPES[each["type"]]) for each in scratch),
                    pltpu.SemaphoreType.DMA(()),
                ],
            ),
            out_shape=[pltpu.HBM(tuple(each["array"]), TYPES[each["type"]]) for each in outputs],
            compiler_params=pltpu.CompilerParams(vmem_limit_bytes=kernel["limit"]),
        )(*arguments[: len(scalars)], *arrays)

    shapes = [(shape, "s32") for shape in scalars] + [(each["array"], each["type"]) for each in inputs]
    return call, shapes


def answer(kernel):
    """Bytes of VMEM that the compiled kernel uses."""
    call, shapes = function(kernel)
    place = jax.sharding.SingleDeviceSharding(devices(kernel["generation"])[0])
    arguments = [jax.ShapeDtypeStruct(tuple(shape), TYPES[name], sharding=place) for shape, name in shapes]
    options = {} if arguments else {"out_shardings": place}
    # Pallas asks for the kind of the device where blocks have one dimension.
    kind = devices(kernel["generation"])[0].device_kind
    mesh = jax.sharding.AbstractMesh((1,), ("_",), abstract_device=AbstractDevice(kind, 1, "tpu"))
    with jax.sharding.use_abstract_mesh(mesh):
        lowered = jax.jit(call, **options).lower(*arguments)
    text = lowered.compile(IN_HBM).as_text()
    line = next(line for line in text.splitlines() if 'custom_call_target="tpu_custom_call"' in line)
    used = re.search(r'"used_scoped_memory_configs":\[\{"memory_space":"1","offset":"\d+","size":"(\d+)"', line)
    return {"vmem_bytes": int(used[1])} if used else {"error": "the text does not say what it uses"}


if __name__ == "__main__":
    serve(answer)
