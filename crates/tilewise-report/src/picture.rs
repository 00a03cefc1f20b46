//! The plan of a memory space as a picture, and a line of its rise and fall.

use crate::AuditOutput;
use tilewise::tpu::memory_space_name;
use tilewise_audit::{Owners, PlanRow, Report};
#[cfg(feature = "text")]
use tilewise_draw::Options;
use tilewise_draw::{MemoryPicture, Peak, Piece};

impl AuditOutput {
    /// The plan of a memory space as a picture, each piece with the line of the user's program; an empty one without a
    /// plan.
    #[must_use]
    pub fn picture(&self, memory_space: u8) -> MemoryPicture<'_> {
        let mut owners = Owners::default();
        let mut picture = of(&self.report, memory_space, &mut |row| (owners.of(row), row.padding_bytes()));
        picture.owners = owners.into_labels();
        picture.limit = self.limit.filter(|_| memory_space == 0);
        picture
    }
}

/// The rise and fall of memory in at most so many columns, and where it is highest, a line each.
#[cfg(feature = "text")]
pub(crate) fn sparkline(report: &Report, options: &Options, width: usize) -> Vec<String> {
    let drawn = of(report, 0, &mut |_| (0, 0)).to_terminal(options, width);
    drawn.lines().take(2).map(str::to_owned).collect()
}

/// The owner of a piece, and bytes of its padding.
type Detail<'a, 'd> = dyn FnMut(&PlanRow<'a>) -> (usize, u64) + 'd;

fn of<'a>(report: &'a Report, memory_space: u8, detail: &mut Detail<'a, '_>) -> MemoryPicture<'a> {
    let pieces = report.pieces(memory_space).into_iter().map(|piece| {
        let (owner, padding_bytes) = detail(&piece.row);
        Piece {
            owner,
            name: piece.row.instruction.name(),
            offset: piece.offset,
            bytes: piece.row.allocation.bytes,
            padding_bytes,
            first: piece.first,
            last: piece.last,
        }
    });
    let space = report.plan.as_ref().ok().and_then(|plan| plan.space(memory_space));
    let peak = report.memory_space(memory_space).and_then(|total| total.peak.as_ref()).map(|peak| Peak {
        moment: peak.moment,
        instruction: peak.instruction.clone(),
        bytes: peak.live_bytes,
    });
    MemoryPicture {
        title: format!("{}: {}", report.module, memory_space_name(memory_space).to_uppercase()),
        moments: report.plan.as_ref().map_or(0, |plan| plan.order().len()),
        standing_bytes: space.map_or(0, |space| space.standing_bytes),
        pieces: pieces.collect(),
        owners: Vec::new(),
        limit: None,
        peak,
    }
}
