"""`kernel_budget`: what the Pallas kernels of a function take of VMEM and SMEM, from its jaxpr."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewise import _internals, _tilewise
from tilewise._audit import audit
from tilewise._device import abstract_device, asks_for_the_device
from tilewise._dump import dumped
from tilewise._errors import Error
from tilewise._explain import explain
from tilewise._modules import module
from tilewise._place import lower_on
from tilewise._shown import Listed
from tilewise._tilewise import ElementType
from tilewise.kernels import KernelBudget, KernelRow, budget

if TYPE_CHECKING:
    from tilewise._types import Tpu

# From the surest to the worst.
_VERDICTS = ("probably_fits", "declared_fits", "probably_does_not_fit", "does_not_fit")

# What a core holds in registers: 64 of 8 × 128 words. Larger values that the body needs whole spill.
_REGISTERS = 64 * 4096


@dataclass(frozen=True)
class KernelBudgets(Listed[KernelBudget]):
    """The Pallas kernels of a function, in its order; a sequence of `KernelBudget`. ``str`` is all of their tables.

    Attributes:
        kernels: a budget for each.
        not_covered: kernels that are of other kinds, such as ``core_map``, by the names of JAX's primitives.

    Examples:
        >>> KernelBudgets((), ()).vmem_bytes
        0
    """

    kernels: tuple[KernelBudget, ...]
    not_covered: tuple[str, ...]

    def _elements(self) -> tuple[KernelBudget, ...]:
        return self.kernels

    @property
    def vmem_bytes(self) -> int:
        """The most VMEM that one of them declares."""
        return max((kernel.vmem_bytes for kernel in self.kernels), default=0)

    @property
    def smem_bytes(self) -> int:
        """The most SMEM that one of them declares."""
        return max((kernel.smem_bytes for kernel in self.kernels), default=0)

    @property
    def verdict(self) -> str | None:
        """The worst of their verdicts; ``None`` where there is none."""
        verdicts = [kernel.verdict for kernel in self.kernels if kernel.verdict is not None]
        return max(verdicts, key=_VERDICTS.index, default=None)

    @property
    def unsupported(self) -> tuple[str, ...]:
        """Why the compiler refuses some, whatever their size: a sentence for each block, with the nearest it takes."""
        return tuple(f"{kernel.name}, {words}" for kernel in self.kernels for words in kernel.unsupported)

    @property
    def rows(self) -> tuple[KernelRow, ...]:
        """The rows of all of them."""
        return tuple(row for kernel in self.kernels for row in kernel.rows)

    def __str__(self) -> str:
        tables = [str(kernel) for kernel in self.kernels]
        if self.not_covered:
            tables.append(f"Not covered: {', '.join(self.not_covered)}")
        return "\n\n".join(tables) or "no Pallas kernels"


def kernel_budget(
    f: Callable[..., Any], /, *args: Any, tpu: Tpu, confirm: bool = False, **kwargs: Any
) -> KernelBudgets:
    """What the Pallas kernels of a function take of VMEM and SMEM on a TPU generation, without a TPU or its compiler.

    The function is traced, and every ``pallas_call`` in it is found: inside ``jit``, loops, branches, ``shard_map``,
    and what differentiation made. What a kernel declares is exact, unless XLA keeps a small operand in VMEM. What its
    body takes is guessed: the largest value above 256 KiB that a matrix product has on its left, or that is reduced.

    Needs JAX 0.6 or newer; kernels with ``emit_pipeline`` need 0.10.

    Args:
        f: the function.
        args: its arguments, abstract (``jax.ShapeDtypeStruct``) or real.
        tpu: the generation, under any of its names (``"v6e"``).
        confirm: whether to compile it, too, as `compile_for` does, for the ``measured_bytes`` of each kernel: the
            compiler's own account, or what its message says where it refuses. They are told apart by their names,
            else by their order. ``None`` where that leaves a doubt, and where a block is ``unsupported``.
        kwargs: its arguments by name.

    Raises:
        Error: the kernel asks which TPU it runs on, and this JAX can't be told (``kind`` is ``needs_newer_jax``).
        ParseError: ``tpu`` names no TPU generation.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> from jax.experimental import pallas as pl
        >>> def double(x):
        ...     def kernel(x_ref, y_ref):
        ...         y_ref[...] = 2 * x_ref[...]
        ...     block = pl.BlockSpec((8, 128), lambda i: (i, 0))
        ...     return pl.pallas_call(kernel, grid=8, in_specs=[block], out_specs=block, out_shape=x)(x)
        >>> found = kernel_budget(double, jax.ShapeDtypeStruct((64, 128), jnp.float32), tpu="v6e")
        >>> found.vmem_bytes, found.verdict, [row.buffers for row in found.rows]
        (16384, 'probably_fits', [2, 2])
    """
    generation = _tilewise.generation_name(tpu)
    calls, not_covered = _calls(_traced(f, args, kwargs, generation))
    kernels = tuple(budget(_text(call, generation), tpu=generation) for call in calls)
    if confirm and kernels and not any(kernel.unsupported for kernel in kernels):
        kernels = _confirmed(kernels, f, args, kwargs, generation)
    return KernelBudgets(kernels, not_covered)


def _confirmed(
    kernels: tuple[KernelBudget, ...],
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    generation: str,
) -> tuple[KernelBudget, ...]:
    """The kernels with the compiler's own figures."""
    jax = module("jax")
    _, lowered = lower_on(f, args, kwargs, tpu=generation)
    try:
        compiled = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        refused = explain(str(error), tpu=generation)
        if refused.memory_space_name != "vmem":
            raise
        named = [kernel for kernel in kernels if len(kernels) == 1 or f"{_sanitized(kernel.name)}." in str(error)]
        return tuple(
            dataclasses.replace(kernel, measured_bytes=refused.used_bytes) if [kernel] == named else kernel
            for kernel in kernels
        )
    try:
        text = str(compiled.as_text())
    except jax.errors.JaxRuntimeError:
        # JAX can't print some programs with SparseCore calls; the compiler's own dump can.
        text = dumped(lowered, "after_codegen")
    rows = audit(text, tpu=generation).kernels
    used: dict[str, list[int | None]] = {}
    for row in rows:
        # XLA numbers instructions of one name: `flash_attention.2`.
        used.setdefault(row.instruction.rstrip("0123456789").removesuffix("."), []).append(row.used_bytes)
    in_order = [row.used_bytes for row in rows]
    if len(kernels) != len(rows):
        in_order = [None] * len(kernels)

    def measured(number: int, kernel: KernelBudget) -> int | None:
        # Of kernels with one name, one may be another's copy: then they use as much.
        sizes = set(used.get(_sanitized(kernel.name), [in_order[number]]))
        size = sizes.pop() if len(sizes) == 1 else None
        is_possible = size is not None and size >= kernel.vmem_bytes - kernel.may_be_kept_bytes
        return size if is_possible else None

    return tuple(
        dataclasses.replace(kernel, measured_bytes=measured(number, kernel)) for number, kernel in enumerate(kernels)
    )


