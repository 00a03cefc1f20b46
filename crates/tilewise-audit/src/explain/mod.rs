//! Why a TPU ran out of memory: a message's entries, with what their arrays take and why.

mod advice;
mod answers;
mod decode;
mod kernel;
mod run_time;

pub use answers::Answer;
pub use decode::{decode_log, read_log, read_stream};

use crate::{SourceLine, causes};
use tilewise::{
    Shape, Sizes, Tiled,
    tpu::{self, Generation},
};
use tilewise_oom::{Entry, Message, PrintedSize};

/// A message read and judged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The message as it was read.
    pub message: Message,
    /// One row for each of the message's entries, in its order.
    pub allocations: Vec<Allocation>,
    /// The generation whose layouts price what is recommended, if it was given.
    pub(crate) generation: Option<Generation>,
}

/// One entry of the message: an allocation, an argument or an output.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Allocation {
    /// What the message says.
    pub entry: Entry,
    /// The array, with the tiles that the printed size tells of where the message prints none; `None` for an overlay, a
    /// tuple's table, or a shape that was cut off.
    pub shape: Option<Shape>,
    /// The number of the memory space that ran out, where the message names it.
    pub memory_space: Option<u8>,
    /// What the array holds and takes, computed; `None` without an array or without its layout.
    pub sizes: Option<Sizes>,
    /// What makes the padding, in words, the largest cause first.
    pub causes: Vec<String>,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
}

/// Judges what a TPU's out-of-memory message lists.
///
/// Arguments and outputs print no padding, and are computed like the rest. The generation prices what is
/// [recommended](Explanation::advice); without one it is inferred from tiles where it can be.
///
/// ```
/// use tilewise_oom::Message;
///
/// let text = "Ran out of memory in memory space hbm. Used 294.50M of 250.00M hbm. Exceeded hbm capacity by 44.50M.
///   Largest program arguments and outputs in hbm:
///   1. Size: 195.31M
///      Shape: f32[400000,12]{1,0:T(8,128)}
///      XLA label: Argument 0 index {}
///      ==========================";
/// let explained = tilewise_audit::explain(Message::parse(text)?, None);
/// assert_eq!(explained.allocations[0].sizes.map(|sizes| sizes.physical_bytes), Some(204_800_000));
/// assert_eq!((explained.padding_bytes(), explained.advice()[0].change.as_str()), (185_600_000, "order"));
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
#[must_use]
pub fn explain(message: Message, generation: Option<Generation>) -> Explanation {
    let memory_space = message.memory_space_number();
    let tiles = if message.machine().is_some() { Tiles::None } else { Tiles::Of(generation) };
    let allocations = message.entries.iter().map(|entry| Allocation::of(entry, memory_space, tiles)).collect();
    Explanation { message, allocations, generation }
}

/// What arrays are tiled like whose layout isn't printed.
#[derive(Clone, Copy)]
enum Tiles {
    /// As on this generation of TPU, or as their size tells.
    Of(Option<Generation>),
    /// Not at all.
    None,
}

