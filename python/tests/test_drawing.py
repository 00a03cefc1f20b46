"""Pictures."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from xml.etree import ElementTree

import pytest

import tilewise as tw
from tilewise import _tilewise

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


def test_the_memory_plan(program: Path, tmp_path: Path) -> None:
    report = tw.audit(program, tpu="v5e")
    picture = report.plot()
    assert repr(picture) == "<Drawing of jit_f: HBM>"
    svg = picture._repr_svg_()
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert "model.py:439" in svg
    # The picture that the command line draws.
    assert _tilewise.run(["tilewise", "audit", "--tpu", "v5e", str(program), "-o", str(tmp_path / "plan.svg")]) == 0
    assert (tmp_path / "plan.svg").read_text(encoding="utf-8") == svg
    assert "fusion.6" in picture.to_text(width=80)
    assert picture.to_png(scale=1.0).startswith(b"\x89PNG")
    assert "vmem" in str(report.plot(memory_space=1)).lower()
    assert report.plot(theme="dark").to_svg() != svg
    for again in (report.plot(), pickle.loads(pickle.dumps(picture)), copy.deepcopy(picture)):
        assert (again == picture, hash(again) == hash(picture), again.to_svg() == svg) == (True, True, True)
    assert picture not in (report.plot(theme="dark"), report.plot(memory_space=1), SHAPE.draw(), 3)
    with pytest.raises(tw.DrawError, match="memory plan"):
        tw.audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").plot()
    with pytest.raises(ValueError, match="theme"):
        report.plot(theme="pink")  # type: ignore[arg-type]


def test_notebooks() -> None:
    html = SHAPE._repr_html_()
    assert "<svg" in html
    assert "2 rows are interleaved" in html
    assert "<svg" not in tw.Shape("(token[], opaque[])")._repr_html_()
    assert "&lt;=5" in tw.Shape("f32[<=5]")._repr_html_()
    assert tw.Shape.parse_as_written("f32[5]")._repr_html_()


def test_pictures_in_one_notebook_are_apart() -> None:
    light, dark = SHAPE.draw(theme="light"), SHAPE.draw(theme="dark")
    ids = [ElementTree.fromstring(drawing._repr_svg_()).get("id") for drawing in (light, dark)]
    assert None not in ids
    assert ids[0] != ids[1]
    for drawing, own in zip((light, dark), ids, strict=True):
        assert f"#{own} " in drawing.to_svg()
        assert f"url(#{own}-padding)" in drawing.to_svg()


def test_tuples_are_drawn_array_by_array() -> None:
    pair = tw.Shape("(f32[3,5]{1,0:T(2,2)}, (s32[4]{0}, token[]))")
    assert pair.draw().to_svg().count('data-panel="array"') == 2
    assert "{1,0}: s32[4]{0}" in str(pair.draw())
    assert pair._repr_html_().count("<svg") == 1
