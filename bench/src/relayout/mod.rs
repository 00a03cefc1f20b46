//! Moving buffers between layouts, against the fastest copy of the same bytes and against all rivals.

pub(crate) mod ablate;
pub(crate) mod c_library;
mod cases;
mod rivals;

use crate::{
    copy::{Copy, IN_CACHE, time},
    measure::{Effort, Figure, contest, median, mover, nanoseconds_a_call},
    report::Report,
    rivals::Rivals,
};
use cases::{CASES, Case, FAMILIES, Family, PACK, SMALL, Step, TILE, TRANSPOSE, UNPACK, XLA_SHAPES};
use rivals::{RIVALS, Standing, compare};
use std::{cell::RefCell, fs, hint::black_box, time::Duration};
use tilewise::Shape;
use tilewise_relayout::{Error, Plan};

const MIB: u64 = 1 << 20;

pub(crate) fn run(effort: &Effort, rivals: &Rivals, report: &mut Report) -> anyhow::Result<()> {
    conversions(effort, rivals, report)?;
    xla_shapes(effort, rivals, report)?;
    small(effort, report)?;
    in_cache(effort, report)?;
    growth(effort, report)?;
    two_threads(effort, report)?;
    non_temporal(effort, report)
}

/// A plan with its buffers.
struct Work {
    plan: Plan,
    source: Buffer,
    destination: RefCell<Buffer>,
}

impl Work {
    fn new(shapes: &(Shape, Shape)) -> anyhow::Result<Self> {
        Self::with(shapes, Buffer::new)
    }

    /// With buffers that start `past` bytes behind the start of a line.
    fn in_lines(shapes: &(Shape, Shape), past: usize) -> anyhow::Result<Self> {
        Self::with(shapes, |bytes| Buffer::in_lines(bytes, past))
    }

    /// With one run done, so that all memory is there.
    fn with((from, to): &(Shape, Shape), buffer: impl Fn(u64) -> anyhow::Result<Buffer>) -> anyhow::Result<Self> {
        let plan = Plan::new(from, to)?;
        let (source, destination) = (buffer(plan.source_bytes())?, buffer(plan.destination_bytes())?);
        let work = Self { plan, source, destination: destination.into() };
        work.plan.run(work.source.content(), work.destination.borrow_mut().content_mut())?;
        Ok(work)
    }

    /// Bytes read and written.
    fn bytes(&self) -> u64 {
        self.plan.source_bytes() + self.plan.destination_bytes()
    }

    /// Runs the plan in one of its ways; the lengths are right.
    fn run(&self, way: impl FnOnce(&Plan, &[u8], &mut [u8]) -> Result<(), Error>) {
        _ = black_box(way(&self.plan, self.source.content(), self.destination.borrow_mut().content_mut()));
    }

    /// The engine's figure on one thread.
    fn figure(&self, effort: &Effort) -> anyhow::Result<Figure> {
        Ok(contest(effort, self.bytes(), &mut [mover(|| self.run(Plan::run))])?[0])
    }
}

/// A buffer in a vector.
struct Buffer {
    vector: Vec<u8>,
    start: usize,
    bytes: usize,
}

impl Buffer {
    /// Starts where the vector does: 16 bytes behind the start of a line, where the system's allocator serves large ones.
    fn new(bytes: u64) -> anyhow::Result<Self> {
        Ok(Self { vector: filled(bytes)?, start: 0, bytes: usize::try_from(bytes)? })
    }

    fn in_lines(bytes: u64, past: usize) -> anyhow::Result<Self> {
        const LINE: usize = 64;
        let vector = filled(bytes + 2 * LINE as u64)?;
        let start = vector.as_ptr().align_offset(LINE) + past;
        Ok(Self { vector, start, bytes: usize::try_from(bytes)? })
    }

    fn content(&self) -> &[u8] {
        &self.vector[self.start..][..self.bytes]
    }

