"""`explain` and `explain_oom`, for out-of-memory messages in texts and exceptions."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tilewise import _tilewise
from tilewise._errors import MessageError

if TYPE_CHECKING:
    from tilewise._tilewise import Explanation
    from tilewise._types import Tpu


def explain(message: str | os.PathLike[str] | BaseException, /, *, tpu: Tpu | None = None) -> Explanation:
    """Explain a TPU's out-of-memory message: what is padding, why, and what to change.

    Args:
        message: a ``str`` that contains the message, such as a log; an exception whose text, or that of one of its
            causes, contains it; or a path-like object of a text file, plain or gzip.
        tpu: the TPU generation of the program; ``None`` infers it from the message's tiles.

    Raises:
        MessageError: there is no such message.
        ParseError: ``tpu`` names no TPU generation.
        OSError: the file can't be read.

    Examples:
        >>> explained = explain('''RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm.
        ... Used 294.50M of 250.00M hbm. Exceeded hbm capacity by 44.50M.
        ...   Largest program allocations in hbm:
        ...   1. Size: 195.31M
        ...      Shape: f32[400000,12]{1,0:T(8,128)}
        ...      Unpadded size: 18.31M
        ...      ==========================''')
        >>> explained.padding_bytes
        185600000
        >>> explained.verdict
        'padding'
    """
    if isinstance(message, BaseException):
        return _explain_exception(message, tpu)
    if isinstance(message, os.PathLike):
        message = _tilewise.read(message)
    return _tilewise.explain_text(message, tpu)


def _explain_exception(error: BaseException, tpu: Tpu | None) -> Explanation:
    first: MessageError | None = None
    for link in _chain(error):
        try:
            return _tilewise.explain_text(str(link), tpu)
        except MessageError as none:
            first = first or none
    assert first is not None
    raise first


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The exception, then its causes and contexts."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


@contextmanager
def explain_oom(*, tpu: Tpu | None = None) -> Generator[None]:
    """Explain the out-of-memory errors raised in the ``with`` block.

    An exception with a TPU's ``RESOURCE_EXHAUSTED`` message gets the explanation as a note (PEP 678), which tracebacks
    print, and is re-raised. All other exceptions propagate unchanged. Also usable as a decorator.

    On Python 3.10, which has no notes, the explanation is appended to the exception's message.

    Args:
        tpu: the TPU generation of the program; ``None`` infers it from the message's tiles.

    Raises:
        ParseError: ``tpu`` names no TPU generation.

    Examples:
        >>> with explain_oom():  # doctest: +SKIP
        ...     train_step.lower(state, batch).compile()
    """
    if tpu is not None:
        _tilewise.hbm_bytes(tpu)  # Rejects a wrong name before the block runs.
    try:
        yield
    except Exception as error:
        try:
            explanation = explain(error, tpu=tpu)
        except MessageError:
            explanation = None
        if explanation is not None:
            _add_note(error, explanation.table())
        raise


def _add_note(error: BaseException, note: str) -> None:
    if hasattr(error, "add_note"):
        error.add_note(note)
    elif error.args and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n\n{note}", *error.args[1:])
