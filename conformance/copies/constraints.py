"""Pins padded values inside programs to other layouts, and tells what the TPU compiler then makes of them.

For each program of `conformance/advice` the largest padded values within it are found by `tilewise audit`, and `with_layout_constraint`
is put behind the operation that makes each, with every order that takes fewer bytes by itself, and row-major. The program is compiled
again. The table goes to standard output, progress to standard error.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import permutations
from pathlib import Path

CONFORMANCE = Path(__file__).parent.parent
sys.path += [str(CONFORMANCE / "advice"), str(CONFORMANCE / "tpu")]

import jax  # noqa: E402
from cases import CASES  # noqa: E402
from jax.experimental.layout import Layout, with_layout_constraint  # noqa: E402
from jax.extend.core import Literal  # noqa: E402
from layouts import predicted  # noqa: E402
from programs import Draw, Program  # noqa: E402
from worker import devices, total  # noqa: E402

ARRAY = re.compile(r"^([a-z]\w*)\[([\d,]+)\]\{([\d,]+)")
NOTABLE = 0.05
"""The least share of a program that a value's padding must be."""
VALUES = 2
"""Of each program."""
NAMES = {"bfloat16": "bf16", "float32": "f32", "int32": "s32", "int8": "s8", "uint32": "u32", "float16": "f16", "bool": "pred", "uint8": "u8"}


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tilewise", type=Path, required=True, help="the command")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no program after so many seconds")
    parser.add_argument("--after", metavar="NAME", help="begin behind this program")
    parser.add_argument("--most", type=int, default=1000, help="constraints to try")
    return parser.parse_args()


def padded(tilewise, path):
    """The type, bounds and order of the largest padded temporaries, and the bytes of each."""
    report = json.loads(subprocess.run([tilewise, "audit", path, "--format", "json"], capture_output=True, text=True).stdout)
    whole = report["argument_bytes"] + report["temporary_bytes"] + report["output_bytes"]
    found = {}
    for buffer in report["buffers"]:
        array = ARRAY.match(buffer["shape"])
        if array and buffer["memory_space"] == 0 and buffer["opcode"] != "parameter" and buffer["padding_bytes"] > NOTABLE * whole:
            bounds, order = (tuple(map(int, text.split(","))) for text in array.groups()[1:])
            found.setdefault((array.group(1), bounds), (order, buffer["physical_bytes"]))
    return [(*key, *value) for key, value in found.items()][:VALUES]


def smaller(tilewise, generation, kind, bounds, own, size):
    """Row-major, and the orders in which the array takes fewer bytes, major to minor; not its own."""
    orders = [order for order in permutations(range(len(bounds))) if order[::-1] != own]
    texts = [f"{kind}[{','.join(map(str, bounds))}]{{{','.join(map(str, order[::-1]))}}}" for order in orders]
    shown = [tilewise, "show", "-", "--format", "json"]
    done = subprocess.run(shown, input="\n".join(predicted(tilewise, generation, texts)), capture_output=True, text=True)
    sizes = [json.loads(line)["physical_bytes"] for line in done.stdout.splitlines()]
    cheap = sorted((bytes_, order) for bytes_, order in zip(sizes, orders, strict=True) if bytes_ < size)
    row_major = tuple(range(len(bounds)))
    chosen = [order for _, order in cheap[:2]]
    return chosen + [row_major] * (row_major[::-1] != own and row_major not in chosen)


def constrained(program, kind, bounds, order):
    """The program with a constraint on the first value of a type and bounds; `None` if no operation at its top makes one."""
    placed = []

    def run(jaxpr, constants, arguments):
        values = dict(zip(jaxpr.constvars, constants, strict=True)) | dict(zip(jaxpr.invars, arguments, strict=True))
        for equation in jaxpr.eqns:
            inputs = [atom.val if isinstance(atom, Literal) else values[atom] for atom in equation.invars]
            if equation.primitive.name in ("jit", "pjit"):
                inner = equation.params["jaxpr"]
                outputs = run(inner.jaxpr, inner.consts, inputs)
            else:
                outputs = equation.primitive.bind(*inputs, **equation.primitive.get_bind_params(equation.params))
                outputs = outputs if equation.primitive.multiple_results else [outputs]
                outputs = list(outputs)
            for at, output in enumerate(outputs):
                wanted = NAMES.get(str(output.dtype)) == kind and output.shape == bounds and bounds != ()
                if wanted and not placed:
                    outputs[at] = with_layout_constraint(output, Layout(order))
                    placed.append(True)
            values |= dict(zip(equation.outvars, outputs, strict=True))
        return [atom.val if isinstance(atom, Literal) else values[atom] for atom in jaxpr.outvars]

    closed, shape = jax.make_jaxpr(program.function, return_shape=True)(*program.arguments)
    tree = jax.tree.structure(shape)

    def function(*arguments):
        return jax.tree.unflatten(tree, run(closed.jaxpr, closed.consts, jax.tree.leaves(arguments)))

    jax.eval_shape(function, *program.arguments)
    return Program(function, program.arguments, program.jit, program.compiler) if placed else None


def main():
    given = options()
    begun, rows, refused = time.monotonic(), [], 0
    names = list(CASES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.hlo"
        for name in names[names.index(given.after) + 1 if given.after else 0 :]:
            generations, make = CASES[name]
            if time.monotonic() - begun > given.seconds or len(rows) >= given.most:
                break
            generation = generations[0]
            try:
                program = make(Draw("", generation, devices(generation))).program
                before = total(program, path)
                values = padded(given.tilewise, path)
            except Exception as error:  # A library that isn't installed, a program that the compiler refuses.
                print(f"{name}: {' '.join(str(error).split())[:200]}", file=sys.stderr)
                continue
            for kind, bounds, own, size in values:
                for order in smaller(given.tilewise, generation, kind, bounds, own, size):
                    try:
                        changed = constrained(program, kind, bounds, order)
                        if changed is None:
                            continue
                        saved = before - total(changed, path)
                    except Exception as error:
                        refused += 1
                        print(f"{name} {kind}{list(bounds)} {order}: {' '.join(str(error).split())[:200]}", file=sys.stderr)
                        continue
                    rows.append((f"{name}, {generation}", kind, bounds, own, order, before, saved))
                    print(*rows[-1], file=sys.stderr)
    print("| program | value | was, minor to major | pinned to | program's bytes | freed |\n|---|---|---|---|---|---|")
    for name, kind, bounds, own, order, before, saved in rows:
        print(f"| {name} | `{kind}[{','.join(map(str, bounds))}]` | {list(own)} | {list(order[::-1])} | {before} | {saved} |")
    counts = Counter("freed" if saved > 0.05 * before else "larger" if saved < -0.05 * before else "no difference" for *_, before, saved in rows)
    print(f"\n{len(rows)} constraints: {', '.join(f'{word} {count}' for word, count in sorted(counts.items()))} (beyond 5 %); {refused} not compiled.")


if __name__ == "__main__":
    main()
