//! What the web page asks of the core. Texts and bytes go in, JSON and SVG come out; nothing is kept but the [`Program`]s
//! that the page holds.
//!
//! Every function runs to its end in a worker. What fails throws a JSON text: `{"kind", "message", "span", "help"}`, as the
//! command line's `error`, but with the span in UTF-16 units, as a browser counts.

#![forbid(unsafe_code)]

mod answer;
mod message;
mod program;
mod shape;

pub use answer::Answer;
pub use message::explain;
pub use program::{Program, programs, recognise};
pub use shape::{compare, draw, place, predict, show, steps};
