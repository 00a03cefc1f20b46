//! The tests of the pictures, in one program.

mod figures;
mod limits;
#[path = "../../../tilewise/tests/it/support.rs"]
mod oracle;
mod pixels;
mod snapshots;
mod structure;
mod support;
