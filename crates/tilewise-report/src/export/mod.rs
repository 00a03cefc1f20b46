//! Audits in other programs' formats, one module a format.

mod alerts;
#[cfg(feature = "csv")]
mod csv;
mod events;
mod github;
#[cfg(feature = "html")]
mod html;
mod json;
mod markdown;
mod memory_viz;
#[cfg(feature = "parquet")]
mod parquet;
mod picture;
mod sarif;
mod trace;

#[cfg(feature = "csv")]
pub use csv::Csv;
pub use github::Github;
pub(crate) use github::{property, workflow_data};
#[cfg(feature = "html")]
pub use html::Html;
#[cfg(feature = "html")]
pub(crate) use html::page;
pub use json::Json;
pub use markdown::{Markdown, table as markdown_table, text as markdown_text};
pub use memory_viz::MemoryViz;
#[cfg(feature = "parquet")]
pub use parquet::Parquet;
pub(crate) use picture::sparkline;
pub use picture::{Picture, PictureFormat};
pub use sarif::Sarif;
pub use trace::Trace;

use crate::AuditOutput;
use std::io::{self, Write};
use tilewise_audit::Failure;

/// A format: a beginning, each audit, an end.
///
/// ```
/// use tilewise_report::{AuditOutput, Exporter, Trace};
///
/// let text = "HloModule m, is_scheduled=true\nENTRY e { ROOT x = f32[256]{0:T(256)} parameter(0) }";
/// let report = tilewise_audit::audit(&tilewise_hlo::Module::parse(text)?);
/// let output = AuditOutput::new(report);
/// let mut trace = Vec::new();
/// Trace.write(&output, &mut trace)?;
/// assert!(trace.starts_with(b"{\"displayTimeUnit\""));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Exporter {
    /// Writes the beginning, before the first audit.
    ///
    /// # Errors
    /// Those of `out`.
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let _ = out;
        Ok(())
    }

    /// Whether the format can have an audit.
    ///
    /// # Errors
    /// Why not, such as `no_plan`.
    fn accepts(&self, output: &AuditOutput) -> Result<(), Failure> {
        let _ = output;
        Ok(())
    }

    /// Writes an audit; one that the format can't have, as far as it can.
    ///
    /// # Errors
    /// Those of `out`.
    fn write(&mut self, output: &AuditOutput, out: &mut dyn Write) -> io::Result<()>;

    /// Writes the end, after the last audit.
    ///
    /// # Errors
    /// Those of `out`.
    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let _ = out;
        Ok(())
    }
}

/// An error without a memory plan, which some formats need.
fn has_plan(output: &AuditOutput, purpose: &str) -> Result<(), Failure> {
    match output.report.plan() {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(Failure::new("no_plan", format!("{}: no memory plan{purpose}: {error}", output.report.source)))
        }
    }
}
