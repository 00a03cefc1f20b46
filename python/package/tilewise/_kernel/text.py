"""A ``pallas_call`` of a jaxpr as the text of a kernel, which `tilewise.kernels` and ``tilewise kernel`` read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilewise import _tilewise
from tilewise._jax import internals
from tilewise._jax.jaxprs import ARITHMETIC, INLINED, inside, is_literal, nested, opened
from tilewise._kernel import index_maps
from tilewise._tilewise import ElementType

# Primitives that XLA computes block by block where `allow_input_fusion` lets it.
_FUSED = ARITHMETIC | {"broadcast_in_dim", "iota"}
# Bytes of a core's registers: 64 of 8 × 128 words. Whole values beyond that spill.
_REGISTERS = 64 * 4096
# Primitives that read a reference: their results lie in VMEM already.
_READS = ("get", "load", "masked_load")


@dataclass(frozen=True)
class Kernel:
    """A kernel that was found in a function: its declarations and its equation."""

    text: str
    call: Any
    # Bytes of its scratch that the compiler may do without.
    may_be_dropped: int
    # Its features whose bytes aren't known here, in words.
    not_covered: tuple[str, ...]


@dataclass(frozen=True)
class _Scoped:
    """An allocation of ``run_scoped``.

    The compiler may do without it, where it can hand on the stored values: unless copies from outside VMEM fill it.
    """

    memory: str
    shape: str
    size: int
    may_be_dropped: bool


def kernels_of(jaxpr: Any, generation: str) -> tuple[list[Kernel], tuple[str, ...]]:
    """The kernels in a jaxpr, in its order, and the names of those of other kinds."""
    found: list[Kernel] = []
    others: list[str] = []
    for equation, around in _equations(jaxpr):
        name = equation.primitive.name
        if name == "pallas_call":
            found.append(_pallas_call(equation, around, generation))
        elif name == "mpmd_map":
            for mesh, kernel in zip(equation.params["meshes"], equation.params["jaxprs"], strict=True):
                if internals.is_tensor_core(mesh):
                    found.append(_unpipelined(equation, opened(kernel), generation))
                else:
                    others.append("a SparseCore kernel")
        elif name == "core_map":
            others.append(name)
    return found, tuple(others)


def _equations(jaxpr: Any) -> Iterator[tuple[Any, Any]]:
    """The equations of a jaxpr and of those inside it, each with the jaxpr around it, in order; not kernels' own."""
    pending = [(each, jaxpr) for each in reversed(jaxpr.eqns)]
    while pending:
        equation, around = pending.pop()
        yield equation, around
        if equation.primitive.name not in ("pallas_call", "mpmd_map"):
            pending += [(each, inner) for inner in reversed(inside(equation)) for each in reversed(inner.eqns)]


def _pallas_call(call: Any, around: Any, generation: str) -> Kernel:
    params = call.params
    grid = params["grid_mapping"]
    kernel = opened(params["jaxpr"])
    avals = [variable.aval for variable in kernel.invars]
    scalars, blocks = grid.num_index_operands, len(grid.block_mappings)
    steps = [str(bound) if isinstance(bound, int) else "?" for bound in grid.grid]
    lines = [f"prefetch {_shape(aval)}" for aval in avals[:scalars]]
    not_covered: list[str] = []
    outputs: list[str] = []
    computed: list[str] = []
    fused = list(internals.compiler_parameter(params, "allow_input_fusion") or ())
    # Dynamic bounds of the grid come before the scalars and the blocks.
    first = len(call.invars) - grid.num_inputs - scalars
    for number, (mapping, aval) in enumerate(zip(grid.block_mappings, avals[scalars : scalars + blocks], strict=True)):
        is_input = number < grid.num_inputs
        shape, words = _operand(mapping, aval, steps)
        name = f"in{number}" if is_input else f"out{number - grid.num_inputs}"
        not_covered += [f"{name}: {what}" for what in internals.unusual_block(mapping)]
        if not is_input:
            outputs.append(f"out {shape} {words}")
            continue
        may_fuse = scalars + number < len(fused) and fused[scalars + number]
        read = _read_by_fusion(around, call.invars[max(first, 0) + scalars + number]) if may_fuse else None
        if read is None:
            lines.append(f"in {shape} {words}")
        elif not read:
            lines.append(f"in {shape} {words} fused")
        else:
            lines.append(f"in {read[0]} {words}")
            computed += [f"in {each} {words}" for each in read[1:]]
    lines += computed + outputs
    return _kernel(call, kernel, generation, steps, lines, scalars + blocks, not_covered)


