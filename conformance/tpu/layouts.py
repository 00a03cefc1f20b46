"""Compares the layouts that `tilewise predict` gives with those of the TPU compiler: by default, or for a given order.

Shapes are random, for every generation. By default they are those that PJRT gives a buffer. With `--orders` each is the argument of a
compiled program that fixes the order of its dimensions, and leaves the tiles to the compiler. Differences go to standard error. The
exit status is 1 if fewer than 99 % of the layouts agree.
"""

import json
import random
import re
import subprocess
import time

from check import SHARE, parser_of, tell, write_result
from worker import TOPOLOGIES, TYPES, devices  # It also says what the compiler should assume.

import jax
import numpy as np
from jax.experimental.layout import Format, Layout

NOT_EARLY = {"s4", "u4", "f8e4m3fn", "f8e5m2"}
"""Types that v2, v3 and v4 don't compute with."""
ARGUMENTS = 12
"""Of a program that fixes their orders."""
ARRAY = re.compile(r"[a-z0-9]+\[[\d,]*\]\{[^}]*\}")


def shape(choice):
    """Bounds of up to five dimensions, of 2^24 elements at most."""
    while True:
        near = [1, 2, 3, 4, 7, 8, 9, 12, 16, 17, 100, 127, 128, 129, 256, 1000, 4096]
        bounds = tuple(
            choice.choice([choice.choice(near), choice.randrange(1, 3000)]) for _ in range(choice.randrange(1, 6))
        )
        if np.prod(bounds, dtype=float) <= 1 << 24:
            return bounds


def predicted(tilewise, generation, texts):
    """The answers of `tilewise predict`, one for each."""
    command = [tilewise, "predict", "-", "--tpu", generation, "--format", "json"]
    done = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True)
    return [said.get("shape") or said["error"]["message"] for said in map(json.loads, done.stdout.splitlines())]


def by_default(generation, kinds, choice):
    """Shapes without layout, and the layouts that PJRT gives them."""
    device = devices(generation)[0]
    for name in kinds:
        bounds = shape(choice)
        text = f"{name}[{','.join(map(str, bounds))}]"
        yield text, text + str(device.client.get_default_layout(np.dtype(TYPES[name]), bounds, device))


def in_order(generation, kinds, choice):
    """Shapes with an order, and the layouts of a compiled program's arguments."""
    drawn = [(name, shape(choice)) for name in kinds]
    orders = [choice.sample(range(len(bounds)), len(bounds)) for _, bounds in drawn]
    place = jax.sharding.SingleDeviceSharding(devices(generation)[0])
    forms = tuple(Format(Layout(major_to_minor=tuple(order)), place) for order in orders)
    # The layouts don't depend on how the program reads its arguments.
    program = jax.jit(lambda *_: 0, in_shardings=forms, keep_unused=True)
    arguments = [jax.ShapeDtypeStruct(bounds, TYPES[name]) for name, bounds in drawn]
    head = program.lower(*arguments).compile().as_text().partition(")->")[0]
    for (name, bounds), order, layout in zip(drawn, orders, ARRAY.findall(head), strict=True):
        minor_to_major = ",".join(map(str, reversed(order)))
        yield f"{name}[{','.join(map(str, bounds))}]{{{minor_to_major}}}", layout


def main():
    parser = parser_of(__doc__, "shapes")
    parser.add_argument("--orders", action="store_true", help="fix the order of dimensions")
    options = parser.parse_args()
    choice = random.Random(options.seed)
    wanted = {generation: [] for generation in TOPOLOGIES}
    begun, number = time.monotonic(), 0
    while sum(map(len, wanted.values())) < options.count and time.monotonic() - begun < options.seconds:
        generation = list(TOPOLOGIES)[number % len(TOPOLOGIES)]
        number += 1
        known = [name for name in TYPES if name not in NOT_EARLY or generation not in ("v2", "v3", "v4")]
        kinds = [choice.choice(known) for _ in range(ARGUMENTS)]
        asked = in_order if options.orders else by_default
        try:
            wanted[generation] += asked(generation, kinds, choice)
        except jax.errors.JaxRuntimeError as error:
            tell(f"{generation}: not compiled: {' '.join(str(error).split())[:300]}")
    exact = total = 0
    for generation, rows in wanted.items():
        found = predicted(options.tilewise, generation, [text for text, _ in rows])
        for (text, theirs), ours in zip(rows, found, strict=True):
            exact, total = exact + (ours == theirs), total + 1
            if ours != theirs:
                tell(f"{generation}: {text} is {ours}, the compiler's {theirs}")
    write_result(options.result, exact, total)
    raise SystemExit(not total or exact < SHARE * total)


if __name__ == "__main__":
    main()
