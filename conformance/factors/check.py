"""Holds the rules of `rules.hlo` to XLA on the CPU.

`check.py` runs each operation and fails where its rule isn't so. `check.py --write` first gives each line the rule that is on
standard input, a line each, as tests of `tilewise-hlo` print them.

A rule is `([i, j], [j, k])->([i, k]) {i=3, j=4, k=5} sum={j}`: each dimension of each operand and result as a product of factors. Of
factors that pass, a change of one place of an operand changes that place of the results alone, and operands in another order along
the factor give results in that order. Along a sum, what two parts of the operands give adds up. What is reduced has no order. What
repeats is the same everywhere. What is mixed mustn't pass.
"""

import re
import sys
from pathlib import Path

import jax
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib import _hlo, _jax
from jaxlib.mlir import ir

RULES = Path(__file__).parent / "rules.hlo"
KINDS = ("sum", "reduce", "mix", "repeat")
TRIALS = 5
"""A change may change nothing, such as of what isn't the largest."""


class Rule:
    """A rule, read from its text."""

    def __init__(self, text):
        arrays, rest = re.fullmatch(r"(\(.*\)->\(.*\)) ?(.*)", text).groups()
        operands, results = arrays.split("->")
        self.operands, self.results = (self.arrays(side) for side in (operands, results))
        listed = dict(re.findall(r"(?:^|(\w+)=)\s*\{([^}]*)\}", rest)) if rest else {}
        self.sizes = {name: int(size) for name, size in re.findall(r"(\w+)=(\d+)", listed.get("", ""))}
        self.kinds = {
            name: kind for kind in KINDS for name in filter(None, listed.get(kind, "").replace(" ", "").split(","))
        }

    @staticmethod
    def arrays(side):
        """The factors of each dimension of each array."""
        of_dimension = lambda text: [] if text == "1" else re.findall(r"[i-z](?:_\d+)?", text)
        arrays = re.findall(r"\[([^\]]*)\]", side)
        return [[of_dimension(text) for text in filter(None, array.split(", "))] for array in arrays]

    def kind(self, factor):
        """The role of a factor in the operation."""
        return self.kinds.get(factor, "pass")

    def places(self, arrays, factor):
        """Where a factor is: array, dimension, and which of the factors of that it is."""
        return [
            (number, dimension, factors.index(factor))
            for number, array in enumerate(arrays)
            for dimension, factors in enumerate(array)
            if factor in factors
        ]

    def digits(self, factors, index):
        """The part of an index that is of each factor."""
        found = {}
        for factor in reversed(factors):
            index, found[factor] = divmod(index, self.sizes[factor])
        return found

    def moved(self, array, factors_of_array, factor, order):
        """An array with the places along a factor in another order."""
        for dimension, factors in enumerate(factors_of_array):
            if factor in factors:
                shape = [self.sizes[name] for name in factors]
                split = array.reshape(array.shape[:dimension] + tuple(shape) + array.shape[dimension + 1 :])
                array = np.take(split, order, axis=dimension + factors.index(factor)).reshape(array.shape)
        return array

    def kept(self, array, factors_of_array, factor, places):
        """An array with zeros at other places of a factor."""
        for dimension, factors in enumerate(factors_of_array):
            if factor in factors:
                mask = [self.digits(factors, index)[factor] in places for index in range(array.shape[dimension])]
                shape = [-1 if at == dimension else 1 for at in range(array.ndim)]
                array = array * np.array(mask).reshape(shape).astype(array.dtype)
        return array


def shapes(text):
    """The type and the bounds of each array of a text."""
    found = re.findall(r"\b(f32|bf16|s32|u32|u8|pred|c64)\[([\d,]*)\]", text)
    return [(kind, tuple(int(size) for size in filter(None, bounds.split(",")))) for kind, bounds in found]


