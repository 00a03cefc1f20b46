"""`try_formats`: the layouts of arguments and results that lower a program's peak."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from tilewise._check import Measured, compared, table_of
from tilewise._errors import Skip
from tilewise._fit.candidates import Made, formats
from tilewise._jax import to_jax
from tilewise._modules import module
from tilewise._plan import plan_of
from tilewise._shown import Shown
from tilewise._tilewise import Layout, Shape, predict

if TYPE_CHECKING:
    from tilewise._types import Tpu

Layouts: TypeAlias = dict[int, Layout]
"""Layouts by the number of the leaf."""

_SHARDINGS = ("in_shardings", "out_shardings")


@dataclass(frozen=True)
class TriedFormats(Shown):
    """What `try_formats` found.

    Attributes:
        before: the program as it is.
        best: the program with the best formats; ``before`` if none is better.
        in_shardings: for each leaf of the arguments, its new `Layout`; ``None`` where it stays.
        out_shardings: for each leaf of the results, its new `Layout`; ``None`` where it stays.
        code: what to paste into ``jax.jit``; empty if nothing is better.
        tried: how many programs the compiler was asked about.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> x = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        >>> try_formats(jnp.tanh, x, tpu="v5e").code
        ''
    """

    before: Measured
    best: Measured
    in_shardings: tuple[Layout | None, ...]
    out_shardings: tuple[Layout | None, ...]
    code: str
    tried: int

    @property
    def peak_bytes_saved(self) -> int:
        """By how much the peak falls with them, in bytes."""
        return self.before.peak_bytes - self.best.peak_bytes

    def _rows(self) -> list[dict[str, Any]]:
        """A row for each number of bytes, as those of `FixCheck`."""
        return compared(self.before, self.best)

    def _held(self) -> dict[str, Any]:
        layouts = {name: [each and str(each) for each in getattr(self, name)] for name in _SHARDINGS}
        sides = {"before": self.before._held(), "best": self.best._held()}
        return {**sides, **layouts, "code": self.code, "tried": self.tried}

    @classmethod
    def _of_held(cls, held: dict[str, Any]) -> TriedFormats:
        ins, outs = (tuple(each and Layout(each) for each in held[name]) for name in _SHARDINGS)
        before, best = Measured._of_held(held["before"]), Measured._of_held(held["best"])
        return cls(before, best, ins, outs, held["code"], held["tried"])

    def __str__(self) -> str:
        return "\n".join([table_of(self._rows()), *([self.code] if self.code else [])])


def try_formats(
    f: Callable[..., Any],
    /,
    *args: Any,
    tpu: Tpu,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
) -> TriedFormats:
    """Try the layouts that the audit suggests for a function's arguments and results, by asking the compiler.

    What the compiler would pick by itself (``Layout.AUTO``) is tried for all of them, then, one argument or result
    after the other, the order of dimensions that a TPU stores it in by default; what lowers the peak stays. Programs
    with meshes are left as they are.

    Args:
        f: the function, not jitted: ``jit_options`` says how it is.
        args: its arguments, as `compile_for` takes them.
        tpu: the generation, under any of its names (``"v5e"``).
        topology, jit_options: as `compile_for` takes them.

    Raises:
        ImportError: JAX or libtpu is missing.
        ParseError: ``tpu`` names no TPU generation.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> x = jax.ShapeDtypeStruct((400000, 12), jnp.float32)
        >>> try_formats(jnp.tanh, x, tpu="v5e").tried >= 2
        True
    """
    jax = module("jax")
    made = Made(f, args, {**(jit_options or {}), "keep_unused": True})
    tried = 0

    def measured(ins: Layouts | None, outs: Layouts | None) -> Measured | None:
        nonlocal tried
        options = dict(made.options)
        try:
            if ins != {} or outs != {}:
                options.update(formats(made, _of_jax(ins), _of_jax(outs)))
            answer, _ = plan_of(f, args, tpu=tpu, topology=topology, jit_options=options)
        except (Skip, ValueError, TypeError, NotImplementedError, jax.errors.JaxRuntimeError):
            if not tried:
                raise
            return None
        tried += 1
        assert answer.sizes is not None
        assert answer.report is not None
        return Measured(**asdict(answer.sizes), report=answer.report)

    before = measured({}, {})
    assert before is not None
    best = before
    chosen: tuple[Layouts, Layouts] = ({}, {})
    plain = interface(before.report.text)
    for ins, outs in _candidates(plain, measured, tpu):
        both = ({**chosen[0], **ins}, {**chosen[1], **outs})
        found = measured(*both)
        if found is not None and found.peak_bytes < best.peak_bytes:
            best, chosen = found, both
    in_layouts, out_layouts = (
        tuple(picked.get(number) for number in range(len(shapes))) for picked, shapes in zip(chosen, plain, strict=True)
    )
    results = jax.eval_shape(f, *args)
    code = [
        f"{name}={_code(tree, layouts)}"
        for name, tree, layouts in (("in_shardings", args, in_layouts), ("out_shardings", results, out_layouts))
        if any(layouts)
    ]
    return TriedFormats(before, best, in_layouts, out_layouts, ", ".join(code), tried)


def _candidates(
    plain: tuple[list[Shape], list[Shape]], measured: Callable[[Any, Any], Measured | None], tpu: Tpu
) -> list[tuple[Layouts, Layouts]]:
    """Layouts to try: the compiler's own for all, then the tightest of one array after the other."""
    found: list[tuple[Layouts, Layouts]] = []
    auto = measured(None, None)
    if auto is not None:
        ins, outs = (
            {
                number: _order(new)
                for number, (old, new) in enumerate(zip(*side, strict=True))
                if _order(old) != _order(new)
            }
            for side in zip(plain, interface(auto.report.text), strict=True)
        )
        if ins or outs:
            found.append((ins, outs))
    for side, shapes in enumerate(plain):
        for number, shape in enumerate(shapes):
            tightest = _order(
                predict(_Described(cast("tuple[int, ...]", shape.dimensions), shape.element_type.name), tpu=tpu)
            )
            if tightest != _order(shape):
                found.append(({number: tightest}, {}) if side == 0 else ({}, {number: tightest}))
    return found


