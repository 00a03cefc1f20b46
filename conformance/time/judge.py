"""Judges what `tilewise audit` estimates of times: programs whose times others published, compiled again.

Each program of `published.csv` that can be rebuilt is compiled for its TPU, without one, and audited. The table goes to standard
output, progress to standard error. The exit status is 1 if an estimate leaves the range that `docs/time.md` gives for its class.
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "tpu"))

import worker  # noqa: E402, as the compiler reads the surroundings that it sets
import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import topologies  # noqa: E402
from rebuilt import PROGRAMS  # noqa: E402

RANGES = {
    "matmul": (0.75, 1.30),
    "memory f32": (0.95, 1.05),
    "memory bf16": (1.00, 1.20),
    "attention bf16": (0.95, 1.35),
    "train step": (0.75, 1.00),
    "conv train step": (0.85, 1.05),
}
"""Of the estimate to what was measured, where it is to be trusted."""


def options():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", metavar="NAME", default="", help="programs whose names begin so")
    parser.add_argument("--tilewise", type=Path, required=True, help="the command")
    parser.add_argument("--folder", type=Path, required=True, help="where texts are kept")
    parser.add_argument("--compiled", action="store_true", help="programs whose texts are in the folder only")
    parser.add_argument("--write", action="store_true", help="renew TABLE.md")
    return parser.parse_args()


def sharding(tpu, program):
    """The devices that a program is for, each of which has all arguments."""
    devices = worker.devices(tpu)
    if program.both_cores:
        topology = worker.TOPOLOGIES[tpu]
        devices = topologies.get_topology_desc(
            platform="tpu", topology_name=topology, chip_config_name="megacore"
        ).devices
    if not program.mesh:
        return jax.sharding.SingleDeviceSharding(devices[0])
    mesh = jax.sharding.Mesh(np.array(devices).reshape(*program.mesh.values()), tuple(program.mesh))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())


def compiled(name, tpu, path):
    """Writes the text of a program, unless it is there."""
    if path.exists():
        return
    program = PROGRAMS[name]()
    held = sharding(tpu, program)
    arguments = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=held), program.arguments)
    with jax.set_mesh(held.mesh) if program.mesh else nullcontext():
        lowered = jax.jit(program.function, donate_argnums=program.donated).lower(*arguments)
        path.write_text(lowered.compile(program.compiler).as_text())


def estimated(options, tpu, path):
    """The `time` of a program."""
    command = [options.tilewise, "audit", "--format", "json", "--machine", f"tpu:{tpu}", path]
    line = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0]
    return json.loads(line)["time"]


def digits(number):
    """Two of them."""
    return f"{number:.2f}"


def main():
    """Compiles, judges, prints."""
    asked = options()
    asked.folder.mkdir(parents=True, exist_ok=True)
    with (HERE / "published.csv").open(encoding="utf-8", newline="") as file:
        published = [row for row in csv.DictReader(file) if row["is_rebuilt"] == "yes"]
    rows, classes, failed = [], {}, []
    for row in published:
        name, tpu = row["program"], row["tpu"]
        if not name.startswith(asked.only) or name not in PROGRAMS:
            continue
        path = asked.folder / f"{name}.{tpu}.hlo"
        if asked.compiled and not path.exists():
            continue
        print(f"{name} {tpu}", file=sys.stderr, flush=True)
        compiled(name, tpu, path)
        time, measured = estimated(asked, tpu, path), float(row["measured_ms"]) / 1000
        about = [row["class"], f"[{name}]({row['source']})", tpu, row["measured_ms"]]
        if time is None:
            # Nothing in it has cycles, so nothing is said.
            rows.append([*about, *["none"] * 3, row["note"]])
            continue
        ratios = [time[f"{figure}_seconds"] / measured for figure in ("compiler", "estimate", "floor")]
        classes.setdefault(row["class"], []).append(ratios)
        rows.append([*about, *map(digits, ratios), row["note"]])
        low, high = RANGES.get(row["class"], (0, float("inf")))
        if not low <= ratios[1] <= high:
            failed.append(f"{name} {tpu}: {ratios[1]:.2f} isn't {low} to {high}")
    lines = [
        "# Times that others measured, and what `audit --time` estimates",
        "",
        f"Written by `judge.py`, with jax {version('jax')} and libtpu {version('libtpu')}. Nothing here was measured by us: the",
        "figures of `published.csv` are other people's, and the programs are rebuilt from what they say of them. The table has",
        f"{len(rows)} of the {len(published)} that can be rebuilt; of a program that is a collective and nothing else, `audit` says none.",
        "",
        "| class | programs | compiler ÷ measured, median [range] | estimate ÷ measured | floor ÷ measured, median |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, ratios in classes.items():
        columns = list(zip(*ratios, strict=True))
        spread = [f"{statistics.median(c):.2f} [{min(c):.2f}–{max(c):.2f}]" for c in columns[:2]]
        lines.append(f"| {name} | {len(ratios)} | {spread[0]} | {spread[1]} | {statistics.median(columns[2]):.2f} |")
    header = ["class", "program", "TPU", "measured, ms", "compiler ÷", "estimate ÷", "floor ÷", "note"]
    lines += ["", f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    print("\n".join(lines))
    if asked.write:
        (HERE / "TABLE.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for line in failed:
        print(line, file=sys.stderr)
    sys.exit(1 if failed or not rows else 0)


if __name__ == "__main__":
    main()
