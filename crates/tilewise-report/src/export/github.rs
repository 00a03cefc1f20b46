//! Workflow commands of GitHub Actions: each line of a log that begins so marks a line of the change.

use super::{Exporter, alerts::alerts};
use crate::AuditOutput;
use std::io::{self, Write};

/// A line for each thing to say, `::warning file=…,line=…,title=…::…`.
///
/// The form is that of GitHub's *Workflow commands for GitHub Actions*.
#[derive(Clone, Copy, Debug, Default)]
pub struct Github;

impl Exporter for Github {
    fn write(&mut self, output: &AuditOutput, out: &mut dyn Write) -> io::Result<()> {
        for alert in alerts(output) {
            let (level, rule) = (alert.level.as_str(), alert.rule);
            let code = alert.code.map_or(String::new(), |code| format!("\n{code}"));
            let (file, message) = (property(&alert.file), workflow_data(&format!("{}{code}", alert.message)));
            writeln!(out, "::{level} file={file},line={},title=tilewise: {rule}::{message}", alert.line)?;
        }
        Ok(())
    }
}

/// Escapes the text behind the second `::` of a command.
pub(crate) fn workflow_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a value in front of it.
pub(crate) fn property(text: &str) -> String {
    workflow_data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::{property, workflow_data};

    #[test]
    fn nothing_ends_a_command_early() {
        assert_eq!(workflow_data("86.3 %\n::error::x"), "86.3 %25%0A::error::x");
        assert_eq!(property("a,line=1::b"), "a%2Cline=1%3A%3Ab");
    }
}
