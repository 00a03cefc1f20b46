//! The tests of the pictures, in one program.

mod explains;
mod figures;
mod limits;
mod pixels;
mod plan;
mod snapshots;
mod structure;
mod support;
