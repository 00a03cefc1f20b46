"""Devices that aren't there, for code that asks JAX which TPU it runs on."""

from __future__ import annotations

import contextlib
from typing import Any

from tilewise import _internals

_KINDS = {"v4": "TPU v4", "v5e": "TPU v5 lite", "v5p": "TPU v5", "v6e": "TPU v6 lite", "v7x": "TPU7x"}


def asks_for_the_device(error: Exception) -> bool:
    """Whether it comes of JAX's own look at the device, which isn't a TPU."""
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_name in ("_get_tpu_generation", "get_tpu_info", "get_device_kind"):
            return True
        traceback = traceback.tb_next
    return False


def abstract_device(generation: str) -> contextlib.AbstractContextManager[Any] | None:
    """The context of one device of a generation; ``None`` where JAX knows no abstract devices, or none of that kind."""
    kind = _KINDS.get(generation)
    return None if kind is None else _internals.abstract_device_context(kind)
