//! Elements that share a 32-bit word.

use super::Drawing;
use crate::{
    axis::{Axis, Selection},
    grid::{CellContent, Colors, GridBuilder, Kind},
    padded::{NO_BLOCK, TILE},
    scene::Panel,
    text::short_index,
};
use std::cmp::Ordering;
use tilewise::Tiled;

const WORD: u64 = 32;

/// The most words drawn.
const MOST_WORDS: usize = 7;

/// The most rows and columns of the array drawn: its cells have long texts.
const MOST_ROWS: usize = 8;
const MOST_COLUMNS: usize = 6;

impl Drawing<'_> {
    pub(super) fn words_of_array(&self, colors: &mut Colors) -> Panel {
        let bits = self.tiled.stored_bits();
        let word = |offset| words(offset, bits).0;
        let content = |row, column| {
            let content = self.content(&self.plane.place(row, column))?;
            let offset = content.offset?;
            let color_key = content.color_key.map(|_| word(offset));
            let text = if content.kind == Kind::Element { word_label(offset, bits) } else { String::new() };
            let note =
                if bits < WORD && content.kind == Kind::Element { bits_label(offset, bits) } else { String::new() };
            Some(CellContent { text, note, color_key, ..content })
        };
        let blocks = |row, column| {
            let place = self.plane.place(row, column);
            let word = self.padded.offset(&place).map_or(NO_BLOCK, word);
            Some([NO_BLOCK, self.padded.blocks(&place)[TILE], word, NO_BLOCK])
        };
        let heading = match bits < WORD {
            true => "The array: the word and bits of each cell",
            false => "The array: the words of each cell",
        };
        self.explained(self.array_of("array", heading, (MOST_ROWS, MOST_COLUMNS), &content, &blocks, colors))
    }

    pub(super) fn words(&self, colors: &mut Colors) -> Panel {
        let bits = self.tiled.stored_bits();
        if bits < WORD && !WORD.is_multiple_of(bits) {
            // Elements cross word borders.
            let annotate = |content: CellContent| {
                let Some(offset) = content.offset else { return content };
                let note = format!("word {}", word_label(offset, bits));
                CellContent { note, color_key: content.color_key.map(|_| words(offset, bits).0), ..content }
            };
            return self.memory_of("Memory: the words each element lies in", &annotate, colors);
        }
        let each = (WORD / bits).max(1);
        let total = self.tiled.physical_elements();
        let focus = self.highlighted_offset.map(|offset| offset / each);
        let selection = Selection { most: MOST_WORDS, periods: Vec::new(), focus: focus.into_iter().collect() };
        let rows = total.div_ceil(each);
        let mut rows = Axis::new(rows, rows, "word", &selection)
            .with_label("words")
            .with_names(|row| word_label(row * each, bits));
        if bits > WORD {
            rows.noun = "element";
        }
        let all = Selection { most: 32, ..Selection::default() };
        let columns = Axis::new(each, each, "element", &all);
        let columns = match bits > WORD {
            true => columns.with_names(|_| String::new()),
            false => columns.with_label("bits").with_names(|column| bits_label(column, bits)),
        };
        let offset = |row: u64, column: u64| {
            let offset = row.checked_mul(each)?.checked_add(column)?;
            (offset < total).then_some(offset)
        };
        let content = |row, column| {
            let offset = offset(row, column)?;
            let content = self.content_at(offset);
            let text = content.index.as_ref().map_or_else(String::new, |index| short_index(index));
            Some(CellContent { text, color_key: content.color_key.map(|_| words(offset, bits).0), ..content })
        };
        let blocks = |row, column| Some([NO_BLOCK, words(offset(row, column)?, bits).0, NO_BLOCK, NO_BLOCK]);
        let builder = GridBuilder { rows, columns, content: &content, blocks: &blocks, inner_between_rows: false };
        let heading = match bits <= WORD {
            true => "Memory, word by word",
            false => "Memory, element by element",
        };
        Panel::of("words", heading, builder.build(colors))
    }
}

/// The noun for cells of one colour.
pub(super) fn unit(tiled: &Tiled) -> &'static str {
    if tiled.stored_bits() > WORD { "element" } else { "32-bit word" }
}

/// The first and the last word of an element.
fn words(offset: u64, bits: u64) -> (u64, u64) {
    let first = u128::from(offset) * u128::from(bits);
    let last = first + u128::from(bits) - 1;
    let word = |bit: u128| u64::try_from(bit / u128::from(WORD)).unwrap_or(u64::MAX);
    (word(first), word(last))
}

fn word_label(offset: u64, bits: u64) -> String {
    match words(offset, bits) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}–{last}"),
    }
}

/// The bits of a word, the least significant being 0, that an element takes.
fn bits_label(offset: u64, bits: u64) -> String {
    let first = u128::from(offset) * u128::from(bits) % u128::from(WORD);
    let last = (first + u128::from(bits) - 1) % u128::from(WORD);
    match first.cmp(&last) {
        Ordering::Less => format!("{first}–{last}"),
        Ordering::Equal => first.to_string(),
        Ordering::Greater => format!("{first}–31, 0–{last}"),
    }
}

/// The words of the highlighted element, as a caption.
pub(super) fn caption(tiled: &Tiled, offset: u64) -> String {
    let bits = tiled.stored_bits();
    let (first, last) = words(offset, bits);
    if bits >= WORD {
        return match first == last {
            true => format!("Word {first}."),
            false => format!("Words {first} to {last}."),
        };
    }
    let within = bits_label(offset, bits);
    match first == last {
        true => format!("Bits {within} of word {first}, bit 0 being the least significant."),
        false => format!("Bits {within}, from word {first} into word {last}."),
    }
}
