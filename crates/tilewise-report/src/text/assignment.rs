//! The compiler's own plan without its program, for people.

use crate::{
    Terminal, WriteText,
    style::{FAINT, STRONG, bytes, bytes_both, styled},
};
use std::io::{self, Write};
use tilewise::visible;
use tilewise_audit::AssignmentReport;

/// The caveat on an assignment that may be cut off.
pub(crate) const MAY_LACK_ITS_END: &str = "if allocations are missing at its end, that can't be seen";

impl WriteText for AssignmentReport {
    fn write_text(&self, _: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}  {}\n", styled(STRONG, "Buffer assignment"), styled(FAINT, visible(&self.source)))?;
        for space in &self.memory_spaces {
            writeln!(out, "{} holds {}:", space.memory_space_name(), bytes_both(space.total_bytes()))?;
            let parts = [
                ("arguments", space.argument_bytes),
                ("results", space.output_bytes),
                ("constants", space.constant_bytes),
                ("temporaries", space.temporary_bytes),
            ];
            let parts = parts.iter().map(|(name, count)| format!("{} {name}", bytes(*count)));
            writeln!(out, "  {}", parts.collect::<Vec<_>>().join(", "))?;
        }
        writeln!(out, "\n{}", styled(STRONG, "Largest allocations"))?;
        for row in &self.allocations {
            let largest = match (&row.largest, row.largest_bytes) {
                (Some(name), Some(_)) if row.values == 1 => name.clone(),
                (Some(name), Some(size)) => format!("{} values, the largest {name} of {}", row.values, bytes(size)),
                _ => "no value".to_owned(),
            };
            writeln!(out, "  {:>10}  {} {}: {largest}", bytes(row.bytes), row.kind, row.index)?;
        }
        let hint =
            "The program itself (….after_optimizations.txt or .hlo.pb) tells source lines, padding and the peak.";
        writeln!(out, "\n{}", styled(FAINT, hint))?;
        if !self.is_whole {
            writeln!(out, "{}", styled(FAINT, format!("The file names no total: {MAY_LACK_ITS_END}.")))?;
        }
        writeln!(out)
    }
}