def _order(shape: Shape) -> Layout:
    return Layout(shape.layout.minor_to_major)


def _of_jax(layouts: Layouts | None) -> Mapping[int, Any] | None:
    return None if layouts is None else {number: to_jax(layout) for number, layout in layouts.items()}


_INTERFACE = re.compile(r"entry_computation_layout=\{\((.*?)\)->(.*?)\}(?:, \w+=|\n|$)")
_COMMENT = re.compile(r"/\*.*?\*/")


def interface(text: str) -> tuple[list[Shape], list[Shape]]:
    """The shapes of a program's arguments and results, as the first line of its text has them."""
    match = _INTERFACE.search(text.partition("\n")[0] + "\n")
    if match is None:
        return [], []
    arguments, results = (_COMMENT.sub("", part) for part in match.groups())
    return _leaves(f"({arguments})"), _leaves(results)


def _leaves(shape: str) -> list[Shape]:
    return [leaf for _, leaf in Shape(shape).leaves()]


@dataclass(frozen=True)
class _Described:
    """An array, as `predict` takes it."""

    shape: tuple[int, ...]
    dtype: Any


class _Code(str):
    """Code that prints as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _code(tree: Any, layouts: Sequence[Layout | None]) -> str:
    """The argument of ``jax.jit``."""
    jax = module("jax")
    # The sharding is the user's: `x.sharding` of the array that is passed.
    texts = [
        _Code(
            "None"
            if each is None
            else f"Format(Layout(major_to_minor={tuple(reversed(each.minor_to_major))}), sharding)"
        )
        for each in layouts
    ]
    return repr(jax.tree.unflatten(jax.tree.structure(tree), texts))
