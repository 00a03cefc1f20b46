"""Compares what `tilewise audit` says lies at the kernels of public libraries with what the compiled text has there.

Each kernel of `../tpu/public_kernels.py` is compiled twice for a v6e: with its arguments as they are, and with the last two
dimensions of each array exchanged by the caller, so that XLA has to bring them into the kernel's order. What the text has is
found by other means: from each instruction that copies or transposes, forward or backward through what only passes an array on, to
a kernel. The table goes to standard output; the exit status is 1 if an instruction is missing or invented.
"""

import itertools
import os
import re
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tpu"))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import tilewise as tw  # noqa: E402
from public_kernels import PUBLIC  # noqa: E402

TPU = "v6e"
INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = (\(.*?\)|\S+) ([\w-]+)\((.*?)\)(?:, |$)", re.MULTILINE)
NAME = re.compile(r"%([\w.-]+)")
MOVING = {"copy", "copy-start", "transpose", "reshape", "pad"}
"""Opcodes that may move elements."""
PASSING = MOVING | {"bitcast", "get-tuple-element", "tuple", "copy-done", "convert"}
"""Opcodes that hand an array on, whatever they do to its layout."""


def exchanged(function, arguments):
    """The program whose caller holds the last two dimensions of each array the other way round."""

    def is_turned(argument):
        return (
            len(argument.shape) > 1
            and argument.shape[-1] > 1
            and jnp.issubdtype(argument.dtype, jnp.number)
            and argument.size > 1 << 16
        )

    def turned(argument):
        *outer, rows, lanes = argument.shape
        return jax.ShapeDtypeStruct((*outer, lanes, rows), argument.dtype)

    marks = [is_turned(argument) for argument in arguments]

    def program(*given):
        return function(*(x.swapaxes(-1, -2) if mark else x for x, mark in zip(given, marks, strict=True)))

    return program, tuple(turned(x) if mark else x for x, mark in zip(arguments, marks, strict=True))


def bare(shape):
    """A shape without its memory space."""
    return re.sub(r"S\(\d+\)", "", shape)


def in_text(text):
    """The instructions at kernels that bring an array into another layout, by their names."""
    found = {}
    for computation in re.split(r"\n(?=\S)", text):
        rows = {
            name: (shape, opcode, NAME.findall(operands))
            for name, shape, opcode, operands in INSTRUCTION.findall(computation)
        }
        users = {}
        for name, (_, _, operands) in rows.items():
            for operand in operands:
                users.setdefault(operand, []).append(name)
        is_kernel = {
            name
            for name in rows
            if rows[name][1] == "custom-call" and "tpu_custom_call" in computation_line(computation, name)
        }

        def reaches(name, next_ones, seen):
            for other in next_ones(name):
                if other in is_kernel:
                    return True
                if other in rows and other not in seen and rows[other][1] in PASSING:
                    seen.add(other)
                    if reaches(other, next_ones, seen):
                        return True
            return False

        for name, (shape, opcode, operands) in rows.items():
            if opcode not in MOVING or not operands or operands[0] not in rows:
                continue
            made = shape.strip("(").split("}, ")[0] + ("}" if shape.startswith("(") else "")
            if bare(made) == bare(rows[operands[0]][0]):
                continue
            if reaches(name, lambda at: users.get(at, []), set()) or reaches(
                name, lambda at: rows[at][2] if at in rows else [], set()
            ):
                found[name] = (opcode, rows[operands[0]][0], made)
    return found


def computation_line(computation, name):
    """The line of an instruction."""
    found = re.search(rf"^\s*(?:ROOT )?%?{re.escape(name)} = .*$", computation, re.MULTILINE)
    return found[0] if found else ""


def said(report):
    """The instructions between kernels and the rest that are said to move elements."""
    arrays = [array for kernel in report.kernels for array in (*kernel.operands, *kernel.results)]
    return {
        change.instruction
        for array in arrays
        for change in array.between
        if change.is_relayout and change.opcode in MOVING
    }


def judged(name, turn):
    """A kernel's program: what the text has at its kernels, and what is said of it."""
    function, arguments = PUBLIC[name].make()
    if turn:
        function, arguments = exchanged(function, arguments)
    report = tw.audit(tw.compile_for(function, *arguments, tpu=TPU), tpu=TPU)
    return in_text(report.text), said(report), report


def main():
    """All of them, or those whose names begin as the arguments do."""
    chosen = [name for name in PUBLIC if not sys.argv[1:] or name.startswith(tuple(sys.argv[1:]))]
    print("| kernel | library | arguments | arrays at kernels | moved, in the text | named | with a remedy |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    moved = named = invented = 0
    for name, turn in itertools.product(chosen, (False, True)):
        kind = "exchanged" if turn else "as they are"
        lead = f"| {name} | {PUBLIC[name].library} | {kind} |"
        try:
            text, words, report = judged(name, turn)
        except Exception as error:
            print(f"{lead} {type(error).__name__}: {' '.join(str(error).split())[:120]} | | | |", flush=True)
            continue
        arrays = [array for kernel in report.kernels for array in (*kernel.operands, *kernel.results)]
        copied = [array for array in arrays if array.copied_bytes]
        for other in sorted(words ^ set(text)):
            where = "only said" if other in words else f"only in the text: {text[other]}"
            print(name, kind, where, other, file=sys.stderr, flush=True)
        right, remedied = len(words & set(text)), sum(array.remedy is not None for array in copied)
        moved, named, invented = moved + len(text), named + right, invented + len(words - set(text))
        print(f"{lead} {len(arrays)} | {len(text)} | {right} | {remedied} of {len(copied)} |", flush=True)
    print(
        f"\nOf {moved} instructions that move an array at a kernel {named} are named; {invented} are named that the text "
        "doesn't have there."
    )
    sys.exit(moved != named or invented > 0)


if __name__ == "__main__":
    main()
