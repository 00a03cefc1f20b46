//! Of shapes: what the verbs of the command line answer to one or two of them, as JSON and for people.

mod bitcast;
mod diff;
mod edited;
mod hex;
mod index;
mod input;
mod instead;
mod item;
mod labelled;
mod layout;
pub(crate) mod lenient;
mod notation;
pub(crate) mod packing;
mod parts;
mod predict;
mod show;
mod steps;
mod tiles;

pub use bitcast::{BitcastAnswer, FreeLayouts, FreeViews};
pub use diff::Differences;
pub use edited::Edited;
pub use index::{Located, Placement, answer_line};
pub use input::{Pair, Reader, parse_index, parse_shape, parse_shape_as_written};
pub(crate) use instead::Parts;
pub use item::LinesOfItem;
pub(crate) use labelled::Labelled;
pub use layout::LayoutSummary;
pub(crate) use layout::example;
pub(crate) use lenient::element_type;
pub use notation::Rendered;
pub use parts::{NotationPart, notation_parts};
pub use predict::PredictedShape;
pub use show::ShapeSummary;
pub(crate) use show::open_sizes;
pub use steps::{Derived, StepLanguage};
pub use tiles::TileFormatRow;
