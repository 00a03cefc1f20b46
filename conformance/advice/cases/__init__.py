"""The programs that `cargo xtask advice` compiles: each module adds its own to `CASES`."""

from . import (
    deployed,
    examples,
    fields,
    geometry,
    graphs,
    hosted,
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
    serving,
    simple,
    trainings,
)
from .case import CASES, Case, Change

__all__ = ["CASES", "Case", "Change"]
