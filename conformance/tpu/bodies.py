"""What bodies of Pallas kernels take of VMEM besides what they declare, by the compiler, and what they take at most, learned from that.

`record` compiles generated bodies and the kernels of `public_kernels.py`, without a TPU, and writes `../facts/tpu_bodies.csv`;
`fit` prints the shares that `tilewise/_body.py` has, and how many of the half that they weren't learned from take no more. The fit
needs SciPy.
"""

import argparse
import csv
import os
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import jax  # noqa: E402
import numpy as np  # noqa: E402
from generated_bodies import GENERATIONS, drawn  # noqa: E402
from public_kernels import PUBLIC  # noqa: E402
from tilewise import _kernel_text, _kernels  # noqa: E402
from tilewise._body import Body  # noqa: E402
from tilewise._device import traced_for  # noqa: E402

FACTS = HERE.parent / "facts" / "tpu_bodies.csv"
FIELDS = ("kernel", "library", "tpu", "declared_bytes", "may_be_kept_bytes", "used_bytes", *Body.__dataclass_fields__)
TAU = 0.96
"""The quantile that is learned, so that nine of ten bodies stay below."""
LIBRARY_WEIGHT = 4
"""How many generated kernels one of a library counts for: there are fewer of them, and they are what is asked about."""


def kernels(count):
    """Generated ones, then those of libraries: a name, a library, a generation, the function and its arguments."""
    for name, tpu, function, arguments in drawn(count):
        yield name, "", tpu, function, arguments
    for tpu in GENERATIONS:
        for name, public in PUBLIC.items():
            try:
                yield name, public.library, tpu, *public.make()
            except Exception as error:
                print(name, type(error).__name__, str(error)[:100], file=sys.stderr)


def measured(name, library, tpu, function, arguments):
    """A row for each kernel of a function that the compiler tells of."""
    jaxpr = traced_for(tpu, lambda: jax.make_jaxpr(function)(*arguments).jaxpr)
    for found in _kernel_text.kernels_of(jaxpr, tpu)[0]:
        kernel = _kernels.budget(found.text, tpu=tpu)
        asked = _kernels._asked(kernel, found.call, tpu)
        if kernel.unsupported or asked.measured_bytes is None:
            continue
        sizes = [kernel.vmem_bytes, kernel.may_be_kept_bytes, asked.measured_bytes]
        yield [name, library, tpu, *sizes, *asdict(found.body).values()]


def record(count):
    """Writes the facts, as they come."""
    with FACTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        for number, (name, library, tpu, function, arguments) in enumerate(kernels(count)):
            try:
                rows = list(measured(name, library, tpu, function, arguments))
            except Exception as error:
                print(name, tpu, type(error).__name__, str(error)[:100], file=sys.stderr)
                continue
            writer.writerows(rows)
            file.flush()
            if number % 20 == 0:
                jax.clear_caches()


def quantile(parts, extra, weights, tau):
    """Shares of the parts, none negative, of which so many bodies stay below their sum."""
    from scipy.optimize import linprog

    count, width = parts.shape
    cost = np.concatenate([np.zeros(width), weights * tau, weights * (1 - tau)])
    equal = np.hstack([parts, np.eye(count), -np.eye(count)])
    return linprog(cost, A_eq=equal, b_eq=extra, bounds=[(0, None)] * (width + 2 * count), method="highs").x[:width]


def fit():
    """Prints the shares learned from one half of the facts with how they do on the other, and those learned from all."""
    with FACTS.open() as file:
        rows = [{key: value if key in FIELDS[:3] else int(value) for key, value in row.items()} for row in csv.DictReader(file)]
    # What is declared and isn't allocated says nothing of the body.
    rows = [row for row in rows if row["used_bytes"] >= row["declared_bytes"]]
    bodies = [Body(**{name: row[name] for name in Body.__dataclass_fields__}) for row in rows]
    parts = np.array([list(body.parts.values()) for body in bodies], float)
    extra = np.array([row["used_bytes"] - row["declared_bytes"] for row in rows], float)
    total = np.array([row["used_bytes"] for row in rows], float)
    libraries = np.array([row["library"] for row in rows])
    weights = np.where(libraries == "", 1, LIBRARY_WEIGHT) / total

    def most(learned):
        """What each body takes at most, as learned from these."""
        return parts @ quantile(parts[learned], extra[learned], weights[learned], TAU)

    def said(which, bound, tested):
        below, room = (extra <= bound + 1)[tested].mean(), np.median(((bound - extra) / total)[tested])
        print(f"{which}: {below:.1%} of {tested.sum()} take no more; {room:.1%} of its bytes are to spare in the median")

    half = np.random.default_rng(0).random(len(rows)) < 0.5
    said("generated bodies, learned from the other half", most(half), ~half & (libraries == ""))
    unseen = np.zeros(len(rows))
    for library in set(libraries) - {""}:
        unseen[libraries == library] = most(libraries != library)[libraries == library]
    said("libraries' bodies, learned without that library", unseen, libraries != "")
    shares = quantile(parts, extra, weights, TAU)
    for which in ("generated", "libraries'"):
        said(f"{which} bodies, learned from all", parts @ shares, (libraries == "") == (which == "generated"))
    print({part: round(float(share), 2) for part, share in zip(bodies[0].parts, shares, strict=True)})


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("verb", choices=("record", "fit"))
    parser.add_argument("count", nargs="?", type=int, default=300, help="how many bodies to generate")
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore")
    record(chosen.count) if chosen.verb == "record" else fit()


if __name__ == "__main__":
    main()
