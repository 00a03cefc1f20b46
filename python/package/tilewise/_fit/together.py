"""``tilewise audit --together`` of programs in Python: factories, each of one program or of several by name.

Of a server's, the most cache pages that fit are searched: each compiled set gives the next count.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewise._audit.together import Together, audit_together
from tilewise._fit.adapters import Adapter
from tilewise._fit.factory import factory, is_set, parts_of, takes
from tilewise._fit.settings import setting

if TYPE_CHECKING:
    from tilewise._base.types import Member

_PREDICTED = 6
"""The most predictions of sets that are followed; after that, the search for the most pages bisects."""


def fitted(given: argparse.Namespace, axis: str, counts: Sequence[int]) -> tuple[Together, list[int]] | None:
    """A server's programs with as many pages as fit, and the counts they were compiled for; ``None`` of one program."""
    make = factory(given.program, given.allow_module)

    def programs(count: int) -> Any:
        return make(**{axis: count})

    try:
        if isinstance(make, Adapter) or not is_set(programs(counts[0])):
            return None
    # A factory may raise anything; the search for one program tells it.
    except Exception:
        return None

    def ask(count: int) -> Together:
        print(f"compiling for {axis}={count}", file=sys.stderr, flush=True)
        members = {str(name): parts_of(each) for name, each in programs(count).items()}
        return audit_together(members, tpu=given.tpu, hbm_limit=given.hbm_limit, topology=given.topology)

    found, asked = largest(counts, ask)
    return found, sorted(asked)


def largest(counts: Sequence[int], ask: Callable[[int], Together]) -> tuple[Together, dict[int, Together]]:
    """The set with the largest count that fits, or the smallest that was asked about if none does, and all that were.

    Counts ascend, and more pages take more bytes.
    """
    asked: dict[int, Together] = {}
    left = list(counts)
    while left:
        count = _next(left, asked)
        asked[count] = said = ask(count)
        left = [each for each in left if (each > count if said.fits else each < count)]
    fitting = [count for count, said in asked.items() if said.fits]
    return asked[max(fitting) if fitting else min(asked)], asked


def _next(left: Sequence[int], asked: dict[int, Together]) -> int:
    """The count to ask about next: the last set's prediction, then the one above."""
    if not asked:
        return left[0]
    pages = [*asked.values()][-1].pages
    if pages is None or pages.fitting is None or len(asked) > _PREDICTED:
        return left[len(left) // 2]
    return max((count for count in left if count <= (pages.fitting or 0)), default=left[0])


def summed(given: argparse.Namespace) -> Together:
    """The memory of the command line's programs together.

    Raises:
        ValueError: two have one name, or no TPU is given.
    """
    if given.tpu is None:
        raise ValueError("say which TPU the programs are for: --tpu v5e")
    settings = dict(map(setting, given.set))
    programs: dict[str, Member] = {}
    for program in given.program:
        _, colon, factory_name = program.rpartition(":")
        if not colon or Path(program).exists():
            made: dict[str, Member] = {program: program}
        else:
            make = factory(program, given.allow_module)
            returned: Any = make(**{name: value for name, value in settings.items() if takes(make, name)})
            several = returned if is_set(returned) else {factory_name: returned}
            made = {str(name): parts_of(value) for name, value in several.items()}
        for name, member in made.items():
            if name in programs:
                raise ValueError(f"two programs are called {name!r}: name them in one factory that returns a dict")
            programs[name] = member
    return audit_together(
        programs,
        tpu=given.tpu,
        hbm_limit=given.hbm_limit,
        topology=given.topology,
        pages=given.pages,
        libtpu=given.libtpu,
    )
