"""VMEM that bodies of Pallas kernels take besides their declared arrays, by the compiler, and a bound learned from it.

`record` compiles generated bodies and the kernels of `public_kernels`, without a TPU, and adds to `../facts/tpu_bodies.csv` what it
doesn't have; `describe` renews what a change of `Body` says of all that it has; `fit` prints the shares that `tilewise/_body.py` has,
and how many of the bodies that they weren't learned from take no more, for which it needs SciPy; `table` prints the libraries' kernels.
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
from generated_bodies import drawn, unrolled  # noqa: E402
from public_kernels import PUBLIC  # noqa: E402
from tilewise import _kernel_text, _kernels  # noqa: E402
from tilewise._body import Body  # noqa: E402
from tilewise._device import traced_for  # noqa: E402

FACTS = HERE.parent / "facts" / "tpu_bodies.csv"
ROW = ("kernel", "choice", "number", "library", "tpu")
"""The columns that identify a row; `number` is that of the kernel in its function."""
SIZES = ("declared_bytes", "may_be_kept_bytes", "used_bytes")
FIELDS = (*ROW, *SIZES, *Body.__dataclass_fields__)
TAU = 0.96
"""The quantile that is learned, so that nine of ten bodies stay below."""
LIBRARY_WEIGHT = 2
"""How many generated kernels one of a library counts for: they are what is asked about."""


def bodies(count, generations):
    """Generated ones, then those of libraries: a name, a choice, a library, a generation, and what makes the function."""
    for number, (name, tpu, function, arguments) in enumerate((*drawn(count), *unrolled(count // 8))):
        yield name, str(number), "", tpu, lambda call=(function, arguments): call
    for tpu in generations:
        for name, public in PUBLIC.items():
            for words, make in public.bodies():
                yield name, words, public.library, tpu, make


def kernels(tpu, make):
    """The kernels of a function."""
    function, arguments = make()
    jaxpr = traced_for(tpu, lambda: jax.make_jaxpr(function)(*arguments).jaxpr)
    return _kernel_text.kernels_of(jaxpr, tpu)[0]


def asked(found, tpu):
    """The sizes of a kernel; none where the compiler doesn't tell."""
    kernel = _kernels.budget(found.text, tpu=tpu)
    if kernel.unsupported or found.call is None:
        return None
    used = _kernels._asked(kernel, found.call, tpu).measured_bytes
    return None if used is None else (kernel.vmem_bytes, kernel.may_be_kept_bytes, used)


def known():
    """The rows of the facts, by what tells them apart."""
    if not FACTS.exists():
        return {}
    with FACTS.open() as file:
        return {tuple(row[name] for name in ROW): row for row in csv.DictReader(file)}


def record(count, generations, is_asked):
    """Writes the facts, as they come: what is known already isn't asked again, and its body is described anew."""
    before = known()
    with FACTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for number, (name, words, library, tpu, make) in enumerate(bodies(count, generations)):
            keys = {key for key in before if key[:2] == (name, words) and key[4] == tpu}
            if not keys and not is_asked:
                continue
            try:
                seen = set()
                for at, found in enumerate(kernels(tpu, make)):
                    # Equal kernels are asked about once.
                    what = found.text, str(found.call.params)
                    is_new = what not in seen
                    seen.add(what)
                    row = dict(zip(ROW, (name, words, str(at), library, tpu), strict=True))
                    old = before.get(tuple(row.values()))
                    sizes = (
                        [old[size] for size in SIZES]
                        if old
                        else asked(found, tpu)
                        if is_asked and is_new and not keys
                        else None
                    )
                    if sizes is not None:
                        writer.writerow(row | dict(zip(SIZES, sizes, strict=True)) | asdict(found.body))
            except Exception as error:
                print(name, words, tpu, type(error).__name__, str(error)[:100], file=sys.stderr)
            file.flush()
            if number % 20 == 0:
                jax.clear_caches()


def quantile(parts, extra, weights, tau):
    """Shares of the parts, none negative: a fraction `tau` of the bodies stays below their sum."""
    from scipy.optimize import linprog

    count, width = parts.shape
    cost = np.concatenate([np.zeros(width), weights * tau, weights * (1 - tau)])
    equal = np.hstack([parts, np.eye(count), -np.eye(count)])
    return linprog(cost, A_eq=equal, b_eq=extra, bounds=[(0, None)] * (width + 2 * count), method="highs").x[:width]


