//! Which elements share a 32-bit word.

use super::Subject;
use crate::{
    grid::{Colors, Kind, Source, Spot},
    scene::Panel,
    text::short_index,
    tracks::{Axis, Interest},
    whole::NOWHERE,
};
use std::cmp::Ordering;
use tilewise::Tiled;

const WORD: u64 = 32;

/// Words drawn, if not all.
const MOST_WORDS: usize = 7;

/// Rows and columns of the array drawn, if not all: cells have much to say.
const MOST_ROWS: usize = 8;
const MOST_COLUMNS: usize = 6;

impl Subject<'_> {
    pub(super) fn words_of_array(&self, colors: &mut Colors) -> Panel {
        let bits = stored_bits(self.tiled);
        let word = |offset| words(offset, bits).0;
        let spot = |row, column| {
            let spot = self.spot(&self.plane.place(row, column))?;
            let offset = spot.offset?;
            let shade = spot.shade.map(|_| word(offset));
            let text = if spot.kind == Kind::Element { words_in_words(offset, bits) } else { String::new() };
            let note =
                if bits < WORD && spot.kind == Kind::Element { bits_in_words(offset, bits) } else { String::new() };
            Some(Spot { text, note, shade, ..spot })
        };
        let blocks = |row, column| {
            let place = self.plane.place(row, column);
            let word = self.whole.offset(&place).map_or(NOWHERE, word);
            Some([self.whole.blocks(&place)[0], word, NOWHERE])
        };
        let heading = match bits < WORD {
            true => "The array: the word and bits of each cell",
            false => "The array: the words of each cell",
        };
        self.array_of("array", heading, (MOST_ROWS, MOST_COLUMNS), &spot, &blocks, colors)
    }

    pub(super) fn words(&self, colors: &mut Colors) -> Panel {
        let bits = stored_bits(self.tiled);
        if bits < WORD && !WORD.is_multiple_of(bits) {
            // Elements lie across words.
            let told = |spot: Spot| {
                let Some(offset) = spot.offset else { return spot };
                let note = format!("word {}", words_in_words(offset, bits));
                Spot { note, shade: spot.shade.map(|_| words(offset, bits).0), ..spot }
            };
            return self.memory_of("Memory: the words each element lies in", &told, colors);
        }
        let each = (WORD / bits).max(1);
        let total = self.tiled.physical_elements();
        let focus = self.highlighted.map(|offset| offset / each);
        let interest = Interest { most: MOST_WORDS, periods: Vec::new(), focus: focus.into_iter().collect() };
        let rows = total.div_ceil(each);
        let mut rows = Axis::new(rows, rows, "word", &interest)
            .with_label("words")
            .with_names(|row| words_in_words(row * each, bits));
        if bits > WORD {
            rows.noun = "element";
        }
        let all = Interest { most: 32, ..Interest::default() };
        let columns = Axis::new(each, each, "element", &all);
        let columns = match bits > WORD {
            true => columns.with_names(|_| String::new()),
            false => columns.with_label("bits").with_names(|column| bits_in_words(column, bits)),
        };
        let offset = |row: u64, column: u64| {
            let offset = row.checked_mul(each)?.checked_add(column)?;
            (offset < total).then_some(offset)
        };
        let spot = |row, column| {
            let offset = offset(row, column)?;
            let spot = self.spot_at(offset);
            let text = spot.index.as_ref().map_or_else(String::new, |index| short_index(index));
            Some(Spot { text, shade: spot.shade.map(|_| words(offset, bits).0), ..spot })
        };
        let blocks = |row, column| Some([words(offset(row, column)?, bits).0, NOWHERE, NOWHERE]);
        let source = Source { rows, columns, spot: &spot, blocks: &blocks, inner_between_rows: false };
        let heading = match bits <= WORD {
            true => "Memory, word by word",
            false => "Memory, element by element",
        };
        Panel { name: "words", heading: heading.to_owned(), grid: source.build(colors), beside: false }
    }
}

/// What has one colour.
pub(super) fn unit(tiled: &Tiled) -> &'static str {
    if stored_bits(tiled) > WORD { "element" } else { "32-bit word" }
}

/// Bits of one element in memory.
fn stored_bits(tiled: &Tiled) -> u64 {
    let given = tiled.array().layout().and_then(|layout| layout.element_size_in_bits());
    given.unwrap_or(u64::from(tiled.array().element_type().natural_bits())).max(1)
}

/// The first and the last word of an element.
fn words(offset: u64, bits: u64) -> (u64, u64) {
    let first = u128::from(offset) * u128::from(bits);
    let last = first + u128::from(bits) - 1;
    let word = |bit: u128| u64::try_from(bit / u128::from(WORD)).unwrap_or(u64::MAX);
    (word(first), word(last))
}

fn words_in_words(offset: u64, bits: u64) -> String {
    match words(offset, bits) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}–{last}"),
    }
}

/// The bits of a word, the least significant being 0, that an element takes.
fn bits_in_words(offset: u64, bits: u64) -> String {
    let first = u128::from(offset) * u128::from(bits) % u128::from(WORD);
    let last = (first + u128::from(bits) - 1) % u128::from(WORD);
    match first.cmp(&last) {
        Ordering::Less => format!("{first}–{last}"),
        Ordering::Equal => first.to_string(),
        Ordering::Greater => format!("{first}–31, 0–{last}"),
    }
}

/// Where the followed element lies, in words.
pub(super) fn caption(tiled: &Tiled, offset: u64) -> String {
    let bits = stored_bits(tiled);
    let (first, last) = words(offset, bits);
    if bits >= WORD {
        return match first == last {
            true => format!("Word {first}."),
            false => format!("Words {first} to {last}."),
        };
    }
    let within = bits_in_words(offset, bits);
    match first == last {
        true => format!("Bits {within} of word {first}, bit 0 being the least significant."),
        false => format!("Bits {within}, from word {first} into word {last}."),
    }
}
