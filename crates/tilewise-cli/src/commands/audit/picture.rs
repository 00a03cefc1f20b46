//! The plan of a memory space as a picture: `-o FILE`, and a line of its rise and fall in the story.

use crate::{
    commands::draw::{Picture, terminal_options},
    failure::Failure,
};
use std::{collections::HashMap, path::Path};
use tilewise::tpu::memory_space_name;
use tilewise_audit::{PlanRow, Report, Role};
use tilewise_draw::{MemoryPicture, Options, Peak, Piece};

/// Writes the picture to a file, as its name says.
pub(super) fn write(
    report: &Report,
    source: &str,
    memory_space: u8,
    limit: Option<u64>,
    path: &Path,
    options: &Options,
) -> Result<(), Failure> {
    if let Err(error) = &report.plan {
        return Err(Failure::new("no_plan", format!("{source}: no memory plan to draw: {error}")));
    }
    let mut owners = Owners::default();
    let padding = |row: &PlanRow<'_>| row.allocation.bytes - row.logical_bytes().min(row.allocation.bytes);
    let mut picture = of(report, memory_space, &mut |row| (owners.of(row), padding(row)));
    picture.owners = owners.labels;
    picture.limit = limit.filter(|_| memory_space == 0);
    crate::commands::draw::write_picture(&Memory { picture: &picture, options }, path)
}

/// The rise and fall of memory in at most so many columns, and where it is highest, a line each.
pub(super) fn sparkline(report: &Report, width: usize) -> Vec<String> {
    let drawn = of(report, 0, &mut |_| (0, 0)).to_terminal(&terminal_options(), width);
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

fn of<'a>(report: &'a Report, memory_space: u8, detail: &mut Detail<'_>) -> MemoryPicture<'a> {
    let moments = report.plan.as_ref().map_or(0, |plan| plan.order().len());
    // Each with the place it lies in: its offset, or where that isn't known its buffer.
    let mut pieces: Vec<((Option<u64>, usize), Piece<'_>)> = Vec::new();
    for row in report.temporary_rows().filter(|row| row.memory_space == memory_space) {
        let allocation = row.allocation;
        let (owner, padding_bytes) = detail(&row);
        let mut piece = Piece {
            owner,
            name: row.instruction.name(),
            offset: allocation.offset,
            bytes: allocation.bytes,
            padding_bytes: padding_bytes.min(allocation.bytes),
            first: allocation.first,
            last: allocation.last,
        };
        if allocation.role == Role::Table {
            // Tables are never reused: each stands for the whole run.
            (piece.offset, piece.first, piece.last) = (None, 0, moments.saturating_sub(1));
        }
        pieces.push(((piece.offset, if piece.offset.is_some() { 0 } else { allocation.buffer }), piece));
    }
    // What takes over a place does so at the moment that the other ends: together they are one piece.
    pieces.sort_by_key(|(place, piece)| (*place, piece.first, piece.last));
    let mut joined: Vec<Piece<'_>> = Vec::with_capacity(pieces.len());
    let mut place = None;
    for (here, piece) in pieces {
        match joined.last_mut().filter(|before| place == Some(here) && piece.first <= before.last) {
            Some(before) => {
                let last = before.last.max(piece.last);
                let largest = if piece.bytes > before.bytes { piece } else { *before };
                *before = Piece { first: before.first, last, ..largest };
            }
            None => joined.push(piece),
        }
        place = Some(here);
    }
    let space = report.plan.as_ref().ok().and_then(|plan| plan.space(memory_space));
    let peak = report.memory_space(memory_space).and_then(|total| total.peak.as_ref()).map(|peak| Peak {
        moment: peak.moment,
        instruction: peak.instruction.clone(),
        bytes: peak.live_bytes,
    });
    MemoryPicture {
        title: format!("{}: {}", report.module, memory_space_name(memory_space).to_uppercase()),
        moments,
        standing_bytes: space.map_or(0, |space| space.standing_bytes),
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
        let label = match row.origin() {
            (_, Some(source)) => {
                let function = source.function.map(|function| format!(" {function}")).unwrap_or_default();
                format!("{}:{}{function}", source.file, source.line)
            }
            (name, None) => name.unwrap_or_else(|| "no line".to_owned()),
        };
        *self.numbers.entry(label).or_insert_with_key(|label| {
            self.labels.push(label.clone());
            self.labels.len() - 1
        })
    }
}
