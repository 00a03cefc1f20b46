//! A trace for Perfetto and `chrome://tracing`: live bytes over the program's order, a counter for each memory space,
//! and in each of them one for each of the lines that own the most at the peak.
//!
//! The format is the Trace Event Format's JSON. Where nearly all of a run's time is estimated, the axis is that time; else a
//! microsecond stands for one instruction.

use super::{
    Exporter,
    events::{Block, Event, Space, spaces},
    has_plan,
};
use crate::{AuditOutput, summary::NOT_MEASURED, to_visible_json};
use foldhash::HashMap;
use serde_json::{Value, json};
use std::io::{self, Write};
use tilewise::tpu::memory_space_name;
use tilewise_audit::{Failure, Report, SpacePeak};

/// Lines that get a counter of their own in each memory space; the others share one.
const OWNERS: usize = 16;

/// A trace: the plan of one program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trace;

impl Exporter for Trace {
    fn accepts(&self, output: &AuditOutput) -> Result<(), Failure> {
        has_plan(output, "")
    }

    fn write(&mut self, output: &AuditOutput, out: &mut dyn Write) -> io::Result<()> {
        write(&output.report, out)
    }
}

fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let name = if report.module_name.is_empty() { "HLO" } else { &report.module_name };
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    let axis = Axis(report.moments());
    let name = if axis.0.is_some() { format!("{name}, times {NOT_MEASURED}") } else { name.to_owned() };
    to_visible_json(out, &json!({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": name}}))?;
    let end = report.order().count();
    for space in spaces(report) {
        let peak = report.memory_space(space.number).and_then(|total| total.peak.as_ref());
        write_space(&space, &axis, end, peak, out)?;
    }
    out.write_all(b"\n]}\n")
}

/// When each moment begins, in seconds; without times moments stand at equal distances.
struct Axis(Option<Vec<f64>>);

impl Axis {
    /// In microseconds.
    fn at(&self, moment: usize) -> Value {
        match &self.0 {
            Some(seconds) => json!(seconds.get(moment).or(seconds.last()).map_or(0.0, |seconds| seconds * 1e6)),
            None => json!(moment),
        }
    }
}

fn write_space(
    space: &Space<'_>,
    axis: &Axis,
    end: usize,
    peak: Option<&SpacePeak>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = memory_space_name(space.number);
    let mut emit = |event: Value| -> io::Result<()> {
        out.write_all(b",\n")?;
        to_visible_json(out, &event)
    };
    let counter = |track: &str, moment: usize, bytes: u64| json!({"ph": "C", "pid": 1, "ts": axis.at(moment), "name": track, "args": {"bytes": bytes}});
    let owners = Owners::of(space);
    let tracks: Vec<String> = owners.names.iter().map(|owner| format!("{name}: {owner}")).collect();
    let mut live = 0u64;
    let mut of_owner = vec![0u64; tracks.len()];
    for (number, block) in space.blocks.iter().enumerate().filter(|(_, block)| block.stands()) {
        live = live.saturating_add(block.bytes());
        if let Some(bytes) = owners.of.get(number).and_then(|owner| of_owner.get_mut(*owner)) {
            *bytes = bytes.saturating_add(block.bytes());
        }
    }
    emit(counter(&name, 0, live))?;
    for (track, bytes) in tracks.iter().zip(&of_owner) {
        emit(counter(track, 0, *bytes))?;
    }
    // An instruction's operands are there while it runs, so releases count at the next moment; but not those that make
    // way for an allocation that follows at the same one.
    let mut changes: Vec<(usize, usize, i128)> = Vec::with_capacity(space.events.len());
    let mut last_alloc = None;
    for (moment, event) in space.events.iter().rev() {
        let (Event::Alloc(number) | Event::Free(number)) = *event;
        let bytes = i128::from(space.blocks.get(number).map_or(0, Block::bytes));
        changes.push(match event {
            Event::Alloc(_) => {
                last_alloc = Some(moment);
                (*moment, number, bytes)
            }
            Event::Free(_) if last_alloc == Some(moment) => (*moment, number, -bytes),
            Event::Free(_) => (moment.saturating_add(1), number, -bytes),
        });
    }
    changes.sort_by_key(|(moment, _, _)| *moment);
    let add =
        |total: u64, bytes: i128| u64::try_from(i128::from(total).saturating_add(bytes).max(0)).unwrap_or(u64::MAX);
    for step in changes.chunk_by(|one, next| one.0 == next.0) {
        let mut changed: Vec<usize> = Vec::new();
        for (_, number, bytes) in step {
            live = add(live, *bytes);
            let Some(owner) = owners.of.get(*number) else { continue };
            if let Some(total) = of_owner.get_mut(*owner) {
                *total = add(*total, *bytes);
                changed.push(*owner);
            }
        }
        let Some((moment, _, _)) = step.first() else { continue };
        emit(counter(&name, *moment, live))?;
        changed.sort_unstable();
        changed.dedup();
        for owner in changed {
            if let (Some(track), Some(bytes)) = (tracks.get(owner), of_owner.get(owner)) {
                emit(counter(track, *moment, *bytes))?;
            }
        }
    }
    emit(counter(&name, end, live))?;
    let Some(peak) = peak else { return Ok(()) };
    let source = peak.source.as_ref().map(|source| format!("{}:{}", source.file, source.line));
    emit(json!({
        "ph": "i", "s": "p", "pid": 1, "tid": 1, "ts": axis.at(peak.moment), "name": format!("peak of {name}: {}", peak.instruction),
        "args": {"live_bytes": peak.live_bytes, "source": source, "op_name": peak.op_name},
    }))
}

/// The owners of a memory space's blocks.
struct Owners {
    /// Owners with the largest blocks; the last name is for the rest.
    names: Vec<String>,
    /// The index in `names` for each block.
    of: Vec<usize>,
}

impl Owners {
    fn of(space: &Space<'_>) -> Self {
        let name = |block: &Block<'_>| {
            if block.stands() {
                return format!("{}s", block.row.value.role.as_str());
            }
            let (op_name, source) = &*block.origin;
            let source = source.as_ref().map(|source| format!("{}:{}", source.file, source.line));
            source.or_else(|| op_name.clone()).unwrap_or_else(|| block.row.instruction.name().to_owned())
        };
        let names: Vec<String> = space.blocks.iter().map(name).collect();
        // Lines are ranked by their largest block, not by the number of blocks.
        let mut largest: HashMap<&str, u64> = HashMap::default();
        for (name, block) in names.iter().zip(&space.blocks) {
            let bytes = largest.entry(name).or_default();
            *bytes = block.bytes().max(*bytes);
        }
        let mut ranked: Vec<(&str, u64)> = largest.into_iter().collect();
        ranked.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        let has_rest = ranked.len() > OWNERS;
        ranked.truncate(OWNERS);
        let places: HashMap<&str, usize> = ranked.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
        let of = names.iter().map(|name| places.get(name.as_str()).copied().unwrap_or(OWNERS)).collect();
        let rest = has_rest.then(|| "other lines".to_owned());
        Self { names: ranked.iter().map(|(name, _)| (*name).to_owned()).chain(rest).collect(), of }
    }
}
