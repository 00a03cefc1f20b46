//! The plan of a memory space as a picture, and a line of its rise and fall.

use super::{Exporter, has_plan};
use crate::{AuditOutput, style::owner_name};
use std::io::{self, Write};
use tilewise::tpu::memory_space_name;
use tilewise_audit::{Failure, Owners, PlanRow, Report};
use tilewise_draw::{MemoryPicture, Options, Peak, Piece};

/// A picture of memory over a program's order, and of the places of arrays.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The number of the memory space.
    pub memory_space: u8,
    /// Options of the drawing.
    pub options: Options,
    /// The format of the picture.
    pub format: PictureFormat,
}

/// Formats of pictures.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PictureFormat {
    /// An SVG document.
    Svg,
    /// A PNG image, with this number of pixels per unit of the SVG.
    #[cfg(feature = "png")]
    Png(f32),
}

impl Exporter for Picture {
    fn accepts(&self, output: &AuditOutput) -> Result<(), Failure> {
        has_plan(output, " to draw")
    }

    fn write(&mut self, output: &AuditOutput, out: &mut dyn Write) -> io::Result<()> {
        let picture = output.picture(self.memory_space);
        match self.format {
            PictureFormat::Svg => out.write_all(picture.to_svg(&self.options).as_bytes()),
            #[cfg(feature = "png")]
            PictureFormat::Png(scale) => {
                out.write_all(&picture.to_png(&self.options, scale).map_err(io::Error::other)?)
            }
        }
    }
}

impl AuditOutput {
    /// The plan of a memory space as a picture, each piece with the line of the user's program; an empty one without a
    /// plan.
    #[must_use]
    pub fn picture(&self, memory_space: u8) -> MemoryPicture<'_> {
        let mut owners = Owners::default();
        let mut picture = of(&self.report, memory_space, &mut |row| (owners.of(row), row.padding_bytes()));
        picture.owners = owners.into_names().iter().map(owner_name).collect();
        picture.limit = self.report.limit().filter(|_| memory_space == 0);
        picture
    }
}

/// The rise and fall of memory in at most `width` columns, and the place of its peak, a line each.
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
            bytes: piece.row.value.bytes,
            padding_bytes,
            first: piece.first,
            last: piece.last,
        }
    });
    let space = report.plan().ok().and_then(|plan| plan.space(memory_space));
    let peak = report.memory_space(memory_space).and_then(|total| total.peak.as_ref()).map(|peak| Peak {
        moment: peak.moment,
        instruction: peak.instruction.clone(),
        bytes: peak.live_bytes,
    });
    MemoryPicture {
        title: format!("{}: {}", report.module_name, memory_space_name(memory_space).to_uppercase()),
        moments: report.plan().map_or(0, |plan| plan.order().len()),
        resident_bytes: space.map_or(0, |space| space.resident_bytes),
        pieces: pieces.collect(),
        owners: Vec::new(),
        limit: None,
        held: (memory_space == 0).then(|| report.plan().ok().map(|plan| plan.total_bytes())).flatten(),
        peak,
    }
}
