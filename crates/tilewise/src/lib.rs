#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod array;
mod digits;
mod dimension;
mod element_type;
mod error;
mod index;
mod inline;
mod layout;
mod memory_space;
mod shape;
mod size;
mod text;
mod tile;
mod tiled;

pub use array::ArrayShape;
pub use digits::{Digit, DigitSource, NestedAxis};
pub use dimension::Dimension;
pub use element_type::{ElementKind, ElementType};
pub use error::{Error, ErrorKind};
pub use layout::{Layout, SplitConfig};
pub use memory_space::memory_space_name;
pub use shape::{MAX_NESTING, Shape, ShapeKind};
pub use size::PaddedAxis;
pub use text::WithoutLayout;
pub use tile::{Tile, TileDimension};
pub use tiled::Tiled;

/// The largest bound, element count or byte count: XLA holds all of them in `int64`.
pub const MAX_SIZE: u64 = i64::MAX as u64;
