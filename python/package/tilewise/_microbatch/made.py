"""A batch that a step makes itself: the operations that its dimension begins at, and the step in parts of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from tilewise._jax import internals
from tilewise._jax.equations import Block, Reader, bytes_of, needed, tiled_bytes
from tilewise._jax.internals import Scan
from tilewise._jax.jaxprs import SOLVED, is_literal, makers, read_by, renamed, variables
from tilewise._microbatch import rules
from tilewise._microbatch.loops import BODIES, read_in_turns
from tilewise._microbatch.origins import Starts, origins
from tilewise._microbatch.passes import traced
from tilewise._microbatch.program import CHEAP, SMALL, Program
from tilewise._microbatch.rules import Each, RefusedError, Share, Whole, has_samples

NEAR = 8
"""The most lines of the file that are looked at instead."""
LARGER = 4
"""The factor by which arrays that are made whole may be larger where samples meet one another."""
_CHEAP = rules.ELEMENTWISE | CHEAP


@dataclass(frozen=True)
class Made:
    """The arrays made at a line, with the samples along a dimension.

    Attributes:
        line: the line, such as ``train.py:30``.
        samples, parts: how many.
        at: the dimension.
        largest: the bytes of the largest of the arrays.
        least: the bytes, with padding, up to which arrays are made whole.
    """

    line: str
    samples: int
    parts: int
    at: int
    largest: int
    least: int

    @classmethod
    def of(cls, closed: Any, line: str, axis: int, sizes: tuple[int, int]) -> Made:
        """Finds the largest array made at a line with a dimension of the samples, which is `axis` where that has them.

        Raises:
            RefusedError: no array is.
        """
        samples, parts = sizes
        blocks = _blocks(_read(closed))
        its = cls(line, samples, parts, 0, 0, 0)
        found = its._with_samples(blocks)
        if not found:
            # Lines move as code is written above them.
            for near in sorted(_lines(blocks, line), key=lambda near: abs(near - _number(line)))[:NEAR]:
                its = replace(its, line=f"{line.rpartition(':')[0]}:{near}")
                found = its._with_samples(blocks)
                if found:
                    break
        if not found:
            raise RefusedError(f"no array made at {line}, or near it, has a dimension of {samples}")
        largest = max(found, key=bytes_of)
        shape = largest.aval.shape
        places = [axis, *(at for at, size in enumerate(shape) if size == samples), *range(len(shape))]
        at = next(at for at in places if at < len(shape) and has_samples(shape[at], samples))
        return replace(its, at=at, largest=bytes_of(largest), least=bytes_of(largest) // max(SMALL, parts))

    def _with_samples(self, blocks: list[Block]) -> list[Any]:
        made = (value for block in blocks for each in block.equations if self._is_its(each) for value in each.outvars)
        return [value for value in made if any(has_samples(size, self.samples) for size in value.aval.shape)]

    def _is_its(self, equation: Any) -> bool:
        return any(f"/{file}:{line}".endswith(f"/{self.line}") for file, line in internals.places(equation))

    def _targets(self, block: Block) -> list[Any]:
        def is_target(value: Any) -> bool:
            shape = value.aval.shape
            return (
                tiled_bytes(value.aval) > self.least
                and len(shape) > self.at
                and has_samples(shape[self.at], self.samples)
            )

        found = [equation for equation in block.equations if self._is_its(equation)]
        # The backward pass follows from what it reads.
        forward = [equation for equation in found if not internals.is_of_gradient(equation)]
        return [value for equation in forward or found for value in equation.outvars if is_target(value)]

    def in_parts(self, closed: Any) -> Any:
        """The program, whose arrays of the line are made in parts, wherever they are.

        Raises:
            RefusedError: parts would compute something else.
        """
        try:
            return self._in_parts(closed)
        except RefusedError:
            # Samples that meet one another have operands in common, which may be made whole.
            return replace(self, least=LARGER * self.least)._in_parts(closed)

    def _in_parts(self, closed: Any) -> Any:
        block = self._with_bodies(_read(closed))
        for _ in range(len(block.equations)):
            if not self._targets(block):
                return block.closed()
            try:
                return self._traced(block)
            except RefusedError:
                sunk = self._sunk(block)
                if sunk is None:
                    raise
                block = self._with_bodies(sunk)
        raise RefusedError("loops within loops read what is made in parts")

    def _traced(self, block: Block) -> Any:
        shares: list[Share] = [Whole()] * len(block.inputs)
        program = Program(block.closed(), shares, (self.samples, self.parts), starts=self._starts(block))
        pairs = zip(program.results, block.outputs, strict=True)
        if any(isinstance(program.shares[at], Each) and 2 * bytes_of(each) > self.largest for at, each in pairs):
            raise RefusedError("all of it is returned, or kept for the gradient: `jax.checkpoint` around it keeps less")
        return traced(program)

    def _with_bodies(self, block: Block) -> Block:
        equations = list(block.equations)
        for at, equation in enumerate(equations):
            name = BODIES.get(equation.primitive.name)
            if name is not None and any(self._targets(inner) for inner in _blocks(_read(equation.params[name]))):
                # A part of a mask, for example, is as cheap to make as to cut.
                equation = self._with_makers(block, at, _CHEAP) or equation
                closed = self._in_parts(equation.params[name])
                equations[at] = internals.with_program(equation, name, closed)
        return replace(block, equations=equations)

    def _starts(self, block: Block) -> Starts:
        """The operands that are cut into parts, by the first result of the operation that reads them.

        From the arrays of the line, its dimension is followed back to values so small that they are made whole.
        """
        made, starts = makers(block.equations), Starts({}, self.least)
        seen: set[tuple[Any, Each]] = set()
        rows = Each(at=self.at)
        waiting = [(value, rows) for value in self._targets(block)]
        while waiting:
            value, rows = waiting.pop()
            if (value, rows) in seen:
                continue
            seen.add((value, rows))
            maker = block.equations[made[value]]
            for number, its in origins(maker, maker.outvars.index(value), rows, (self.samples, self.parts)):
                operand = maker.invars[number]
                if is_literal(operand):
                    continue
                if operand in made and tiled_bytes(operand.aval) > self.least:
                    waiting.append((operand, its))
                else:
                    starts.operands.setdefault(maker.outvars[0], {})[number] = its
        return starts

    def _sunk(self, block: Block) -> Block | None:
        """The block whose loops make the large arrays themselves that they read in each turn; `None` without any."""
        loops = {at: self._with_makers(block, at) for at, each in enumerate(block.equations) if read_in_turns(each)}
        if not any(loops.values()):
            return None
        equations = [loops.get(at) or equation for at, equation in enumerate(block.equations)]
        kept = needed(equations, block.outputs, {*block.inputs, *block.constants}.__contains__)
        return replace(block, equations=kept)

    def _with_makers(self, block: Block, at: int, names: Collection[str] = ()) -> Any:
        """The loop that makes its large constants itself; `None` without any, or where others than these make them."""
        loop, before = block.equations[at], block.equations[:at]
        made = makers(before)
        known = {*block.inputs, *block.constants, *(value for value in made if tiled_bytes(value.aval) <= self.least)}
        operands = variables(loop.invars[place] for place in read_in_turns(loop))
        large = [value for value in operands if value in made and value not in known]
        inside = needed(before, large, known.__contains__)
        used = {each.primitive.name for each in inside}
        is_allowed = used <= set(names) if names else used.isdisjoint(BODIES)
        return _loop_making(loop, large, inside) if large and is_allowed else None


def _read(closed: Any) -> Block:
    return Reader(opens=SOLVED).block(closed)


def _blocks(block: Block) -> list[Block]:
    """The block, and those of its loops and checkpoints."""
    found = [block]
    for equation in block.equations:
        name = BODIES.get(equation.primitive.name)
        if name is not None:
            found += _blocks(_read(equation.params[name]))
    return found


def _number(line: str) -> int:
    number = line.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def _lines(blocks: list[Block], line: str) -> set[int]:
    """The lines of the file that make arrays."""
    name = line.rpartition(":")[0]
    places = (place for block in blocks for each in block.equations for place in internals.places(each))
    return {number for file, number in places if f"/{file}".endswith(f"/{name}")}


def _loop_making(loop: Any, large: list[Any], inside: list[Any]) -> Any:
    """The loop whose body has these operations in place of the constants that they make."""
    places, own = read_in_turns(loop), set(makers(inside))
    before, constants, after = (
        loop.invars[: places.start],
        loop.invars[places.start : places.stop],
        loop.invars[places.stop :],
    )
    body = _read(loop.params[BODIES[loop.primitive.name]])
    made = {inner: atom for inner, atom in zip(body.inputs, constants, strict=False) if atom in large}
    kept = {inner: atom for inner, atom in zip(body.inputs, constants, strict=False) if inner not in made}
    read = {atom: internals.variable(atom.aval) for atom in read_by(inside) if atom not in own}
    equations = [*(renamed(each, read) for each in inside), *(renamed(each, made) for each in body.equations)]
    outputs = [atom if is_literal(atom) else made.get(atom, atom) for atom in body.outputs]
    inputs = [*kept, *read.values(), *body.inputs[len(places) :]]
    closed = Block(inputs, equations, outputs, body.constants).closed()
    operands, count = [*before, *kept.values(), *read, *after], len(kept) + len(read)
    if loop.primitive.name == "scan":
        return Scan(count, Scan.of(loop).carry, closed).put_into(loop, operands, loop.outvars)
    changed = internals.with_program(loop, BODIES[loop.primitive.name], closed).replace(invars=operands)
    is_while = loop.primitive.name == "while"
    return changed.replace(params=changed.params | {"body_nconsts": count}) if is_while else changed