    fn content_mut(&mut self) -> &mut [u8] {
        &mut self.vector[self.start..][..self.bytes]
    }
}

/// Bytes without pages of zeros, equal to those of `rivals.py`.
fn filled(bytes: u64) -> anyhow::Result<Vec<u8>> {
    const PERIOD: u64 = 1_000_003;
    let period: Vec<u8> = (0..PERIOD).map(|i| ((i * 2_654_435_761) >> 13).to_le_bytes()[0]).collect();
    let bytes = usize::try_from(bytes)?;
    let mut buffer = Vec::with_capacity(bytes);
    while buffer.len() < bytes {
        let rest = bytes - buffer.len();
        buffer.extend_from_slice(&period[..rest.min(period.len())]);
    }
    Ok(buffer)
}

impl Case {
    fn shapes(&self) -> anyhow::Result<(Shape, Shape)> {
        Ok((self.from.parse()?, self.to.parse()?))
    }

    /// The case in a table's first cells.
    fn cells(&self) -> Vec<String> {
        let layout = self.to.find('{').map_or("", |start| &self.to[start..]);
        vec![self.name.to_owned(), format!("`{}` → `{layout}`", self.from)]
    }
}

fn ratio(ratio: f64) -> String {
    if ratio < 0.095 { format!("{ratio:.3}") } else { format!("{ratio:.2}") }
}

/// The cells of a target: the ratio to reach, the one reached, and the verdict.
fn judged(target: f64, reached: f64) -> [String; 3] {
    [format!("{target:.2}"), ratio(reached), if reached >= target { "yes" } else { "**no**" }.to_owned()]
}

/// A case that falls short is measured again, with other buffers: their place in memory, and its other users, matter
/// more than a few per cent.
fn best_of_three(effort: &Effort, target: f64, work: impl Fn() -> anyhow::Result<Work>) -> anyhow::Result<Figure> {
    let mut best = work()?.figure(effort)?;
    for _ in 0..2 {
        if best.ratio < target {
            let again = work()?.figure(effort)?;
            best = if again.ratio > best.ratio { again } else { best };
        }
    }
    Ok(best)
}

/// Every case against the copy, and its rivals.
fn conversions(effort: &Effort, rivals: &Rivals, report: &mut Report) -> anyhow::Result<()> {
    let (mut rows, mut rivals_rows) = (Vec::new(), Vec::new());
    let mut short = 0;
    for case in &CASES {
        let (from, to) = case.shapes()?;
        let there = best_of_three(effort, case.target, || Work::new(&(from.clone(), to.clone())))?;
        let back = Work::new(&(to.clone(), from.clone()))?.figure(effort)?;
        short += usize::from(there.ratio < case.target);
        rows.push([case.cells(), judged(case.target, there.ratio).into(), vec![ratio(back.ratio)]].concat());
        rivals_rows.push(rivals_row(case.name, &compare(effort, rivals, &from, &to, case.steps)?));
    }
    report.heading("Against the fastest copy");
    let words = format!(
        "The speed of `Plan::run` into a buffer that is there, divided by that of the fastest plain copy of as many bytes right \
         before: `memcpy` or 32-byte non-temporal stores, whichever is faster. Buffers are ordinary vectors, filled; what falls \
         short is measured again, up to twice, with others. {} of {} reach what they are to; *back* is the opposite conversion, \
         measured once.",
        CASES.len() - short,
        CASES.len()
    );
    report.table(&words, &["case", "layouts", "to reach", "ratio", "reached", "back"], &rows);
    report.heading("Rivals");
    report.table(
        "The same ratio for those who do it with an array library, as a view that is then made contiguous: each in turn in the same \
         rounds, on one core, its result checked against ours. Those in Python time themselves, in a process of their own that \
         waits while others move; their speed is divided by that of the copy before their turn, which is used more often than \
         theirs and ours. *Kept* is into an array that is there, otherwise the result is a new array. PyTorch is among them with \
         `--torch`.",
        &rivals_header("case"),
        &rivals_rows,
    );
    Ok(())
}

