//! An out-of-memory message as rules see it: its list, its memory budget, and the framework to answer for.

use crate::{
    message::{Allocation, Listing},
    program::SourceLine,
};
use tilewise::Shape;
use tilewise_memory::Role;
use tilewise_oom::{Budget, Framework, Section};

/// Maximum number of entries read; the compiler lists 20, the largest first.
const LOOKED_AT: usize = 256;

pub(crate) struct MessageModel<'a> {
    pub(crate) listing: Listing<'a>,
    pub(crate) budget: Budget,
    /// The framework whose code to show; JAX if unknown.
    pub(crate) framework: Framework,
    /// Listed values inside the program, without kernels' windows.
    pub(crate) temporaries: Vec<&'a Allocation>,
    /// Listed arrays with known bounds: temporaries, arguments and results.
    pub(crate) arrays: Vec<ListedArray<'a>>,
}

/// An array that a message lists.
pub(crate) struct ListedArray<'a> {
    pub(crate) row: &'a Allocation,
    /// Its index in the message's list.
    pub(crate) number: usize,
    pub(crate) shape: &'a Shape,
    pub(crate) bounds: Vec<u64>,
    pub(crate) role: Role,
}

impl<'a> MessageModel<'a> {
    pub(crate) fn new(listing: Listing<'a>) -> Self {
        let rows = || listing.allocations.iter().enumerate();
        let inside =
            rows().filter(|(_, row)| row.entry.section == Section::Allocations && row.entry.window().is_none());
        let inside: Vec<(usize, &Allocation)> = inside.take(LOOKED_AT).collect();
        let outside = rows().filter(|(_, row)| row.entry.section == Section::ArgumentsAndOutputs).take(LOOKED_AT);
        Self {
            listing,
            budget: listing.message.budget(),
            framework: listing.message.framework.unwrap_or(Framework::Jax),
            temporaries: inside.iter().map(|(_, row)| *row).collect(),
            arrays: inside
                .iter()
                .copied()
                .chain(outside)
                .filter_map(|(number, row)| ListedArray::of(row, number))
                .collect(),
        }
    }

    /// Bytes of padding inside the program, by the message's totals; `None` without a total.
    pub(crate) fn temporary_padding(&self) -> Option<u64> {
        Some(self.budget.padding_bytes?.saturating_sub(self.budget.argument_padding_bytes.unwrap_or_default()))
    }
}

impl<'a> ListedArray<'a> {
    fn of(row: &'a Allocation, number: usize) -> Option<Self> {
        let role = match (row.entry.section, row.entry.interface()) {
            (Section::Allocations, _) => Role::Temporary,
            (_, Some(tilewise_oom::Interface::Argument(..))) => Role::Argument,
            _ => Role::Output,
        };
        let shape = row.shape.as_ref()?;
        let bounds = shape.as_array()?.bounds()?;
        Some(Self { row, number, shape, bounds, role })
    }
}

/// Extrapolates `part` from the listed bytes to all bytes if the list has less than half of these; otherwise `part`.
pub(crate) fn share_of_all(part: u64, listed: u64, all: Option<u64>) -> u64 {
    let Some(all) = all.filter(|all| *all / 2 > listed && listed > 0) else { return part };
    u64::try_from(u128::from(part) * u128::from(all) / u128::from(listed)).unwrap_or(part)
}

/// The sum of the rows' bytes.
pub(crate) fn total<'a>(rows: impl IntoIterator<Item = &'a Allocation>, bytes: impl Fn(&Allocation) -> u64) -> u64 {
    rows.into_iter().map(bytes).fold(0, u64::saturating_add)
}

/// The source line of the first row that has one.
pub(crate) fn first_line<'a>(rows: impl IntoIterator<Item = &'a Allocation>) -> Option<SourceLine> {
    rows.into_iter().find_map(|row| row.source.clone())
}
