"""The programs that `cargo xtask advice` compiles: each module adds its own to `CASES`."""

from . import (
    deployed,
    drawn,
    examples,
    fields,
    geometry,
    graphs,
    hosted,
    images,
    kernels,
    language,
    libraries,
    listed,
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
    serving,
    simple,
    trainings,
)
from .case import CASES, Case, Change

__all__ = ["CASES", "Case", "Change"]
