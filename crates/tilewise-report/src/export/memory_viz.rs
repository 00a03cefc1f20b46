//! A plan as a memory snapshot for <https://pytorch.org/memory_viz>, in the form of PyTorch's `_dump_snapshot`.
//!
//! The page reads a pickle, so this writes one: protocol 2, with the opcodes that the page knows
//! (torch/utils/viz/MemoryViz.js). A memory space is a device, and one step of time is one allocation or release.

use super::{
    Exporter,
    events::{Block, Event, Space, spaces},
    has_plan,
};
use crate::AuditOutput;
use std::io::{self, Write};
use tilewise_audit::{Failure, Report};

/// A snapshot: the plan of one program.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryViz;

impl Exporter for MemoryViz {
    fn accepts(&self, output: &AuditOutput) -> Result<(), Failure> {
        has_plan(output, "")
    }

    fn write(&mut self, output: &AuditOutput, out: &mut dyn Write) -> io::Result<()> {
        write(&output.report, out)
    }
}

fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let spaces = spaces(report);
    let mut pickle = Pickle { out };
    pickle.out.write_all(b"\x80\x02")?;
    pickle.dict(|pickle| {
        pickle.text("segments")?;
        pickle.list(spaces.iter().flat_map(segments), |pickle, segment| segment.write(pickle))?;
        pickle.text("device_traces")?;
        let devices = spaces.last().map_or(0, |last| last.number.saturating_add(1));
        let space_of = |device: u8| spaces.iter().find(|space| space.number == device);
        pickle.list((0..devices).map(space_of), |pickle, space| {
            let events = space.into_iter().flat_map(|space| space.events.iter().map(move |event| (space, event)));
            // A release is two entries, which the page joins.
            let entries = events.flat_map(|(space, (moment, event))| {
                let (number, actions) = match event {
                    Event::Alloc(number) => (*number, &["alloc"][..]),
                    Event::Free(number) => (*number, &["free_requested", "free_completed"][..]),
                };
                let block = space.blocks.get(number);
                actions.iter().filter_map(move |action| Some((*action, *moment, block?)))
            });
            pickle.list(entries, |pickle, (action, moment, block)| entry(pickle, action, moment, block))
        })
    })?;
    pickle.out.write_all(b".")
}

fn entry(pickle: &mut Pickle<'_>, action: &str, moment: usize, block: &Block<'_>) -> io::Result<()> {
    pickle.dict(|pickle| {
        pickle.text("action")?;
        pickle.text(action)?;
        pickle.number_of("addr", block.address)?;
        pickle.number_of("size", block.bytes())?;
        pickle.number_of("stream", 0)?;
        // The page shows no time; readers of the snapshot find the moment of the program's order in it.
        pickle.number_of("time_us", moment as u64)?;
        frames(pickle, block)
    })
}

/// The instruction with its source line, then the framework's name of the operation.
fn frames(pickle: &mut Pickle<'_>, block: &Block<'_>) -> io::Result<()> {
    let (op_name, source) = &*block.origin;
    let (file, line) = source.as_ref().map_or(("", 0), |source| (&*source.file, source.line));
    let path: String = block.row.value.shape_index().iter().map(|element| format!("{{{element}}}")).collect();
    let name = format!("{}{path}", block.row.instruction.name());
    let frames = [Some((&name, file, line)), op_name.as_ref().map(|name| (name, "", 0))];
    pickle.text("frames")?;
    pickle.list(frames.into_iter().flatten(), |pickle, (name, file, line)| {
        pickle.dict(|pickle| {
            pickle.text("name")?;
            pickle.text(name)?;
            pickle.text("filename")?;
            pickle.text(file)?;
            pickle.number_of("line", line.into())
        })
    })
}

/// A stretch of addresses, and its blocks at the end of the program.
struct Segment<'s, 'a> {
    device: u8,
    start: u64,
    end: u64,
    blocks: Vec<&'s Block<'a>>,
}

