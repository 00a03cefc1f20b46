//! The memory's contents, added up.

use crate::entry::{Entry, Interface, Section};
use crate::form::Form;
use crate::message::Message;
use crate::text::size::PrintedSize;

/// The memory's contents in bytes, as exact as the message prints them. A part is `None` if the message lacks it.
///
/// Padding and fragmentation are parts of the other figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// Memory available to programs, without the reserved part.
    pub capacity_bytes: Option<u64>,
    /// Memory reserved by the run time.
    pub reserved_bytes: Option<u64>,
    /// Memory held by other programs, or by this one between its runs: then it includes arguments and results.
    pub others_bytes: Option<u64>,
    /// The arguments.
    pub argument_bytes: Option<u64>,
    /// The results, without the part shared with arguments.
    pub output_bytes: Option<u64>,
    /// The temporaries.
    pub temporary_bytes: Option<u64>,
    /// The rest of the program: its code, constants, and memory of single instructions.
    pub program_bytes: Option<u64>,
    /// Padding in all of these: in temporaries by the message's own total, otherwise by its list; in arguments and
    /// results by its list.
    pub padding_bytes: Option<u64>,
    /// Padding in the arguments, and in results that lie in none of them.
    pub argument_padding_bytes: Option<u64>,
    /// Bytes lost to packing the temporaries; at run time, free bytes outside the largest free piece.
    pub fragmentation_bytes: Option<u64>,
    /// Bytes needed.
    pub used_bytes: Option<u64>,
    /// Bytes needed beyond those available.
    pub missing_bytes: Option<u64>,
    /// Number of listed arrays with unknown padding: the shape is cut off or can't be read, and no padding is printed.
    /// Their padding counts in totals only.
    pub unread: usize,
}

impl Message {
    /// Adds up the memory's contents, from the message's own totals, or from the entries if it prints none.
    ///
    /// ```
    /// let text = "Program hbm requirement 10.96G:
    ///     HLO temp  10.96G (1.2% utilization: Unpadded (140.25M) Padded (10.96G), 0.0% fragmentation (0B))";
    /// let budget = tilewise_oom::Message::parse(text)?.budget();
    /// assert_eq!(budget.temporary_bytes, Some(11_768_210_391));
    /// assert_eq!(budget.padding_bytes.map(|bytes| bytes >> 20), Some(11_082));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn budget(&self) -> Budget {
        let bytes = |size: Option<&PrintedSize>| size.map(PrintedSize::bytes);
        let usage = |name| bytes(self.usage.as_ref().and_then(|usage| usage.get(name)));
        let persistent = |name: &str| self.persistent.iter().find(|row| row.name == name);
        let requirement = self.requirement.as_ref();
        let program = bytes(requirement.map(|requirement| &requirement.total)).or_else(|| usage("program"));
        let temporary_bytes =
            bytes(requirement.and_then(|requirement| requirement.get("HLO temp"))).or_else(|| usage("temporaries"));
        let output_bytes = self
            .output
            .as_ref()
            .map(|output| output.size.bytes().saturating_sub(output.shared.as_ref().map_or(0, PrintedSize::bytes)));
        let reserved = self.usage.iter().flat_map(|usage| &usage.rows).find(|row| row.name.starts_with("reserved"));
        let others = self.usage.iter().flat_map(|usage| &usage.rows).find(|row| row.name.starts_with("heap"));
        let total = || bytes(self.usage.as_ref().map(|usage| &usage.total));
        let argument_padding_bytes = self.argument_padding(output_bytes);
        Budget {
            capacity_bytes: match self.form {
                Form::RunTime => bytes(self.capacity.as_ref()),
                _ => bytes(self.limit.as_ref()),
            },
            reserved_bytes: bytes(reserved.map(|row| &row.size)),
            others_bytes: bytes(others.map(|row| &row.size)),
            argument_bytes: usage("arguments").or_else(|| bytes(persistent("arguments").map(|row| &row.size))),
            output_bytes: output_bytes
                .or_else(|| bytes(persistent("output").map(|row| &row.size)))
                .or_else(|| usage("results")),
            temporary_bytes,
            program_bytes: program
                .map(|program| program.saturating_sub(temporary_bytes.unwrap_or(0)))
                .or_else(|| usage("constants")),
            padding_bytes: sum(self.temporary_padding(), argument_padding_bytes),
            argument_padding_bytes,
            fragmentation_bytes: self.fragmentation(),
            used_bytes: bytes(self.used.as_ref()).or_else(total).or(program),
            missing_bytes: self.missing(),
            unread: self.entries.iter().filter(|entry| entry.is_unread()).count(),
        }
    }

    fn missing(&self) -> Option<u64> {
        let difference = || self.used.as_ref()?.bytes().checked_sub(self.limit.as_ref()?.bytes());
        self.exceeded.as_ref().map(PrintedSize::bytes).or_else(difference)
    }

    /// Padding of temporaries: the message's own total includes unlisted ones.
    fn temporary_padding(&self) -> Option<u64> {
        let utilization = self.requirement.as_ref().and_then(|requirement| requirement.utilization.as_ref());
        let total = utilization.map(|of| of.padded.bytes().saturating_sub(of.unpadded.bytes()));
        let listed = of_entries(self.entries.iter().filter(|entry| entry.section == Section::Allocations));
        // The totals are rounded to hundredths of a gigabyte.
        total.map(|total| total.max(listed.filter(|_| total > 0).unwrap_or(0))).or(listed)
    }

    /// Padding of arguments, and of results that lie in none of them.
    fn argument_padding(&self, output_bytes: Option<u64>) -> Option<u64> {
        if !self.persistent.is_empty() {
            return self.persistent.iter().map(|row| row.padding_bytes()).fold(None, sum);
        }
        let has_own_output = output_bytes != Some(0);
        of_entries(self.entries.iter().filter(|entry| match entry.interface() {
            Some(Interface::Output(_)) => has_own_output,
            _ => entry.section == Section::ArgumentsAndOutputs,
        }))
    }

    fn fragmentation(&self) -> Option<u64> {
        if self.form == Form::RunTime {
            let (free, piece) = (self.limit.as_ref()?, self.contiguous.as_ref()?);
            return Some(free.bytes().saturating_sub(piece.bytes()));
        }
        self.requirement.as_ref()?.utilization.as_ref()?.fragmentation.as_ref().map(PrintedSize::bytes)
    }
}

/// The sum of the entries' known padding; `None` without any.
fn of_entries<'a>(entries: impl Iterator<Item = &'a Entry>) -> Option<u64> {
    entries.map(Entry::padding_bytes).fold(None, sum)
}

/// The sum of the known terms; `None` if both are unknown.
fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}
