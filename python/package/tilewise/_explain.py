"""`explain` and `explain_oom`, for out-of-memory messages in texts and exceptions."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import types
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from tilewise import _tilewise
from tilewise._base.errors import MessageError
from tilewise._jax.dump import dumped

if TYPE_CHECKING:
    from tilewise._base.types import Message, Tpu
    from tilewise._tilewise import Explanation

_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def explain(message: Message, /, *, tpu: Tpu | None = None) -> Explanation: ...
@overload
def explain(message: list[Message] | tuple[Message, ...], /, *, tpu: Tpu | None = None) -> list[Explanation]: ...
def explain(message: Any, /, *, tpu: Tpu | None = None) -> Explanation | list[Explanation]:
    """Explain a TPU's out-of-memory message: its padding, the causes, and changes that save memory.

    Args:
        message: a ``str`` that contains the message, such as a log; an exception whose text, or that of one of its
            causes, contains it; the path of a text file, plain or gzip: a path-like object, or a ``str`` of one line
            that names a file; an open file; or a list of these, for a list of explanations.
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
    if isinstance(message, (list, tuple)):
        return [explain(each, tpu=tpu) for each in cast("Sequence[Message]", message)]
    if isinstance(message, BaseException):
        return _explain_exception(message, tpu)
    if hasattr(message, "read"):
        held: str | bytes = message.read()
        return _tilewise.explain_text(held if isinstance(held, str) else _tilewise.decode(held), tpu)
    if isinstance(message, os.PathLike) or _is_file(message):
        message = _tilewise.read(cast("str | os.PathLike[str]", message))
    return _tilewise.explain_text(message, tpu)


def _is_file(text: object) -> bool:
    return isinstance(text, str) and "\n" not in text and "\0" not in text and len(text) < 4096 and os.path.isfile(text)


def _explain_exception(error: BaseException, tpu: Tpu | None) -> Explanation:
    """Of the first with a message: the exception, its cause, that one's, and so on."""
    try:
        return _tilewise.explain_text(str(error), tpu)
    except MessageError:
        seen, cause = {id(error)}, error.__cause__ or error.__context__
        while cause is not None and id(cause) not in seen:
            with contextlib.suppress(MessageError):
                return _tilewise.explain_text(str(cause), tpu)
            seen.add(id(cause))
            cause = cause.__cause__ or cause.__context__
        raise


@overload
def explain_oom(function: _Function, /, *, tpu: Tpu | None = None) -> _Function: ...
@overload
def explain_oom(function: None = None, /, *, tpu: Tpu | None = None) -> OomExplainer: ...
def explain_oom(function: Any = None, /, *, tpu: Tpu | None = None) -> Any:
    """Explain the out-of-memory errors raised in a ``with`` block, or by a function that this decorates.

    An exception with a TPU's ``RESOURCE_EXHAUSTED`` message, or a GPU's, gets the explanation as a note (PEP 678),
    which tracebacks print, and is re-raised. All other exceptions propagate unchanged.

    As a decorator it takes functions, coroutine functions, generators and asynchronous generators, and jitted
    functions, which keep their attributes. If the message lists no arrays, and on a GPU, a jitted function is compiled
    once more with a dump into a temporary folder, and the program's memory is added.

    On Python 3.10, which has no notes, the explanation is appended to the exception's message.

    Args:
        function: the function to decorate; without it, the result is a context manager and a decorator.
        tpu: the TPU generation of the program; ``None`` infers it from the message's tiles.

    Raises:
        ParseError: ``tpu`` names no TPU generation.

    Examples:
        >>> @explain_oom
        ... def train_step(x):
        ...     return x + 1
        >>> train_step(1)
        2
        >>> with explain_oom():
        ...     train_step(1)
        2
    """
    explainer = OomExplainer(tpu)
    return explainer if function is None else explainer(function)


class OomExplainer:
    """The result of `explain_oom`: a context manager, and a decorator.

    Examples:
        >>> explainer = explain_oom(tpu="v5e")
        >>> with explainer:
        ...     pass
    """

    def __init__(self, tpu: Tpu | None = None) -> None:
        if tpu is not None:
            _tilewise.hbm_bytes(tpu)  # Rejects a wrong name before the block runs.
        self._tpu = tpu

    def __enter__(self) -> OomExplainer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object, /) -> None:
        self._explain(error)

    def __call__(self, function: _Function, /) -> _Function:
        """The function, whose out-of-memory errors are explained."""

        def plain(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            inner: Generator[Any, Any, Any] = function(*args, **kwargs)
            with self:
                return (yield from inner)

        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            with self:
                return await function(*args, **kwargs)

        async def async_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            inner: AsyncGenerator[Any, Any] = function(*args, **kwargs)
            sent: Any = None
            with self:
                try:
                    while True:
                        sent = yield await inner.asend(sent)
                except StopAsyncIteration:
                    return
                finally:
                    await inner.aclose()

        wrapper: Any = plain
        if inspect.isasyncgenfunction(function):
            wrapper = async_generator
        elif inspect.iscoroutinefunction(function):
            wrapper = coroutine
        elif inspect.isgeneratorfunction(function):
            wrapper = generator
        elif not (inspect.isfunction(function) or inspect.ismethod(function)):
            return cast("_Function", _Callable(function, self._explain))
        return cast("_Function", functools.wraps(function)(wrapper))

    def _explain(self, error: BaseException | None, lower: Callable[[], Any] | None = None) -> None:
        """Adds the explanation; if the message lists nothing, also the program's memory, if it can be lowered."""
        if not isinstance(error, Exception):
            return
        try:
            explanation = explain(error, tpu=self._tpu)
        except MessageError:
            return
        is_of_gpu = explanation.form == "gpu"
        if explanation.verdict == "not_tpu" and not is_of_gpu:
            return
        _add_note(error, explanation.table())
        if lower is not None and (len(explanation) == 0 or is_of_gpu):
            # Whatever keeps the program from being compiled again must not hide the error.
            with contextlib.suppress(Exception):
                tpu = None if is_of_gpu else self._tpu
                _add_note(error, _tilewise.audit_text(dumped(lower()), "dump", tpu, None).table())


class _Callable:
    """A callable, such as a jitted function, with the attributes of the one in it."""

    def __init__(self, function: Any, explain: Callable[..., None]) -> None:
        self.__dict__["_explain"] = explain
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.__wrapped__(*args, **kwargs)
        except Exception as error:
            self._explain(error, lambda: self.__wrapped__.lower(*args, **kwargs))
            raise

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        # Unpickling asks for attributes before there is a function.
        if name == "__wrapped__":
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


def _add_note(error: BaseException, note: str) -> None:
    if hasattr(error, "add_note"):
        error.add_note(note)
    elif error.args and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n\n{note}", *error.args[1:])
