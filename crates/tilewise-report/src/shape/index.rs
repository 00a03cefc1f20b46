//! Where an element lies, and what lies at an offset.

use super::input::{Reader, index_of, number};
use crate::{
    JsonLine, Terminal, WriteText,
    document::{Answer, Plain},
    style::{STRONG, listed, styled},
};
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{Shape, Tiled};
use tilewise_audit::Failure;

/// The JSON object that `tilewise index -` answers to one line, `SHAPE<TAB>2,3` or `SHAPE<TAB>@17`.
///
/// # Errors
/// None that a line can cause: the object says what is wrong with it.
///
/// ```
/// let answer = tilewise_report::answer_line("f32[3,5]{1,0:T(2,2)}\t2,3")?;
/// assert!(answer.contains(r#""linear_index":17"#));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn answer_line(line: &str) -> serde_json::Result<String> {
    serde_json::to_string(&JsonLine::of_result(line, &Answer::read(line, false, &mut Reader::without_notes())))
}

/// An element and its place, from either: what `tilewise index` answers.
#[derive(Clone, Debug, Serialize)]
pub struct Located {
    shape: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<Vec<u64>>,
    linear_index: u64,
    /// Null in the tail padding, which is outside the physical dimensions.
    physical_index: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    padding: bool,
    /// The document's formula with the element's numbers, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<String>,
}

impl Located {
    /// What lies at an offset, in elements, of a shape's layout.
    ///
    /// # Errors
    /// An offset past the end.
    pub fn at_offset(shape: &Shape, tiled: &Tiled, offset: u64) -> Result<Self, tilewise::Error> {
        Self::of(shape, tiled, tiled.index_of(offset)?, offset)
    }

    /// Where an element lies.
    ///
    /// # Errors
    /// An index out of bounds, or of another length than the shape's rank.
    pub fn at_index(shape: &Shape, tiled: &Tiled, index: Vec<u64>) -> Result<Self, tilewise::Error> {
        let offset = tiled.offset_of(&index)?;
        Self::of(shape, tiled, Some(index), offset)
    }

    fn of(shape: &Shape, tiled: &Tiled, index: Option<Vec<u64>>, linear_index: u64) -> Result<Self, tilewise::Error> {
        Ok(Self {
            shape: shape.to_string(),
            padding: index.is_none(),
            index,
            linear_index,
            physical_index: tiled.physical_index_of(linear_index)?,
            explanation: None,
        })
    }

    /// The answer to a line, `SHAPE<TAB>2,3`, `SHAPE<TAB>y=2,x=3` or `SHAPE<TAB>@17`. An index with as many numbers as memory has dimensions,
    /// and not the array, is one in memory.
    ///
    /// # Errors
    /// What is wrong with it, with the span in the line.
    pub fn read(line: &str, reader: &mut Reader) -> Result<Self, Failure> {
        Ok(Self::of_line(line, reader)?.1)
    }

    /// As [`read`](Self::read), with the document's formula worked out.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn explained(line: &str, reader: &mut Reader) -> Result<Self, Failure> {
        let (tiled, located) = Self::of_line(line, reader)?;
        Ok(located.with_explanation(&tiled)?)
    }

    /// With the document's formula worked out.
    pub(crate) fn with_explanation(self, tiled: &Tiled) -> Result<Self, tilewise::Error> {
        let worked = self.index.as_deref().map(|index| tiled.worked_offset(index)).transpose()?;
        Ok(Self { explanation: worked.map(|worked| worked.to_string()), ..self })
    }

    fn of_line(line: &str, reader: &mut Reader) -> Result<(Tiled, Self), Failure> {
        let Some(tab) = line.rfind('\t') else {
            return Err(Failure::new("malformed_batch_line", "a line must be a shape, a TAB, and an index or @offset")
                .at(0..line.len())
                .with_help("such as `f32[3,5]{1,0:T(2,2)}<TAB>2,3`, or `…<TAB>@17`"));
        };
        let shape = reader.shape(&line[..tab]).map_err(|failure| failure.within(0..tab))?;
        let tiled = Tiled::new(&shape).map_err(|error| Failure::from(error).within(0..tab))?;
        let question = tab + 1..line.len();
        let (plain, is_for_people) = (Plain::of(&line[question.clone()]), reader.is_for_people());
        let locate = || -> Result<Self, Failure> {
            if is_for_people && !line[question.clone()].is_ascii() {
                // Digits of another script: an error is that of the whole question.
                let index = index_of(plain.text(), 0, tiled.array()).map_err(|failure| failure.at(question.clone()))?;
                return Self::at_any_index(&shape, &tiled, index);
            }
            if let Some(offset) = line[question.clone()].strip_prefix('@') {
                return Ok(Self::at_offset(&shape, &tiled, number(offset, question.start + 1)?)?);
            }
            let index = index_of(&line[question.clone()], question.start, tiled.array())?;
            Self::at_any_index(&shape, &tiled, index)
        };
        // An error without a span gets that of the whole question.
        let located = locate().map_err(|failure| if failure.span.is_some() { failure } else { failure.at(question) });
        located.map(|located| (tiled, located))
    }
}

