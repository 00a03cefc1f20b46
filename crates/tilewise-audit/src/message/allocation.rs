//! The entries of a message, with the sizes of their arrays and the causes of padding.

use crate::program::{Cause, SourceLine, causes};
use tilewise::{
    Shape, Sizes, Tiled,
    tpu::{self, Generation},
};
use tilewise_oom::{Entry, Message, PrintedSize};

/// A message with its entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listing<'a> {
    pub(crate) message: &'a Message,
    pub(crate) allocations: &'a [Allocation],
    /// The generation whose layouts price recommendations, if given.
    pub(crate) generation: Option<Generation>,
}

/// One entry of the message: an allocation, an argument or an output.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Allocation {
    /// The entry as read from the message.
    pub entry: Entry,
    /// The array; tiles that the message doesn't print are inferred from the printed size. `None` for an overlay, a
    /// tuple's table, or a truncated shape.
    pub shape: Option<Shape>,
    /// The number of the memory space that ran out, where the message names it.
    pub memory_space: Option<u8>,
    /// Computed logical and physical sizes; `None` without an array or without its layout.
    pub sizes: Option<Sizes>,
    /// Causes of the padding, the largest first.
    pub causes: Vec<Cause>,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
}

/// The tiles of arrays whose layout isn't printed.
#[derive(Clone, Copy)]
pub(crate) enum Tiles {
    /// Those of this generation of TPU; `None` infers them from the size.
    Of(Option<Generation>),
    /// No tiles.
    None,
}

impl Allocation {
    pub(crate) fn of(entry: &Entry, memory_space: Option<u8>, tiles: Tiles) -> Self {
        let shape = entry.shape.as_ref().and_then(|written| written.parsed.as_ref().ok());
        let shape = shape.filter(|shape| shape.as_array().is_some()).cloned();
        let shape = shape.map(|shape| match tiles {
            Tiles::Of(generation) => with_tiles(shape, entry, generation),
            Tiles::None => shape.to_string().parse().unwrap_or(shape),
        });
        let tiled = shape.as_ref().and_then(|shape| Tiled::new(shape).ok());
        let operator = entry.operator.as_ref();
        Self {
            entry: entry.clone(),
            memory_space,
            sizes: tiled.as_ref().map(Tiled::sizes),
            causes: tiled.as_ref().map(causes).unwrap_or_default(),
            source: operator
                .and_then(|operator| Some(SourceLine::new(operator.source_file()?, operator.source_line()?))),
            shape,
        }
    }

    /// Bytes that hold no data; 0 where they can't be computed.
    #[must_use]
    pub fn padding_bytes(&self) -> u64 {
        self.sizes.map_or(0, |sizes| sizes.padding_bytes())
    }

    /// How many times its logical size the array takes; 1 where it can't be computed.
    #[must_use]
    pub fn expansion(&self) -> f64 {
        self.sizes.map_or(1.0, |sizes| sizes.expansion())
    }

    /// Whether the printed size is, digit for digit, that of the array; `None` if one of them is unknown.
    ///
    /// Unlike [`Entry::agrees`] this counts the tiles that [`shape`](Self::shape) was given.
    #[must_use]
    pub fn agrees(&self) -> Option<bool> {
        Some(self.entry.size.as_ref()?.agrees_with(self.sizes?.physical_bytes))
    }

    /// Its size in bytes: that of its shape, or the printed one where they disagree.
    #[must_use]
    pub fn taken_bytes(&self) -> u64 {
        match (self.sizes, self.agrees()) {
            (Some(sizes), Some(true) | None) => sizes.physical_bytes,
            _ => self.entry.size.as_ref().map_or(0, PrintedSize::bytes),
        }
    }
}

/// Adds tiles that aren't printed: old compilers print layouts without tiles, and reports shapes without layouts. A
/// shape whose size disagrees with the printed one gets a TPU's tiles if these agree; without a size, the default
/// tiles.
fn with_tiles(shape: Shape, entry: &Entry, generation: Option<Generation>) -> Shape {
    if shape.layout().is_none() && entry.size.is_none() {
        let default = tpu::predict(&shape, generation.unwrap_or(Generation::V5e));
        return default.map_or(shape, |default| default.shape);
    }
    let untiled = shape.layout().is_none_or(|layout| layout.tiles().is_empty());
    let Some(size) = entry.size.as_ref().filter(|_| untiled && entry.agrees() != Some(true)) else { return shape };
    // The new rule and the old one.
    let generations = generation.map_or(vec![Generation::V5e, Generation::V3], |generation| vec![generation]);
    let tiled = generations.into_iter().filter_map(|generation| Some(tpu::predict(&shape, generation).ok()?.shape));
    let takes = |shape: &Shape| Some(shape.as_array()?.sizes().ok()?.physical_bytes);
    let agrees = |tiled: &Shape| takes(tiled).is_some_and(|bytes| size.agrees_with(bytes));
    tiled.into_iter().find(agrees).unwrap_or(shape)
}

impl Allocation {
    pub(crate) fn op_name(&self) -> &str {
        self.entry.operator.as_ref().and_then(|operator| operator.op_name()).unwrap_or_default()
    }

    /// The operation's names in the framework and the compiler.
    pub(crate) fn operation(&self) -> String {
        let opcode = self.entry.instruction().map(|(name, opcode)| [name, opcode].join(" ")).unwrap_or_default();
        let kind = self.entry.operator.as_ref().and_then(|operator| operator.get("op_type")).unwrap_or_default();
        [self.op_name().rsplit('/').next().unwrap_or_default(), kind, &opcode].join(" ")
    }

    /// Padding in bytes as far as the message shows it, else 0.
    pub(crate) fn told_padding(&self) -> u64 {
        self.entry.padding_bytes().unwrap_or_default()
    }
}
