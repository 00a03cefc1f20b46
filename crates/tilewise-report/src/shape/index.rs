//! An element and its place, asked for in one line.

use super::{
    Located,
    input::{Reader, index_of, number},
};
use crate::{plain::Plain, style::listed};
use tilewise::{Shape, Tiled};
use tilewise_audit::Failure;

impl Located {
    /// The answer to a line, `SHAPE<TAB>2,3`, `SHAPE<TAB>y=2,x=3` or `SHAPE<TAB>@17`. An index with as many numbers as memory has dimensions,
    /// and not the array, is one in memory.
    ///
    /// # Errors
    /// An error in the line, with its span.
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

    /// The place of an element, by its index in the array or, with as many numbers as memory has dimensions, in memory.
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

/// Help for a single number in place of an index.
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
