//! What each fuzz target does with its bytes.
//!
//! The targets in `fuzz/fuzz_targets` hand their bytes to these functions, and `tests/corpus.rs` hands them every file of
//! `fuzz/corpus`. A function returns if all is well and panics if not.

mod batch;
mod hlo;
mod index;
mod relayout;
mod shape;

pub use batch::batch_line;
pub use hlo::{hlo_text, oom_message};
pub use index::index_round_trip;
pub use relayout::relayout_vs_naive;
pub use shape::{shape_proto, shape_text};

/// A fuzz target's body.
pub type Body = fn(&[u8]);

/// Every target, by the name of its program and of its folder in `fuzz/corpus`.
pub const TARGETS: [(&str, Body); 7] = [
    ("batch_line", batch_line),
    ("hlo_text", hlo_text),
    ("index_round_trip", index_round_trip),
    ("oom_message", oom_message),
    ("relayout_vs_naive", relayout_vs_naive),
    ("shape_proto", shape_proto),
    ("shape_text", shape_text),
];
