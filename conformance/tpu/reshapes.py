"""Compares the reshapes that `tilewise bitcast` calls free with those that the TPU compiler makes bitcasts.

Random arrays of random orders are reshaped, for every generation. What the program returns has a layout that `tilewise bitcast
--reshape` offers, the one that JAX's rule for layouts in types gives (`jax.experimental.layout.explicit_layout`), or a random order.
The compiler's answer is its text: a chain of bitcasts from parameter to result, or anything else. The table goes to standard output,
differences to standard error. The exit status is 1 if a pair differs.
"""

import collections
import json
import math
import random
import re
import subprocess
import time

from check import parser_of, tell, write_result
from layouts import ARRAY, NOT_EARLY, predicted
from worker import TOPOLOGIES, TYPES, devices  # It also says what the compiler should assume.

import jax
import jax.numpy as jnp
from jax.experimental.layout import Format, Layout, explicit_layout

KINDS = ["f32", "bf16", "s8", "s32", "u16", "f8e4m3fn", "pred"]
"""Not four-bit types: JAX 0.12 loses their size in bits where a layout is given."""
RESHAPES = 80
"""In one program."""
INSTRUCTION = re.compile(r"^ *(?:ROOT )?%(\S+) = (\([^=]*?\)|\S+) ([\w-]+)\((.*)$", re.MULTILINE)
OPERAND = re.compile(r"%([\w.-]+)")
LAYOUT = re.compile(r"^\w+\[([\d,]*)\](?:\{([\d,]*)(?::(?:T((?:\([\d,]+\))+))?)?\})?$")
CHAIN = {"bitcast", "copy", "copy-start", "copy-done", "async-start", "async-done"}


def grouped(factors, choice):
    """Dimensions of which each is a product of neighbouring factors, with a dimension of size 1 now and then."""
    bounds, product = [], 1
    for factor in factors:
        product *= factor
        if choice.random() < 0.5:
            bounds, product = [*bounds, product], 1
    bounds = [*bounds, product] if product > 1 or not bounds else bounds
    if choice.random() < 0.15:
        bounds.insert(choice.randrange(len(bounds) + 1), 1)
    return tuple(bounds)


def drawn(choice, most):
    """Bounds before and after a reshape, of five dimensions and `most` elements at most."""
    while True:
        factors = [
            choice.choice([2, 2, 3, 4, 5, 7, 8, 8, 12, 16, 64, 100, 128, 128, 256])
            for _ in range(choice.randrange(2, 6))
        ]
        factors += choice.choice([[], [128], [8, 128]])
        before, after = grouped(factors, choice), grouped(factors, choice)
        if before != after and max(len(before), len(after)) <= 5 and math.prod(before) <= most:
            return before, after


def written(kind, bounds, order):
    """The array with an order, major to minor."""
    return f"{kind}[{','.join(map(str, bounds))}]{{{','.join(map(str, reversed(order)))}}}"


def layout(shape):
    """The layout of a printed array, as JAX takes it."""
    _, order, tiles = LAYOUT.match(shape).groups()
    tiling = tuple(tuple(map(int, tile.split(","))) for tile in re.findall(r"\(([\d,]+)\)", tiles or ""))
    return Layout(tuple(reversed([int(number) for number in (order or "").split(",") if number])), tiling)


def printed(kind, bounds, given):
    """The array in a layout of JAX's, as it is printed."""
    tiles = "".join(f"({','.join(map(str, tile))})" for tile in given.tiling or ())
    return written(kind, bounds, given.major_to_minor)[:-1] + (f":T{tiles}" if tiles else "") + "}"


