"""Writes the files of relayout.trycmd: what is read, relayout.in, and what must come out, relayout.out.

Made with NumPy 2.4.6, ml_dtypes 0.6.0 and safetensors 0.8.0: pip install numpy ml_dtypes safetensors
"""

import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

given, wanted = (Path(__file__).with_suffix(suffix) for suffix in (".in", ".out"))
for folder in (given, wanted):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


def tiled(array, rows, columns):
    """Pad, reshape, transpose: XLA's definition of one tile."""
    height, width = array.shape
    array = np.pad(array, ((0, -height % rows), (0, -width % columns)))
    height, width = array.shape
    return array.reshape(height // rows, rows, width // columns, columns).transpose(0, 2, 1, 3)


def paired(tiles):
    """The tile (2,1) in tiles: two rows in each 32-bit word."""
    *outer, rows, columns = tiles.shape
    return np.moveaxis(tiles.reshape(*outer, rows // 2, 2, columns), -2, -1)


rows = np.arange(15, dtype=np.float32).reshape(3, 5)
weight = np.arange(24).reshape(4, 6).astype(ml_dtypes.bfloat16)

rows.tofile(given / "rows.bin")
np.save(given / "rows.npy", rows)
np.save(given / "columns.npy", np.asfortranarray(rows))
np.save(given / "weight.npy", weight)
np.save(given / "big_endian.npy", rows.astype(">f4"))
np.save(given / "records.npy", np.zeros(3, [("a", "f4"), ("b", "i2")]))
save_file({"weight": weight, "bias": rows[0]}, given / "model.safetensors", {"made by": "safetensors"})

tiled(rows, 2, 2).tofile(wanted / "tiles.bin")
np.save(wanted / "turned.npy", np.asfortranarray(rows))
np.save(wanted / "again.npy", rows)
np.save(wanted / "weight_again.npy", weight)
paired(tiled(weight, 4, 4)).tofile(wanted / "words.bin")
(np.arange(16, dtype=np.uint8) % 4 + 16).tofile(given / "bits.bin")
np.array([0b11100100] * 4, np.uint8).tofile(wanted / "packed.bin")
