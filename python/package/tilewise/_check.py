"""`check_fix` and `try_formats`: whether a change helps, as the compiler says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tilewise import _tilewise
from tilewise._jax import to_jax
from tilewise._modules import module
from tilewise._plan import plan_of
from tilewise._tilewise import Layout, Report, predict

if TYPE_CHECKING:
    from tilewise._types import Tpu


@dataclass(frozen=True)
class Measured:
    """What the compiler reports of a program's memory on one device (``memory_analysis()``), in bytes.

    Attributes:
        argument_bytes: its arguments.
        output_bytes: its results.
        alias_bytes: results that reuse the memory of donated arguments.
        temporary_bytes: its temporaries.
        report: the audit of the program.

    Examples:
        >>> Measured(argument_bytes=4, output_bytes=4, alias_bytes=4, temporary_bytes=8, report=None).peak_bytes
        12
    """

    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temporary_bytes: int
    report: Report

    @property
    def peak_bytes(self) -> int:
        """What it takes together: arguments, results that don't lie in them, and temporaries."""
        return self.argument_bytes + self.output_bytes - self.alias_bytes + self.temporary_bytes

    @property
    def padding_bytes(self) -> int:
        """Padding of what is alive at the peak."""
        return self.report.peak_padding_bytes or 0


@dataclass(frozen=True)
class FixCheck:
    """A program before and after a change, both as the compiler reports them. ``str`` is a table.

    Returned by `check_fix`.

    Attributes:
        before: the first program.
        after: the second.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> x = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        >>> check_fix(jnp.tanh, jnp.exp, x, tpu="v5e").peak_bytes_saved
        0
    """

    before: Measured
    after: Measured

    @property
    def peak_bytes_saved(self) -> int:
        """By how much the peak falls, in bytes; negative if it rises."""
        return self.before.peak_bytes - self.after.peak_bytes

    def __str__(self) -> str:
        lines = [f"{'bytes':<10}  {'before':>14}  {'after':>14}  {'saved':>14}"]
        for name in ("argument", "output", "alias", "temporary", "peak", "padding"):
            before, after = (getattr(side, f"{name}_bytes") for side in (self.before, self.after))
            lines.append(f"{name:<10}  {before:>14}  {after:>14}  {before - after:>14}")
        return "\n".join(lines)


