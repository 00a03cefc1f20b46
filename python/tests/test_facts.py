"""Facts recorded from XLA and libtpu, through the package."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import numbers, rows, unescaped

import tilewise as tw


def test_offsets() -> None:
    facts = rows("index.csv")
    assert len(facts) > 1000
    for fact in facts:
        shape, index, offset = tw.Shape(fact["shape"]), numbers(fact["index"]), int(fact["offset"])
        assert shape.offset(index) == offset, fact
        assert shape.offsets(np.array([index], dtype=np.int64).reshape(1, -1)).tolist() == [offset], fact
        assert shape.index(offset) == index, fact


def test_indices() -> None:
    for fact in rows("inverse.csv"):
        shape, offset = tw.Shape(fact["shape"]), int(fact["offset"])
        if fact["index"] == "out_of_range":
            with pytest.raises(tw.OutOfRangeError):
                shape.index(offset)
            continue
        index = None if fact["index"] == "padding" else numbers(fact["index"])
        assert shape.index(offset) == index, fact
        bulk = (-1,) * shape.rank if index is None else index
        assert shape.indices([offset]).tolist() == [list(bulk)], fact


def test_sizes() -> None:
    for fact in rows("sizes.csv"):
        if "overflow" in fact.values():
            continue
        shape = tw.Shape(fact["shape"])
        assert shape.logical_bytes == int(fact["logical_bytes"])
        assert shape.physical_bytes == int(fact["physical_bytes"])
        assert shape.physical_dimensions == numbers(fact["physical_dimensions"]), fact


def test_texts_and_protos() -> None:
    for fact in rows("shape_vectors.csv"):
        text = unescaped(fact)
        if "ok" not in fact["strict"].split("|"):
            with pytest.raises(tw.ParseError):
                tw.Shape(text)
            continue
        shape = tw.Shape(text)
        assert str(shape) == fact["strict_canonical"]
        if fact["without_layout"]:
            assert str(shape.without_layout()) == fact["without_layout"]
        if fact["valid"] == "1" and fact["lenient"] == "0" and fact["proto_hex"]:
            assert shape.to_proto().hex() == fact["proto_hex"], fact
            assert tw.Shape.from_proto(shape.to_proto()).identical(shape)


def test_errors_have_kind_and_span() -> None:
    refused = 0
    for fact in rows("bad_inputs.csv"):
        text = unescaped(fact)
        if "ok" in fact["strict"].split("|"):
            continue
        with pytest.raises(tw.ParseError) as caught:
            tw.Shape(text)
        refused += 1
        error = caught.value
        assert {error.kind, "any"} & set(fact["strict"].split("|")), fact
        assert error.text == text
        assert error.span is not None
        assert 0 <= error.span[0] <= error.span[1] <= len(text)
    assert refused > 200


def test_predictions() -> None:
    checked = 0
    for fact in rows("tpu_default_layouts.csv")[::5]:
        for element_type in fact["element_types"].split():
            open_shape = f"{element_type}[{fact['dims']}]"
            for generations in ("v2 v3", "v4 v5e v5p v6e v7x"):
                if not fact[generations]:
                    continue
                for generation in generations.split():
                    assert str(tw.predict(open_shape, tpu=generation)) == open_shape + fact[generations]
                    checked += 1
    assert checked > 2000
