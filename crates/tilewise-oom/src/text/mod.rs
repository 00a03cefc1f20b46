//! Texts as people paste them, and their parts: what surrounds a message is removed once, before anything is read.

pub(crate) mod clean;
mod escapes;
pub(crate) mod instruction;
mod json_lines;
mod line;
pub(crate) mod reader;
pub(crate) mod size;
pub(crate) mod word;