def _sanitized(name: str | None) -> str:
    """The name as XLA writes it."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name or "")


def _traced(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], generation: str) -> Any:
    jax = module("jax")
    try:
        return jax.make_jaxpr(f)(*args, **kwargs).jaxpr
    except Exception as error:
        # `emit_pipeline` asks for the kind of the device: one is named that isn't there.
        device = abstract_device(generation)
        if device is None:
            if not asks_for_the_device(error):
                raise
            message = f"the kernel asks which TPU it runs on, and JAX {jax.__version__} can't be told without one"
            raise Error(message, kind="needs_newer_jax", help="use JAX 0.10 or newer") from error
        try:
            with device:
                return jax.make_jaxpr(f)(*args, **kwargs).jaxpr
        except Exception:
            raise error from None


def _jaxprs(value: Any) -> Iterator[Any]:
    """The jaxprs in a parameter of an equation."""
    values: list[Any] = [value]
    while values:
        one = values.pop()
        if hasattr(one, "eqns"):
            yield one
        elif hasattr(getattr(one, "jaxpr", None), "eqns"):
            yield one.jaxpr
        else:
            values += reversed(_members(one))


def _members(value: Any) -> list[Any]:
    if issubclass(type(value), dict):
        return list(value.values())
    return list(value) if issubclass(type(value), (tuple, list)) else []


def _equations(jaxpr: Any) -> Iterator[Any]:
    """The equations of a jaxpr and of those inside it, in order; not those of the kernels."""
    pending = [iter(jaxpr.eqns)]
    while pending:
        equation = next(pending[-1], None)
        if equation is None:
            pending.pop()
            continue
        yield equation
        if equation.primitive.name != "pallas_call":
            inner = [each for value in equation.params.values() for each in _jaxprs(value)]
            pending.extend(iter(each.eqns) for each in reversed(inner))


def _calls(jaxpr: Any) -> tuple[list[Any], tuple[str, ...]]:
    """Each ``pallas_call``, and the names of the other primitives that are kernels."""
    calls: list[Any] = []
    others: list[str] = []
    for equation in _equations(jaxpr):
        name = equation.primitive.name
        if name == "pallas_call":
            calls.append(equation)
        elif name in ("core_map", "mpmd_map"):
            others.append(name)
    return calls, tuple(others)


def _text(call: Any, generation: str) -> str:
    """A ``pallas_call`` as the text of a kernel."""
    params = call.params
    grid = params["grid_mapping"]
    kernel = getattr(params["jaxpr"], "jaxpr", params["jaxpr"])
    avals = [variable.aval for variable in kernel.invars]
    scalars, blocks = grid.num_index_operands, len(grid.block_mappings)
    steps = [str(bound) if isinstance(bound, int) else "?" for bound in grid.grid]
    lines = [
        f"name {' '.join(_internals.kernel_name(params, kernel).split())}",
        f"tpu {generation}",
        f"grid {','.join(steps) or '()'}",
    ]
    lines += [f"prefetch {_shape(aval)}" for aval in avals[:scalars]]
    for number, (mapping, aval) in enumerate(zip(grid.block_mappings, avals[scalars : scalars + blocks], strict=True)):
        role = "in" if number < grid.num_inputs else "out"
        lines.append(f"{role} {_operand(mapping, aval, steps)}")
    scratch = [(_memory(aval), aval) for aval in avals[scalars + blocks :]]
    lines += [f"scratch {memory} {_shape(aval)}" for memory, aval in scratch if memory in ("vmem", "smem")]
    lines += ["scratch dma" for memory, _ in scratch if memory == "semaphore"]
    lines += [f"scratch {memory} {shape}" for memory, shape in _allocated(kernel, generation)]
    limit = _internals.compiler_parameter(params, "vmem_limit_bytes")
    if limit is not None:
        lines.append(f"limit {limit}")
    lines.append(f"body {_guess(kernel, generation)}")
    return "\n".join(lines)


def _memory(aval: Any) -> str:
    name = str(getattr(aval, "memory_space", None) or "default").lower().split(".")[-1]
    if "sem" in name:
        return "semaphore"
    return {"smem": "smem", "any": "any", "hbm": "hbm"}.get(name.removesuffix("_prefetch"), "vmem")


def _shape(aval: Any) -> str:
    inner = getattr(aval, "inner_aval", aval)
    return f"{ElementType(inner.dtype)}[{','.join(str(bound) for bound in inner.shape)}]"


def _operand(mapping: Any, aval: Any, steps: list[str]) -> str:
    array, block = _internals.operand_avals(mapping, aval)
    memory = _memory(block)
    if memory == "semaphore":
        return f"s32[{','.join(str(bound) for bound in aval.shape)}] semaphore"
    sizes = [_internals.block_size(bound) for bound in mapping.block_shape]
    bounds = ["-" if size is None else str(size) for size in sizes]
    words = [_shape(array), memory]
    if memory in ("vmem", "smem") and bounds:
        axes = [_axis(depends, steps) for depends in _axes(mapping.index_map_jaxpr, len(steps))]
        words += ["block", ",".join(bounds), "@", ",".join(axes)]
    buffered = getattr(getattr(mapping, "pipeline_mode", None), "buffer_count", None)
    if buffered is not None:
        words += ["buffered", str(buffered)]
    return " ".join(words)


def _axis(depends: set[int], steps: list[str]) -> str:
    """One of the axes, of more than one step if there is such an axis; ``-`` for none."""
    order = sorted(depends, key=lambda axis: (steps[axis] == "1", axis))
    return str(order[0]) if order else "-"


def _axes(index_map: Any, rank: int) -> list[set[int]]:
    """For each dimension of a block, the axes of the grid that its index depends on.

    A prefetched scalar that is read at a fixed place depends on none. The compiler folds products with 0, and nothing
    else: ``i // 8`` moves even where it is always 0.
    """
    jaxpr = getattr(index_map, "jaxpr", index_map)
    depends: dict[Any, set[int]] = {variable: {axis} for axis, variable in enumerate(jaxpr.invars[:rank])}

    def of(variable: Any) -> set[int]:
        return set() if hasattr(variable, "val") else depends.get(variable, set())

    for equation in jaxpr.eqns:
        found: set[int] = set()
        for variable in equation.invars:
            found |= of(variable)
        is_product = equation.primitive.name == "mul"
        if is_product and any(hasattr(variable, "val") and variable.val == 0 for variable in equation.invars):
            found.clear()
        depends |= dict.fromkeys(equation.outvars, found)
    return [of(variable) for variable in jaxpr.outvars]


def _allocated(kernel: Any, generation: str) -> list[tuple[str, str]]:
    """What ``run_scoped`` allocates in VMEM and SMEM where it holds the most of each: (memory, shape).

    Scopes inside each other add up, scopes beside each other share.
    """
    most: dict[str, tuple[int, list[str]]] = {}
    # Depth first: the allocations on the way to each jaxpr.
    pending: list[tuple[Any, dict[str, tuple[int, list[str]]]]] = [(kernel, {})]
    while pending:
        jaxpr, held = pending.pop()
        for memory, (size, shapes) in held.items():
            if size > most.get(memory, (0, []))[0]:
                most[memory] = (size, shapes)
        for equation in jaxpr.eqns:
            inner = dict(held)
            if equation.primitive.name == "run_scoped":
                scope = equation.params["jaxpr"]
                for variable in getattr(scope, "jaxpr", scope).invars:
                    memory = _memory(variable.aval)
                    if memory in ("vmem", "smem"):
                        shape = _shape(variable.aval)
                        size, shapes = inner.get(memory, (0, []))
                        granules = -(-_tilewise.block_bytes(shape, tpu=generation)[1] // 512)
                        inner[memory] = (size + 512 * granules, [*shapes, shape])
            pending.extend((each, inner) for value in equation.params.values() for each in _jaxprs(value))
    return [(memory, shape) for memory, (_, shapes) in sorted(most.items()) for shape in shapes]


def _guess(kernel: Any, generation: str) -> int:
    """Bytes of the largest value that the body needs whole: on the left of a matrix product, or reduced.

    0 if registers hold it.
    """
    largest = 0
    for equation in _equations(kernel):
        name = equation.primitive.name
        if name == "dot_general" or name.startswith(("reduce_", "argm")):
            aval = equation.invars[0].aval
            if len(aval.shape) >= 2 and 0 not in aval.shape:
                largest = max(largest, _tilewise.block_bytes(_shape(aval), tpu=generation)[0])
    return largest if largest > _REGISTERS else 0
