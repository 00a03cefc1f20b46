//! The time of a run, with the names and lines of the program.

use super::sections::Report;
use crate::{
    copies::CopyRow,
    program::{SourceLine, Tracer, module_path},
};
use foldhash::HashMap;
use std::{collections::hash_map::Entry, hash::Hash};
use tilewise_time::{Estimate, Kind, LoopRow, NoTime, Row, Time};

/// One instruction's time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TimeRow {
    /// The instruction, without `%`.
    pub instruction: String,
    /// The computation it is in, without `%`.
    pub computation: String,
    /// Its time, and the figures behind it.
    pub row: Row,
    /// The framework's name of the operation.
    pub op_name: Option<String>,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
}

/// The total time of instructions with a common property.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TimeGroup<T> {
    /// The property: a kind, a line, a module of the network.
    pub of: T,
    /// Number of instructions.
    pub operations: usize,
    /// The time of all their executions.
    pub total: Estimate,
    /// The part of [`total`](Self::total) that is only bounded, in seconds.
    pub bound_seconds: f64,
}

/// The time of one moment in a program's order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MomentTime {
    /// The estimate, in seconds.
    pub seconds: f64,
    /// Whether a part of it is only bounded, since the compiler gave no cycles.
    pub is_bound: bool,
}

impl Report {
    /// The time of a run by instruction: an estimate from the compiler's own cycle counts, not measured.
    ///
    /// # Errors
    /// A text without cycle counts, or not of a TPU: [`NoTime`].
    pub fn time(&self) -> Result<&Time, NoTime> {
        let time = || {
            let generation = self.machine.generation().filter(|_| self.planned.module.has_tiles());
            Time::of(&self.planned.flow, generation.ok_or(NoTime::OtherMachine)?)
        };
        self.time.get_or_init(time).as_ref().map_err(|none| *none)
    }

    /// The least time of a run in seconds, at full rates; it needs no cycle counts.
    ///
    /// # Errors
    /// For a text that is not a TPU's, or not scheduled, it isn't known: [`NoTime`].
    pub fn floor_seconds(&self) -> Result<f64, NoTime> {
        let generation = self.machine.generation().filter(|_| self.planned.module.has_tiles());
        Time::floor_of(&self.planned.flow, generation.ok_or(NoTime::OtherMachine)?)
    }

    /// Every instruction that takes time, the longest first; empty if [time is unknown](Self::time).
    #[must_use]
    pub fn time_rows(&self) -> Vec<TimeRow> {
        let Ok(time) = self.time() else { return Vec::new() };
        let mut tracer = Tracer::default();
        let mut rows: Vec<TimeRow> = time.rows.iter().filter_map(|row| self.time_row(row, &mut tracer)).collect();
        rows.sort_by(|a, b| b.row.total().estimate.total_cmp(&a.row.total().estimate));
        rows
    }

    fn time_row(&self, row: &Row, tracer: &mut Tracer) -> Option<TimeRow> {
        let instruction = self.planned.module.instruction(row.instruction)?;
        let (op_name, source) = tracer.traced(&self.planned.flow, &instruction);
        Some(TimeRow {
            instruction: instruction.name().to_owned(),
            computation: instruction.computation().name().to_owned(),
            row: row.clone(),
            op_name,
            source,
        })
    }

    /// Every loop that runs, by the name of its instruction, in the order of the text.
    #[must_use]
    pub fn loop_rows(&self) -> Vec<(String, LoopRow)> {
        let Ok(time) = self.time() else { return Vec::new() };
        let name = |row: &LoopRow| self.planned.module.instruction(row.instruction).map(|at| at.name().to_owned());
        time.loops.iter().filter_map(|row| Some((name(row)?, row.clone()))).collect()
    }

    /// The start of each moment of [the order](Self::order), in seconds from the start of a run, and last the end of
    /// the run; an instruction in a loop takes the time of all trips. `None` if a twentieth of the time or more is only
    /// bounded, or a loop's trip count is unknown.
    #[must_use]
    pub fn moments(&self) -> Option<Vec<f64>> {
        const MOST_BOUND: f64 = 0.05;
        let time = self.time().ok()?;
        if time.bound_share() >= MOST_BOUND || time.loops.iter().any(|row| row.trips.is_none()) {
            return None;
        }
        let mut now = 0.0;
        let mut moments = vec![now];
        moments.extend(self.moment_times().into_iter().map(|time| {
            now += time.seconds;
            now
        }));
        Some(moments)
    }

    /// The time of each moment of [the order](Self::order), with all trips of its loops; empty if [time is
    /// unknown](Self::time), or without a plan.
    #[must_use]
    pub fn moment_times(&self) -> Vec<MomentTime> {
        let (Ok(time), Ok(plan)) = (self.time(), self.plan()) else { return Vec::new() };
        let mut times: HashMap<usize, MomentTime> = HashMap::default();
        for row in &time.rows {
            let of = times.entry(row.instruction).or_default();
            of.seconds += row.total().estimate;
            of.is_bound |= row.is_bound();
        }
        // An instruction's time counts once, at its first moment.
        plan.order().map(|instruction| times.remove(&instruction).unwrap_or_default()).collect()
    }

    /// Seconds that a copy takes in all its runs; for an asynchronous copy, the wait for it. `None` if [time is
    /// unknown](Self::time).
    #[must_use]
    pub fn copy_seconds(&self, copy: &CopyRow) -> Option<f64> {
        let rows = &self.time().ok()?.rows;
        let first = rows.partition_point(|row| row.instruction < copy.index);
        let own = rows[first..].iter().take_while(|row| row.instruction == copy.index);
        // An empty sum of floats is a negative zero.
        Some(own.map(|row| row.total().estimate).fold(0.0, |sum, one| sum + one))
    }
}

/// The time of rows by kind, the longest first.
#[must_use]
pub fn by_kind(rows: &[TimeRow]) -> Vec<TimeGroup<Kind>> {
    grouped(rows, |row| row.row.kind)
}

/// The time of rows by line of the user's program, the longest first; functions on one line are one group.
#[must_use]
pub fn by_line(rows: &[TimeRow]) -> Vec<TimeGroup<Option<&SourceLine>>> {
    let mut first = HashMap::default();
    grouped(rows, |row| {
        let source = row.source.as_ref();
        *first.entry(source.map(SourceLine::place)).or_insert(source)
    })
}

/// The time of rows by module of the network, in the framework's names, the longest first; empty for rows without one.
#[must_use]
pub fn by_module(rows: &[TimeRow]) -> Vec<TimeGroup<String>> {
    grouped(rows, |row| row.op_name.as_deref().map(module_path).unwrap_or_default())
}

fn grouped<'r, T: Clone + Eq + Hash>(rows: &'r [TimeRow], mut of: impl FnMut(&'r TimeRow) -> T) -> Vec<TimeGroup<T>> {
    let (mut groups, mut known): (Vec<TimeGroup<T>>, HashMap<T, usize>) = (Vec::new(), HashMap::default());
    for row in rows {
        let of = of(row);
        let at = match known.entry(of.clone()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let none = Estimate::default();
                groups.push(TimeGroup { of, operations: 0, total: none, bound_seconds: 0.0 });
                *new.insert(groups.len() - 1)
            }
        };
        let (group, total) = (&mut groups[at], row.row.total());
        group.operations += 1;
        group.total += total;
        group.bound_seconds += if row.row.is_bound() { total.estimate } else { 0.0 };
    }
    groups.sort_by(|a, b| b.total.estimate.total_cmp(&a.total.estimate));
    groups
}
