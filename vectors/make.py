"""Writes the vectors of this folder: `python3 vectors/make.py`, or `--check` to see that they are as they would be written.

Sizes, offsets and default layouts are those that XLA and libtpu gave (`conformance/facts`). Runs are worked out here, from the words of
XLA's tiled-layout document alone: an array of cells is padded, reshaped and transposed tile by tile, and what lies in memory is read off.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import random
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FACTS = HERE.parent / "conformance" / "facts"
LIBTPU = "0.0.51"
BITS = {"f32": 32, "bf16": 16, "s8": 8, "s4": 8, "f64": 64, "pred": 8}


def rows(name: str) -> list[dict[str, str]]:
    with (FACTS / name).open(newline="") as file:
        return list(csv.DictReader(file))


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def memory(bounds: list[int], order: list[int], tiles: list[list[int | None]], alignment: int) -> list[int | None]:
    """For each offset the row-major number of the element there, or None: the document's definition."""
    axes = [bounds[dimension] for dimension in reversed(order)]
    strides = [math.prod(bounds[dimension + 1 :]) for dimension in reversed(order)]
    cells: dict[tuple[int, ...], int] = {
        index: sum(map(math.prod, zip(index, strides))) for index in itertools.product(*map(range, axes))
    }
    for tile in tiles:
        missing = len(tile) - len(axes)
        if missing > 0:
            axes = [1] * missing + axes
            cells = {(0,) * missing + index: cell for index, cell in cells.items()}
        outer = len(axes) - len(tile)
        # `*` merges a dimension into the next one.
        groups: list[list[int]] = [[]]
        for position, size in enumerate(tile):
            groups[-1].append(outer + position)
            if size is not None:
                groups.append([])
        sizes = [size for size in tile if size is not None]
        placed = {}
        for index, cell in cells.items():
            merged = []
            for group in groups[:-1]:
                value = 0
                for axis in group:
                    value = value * axes[axis] + index[axis]
                merged.append(value)
            quotients = tuple(value // size for value, size in zip(merged, sizes))
            placed[index[:outer] + quotients + tuple(value % size for value, size in zip(merged, sizes))] = cell
        merged_bounds = [math.prod(axes[axis] for axis in group) for group in groups[:-1]]
        axes = axes[:outer] + [-(-bound // size) for bound, size in zip(merged_bounds, sizes)] + sizes
        cells = placed
    count = math.prod(axes)
    lying: list[int | None] = [None] * (-(-count // alignment) * alignment)
    for index, cell in cells.items():
        offset = 0
        for value, bound in zip(index, axes):
            offset = offset * bound + value
        lying[offset] = cell
    return lying


def random_runs(count: int) -> list[dict[str, object]]:
    """Slices of small arrays with every kind of layout, and the runs of bits that they take."""
    draw = random.Random(1)
    made = []
    while len(made) < count:
        kind = draw.choice(list(BITS))
        bounds = [draw.randint(1, 9) for _ in range(draw.randint(0, 4))]
        order = draw.sample(range(len(bounds)), len(bounds))
        tiles: list[list[int | None]] = []
        for _ in range(draw.choice([0, 1, 1, 2, 2, 3])):
            tile: list[int | None] = [draw.choice([None, 1, 2, 3, 4, 8]) for _ in range(draw.randint(0, 2))]
            tiles.append([*tile, draw.choice([1, 2, 3, 4, 8])])
        alignment = draw.choice([1, 1, 1, 16])
        bits = 4 if kind == "s4" and draw.random() < 0.5 else BITS[kind]
        slices = [sorted((draw.randint(0, bound), draw.randint(0, bound))) for bound in bounds]
        if any(start == limit for start, limit in slices) and draw.random() < 0.9:
            continue
        lying = memory(bounds, order, tiles, alignment)
        if len(lying) > 20000:
            continue
        text = "".join(f"({','.join('*' if size is None else str(size) for size in tile)})" for tile in tiles)
        parts = (f"T{text}" if tiles else "") + (f"L({alignment})" if alignment > 1 else "") + ("E(4)" if bits == 4 else "")
        layout = f"{','.join(map(str, order))}" + (f":{parts}" if parts else "")
        runs: list[list[int]] = []
        for offset, cell in enumerate(lying):
            if cell is None:
                continue
            index = []
            for bound in reversed(bounds):
                index.append(cell % bound)
                cell //= bound
            if all(start <= i < limit for i, (start, limit) in zip(reversed(index), slices)):
                if runs and sum(runs[-1]) == offset * bits:
                    runs[-1][1] += bits
                else:
                    runs.append([offset * bits, bits])
        if len(runs) <= 24:
            made.append(
                {
                    "shape": f"{kind}[{','.join(map(str, bounds))}]{{{layout}}}",
                    "start": [start for start, _ in slices],
                    "limit": [limit for _, limit in slices],
                    "runs": runs,
                }
            )
    return made


def tables() -> dict[str, list[dict[str, object]]]:
    defaults = []
    for row in rows("tpu_default_layouts.csv"):
        layouts = {tpu: row[column] for column in ("v2 v3", "v4 v5e v5p v6e v7x") for tpu in column.split() if row[column]}
        defaults.append({"libtpu": LIBTPU, "types": row["element_types"].split(), "dimensions": numbers(row["dims"]), "layouts": layouts})
    return {
        "sizes": [
            {
                "shape": row["shape"],
                "physical_dimensions": numbers(row["physical_dimensions"]),
                **{name: int(row[name]) for name in ("logical_bytes", "physical_elements", "physical_bytes")},
            }
            for row in rows("sizes.csv")
            if "overflow" not in row.values()
        ],
        "offsets": [
            {"shape": row["shape"], "offset": int(row["offset"]), "index": None if "padding" in row["index"] else numbers(row["index"])}
            for row in (*rows("index.csv"), *rows("inverse.csv"))
            if row["index"] != "out_of_range" and row["offset"].isdigit()
        ],
        "runs": random_runs(1500),
        "default_layouts": defaults,
    }


def as_field(value: object) -> object:
    """A list as numbers between commas; runs as `offset:length` between blanks; layouts by generation as `tpu=layout` between blanks."""
    if isinstance(value, dict):
        return " ".join(f"{key}={one}" for key, one in value.items())
    if isinstance(value, list) and value and isinstance(value[0], list):
        return " ".join(f"{offset}:{length}" for offset, length in value)
    if isinstance(value, list):
        return (" " if value and isinstance(value[0], str) else ",").join(map(str, value))
    return "padding" if value is None else value


def main() -> int:
    stale = []
    for name, table in tables().items():
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(table[0])
        writer.writerows([as_field(value) for value in row.values()] for row in table)
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in table)
        for path, wanted in ((HERE / f"{name}.csv", text.getvalue()), (HERE / f"{name}.json", f"[\n{lines}\n]\n")):
            if "--check" not in sys.argv:
                path.write_text(wanted)
            elif not path.exists() or path.read_text() != wanted:
                stale.append(path.name)
    if stale:
        print("not as they would be written:", *stale)
    return len(stale)


if __name__ == "__main__":
    sys.exit(main())
