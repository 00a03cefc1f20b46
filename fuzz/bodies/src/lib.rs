//! The bodies of the fuzz targets.
//!
//! The programs in `fuzz/fuzz_targets` call these functions, and `tests/corpus.rs` calls them with every input of
//! `fuzz/corpus` and `fuzz/regressions`. A function panics if something is wrong.
//!
//! A corpus is one packed file: `cargo xtask fuzz` unpacks it, and `cargo xtask fuzz --pack` adds what was found. An
//! input that failed becomes a file in `fuzz/regressions/TARGET`, named in words.

mod batch;
mod bitcast;
mod c_border;
mod hlo;
mod index;
mod notation;
mod relayout;
mod report;
mod shape;

pub use batch::batch_line;
pub use bitcast::bitcast_vs_naive;
pub use c_border::c_border;
pub use hlo::{hlo_text, oom_message};
pub use index::index_round_trip;
pub use notation::notation_text;
pub use relayout::relayout_vs_naive;
pub use report::report_formats;
pub use shape::{shape_proto, shape_text};

/// A fuzz target's body.
pub type Body = fn(&[u8]);

/// Every target, by the name of its program and of its corpus.
pub const TARGETS: [(&str, Body); 11] = [
    ("batch_line", batch_line),
    ("bitcast_vs_naive", bitcast_vs_naive),
    ("c_border", c_border),
    ("hlo_text", hlo_text),
    ("index_round_trip", index_round_trip),
    ("notation_text", notation_text),
    ("oom_message", oom_message),
    ("relayout_vs_naive", relayout_vs_naive),
    ("report_formats", report_formats),
    ("shape_proto", shape_proto),
    ("shape_text", shape_text),
];
