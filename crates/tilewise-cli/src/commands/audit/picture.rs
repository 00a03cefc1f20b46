//! The plan of HBM as a picture: `-o FILE`, and a line of its rise and fall in the story.

use crate::{
    commands::draw::{Picture, terminal_options},
    failure::Failure,
};
use std::{collections::HashMap, path::Path};
use tilewise_audit::{PlanRow, Report, Role};
use tilewise_draw::{MemoryPicture, Options, Peak, Piece};

/// Writes the picture to a file, as its name says.
pub(super) fn write(
    report: &Report,
    source: &str,
    limit: Option<u64>,
    path: &Path,
    options: &Options,
) -> Result<(), Failure> {
    if let Err(error) = &report.plan {
        return Err(Failure::new("no_plan", format!("{source}: no memory plan to draw: {error}")));
    }
    let mut owners = Owners::default();
    let mut padding = |row: &PlanRow<'_>| row.allocation.bytes - row.logical_bytes().min(row.allocation.bytes);
    let mut picture = of(report, &mut |row| (owners.of(row), padding(row)));
    picture.owners = owners.labels;
    picture.limit = limit;
    crate::commands::draw::write_picture(&Memory { picture: &picture, options }, path)
}

/// The rise and fall of memory in at most so many columns, and where it is highest, a line each.
pub(super) fn sparkline(report: &Report, width: usize) -> Vec<String> {
    let drawn = of(report, &mut |_| (0, 0)).to_terminal(&terminal_options(), width);
    drawn.lines().take(2).map(str::to_owned).collect()
}

struct Memory<'a> {
    picture: &'a MemoryPicture<'a>,
    options: &'a Options,
}

impl Picture for Memory<'_> {
    fn svg(&self) -> String {
        self.picture.to_svg(self.options)
    }

    #[cfg(feature = "png")]
    fn png(&self, scale: f32) -> Result<Vec<u8>, tilewise_draw::Error> {
        self.picture.to_png(self.options, scale)
    }
}

/// The owner of a piece, and bytes of its padding.
type Detail<'d> = dyn FnMut(&PlanRow<'_>) -> (usize, u64) + 'd;

fn of<'a>(report: &'a Report, detail: &mut Detail<'_>) -> MemoryPicture<'a> {
    let moments = report.plan.as_ref().map_or(0, |plan| plan.order().len());
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for row in report.temporary_rows().filter(|row| row.memory_space == 0) {
        let allocation = row.allocation;
        let (owner, padding_bytes) = detail(&row);
        let piece = Piece {
            owner,
            name: row.instruction.name(),
            offset: allocation.offset,
            bytes: allocation.bytes,
            padding_bytes: padding_bytes.min(allocation.bytes),
            first: allocation.first,
            last: allocation.last,
        };
        // Tables are never reused: each stands for the whole run.
        pieces.push(match allocation.role {
            Role::Table => Piece { offset: None, first: 0, last: moments.saturating_sub(1), ..piece },
            _ => piece,
        });
    }
    // What takes over a place does so at the moment that the other ends: together they are one piece.
    pieces.sort_by_key(|piece| (piece.offset, piece.first, piece.last));
    let mut joined: Vec<Piece<'_>> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match joined.last_mut() {
            Some(before) if before.offset.is_some() && before.offset == piece.offset && piece.first <= before.last => {
                let last = before.last.max(piece.last);
                let largest = if piece.bytes > before.bytes { piece } else { *before };
                *before = Piece { first: before.first, last, ..largest };
            }
            _ => joined.push(piece),
        }
    }
    let hbm = report.plan.as_ref().ok().and_then(|plan| plan.space(0));
    let peak = report.memory_space(0).and_then(|total| total.peak.as_ref()).map(|peak| Peak {
        moment: peak.moment,
        instruction: peak.instruction.clone(),
        bytes: peak.live_bytes,
    });
    MemoryPicture {
        title: format!("{}: HBM", report.module),
        moments,
        standing_bytes: hbm.map_or(0, |space| space.standing_bytes),
        pieces: joined,
        owners: Vec::new(),
        limit: None,
        peak,
    }
}

/// Lines of the user's program, numbered.
#[derive(Default)]
struct Owners {
    labels: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Owners {
    fn of(&mut self, row: &PlanRow<'_>) -> usize {
        let label = match row.source() {
            Some(source) => {
                let function = source.function.map(|function| format!(" {function}")).unwrap_or_default();
                format!("{}:{}{function}", source.file, source.line)
            }
            None => row.op_name().unwrap_or_else(|| "no line".to_owned()),
        };
        *self.numbers.entry(label).or_insert_with_key(|label| {
            self.labels.push(label.clone());
            self.labels.len() - 1
        })
    }
}
