"""Compares what `tilewise kernel` says of Pallas kernels with what the TPU compiler allocates for them.

Kernels are random: their grids, blocks, types, buffers and scratch, for random generations. Their bodies take nothing, and
their operands stay in HBM, so that the bytes of VMEM must be equal. The ledger goes to standard output, differences and
progress to standard error. The exit status is 1 if fewer than 98 % of the kernels agree.
"""

import collections
import json
import random
import subprocess

from check import HERE, ask_all, parser_of, tell, write_result

SHARE = 0.98
"""The least share of compiled kernels whose bytes must agree."""
GENERATIONS = ["v4", "v5e", "v5p", "v6e", "v7x"]
BITS = {"f32": 32, "s32": 32, "pred": 32, "bf16": 16, "s16": 16, "s8": 8, "u8": 8, "f8e4m3fn": 8, "f8e5m2": 8}
BITS |= {"s4": 4, "u4": 4}


def window(choice, axes, role):
    """An operand with a block that Pallas takes."""
    name = choice.choice(list(BITS))
    rank = choice.choice([1, 2, 2, 2, 3, 4])
    if rank == 1:
        least = 128 * 32 // BITS[name]
        whole = choice.randrange(1, 4000)
        part = choice.choice([least, 2 * least, 4 * least, 1024 * choice.randrange(1, 5)])
        if part % 1024 and part & part - 1:
            part = least
        is_part = choice.random() < 0.6 and part >= least
        array = [part * choice.randrange(2, 5) - choice.choice([0, 0, 17])] if is_part else [whole]
        block, index = [part if is_part else whole], [choice.randrange(axes) if is_part else -1]
    else:
        array, block, index = [], [], []
        for _ in range(rank - 2):
            bound = choice.randrange(1, 5)
            divided = choice.random() < 0.5
            array.append(bound)
            block.append(choice.choice([None, 1]) if divided else choice.choice([bound, bound, None]))
            index.append(choice.randrange(axes) if divided and choice.random() < 0.7 else -1)
        for least, most in ((8, 70), (128, 600)):
            divided = choice.random() < 0.5
            bound = least * choice.randrange(1, 7 if least == 8 else 4)
            whole = choice.randrange(1, most)
            array.append(bound * choice.randrange(2, 5) - choice.choice([0, 0, 0, 3]) if divided else whole)
            block.append(bound if divided else whole)
            index.append(choice.randrange(axes) if divided and choice.random() < 0.7 else -1)
    operand = {"role": role, "type": name, "array": array, "block": block, "index": index}
    return operand | {"memory": "vmem", "buffered": None, "by_scalar": False}


def anywhere(role, name, shape):
    """An operand that is left where it is."""
    whole = {"role": role, "type": name, "array": shape, "block": shape, "index": [-1] * len(shape)}
    return whole | {"memory": "any", "buffered": None, "by_scalar": False}


def shape(choice):
    """Bounds of scratch."""
    leading = [choice.randrange(1, 4) for _ in range(choice.choice([0, 0, 1, 2]))]
    return [*leading, choice.randrange(1, 70), choice.choice([1, 64, 100, 128, 130, 256, 300])]


CLASSES = ["windows", "several", "constant", "one step", "buffered"]
CLASSES += ["scratch", "prefetched", "scalar windows", "anywhere"]


def make(number, seed, name=None):
    """The kernel of that number."""
    choice = random.Random(f"{seed}-{number}")
    name = name or CLASSES[number % len(CLASSES)]
    grid = [choice.randrange(1, 7) for _ in range(choice.choice([1, 1, 2, 3]))]
    if name == "one step":
        grid = [1] * len(grid)
    count = choice.randrange(1, 5) if name == "several" else 1
    operands = [window(choice, len(grid), "in") for _ in range(count)]
    scratch, prefetch, outputs = [], [], [window(choice, len(grid), "out")]
    if name == "constant":
        operands[0]["index"] = [-1] * len(operands[0]["index"])
        operands[0]["buffered"] = choice.choice([None, 2])
    elif name == "buffered":
        operands[0]["buffered"] = choice.choice([1, 2])
    elif name == "scratch":
        for _ in range(choice.randrange(1, 4)):
            kind, bounds = choice.choice([each for each in BITS if each != "pred"]), shape(choice)
            scratch.append({"memory": "vmem", "type": kind, "shape": bounds})
            outputs.append(anywhere("out", kind, bounds))
        scratch.append({"memory": "smem", "type": "s32", "shape": [choice.randrange(1, 300)]})
    elif name == "prefetched":
        prefetch = [[choice.randrange(8, 300)]]
        operands[0]["by_scalar"] = True
    elif name == "scalar windows":
        columns = choice.randrange(1, 300)
        scalars = {"role": "in", "type": "s32", "array": [16, columns], "block": [8, columns], "index": [0, -1]}
        operands.append(scalars | {"memory": "smem", "buffered": None, "by_scalar": False})
    elif name == "anywhere":
        operands.append(anywhere("in", choice.choice(["f32", "bf16", "s8"]), shape(choice)))
    operands = [*operands, *outputs]
    made = {"class": name, "generation": choice.choice(GENERATIONS), "grid": grid, "operands": operands}
    # v4 has no more than its default.
    made["limit"] = None if made["generation"] == "v4" else 48 << 20
    return made | {"scratch": scratch, "prefetch": prefetch}


