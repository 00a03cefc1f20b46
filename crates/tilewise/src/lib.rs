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
mod covering;
mod digits;
mod dimension;
mod edit;
mod element_type;
mod equality;
mod equivalence;
mod error;
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
#[cfg(feature = "notations")]
mod tile_format;
mod tiled;
pub mod tpu;
mod tree;
mod unmodified;
mod views;
mod visible;
mod walk;
mod worked;
pub mod xla;

pub use array::ArrayShape;
pub use byte_size::ByteSize;
pub use covering::JoinedTiles;
pub use digits::{Digit, DigitSource, NestedAxis};
pub use dimension::Dimension;
pub use element_type::{ElementKind, ElementType};
pub use equality::ShapeEqual;
pub use equivalence::{BitcastAs, Counterexample, Mismatch, Relation};
pub use error::{Error, ErrorKind};
pub use layout::{Layout, SplitConfig};
pub use layout_parts::{LayoutPart, LayoutPartKind};
pub use level::TileLevel;
pub use padded::Padded;
pub use program_shape::ProgramShape;
pub use rearrangement::Rearrangement;
pub use reshape::{FreeReshape, Obstacle};
pub use runs::{RunOrder, SliceRuns};
pub use shape::{MAX_NESTING, Shape, ShapeKind};
pub use sharding::{Resharding, ShardCopy, Sharding};
pub use size::{PaddedAxis, Sizes};
pub use steps::{Derivation, DerivationStep, Effect, Operation};
pub use text::WithoutLayout;
pub use tile::{Tile, TileDimension};
#[cfg(feature = "notations")]
pub use tile_format::TileFormat;
pub use tiled::Tiled;
pub use unmodified::OneSizedDimensions;
pub use views::{View, ViewAccess, ViewPart};
pub use visible::{visible, visible_lines};
pub use worked::{AxisIndex, WorkedOffset, WorkedTile};

/// The largest bound, element count or byte count: XLA holds all of them in `int64`.
pub const MAX_SIZE: u64 = i64::MAX as u64;
