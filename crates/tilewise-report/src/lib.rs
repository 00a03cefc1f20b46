//! What tilewise says. `tilewise-audit` judges programs and messages; this crate puts what it found into words, tables and
//! pictures, for the command line, the Python package and the web page. They add nothing of their own.
//!
//! | format | of programs | of messages | of shapes | feature |
//! |---|---|---|---|---|
//! | text for people | [`Text`], [`ProgramLines`] | [`WriteText`] | [`WriteText`] | |
//! | JSON | [`Json`] | [`JsonLine`](tilewise_audit::JsonLine) | [`JsonLine`](tilewise_audit::JsonLine) | |
//! | CSV | [`Csv`] | | | `csv` |
//! | Parquet | `Parquet` | | | `parquet` |
//! | a page in one file | [`Html`] | | | `html` |
//! | a trace for <https://ui.perfetto.dev> | [`Trace`] | | | |
//! | a snapshot for <https://pytorch.org/memory_viz> | [`MemoryViz`] | | | |
//! | SVG, PNG | [`Picture`] | | | `png` |
//!
//! A format of programs is an [`Exporter`]: adding one is adding a module. What is said of one or two shapes is a value
//! that serialises as its JSON and writes itself for people, such as [`ShapeSummary`] and [`BitcastAnswer`].
//!
//! ```
//! use tilewise_report::{AuditOutput, Csv, Exporter, WriteText};
//!
//! let module = tilewise_hlo::Module::parse("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")?;
//! let report = tilewise_audit::audit(&module);
//! let output = AuditOutput { source: "x.hlo".to_owned(), report, all: true, tpu: None, limit: None };
//! assert!(output.to_text(80).contains("Every buffer"));
//!
//! let mut table = Vec::new();
//! Csv.begin(&mut table)?;
//! Csv.write(&output, &mut table)?;
//! assert_eq!(String::from_utf8(table)?.lines().count(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod export;
mod failure;
mod output;
mod shape;
pub mod style;
mod text;

#[cfg(feature = "csv")]
pub use export::Csv;
#[cfg(feature = "html")]
pub use export::Html;
#[cfg(feature = "parquet")]
pub use export::Parquet;
pub use export::{Exporter, Json, MemoryViz, Picture, PictureFormat, Trace};
pub use failure::{excerpt, failure_text};
pub use output::AuditOutput;
pub use shape::{
    BitcastAnswer, Derived, Differences, FreeLayouts, Located, NotationPart, Pair, Rendered, ShapeSummary,
    StepLanguage, TileFormatRow, Understood, answer_line, notation_parts, parse_index, parse_shape, understand,
};
pub use text::{ProgramLines, Terminal, Text, WriteText, write_fix};
