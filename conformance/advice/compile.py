"""Compiles one case for a TPU, without one: `compile.py NAME TPU TEXT` prints the sizes of all its programs.

A line in JSON is printed for the program and for each change of it: `variant` (empty for the program itself, whose text
goes to the file TEXT), `kind`, `target`, `shape` and `total` in bytes, or an `error`. Lines of standard input in JSON
are tried changes: `donate` and `formats` by the argument's number, among the arguments that the compiler sees.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tpu"))

import jax  # noqa: E402
from cases import CASES, Change  # noqa: E402
from jax.experimental.layout import Format, Layout  # noqa: E402
from programs import Draw  # noqa: E402
from worker import devices, text  # noqa: E402


def sizes(program, path=None):
    """The bytes of arguments, results that do not alias them, and temporaries on the device."""
    lowered = jax.jit(program.function, **program.jit).lower(*program.arguments)
    compiled = lowered.compile(program.compiler)
    if path:
        Path(path).write_text(text(lowered, compiled, program.compiler))
    found = compiled.memory_analysis()
    kept = found.argument_size_in_bytes + found.output_size_in_bytes - found.alias_size_in_bytes
    return kept + found.temp_size_in_bytes


def changed(program, change):
    """The program with other formats of its arguments, or with some donated, as its caller can ask for."""
    leaves, tree = jax.tree.flatten(program.arguments)
    for number, order in change.get("formats", []):
        sharding = leaves[number].sharding
        sharding = sharding.sharding if isinstance(sharding, Format) else sharding
        format = Format(Layout(tuple(order)), sharding) if order else sharding
        leaves[number] = jax.ShapeDtypeStruct(leaves[number].shape, leaves[number].dtype, sharding=format)
    program = replace(program, arguments=jax.tree.unflatten(tree, leaves))
    if "donate" in change:
        # Each leaf is an argument of its own, for it alone is donated.
        function = program.function
        donated = given(program) | set(change["donate"])
        jit = {key: value for key, value in program.jit.items() if key != "donate_argnums"}
        program = replace(
            program,
            function=lambda *leaves: function(*jax.tree.unflatten(tree, leaves)),
            arguments=tuple(leaves),
            jit=jit | {"donate_argnums": tuple(sorted(donated))},
        )
    return program


def given(program):
    """The numbers of the leaves that the program itself donates."""
    numbers = program.jit.get("donate_argnums", ())
    numbers = {numbers} if isinstance(numbers, int) else set(numbers)
    owners = [number for number, argument in enumerate(program.arguments) for _ in jax.tree.leaves(argument)]
    return {leaf for leaf, number in enumerate(owners) if number in numbers}


def main():
    name, tpu, path = sys.argv[1:]
    # Libraries print to standard output as well.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    case = CASES[name][1](Draw("", tpu, devices(tpu)))
    tried = [json.loads(line) for line in sys.stdin]
    if tried:
        programs = [(Change("", "", "", changed(case.program, change)), None) for change in tried]
    else:
        programs = [(Change("", "", "", case.program), path), *((change, None) for change in case.changes)]
    for change, path in programs:
        said = {"variant": change.name, "kind": change.kind, "target": change.target, "shape": change.shape}
        try:
            said["total"] = sizes(change.program, path)
        except Exception as error:
            said["error"] = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        print(json.dumps(said), file=answers, flush=True)


if __name__ == "__main__":
    main()