def _unpipelined(call: Any, kernel: Any, generation: str) -> Kernel:
    """A ``pl.kernel`` over a mesh of TensorCores: it sees whole arrays where they are."""
    avals = [variable.aval for variable in kernel.invars]
    lines: list[str] = []
    inputs, outputs = len(call.invars), len(call.outvars)
    for number, aval in enumerate(avals[: inputs + outputs]):
        role = "in" if number < inputs else "out"
        if getattr(getattr(aval, "inner_aval", aval), "shape", None) == ():
            lines.append(f"prefetch {_shape(aval)}")
            continue
        # An operand in VMEM is XLA's, and no part of the kernel.
        memory = _memory(aval)
        lines.append(f"{role} {_shape(aval)} {'smem' if memory == 'smem' else 'any'}")
    return _kernel(call, kernel, generation, [], lines, inputs + outputs, [])


def _kernel(
    call: Any, kernel: Any, generation: str, steps: list[str], operands: list[str], count: int, others: list[str]
) -> Kernel:
    """A kernel, whose `count` first arguments are operands with these lines, and the rest its scratch."""
    name = " ".join(internals.kernel_name(call.params, kernel).split())
    lines = [f"name {name}", f"tpu {generation}", f"grid {','.join(steps) or '()'}", *operands]
    for aval in (variable.aval for variable in kernel.invars[count:]):
        memory = _memory(aval)
        if memory in ("vmem", "smem"):
            lines.append(f"scratch {memory} {_shape(aval)}")
        elif memory == "semaphore":
            lines.append("scratch dma")
    reaches_far = any(memory in line.split() for line in lines for memory in ("any", "hbm"))
    scoped = _allocated(kernel, generation, reaches_far=reaches_far)
    lines += [f"scratch {each.memory} {each.shape}" for each in scoped]
    dropped = _total([each for each in scoped if each.may_be_dropped and each.memory == "vmem"])
    limit = internals.compiler_parameter(call.params, "vmem_limit_bytes")
    if limit is not None:
        lines.append(f"limit {limit}")
    lines.append(f"body {_guess_bytes(kernel, generation)}")
    if any(equation.primitive.name == "emit_pipeline" for equation, _ in _equations(kernel)):
        others = [*others, "the buffers of `emit_pipeline`"]
    return Kernel("\n".join(lines), call, dropped, tuple(others))


def _read_by_fusion(around: Any, variable: Any) -> list[str] | None:
    """The arrays, of the operand's shape, that XLA reads to compute an operand inside the kernel's pipeline.

    A broadcast array has no window. ``None`` where no fusable operation computes the operand.
    """
    made = {result: equation for equation in around.eqns for result in equation.outvars}
    if variable not in made or not _is_elementwise(made[variable]):
        return None
    read: list[Any] = []
    pending, seen = [variable], set[int]()
    while pending:
        one = pending.pop()
        if id(one) in seen or is_literal(one):
            continue
        seen.add(id(one))
        if one in made and _is_elementwise(made[one]):
            pending += reversed(made[one].invars)
        elif getattr(one.aval, "shape", None) == variable.aval.shape:
            read.append(one)
    return [_shape(one.aval) for one in read]


def _is_elementwise(equation: Any) -> bool:
    if equation.primitive.name in INLINED:
        return all(_is_elementwise(each) for jaxpr in inside(equation) for each in jaxpr.eqns)
    return equation.primitive.name in _FUSED


def _memory(aval: Any) -> str:
    name = str(getattr(aval, "memory_space", None) or "default").lower().split(".")[-1]
    if "sem" in name:
        return "semaphore"
    return {"smem": "smem", "any": "any", "hbm": "hbm"}.get(name.removesuffix("_prefetch"), "vmem")


def _shape(aval: Any) -> str:
    inner = getattr(aval, "inner_aval", aval)
    return f"{ElementType(inner.dtype)}[{','.join(str(bound) for bound in inner.shape)}]"


def _operand(mapping: Any, aval: Any, steps: list[str]) -> tuple[str, str]:
    array, block = internals.operand_avals(mapping, aval)
    memory = _memory(block)
    if memory == "semaphore":
        return f"s32[{','.join(str(bound) for bound in aval.shape)}]", "semaphore"
    sizes = [internals.block_size(bound) for bound in mapping.block_shape]
    bounds = ["-" if size is None else str(size) for size in sizes]
    words = [memory]
    if memory in ("vmem", "smem") and bounds:
        axes = [_axis(depends, steps) for depends in index_maps.axes(mapping.index_map_jaxpr, len(steps))]
        words += ["block", ",".join(bounds), "@", ",".join(axes)]
    buffered = getattr(getattr(mapping, "pipeline_mode", None), "buffer_count", None)
    if buffered is not None:
        words += ["buffered", str(buffered)]
    return _shape(array), " ".join(words)


