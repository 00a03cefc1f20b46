"""Tries an installed wheel, with nothing but NumPy and ml_dtypes: `python wheel.py`."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

import tilewise as tw

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

shape = tw.Shape("f32[3,5]{1,0:T(2,2)}")
assert (shape.offset((2, 3)), shape.index(17), shape.index(9)) == (17, (2, 3), None)
assert tw.predict("f32[400000,12]{1,0}", tpu="v5e").physical_bytes == 204_800_000

# Large enough for every kernel and for several threads.
x = np.arange(999 * 1000).reshape(999, 1000).astype(ml_dtypes.bfloat16)
for layout in ("{1,0:T(8,128)(2,1)}", "{0,1:T(8,128)(2,1)}", "{1,0}"):
    device = tw.tile(x, layout, threads=2)
    assert np.array_equal(tw.untile(device, tw.Shape.of(x, layout=layout)), x), layout

report = tw.audit(EXAMPLES / "gnn_large.v5e.hlo", tpu="v5e")
assert (report.peak_bytes, str(report.peak_source)) == (326_497_792, "model.py:439")
assert report.plot().to_png(scale=1.0).startswith(b"\x89PNG")
assert tw.explain(EXAMPLES / "out_of_memory.txt").verdict == "padding"
said = subprocess.run([sys.executable, "-m", "tilewise", "--version"], capture_output=True, check=True, text=True)
assert said.stdout.split()[:2] == ["tilewise", importlib.metadata.version("tilewise")]
print(f"tilewise {tw.__version__} works on {sys.platform}, Python {sys.version.split()[0]}")
