//! Helpers of tests, fuzz targets and benchmarks. No published crate depends on them.
//!
//! - [`Random`]: reproducible random numbers.
//! - [`cells`]: the tiled-layout document's definition on an array of cells. Everything fast is compared with it.
//! - [`NaiveRelayout`]: a buffer moved between layouts, element by element.
//! - [`Guarded`] and [`Tight`]: buffers that show accesses outside them.
//! - [`programs`]: compiled programs, and the compiler's figures for them.
//! - `shapes`: random small arrays, and `cases`, how many of them; with the feature `proptest`.
//! - `corpus`: the inputs of a fuzz target in one file, with the feature `corpus`.

mod buffers;
pub mod cells;
#[cfg(feature = "corpus")]
pub mod corpus;
pub mod programs;
mod random;
mod relayout;
#[cfg(feature = "proptest")]
pub mod shapes;

pub use buffers::{Guarded, Tight};
pub use random::Random;
pub use relayout::NaiveRelayout;
#[cfg(feature = "proptest")]
pub use shapes::cases;
