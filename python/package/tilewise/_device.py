"""Devices that aren't there, for code that asks JAX which TPU it runs on."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

from tilewise._modules import module

_KINDS = {"v4": "TPU v4", "v5e": "TPU v5 lite", "v5p": "TPU v5", "v6e": "TPU v6 lite", "v7x": "TPU7x"}


def asks_for_the_device(error: Exception) -> bool:
    """Whether it comes of JAX's own look at the device, which is no TPU."""
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_name in ("_get_tpu_generation", "get_tpu_info", "get_device_kind"):
            return True
        traceback = traceback.tb_next
    return False


def abstract_device(jax: Any, generation: str) -> contextlib.AbstractContextManager[Any] | None:
    """The context of one device of a generation; ``None`` where JAX knows no abstract devices, or none of that kind."""
    try:
        abstract = module("jax._src.mesh").AbstractDevice
        kind = _KINDS[generation]
    except (AttributeError, KeyError):
        return None
    fields = {"device_kind": kind, "num_cores": 1, "platform": "tpu"}
    known = inspect.signature(abstract).parameters
    device = abstract(**{name: value for name, value in fields.items() if name in known})
    mesh = jax.sharding.AbstractMesh((1,), ("_",), abstract_device=device)
    context: contextlib.AbstractContextManager[Any] = jax.sharding.use_abstract_mesh(mesh)
    return context
