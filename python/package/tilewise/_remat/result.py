"""The result of `remat`: the step, and the choices that it was compared with."""

from __future__ import annotations

import html
import linecache
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from tilewise import _tilewise
from tilewise._base.errors import Error, Skip
from tilewise._base.limits import in_columns, in_words
from tilewise._base.modules import module
from tilewise._jax import internals
from tilewise._jax.jaxprs import nested
from tilewise._remat.search import RematRow, Search, Tried
from tilewise._remat.step import Value
from tilewise._tilewise import Drawing, Report

_LARGEST_BYTES = 2**32
_TOLERANCES = {8: 1e-9, 4: 1e-4, 2: 2e-2, 1: 0.25}
"""Tolerances by bytes of floats, relative to the largest of an array: sums of parts are rounded otherwise.

Computation in few bytes is rounded so, whatever the results' type.
"""


def sample(closed: Any) -> list[Any]:
    """Numbers for a traced program's arguments. All are positive, and sums over a row stay about one.

    Raises:
        Skip: they are too many for this machine.
    """
    jax = module("jax")
    jnp, numpy = module("jax.numpy"), module("numpy")
    random = numpy.random.default_rng(0)

    def one(aval: Any) -> Any:
        if jnp.issubdtype(aval.dtype, jax.dtypes.prng_key):
            return jax.random.split(jax.random.key(0, impl=aval.dtype), aval.shape)
        if aval.dtype == bool:
            return random.integers(0, 2, aval.shape).astype(bool)
        if jnp.issubdtype(aval.dtype, jnp.integer):
            return random.integers(0, 2, aval.shape).astype(aval.dtype)
        rows = aval.shape[-2] if len(aval.shape) > 1 else 1
        return (random.random(aval.shape, "float32") * (2 / max(1, min(rows, 2**16)))).astype(aval.dtype)

    taken = sum(int(aval.size) * getattr(aval.dtype, "itemsize", 8) for aval in closed.in_avals)
    if taken > _LARGEST_BYTES:
        raise Skip(f"its {taken} bytes of arguments are too many to compare results on this machine")
    return [one(aval) for aval in closed.in_avals]


