"""Errors: classes, kinds, carets, pickling."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import tilewise as tw


def test_a_caret_under_the_text() -> None:
    with pytest.raises(tw.ParseError) as caught:
        tw.Shape("b16[2,3]")
    error = caught.value
    assert str(error) == "`b16` is not an element type\n  b16[2,3]\n  ^^^\nhelp: did you mean `bf16`?"
    assert (error.kind, error.span, error.help) == ("unknown_element_type", (0, 3), "did you mean `bf16`?")
    assert error.text is not None
    assert error.text[slice(*error.span or ())] == "b16"


def test_spans_count_characters() -> None:
    with pytest.raises(tw.ParseError) as caught:
        tw.Shape("f32[2]/*é*/x")
    assert caught.value.text is not None
    assert caught.value.text[slice(*caught.value.span or ())] == "x"


def test_excerpts_of_long_texts_and_control_characters() -> None:
    with pytest.raises(tw.ParseError) as caught:
        tw.Shape("f32[" + "2," * 5000 + "x]")
    assert max(map(len, str(caught.value).splitlines())) < 200
    with pytest.raises(tw.ParseError) as caught:
        tw.Shape("f32[\x1b[31m]")
    assert "\x1b" not in str(caught.value).splitlines()[1]


MALFORMED: list[object] = [
    "",
    "\0",
    "\ud800",
    "f32[3]\0",
    "f32[3]\x1b[2J",
    "f32[\n\r",
    "f32[" + "9" * 10_000 + "]",
    "(" * 5_000,
    "f32[3]{0:T(" + "2," * 100_000 + "2)}x",
    "\N{COLLISION SYMBOL}" * 100,
    "f32[-1]",
    b"f32[3]",
    3,
    None,
    ["f32[3]"],
    object(),
]


@pytest.mark.parametrize("value", MALFORMED, ids=lambda value: repr(value)[:12])
@pytest.mark.parametrize(
    "ask",
    [
        tw.Shape,
        tw.Shape.parse_as_written,
        tw.ElementType,
        tw.hbm_bytes,
        tw.audit,
        tw.explain,
        lambda value: tw.predict(value, tpu="v5e"),
        lambda value: tw.predict("f32[3]", tpu=value),
        lambda value: tw.tile(np.zeros(3, np.float32), value),
        lambda value: tw.relayout(b"", value, value),
    ],
)
def test_malformed_input_raises_a_readable_error(ask: Callable[[object], object], value: object) -> None:
    if ask is tw.audit and isinstance(value, list):
        # One of several programs has its error in its place.
        assert [type(each) for each in tw.audit(value)] == [FileNotFoundError]
        return
    with pytest.raises((tw.Error, TypeError, ValueError, OSError)) as caught:
        ask(value)
    if isinstance(caught.value, tw.Error):
        assert not set(caught.value.message) & {*map(chr, range(32)), "\x7f"}


def test_programs_and_messages_may_have_lone_surrogates(message: str) -> None:
    assert tw.audit("x = f32[3]{0} parameter(0) // \ud800").buffers[0].shape == tw.Shape("f32[3]")
    assert tw.explain("\ud800 " + message).padding_bytes == tw.explain(message).padding_bytes


def test_classes() -> None:
    shape = tw.Shape("f32[3,5]{1,0:T(2,2)}")
    for ask in (lambda: shape.offset((3, 0)), lambda: shape.offset((-1, 0)), lambda: shape.index(24)):
        with pytest.raises(IndexError) as caught:
            ask()
        assert isinstance(caught.value, tw.OutOfRangeError)
        assert isinstance(caught.value, ValueError)
    with pytest.raises(tw.ShapeError, match="1 component"):
        shape.offset((1,))
    with pytest.raises(tw.HloError):
        tw.audit(b"no program")
    with pytest.raises(tw.MessageError):
        tw.explain("all is well")
    for error in (tw.ParseError, tw.ShapeError, tw.HloError, tw.MessageError, tw.RelayoutError, tw.DrawError):
        assert issubclass(error, tw.Error)
        assert issubclass(error, ValueError)
        assert error.__module__ == "tilewise"


def test_errors_are_pickled_and_copied() -> None:
    with pytest.raises(tw.ParseError) as caught:
        tw.Shape("f32[3")
    for again in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert type(again) is tw.ParseError
        assert (str(again), again.__dict__) == (str(caught.value), caught.value.__dict__)