fn rivals_header(first: &'static str) -> Vec<&'static str> {
    let rivals = RIVALS.map(|(_, title)| title);
    [&[first, "ours"], &rivals[..], &["NumPy's time ÷ ours", "best rival's ÷ ours"]].concat()
}

fn rivals_row(name: &str, standing: &Standing) -> Vec<String> {
    let none = || "–".to_owned();
    let rivals = standing.rivals.iter().map(|figure| figure.map_or_else(none, |figure| ratio(figure.ratio)));
    let leads = [standing.lead("numpy"), standing.lead("")].map(|lead| match lead {
        Some(lead) if lead < 1.0 => format!("**{lead:.2}×**"),
        lead => lead.map_or_else(none, |lead| format!("{lead:.1}×")),
    });
    [name.to_owned(), ratio(standing.ours.ratio)].into_iter().chain(rivals).chain(leads).collect()
}

/// The shapes of XLA's own transpose benchmark.
fn xla_shapes(effort: &Effort, rivals: &Rivals, report: &mut Report) -> anyhow::Result<()> {
    let list =
        |numbers: &[usize], between: &str| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(between);
    let mut rows = Vec::new();
    for element in ["u8", "f32"] {
        for (bounds, order) in XLA_SHAPES {
            if effort.quick && bounds.iter().product::<usize>() > 1 << 22 {
                continue;
            }
            let array = format!("{element}[{}]", list(bounds, ","));
            let minor_to_major: Vec<usize> = order.iter().rev().copied().collect();
            let from: Shape = array.parse()?;
            let to: Shape = format!("{array}{{{}}}", list(&minor_to_major, ",")).parse()?;
            let standing = compare(effort, rivals, &from, &to, &[Step::Reshape(bounds), Step::Transpose(order)])?;
            rows.push(rivals_row(&format!("`{array}` {}", list(order, "")), &standing));
        }
    }
    report.heading("The shapes of XLA's transpose benchmark");
    let words = "Bounds and permutation; the same ratios. Up to 8 MiB a side everything is done many times a turn, in the caches.";
    report.table(words, &rivals_header("transpose"), &rows);
    Ok(())
}

/// Fixed costs.
fn small(effort: &Effort, report: &mut Report) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for (from, to) in SMALL {
        let shapes: (Shape, Shape) = (from.parse()?, to.parse()?);
        let plan = nanoseconds_a_call(effort.rounds, || {
            black_box(Plan::new(black_box(&shapes.0), black_box(&shapes.1)).is_ok());
        });
        let work = Work::new(&shapes)?;
        let run = nanoseconds_a_call(effort.rounds, || work.run(Plan::run));
        let mut copy = Copy::new(usize::try_from(work.bytes() / 2)?);
        let copy = nanoseconds_a_call(effort.rounds, || copy.plain());
        let times = [plan, run, copy].map(|time| format!("{time:.0} ns"));
        rows.push([&[format!("`{from}`"), format!("`{to}`")], &times[..]].concat());
    }
    report.heading("Small arrays");
    let words = "To reach: a plan for `f32[128,128]` below 2 µs, and a run of `f32[3,5]` below 100 ns.";
    report.table(words, &["from", "to", "`Plan::new`", "`Plan::run`", "`memcpy` of as many bytes"], &rows);
    Ok(())
}