def _results(function: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """The results of a function, computed on the CPU. Random keys are given as numbers."""
    jax, numpy = module("jax"), module("numpy")
    # Else each program skips the rounding between those operations that it fuses.
    compiled = jax.jit(function, compiler_options={"xla_allow_excess_precision": False})
    with jax.default_device(jax.devices("cpu")[0]):
        found = jax.tree.leaves(compiled(*args))
        is_key = [jax.dtypes.issubdtype(each.dtype, jax.dtypes.prng_key) for each in found]
        return [numpy.asarray(jax.random.key_data(a) if is_its else a) for a, is_its in zip(found, is_key, strict=True)]


def difference(one: Callable[..., Any], other: Callable[..., Any], args: Sequence[Any]) -> float:
    """The largest difference between the results of two functions, as a share of the largest number of its array.

    Raises:
        Skip: it is more than rounding.
    """
    narrowest = min(_widths(module("jax").make_jaxpr(one)(*args)), default=8)
    pairs = zip(_results(one, args), _results(other, args), strict=True)
    return max((_difference(f"result {number}", *pair, narrowest) for number, pair in enumerate(pairs)), default=0.0)


def _widths(program: Any) -> Iterator[int]:
    jnp = module("jax.numpy")
    made = (variable.aval for jaxpr in nested(program) for each in jaxpr.eqns for variable in each.outvars)
    types = (aval.dtype for aval in made if hasattr(aval, "dtype"))
    return (each.itemsize for each in types if jnp.issubdtype(each, jnp.floating))


def _difference(name: str, one: Any, other: Any, narrowest: int) -> float:
    """The difference of real numbers; all others have to be equal, or nearly so."""
    numpy = module("numpy")
    if not module("jax.numpy").issubdtype(one.dtype, numpy.inexact):
        if not numpy.array_equal(one, other):
            raise Skip(f"{name} changes")
        return 0.0
    wide = one.astype("complex128" if one.dtype.kind == "c" else "float64")
    if not numpy.isfinite(wide).all():
        raise Skip(f"{name} isn't finite, so that nothing can be compared")
    scale = float(abs(wide).max(initial=0.0))
    difference = float(abs(wide - other.astype(wide.dtype)).max(initial=0.0))
    is_rounding = difference <= _TOLERANCES.get(min(narrowest, one.dtype.itemsize), 1e-4) * scale
    if not is_rounding:
        raise Skip(f"{name} changes by {difference:.2g} of {scale:.2g}")
    return difference / max(scale, 1e-300) if one.dtype.kind in "fV" else 0.0


@dataclass(frozen=True)
class RematValue:
    """Values of one line that are kept, or computed again; those of layers and turns of loops together.

    Attributes:
        shape: of one, such as ``bf16[16,1024,1024]``.
        count: how many there are.
        bytes: of all of them, without padding.
        operation: JAX's name of the operation that makes it; ``carry`` for a value that a loop hands on.
        file, line: of the user's program; ``None`` where JAX knows none.
        ends_line: whether it is the value of that line.

    Examples:
        >>> RematValue("bf16[16,1024]", 8, 2**18, "dot_general", "model.py", 12, ends_line=True).bytes
        262144
    """

    shape: str
    count: int
    bytes: int
    operation: str
    file: str | None
    line: int | None
    ends_line: bool

    @property
    def place(self) -> str:
        """Such as ``model.py:12``."""
        return "" if self.file is None else f"{Path(self.file).name}:{self.line}"


def summed(values: Sequence[Value]) -> list[RematValue]:
    counts, sizes = Counter[Any](), Counter[Any]()
    for value in values:
        aval, equation = value.variable.aval, value.equation
        operation = "carry" if equation is None else equation.primitive.name
        place = None if equation is None else internals.place(equation)
        key = aval.str_short(short_dtypes=True), operation, place, value.ends_line
        counts[key] += value.times
        sizes[key] += value.bytes
    rows: list[RematValue] = []
    for key, held in sizes.most_common():
        shape, operation, place, ends_line = key
        file, line = place or (None, None)
        rows.append(RematValue(shape, counts[key], held, operation, file, line, ends_line))
    return rows


def code(kept: Sequence[RematValue]) -> str:
    """Lines with ``checkpoint_name``, the policy, and the values without a name."""
    lines: list[str] = []
    names: list[str] = []
    unnamed: list[RematValue] = []
    for value in kept:
        if value.operation == "carry":
            # A layer's operands are kept with any policy.
            continue
        text = linecache.getline(value.file, value.line).rstrip() if value.file and value.line else ""
        found = re.fullmatch(r"(\s*)(\w+) = (.+)", text)
        is_whole = value.ends_line and text.count("(") == text.count(")")
        is_known = "site-packages" in (value.file or "") or f"# {value.place}" in lines
        if found is None or not is_whole or is_known:
            unnamed.append(value)
            continue
        name = f"{found[2]}_{value.line}"
        names.append(name)
        lines += [f"# {value.place}", f"- {text.strip()}", f'+ {found[2]} = checkpoint_name({found[3]}, "{name}")']
    if not names:
        return "# Nothing that is kept is the value of a line of its own: use `step`.\n"
    listed = ", ".join(f'"{name}"' for name in names)
    head = [
        "from jax.ad_checkpoint import checkpoint_name",
        "",
        *lines,
        "",
        "# around a layer:",
        f"policy = jax.checkpoint_policies.save_only_these_names({listed})",
        "layer = jax.checkpoint(layer, policy=policy)",
    ]
    if unnamed:
        total = in_words(sum(value.bytes for value in unnamed))
        head += [
            "",
            f"# {len(unnamed)} kept values, {total}, are inside of expressions: `step` keeps them, names can't.",
        ]
    return "\n".join(head) + "\n"


_SHOWN = 8
_NOTHING: Mapping[str, Report] = MappingProxyType({})


class Remat:
    """A training step, and the values that it keeps for its backward pass; ``str`` is a table. Returned by `remat`.

    Attributes:
        step: the function to use in place of the given one, to be jitted as before.
        report: the audit of it.
        rows: the compared choices, the step as it is written first, then the smallest.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> def step(w, x):
        ...     return w - jax.grad(lambda w: (jnp.tanh(jnp.tanh(x @ w) @ w) ** 2).sum())(w)
        >>> w, x = (jax.ShapeDtypeStruct((size, 256), jnp.bfloat16) for size in (256, 2**14))
        >>> chosen = remat(step, w, x, tpu="v5e", progress=False)
        >>> chosen.fits, chosen.rows[0].name
        (True, 'as written')
    """

    def __init__(self, best: Tried, search: Search) -> None:
        if not (hasattr(best, "step") and hasattr(best, "report") and hasattr(search, "limit")):
            raise TypeError("a Remat is what remat returns")
        self._best, self._tried = best, list(search.tried)
        self._request, self._limit = search.request, search.limit
        self.step: Callable[..., Any] = best.step
        self.report: Report = best.report

    @property
    def rows(self) -> list[RematRow]:
        """The compared choices, the step as it is written first, then the smallest."""
        first, *others = (each.row for each in self._tried)
        return [first, *sorted(others, key=lambda row: row.peak_bytes)]

    @property
    def frontier(self) -> list[RematRow]:
        """The rows that no other one beats in bytes and in time at full rates."""
        rows = sorted(self.rows, key=lambda row: (row.peak_bytes, row.floor_seconds or 0))
        found: list[RematRow] = []
        for row in rows:
            if not found or (row.floor_seconds or 0) < (found[-1].floor_seconds or 0):
                found.append(row)
        return found

    @property
    def row(self) -> RematRow:
        """The row of the step."""
        return self._best.row

    @property
    def fits(self) -> bool:
        """Whether it is within the limit."""
        return self._best.row.fits

    @property
    def peak_bytes(self) -> int:
        """The bytes that the step holds at its peak."""
        return self._best.row.peak_bytes

    @property
    def seconds(self) -> float | None:
        """The estimated seconds of a run; ``None`` where the program has no cycle counts."""
        return self._best.row.seconds

    @property
    def kept(self) -> list[RematValue]:
        """The values kept for the backward pass, the largest first; empty where the step stays as it is written."""
        return [] if self._best.chosen is None else summed(self._best.chosen.kept)

    @property
    def recomputed(self) -> list[RematValue]:
        """The values computed again in the backward pass, the largest first."""
        return [] if self._best.chosen is None else summed(self._best.chosen.again)

    @property
    def code(self) -> str:
        """Code that writes the choice into the program, with names and a policy of JAX; it lists values without a name.

        A line that makes a kept value gets ``checkpoint_name``. A value inside of a library's function, or of an
        expression, has no name to be kept by: `step` keeps it, the code doesn't.
        """
        return code(self.kept)

    def draw(
        self, beside: Mapping[str, Report] = _NOTHING, *, theme: Literal["auto", "light", "dark"] = "auto"
    ) -> Drawing:
        """The choices as a picture, bytes to the right and time at full rates up; the line is the frontier.

        Args:
            beside: audits of the step as you would write it otherwise, such as under a policy of JAX's, by their names.
            theme: ``'auto'`` follows the viewer's colour scheme; or ``'light'``, or ``'dark'``.

        Examples:
            >>> import jax, jax.numpy as jnp
            >>> square = jax.value_and_grad(lambda w: (jnp.tanh(w @ w) ** 2).sum())
            >>> w = jax.ShapeDtypeStruct((256, 256), jnp.float32)
            >>> chosen = remat(square, w, tpu="v5e", progress=False)
            >>> chosen.draw().to_svg()[:4]
            '<svg'
        """
        best = self.row
        drawn = [(_name(row, row is best), row.peak_bytes, row.floor_seconds, row is best) for row in self.rows]
        drawn += [(name, each.peak_bytes or 0, _tilewise.floor_of(each), False) for name, each in beside.items()]
        points = [(name, size, time, chosen) for name, size, time, chosen in drawn if time is not None]
        title = f"What the step may keep, on {_tilewise.generation_name(self._request.tpu)}"
        return _tilewise.frontier(title, self._verdict() + ".", points, self._limit, theme)

    def check(self, args: Sequence[Any] | None = None) -> float:
        """Compare the results of the step with those of the given one on this machine's CPU.

        Args:
            args: arguments; by default numbers of our own in the shapes that were given.

        Returns:
            The largest difference, as a share of the largest number of its array.

        Raises:
            Error: the arguments are too large for this machine, or a result differs by more than rounding.

        Examples:
            >>> import jax, jax.numpy as jnp
            >>> square = jax.value_and_grad(lambda w: (jnp.tanh(w @ w) ** 2).sum())
            >>> w = jax.ShapeDtypeStruct((256, 256), jnp.float32)
            >>> chosen = remat(square, w, tpu="v5e", progress=False)
            >>> chosen.check() < 1e-4
            True
        """
        jax = module("jax")
        try:
            if args is None:
                closed = jax.make_jaxpr(list)(jax.tree.leaves(self._request.args))
                given = jax.tree.unflatten(jax.tree.structure(self._request.args), sample(closed))
            else:
                given = tuple(args)
            return difference(self._tried[0].step, self.step, given)
        except Skip as error:
            raise Error(str(error), kind="remat") from None

    def _verdict(self) -> str:
        limit, row = self._limit, self.row
        least = f"the least that was found is {in_words(row.peak_bytes)}"
        head = f"Fits: {in_words(row.peak_bytes)} of {in_words(limit)}" if self.fits else f"Does not fit: {least}"
        if row.seconds is not None:
            head += f", {1e3 * row.seconds:.1f} ms a run (estimated)"
        if row.name == "as written" and self.fits:
            head += "; the step as it is written is the fastest that fits"
        return head

    def __str__(self) -> str:
        head, row = self._verdict(), self.row
        cells: list[tuple[str, ...]] = [("peak", "fits", "est. time", "at least", "kept", "repeated", "")]
        shown = [self.rows[0], *(each for each in self.rows[1:] if each is row or each in self.frontier)]
        cells += [_cells(each, each is row) for each in shown]
        text = [head, "", in_columns(cells)]
        for title, values in (("Kept", self.kept), ("Computed again", self.recomputed)):
            if values:
                text += ["", f"{title}:"]
                text += [f"  {_told(each)}" for each in values[:_SHOWN]]
                rest = values[_SHOWN:]
                if rest:
                    text.append(f"  and {len(rest)} more, {in_words(sum(each.bytes for each in rest))}")
        if not self.fits:
            held = sorted(self.report.peak_buffers, key=lambda row: -row.bytes)[:_SHOWN]
            rows = (f"  {in_words(each.bytes)}: {each.shape}, {each.op_name or each.instruction}" for each in held)
            text += ["", "It still holds:", *rows]
        return "\n".join(text)

    def __repr__(self) -> str:
        return f"<Remat: {in_words(self.peak_bytes)}, {'fits' if self.fits else 'does not fit'}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>{self.draw().to_svg()}"


def _told(value: RematValue) -> str:
    count = f"{value.count} × " if value.count > 1 else ""
    return f"{in_words(value.bytes)}: {count}{value.shape}, {value.operation} {value.place}".rstrip()


def _cells(row: RematRow, is_best: bool) -> tuple[str, ...]:
    def time(seconds: float | None) -> str:
        return "" if seconds is None else f"{1e3 * seconds:.1f} ms"

    return (
        in_words(row.peak_bytes),
        "yes" if row.fits else "no",
        time(row.seconds),
        time(row.floor_seconds),
        "" if row.kept_bytes is None else in_words(row.kept_bytes),
        "" if row.repeated is None else f"{row.repeated} operations",
        row.name + (", chosen" if is_best else ""),
    )


def _name(row: RematRow, is_best: bool) -> str:
    """The name in a picture; only the chosen row and the step as it is written have one."""
    if is_best:
        return "chosen" if row.name == "cut" else f"{row.name}, chosen"
    return row.name if row.name == "as written" else ""
