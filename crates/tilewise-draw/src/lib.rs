#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod axis;
mod budget;
mod draw;
mod error;
mod figure;
mod frontier;
mod grid;
mod options;
mod padded;
mod palette;
mod plan;
mod plane;
#[cfg(feature = "png")]
mod png;
mod register;
mod scene;
mod svg;
mod terminal;
mod text;
mod trace;
mod views;

pub use budget::{BudgetPart, BudgetPicture, BudgetRow};
pub use error::{Error, ErrorKind};
pub use frontier::{FrontierPicture, FrontierPoint};
pub use options::{ColorMode, Options, Theme, View};
pub use plan::{MemoryPicture, Peak, Piece};
pub use scene::Scene;