impl Allocation {
    fn of(entry: &Entry, memory_space: Option<u8>, tiles: Tiles) -> Self {
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

    /// Whether the printed size is, digit for digit, that of the array; `None` where there is nothing to compare.
    ///
    /// Unlike [`Entry::agrees`] this counts the tiles that [`shape`](Self::shape) was given.
    #[must_use]
    pub fn agrees(&self) -> Option<bool> {
        Some(self.entry.size.as_ref()?.agrees_with(self.sizes?.physical_bytes))
    }

    /// What it takes, in bytes: as its shape says, or where that disagrees as printed.
    #[must_use]
    pub fn taken_bytes(&self) -> u64 {
        match (self.sizes, self.agrees()) {
            (Some(sizes), Some(true) | None) => sizes.physical_bytes,
            _ => self.entry.size.as_ref().map_or(0, PrintedSize::bytes),
        }
    }
}

/// Old compilers print layouts without tiles, and reports shapes without layouts. If such a shape does not take what
/// the message says, and does with the tiles a TPU gives it, those are its tiles; without a size the default ones.
fn with_tiles(shape: Shape, entry: &Entry, generation: Option<Generation>) -> Shape {
    if shape.layout().is_none() && entry.size.is_none() {
        let default = tpu::predict(&shape, generation.unwrap_or(Generation::V5e));
        return default.map_or(shape, |default| default.shape);
    }
    let untiled = shape.layout().is_none_or(|layout| layout.tiles().is_empty());
    let Some(size) = entry.size.as_ref().filter(|_| untiled && entry.agrees() != Some(true)) else { return shape };
    // The old rule and the new one.
    let generations = generation.map_or(vec![Generation::V5e, Generation::V3], |generation| vec![generation]);
    let tiled = generations.into_iter().filter_map(|generation| Some(tpu::predict(&shape, generation).ok()?.shape));
    let takes = |shape: &Shape| Some(shape.as_array()?.sizes().ok()?.physical_bytes);
    let agrees = |tiled: &Shape| takes(tiled).is_some_and(|bytes| size.agrees_with(bytes));
    tiled.into_iter().find(agrees).unwrap_or(shape)
}

impl Explanation {
    /// Whose the largest array is that the message lists: the line of the user's program, or the framework's name of the
    /// operation, or the compiler's of the instruction.
    #[must_use]
    pub fn owner(&self) -> Option<String> {
        let largest = self.allocations.iter().rev().max_by_key(|row| row.taken_bytes())?;
        let line = largest.source.as_ref().map(|source| format!("{}:{}", source.file, source.line));
        let name = || Some(largest.op_name()).filter(|name| !name.is_empty()).map(str::to_owned);
        let label = || {
            let (name, _) = largest.entry.instruction()?;
            Some(name.to_owned())
        };
        line.or_else(name).or_else(label).or_else(|| largest.entry.label.clone())
    }

    /// What to run or to write next: the code of the first piece of advice, else the command that tells more.
    ///
    /// ```
    /// let text = "cannot statically prove that index in dimension 1 is a multiple of 128";
    /// let explained = tilewise_audit::explain(tilewise_oom::Message::parse(text)?, None);
    /// assert_eq!(explained.next_step(), "i = pl.multiple_of(i, 128)");
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn next_step(&self) -> String {
        let code = self.advice().into_iter().next().and_then(|first| first.snippet).map(|snippet| snippet.code);
        code.unwrap_or_else(|| format!("tilewise explain {}", self.message.page()))
    }

    /// Padding of all the arrays that the message lists, in bytes.
    #[must_use]
    pub fn padding_bytes(&self) -> u64 {
        self.allocations.iter().map(Allocation::padding_bytes).fold(0, u64::saturating_add)
    }

    /// By how much the memory is exceeded, in bytes: as printed, or the difference of what is needed and what there is.
    #[must_use]
    pub fn shortfall_bytes(&self) -> Option<u64> {
        let message = &self.message;
        let difference = || message.used.as_ref()?.bytes().checked_sub(message.limit.as_ref()?.bytes());
        message.exceeded.as_ref().map(|exceeded| exceeded.bytes()).or_else(difference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_that_are_not_printed_follow_from_the_size() {
        let text =
            "Ran out of memory in memory space vmem. Used 29.95M of 16.00M vmem. Exceeded vmem capacity by 13.95M.
  Largest program allocations in vmem:
  1. Size: 64.0K
     Shape: f32[128,3]{1,0}
     Unpadded size: 1.5K
     ==========================";
        let explained = explain(Message::parse(text).expect("a message"), None);
        let [row] = &explained.allocations[..] else { panic!("one row") };
        assert_eq!(row.shape.as_ref().map(Shape::to_string).as_deref(), Some("f32[128,3]{1,0:T(8,128)}"));
        assert_eq!(row.sizes.map(|sizes| (sizes.logical_bytes, sizes.physical_bytes)), Some((1536, 65_536)));
    }
}
