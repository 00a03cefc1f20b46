"""Indices that have each sample's own number, as in ``x[jnp.arange(n), i]``, of a `Program`."""

from __future__ import annotations

from typing import Any

from tilewise._base.modules import module


def own_column(program: Any, at: int) -> tuple[int, int] | None:
    """The column of indices that has each sample's own number, and the dimension along which it counts."""
    shape = program.avals[at].shape
    along = [number for number, size in enumerate(shape[:-1]) if size == program.samples]
    eqn, reads = program.made.get(at, (None, []))
    columns = reads if eqn and eqn.primitive.name == "concatenate" else [at]
    if len(columns) != shape[-1]:
        return None
    found = ((column, way) for column, read in enumerate(columns) for way in along if _is_count(program, read, way))
    return next(found, None)


def _is_count(program: Any, at: int, along: int) -> bool:
    """Whether a value's elements are the numbers of the samples along a dimension."""
    eqn, reads = program.made.get(at, (None, []))
    name = eqn.primitive.name if eqn else None
    if name == "iota":
        # One number for all samples may be broadcast.
        return bool(eqn.params["dimension"] == along and program.avals[at].shape[along] == program.samples)
    if name == "broadcast_in_dim":
        places = list(eqn.params["broadcast_dimensions"])
        return along in places and _is_count(program, reads[0], places.index(along))
    if name == "reshape":
        before, after = program.avals[reads[0]].shape, program.avals[at].shape
        wide = [[size for size in shape if size != 1] for shape in (before, after)]
        own = [number for number, size in enumerate(before) if size == program.samples]
        return wide[0] == wide[1] == [program.samples] and _is_count(program, reads[0], own[0])
    if name == "convert_element_type":
        return _is_count(program, reads[0], along)
    if name == "select_n" and len(reads) == 3:
        # `x[i]` counts from the end if `i` is negative, which no number of a sample is.
        test, compared = program.made.get(reads[0], (None, []))
        if test is None or test.primitive.name != "lt" or program.avals[compared[1]].shape:
            return False
        is_zero = int(program.constants.get(compared[1], 1)) == 0
        return is_zero and _is_count(program, compared[0], along) and _is_count(program, reads[1], along)
    return False


def counted_anew(program: Any, at: int, column: int) -> int:
    """Indices whose column of the samples' own numbers begins with 0 in each part."""
    jnp, count = module("jax.numpy"), program.samples // program.parts

    def compute(values: list[Any], part: Any) -> list[Any]:
        is_number = jnp.arange(values[0].shape[-1]) == column
        return [values[0] - jnp.where(is_number, part * count, 0).astype(values[0].dtype)]

    made: int = program.step(compute, [at], [(program.avals[at], program.shares[at])])[0]
    return made
