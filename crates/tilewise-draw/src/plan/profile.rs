//! The bytes that a program holds over its order, in as many columns as there is space for.

use super::{MemoryPicture, Owners};
use crate::{figure::class::Part, palette::TILES};

/// The parts on top of resident memory: one for each coloured owner, then one for all others.
pub(super) const PARTS: usize = TILES + 1;

/// The bytes of a part, and those of them that are padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) bytes: u128,
    pub(super) padding: u128,
}

/// Some successive moments, represented by the one at which the program holds the most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Column {
    /// The bytes of all parts.
    pub(super) live: u128,
    pub(super) parts: [Share; PARTS],
}

/// The index of a part.
pub(super) fn slot(part: Part) -> usize {
    match part {
        Part::Owner(number) => number.min(PARTS - 1),
        Part::Other | Part::Resident => PARTS - 1,
    }
}

/// The part at an index.
pub(super) fn part(slot: usize) -> Part {
    if slot + 1 < PARTS { Part::Owner(slot) } else { Part::Other }
}

/// The column of a moment.
pub(super) fn column_of(moment: usize, moments: usize, columns: usize) -> usize {
    let column = moment as u128 * columns as u128 / moments.max(1) as u128;
    usize::try_from(column).unwrap_or(usize::MAX).min(columns.saturating_sub(1))
}

/// The columns, at most `most`, and never more than moments.
pub(super) fn profile(picture: &MemoryPicture<'_>, owners: &Owners, most: usize) -> Vec<Column> {
    let moments = picture.moments();
    let mut columns = vec![Column::default(); most.clamp(1, moments)];
    // Changes of the memory in use: a piece that ends makes room for one that starts.
    let mut changes: Vec<(usize, bool, usize)> = Vec::with_capacity(2 * picture.pieces.len());
    for (number, piece) in picture.pieces.iter().enumerate() {
        let (first, end) = picture.span(piece);
        changes.extend([(first, true, number), (end, false, number)]);
    }
    changes.sort_unstable();
    let mut now = Column::default();
    let mut changes = changes.into_iter().peekable();
    while let Some((moment, starts, number)) = changes.next() {
        let Some(piece) = picture.pieces.get(number) else { continue };
        let (bytes, padding) = (u128::from(piece.bytes), u128::from(piece.padding_bytes.min(piece.bytes)));
        let share = &mut now.parts[slot(owners.part(piece.owner))];
        if starts {
            now.live += bytes;
            *share = Share { bytes: share.bytes + bytes, padding: share.padding + padding };
        } else {
            now.live -= bytes;
            *share = Share { bytes: share.bytes - bytes, padding: share.padding - padding };
        }
        let next = changes.peek().map_or(moments, |change| change.0);
        if next > moment && moment < moments {
            let (from, to) = (column_of(moment, moments, columns.len()), column_of(next - 1, moments, columns.len()));
            for column in columns.get_mut(from..=to).unwrap_or_default() {
                if now.live > column.live {
                    *column = now;
                }
            }
        }
    }
    columns
}
