//! The tiled-layout document's formula with numbers: `linear_index_with_tile((2,3), (3,5), (2,2))`.

use super::input::{index_of, numbers};
use tilewise::Shape;
use tilewise_audit::Failure;

const WITH_TILE: &str = "linear_index_with_tile";
const WITHOUT: &str = "linear_index";

/// Whether a text is a formula.
pub(super) fn begins(text: &str) -> bool {
    text.trim_start().starts_with(WITHOUT)
}

/// The element's index, and an array of the formula's bounds with its tile: of any element type, since offsets are in elements.
///
/// # Errors
/// What is no such formula, with the span; bounds or a tile that no array has.
pub(super) fn read(text: &str) -> Result<(Shape, Vec<u64>), Failure> {
    let help = "such as `linear_index_with_tile((2,3), (3,5), (2,2))`: the element, the bounds, the tile; or `linear_index((2,3), (3,5))`";
    let wrong = |at: usize| {
        let (at, end) = (at.min(text.trim_end().len()), text.trim_end().len());
        Failure::new("syntax", "this is not the document's formula with numbers").at(at..end).with_help(help)
    };
    let start = text.len() - text.trim_start().len();
    let (name, lists) = [(WITH_TILE, 3), (WITHOUT, 2)]
        .into_iter()
        .find(|(name, _)| text[start..].strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('(')))
        .ok_or_else(|| wrong(start))?;
    let mut at = start + name.len();
    let eat = |wanted: char, at: &mut usize| {
        *at += text[*at..].len() - text[*at..].trim_start().len();
        let found = text[*at..].starts_with(wanted);
        *at += usize::from(found);
        if found { Ok(()) } else { Err(wrong(*at)) }
    };
    eat('(', &mut at)?;
    let mut found: Vec<(&str, usize)> = Vec::new();
    for position in 0..lists {
        if position > 0 {
            eat(',', &mut at)?;
        }
        eat('(', &mut at)?;
        let inside = text[at..].split_once(')').ok_or_else(|| wrong(at))?.0;
        found.push((inside.trim_end(), at));
        at += inside.len() + 1;
    }
    eat(')', &mut at)?;
    if !text[at..].trim().is_empty() {
        return Err(wrong(at));
    }
    let [(element, at), (bounds, at_bounds), tile @ ..] = &found[..] else { return Err(wrong(start)) };
    let bounds = numbers(bounds, *at_bounds)?;
    let mut layout = tilewise::Layout::row_major(bounds.len());
    if let [(tile, at)] = tile {
        layout = layout.with_tiles([tilewise::Tile::new(numbers(tile, *at)?)?])?;
    }
    let shape = Shape::array(tilewise::ElementType::F32, bounds)?.with_layout(layout)?;
    let element = match shape.as_array() {
        Some(array) => index_of(element, *at, array)?,
        None => return Err(wrong(start)),
    };
    Ok((shape, element))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_formulas() {
        for (text, shape, element) in [
            ("linear_index_with_tile((2,3), (3,5), (2,2))", "f32[3,5]{1,0:T(2,2)}", &[2, 3][..]),
            (" linear_index( (2, 3) , (3,5) ) ", "f32[3,5]{1,0}", &[2, 3]),
            ("linear_index((), ())", "f32[]", &[]),
            ("linear_index_with_tile((y=2, x=3), (3,5), (2,2))", "f32[3,5]{1,0:T(2,2)}", &[2, 3]),
            ("linear_index((x=3,z=1,y=2), (4,3,5))", "f32[4,3,5]{2,1,0}", &[1, 2, 3]),
        ] {
            let (read, index) = read(text).expect(text);
            assert_eq!((read.to_string().as_str(), &index[..]), (shape, element), "{text}");
        }
        for (text, wrong) in [
            ("linear_index", "linear_index"),
            ("linear_index((2,3))", ")"),
            ("linear_index((2,3), (3,5), (2,2))", ", (2,2))"),
            ("linear_index_with_tile((2,3), (3,5), (2,2)) + 1", "+ 1"),
            ("linear_index_with_tile((2,3), (3,5), (2,x))", "x"),
            ("linear_index_with_tile(e, d, t)", "e, d, t)"),
            ("linear_index((z=1,x=2), (3,5))", "z=1"),
            ("linear_index((x=2), (3,5))", "x=2"),
        ] {
            let failure = read(text).expect_err(text);
            assert_eq!(failure.span.map(|span| text[span].trim()), Some(wrong), "{text}");
        }
        assert!(read("linear_index_with_tile((2,3), (3,5), (2,0))").is_err());
    }
}
