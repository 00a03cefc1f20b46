//! The web page's interface to the core. Texts and bytes go in, JSON and SVG come out; no state is kept but the
//! [`Program`]s that the page holds.
//!
//! Every function runs to its end in a worker. A failure throws a JSON text: `{"kind", "message", "span", "help"}`,
//! like the command line's `error`, but with the span in UTF-16 units, as browsers count.

#![forbid(unsafe_code)]

mod answer;
#[cfg(feature = "programs")]
mod kernel;
#[cfg(feature = "messages")]
mod message;
#[cfg(feature = "programs")]
mod program;
#[cfg(feature = "shapes")]
mod shape;
#[cfg(any(feature = "programs", feature = "shapes"))]
mod theme;

pub use answer::Answer;
#[cfg(feature = "programs")]
pub use kernel::kernels;
#[cfg(feature = "messages")]
pub use message::{explain, is_message};
#[cfg(feature = "programs")]
pub use program::{Program, assignment, machines, programs, recognise, select, together};
#[cfg(feature = "shapes")]
pub use shape::{compare, draw, generations, place, predict, show, steps};