/// The memory that is live for the whole program, and that of the temporaries.
fn segments<'s, 'a>(space: &'s Space<'a>) -> impl Iterator<Item = Segment<'s, 'a>> {
    let left = space.left();
    let stretches = [(0, space.temporaries), (space.temporaries, space.end)];
    stretches.into_iter().filter(|(start, end)| start < end).map(move |(start, end)| Segment {
        device: space.number,
        start,
        end,
        blocks: left.iter().filter(|block| (start..end).contains(&block.address)).copied().collect(),
    })
}

impl Segment<'_, '_> {
    fn write(&self, pickle: &mut Pickle<'_>) -> io::Result<()> {
        // Blocks tell their addresses by following one another, so gaps are blocks.
        let mut pieces = Vec::new();
        let mut at = self.start;
        for block in &self.blocks {
            if block.address > at {
                pieces.push((block.address - at, None));
            }
            pieces.push((block.bytes(), Some(*block)));
            at = block.address.saturating_add(block.bytes());
        }
        if at < self.end {
            pieces.push((self.end - at, None));
        }
        let used = self.blocks.iter().map(|block| block.bytes()).fold(0, u64::saturating_add);
        pickle.dict(|pickle| {
            pickle.number_of("device", self.device.into())?;
            pickle.number_of("address", self.start)?;
            pickle.number_of("total_size", self.end - self.start)?;
            pickle.number_of("allocated_size", used)?;
            pickle.number_of("active_size", used)?;
            pickle.number_of("stream", 0)?;
            pickle.text("segment_type")?;
            pickle.text("large")?;
            pickle.text("frames")?;
            pickle.list([(); 0], |_, ()| Ok(()))?;
            pickle.text("blocks")?;
            pickle.list(pieces, |pickle, (bytes, block)| {
                pickle.dict(|pickle| {
                    pickle.number_of("size", bytes)?;
                    pickle.number_of("requested_size", bytes)?;
                    pickle.text("state")?;
                    pickle.text(if block.is_some() { "active_allocated" } else { "inactive" })?;
                    block.map_or(Ok(()), |block| frames(pickle, block))
                })
            })
        })
    }
}

/// Writes a pickle of protocol 2.
struct Pickle<'w> {
    out: &'w mut dyn Write,
}

impl Pickle<'_> {
    /// Items an `APPENDS` takes, as Python's own pickler has it: the page pushes them as arguments of one call.
    const BATCH: usize = 1000;

    fn dict(&mut self, entries: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.out.write_all(b"}(")?;
        entries(self)?;
        self.out.write_all(b"u")
    }

    fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut item: impl FnMut(&mut Pickle<'_>, T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.out.write_all(b"]")?;
        let mut items = items.into_iter().peekable();
        while items.peek().is_some() {
            self.out.write_all(b"(")?;
            for value in items.by_ref().take(Self::BATCH) {
                item(&mut Pickle { out: self.out }, value)?;
            }
            self.out.write_all(b"e")?;
        }
        Ok(())
    }

    /// `BINUNICODE`; a text of 4 GiB or more is an error.
    fn text(&mut self, text: &str) -> io::Result<()> {
        let length = u32::try_from(text.len()).map_err(io::Error::other)?;
        self.out.write_all(b"X")?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(text.as_bytes())
    }

    fn number_of(&mut self, name: &str, number: u64) -> io::Result<()> {
        self.text(name)?;
        match i32::try_from(number) {
            Ok(small) => {
                self.out.write_all(b"J")?;
                self.out.write_all(&small.to_le_bytes())
            }
            Err(_) => {
                // `LONG1`, eight bytes of two's complement.
                self.out.write_all(b"\x8a\x08")?;
                self.out.write_all(&i64::try_from(number).unwrap_or(i64::MAX).to_le_bytes())
            }
        }
    }
}