/// Sizes that the second and the third cache hold, in buffers on lines and 16 bytes behind them.
fn in_cache(effort: &Effort, report: &mut Report) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for family in &FAMILIES {
        let mut row = vec![family.name.to_owned()];
        for (bytes, targets) in [256 << 10, 8 * MIB].into_iter().zip(family.in_cache) {
            let shapes = family.member(bytes)?;
            for (past, target) in [0, 16].into_iter().zip(targets) {
                let reached = best_of_three(effort, target, || Work::in_lines(&shapes, past))?.ratio;
                let short = if reached < target { ", **no**" } else { "" };
                let target = if target > 0.0 { format!(" of {target:.2}") } else { String::new() };
                row.push(format!("{}{target}{short}", ratio(reached)));
            }
        }
        rows.push(row);
    }
    report.heading("In the caches");
    let words = "The speed divided by that of `memcpy` of as many bytes, both with their data in the cache, as far as others leave room in \
                 it, *of* what is to be reached, with buffers that start on a line or 16 bytes behind one; what falls short is measured \
                 again, up to twice. Which stores the engine has for which size: see below.";
    report.table(words, &["case", "256 KiB: on a line", "16 behind", "8 MiB: on a line", "16 behind"], &rows);
    Ok(())
}

/// Time by size.
fn growth(effort: &Effort, report: &mut Report) -> anyhow::Result<()> {
    /// A size far beyond every cache, in MiB.
    const LARGE: u64 = 64;
    /// Copies of more are no faster, in MiB.
    const LARGEST_COPY: u64 = 256;
    let sizes: &[u64] = if effort.quick { &[1, 4, 16, LARGE] } else { &[1, 4, 16, LARGE, 256, 1024, 4096] };
    let mut rows: Vec<Vec<String>> = sizes.iter().map(|size| vec![format!("{size} MiB")]).collect();
    let mut spreads = Vec::new();
    for family in [TILE, PACK] {
        let mut works = Vec::new();
        for &size in sizes {
            let copied = size.min(LARGEST_COPY);
            if available_memory().is_some_and(|available| (2 * (size + copied) + 100) * MIB > available) {
                break;
            }
            let work = Work::new(&family.member(size * MIB)?)?;
            works.push((size, work, Copy::new(usize::try_from(copied * MIB)?), Vec::new()));
        }
        // Sizes take turns, so that a machine that drifts drifts for all of them.
        for _ in 0..effort.turns {
            for (size, work, copy, figures) in &mut works {
                let calls = u32::try_from((LARGEST_COPY / *size).max(2))?;
                let time_a_byte = |time: Duration, bytes: u64| time.as_secs_f64() / f64::from(calls) / bytes as f64;
                let ours = time_a_byte(time(calls, || work.run(Plan::run)), work.bytes());
                // Plain copies of more would leave the last cache full of lines yet to be written, for which whoever comes next
                // waits: 64 MiB feel that, 4 GiB do not.
                let way = if copy.bytes() > IN_CACHE { Copy::non_temporal } else { Copy::plain };
                let theirs = time_a_byte(time(calls, || way(copy)), 2 * copy.bytes() as u64);
                figures.push((ours, theirs / ours));
            }
        }
        let mut times = Vec::new();
        let measured = works.len();
        for (row, (size, _, _, figures)) in rows.iter_mut().zip(works) {
            let (ours, ratios): (Vec<_>, Vec<_>) = figures.into_iter().unzip();
            let time = median(ours) * 1e12;
            row.extend([format!("{time:.1} ps"), ratio(median(ratios))]);
            if size >= LARGE {
                times.push(time);
            }
        }
        rows.iter_mut().skip(measured).for_each(|row| row.extend(["too little memory", "–"].map(str::to_owned)));
        times.sort_by(f64::total_cmp);
        let (least, most) = (times.first().unwrap_or(&0.0), times.last().unwrap_or(&0.0));
        spreads.push(format!("{} {:.0} %", family.name, (most / least - 1.0) * 100.0));
    }
    report.heading("Growth");
    let words = format!(
        "Time a byte read or written, and the ratio to a copy, which is `memcpy` up to {} MiB and has non-temporal stores above, by the \
         size of the source; sizes take turns. From {LARGE} MiB on, the most is above the least by: {}. To reach: 20 %.",
        IN_CACHE >> 20,
        spreads.join(", ")
    );
    report.table(&words, &["size", "tile f32", "ratio", "pack bf16", "ratio"], &rows);
    Ok(())
}

