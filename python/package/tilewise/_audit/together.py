"""`audit_together`: the memory of programs that are loaded on one device at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tilewise import _tilewise
from tilewise._audit.audit import audit
from tilewise._base.limits import hbm_of
from tilewise._base.results import read
from tilewise._base.types import Limit, Member, Tpu
from tilewise._compiler.compile import plan_of
from tilewise._jax.lowering import Request
from tilewise._tilewise import Report


@dataclass(frozen=True)
class LoadedProgram:
    """The memory that a program adds to its set; sizes are in bytes, on one device.

    Attributes:
        name: its name in the set.
        module: the module's name.
        argument_bytes, output_bytes, alias_bytes, temporary_bytes: as ``memory_analysis()`` has them.
        fragmentation_bytes: the bytes of its temporaries that are unused at its peak.
        constant_bytes: its constants.
        code_bytes: its code; ``None`` where it is known from its text alone.
        call_bytes: inputs and new results that a call of it holds beside the resident arrays.
        undonated_bytes: new results that could take the place of arrays it is given.
        bytes_per_page: by how much its temporaries and results grow with a page of the cache.
        decides: whether its temporaries, inputs and new results together are the largest.
        freed_bytes: the bytes that the set saves without it.
        costs_pages: how many pages more fit without it; ``None`` without pages, a limit or other programs.
    """

    name: str
    module: str
    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temporary_bytes: int
    fragmentation_bytes: int
    constant_bytes: int
    code_bytes: int | None
    call_bytes: int
    undonated_bytes: int
    bytes_per_page: int
    decides: bool
    freed_bytes: int
    costs_pages: int | None


@dataclass(frozen=True)
class ResidentArray:
    """An array that is held whichever program runs.

    Attributes:
        name: the argument's name, such as ``params['w']``.
        shape: its shape and layout.
        bytes, padding_bytes: its size, and the padding in it.
        programs: names of the programs that have it.
        donated_to: those of them that it is donated to.
        is_pages: whether it is a part of the cache.
        is_laid_out_otherwise: whether other programs have it in another layout: it is held in each.
    """

    name: str
    shape: str
    bytes: int
    padding_bytes: int
    programs: tuple[str, ...]
    donated_to: tuple[str, ...]
    is_pages: bool
    is_laid_out_otherwise: bool


@dataclass(frozen=True)
class PageArrays:
    """The pages of a set's cache.

    Attributes:
        arrays: how many arrays there are, such as one a layer.
        name, shape: of the first.
        dimension: which of its dimensions counts pages.
        count: how many pages the programs were compiled for.
        page_bytes, page_padding_bytes: the bytes of a page in all arrays, and the padding in them.
        fitting: how many pages fit; ``None`` without a limit.
        decided_by: the program that then holds the most beside the resident arrays.
    """

    arrays: int
    name: str
    shape: str
    dimension: int
    count: int
    page_bytes: int
    page_padding_bytes: int
    fitting: int | None
    decided_by: str | None


@dataclass(frozen=True)
class Alternative:
    """A change of the set.

    Attributes:
        kind: ``donate`` arrays that it returns again, ``drop`` a program, ``narrow`` pages to int8, or pages in a
            ``layout`` without padding.
        program: the program that it is about.
        sentence: the change in words.
        freed_bytes: the bytes that the set saves.
        is_bound: whether it may be less.
        pages: how many pages fit then.
    """

    kind: Literal["donate"] | Literal["drop"] | Literal["narrow"] | Literal["layout"]
    program: str | None
    sentence: str
    freed_bytes: int
    is_bound: bool
    pages: int | None


@dataclass(frozen=True)
class Together:
    """The memory of programs that are loaded on one device at once; it prints as text.

    Attributes:
        machine: the machine that all are compiled for, such as ``tpu:v6e``.
        resident_bytes: arrays that are held whichever program runs, each once.
        largest_temporaries: those of the largest program, which the runtime reserves while it is loaded.
        call_bytes: inputs and new results of the largest call.
        constant_bytes, code_bytes: of all programs; code is ``None`` where one's isn't known.
        total_bytes: all of it.
        limit_bytes: the HBM that there is.
        fits: whether it fits; ``None`` without a limit, or where code decides that isn't known.
        programs, residents: its parts.
        pages: the pages of the cache; ``None`` if no argument is one.
        options: changes that free memory or make room for pages, the most first.

    Examples:
        >>> server.resident_bytes
        4194304
    """

    machine: str
    resident_bytes: int
    largest_temporaries: int
    call_bytes: int
    constant_bytes: int
    code_bytes: int | None
    total_bytes: int
    limit_bytes: int | None
    fits: bool | None
    programs: tuple[LoadedProgram, ...]
    residents: tuple[ResidentArray, ...]
    pages: PageArrays | None
    options: tuple[Alternative, ...]
    _text: str
    _page: str

    def __str__(self) -> str:
        return self._text

    def to_json(self) -> str:
        """All of it as JSON: the ``Together`` of docs/json.md.

        Examples:
            >>> import json
            >>> json.loads(server.to_json())["machine"]
            'tpu:v5e'
        """
        held = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return json.dumps(held, default=vars)

    def to_html(self) -> str:
        """A page in one file: a bar of the held memory, each program beneath, and all of the printed text.

        Examples:
            >>> server.to_html()[:15]
            '<!doctype html>'
        """
        return self._page

    def _repr_html_(self) -> str:
        return self._page


def audit_together(
    programs: Mapping[str, Member] | Sequence[Member],
    *,
    tpu: Tpu | None = None,
    hbm_limit: Limit | None = None,
    topology: str | None = None,
    pages: str | None = None,
    confirm: bool = True,
    libtpu: str | None = None,
) -> Together:
    """Sum up programs that are loaded on one device at once, such as the buckets of a server.

    Arguments that several programs have, by name, type, dimensions and layout, are one array, held all the time. An
    argument whose dimensions differ between programs is an input of a call. The runtime reserves the largest
    temporaries of all loaded programs, whether or not that program runs.

    Args:
        programs: by name, or in order: reports, inputs of `audit`, or functions as ``(f, args)`` or ``(f, args,
            jit_options)``.
        tpu: the generation; functions are compiled for it.
        hbm_limit: the memory that there is, by default the generation's: bytes, text such as ``"14GiB"``, or a share,
            ``"90%"``.
        topology: the slice that functions are compiled for.
        pages: the argument that is the cache, or the tree of its arrays, such as ``"caches"``, and with ``"caches:1"``
            the dimension that counts pages; by default the arrays that are donated and that all programs have, along
            dimension 0.
        confirm: compile functions to the end: only then the size of their code is known.
        libtpu: the version that compiles functions, by default the installed one.

    Raises:
        Error: there is no program, one has no plan, or they are of different machines.
        And the errors of `audit`.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> def prefill(w, x):
        ...     return jnp.tanh(x @ w)
        >>> w = jax.ShapeDtypeStruct((1024, 1024), "float32")
        >>> buckets = {n: (prefill, (w, jax.ShapeDtypeStruct((n, 1024), "float32"))) for n in (128, 2048)}
        >>> server = audit_together({f"prefill_{n}": each for n, each in buckets.items()}, tpu="v5e", confirm=False)
        >>> server.resident_bytes, server.call_bytes
        (4194304, 16777216)
    """
    if isinstance(programs, (str, bytes)):
        raise TypeError("several programs are wanted, in a list or by their names: [program], {'step': program}")

    def audited(member: Member) -> tuple[Report, int | None]:
        """The audit of a program, and the bytes of its code where it is compiled."""
        if isinstance(member, Report):
            return member, None
        if not isinstance(member, tuple):
            analysis = getattr(member, "memory_analysis", lambda: None)()
            return audit(member, tpu=tpu), getattr(analysis, "generated_code_size_in_bytes", None)
        if tpu is None:
            raise TypeError("functions are compiled for a TPU: say which, as in audit_together(programs, tpu='v5e')")
        f, args, *rest = member
        plan = plan_of(Request(f, tuple(args), tpu, topology, rest[0] if rest else None, libtpu), confirm=confirm)
        return plan.report, plan.code_bytes

    named = programs.items() if isinstance(programs, Mapping) else [(None, each) for each in programs]
    summed = [(report, name, code) for name, member in named for report, code in [audited(member)]]
    held, text, page = _tilewise.sum_together(summed, hbm_of(hbm_limit, tpu, None), pages)
    found: Together = read(Together, {**json.loads(held), "_text": text, "_page": page})
    return found
