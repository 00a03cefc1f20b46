//! Lines of the reader's own source.

use std::collections::HashMap;
use tilewise_audit::SourceLine;

/// The texts of lines of source, for a report to quote.
///
/// ```
/// use tilewise_report::{AuditOutput, Quotes};
///
/// let text = "HloModule m, is_scheduled=true\nENTRY e { ROOT x = f32[8,3]{1,0:T(8,128)} parameter(0), metadata={op_name=\"x\" source_file=\"a.py\" source_line=7} }";
/// let program = tilewise_audit::Program::parse(text)?;
/// let mut output = AuditOutput::new(tilewise_audit::Audit::new(&program).run());
/// output.quotes = Quotes::read(&output.report, |line| (line.line == 7).then(|| "x = table[i]".to_owned()));
/// assert_eq!(output.summary().causes[0].quote.as_deref(), Some("x = table[i]"));
/// # Ok::<(), tilewise_audit::Failure>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Quotes(HashMap<(String, u32), String>);

impl Quotes {
    /// The lines that a report's first screen names, those of which `read` gives the text.
    pub fn read(report: &tilewise_audit::Report, mut read: impl FnMut(&SourceLine) -> Option<String>) -> Self {
        let (causes, advice) = (crate::summary::causes(report), report.advice());
        let of_causes = causes.iter().filter_map(|cause| cause.source.as_ref());
        let of_advice = advice.iter().filter_map(|one| one.array.as_ref()?.source.as_ref());
        let mut quotes = HashMap::new();
        for line in of_causes.chain(of_advice) {
            if let Some(text) = read(line) {
                quotes.insert((line.file.clone(), line.line), text);
            }
        }
        Self(quotes)
    }

    /// The text of a line.
    pub(crate) fn of(&self, line: Option<&SourceLine>) -> Option<String> {
        let line = line?;
        self.0.get(&(line.file.clone(), line.line)).cloned()
    }
}
