//! Doubts about an audit.

use crate::style::bytes;
use tilewise::tpu::memory_space_name;
use tilewise_audit::{Concerned, OtherCompiler, ReportWarning};

/// A warning as a sentence.
///
/// ```
/// let program = tilewise_audit::Program::parse("x = b16[3] parameter(0)")?;
/// let report = tilewise_audit::Audit::new(&program).run();
/// let said: Vec<String> = report.warnings.iter().map(tilewise_report::warning).collect();
/// assert!(said.last().is_some_and(|last| last.contains("`b16` is not an element type")));
/// # Ok::<(), tilewise_audit::Failure>(())
/// ```
#[must_use]
pub fn warning(warning: &ReportWarning) -> String {
    match warning {
        ReportWarning::Text(warning) => warning.to_string(),
        ReportWarning::Shape(error) => error.to_string(),
        ReportWarning::Size(error, arrays) => format!("{} can't be sized: {error}", named(arrays)),
        ReportWarning::NotTpu(failure) => failure.message.clone(),
        ReportWarning::DefaultLayouts => {
            "some shapes have no layout, so no compiler printed this: XLA's default layouts stand in".to_owned()
        }
        ReportWarning::AssumedMachine => {
            "the text does not show whether a GPU or a CPU is to run it: it is planned as for a CPU, and on a GPU temporaries \
             start at other multiples and share memory otherwise; `--machine gpu` plans it so"
                .to_owned()
        }
        ReportWarning::OtherGeneration { other, audited, is_named } => {
            let how = if *is_named { "its file is named after" } else { "its text is of" };
            format!("{how} {other}; the compiler for {audited} may need more or less")
        }
        ReportWarning::OtherBuild { compiler, machine } => {
            let made = match compiler {
                OtherCompiler::Libtpu(version) => format!("libtpu {version}"),
                OtherCompiler::Build(number) => format!("build {number} of the compiler"),
                _ => "another compiler".to_owned(),
            };
            let planned = machine.compiler();
            format!(
                "{made} compiled it, which this tilewise was not compared with; it is planned as by {planned}: temporaries may \
                 differ"
            )
        }
        ReportWarning::AliasMismatch { output_index, argument } => {
            let index: Vec<String> = output_index.iter().map(usize::to_string).collect();
            let index = index.join(",");
            format!(
                "the result {{{index}}} can't lie in argument {argument}: they must be there, of one size, each given once"
            )
        }
        ReportWarning::ShapeMismatch(mismatch) => mismatch.to_string(),
        ReportWarning::PeakAboveTotal { live_bytes, total_bytes } => format!(
            "at its peak {} are alive, and the program holds {}: no compiler printed this",
            bytes(*live_bytes),
            bytes(*total_bytes)
        ),
        ReportWarning::OnChipMemory { memory_space, bytes: taken, room_bytes } => format!(
            "{} lie in {}, which has {}: no compiler printed this",
            bytes(*taken),
            memory_space_name(*memory_space),
            bytes(*room_bytes)
        ),
        ReportWarning::UnknownMemorySpace(space) => {
            format!("arrays lie in memory space {space}, of which it isn't known what it is or how large")
        }
        ReportWarning::Untiled(arrays) => {
            format!("{} lies in HBM without tiles, as no TPU's compiler lays arrays out", named(arrays))
        }
        ReportWarning::NarrowElement(arrays) => {
            format!("{} has fewer bits for an element than its type: no compiler printed this", named(arrays))
        }
        other => other.as_str().replace('_', " "),
    }
}

fn named(arrays: &Concerned) -> String {
    match arrays.count {
        0 | 1 => format!("`{}`", arrays.first),
        count => format!("`{}` and {} others", arrays.first, count - 1),
    }
}
