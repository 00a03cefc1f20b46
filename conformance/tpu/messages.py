"""Compares what `tilewise` makes of the TPU compiler's out-of-memory messages, and of its dumps then, with each other.

Programs that don't fit are compiled: what a loop keeps, arguments, padding, a kernel's windows. Each message has to be explained, and
what it says is needed of HBM has to be what `tilewise audit` finds in the dump of the refused program, to the message's last digit.
Differences go to standard error. The exit status is 1 if fewer than 98 % agree.
"""

import json
import random
import re
import subprocess
import tempfile
import time
from pathlib import Path

from check import parser_of, tell, write_result
from worker import devices, dumping  # It also says what the compiler should assume.

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

SHARE = 0.98
HBM = {"v4": 32, "v5e": 16, "v5p": 95, "v6e": 32, "v7x": 96}
"""GiB of a device, about."""
NEEDED = re.compile(r"HLO temporaries \(([\d.]+)([KMGT])\)|Used ([\d.]+)([KMGT]) of")


def kept(choice, size):
    """A loop that stacks what its gradient needs."""
    layers, width = choice.choice([16, 24, 64]), choice.choice([256, 640, 1024])
    rows = size // (layers * width * 4) // 8 * 8

    def f(w, x):
        return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), h), x, w)

    return f, [((layers, width, width), jnp.float32), ((rows, width), jnp.float32)]


def arguments(choice, size):
    """More arguments than there is memory."""
    columns = choice.choice([512, 4096, 65536])
    array = ((size // 8 // columns, columns), jnp.float32)
    return (lambda a, b: a + b), [array, array]


def padded(choice, size):
    """Rows of few columns, that lie on 128 lanes where they are gathered."""
    columns = choice.choice([12, 24, 48])
    rows = size // 512

    def f(x, i):
        found = x[i]
        return jnp.tanh(found) @ jnp.sin(found).T[:, :128]

    return f, [((rows // 4, columns), jnp.float32), ((rows,), jnp.int32)]


def halves(choice, size):
    """Several large values that are alive together, in 16 bits."""
    columns = choice.choice([1000, 2048, 5000])
    rows = size // (2 * columns) // 3

    def f(x):
        a, b, c = jnp.sort(x, 1), jnp.cumsum(x, 1), jnp.flip(x, 0)
        return a @ b[:columns], b @ c[:columns], c @ a[:columns]

    return f, [((rows, columns), jnp.bfloat16)]


def kernel(choice, _):
    """A kernel whose windows are larger than VMEM."""
    rows, columns = choice.choice([4096, 8192]), choice.choice([4096, 8192])

    def f(x):
        def body(x_ref, y_ref):
            y_ref[...] = 2 * x_ref[...]

        block = pl.BlockSpec((rows, columns), lambda i: (i, 0))
        return pl.pallas_call(body, grid=(4,), in_specs=[block], out_specs=block, out_shape=x)(x)

    return f, [((4 * rows, columns), jnp.float32)]


CLASSES = [kept, arguments, padded, halves, kernel]


def asked(command):
    """The first line of a command's answer."""
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout.splitlines()[0])
    except (IndexError, ValueError):
        return {"error": {"message": done.stderr[-300:]}}


def difference(tilewise, generation, text, folder):
    """The first disagreement; ``None`` without one."""
    path = folder / "message.txt"
    path.write_text(text)
    said = asked([tilewise, "explain", "--tpu", generation, "--format", "json", path])
    if said.get("error"):
        return f"not explained: {said['error']['message']}"
    needed = NEEDED.search(text)
    if needed is None:
        return None if said["memory_space_name"] == "vmem" else f"no figure in: {text[:300]}"
    figure, unit = needed.group(1, 2) if needed[1] else needed.group(3, 4)
    found = asked([tilewise, "audit", "--machine", f"tpu:{generation}", "--format", "json", folder])
    if found.get("error"):
        return f"the dump is not read: {found['error']['message']}"
    total = found["argument_bytes"] + found["output_bytes"] - found["alias_bytes"] + found["temporary_bytes"]
    ours = total / 1024 ** (1 + "KMGT".index(unit))
    # The message leaves out what lies between the temporaries.
    return None if abs(ours - float(figure)) < 0.015 else f"the message says {figure}{unit}, the dump {ours:.4f}"


def main():
    parser = parser_of(__doc__, "programs")
    options = parser.parse_args()
    begun, exact, total = time.monotonic(), 0, 0
    for number in range(options.count):
        if time.monotonic() - begun > options.seconds:
            break
        choice = random.Random(f"{options.seed}-{number}")
        generation, make = choice.choice(list(HBM)), CLASSES[number % len(CLASSES)]
        f, shapes = make(choice, int(HBM[generation] * choice.uniform(1.1, 3)) << 30)
        place = jax.sharding.SingleDeviceSharding(devices(generation)[0])
        lowered = jax.jit(f).lower(*(jax.ShapeDtypeStruct(*each, sharding=place) for each in shapes))
        label = f"{number} ({make.__name__}, {generation})"
        with tempfile.TemporaryDirectory() as folder:
            try:
                lowered.compile(dumping(folder))
            except jax.errors.JaxRuntimeError as error:
                if "RESOURCE_EXHAUSTED" not in str(error) and "memory" not in str(error):
                    tell(f"{label}: not compiled: {' '.join(str(error).split())[:300]}")
                    continue
                differs = difference(options.tilewise, generation, str(error), Path(folder))
                exact, total = exact + (differs is None), total + 1
                if differs:
                    tell(f"{label}: {differs}")
            else:
                tell(f"{label}: it fits")
    write_result(options.result, exact, total)
    raise SystemExit(not total or exact < SHARE * total)


if __name__ == "__main__":
    main()