class Operation:
    """An operation that XLA runs."""

    def __init__(self, line, computations):
        self.line = line
        head, operands, self.attributes = re.fullmatch(r"= (.*? [a-z-]+)\((.*?)\)(.*)", line).groups()
        self.given = shapes(operands)
        parameters = [
            f"p{at} = {kind}[{','.join(map(str, bounds))}] parameter({at})"
            for at, (kind, bounds) in enumerate(self.given)
        ]
        named = ", ".join(f"p{at}" for at in range(len(parameters)))
        text = "\n".join(
            [
                "HloModule checked",
                computations,
                "ENTRY entry {",
                *parameters,
                f"ROOT r = {head}({named}){self.attributes}",
                "}",
            ]
        )
        stablehlo = _jax.mlir.hlo_to_stablehlo(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
        backend = jax.devices("cpu")[0].client
        devices = xla_client.DeviceList(tuple(backend.devices()[:1]))
        with mlir.make_ir_context():
            self.run_ = backend.compile_and_load(ir.Module.parse(stablehlo), devices, xla_client.CompileOptions())

    def run(self, operands):
        """The results."""
        given = [jax.device_put(operand) for operand in operands]
        return [np.asarray(result) for result in self.run_.execute(given)]

    def draw(self, random):
        """Operands: indices are small, matrices have triangles to solve by, and no two numbers are the same."""
        return [self.drawn(random, kind, bounds) for kind, bounds in self.given]

    def drawn(self, random, kind, bounds):
        """One of them."""
        if kind in ("s32", "u32"):
            return random.integers(0, 4, bounds, dtype=np.int32 if kind == "s32" else np.uint32)
        if kind == "pred":
            return random.integers(0, 2, bounds).astype(bool)
        found = random.permutation(np.linspace(0.5, 3, max(int(np.prod(bounds)), 1))).reshape(bounds)
        if "cholesky" in self.line:
            found = found @ found.swapaxes(-1, -2) + 9 * np.eye(bounds[-1])
        if kind == "c64":
            return (found + 1j * random.random(bounds)).astype(np.complex64)
        return found.astype(np.float32)


def differs(one, other):
    """Where two results differ."""
    wide = np.complex128 if np.iscomplexobj(one) else np.float64
    one, other = one.astype(wide), other.astype(wide)
    return ~np.isclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)


def same(ones, others):
    """Whether no result differs."""
    return not any(differs(one, other).any() for one, other in zip(ones, others, strict=True))


def check_changes(operation, rule, random):
    """Changes elements and compares results: factors that pass stay at their place. Yields violations."""
    for number, (kind, bounds) in enumerate(operation.given):
        for dimension, size in enumerate(bounds):
            factors = rule.operands[number][dimension]
            passing = [name for name in factors if rule.kind(name) == "pass"]
            seen = {}
            for index in range(size):
                digits = rule.digits(factors, index)
                for _ in range(TRIALS):
                    operands = operation.draw(random)
                    before = operation.run(operands)
                    changed = np.moveaxis(operands[number].copy(), dimension, 0)
                    changed[index] = np.moveaxis(operation.drawn(random, kind, bounds), dimension, 0)[index]
                    if kind == "f32":
                        changed[index] += random.choice([-4, 4])
                    if "cholesky" in operation.line:
                        break
                    operands[number] = np.moveaxis(changed, 0, dimension)
                    after = operation.run(operands)
                    for at, (one, other) in enumerate(zip(before, after, strict=True)):
                        for place in np.argwhere(differs(one, other)):
                            for to, of_result in enumerate(place):
                                of_result = rule.digits(rule.results[at][to], int(of_result))
                                for name in passing:
                                    if name in of_result:
                                        seen.setdefault((name, at), set()).add(digits[name])
                                        if of_result[name] != digits[name]:
                                            yield f"operand {number}, dimension {dimension}: {name} doesn't pass"
                                            return
            if "cholesky" in operation.line or "clamp" in operation.line:
                continue
            for name in passing:
                of_results = {at for at, _, _ in rule.places(rule.results, name)}
                if of_results and all(len(seen.get((name, at), ())) != rule.sizes[name] for at in of_results):
                    yield f"operand {number}, dimension {dimension}: not all of {name} changes anything"


def order_of(size):
    """Places in another order that is no rotation."""
    order = np.roll(np.arange(size), 1)
    if size > 3:
        order[[0, 1]] = order[[1, 0]]
    return order


