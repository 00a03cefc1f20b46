"""A training step as it is traced, and the program that a choice of kept values makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tilewise._base.errors import Error
from tilewise._base.modules import module
from tilewise._jax.device import traced_for
from tilewise._jax.equations import Block, Reader
from tilewise._jax.lowering import Request
from tilewise._jax.topologies import slice_with
from tilewise._remat.choosing import Choice, Chooser, Chosen
from tilewise._remat.costs import Costs
from tilewise._remat.forms import Form, form_of
from tilewise._remat.regions import Region, region

POLICIES = ("full", "dots")
"""Values that ``jax.checkpoint`` keeps around each layer: its operands alone, or results of products, too."""


@dataclass(frozen=True)
class Step:
    """A step that was traced.

    Attributes:
        request: the step as it is.
        form: the step as a function of arrays alone.
        region: its equations, where both passes meet.
    """

    request: Request
    form: Form
    region: Region

    @classmethod
    def of(cls, request: Request) -> Step:
        """Traces a step.

        Raises:
            Error: it has no gradient, so that nothing is kept for one.
        """
        jax, form = module("jax"), form_of(request.f, request.args)
        tpu = request.generation
        devices = slice_with(tpu, request.topology, 1)[1]
        closed = traced_for(tpu, lambda: jax.make_jaxpr(form.flat)(*form.leaves), devices)
        found = region(Reader().block(closed))
        if not found.has_gradient:
            message = "the step has no gradient, so nothing is kept for one: remat is for training steps"
            raise Error(message, kind="remat")
        return cls(request, form, found)

    def chosen(self, choice: Choice) -> tuple[Block, Chosen]:
        """The step's equations with this choice, and the choice's outcome."""
        chooser = Chooser(Costs.of(self.request.generation), choice)
        return chooser.program(self.region), chooser.chosen

    def function(self, block: Block) -> Callable[..., Any]:
        """A function of the step's own form."""
        return self.form.callable_of(module("jax.extend.core").jaxpr_as_fun(block.closed()))

    def with_policy(self, policy: str) -> Callable[..., Any]:
        """The step as ``jax.checkpoint`` around each of its layers would make it.

        Args:
            policy: one of `POLICIES`.

        Raises:
            Error: that repeats nothing.
        """
        share = None if policy == "dots" else SHARES[0]
        choice = Choice(1.0, share, is_tied=True, releases=True, keeps_products=policy == "dots")
        block, chosen = self.chosen(choice)
        if self.region.has_pairs and not chosen.is_in_line:
            # The layers are the steps of loops.
            block, chosen = self.chosen(replace(choice, is_of_loops=True))
        if not chosen.again:
            raise Error(f"remat={policy} repeats nothing", kind="remat")
        return self.function(block)


SHARES = (0.25, 0.12, 0.06)
"""Shares of a segment's bytes that count as held while it is repeated: the larger, the shorter segments are."""
