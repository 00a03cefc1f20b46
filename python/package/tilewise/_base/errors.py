"""The exceptions."""

from __future__ import annotations

import textwrap
from typing import Any


class Error(ValueError):
    """The base class: has the error in words, its place, and a suggestion.

    Attributes:
        kind: a stable name of the error, such as ``'unknown_element_type'``.
        message: the error in words, without the excerpt and the help.
        text: the text that could not be parsed; ``None`` for other errors.
        span: the (start, end) of the part of ``text`` that is wrong, for ``text[slice(*span)]``.
        help: a suggestion, or ``None``.

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
            whole += "\n" + textwrap.indent(str(excerpt), "  ")
        if help is not None:
            whole += f"\nhelp: {help}"
        super().__init__(whole)
        self.kind, self.message, self.text, self.span, self.help = kind, message, text, span, help

    def __reduce__(self) -> tuple[Any, ...]:
        # Its message is whole already.
        return type(self).__new__, (type(self), *self.args), self.__dict__


class ParseError(Error):
    """A string that is not a shape, element type, layout or TPU generation.

    Examples:
        >>> Shape("f32[2")
        Traceback (most recent call last):
        ...
        tilewise.ParseError: expected ...
    """


class ShapeError(Error):
    """An invalid shape or layout, or a method that this shape does not support.

    Examples:
        >>> Shape("token[]").physical_bytes
        Traceback (most recent call last):
        ...
        tilewise.ShapeError: a token has no elements of its own to index or count
    """


class OutOfRangeError(Error, IndexError):
    """An index outside the array, or an offset past the end of the buffer.

    Examples:
        >>> Shape("f32[3,5]").offset((3, 0))
        Traceback (most recent call last):
        ...
        tilewise.OutOfRangeError: index 3 is outside dimension 0, which has bound 3
    """


class HloError(Error):
    """A text that is not an HLO program.

    Examples:
        >>> audit("x = 1")
        Traceback (most recent call last):
        ...
        tilewise.HloError: ...
    """


class NotATpuProgram(Error):  # noqa: N818
    """A program whose arrays lie in no tiles, where one for a TPU is asked for: nothing said of it would be true.

    Examples:
        >>> audit("x = f32[400000,12]{1,0} parameter(0)", tpu="v5e")
        Traceback (most recent call last):
        ...
        tilewise.NotATpuProgram: not compiled for a TPU: no array lies in tiles...
    """


class MessageError(Error):
    """A text without an out-of-memory message of a TPU.

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


class Skip(Exception):  # noqa: N818
    """Raised by a factory of `fit` for settings that make no program: a row with the status ``skipped``, no error.

    Examples:
        >>> raise Skip("3 does not divide 8")
        Traceback (most recent call last):
        ...
        tilewise.Skip: 3 does not divide 8
    """


# Users import them from the package, so tracebacks show that name.
for _class in (Error, *Error.__subclasses__(), Skip):
    _class.__module__ = "tilewise"
