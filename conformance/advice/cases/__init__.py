"""The programs that `cargo xtask advice` compiles: each module adds its own to `CASES`."""

from importlib import import_module
from pkgutil import iter_modules

from .case import CASES, Case, Change

for module in iter_modules(__path__):
    import_module(f".{module.name}", __name__)

__all__ = ["CASES", "Case", "Change"]
