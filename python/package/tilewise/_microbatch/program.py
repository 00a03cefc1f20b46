"""A traced program, rewritten for a part of the batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewise._base.modules import module
from tilewise._jax import internals
from tilewise._jax.equations import tiled_bytes
from tilewise._jax.jaxprs import CHECKPOINTS, INLINED, evaluated, opened
from tilewise._microbatch import rules
from tilewise._microbatch.counts import counted_anew, own_column
from tilewise._microbatch.origins import Starts, origins
from tilewise._microbatch.rules import Each, Operation, Partial, RefusedError, Share, Whole, merged

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
    pass may compute costly operations again.
    """

    def __init__(
        self,
        closed: Any,
        shares: list[Share],
        sizes: tuple[int, int],
        is_within: bool = False,
        starts: Starts | None = None,
        recomputes: bool = False,
    ) -> None:
        self.samples, self.parts = self.sizes = sizes
        self.is_within, self._starts = is_within, starts or Starts({}, 0)
        self.recomputes = recomputes or self.makes_batch
        self.shares: dict[int, Share] = {}
        self.avals: dict[int, Any] = {}
        self.constants: dict[int, Any] = {}
        self.steps: list[Step] = []
        self.sums: dict[int, int] = {}
        """By value known once all parts are added up or joined, a part's share of it."""
        self._joined: list[tuple[int, RefusedError]] = []
        self.made: dict[int, tuple[Any, list[int]]] = {}
        self._maker: Any = None
        self._cut: dict[tuple[int, Each | None], int] = {}
        self.inputs = [self._new(var.aval, share) for var, share in zip(closed.jaxpr.invars, shares, strict=True)]
        self.results = self.call(closed.jaxpr, closed.consts, self.inputs)
        largest = max((self._bytes(at) for at, share in self.shares.items() if isinstance(share, Each)), default=0)
        for at, error in self._joined:
            if self._bytes(at) * SMALL > largest:
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
        if name in INLINED and INLINED[name] in eqn.params:
            callee = eqn.params[INLINED[name]]
            return self.call(opened(callee), getattr(callee, "consts", ()), reads, eqn)
        if name == "optimization_barrier":
            return reads
        if name == "custom_linear_solve":
            return self._solved(eqn, reads)
        shares = [self.shares[at] for at in reads]
        if all(isinstance(share, Whole) for share in shares):
            turn = max((share.turn for share in shares), default=0)
            return self._emit(eqn, reads, [Whole(turn)] * len(eqn.outvars), {})
        found = self._of_sums(eqn, reads, shares)
        if found is not None:
            return found
        reads = [self.added_up(at) for at in reads]
        if name in LOOPS:
            # Within, passes are counted anew.
            shares = [replace(self.shares[at], turn=0) for at in reads]
            try:
                return LOOPS[name](self, eqn, list(reads), shares)
            except RefusedError as error:
                if not self.makes_batch:
                    raise
                return self._of_all(eqn, reads, error)
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

    def _solved(self, eqn: Any, reads: list[int]) -> list[int]:
        """The solver's results; the programs for gradients, such as the transpose, are left out."""
        lengths, solve = eqn.params["const_lengths"], eqn.params["jaxprs"].solve
        first = lengths.matvec + lengths.vecmat
        last = first + lengths.solve
        sides = last + lengths.transpose_solve
        return self.call(solve.jaxpr, solve.consts, reads[first:last] + reads[sides:], eqn)

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
        # Outside of loops, an operation that also reads other values waits until all parts are added up.
        if self.is_within and name in rules.SCALING and sum(sums) == 1 and (sums[0] or name == "mul"):
            return self._emit(eqn, reads, [Partial(turn)], {})
        # A loop's step rounds its sums in any case.
        is_outside = name in rules.LINEAR and all(sums) and _keeps_precision(eqn)
        if not is_outside and not (self.is_within and name in rules.LINEAR | rules.MOVING):
            return None
        reads = [at if is_sum else self.counted_once(at) for at, is_sum in zip(reads, sums, strict=True)]
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
            self._cut[key] = self._new(self.avals[at], Whole(share.turn + 1))
            self.sums[self._cut[key]] = at
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


def _inner(program: Program, jaxpr: Any, shares: list[Share]) -> Program:
    """The program of a loop's step, or of another operation's."""
    closed = jaxpr if hasattr(jaxpr, "consts") else module("jax.extend.core").ClosedJaxpr(jaxpr, ())
    return Program(closed, shares, program.sizes, is_within=True)


def _known(inputs: Sequence[int], values: Sequence[Any]) -> dict[int, Any]:
    """The values of inputs, of those that have one."""
    return {at: value for at, value in zip(inputs, values, strict=True) if value is not None}


