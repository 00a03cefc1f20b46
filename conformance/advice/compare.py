"""Runs a program and the code of its advice on small shapes on the CPU, and compares all results.

`compare.py NAME TPU` reads advice, a line of standard input each, with `imports`, `code` and `sentence`, and prints a line
in JSON for each: `same`, or why it isn't (`error`). The dimension that the advice takes apart becomes small wherever an
argument that it takes apart begins with it; all other sizes stay. Code for a loss's head, which names what only the user's program has, is
compared with a cross entropy written plainly, its gradients with it.
"""

import ast
import inspect
import json
import os
import re
import sys

import jax
import numpy as np
from compile import CASES, Draw, devices, followed
from widen import widened

SMALL = 32
"""Largest size of a divided dimension that is run, rounded up to a multiple of the parts."""
CAP = 30.0
"""Of logits that have a soft cap."""
MOST = 1 << 27
"""Elements of an array; with more nothing is run."""


def kept(size, code):
    """The size at which a dimension of that size is run, if this code divides it."""
    parts = int(re.search(r"parts=(\d+)|tw\.microbatch\(\w+, (\d+)", code).expand(r"\1\2"))
    return min(size, -(-SMALL // parts) * parts)


def taken_apart(code):
    """The program's arguments that the code divides, each name with the dimension."""
    names = re.search(r"batch_argnames=([({].*?[)}])|^ +(.*) = batch$", code, re.M)
    if names[1] and names[1].startswith("{"):
        return ast.literal_eval(names[1])
    return dict.fromkeys(ast.literal_eval(names[1]) if names[1] else re.findall(r"\w+", names[2]), 0)


def names_of(program):
    """The names of the program's arguments in reports."""
    parameters = inspect.signature(program.function).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.kind is not inspect.Parameter.VAR_POSITIONAL]
    rest = next(
        (parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.VAR_POSITIONAL), None
    )
    return names + [f"{rest}[{at}]" for at in range(len(program.arguments) - len(names))]


def batch_of(name, apart):
    """The dimension along which an array of that name is taken apart, and nothing of others."""
    begins = (at for known, at in apart.items() if re.fullmatch(rf"{re.escape(known)}([\[.].*)?", name))
    return next(begins, None)


def filled(path, leaf, size, small, batch, random):
    """An array of numbers in place of a shape. The later half of a batch is mostly zeros, as padding is: parts that have as
    many samples have other numbers of tokens then, so that a sum divided by the wrong one shows."""
    is_batch = batch is not None and leaf.shape[batch : batch + 1] == (size,)
    shape = tuple(small if at == batch and is_batch else bound for at, bound in enumerate(leaf.shape))
    if np.prod(shape, dtype=np.int64) > MOST:
        raise MemoryError(f"{leaf.shape} is too large to run")
    if jax.numpy.issubdtype(leaf.dtype, jax.numpy.floating):
        numbers = random.standard_normal(shape, np.float32)
        if not is_batch and len(shape) > 1:
            # Weights that keep what goes through them as large as it is.
            numbers /= np.sqrt(np.prod(shape[:-1], dtype=np.float32))
        if "nu" in re.findall(r"\w+", jax.tree_util.keystr(path)):
            numbers = np.abs(numbers)
    else:
        # Small enough for an index of anything.
        numbers = random.integers(len(shape) > 1, 2 if leaf.dtype == np.bool_ else SMALL // 2, shape)
    if is_batch and len(shape) > 1:
        rows = np.moveaxis(numbers, batch, 0)
        rows[small // 2 :, max(rows.shape[1] // 4, 1) :] = 0
    return jax.numpy.asarray(numbers).astype(leaf.dtype)


def are_close(one, other):
    """Whether numbers are the same, to rounding: what all but cancels is off by a part of the largest, and two-byte floats are
    exact to a hundredth."""
    one, other = np.float64(one), np.float64(other)
    largest = np.nanmax(np.abs(one), initial=0)
    return np.allclose(one, other, rtol=2e-2, atol=2e-2 * largest, equal_nan=True)


def head_difference(advice):
    """Why the code computes another cross entropy, or other gradients."""
    random = np.random.default_rng(0)
    hidden = random.standard_normal((16, 24, 8), np.float32)
    head = random.standard_normal((8, 50), np.float32)
    labels = random.integers(0, 50, (16, 24))
    # Half of the rows have as many tokens as all, the others a quarter.
    weights = jax.numpy.asarray((np.arange(16) < 8)[:, None] | (np.arange(24) < 6)).astype(np.float32)

    def capped(logits):
        return CAP * jax.numpy.tanh(logits / CAP) if "cap" in advice["code"] else logits

    def plain(hidden, head):
        chosen = jax.nn.log_softmax(capped(hidden @ head))
        return -(jax.numpy.take_along_axis(chosen, labels[..., None], -1)[..., 0] * weights).sum() / weights.sum()

    def chunked(hidden, head):
        names = {"hidden": hidden, "head": head, "labels": jax.numpy.asarray(labels), "weights": weights, "cap": CAP}
        exec(advice["imports"], names)
        exec(advice["code"], names)
        return (names["losses"] * weights).sum() / weights.sum()

    expected, found = (jax.value_and_grad(loss, (0, 1))(hidden, head) for loss in (plain, chunked))
    same = all(are_close(*pair) for pair in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True))
    return None if same else "the loss or a gradient has other numbers"


def difference(program, advice):
    """Why the code computes something else; `None` if it doesn't, to rounding."""
    after = followed(program, advice)
    if after.function is program.function:
        return None
    if "made_at=" in advice["code"]:
        raise MemoryError("a batch that the program makes has one size")
    size = int(re.search(r"of size (\d+)", advice["sentence"])[1])
    small, random = kept(size, advice["code"]), np.random.default_rng(0)
    names, apart = names_of(program), taken_apart(advice["code"])

    def fill(path, leaf):
        name = names[path[0].idx] + jax.tree_util.keystr(path[1:])
        return filled(path, leaf, size, small, batch_of(name, apart), random)

    arguments = jax.tree_util.tree_map_with_path(fill, program.arguments)
    for made in jax.make_jaxpr(program.function)(*arguments).eqns:
        if any(value.aval.size > MOST for value in made.outvars if hasattr(value.aval, "size")):
            raise MemoryError(f"{made.outvars[0].aval} is too large to run")
    with jax.default_device(jax.devices("cpu")[0]):
        found = unlike(program.function, after.function, arguments)
        # Sums in two bytes lose other terms in parts than in the whole: in four bytes they show whether anything else differs.
        return found and unlike(widened(program.function), widened(after.function), arguments)


def unlike(function, other, arguments):
    """The first difference between the results of two functions; ``None`` without one."""
    expected, found = function(*arguments), other(*arguments)
    if jax.tree.structure(expected) != jax.tree.structure(found):
        return "the results are nested in another way"
    for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"{other.dtype}{other.shape} in place of {one.dtype}{one.shape}"
        if not are_close(one, other):
            return f"a result of {one.shape} has other numbers"
    return None


def main():
    """Compares what the command line asks for."""
    name, tpu = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        # Functions keep what they are called; each piece starts from the program as written.
        program = CASES[name][1](Draw("", tpu, devices(tpu))).program
        try:
            advice = json.loads(line)
            error = head_difference(advice) if "def losses_of" in advice["code"] else difference(program, advice)
            said = {"same": error is None, "error": error}
        except Exception as error:
            said = {"same": None, "error": " ".join(f"{type(error).__name__}: {error}".split())[:200]}
        print(json.dumps(said), file=answers, flush=True)


if __name__ == "__main__":
    main()
