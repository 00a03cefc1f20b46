//! The place of an element, and the element at an offset.

use crate::{
    Terminal, WriteText,
    style::{STRONG, listed, styled},
};
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{Shape, Tiled};

/// An element and its place, from either: the answer of `tilewise index`.
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
    /// The element at an offset, in elements, of a shape's layout.
    ///
    /// # Errors
    /// An offset past the end.
    pub fn at_offset(shape: &Shape, tiled: &Tiled, offset: u64) -> Result<Self, tilewise::Error> {
        Self::of(shape, tiled, tiled.index_of(offset)?, offset)
    }

    /// The place of an element.
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

    /// With the document's formula worked out.
    pub(crate) fn with_explanation(self, tiled: &Tiled) -> Result<Self, tilewise::Error> {
        let worked = self.index.as_deref().map(|index| tiled.worked_offset(index)).transpose()?;
        Ok(Self { explanation: worked.map(|worked| worked.to_string()), ..self })
    }
}

/// An element with its bytes and the elements of its word: the page's data of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Placement {
    #[serde(flatten)]
    located: Located,
    /// Its first byte.
    byte: u128,
    /// Its first bit in that byte.
    bit: u128,
    /// The number of its bits.
    bits: u64,
    /// The elements in the same 32-bit word, by index; none where each has words of its own.
    word: Vec<Vec<u64>>,
}

impl Placement {
    /// The place in memory of that element of a layout.
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
