"""Old names, which keep working."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def renamed(new: str) -> Callable[[Callable[[Any], _Result]], Callable[[Any], _Result]]:
    """For the getter of an old name: it warns, and says the new one."""

    def decorate(getter: Callable[[Any], _Result]) -> Callable[[Any], _Result]:
        @functools.wraps(getter)
        def wrapper(self: Any) -> _Result:
            warnings.warn(f"`{getter.__name__}` is `{new}` now", DeprecationWarning, stacklevel=2)
            return getter(self)

        return wrapper

    return decorate
