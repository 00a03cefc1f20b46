"""Stand-in devices for code that asks JAX which TPU it runs on.

Kernels choose their blocks by ``jax.devices()[0].device_kind``, ``jax.default_backend()`` or ``pltpu.get_tpu_info()``.
While a function is traced for a TPU, these answer for that TPU, in the thread that traces and nowhere else. Values
that a module kept from before, at its import or in a cache of its own, are out of reach.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from tilewise import _tilewise
from tilewise._base.modules import module
from tilewise._jax import internals

_KINDS = {
    "v2": "TPU v2",
    "v3": "TPU v3",
    "v4": "TPU v4",
    "v5e": "TPU v5 lite",
    "v5p": "TPU v5",
    "v6e": "TPU v6 lite",
    "v7x": "TPU7x",
}

_T = TypeVar("_T")
_LOCK = threading.RLock()


class _Device:
    platform, process_index, local_hardware_id, core_on_chip, slice_index = "tpu", 0, 0, 0, 0

    def __init__(self, generation: str, number: int, unanswered: set[str]) -> None:
        self.device_kind, self.id, self.num_cores, self.coords = _KINDS[generation], number, 1, (number, 0, 0)
        self._generation, self._unanswered = generation, unanswered

    def __repr__(self) -> str:
        return f"TpuDevice(id={self.id}, {self.device_kind})"

    def memory_stats(self) -> dict[str, int]:
        return {"bytes_limit": _tilewise.hbm_bytes(self._generation), "bytes_in_use": 0, "peak_bytes_in_use": 0}

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            self._unanswered.add(f"a device's `{name}`")
        raise AttributeError(f"this stand-in for a TPU has no `{name}`")


def traced_for(generation: str, trace: Callable[[], _T], devices: Sequence[Any] = ()) -> _T:
    """The result of `trace`, called while JAX answers for a TPU of that generation: stand-ins, or these devices.

    Warns of unanswered questions. Where the function can't be traced so, it is traced as this machine answers,
    with a warning if it asked anything.
    """
    answered, unanswered = set[str](), set[str]()
    try:
        devices = devices or [_Device(generation, at, unanswered) for at in range(module("jax").device_count())]
        with _answering(generation, devices, answered):
            found = trace()
    except Exception as error:
        try:
            found = trace()
        except Exception:
            raise error from None
        if answered:
            _warn(
                f"the function can't be traced as on a {generation}, and was traced with this machine's devices: "
                f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            )
        return found
    if unanswered:
        _warn(f"the function asks for {', '.join(sorted(unanswered))}, which is not known of a {generation} here")
    return found


def _warn(words: str) -> None:
    warnings.warn(words, stacklevel=4)


@contextlib.contextmanager
def _answering(generation: str, devices: Sequence[Any], answered: set[str]) -> Generator[None]:
    """Answers this thread's questions to JAX about its devices for a generation of TPU, while it lasts."""
    jax = module("jax")

    def of_tpus(question: str, answer: Any) -> Callable[..., Any]:
        original = getattr(jax, question)

        def asks(*args: Any, **kwargs: Any) -> Any:
            backend = kwargs.get("backend", next((each for each in args if isinstance(each, str)), None))
            return answer if backend in (None, "tpu") else original(*args, **kwargs)

        return asks

    def noted(name: str, answer: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        answered.add(name)
        return answer(*args, **kwargs)

    kind = _KINDS[generation]
    answers: dict[tuple[Any, str], Callable[..., Any]] = {
        **{(jax, question): of_tpus(question, list(devices)) for question in ("devices", "local_devices")},
        **{(jax, question): of_tpus(question, len(devices)) for question in ("device_count", "local_device_count")},
        (jax, "default_backend"): lambda: "tpu",
        **dict.fromkeys(internals.questions("get_device_kind"), lambda: kind),
        **dict.fromkeys(internals.questions("get_num_device_cores"), lambda: 1),
    }
    with _LOCK, contextlib.ExitStack() as stack:
        for (owner, name), answer in answers.items():
            stack.enter_context(internals.replaced(owner, name, functools.partial(noted, name, answer)))
        context = internals.abstract_device_context(kind)
        if context is not None:
            stack.enter_context(context)
        else:
            # A trace for another TPU would be found now, and this one later.
            internals.forget_traces()
            stack.callback(internals.forget_traces)
        yield
