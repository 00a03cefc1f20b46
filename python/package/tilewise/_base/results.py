"""Base classes of results that are made in Python: sequences, and tables that pass through JSON."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints, overload

from tilewise._tilewise import Owner, Shape, Tabular

if TYPE_CHECKING:
    from typing_extensions import Self

_Element = TypeVar("_Element")
_hints = functools.cache(get_type_hints)


def read(kind: Any, held: Any) -> Any:
    """A value of a type from its JSON: dataclasses from objects, tuples from arrays; `TypeError` without a field."""
    if kind is Shape:
        return Shape(held)
    if kind is Owner:
        return Owner(**held)
    if is_dataclass(kind):
        made: Any = kind
        return made(**{name: read(hint, held[name]) for name, hint in _hints(made).items() if name in held})
    arguments = get_args(kind)
    if get_origin(kind) is tuple:
        return tuple(read(arguments[0], each) for each in held)
    if type(None) in arguments:
        return None if held is None else read(arguments[0], held)
    return held


class Listed(Sequence[_Element]):
    """A result that is a sequence of the elements of its first field."""

    @overload
    def __getitem__(self, index: int) -> _Element: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[_Element, ...]: ...
    def __getitem__(self, index: int | slice) -> Any:
        shown: Any = self
        return getattr(shown, fields(shown)[0].name)[index]

    def __len__(self) -> int:
        return len(self[:])


class Shown(Tabular):
    """A table that passes through JSON."""

    def _held(self) -> dict[str, Any]:
        """Its parts, as JSON has them."""
        shown: Any = self
        return asdict(shown)

    @classmethod
    def _of_held(cls, held: dict[str, Any]) -> Any:
        return read(cls, held)

    def to_json(self) -> str:
        """All of it as JSON, which `from_json` reads."""
        return json.dumps({"schema": 1, **self._held()}, default=str)

    @classmethod
    def from_json(cls, text: str, /) -> Self:
        """Read the JSON that `to_json` wrote.

        Raises:
            ValueError: the text isn't such JSON.
        """
        held = json.loads(text)
        try:
            found: Self = cls._of_held(held)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is not a {cls.__name__} in JSON: {error!r}") from error
        return found