impl Located {
    /// Where an element lies, by its index in the array or, with as many numbers as memory has dimensions, in memory.
    fn at_any_index(shape: &Shape, tiled: &Tiled, index: Vec<u64>) -> Result<Self, Failure> {
        let is_physical = index.len() != tiled.logical_dimensions().len();
        if index.len() == tiled.physical_dimensions().len() && is_physical {
            return Ok(Self::at_offset(shape, tiled, tiled.offset_of_physical(&index)?)?);
        }
        let one = if let [number] = index[..] { Some(number) } else { None };
        let located = Self::at_index(shape, tiled, index).map_err(Failure::from);
        located.map_err(|failure| match one {
            Some(number) if is_physical => failure.with_help(of_one_number(number, tiled)),
            _ => failure,
        })
    }
}

/// What was meant by a number where an index has several.
fn of_one_number(number: u64, tiled: &Tiled) -> String {
    let last: Vec<u64> = tiled.logical_dimensions().iter().map(|bound| bound.saturating_sub(1)).collect();
    match last.is_empty() {
        true => format!("a scalar's index is empty, `''`; `--offset {number}` asks what lies at an offset"),
        false => format!(
            "an index is one argument with a number for each dimension, up to `{}`; `--offset {number}` asks what lies at an offset",
            listed(&last)
        ),
    }
}

/// An element with the bytes it lies in and what shares its word: what the page says of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Placement {
    #[serde(flatten)]
    located: Located,
    /// Its first byte.
    byte: u128,
    /// Its first bit in that byte.
    bit: u128,
    /// How many bits it takes.
    bits: u64,
    /// The elements in the same 32-bit word, by index; none where each has words of its own.
    word: Vec<Vec<u64>>,
}

impl Placement {
    /// Where that element of a layout lies in memory.
    #[must_use]
    pub fn of(located: Located, tiled: &Tiled) -> Self {
        let (offset, bits) = (located.linear_index, tiled.stored_bits());
        let at = u128::from(offset) * u128::from(bits);
        let each = (32 / bits.max(1)).max(1);
        let first = offset - offset % each;
        let word = if bits < 32 { first..first.saturating_add(each) } else { 0..0 };
        let word = word.filter_map(|mate| tiled.index_of(mate).ok().flatten()).collect();
        Self { located, byte: at / 8, bit: at % 8, bits, word }
    }
}

impl WriteText for Located {
    fn write_text(&self, _: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let physical = match &self.physical_index {
            Some(physical) => format!("[{}]", listed(physical)),
            None => "the tail padding".to_owned(),
        };
        let index = match &self.index {
            Some(index) => format!("({})", listed(index)),
            None => "padding".to_owned(),
        };
        writeln!(
            out,
            "{}  {} is at offset {}, in memory {physical}",
            self.shape,
            styled(STRONG, index),
            styled(STRONG, self.linear_index),
        )?;
        let explanation = self.explanation.as_deref().unwrap_or_default();
        explanation.lines().try_for_each(|line| writeln!(out, "  {line}"))
    }
}