@dataclass(frozen=True)
class TriedFormats:
    """What `try_formats` found.

    Attributes:
        before: the program as it is.
        best: the program with the best formats; ``before`` if none is better.
        in_shardings: for each leaf of the arguments, its new `Layout`; ``None`` where it stays.
        out_shardings: for each leaf of the results, its new `Layout`; ``None`` where it stays.
        code: what to paste into ``jax.jit``; empty if nothing is better.
        tried: how many programs were compiled.

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


def check_fix(
    f: Callable[..., Any],
    g: Callable[..., Any],
    /,
    *args: Any,
    tpu: Tpu,
    args_after: Sequence[Any] | None = None,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
    confirm: bool = False,
) -> FixCheck:
    """Compile a function before and after a change, and compare what the compiler plans.

    Programs that don't fit are compared, too.

    Args:
        f: the function as it is.
        g: the function with the change.
        args: the arguments of both, as `compile_for` takes them.
        tpu: the generation, under any of its names (``"v5e"``).
        args_after: the arguments of ``g``, where the change is to them.
        topology, jit_options: as `compile_for` takes them, for both.
        confirm: compile both to the end, as `audit` does with it.

    Raises:
        ImportError: JAX or libtpu is missing.
        ParseError: ``tpu`` names no TPU generation.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> rows = jax.ShapeDtypeStruct((524288, 8, 4), jnp.float32)
        >>> checked = check_fix(
        ...     lambda x: x.sum(), lambda x: x.sum(), rows, tpu="v5e", args_after=[rows.update(shape=(524288, 32))]
        ... )
        >>> checked.peak_bytes_saved >= 0
        True
    """

    def measured(function: Callable[..., Any], args: tuple[Any, ...]) -> Measured:
        answer, _ = plan_of(function, args, tpu=tpu, topology=topology, jit_options=jit_options, confirm=confirm)
        assert answer.sizes is not None
        assert answer.report is not None
        return Measured(**asdict(answer.sizes), report=answer.report)

    return FixCheck(measured(f, args), measured(g, args if args_after is None else tuple(args_after)))


def _of_compiled(compiled: Any, name: str, tpu: Tpu) -> Measured:
    analysis = compiled.memory_analysis()
    return Measured(
        argument_bytes=analysis.argument_size_in_bytes,
        output_bytes=analysis.output_size_in_bytes,
        alias_bytes=analysis.alias_size_in_bytes,
        temporary_bytes=analysis.temp_size_in_bytes,
        report=_tilewise.audit_text(compiled.as_text(), name, tpu, None),
    )


def try_formats(
    f: Callable[..., Any],
    /,
    *args: Any,
    tpu: Tpu,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
) -> TriedFormats:
    """Try the layouts that the audit suggests for a function's arguments and results, by compiling it with them.

    What the compiler would pick by itself (``Layout.AUTO``) is tried for all of them, then, one argument or result
    after the other, the order of dimensions that a TPU stores it in by default; what lowers the peak stays.

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
        >>> from jax.experimental.layout import Format, Layout as JaxLayout
        >>> x = jax.ShapeDtypeStruct((400000, 12), jnp.float32)
        >>> try_formats(jnp.tanh, x, tpu="v5e").tried >= 2
        True
    """
    return _Trial(f, args, tpu, topology, jit_options).run()


class _Trial:
    """The programs that one call of `try_formats` compiles."""

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        tpu: Tpu,
        topology: str | None,
        jit_options: Mapping[str, Any] | None,
    ) -> None:
        jax = module("jax")

        from tilewise._compile import lower_for

        self.f, self.args, self.tpu, self.topology = f, args, tpu, topology
        self.options = dict(jit_options or {})
        self.tried = 0
        plain = lower_for(f, *args, tpu=tpu, topology=topology, jit_options=self.options).compile()
        self.plain = plain
        self.in_formats, self.in_tree = jax.tree.flatten(plain.input_formats[0])
        self.out_formats, self.out_tree = jax.tree.flatten(plain.output_formats)
        self.outputs = jax.tree.leaves(jax.eval_shape(jax.jit(f, **self.options), *args))
        self.inputs = [leaf for leaf in jax.tree.leaves(args) if hasattr(leaf, "dtype")]

    def run(self) -> TriedFormats:
        name = getattr(self.f, "__name__", type(self.f).__name__)
        before = best = _of_compiled(self.plain, name, self.tpu)
        self.tried = 1
        chosen: tuple[Any, ...] = (None,) * len(self.in_formats), (None,) * len(self.out_formats)
        for ins, outs in self.candidates():
            ins, outs = _merged(chosen[0], ins), _merged(chosen[1], outs)
            compiled = self.compiled(ins, outs)
            if compiled is None:
                continue
            self.tried += 1
            measured = _of_compiled(compiled, name, self.tpu)
            if measured.peak_bytes < best.peak_bytes:
                best, chosen = measured, (ins, outs)
        ins, outs = chosen
        return TriedFormats(before, best, ins, outs, self.code(ins, outs), self.tried)

    def candidates(self) -> list[tuple[tuple[Layout | None, ...], tuple[Layout | None, ...]]]:
        """Layouts to try: the compiler's own for all, then the tightest of one array after the other."""
        found: list[tuple[tuple[Layout | None, ...], tuple[Layout | None, ...]]] = []
        auto = self.automatic()
        if auto is not None:
            found.append(auto)
        none_in, none_out = (None,) * len(self.in_formats), (None,) * len(self.out_formats)
        for number, (leaf, form) in enumerate(zip(self.inputs, self.in_formats, strict=False)):
            layout = self.tightest(leaf, form)
            if layout is not None:
                found.append(((*none_in[:number], layout, *none_in[number + 1 :]), none_out))
        for number, (leaf, form) in enumerate(zip(self.outputs, self.out_formats, strict=False)):
            layout = self.tightest(leaf, form)
            if layout is not None:
                found.append((none_in, (*none_out[:number], layout, *none_out[number + 1 :])))
        return found

    def tightest(self, leaf: Any, form: Any) -> Layout | None:
        """The layout that a TPU picks when the order is left to it; ``None`` if the array has that order already."""
        local = form.sharding.shard_shape(leaf.shape)
        shape = predict(_Described(local, leaf.dtype), tpu=self.tpu)
        order = tuple(reversed(form.layout.major_to_minor))
        return shape.layout if shape.layout.minor_to_major != order and shape.padding_bytes >= 0 else None

    def automatic(self) -> tuple[tuple[Layout | None, ...], tuple[Layout | None, ...]] | None:
        """The layouts that the compiler picks for all arguments and results together; ``None`` if it can't."""
        jax = module("jax")
        layouts = module("jax.experimental.layout")

        def free(form: Any) -> Any:
            return layouts.Format(layouts.Layout.AUTO, form.sharding)

        ins = jax.tree.unflatten(self.in_tree, [free(form) for form in self.in_formats])
        outs = jax.tree.unflatten(self.out_tree, [free(form) for form in self.out_formats])
        compiled = self.attempt(ins, outs)
        if compiled is None:
            return None
        picked_in, picked_out = jax.tree.leaves(compiled.input_formats[0]), jax.tree.leaves(compiled.output_formats)
        return (
            tuple(_changed(old, new) for old, new in zip(self.in_formats, picked_in, strict=False)),
            tuple(_changed(old, new) for old, new in zip(self.out_formats, picked_out, strict=False)),
        )

    def compiled(self, ins: Sequence[Layout | None], outs: Sequence[Layout | None]) -> Any:
        """The program with these layouts; ``None`` if the compiler refuses them."""
        jax = module("jax")

        return self.attempt(
            jax.tree.unflatten(
                self.in_tree, [_format(f, layout) for f, layout in zip(self.in_formats, ins, strict=True)]
            ),
            jax.tree.unflatten(
                self.out_tree, [_format(f, layout) for f, layout in zip(self.out_formats, outs, strict=True)]
            ),
        )

    def attempt(self, ins: Any, outs: Any) -> Any:
        jax = module("jax")

        options: dict[str, Any] = {**self.options, "in_shardings": tuple(ins), "out_shardings": outs}

        def abstract(leaf: Any) -> Any:
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if hasattr(leaf, "dtype") else leaf

        try:
            return jax.jit(self.f, **options).lower(*jax.tree.map(abstract, self.args)).compile()
        except (ValueError, TypeError, NotImplementedError, jax.errors.JaxRuntimeError):
            return None

    def code(self, ins: Sequence[Layout | None], outs: Sequence[Layout | None]) -> str:
        """The arguments of ``jax.jit`` that make it so."""
        jax = module("jax")

        parts: list[str] = []
        for name, tree, layouts in (("in_shardings", self.in_tree, ins), ("out_shardings", self.out_tree, outs)):
            if any(layouts):
                texts = [_Code("None" if layout is None else _format_code(layout)) for layout in layouts]
                parts.append(f"{name}={jax.tree.unflatten(tree, texts)!r}")
        return ", ".join(parts)


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


def _format_code(layout: Layout) -> str:
    order = tuple(reversed(layout.minor_to_major))
    # The sharding is the user's: `x.sharding` of the array that is passed.
    return f"Format(Layout(major_to_minor={order}), sharding)"


def _format(form: Any, layout: Layout | None) -> Any:
    return form if layout is None else type(form)(to_jax(layout), form.sharding)


def _changed(old: Any, new: Any) -> Layout | None:
    order = tuple(new.layout.major_to_minor)
    return None if tuple(old.layout.major_to_minor) == order else Layout(tuple(reversed(order)))


def _merged(old: Sequence[Layout | None], new: Sequence[Layout | None]) -> tuple[Layout | None, ...]:
    return tuple(new[i] if new[i] is not None else old[i] for i in range(len(old)))