def _keeps_precision(eqn: Any) -> bool:
    """A sum that becomes narrower is rounded once, not for each part."""
    if eqn.primitive.name != "convert_element_type":
        return True
    before, after = (atom.aval.dtype.itemsize for atom in (eqn.invars[0], eqn.outvars[0]))
    return bool(after >= before)


def _split(items: list[Any], *counts: int) -> list[list[Any]]:
    found: list[list[Any]] = []
    at = 0
    for count in counts:
        found.append(items[at : at + count])
        at += count
    return [*found, items[at:]]


def _carried(
    shares: list[Share], step: Callable[[list[Share]], tuple[Program, list[Share]]]
) -> tuple[Program, list[Share]]:
    """A loop's body, once its carried values have equal shares before and after a step."""
    for _ in range(len(shares) + 2):
        body, after = step(shares)
        joined = [merged(one, other) for one, other in zip(shares, after, strict=True)]
        if joined == shares:
            return body, shares
        shares = joined
    raise RefusedError("a loop mixes samples")


def _given(program: Program, at: int, share: Share) -> int:
    """A value with the share that a loop carries in its place."""
    own = program.shares[at]
    if isinstance(own, Whole) and isinstance(share, Each):
        return program.rows(at, share)
    if isinstance(own, Whole) and isinstance(share, Partial):
        return program.counted_once(at)
    return at


def _emit_loop(program: Program, eqn: Any, reads: list[int], shares: list[Share], run: Any) -> list[int]:
    """A loop as two: values that all parts share are computed once, the rest for each part."""
    turn = max(program.shares[at].turn for at in reads)
    made: dict[int, int] = {}

    def compute(is_read: list[bool], places: list[int], values: list[Any], part: Any) -> list[Any]:
        given = iter(values)
        found: list[Any] = run([next(given) if is_it else None for is_it in is_read], part, places)
        return found

    for is_whole in (True, False):
        places = [at for at, share in enumerate(shares) if isinstance(share, Whole) == is_whole]
        if not places:
            continue
        results = [(eqn.outvars[at].aval, replace(shares[at], turn=turn)) for at in places]

        # The loop for values that all parts share reads nothing of samples.
        is_read = [not is_whole or isinstance(program.shares[at], Whole) for at in reads]
        needed = [at for at, is_it in zip(reads, is_read, strict=True) if is_it]
        step = functools.partial(compute, is_read, places)
        made.update(zip(places, program.step(step, needed, results, not is_whole), strict=True))
    return [made[at] for at in range(len(shares))]


def _scan(program: Program, eqn: Any, reads: list[int], shares: list[Share]) -> list[int]:
    lax, params = module("jax.lax"), eqn.params
    scan = internals.Scan.of(eqn)
    counts = scan.consts, scan.carry
    consts, carry, xs = _split(shares, *counts)
    for share in xs:
        if isinstance(share, Each) and share.at == 0:
            raise RefusedError("a loop goes over the batch")
    rows = [share.along(share.at - 1) if isinstance(share, Each) else share for share in xs]

    def step(carry: list[Share]) -> tuple[Program, list[Share]]:
        body = _inner(program, params["jaxpr"], [*consts, *carry, *rows])
        return body, [body.shares[at] for at in body.results[: counts[1]]]

    body, carry = _carried(carry, step)
    starts = reads[counts[0] : counts[0] + counts[1]]
    reads[counts[0] : counts[0] + counts[1]] = [
        _given(program, at, share) for at, share in zip(starts, carry, strict=True)
    ]
    stacked = [body.shares[at] for at in body.results[counts[1] :]]
    stacked = [share.along(share.at + 1) if isinstance(share, Each) else share for share in stacked]
    results = [*carry, *stacked]

    def run(values: list[Any], part: Any, places: list[int]) -> list[Any]:
        consts, start, xs = _split(values, *counts)
        # The wanted values may need more of the carried ones.
        carried = _closure(body, [body.results[at] for at in places], counts)
        known = _known(body.inputs[: counts[0]], consts)
        rows = _known(body.inputs[sum(counts) :], xs)
        asked = [at for at in places if at >= counts[1]]

        def one(state: list[Any], rows: dict[int, Any]) -> tuple[list[Any], list[Any]]:
            given = _known([body.inputs[counts[0] + at] for at in carried], state)
            wanted = [body.results[at] for at in [*carried, *asked]]
            found = body.run(wanted, known | given | rows, part)
            return found[: len(carried)], found[len(carried) :]

        options = {name: params[name] for name in ("length", "reverse", "unroll")}
        end, ys = lax.scan(one, [start[at] for at in carried], rows, **options)
        found = dict(zip(carried, end, strict=True)) | dict(zip(asked, ys, strict=True))
        return [found[at] for at in places]

    return _emit_loop(program, eqn, reads, results, run)