def free(tilewise, shape, bounds):
    """The layouts that `tilewise bitcast --reshape` offers for the result."""
    command = [tilewise, "bitcast", shape, "--reshape", ",".join(map(str, bounds)), "--format", "json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["layouts"]


def in_own_tiles(tilewise, generation, shapes):
    """Those whose tiles the compiler gives arrays of their order: asked for others, it may end the process."""
    orders = [re.sub(":[^}]*", "", shape) for shape in shapes]
    return (
        {shape for shape, own in zip(shapes, predicted(tilewise, generation, orders), strict=True) if shape == own}
        if shapes
        else set()
    )


def by_rule(kind, before, given, after):
    """The layout that JAX's rule gives the result, `None` where it raises."""
    found = []

    def step(array):
        result = jnp.reshape(array, after)
        found.append(jax.typeof(result).layout)
        return result

    try:
        jax.eval_shape(explicit_layout(step, in_layouts=given), jax.ShapeDtypeStruct(before, TYPES[kind]))
    except ValueError:
        return None
    return found[0]


def are_bitcasts(text, count):
    """Whether the compiler made each result by bitcasts alone; a copy in the layout that was there only moves an array as it is."""
    made = {name: (shape, opcode, rest) for name, shape, opcode, rest in INSTRUCTION.findall(text)}

    def order(name):
        return re.sub(r":?S\(\d+\)", "", made[name][0])

    def is_bitcast(name):
        while made[name][1] != "parameter":
            _, opcode, rest = made[name]
            operand = OPERAND.search(rest).group(1)
            if opcode not in CHAIN or (opcode == "copy" and order(name) != order(operand)):
                return False
            name = operand
        return True

    root, opcode, rest = re.search(
        r"^ *ROOT %(\S+) = .*? ([\w-]+)\((.*?)\)", text[text.index("\nENTRY") :], re.MULTILINE
    ).groups()
    names = OPERAND.findall(rest) if opcode == "tuple" else [root]
    assert len(names) == count, "a result is missing"
    return [is_bitcast(name) for name in names]


def compiled(generation, pairs):
    """Whether the compiler makes a bitcast of each (shape, bounds, shape, bounds)."""
    place = jax.sharding.SingleDeviceSharding(devices(generation)[0])
    # Their orders only: the tiles are the compiler's own, and some that are asked for end the process.
    orders = ([Layout(layout(pair[at]).major_to_minor) for pair in pairs] for at in (1, 3))
    before, after = ([Format(order, place) for order in side] for side in orders)
    program = jax.jit(
        lambda *arrays: tuple(array.reshape(pair[4]) for array, pair in zip(arrays, pairs, strict=True)),
        in_shardings=tuple(before),
        out_shardings=tuple(after),
        donate_argnums=tuple(range(len(pairs))),
    )
    arguments = [jax.ShapeDtypeStruct(pair[2], TYPES[pair[0]]) for pair in pairs]
    text = program.lower(*arguments).compile().as_text()
    given = ARRAY.findall(text.partition("entry_computation_layout={")[2].partition("\n")[0])[: 2 * len(pairs)]
    wanted = [pair[at] for at in (1, 3) for pair in pairs]
    assert given == wanted, [both for both in zip(given, wanted, strict=True) if both[0] != both[1]]
    return are_bitcasts(text, len(pairs))


def asked(tilewise, generation, choice, most):
    """Reshapes of one program: (kind, from, its bounds, to, its bounds, how `to` was chosen), and what JAX's rule and we offer."""
    kinds = [
        choice.choice([kind for kind in KINDS if kind not in NOT_EARLY or generation not in ("v2", "v3", "v4")])
        for _ in range(RESHAPES)
    ]
    bounds = [drawn(choice, most) for _ in kinds]
    orders = [[choice.sample(range(len(side)), len(side)) for side in pair] for pair in bounds]
    shapes = [
        predicted(
            tilewise,
            generation,
            [written(kind, pair[at], order[at]) for kind, pair, order in zip(kinds, bounds, orders, strict=True)],
        )
        for at in (0, 1)
    ]
    offered, rules = [], []
    for kind, (before, after), one in zip(kinds, bounds, shapes[0], strict=True):
        rule = by_rule(kind, before, layout(one), after)
        rules.append([printed(kind, after, rule)] if rule else [])
        offered.append(free(tilewise, one, after))
    own = in_own_tiles(tilewise, generation, [shape for found in offered + rules for shape in found])
    rows = []
    for kind, (before, after), one, other, ours, rule in zip(kinds, bounds, *shapes, offered, rules, strict=True):
        ways = {"random order": [other], "bitcast --reshape": ours, "JAX's rule": rule}
        ways = {way: [shape for shape in found if shape in own or shape == other] for way, found in ways.items()}
        way = choice.choice([way for way, found in ways.items() if found])
        rows.append(((kind, one, before, choice.choice(ways[way]), after), way, ours, rule[0] if rule else None))
    return rows


def main():
    parser = parser_of(__doc__, "reshapes")
    parser.add_argument("--elements", type=int, default=1 << 15, help="the most of an array; large ones compile long")
    options = parser.parse_args()
    choice = random.Random(options.seed)
    table, rules = collections.Counter(), collections.Counter()
    begun, number = time.monotonic(), 0
    while sum(table.values()) < options.count and time.monotonic() - begun < options.seconds:
        generation = list(TOPOLOGIES)[number % len(TOPOLOGIES)]
        number += 1
        rows = asked(options.tilewise, generation, choice, options.elements)
        try:
            theirs = compiled(generation, [row[0] for row in rows])
        except (ValueError, jax.errors.JaxRuntimeError) as error:
            tell(f"{generation}: not compiled: {' '.join(str(error).split())[:300]}")
            continue
        lines = "\n".join(f"{one}\t{other}" for (_, one, _, other, _), *_ in rows)
        command = [options.tilewise, "bitcast", "-", "--as", "reshape", "--format", "json"]
        said = subprocess.run(command, input=lines, capture_output=True, text=True).stdout.splitlines()
        for (pair, way, offered, rule), answer, bitcast in zip(rows, map(json.loads, said), theirs, strict=True):
            ours = answer["bitcast"]
            # Beside others an array may be brought to a faster memory and back; alone the compiler's answer is of the reshape.
            bitcast = bitcast or (ours and compiled(generation, [pair])[0])
            table[way, ours, bitcast] += 1
            rules["a layout" if rule else "raises", rule in offered if rule else bool(offered)] += 1
            if ours != bitcast or (bitcast and pair[3] not in offered):
                tell(
                    f"{generation}: {pair[1]} to {pair[3]} ({way}): we say {ours}, the compiler {bitcast}; offered {offered}"
                )
    print("| the result's layout is | we say | the compiler | reshapes |\n|---|---|---|---|")
    words = {True: "a bitcast", False: "moves bytes"}
    for (way, ours, bitcast), count in sorted(table.items()):
        print(f"| {way} | {words[ours]} | {words[bitcast]} | {count} |")
    print("\n| JAX's rule | `bitcast --reshape` | reshapes |\n|---|---|---|")
    theirs = {
        ("a layout", True): "has that layout",
        ("a layout", False): "lacks it",
        ("raises", True): "has a layout",
        ("raises", False): "has none",
    }
    for key, count in sorted(rules.items()):
        print(f"| {'gives a layout' if key[0] == 'a layout' else key[0]} | {theirs[key]} | {count} |")
    exact = sum(count for (_, ours, bitcast), count in table.items() if ours == bitcast)
    write_result(options.result, exact, sum(table.values()))
    raise SystemExit(exact != sum(table.values()))


if __name__ == "__main__":
    main()