def _axis(depends: set[int], steps: list[str]) -> str:
    """One of the axes, of more than one step if there is such an axis; ``-`` for none."""
    order = sorted(depends, key=lambda axis: (steps[axis] == "1", axis))
    return str(order[0]) if order else "-"


def _allocated(kernel: Any, generation: str, *, reaches_far: bool) -> list[_Scoped]:
    """The allocations of ``run_scoped`` in VMEM and SMEM where it holds the most of each.

    Scopes inside each other add up, scopes beside each other share.
    """
    most: dict[str, list[_Scoped]] = {}
    # Depth first: the allocations on the way to each jaxpr.
    pending: list[tuple[Any, dict[str, list[_Scoped]]]] = [(kernel, {})]
    while pending:
        jaxpr, held = pending.pop()
        for memory, scoped in held.items():
            if _total(scoped) > _total(most.get(memory, [])):
                most[memory] = scoped
        for equation in jaxpr.eqns:
            inner = dict(held)
            if equation.primitive.name == "run_scoped":
                scope = opened(equation.params["jaxpr"])
                is_filled = reaches_far and any(each.primitive.name == "dma_start" for each, _ in _equations(scope))
                for variable in scope.invars:
                    memory = _memory(variable.aval)
                    if memory in ("vmem", "smem"):
                        shape = _shape(variable.aval)
                        size = 512 * -(-_tilewise.block_bytes(shape, tpu=generation)[1] // 512)
                        inner[memory] = [*inner.get(memory, []), _Scoped(memory, shape, size, not is_filled)]
            pending.extend((each, inner) for each in inside(equation))
    return [each for _, scoped in sorted(most.items()) for each in scoped]


def _total(scoped: list[_Scoped]) -> int:
    return sum(each.size for each in scoped)


def _guess_bytes(kernel: Any, generation: str) -> int:
    """Bytes of VMEM that a body is guessed to take beyond the declared ones; 0 where registers hold all values.

    The compiler computes elementwise operations register by register, so that a value which is used up at once is never
    there as a whole. A matrix product needs all of its left operand, and a value that is reduced and read again is held
    until then. The guess is the largest of these, where registers don't hold it.
    """
    largest = 0
    for jaxpr in nested(kernel):
        made = {id(result): equation for equation in jaxpr.eqns for result in equation.outvars}
        readers = Counter(each for equation in jaxpr.eqns for each in {id(variable) for variable in equation.invars})
        readers.update(id(each) for each in jaxpr.outvars)
        for equation in jaxpr.eqns:
            name = equation.primitive.name
            is_reduction = name.startswith(("reduce_", "argm"))
            if name == "dot_general" or (is_reduction and _is_read_again(equation.invars[0], made, readers)):
                largest = max(largest, _bytes(equation.invars[0].aval, generation))
    return largest if largest > _REGISTERS else 0


def _is_read_again(variable: Any, made: dict[int, Any], readers: Counter[int]) -> bool:
    """Whether a value is held: it is consumed as it is computed, unless it or one of its sources is read again."""
    pending, seen = [variable], set[int]()
    while pending:
        one = pending.pop()
        equation = made.get(id(one))
        if id(one) in seen or (equation is not None and equation.primitive.name in _READS):
            continue
        seen.add(id(one))
        # A value that isn't computed here, or not by an elementwise operation, is there as a whole.
        if equation is None or equation.primitive.name not in ARITHMETIC or readers[id(one)] > 1:
            return not is_literal(one)
        shape = one.aval.shape
        pending += [each for each in equation.invars if getattr(each.aval, "shape", None) == shape]
    return False


def _bytes(aval: Any, generation: str) -> int:
    """Bytes of a value of two or more dimensions as a block; 0 of others, which fill few registers."""
    shape = getattr(aval, "shape", ())
    is_known = len(shape) >= 2 and 0 not in shape and all(isinstance(bound, int) for bound in shape)
    if not is_known or hasattr(aval, "inner_aval"):
        return 0
    try:
        return _tilewise.block_bytes(_shape(aval), tpu=generation)[0]
    except (TypeError, ValueError):
        return 0