def fit():
    """Prints how shares do on facts that they weren't learned from, and those learned from all."""
    with FACTS.open() as file:
        rows = [
            {key: value if key in ROW else int(value) for key, value in row.items()} for row in csv.DictReader(file)
        ]
    # If declared bytes aren't all allocated, the rest says nothing of the body.
    rows = [row for row in rows if row["used_bytes"] >= max(row["declared_bytes"], 1)]
    bodies = [Body(**{name: row[name] for name in Body.__dataclass_fields__}) for row in rows]
    parts = np.array([list(body.parts.values()) for body in bodies], float)
    extra = np.array([row["used_bytes"] - row["declared_bytes"] for row in rows], float)
    total = np.array([row["used_bytes"] for row in rows], float)
    libraries = np.array([row["library"] for row in rows])
    weights = np.where(libraries == "", 1, LIBRARY_WEIGHT) / total

    def most(learned):
        """Bounds on the bodies, learned from these."""
        return parts @ quantile(parts[learned], extra[learned], weights[learned], TAU)

    def said(which, bound, tested):
        below, room = ((extra <= bound + 1)[tested].mean(), np.median(((bound - extra) / total)[tested]))
        print(
            f"{which}: {below:.1%} of {tested.sum()} take no more; {room:.1%} of its bytes are to spare in the median"
        )

    half = np.random.default_rng(0).random(len(rows)) < 0.5
    said("generated bodies, learned from the other half", most(half), ~half & (libraries == ""))
    # Libraries have copies of each other's kernels, by our names.
    families = np.array([row["kernel"].partition("_")[2] if row["library"] else "" for row in rows])
    for what, groups in (("library", libraries), ("kernel, of any library", families)):
        unseen = np.zeros(len(rows))
        for group in set(groups) - {""}:
            unseen[groups == group] = most(groups != group)[groups == group]
        said(f"libraries' bodies, learned without that {what}", unseen, libraries != "")
    shares = quantile(parts, extra, weights, TAU)
    for which in ("generated", "libraries'"):
        said(f"{which} bodies, learned from all", parts @ shares, (libraries == "") == (which == "generated"))
    print({part: round(float(share), 2) for part, share in zip(bodies[0].parts, shares, strict=True)})


def table():
    """Prints the libraries' kernels on a v6e, each with its first choice, and how all bodies did."""
    rows = [row for row in known().values() if row["library"]]
    first = {name: next(words for words, _ in public.bodies()) for name, public in PUBLIC.items()}
    print(
        "| kernel | declared | at most | compiler | within | the body takes |\n| --- | ---: | ---: | ---: | --- | ---: |"
    )
    errors, within, exact, beyond = [], [], 0, {}
    for row in rows:
        declared, used = int(row["declared_bytes"]), int(row["used_bytes"])
        most = declared + Body(*(int(row[name]) for name in Body.__dataclass_fields__)).most_bytes
        within.append(used <= most)
        exact += used == declared
        if used > most:
            beyond[row["kernel"]] = max(beyond.get(row["kernel"], 0), (used - most) / used)
        errors.append((used - declared) / used if used else 0)
        if row["tpu"] == "v6e" and row["choice"] == first.get(row["kernel"]):
            name = f"{row['kernel']} {row['number']}" if row["number"] != "0" else row["kernel"]
            cells = f"{declared:,} | {most:,} | {used:,} | {'yes' if used <= most else 'no'} | {used - declared:,}"
            print(f"| {name} | {cells} |")
    print(
        f"\n{len({row['kernel'] for row in rows})} kernels, {len(rows)} bodies: {exact} are what is declared, to the byte, and "
        f"{sum(within)} at most what is said. What is declared is {np.median(np.abs(errors)):.1%} off in the median."
    )
    worst = sorted(beyond.items(), key=lambda each: -each[1])
    print(f"\nMore than that, of their bytes: {', '.join(f'`{name}` {share:.1%}' for name, share in worst)}.")


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("verb", choices=("record", "describe", "fit", "table"))
    parser.add_argument("count", nargs="?", type=int, default=300, help="how many bodies to generate")
    parser.add_argument("--tpu", default="v6e,v7x", help="the generations that libraries' kernels are compiled for")
    chosen = parser.parse_args()
    warnings.filterwarnings("ignore")
    if chosen.verb in ("fit", "table"):
        (fit if chosen.verb == "fit" else table)()
    else:
        record(chosen.count, chosen.tpu.split(","), chosen.verb == "record")


if __name__ == "__main__":
    main()