/// Bytes available without swapping, on Linux.
fn available_memory() -> Option<u64> {
    let memory = fs::read_to_string("/proc/meminfo").ok()?;
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// The gain of a second thread.
fn two_threads(effort: &Effort, report: &mut Report) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for case in &CASES {
        let work = Work::new(&case.shapes()?)?;
        let mut copy = Copy::new(usize::try_from(work.bytes() / 2)?);
        let mut movers = [
            mover(|| work.run(Plan::run)),
            mover(|| work.run(|plan, source, destination| plan.run_with_threads(source, destination, 2))),
            Box::new(|calls| Ok(copy.fastest(2, calls))),
        ];
        let figures = contest(effort, work.bytes(), &mut movers)?;
        let [one, two, copy] = [0, 1, 2].map(|i: usize| figures[i].ratio);
        let reached = if work.plan.to_string().contains("transpose") { two / one >= 1.3 } else { two / copy >= 0.9 };
        let reached = if reached { "yes" } else { "**no**" };
        let cells = [ratio(one), ratio(two), format!("{:.2}×", two / one), ratio(copy), ratio(two / copy)];
        rows.push([vec![case.name.to_owned()], cells.into(), vec![reached.to_owned()]].concat());
    }
    report.heading("Two threads");
    let words = "Ratios to the fastest copy on one thread. To reach: 1.3 times one thread's speed for transposes, which wait for \
                 memory most; 0.9 of what two threads copy elsewhere, since one nearly saturates memory.";
    let header = ["case", "one thread", "two", "two ÷ one", "copy on two", "two, of a copy on two", "reached"];
    report.table(words, &header, &rows);
    Ok(())
}

/// The size from which on stores should bypass the caches.
fn non_temporal(effort: &Effort, report: &mut Report) -> anyhow::Result<()> {
    const CALLS: u32 = 8;
    const SWITCHED: [Family; 4] = [TILE, PACK, UNPACK, TRANSPOSE];
    let mut rows = Vec::new();
    for size in [2, 4, 6, 8, 12, 16, 24, 32] {
        let mut row = vec![format!("{size} MiB")];
        for family in SWITCHED {
            let work = Work::new(&family.member(size * MIB)?)?;
            let copy = RefCell::new(Copy::new(usize::try_from(work.bytes() / 2)?));
            let run = |is_non_temporal| {
                work.run(|plan, source, destination| plan.run_loops(is_non_temporal, source, destination, 1, None));
            };
            let ways: [&dyn Fn(); 4] =
                [&|| copy.borrow_mut().plain(), &|| copy.borrow_mut().non_temporal(), &|| run(false), &|| run(true)];
            let mut times = ways.map(|_| Vec::new());
            for _ in 0..effort.turns.div_ceil(3) {
                for (way, times) in ways.iter().zip(&mut times) {
                    times.push(time(CALLS, way));
                }
            }
            let [memcpy, past_copy, plain, past] = times.map(|times| median(times).as_secs_f64());
            if row.len() == 1 {
                row.push(ratio(memcpy / past_copy));
            }
            row.extend([plain, past].map(|time| ratio(memcpy / time)));
        }
        rows.push(row);
    }
    report.heading("Non-temporal stores");
    let words = "Where the engine's switch belongs: speed with plain and with non-temporal stores, divided by that of `memcpy`, by \
                 the size of the source; eight runs a turn, after eight that bring the buffers into the caches. *copy: non-temporal* is a copy \
                 with non-temporal stores.";
    let columns = SWITCHED.map(|family| [format!("{}: plain", family.name), "non-temporal".to_owned()]).concat();
    let header =
        ["size", "copy: non-temporal"].into_iter().chain(columns.iter().map(String::as_str)).collect::<Vec<_>>();
    report.table(words, &header, &rows);
    Ok(())
}
