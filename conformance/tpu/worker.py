"""Compiles programs for TPUs, without one, and for this machine's CPU.

Each line of standard input names a program, each line of standard output is the compiler's answer, both in JSON; a
first line says that the worker is ready. The compiler may take long or end the process: `check.py` starts another
worker then. `--classes` prints the classes of programs, and the generations each is for.
"""

import functools
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

# The compiler asks its surroundings for a TPU unless told what to assume.
os.environ |= {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "JAX_PLATFORMS": "cpu",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    # Programs of several devices take four.
    "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
}

import jax
import jax.numpy as jnp
from jax.experimental import topologies
from programs import CLASSES, Draw

TOPOLOGIES = {
    "v2": "v2:2x2",
    "v3": "v3:2x2",
    "v4": "v4:2x2x1",
    "v5e": "v5e:2x2",
    "v5p": "v5p:2x2x1",
    "v6e": "v6e:2x2",
    "v7x": "tpu7x:2x2x1",
}

TYPES = {
    "pred": jnp.bool_,
    "s4": jnp.int4,
    "u4": jnp.uint4,
    "s8": jnp.int8,
    "u8": jnp.uint8,
    "s16": jnp.int16,
    "u16": jnp.uint16,
    "s32": jnp.int32,
    "u32": jnp.uint32,
    "f8e4m3fn": jnp.float8_e4m3fn,
    "f8e5m2": jnp.float8_e5m2,
    "bf16": jnp.bfloat16,
    "f16": jnp.float16,
    "f32": jnp.float32,
    "c64": jnp.complex64,
}
TYPES |= {
    f"f6{kind}": getattr(jnp, f"float6_{kind}") for kind in ("e2m3fn", "e3m2fn") if hasattr(jnp, f"float6_{kind}")
}
"""JAX's element types by XLA's names."""

SIZES = {
    "argument_bytes": "argument_size_in_bytes",
    "output_bytes": "output_size_in_bytes",
    "alias_bytes": "alias_size_in_bytes",
    "temporary_bytes": "temp_size_in_bytes",
    "host_argument_bytes": "host_argument_size_in_bytes",
    "host_output_bytes": "host_output_size_in_bytes",
    "host_alias_bytes": "host_alias_size_in_bytes",
    "host_temporary_bytes": "host_temp_size_in_bytes",
    "peak_memory": "peak_memory_in_bytes",
}

COUNTS_TWICE = tuple(map(int, version("libtpu").split(".")[:3])) < (0, 0, 51) if find_spec("libtpu") else False
"""Whether `memory_analysis` counts the fragmentation of temporaries a second time, as libtpu did until 0.0.50.

The compiler's buffer assignment has the bytes that it allocates, then as later.
"""

TEMPORARIES = re.compile(r"^allocation \d+: size (\d+),(?: page \d+,)? preallocated-temp", re.MULTILINE)
"""Those of HBM: other memory spaces have a color."""

VALUE = re.compile(r"^ value: <\d+ ([^ >{]+)(\{[\d,]*\})?(?: \(phi\))? @\d+> \(size=\d+,offset=(\d+)\)", re.MULTILINE)
"""A line of the compiler's buffer assignment."""


@functools.cache
def devices(generation):
    """The devices of a generation, or those that stand for this machine's CPU."""
    if generation == "cpu":
        return jax.devices("cpu")
    return topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGIES[generation]).devices


def text(lowered, compiled, options):
    """The text of the compiled program."""
    try:
        return compiled.as_text()
    except jax.errors.JaxRuntimeError:
        # jax can't print some programs with SparseCore calls; the compiler's own dump can.
        with tempfile.TemporaryDirectory() as folder:
            lowered.compile(options | dumping(folder))
            return dumped(folder, "after_optimizations")


def total(program, path):
    """The bytes of arguments, of results that don't lie in them, and of temporaries; the text goes to that path."""
    lowered = jax.jit(program.function, **program.jit).lower(*program.arguments)
    compiled = lowered.compile(program.compiler)
    path.write_text(text(lowered, compiled, program.compiler))
    found = compiled.memory_analysis()
    kept = found.argument_size_in_bytes + found.output_size_in_bytes - found.alias_size_in_bytes
    return kept + found.temp_size_in_bytes


def dumping(folder):
    """The options with which the compiler dumps what it does."""
    return {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}


def dumped(folder, stage):
    """The compiler's dump of a stage; helpers that it compiles on the way are smaller."""
    found = sorted(Path(folder).glob(f"*{stage}.txt"), key=lambda path: path.stat().st_size)
    return found[-1].read_text()


def allocated(assignment):
    """Bytes of HBM that the temporaries are given, as `memory_analysis` rounds them."""
    return -(-sum(map(int, TEMPORARIES.findall(assignment))) // 16384) * 16384


def offsets(assignment):
    """Where each value lies in the block of temporaries, by its name and index, in bytes."""
    found = {}
    for allocation in assignment.split("\nallocation ")[1:]:
        if "preallocated-temp" in allocation.partition("\n")[0]:
            found |= {name + (index or "{}"): int(offset) for name, index, offset in VALUE.findall(allocation)}
    return found


def answer(job):
    """The sizes of the program that a job names, whose text is written where the job says; a CPU's with all offsets."""
    name, generation = job["class"], job["generation"]
    program = CLASSES[name].make(Draw(job["seed"], generation, devices(generation)))
    lowered = jax.jit(program.function, **program.jit).lower(*program.arguments)
    placed = {}
    with tempfile.TemporaryDirectory() as folder:
        is_dumped = generation == "cpu" or COUNTS_TWICE
        compiled = lowered.compile(program.compiler | (dumping(folder) if is_dumped else {}))
        analysis = compiled.memory_analysis()
        if generation == "cpu":
            placed = {"offsets": offsets(dumped(folder, "buffer-assignment"))}
        elif COUNTS_TWICE:
            own = allocated(dumped(folder, "after_optimizations-buffer-assignment"))
            placed = {"temporary_bytes": min(own, analysis.temp_size_in_bytes)}
    Path(job["path"]).write_text(text(lowered, compiled, program.compiler))
    return {ours: getattr(analysis, theirs) for ours, theirs in SIZES.items()} | placed


def serve(answer: Callable[[dict], dict]) -> None:
    """Answers jobs until there are no more."""
    # Libraries print to standard output as well.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), file=answers, flush=True)
        jax.clear_caches()


if __name__ == "__main__":
    if sys.argv[1:] == ["--classes"]:
        print(json.dumps({name: each.generations for name, each in CLASSES.items()}))
    else:
        serve(answer)
