//! The tests of the pictures, in one program.

mod figures;
mod limits;
mod pixels;
mod snapshots;
mod structure;
mod support;
