//! Shapes as text and as protos.

use std::hint::black_box;
use tilewise::{Error, Shape, Tiled};

/// A shape's text: the shape prints to a text that is read as the same shape, and an error's span is in the text. Every
/// method of its layout is called.
pub fn shape_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let filled = text.parse::<Shape>();
    let written = Shape::parse_as_written(text);
    assert_eq!(filled.is_ok(), written.is_ok(), "a missing layout is never the reason for an error");
    if let Err(error) = filled {
        points_into(text, &error);
        points_into(text, &written.expect_err("just compared"));
    } else {
        for shape in [filled, written].into_iter().flatten() {
            let printed = shape.to_string();
            let again = Shape::parse_as_written(&printed).expect("what is printed can be read");
            assert!(again.identical(&shape), "{printed:?} is read as {again}");
            ask_everything(&shape);
        }
    }
    match Shape::parse_prefix(text) {
        Ok((shape, length)) => {
            let prefix = Shape::parse_as_written(&text[..length]).expect("the prefix is a shape");
            assert!(prefix.identical(&shape), "{shape} and {prefix}");
        }
        Err(error) => points_into(text, &error),
    }
}

/// A shape's proto: the shape encodes to bytes that decode to the same shape, which encodes to the same bytes.
pub fn shape_proto(data: &[u8]) {
    let Ok(shape) = Shape::decode_proto(data) else { return };
    let bytes = shape.encode_proto();
    let again = Shape::decode_proto(&bytes).expect("what is encoded can be decoded");
    assert!(again.identical(&shape), "{shape} becomes {again}");
    assert_eq!(again.encode_proto(), bytes, "{shape}");
    let text = Shape::parse_as_written(&shape.to_string()).expect("what is printed can be read");
    assert_eq!(text.to_string(), shape.to_string());
    ask_everything(&shape);
}

fn points_into(text: &str, error: &Error) {
    let span = error.span().expect("an error about a text has a span");
    assert!(text.get(span.clone()).is_some(), "{span:?} is no range of characters: {error}");
    assert!(!error.to_string().is_empty());
}

/// Any consistent answer is right; none may panic.
fn ask_everything(shape: &Shape) {
    black_box(shape.elements().count());
    for (_, leaf) in shape.leaves() {
        let Some(array) = leaf.as_array() else { continue };
        black_box((array.xla_array_size(), array.layout_in_words(), array.true_rank()));
        if let Ok(tiled) = Tiled::of_array(array) {
            ask_layout(&tiled);
        }
    }
}

fn ask_layout(tiled: &Tiled) {
    assert!(tiled.logical_bytes() <= tiled.physical_bytes(), "{:?}", tiled.array());
    assert!(tiled.tiled_elements() <= tiled.physical_elements());
    let bounds = tiled.logical_dimensions();
    if !bounds.contains(&0) {
        let corners: [fn(u64) -> u64; 4] = [|_| 0, |bound| bound - 1, |bound| bound / 2, |bound| bound / 3];
        for corner in corners {
            let index: Vec<u64> = bounds.iter().map(|&bound| corner(bound)).collect();
            let offset = tiled.offset_of(&index).expect("inside");
            assert_eq!(tiled.index_of(offset).expect("inside"), Some(index), "@{offset}");
        }
    }
    black_box((tiled.index_of(tiled.physical_elements().saturating_sub(1)).is_ok(), tiled.padded_axes()));
    // These name every bound at every step.
    let tiles = tiled.array().layout().map_or(0, |layout| layout.tiles().len());
    if tiled.physical_dimensions().len() * (tiles + 1) < 2000 {
        let derivation = tiled.derivation();
        black_box((derivation.to_string(), derivation.numpy().to_string(), derivation.einops().to_string()));
        black_box((tiled.affine_map().map(|m| m.to_string()), tiled.affine_offset_map().map(|m| m.to_string())));
    }
}
