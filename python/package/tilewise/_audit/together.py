"""`audit_together`: the memory of programs that are loaded on one device at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewise import _tilewise
from tilewise._audit.audit import audit
from tilewise._base.limits import hbm_of
from tilewise._base.types import Limit, Member, Tpu
from tilewise._compiler.compile import plan_of
from tilewise._jax.lowering import Request
from tilewise._tilewise import Report, Together


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
    return _tilewise.sum_together(summed, hbm_of(hbm_limit, tpu, None), pages)
