"""A traced program, rewritten for a part of the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewise._base.modules import module
from tilewise._jax import internals
from tilewise._jax.equations import tiled_bytes
from tilewise._jax.jaxprs import SOLVED, called, evaluated, opened
from tilewise._microbatch import loops, rules
from tilewise._microbatch.counts import counted_anew, own_column
from tilewise._microbatch.origins import Starts, origins
from tilewise._microbatch.rules import Each, Operation, Partial, RefusedError, Share, Whole

CHEAP = rules.ELEMENTWISE | {"broadcast_in_dim", "convert_element_type", "iota", "reshape", "squeeze", "transpose"}
"""Primitives fused into their readers: each reader makes its own piece of the result."""
MOST_CHEAP = 64
"""The most of them in a row."""
SMALL = 16
"""How much larger the largest value with rows is than rows that are joined for an operation on all samples, such as a
sort: they lie beside all parts."""


@dataclass(frozen=True)
class Step:
    """An operation of the rewritten program: values read and made, the function for them, and the traced equation.

    The function gets the number of the part of the batch that is computed, too, which is traced.
    """

    reads: tuple[int, ...]
    makes: tuple[int, ...]
    compute: Callable[[list[Any], Any], Sequence[Any]]
    is_costly: bool
    maker: Any


class Program:
    """A traced program for parts of the batch: values by number, their shares of the samples, and steps in order.

    `sizes` are the numbers of samples and of parts. Within another program, no sum over the batch can be finished.
    `starts` are operations at which the batch begins, where the program makes it itself. `recomputes` says whether each
    pass may compute costly operations again. `of_turn` gives the program of a loop's turn, itself in parts, with the
    bytes of its largest rows.
    """

    def __init__(
        self,
        closed: Any,
        shares: list[Share],
        sizes: tuple[int, int],
        is_within: bool = False,
        starts: Starts | None = None,
        recomputes: bool = False,
        of_turn: Callable[[Any, list[Share]], tuple[Any, int]] | None = None,
    ) -> None:
        self.samples, self.parts = self.sizes = sizes
        self.is_within, self._starts = is_within, starts or Starts({}, 0)
        self.recomputes, self._of_turn = recomputes or self.makes_batch, of_turn
        self.shares: dict[int, Share] = {}
        self.avals: dict[int, Any] = {}
        self.constants: dict[int, Any] = {}
        self.steps: list[Step] = []
        self.sums: dict[int, int] = {}
        """By value known once all parts are added up or joined, a part's share of it."""
        self.wholes: dict[int, int] = {}
        """By value of all samples, the argument that it is."""
        self._joined: list[tuple[int, RefusedError]] = []
        self.largest = 0
        self.made: dict[int, tuple[Any, list[int]]] = {}
        self._maker: Any = None
        self._cut: dict[tuple[int, Each | None], int] = {}
        self.inputs = [self._new(var.aval, share) for var, share in zip(closed.jaxpr.invars, shares, strict=True)]
        self.results = self.call(closed.jaxpr, closed.consts, self.inputs)
        rows = (self._bytes(at) for at, share in self.shares.items() if isinstance(share, Each))
        self.largest = max(self.largest, *rows, 0)
        """The bytes of the largest value with rows."""
        for at, error in self._joined:
            if self._bytes(at) * SMALL > self.largest:
                raise error

    def _new(self, aval: Any, share: Share) -> int:
        number = len(self.avals)
        self.avals[number], self.shares[number] = aval, share
        return number

    def call(self, jaxpr: Any, consts: Sequence[Any], arguments: list[int], outer: Any = None) -> list[int]:
        def constant(value: Any, atom: Any) -> int:
            number = self._new(atom.aval, Whole())
            self.constants[number] = value
            return number

        def results(eqn: Any, reads: list[int]) -> list[int]:
            for number, rows in self._starts.operands.get(next(iter(eqn.outvars), None), {}).items():
                if isinstance(self.shares[reads[number]], Whole):
                    reads[number] = self.rows(reads[number], rows)
            self._maker = internals.within(eqn, outer)
            made = self._operation(self._maker, list(reads))
            is_behind = any(self._is_large(at) for at in reads)
            return [self.finished(at) if is_behind and self._is_small(at) else at for at in made]

        return evaluated(jaxpr, consts, arguments, constant, results)

    def _operation(self, eqn: Any, reads: list[int]) -> list[int]:
        name = eqn.primitive.name
        call = called(eqn, reads, SOLVED)
        if call is not None:
            callee, operands = call
            return self.call(opened(callee), getattr(callee, "consts", ()), operands, eqn)
        if name == "optimization_barrier":
            return reads
        shares = [self.shares[at] for at in reads]
        if all(isinstance(share, Whole) for share in shares):
            turn = max((share.turn for share in shares), default=0)
            return self._emit(eqn, reads, [Whole(turn)] * len(eqn.outvars), {})
        found = self._of_sums(eqn, reads, shares)
        if found is not None:
            return found
        reads = [self.added_up(at) for at in reads]
        if name in loops.RULES:
            # Within, passes are counted anew.
            shares = [replace(self.shares[at], turn=0) for at in reads]
            try:
                return loops.RULES[name](self, eqn, list(reads), shares)
            except RefusedError as error:
                return self._of_all(eqn, reads, error) if self.makes_batch else self._in_turns(eqn, reads, error)
        shares = [self.shares[at] for at in reads]
        if all(isinstance(share, Whole) for share in shares):
            return self._operation(eqn, reads)
        rule = rules.RULES.get(name)
        if rule is None:
            raise RefusedError(f"`{name}` isn't known to keep samples apart")
        given, made = (
            [tuple(getattr(atom.aval, "shape", ())) for atom in atoms] for atoms in (eqn.invars, eqn.outvars)
        )
        own = own_column(self, reads[1]) if name == "gather" or name.startswith("scatter") else None
        try:
            outcome = rule(Operation(name, eqn.params, given, made, shares, self.samples, self.parts, own))
        except RefusedError as error:
            return self._of_all(eqn, reads, error)
        turn = max(share.turn for share in shares)
        results = [replace(share, turn=turn) for share in outcome.results]
        for number, rows in outcome.operands.items():
            reads[number] = self.rows(reads[number], rows)
        if outcome.zeros is not None:
            reads[outcome.zeros] = self.counted_once(reads[outcome.zeros])
        if outcome.counted and own:
            reads[1] = counted_anew(self, reads[1], own[0])
        return self._emit(eqn, reads, results, outcome.params)

    @property
    def makes_batch(self) -> bool:
        """Whether the program makes the batch itself, and in each pass anew."""
        return bool(self._starts.operands)

    def _is_large(self, at: int) -> bool:
        is_each = self.makes_batch and isinstance(self.shares[at], Each)
        return is_each and tiled_bytes(self.avals[at]) > self._starts.least

    def _is_small(self, at: int) -> bool:
        return isinstance(self.shares[at], Each) and tiled_bytes(self.avals[at]) <= self._starts.least

    def _of_all(self, eqn: Any, reads: list[int], error: RefusedError) -> list[int]:
        """An operation on all samples, whose rows are joined for it: they have to be small."""
        if self.is_within:
            raise error
        whole = self._operation(eqn, [self.finished(at) for at in reads])
        joined = [at for at in reads if isinstance(self.shares[at], Each)]
        self._joined += [(at, error) for at in (*joined, *whole)]
        return whole

    def _in_turns(self, eqn: Any, reads: list[int], error: RefusedError) -> list[int]:
        """A loop in whose turns samples meet: each turn in parts. Rows that it reads are arguments', or small."""
        shares = loops.in_turn(eqn, [self.shares[at] for at in reads])
        if self.is_within or self._of_turn is None or shares is None:
            raise error
        name = loops.BODIES[eqn.primitive.name]
        closed, largest = self._of_turn(eqn.params[name], shares)
        self.largest = max(self.largest, largest)
        joined = [at for at in reads if isinstance(self.shares[at], Each) and at not in self.inputs]
        self._joined += [(at, error) for at in joined]
        return self._operation(internals.with_program(eqn, name, closed), [self.finished(at) for at in reads])

    def _of_sums(self, eqn: Any, reads: list[int], shares: list[Share]) -> list[int] | None:
        """An operation on parts' shares of sums before they are added up; `None` where that is impossible."""
        sums = [isinstance(share, Partial) for share in shares]
        name = eqn.primitive.name
        turn = max(share.turn for share in shares)
        if not any(sums) or any(isinstance(share, Each) for share in shares):
            return None
        turns = {share.turn for share in shares if isinstance(share, Partial)}
        if turns != {turn}:
            return None
        # Outside of loops, an operation that also reads other values waits until all parts are added up. A loop's step
        # rounds its sums in any case.
        is_outside = name in rules.LINEAR and all(sums) and _keeps_precision(eqn)
        places = rules.linear_in(name, sums) if self.is_within or is_outside else None
        if places is None:
            return None
        reads = [self.counted_once(one) if at in places and not sums[at] else one for at, one in enumerate(reads)]
        return self._emit(eqn, reads, [Partial(turn)] * len(eqn.outvars), {})

    def added_up(self, at: int) -> int:
        """A value with no parts' shares of a sum left to add up."""
        return self.finished(at) if isinstance(self.shares[at], Partial) else at

    def finished(self, at: int) -> int:
        """A value of all samples: the sum of the parts' shares, or the parts' rows joined."""
        share = self.shares[at]
        if isinstance(share, Whole):
            return at
        if self.is_within:
            raise RefusedError(
                "what follows from all of the batch is used for each sample within a loop or a checkpoint"
            )
        key = at, None
        if key not in self._cut:
            is_argument = at in self.inputs
            self._cut[key] = self._new(self.avals[at], Whole(share.turn + (not is_argument)))
            (self.wholes if is_argument else self.sums)[self._cut[key]] = at
        return self._cut[key]

    def counted_once(self, at: int) -> int:
        """A value that the first part alone has; others have zeros."""
        jnp = module("jax.numpy")

        def compute(values: list[Any], part: Any) -> list[Any]:
            return [jnp.where(part == 0, values[0], jnp.zeros_like(values[0]))]

        return self.step(compute, [at], [(self.avals[at], Partial(self.shares[at].turn))])[0]

    def rows(self, at: int, rows: Each) -> int:
        """A part's rows of a value that all parts share: made anew from broadcasts and elementwise steps, else cut."""
        rows = replace(rows, turn=self.shares[at].turn)
        key = at, rows
        if key not in self._cut:
            self._cut[key] = self._rows_of(at, rows)
        return self._cut[key]

    def _rows_of(self, at: int, rows: Each) -> int:
        eqn, reads = self.made.get(at, (None, []))
        name = eqn.primitive.name if eqn else None
        shape = list(self.avals[at].shape)
        shape[rows.at] //= self.parts
        if name == "broadcast_in_dim":
            places = list(eqn.params["broadcast_dimensions"])
            inner = places.index(rows.at) if rows.at in places else None
            if inner is not None and self.avals[reads[0]].shape[inner] != 1:
                reads = [self.rows(reads[0], rows.along(inner))]
            return self._emit(eqn, reads, [rows], {"shape": tuple(shape)})[0]
        if name in rules.ELEMENTWISE and len(eqn.outvars) == 1:
            wide = [self.avals[read].shape and self.avals[read].shape[rows.at] != 1 for read in reads]
            reads = [self.rows(read, rows) if is_wide else read for read, is_wide in zip(reads, wide, strict=True)]
            return self._emit(eqn, reads, [rows], {})[0]
        if self.makes_batch and tiled_bytes(self.avals[at]) > self._starts.least and eqn and len(eqn.outvars) == 1:
            made = self._made_in_rows(eqn, reads, rows)
            if made is not None:
                return made
        lax, count = module("jax.lax"), self.samples // self.parts
        if name == "iota" and eqn.params["dimension"] != rows.at:
            return self._emit(eqn, reads, [rows], {"shape": tuple(shape)})[0]
        lax, count = module("jax.lax"), self.samples // self.parts

        def compute(values: list[Any], part: Any) -> list[Any]:
            apart = values[0].reshape(self.apart(values[0].shape, rows))
            return [lax.dynamic_slice_in_dim(apart, part * count, count, rows.at + 1).reshape(shape)]

        def counted(_: list[Any], part: Any) -> list[Any]:
            numbers = lax.broadcasted_iota(self.avals[at].dtype, shape, rows.at)
            return [numbers + lax.convert_element_type(part * count, numbers.dtype)]

        is_count = name == "iota" and shape[rows.at] == count
        cut = self.step(counted if is_count else compute, [] if is_count else [at], [(self.avals[at], rows)])[0]
        if name == "iota":
            self.made[cut] = eqn, reads
        return cut

    def _made_in_rows(self, eqn: Any, reads: list[int], rows: Each) -> int | None:
        """A part's rows of a result, made of the rows that it needs of its operands; `None` if they aren't known."""
        try:
            found = origins(eqn, 0, rows, self.sizes)
        except RefusedError:
            return None
        reads = list(reads)
        for number, its in found:
            reads[number] = self.rows(reads[number], its)
        made = self._operation(eqn, reads)[0]
        share = self.shares[made]
        return made if isinstance(share, Each) and (share.at, share.inner) == (rows.at, rows.inner) else None

    def apart(self, shape: Sequence[int], rows: Each) -> tuple[int, ...]:
        """A shape with a dimension of its own for samples, the one after `rows.at`."""
        before = shape[rows.at] // (self.samples * rows.inner)
        return (*shape[: rows.at], before, self.samples, rows.inner, *shape[rows.at + 1 :])

    def _emit(self, eqn: Any, reads: list[int], shares: list[Share], params: dict[str, Any]) -> list[int]:
        changed = eqn.params | params

        def compute(values: list[Any], _: Any) -> Sequence[Any]:
            found = _bound(eqn.primitive, values, changed)
            return found if eqn.primitive.multiple_results else [found]

        results = [(var.aval, share) for var, share in zip(eqn.outvars, shares, strict=True)]
        made = self.step(compute, reads, results, eqn.primitive.name in rules.COSTLY)
        self.made.update(dict.fromkeys(made, (eqn, reads)))
        return made

    def step(
        self, compute: Any, reads: list[int], results: list[tuple[Any, Share]], is_costly: bool = False
    ) -> list[int]:
        makes = tuple(self._new(aval, share) for aval, share in results)
        self.steps.append(Step(tuple(reads), makes, compute, is_costly, self._maker))
        return list(makes)

    def within(self, jaxpr: Any, shares: list[Share]) -> Program:
        """The program of a loop's step, or of another operation's."""
        closed = jaxpr if hasattr(jaxpr, "consts") else module("jax.extend.core").ClosedJaxpr(jaxpr, ())
        return Program(closed, shares, self.sizes, is_within=True)

    def before_parts(self, read: set[int], known: set[int]) -> list[int]:
        """The values read by parts that are computed once, before all of them.

        Each part makes anew a value that takes more bytes than its source arrays, such as dequantized weights: it would
        lie beside all parts. XLA makes a value of scalars alone where it is read.
        """
        found: set[int] = set()
        waiting = list(read - known)
        while waiting:
            at = waiting.pop()
            made_of = self._made_of(at, known)
            arrays = [self._bytes(one) for one in made_of or () if self.avals[one].shape]
            if made_of is None or not 0 < sum(arrays) < self._bytes(at):
                found.add(at)
            else:
                waiting += made_of - known - found
        return sorted(found)

    def _made_of(self, at: int, known: set[int]) -> set[int] | None:
        """The sources, at hand or costly, from which cheap operations make a value; `None` if others are among them."""
        found, seen, waiting = set[int](), {at}, [at]
        while waiting:
            eqn, reads = self.made.get(waiting.pop(), (None, []))
            if eqn is None or eqn.primitive.name not in CHEAP or len(seen) > MOST_CHEAP:
                return None
            for read in reads:
                made, _ = self.made.get(read, (None, []))
                if read in known or read in self.constants or made is None or made.primitive.name not in CHEAP:
                    found.add(read)
                elif read not in seen:
                    seen.add(read)
                    waiting.append(read)
        return found

    def _bytes(self, at: int) -> int:
        aval = self.avals[at]
        return int(aval.size) * int(aval.dtype.itemsize)

    def needed(self, wanted: set[int], known: set[int]) -> list[Step]:
        """The steps that make the wanted values from the known ones, in order."""
        wanted = set(wanted) - known
        found: list[Step] = []
        for step in reversed(self.steps):
            if wanted.intersection(step.makes):
                found.append(step)
                wanted |= set(step.reads) - known
        return found[::-1]

    def run(self, wanted: list[int], known: dict[int, Any], part: Any) -> list[Any]:
        values = self.constants | known
        for step in self.needed(set(wanted), set(values)):
            with internals.traced_as(step.maker):
                made = step.compute([values[at] for at in step.reads], part)
            values.update(zip(step.makes, made, strict=True))
        return [values[at] for at in wanted]


def _bound(primitive: Any, values: list[Any], params: dict[str, Any]) -> Any:
    given: tuple[Sequence[Any], dict[str, Any]] | dict[str, Any] = primitive.get_bind_params(params)
    # Until JAX 0.11, callables were apart.
    callables, rest = ((), given) if isinstance(given, dict) else given
    return primitive.bind(*callables, *values, **rest)


def _keeps_precision(eqn: Any) -> bool:
    """A sum that becomes narrower is rounded once, not for each part."""
    if eqn.primitive.name != "convert_element_type":
        return True
    before, after = (atom.aval.dtype.itemsize for atom in (eqn.invars[0], eqn.outvars[0]))
    return bool(after >= before)