def _closure(body: Program, wanted: list[int], counts: tuple[int, int]) -> list[int]:
    """The places of all values that a loop must carry to make the wanted ones."""
    inputs = {at: place for place, at in enumerate(body.inputs[counts[0] : sum(counts)])}
    places = {place for place, at in enumerate(body.results[: counts[1]]) if at in wanted}
    while True:
        targets = {*wanted, *(body.results[place] for place in places)}
        read = {at for step in body.needed(targets, set(body.constants)) for at in step.reads} | targets
        found = places | {inputs[at] for at in read if at in inputs}
        if found == places:
            return sorted(places)
        places = found


def _while(program: Program, eqn: Any, reads: list[int], shares: list[Share]) -> list[int]:
    lax, params = module("jax.lax"), eqn.params
    counts: tuple[int, int] = params["cond_nconsts"], params["body_nconsts"]
    asked, consts, carry = _split(shares, *counts)

    def step(carry: list[Share]) -> tuple[Program, list[Share]]:
        body = _inner(program, params["body_jaxpr"], [*consts, *carry])
        return body, [body.shares[at] for at in body.results]

    body, carry = _carried(carry, step)
    condition = _inner(program, params["cond_jaxpr"], [*asked, *carry])
    if not isinstance(condition.shares[condition.results[0]], Whole):
        raise RefusedError("samples decide how often a loop runs")
    first = sum(counts)
    reads[first:] = [_given(program, at, share) for at, share in zip(reads[first:], carry, strict=True)]

    def run(values: list[Any], part: Any, places: list[int]) -> list[Any]:
        asked, consts, start = _split(values, *counts)
        of_condition: dict[int, int] = {condition.inputs[counts[0] + at]: at for at in range(len(start))}
        read = {at for step in condition.steps for at in step.reads} | {condition.results[0]}
        wanted = [body.results[at] for at in {*places, *(of_condition[at] for at in read if at in of_condition)}]
        carried = _closure(body, wanted, (counts[1], len(start)))

        def again(state: list[Any]) -> Any:
            given = _known([condition.inputs[counts[0] + at] for at in carried], state)
            return condition.run(condition.results, _known(condition.inputs[: counts[0]], asked) | given, part)[0]

        def one(state: list[Any]) -> list[Any]:
            given = _known([body.inputs[counts[1] + at] for at in carried], state)
            wanted = [body.results[at] for at in carried]
            return body.run(wanted, _known(body.inputs[: counts[1]], consts) | given, part)

        found = dict(zip(carried, lax.while_loop(again, one, [start[at] for at in carried]), strict=True))
        return [found[at] for at in places]

    return _emit_loop(program, eqn, reads, carry, run)


def _cond(program: Program, eqn: Any, reads: list[int], shares: list[Share]) -> list[int]:
    lax = module("jax.lax")
    if not isinstance(shares[0], Whole):
        raise RefusedError("samples decide which branch runs")
    branches = [_inner(program, branch, shares[1:]) for branch in eqn.params["branches"]]
    results = [branches[0].shares[at] for at in branches[0].results]
    for branch in branches[1:]:
        others = (branch.shares[at] for at in branch.results)
        results = [merged(one, other) for one, other in zip(results, others, strict=True)]
    for branch in branches:
        branch.results = [_given(branch, at, share) for at, share in zip(branch.results, results, strict=True)]

    def run(values: list[Any], part: Any, places: list[int]) -> list[Any]:
        index, *rest = values

        def of(branch: Program) -> Callable[..., list[Any]]:
            known = _known(branch.inputs, rest)
            return lambda: branch.run([branch.results[at] for at in places], known, part)

        return list(lax.switch(index, [of(branch) for branch in branches]))

    return _emit_loop(program, eqn, reads, results, run)


def _checkpoint(program: Program, eqn: Any, reads: list[int], shares: list[Share]) -> list[int]:
    jax, params = module("jax"), eqn.params
    try:
        within = _inner(program, params["jaxpr"], shares)
    except RefusedError:
        # The checkpoint is lost, not its values.
        return program.call(params["jaxpr"], (), reads, eqn)

    def run(values: list[Any], part: Any, places: list[int]) -> list[Any]:
        given = _known(within.inputs, values)
        if params.get("prevent_cse") and params.get("differentiated"):
            given = jax.lax.optimization_barrier(given)
        return within.run([within.results[at] for at in places], given, part)

    return _emit_loop(program, eqn, reads, [within.shares[at] for at in within.results], run)


LOOPS: dict[str, Callable[[Program, Any, list[int], list[Share]], list[int]]] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    **dict.fromkeys(CHECKPOINTS, _checkpoint),
}
"""Operations with programs of their own."""