def text(kernel):
    """The kernel as `tilewise kernel` reads it."""

    def listed(values):
        return ",".join("-" if value in (None, -1) else str(value) for value in values)

    lines = [f"tpu {kernel['generation']}", f"grid {listed(kernel['grid'])}"]
    lines += [f"prefetch s32[{listed(bounds)}]" for bounds in kernel["prefetch"]]
    for each in kernel["operands"]:
        line = f"{each['role']} {each['type']}[{listed(each['array'])}] {each['memory']}"
        if each["memory"] != "any":
            line += f" block {listed(each['block'])} @ {listed(each['index'])}"
        lines.append(line + (f" buffered {each['buffered']}" if each["buffered"] else ""))
    lines += [f"scratch {each['memory']} {each['type']}[{listed(each['shape'])}]" for each in kernel["scratch"]]
    lines += ["scratch dma"]
    if kernel["limit"]:
        lines.append(f"limit {kernel['limit']}")
    return "\n".join(lines)


def budgets(tilewise, kernels):
    """The answers of `tilewise kernel`, one for each."""
    texts = "\n---\n".join(text(kernel) for kernel in kernels)
    done = subprocess.run([tilewise, "kernel", "--format", "json"], input=texts, capture_output=True, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if len(found) != len(kernels):
        raise SystemExit(f"tilewise kernel gave {len(found)} answers to {len(kernels)} kernels: {done.stderr[-500:]}")
    return found


def ledger(rows, by):
    """A Markdown table: a line for each class or generation, and one for all."""
    print(f"| {by} | kernels | exact | not compiled |\n| --- | --- | --- | --- |")
    for name in [*sorted({row[by] for row in rows}), "all"]:
        counts = collections.Counter(row["said"] for row in rows if name in ("all", row[by]))
        compared = counts["exact"] + counts["different"]
        print(f"| {name} | {compared} | {counts['exact']} | {counts['not compiled']} |")
    print()


def main():
    parser = parser_of(__doc__, "kernels")
    parser.add_argument("--class", dest="name", choices=CLASSES, help="compile kernels of this class only")
    parser.add_argument("--limit", type=float, default=60, help="seconds that one kernel may take to compile")
    options = parser.parse_args()
    kernels = [make(number, options.seed, options.name) for number in range(options.count)]
    found = budgets(options.tilewise, kernels)
    rows = []
    for number, wanted, _ in ask_all(kernels, options, HERE / "kernel_worker.py"):
        kernel, ours = kernels[number], found[number]
        if "error" in wanted or "error" in ours:
            said = "not compiled" if "error" in wanted else "different"
            tell(f"{number}: {said}: {' '.join(str(wanted.get('error') or ours['error']).split())[:300]}")
        elif ours["vmem_bytes"] == wanted["vmem_bytes"]:
            said = "exact"
        else:
            said = "different"
            tell(f"{number}: {ours['vmem_bytes']}, the compiler {wanted['vmem_bytes']}\n{text(kernel)}")
        rows.append(kernel | {"said": said})
    for by in ("class", "generation"):
        ledger(rows, by)
    compared = [row for row in rows if row["said"] != "not compiled"]
    exact = sum(row["said"] == "exact" for row in compared)
    write_result(options.result, exact, len(compared))
    if len(compared) * 2 < len(rows) or not compared or exact < SHARE * len(compared):
        raise SystemExit(f"{exact} of {len(compared)} compiled kernels are exact, of {len(rows)}")


if __name__ == "__main__":
    main()
