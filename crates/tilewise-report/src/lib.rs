//! What tilewise says. `tilewise-audit` judges programs and messages; this crate renders what it found, for the command
//! line, the Python package and the web page, which add no words and no numbers of their own.
//!
//! | format | what is rendered | feature |
//! |---|---|---|
//! | text for people | [`AuditOutput::to_text`], [`explanation_text`] | `text` |
//! | JSON | [`AuditOutput`] serialises itself; [`JsonLine`](tilewise_audit::JsonLine) is its line | |
//! | CSV | [`export::csv`] | `csv` |
//! | Parquet | [`export::parquet`] | `parquet` |
//! | a page in one file | [`AuditOutput::to_html`] | `html` |
//! | a trace for Perfetto | [`export::trace`] | |
//! | a snapshot for <https://pytorch.org/memory_viz> | [`export::memory_viz`] | |
//! | SVG, PNG | [`AuditOutput::picture`] | `picture`, `png` |
//!
//! ```
//! use tilewise_report::AuditOutput;
//!
//! let module = tilewise_hlo::Module::parse("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")?;
//! let report = tilewise_audit::audit(&module);
//! let output = AuditOutput { source: "x.hlo".to_owned(), report, all: true, tpu: None, limit: None };
//! assert!(output.to_text(80).contains("Every buffer"));
//! # Ok::<(), tilewise_hlo::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod export;
mod failure;
mod output;
#[cfg(feature = "picture")]
mod picture;
#[cfg(feature = "text")]
pub mod style;
#[cfg(feature = "text")]
mod text;

pub use failure::excerpt;
#[cfg(feature = "text")]
pub use failure::failure_text;
pub use output::AuditOutput;
#[cfg(feature = "text")]
pub use text::{Terminal, Total, explanation_text, write_assignment, write_explanation, write_fix};
