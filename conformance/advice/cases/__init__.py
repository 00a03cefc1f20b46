"""The programs that `cargo xtask advice` compiles: each module adds its own to `CASES`."""

from . import (
    geometry,
    graphs,
    images,
    kernels,
    language,
    libraries,
    machine,
    models,
    networks,
    optimizers,
    published,
    recurrent,
    reported,
    reproduced,
    research,
    sampled,
    simple,
    trainings,
)
from .case import CASES, Case, Change

__all__ = ["CASES", "Case", "Change"]
