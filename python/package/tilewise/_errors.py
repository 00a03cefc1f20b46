"""What can go wrong."""

from __future__ import annotations

import textwrap
from typing import Any


class Error(ValueError):
    """What is wrong, where, and what to write instead.

    Attributes:
        kind: a stable name in snake case, such as ``'unknown_element_type'``.
        message: what is wrong, alone.
        text: the text that was read, if the error is about one.
        span: the characters of ``text`` that are meant, so that ``text[slice(*span)]`` is them.
        help: what to write or ask instead, where that can be said.

    Examples:
        >>> try:
        ...     Shape("b16[2]")
        ... except Error as error:
        ...     error.kind, error.span, error.help
        ('unknown_element_type', (0, 3), 'did you mean `bf16`?')
    """

    kind: str
    message: str
    text: str | None
    span: tuple[int, int] | None
    help: str | None

    def __init__(
        self,
        message: str,
        *,
        kind: str = "error",
        text: str | None = None,
        span: tuple[int, int] | None = None,
        help: str | None = None,
        excerpt: str | None = None,
    ) -> None:
        whole = message
        if excerpt is not None:
            whole += "\n" + textwrap.indent(excerpt, "  ")
        if help is not None:
            whole += f"\nhelp: {help}"
        super().__init__(whole)
        self.kind, self.message, self.text, self.span, self.help = kind, message, text, span, help

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(error: type[Error], args: tuple[Any, ...], state: dict[str, Any]) -> Error:
    restored = error.__new__(error, *args)
    restored.__dict__.update(state)
    return restored


class ParseError(Error):
    """A text that is no shape, element type, layout or TPU.

    Examples:
        >>> Shape("f32[2")
        Traceback (most recent call last):
        ...
        tilewise.ParseError: expected ...
    """


class ShapeError(Error):
    """A shape or layout that can't be, or a question that this shape has no answer to.

    Examples:
        >>> Shape("token[]").physical_bytes
        Traceback (most recent call last):
        ...
        tilewise.ShapeError: a token has no elements of its own to index or count
    """


class OutOfRangeError(Error, IndexError):
    """An index outside the array, or an offset past the buffer's end.

    Examples:
        >>> Shape("f32[3,5]").offset((3, 0))
        Traceback (most recent call last):
        ...
        tilewise.OutOfRangeError: index 3 is outside dimension 0, which has bound 3
    """


class HloError(Error):
    """A text that holds no HLO program.

    Examples:
        >>> audit("x = 1")
        Traceback (most recent call last):
        ...
        tilewise.HloError: ...
    """


class MessageError(Error):
    """A text that holds no out-of-memory message of a TPU.

    Examples:
        >>> explain("all is well")
        Traceback (most recent call last):
        ...
        tilewise.MessageError: ...
    """


class RelayoutError(Error):
    """Two layouts or buffers that can't be converted into each other.

    Examples:
        >>> relayout(bytes(60), "f32[3,5]", "f32[5,3]")
        Traceback (most recent call last):
        ...
        tilewise.RelayoutError: ...
    """


class DrawError(Error):
    """A picture that can't be drawn or saved.

    Examples:
        >>> Shape("f32[3,5]").draw().save("layout.gif")
        Traceback (most recent call last):
        ...
        tilewise.DrawError: layout.gif ends in neither .svg nor .png nor .txt
    """


# They belong to the package: that is where users find them, and what tracebacks say.
for _class in (Error, ParseError, ShapeError, OutOfRangeError, HloError, MessageError, RelayoutError, DrawError):
    _class.__module__ = "tilewise"
del _class
