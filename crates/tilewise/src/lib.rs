#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod array;
#[cfg(feature = "notations")]
mod blocks;
mod bulk;
mod byte_size;
mod checked;
mod conditions;
mod digits;
mod dimension;
mod edit;
mod element_type;
mod equality;
mod equivalence;
mod error;
mod explain_offset;
mod index;
mod inline;
#[cfg(feature = "notations")]
pub mod interop;
mod layout;
mod layout_parts;
mod level;
mod padded;
mod positions;
mod printed;
mod program_shape;
#[cfg(feature = "proto")]
pub mod proto;
mod rearrangement;
mod reshape;
mod runs;
#[cfg(feature = "serde")]
mod serde;
mod shape;
mod sharding;
mod size;
mod steps;
mod text;
mod tile;
mod tile_cover;
#[cfg(feature = "notations")]
mod tile_format;
mod tiled;
pub mod tpu;
mod tree;
mod unchanged_dimensions;
mod visible;
mod walk;
pub mod xla;

pub use array::ArrayShape;
pub use byte_size::ByteSize;
pub use digits::{Digit, DigitSource, NestedAxis};
pub use dimension::Dimension;
pub use element_type::{ElementKind, ElementType};
pub use equality::ShapeEqual;
pub use equivalence::{BitcastAs, Counterexample, Mismatch, Relation};
pub use error::{Error, ErrorKind};
pub use explain_offset::{AxisIndex, WorkedOffset, WorkedTile};
pub use layout::{Layout, SplitConfig};
pub use layout_parts::{LayoutPart, LayoutPartKind};
pub use level::TileLevel;
pub use padded::Padded;
pub use program_shape::ProgramShape;
pub use rearrangement::Rearrangement;
pub use reshape::{FreeReshape, ReshapeObstacle};
pub use runs::{RunOrder, SliceRuns};
pub use shape::{MAX_NESTING, Shape, ShapeKind};
pub use sharding::{Resharding, ShardCopy, Sharding};
pub use size::{PaddedAxis, Sizes};
pub use steps::{Derivation, DerivationStep, Effect, Operation};
pub use text::WithoutLayout;
pub use tile::{Tile, TileDimension};
pub use tile_cover::JoinedTiles;
#[cfg(feature = "notations")]
pub use tile_format::TileFormat;
pub use tiled::Tiled;
pub use unchanged_dimensions::OneSizedDimensions;
pub use visible::{visible, visible_lines};

/// The largest bound, element count or byte count: XLA holds all of them in `int64`.
pub const MAX_SIZE: u64 = i64::MAX as u64;