def passes(operation, rule, name, random):
    """Whether a factor passes: results follow the operands' order, and a place of theirs changes that place only."""
    order = order_of(rule.sizes[name])
    for _ in range(TRIALS):
        operands = operation.draw(random)
        results = operation.run(operands)
        moved = [
            [rule.moved(array, factors, name, order) for array, factors in zip(arrays, of_arrays, strict=True)]
            for arrays, of_arrays in ((operands, rule.operands), (results, rule.results))
        ]
        if not same(operation.run(moved[0]), moved[1]):
            return False
        for number, dimension, part in rule.places(rule.operands, name):
            factors = rule.operands[number][dimension]
            other = operation.draw(random)[number]
            at_first = np.array([rule.digits(factors, at)[name] == 0 for at in range(other.shape[dimension])])
            shape = [-1 if at == dimension else 1 for at in range(other.ndim)]
            changed = [*operands]
            changed[number] = np.where(at_first.reshape(shape), other, operands[number])
            for one, after, of_result in zip(results, operation.run(changed), rule.results, strict=True):
                differing = rule.kept(differs(one, after), of_result, name, set(range(1, rule.sizes[name])))
                if name in sum(of_result, []) and differing.any():
                    return False
    return True


def check_orders(operation, rule, random):
    """Operands in another order. Yields what isn't so."""
    for name, size in rule.sizes.items():
        kind = rule.kind(name)
        operands = operation.draw(random)
        results = operation.run(operands)
        order = order_of(size)
        if kind == "repeat":
            moved = [
                rule.moved(result, factors, name, order) for result, factors in zip(results, rule.results, strict=True)
            ]
            if not same(results, moved):
                yield f"{name} doesn't repeat"
            continue
        given = [
            rule.moved(operand, factors, name, order) for operand, factors in zip(operands, rule.operands, strict=True)
        ]
        # Of results that lack the factor, nothing moves.
        moved = [
            rule.moved(result, factors, name, order) for result, factors in zip(results, rule.results, strict=True)
        ]
        is_so = same(operation.run(given), moved)
        if kind in ("pass", "sum", "reduce") and not is_so:
            yield f"the order of {name} matters"
        is_linked = rule.places(rule.operands, name) and rule.places(rule.results, name)
        if kind == "mix" and is_linked and passes(operation, rule, name, random):
            yield f"{name} passes"
        if kind == "sum":
            halves = set(range(size // 2)), set(range(size // 2, size)), set()
            parts = [
                operation.run(
                    [
                        rule.kept(operand, factors, name, places) if operand.dtype == np.float32 else operand
                        for operand, factors in zip(operands, rule.operands, strict=True)
                    ]
                )
                for places in halves
            ]
            added = [one + other - none for one, other, none in zip(*parts, strict=True)]
            if not same(results, added):
                yield f"the parts of {name} don't add up"


def check_missed(operation, rule, random):
    """Dimensions of one size that pass though no factor says so. Yields them."""
    for number, (_, bounds) in enumerate(operation.given):
        for dimension, size in enumerate(bounds):
            for at, array in enumerate(rule.results):
                for to, factors in enumerate(array):
                    shared = set(rule.operands[number][dimension]) & set(factors)
                    if size < 2 or shared or np.prod([rule.sizes[name] for name in factors]) != size:
                        continue
                    order = order_of(size)
                    is_so, is_any = True, False
                    for _ in range(TRIALS):
                        operands = operation.draw(random)
                        before = operation.run(operands)[at]
                        operands[number] = np.take(operands[number], order, axis=dimension)
                        after = operation.run(operands)[at]
                        is_so &= not differs(np.take(before, order, axis=to), after).any()
                        is_any |= differs(before, after).any()
                    if is_so and is_any:
                        yield f"operand {number}, dimension {dimension} is dimension {to} of result {at}"


def check(line, rule, computations):
    """Yields the violations of a rule."""
    random = np.random.default_rng(1)
    operation = Operation(line, computations)
    for checked in (check_changes, check_missed, *[check_orders] * TRIALS):
        wrong = list(checked(operation, rule, random))
        if wrong:
            yield from wrong
            return


def main():
    """Checks all rules."""
    lines = RULES.read_text().splitlines()
    if "--write" in sys.argv:
        rules = iter(sys.stdin.read().splitlines())
        lines = [line for line in lines if not line.startswith("(")]
        lines = [text for line in lines for text in ([next(rules), line] if line.startswith("= ") else [line])]
        RULES.write_text("\n".join(lines) + "\n")
    computations = "\n".join(line.replace("  ", "\n") for line in lines if re.match(r"\w+ \{", line))
    failed, count, rule = 0, 0, None
    for line in lines:
        if line.startswith("("):
            rule = Rule(line)
        elif line.startswith("= "):
            count += 1
            for wrong in check(line, rule, computations):
                failed += 1
                print(f"{line}\n  {wrong}")
    print(f"{count} rules, {failed} of what they say isn't so")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
