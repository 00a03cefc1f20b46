//! oneDNN's format tags: `nChw16c`, `OIhw4i16o4i`, `BA16a64b2a`.
//!
//! Letters name the dimensions, the slowest-varying first; a dimension in upper case has blocks, which follow as sizes and
//! letters, major → minor (oneDNN's developer guide, "Understanding Memory Formats", and `dnnl_format_tag_t`).

use super::{Cut, levels, number};
use crate::{
    Error,
    blocks::{self, MOST_BLOCKS},
};
use alloc::vec::Vec;

/// The dimensions in logical order: by letters of the alphabet, of activations, of weights with groups.
const FAMILIES: [&str; 3] = ["abcdefghijkl", "ncdhw", "goidhw"];

/// The cut that a tag describes; `None` if the text isn't a tag.
pub(super) fn cut(tag: &str) -> Option<Result<Cut, Error>> {
    let end = tag.find(|c: char| c.is_ascii_digit()).unwrap_or(tag.len());
    let (plain, blocked) = tag.split_at(end);
    let dimensions = plain.to_ascii_lowercase();
    let letters = FAMILIES.iter().find_map(|family| logical(family, &dimensions))?;
    let dimension = |letter: char| letters.iter().position(|&known| known == letter);

    let mut sizes = Vec::new();
    let mut rest = blocked;
    while !rest.is_empty() {
        let at = rest.find(|c: char| !c.is_ascii_digit())?;
        let (size, behind) = rest.split_at(at);
        let letter = behind.chars().next()?;
        sizes.push((dimension(letter)?, number(size).filter(|&size| size > 1)?));
        rest = &behind[letter.len_utf8()..];
        if sizes.len() > MOST_BLOCKS {
            return None;
        }
    }
    let order: Vec<usize> = dimensions.chars().map(dimension).collect::<Option<_>>()?;
    let is_upper_where_blocked = plain.chars().zip(&order).all(|(letter, dimension)| {
        letter.is_ascii_uppercase() == sizes.iter().any(|(blocked, _)| blocked == dimension)
    });
    is_upper_where_blocked.then(|| {
        let tiles = blocks::tiles(&order, &levels(&sizes))?;
        Ok(Cut::Tiles { order: Some(order.into_iter().rev().collect()), tiles })
    })
}

/// The letters that a tag uses, in the order of dimension numbers, if all are of this family and occur once.
fn logical(family: &str, used: &str) -> Option<Vec<char>> {
    let letters: Vec<char> = family.chars().filter(|&letter| used.contains(letter)).collect();
    // The alphabet has no gaps; activations have images and channels, weights outputs and inputs.
    let needed = match family {
        "ncdhw" => "nc",
        "goidhw" => "oi",
        _ => &family[..letters.len()],
    };
    (!letters.is_empty() && letters.len() == used.len() && needed.chars().all(|letter| used.contains(letter)))
        .then_some(letters)
}
