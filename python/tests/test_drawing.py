"""Pictures."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import tilewise as tw

SHAPE = tw.Shape("bf16[4,16,256]{2,1,0:T(8,128)(2,1)}")


@pytest.mark.parametrize("view", ["logical", "memory", "both", "word", "steps"])
@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_views(view: str, theme: str) -> None:
    drawing = SHAPE.draw(view=view, theme=theme, highlight=(3, 1, 0), slices={0: 3})  # type: ignore[arg-type]
    assert ElementTree.fromstring(drawing._repr_svg_()).tag.endswith("svg")
    assert str(SHAPE) in drawing.to_text(width=200)
    assert repr(drawing) == f"<Drawing of {SHAPE}>"


def test_files(tmp_path: Path) -> None:
    drawing = tw.Shape("f32[3,5]{1,0:T(2,2)}").draw()
    for name, start in (("x.svg", b"<svg"), ("x.PNG", b"\x89PNG"), ("x.txt", b"f32[3,5]")):
        drawing.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    drawing.save(str(tmp_path / "y.svg"))
    assert drawing.to_png(scale=1.0).startswith(b"\x89PNG")
    for bad in ("x.gif", "x"):
        with pytest.raises(tw.DrawError, match=r"\.svg"):
            drawing.save(tmp_path / bad)
    with pytest.raises(FileNotFoundError):
        drawing.save(tmp_path / "no" / "x.svg")
    with pytest.raises(tw.DrawError):
        drawing.to_png(scale=-1.0)


def test_comparison() -> None:
    assert "16,376 of 16,384" in SHAPE.draw(compare="bf16[4,16,256]{1,2,0:T(8,128)(2,1)}").to_text()
    with pytest.raises(tw.DrawError):
        SHAPE.draw(compare="bf16[4,16,255]")


def test_errors() -> None:
    with pytest.raises(ValueError, match="view"):
        SHAPE.draw(view="sideways")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="theme"):
        SHAPE.draw(theme="pink")  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        SHAPE.draw(highlight=(4, 0, 0))
    with pytest.raises(IndexError):
        SHAPE.draw(slices={0: 4})
    with pytest.raises(tw.ShapeError):
        tw.Shape("token[]").draw()


def test_notebooks() -> None:
    html = SHAPE._repr_html_()
    assert "<svg" in html
    assert "2 rows are interleaved" in html
    assert "<svg" not in tw.Shape("(f32[2], token[])")._repr_html_()
    assert "&lt;=5" in tw.Shape("f32[<=5]")._repr_html_()
    assert tw.Shape.parse_as_written("f32[5]")._repr_html_()


def test_pictures_in_one_notebook_are_apart() -> None:
    light, dark = SHAPE.draw(theme="light"), SHAPE.draw(theme="dark")
    ids = [ElementTree.fromstring(drawing._repr_svg_()).get("id") for drawing in (light, dark)]
    assert None not in ids and ids[0] != ids[1]
    for drawing, own in zip((light, dark), ids, strict=True):
        assert f"#{own} " in drawing.to_svg() and f"url(#{own}-padding)" in drawing.to_svg()


def test_tuples_are_drawn_array_by_array() -> None:
    pair = tw.Shape("(f32[3,5]{1,0:T(2,2)}, (s32[4]{0}, token[]))")
    assert pair.draw().to_svg().count('data-panel="array"') == 2
    assert "{1,0}: s32[4]{0}" in str(pair.draw())
    assert pair._repr_html_().count("<svg") == 1
