"""The plan of a function, which `audit`, `check_fix` and locks read."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewise._base.errors import Error
from tilewise._base.files import cache_folder
from tilewise._base.modules import module
from tilewise._base.progress import elapsed
from tilewise._compiler.cache import Cache
from tilewise._compiler.modes import exact_modes
from tilewise._compiler.process import Answer, Mode, report_of, shared
from tilewise._compiler.program import NotSendable, Program, sendable
from tilewise._explain import explain_oom
from tilewise._jax.dump import dumped
from tilewise._jax.lowering import Request, lower_on

if TYPE_CHECKING:
    from tilewise._tilewise import Report


@dataclass(frozen=True)
class Plan:
    """The compiler's plan of a function: its audit, its code's bytes if compiled in full, and the program."""

    report: Report
    code_bytes: int | None
    program: Program | None


def plan_of(request: Request, *, hbm_limit: int | None = None, confirm: bool = False) -> Plan:
    """The plan of a function, also where it does not fit; JAX's error where it is refused for another reason."""
    f, tpu = request.f, request.tpu
    source = getattr(f, "__name__", type(f).__name__)
    begun = time.perf_counter()
    with shared(request.libtpu) as compiler:
        compiler.start()
        name, lowered = request.topology, getattr(f, "lowered", f)
        if not hasattr(lowered, "compile"):
            with elapsed(f"tracing {source}"):
                name, lowered = lower_on(request)
        try:
            program = sendable(lowered, request.generation, name, begun)
        except NotSendable:
            if compiler.libtpu is not None:
                message = (
                    f"libtpu {compiler.libtpu} runs in a process of its own, and this program calls back into this one"
                )
                raise Error(message, kind="not_sendable") from None
            # Compiled in full, in this process.
            with explain_oom(tpu=tpu):
                text = dumped(lowered)
            return Plan(report_of(text, source, request.generation, hbm_limit), None, None)
        mode: Mode = "full" if confirm or not exact_modes(compiler).stop else "stop"

        def ask() -> Answer:
            with elapsed(f"compiling {source} for {program.topology} with {compiler.version}"):
                return compiler.ask(program, mode, source=source, hbm_limit=hbm_limit)

        cache = Cache(cache_folder(), compiler.libtpu)
        answer, _ = cache.asked(program.with_lines, mode, hbm_limit, ask, source)
    report = answer.report
    is_late = confirm and answer.status == "refused" and report is not None and report.fits
    if answer.status == "failed" and compiler.libtpu is not None:
        message = f"{compiler.version} can't compile what JAX lowers here: {answer.error}"
        help = "JAX writes Pallas kernels for the libtpu of its own time; older ones may not read them"
        raise Error(message, kind="other_libtpu", help=help)
    if report is None or is_late or answer.status not in ("fits", "planned", "refused"):
        raised = module("jax").errors.JaxRuntimeError
        with explain_oom(tpu=tpu):
            raise raised(answer.error)
    return Plan(report, None if answer.sizes is None else answer.sizes.code_bytes, program)
