"""XLA shapes and tiled layouts: explained, indexed, converted, and TPU programs audited for padding.

XLA, the compiler under JAX, TensorFlow and PyTorch/XLA, stores arrays in tiled layouts such as
``bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}``. The layout decides how much memory an array really takes.

>>> import tilewise as tw
>>> s = tw.Shape("f32[3,5]{1,0:T(2,2)}")
>>> s.offset((2, 3)), s.logical_bytes, s.physical_bytes
(17, 60, 96)
>>> tw.predict("f32[400000,12]{1,0}", tpu="v5e").expansion
10.666666666666666

Bounds, indices and offsets are in elements; sizes are in bytes.

``TPU_GENERATIONS`` lists the known TPU generations. ``CHECKED_WITH`` is the TPU compiler against which `predict` was
checked:

>>> tw.TPU_GENERATIONS
('v2', 'v3', 'v4', 'v5e', 'v5p', 'v6e', 'v7x')
>>> tw.CHECKED_WITH
'libtpu 0.0.51'
"""

import ast
import functools
import importlib
from pathlib import Path


@functools.cache
def _homes() -> dict[str, str]:
    """The module of each name, as `__init__.pyi` imports it: nothing is loaded that isn't asked for."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8"))
    imports = [each for each in stub.body if isinstance(each, ast.ImportFrom)]
    return {name.name: str(each.module) for each in imports for name in each.names}


def __getattr__(name: str) -> object:
    homes = _homes()
    if name == "__all__":
        return sorted(each for each, home in homes.items() if home != __name__)
    if name not in homes:
        raise AttributeError(f"module 'tilewise' has no attribute {name!r}")
    home = homes[name]
    found: object = importlib.import_module(f"{home}.{name}" if home == __name__ else home)
    if home != __name__:
        found = getattr(found, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_homes()})
