//! Of shapes: what the verbs of the command line answer to one or two of them, as JSON and for people.

mod bitcast;
mod diff;
mod formula;
mod hex;
mod index;
mod input;
mod instead;
mod labelled;
mod layout;
mod lenient;
mod notation;
pub(crate) mod packing;
mod parts;
mod predict;
mod show;
mod steps;
mod tiles;

pub use bitcast::{BitcastAnswer, FreeLayouts, FreeViews};
pub(crate) use bitcast::{in_words, relation};
pub use diff::Differences;
pub use index::{Located, Placement, answer_line};
pub use input::{Pair, Reader, parse_index, parse_shape, parse_shape_as_written};
pub use layout::LayoutSummary;
pub use notation::Rendered;
pub use parts::{NotationPart, notation_parts};
pub use predict::PredictedShape;
pub use show::ShapeSummary;
pub use steps::{Derived, StepLanguage};
pub use tiles::TileFormatRow;
