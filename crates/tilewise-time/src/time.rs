//! The time of a run, by instruction.

use std::fmt;

use crate::{Basis, Cores, Estimate, Kind, Rates};

/// The time of one run of a program, by instruction: an estimate from the compiler's own cycle counts, not measured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Time {
    /// The cores that the program is compiled for.
    pub cores: Cores,
    /// The rates of those cores.
    pub rates: Rates,
    /// The duration of a run.
    pub total: Estimate,
    /// Whether it takes longer by an unknown part: the compiler has no figure for some operations on more than
    /// [`Row::SMALL`] elements, or a loop runs an unknown number of times.
    pub is_at_least: bool,
    /// Every instruction that takes time, in the order of the text. The sum of their [totals](Row::total) is that of the run.
    pub rows: Vec<Row>,
    /// Every loop that runs, in the order of the text.
    pub loops: Vec<LoopRow>,
    /// The number of conditionals that run: each counts as its dearest branch.
    pub conditionals: usize,
}

/// One instruction's time.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Row {
    /// The index of the instruction.
    pub instruction: usize,
    /// The kind of its work.
    pub kind: Kind,
    /// The basis of [`each`](Self::each).
    pub basis: Basis,
    /// The compiler's figure for one execution.
    pub cycles: Option<u64>,
    /// How often it runs.
    pub executions: u64,
    /// The duration of one execution; of a wait, the part that isn't hidden.
    pub each: Estimate,
    /// Bytes of HBM that one execution reads and writes, with padding.
    pub bytes: u64,
    /// The number of those bytes that are padding.
    pub padding_bytes: u64,
    /// Operations of the matrix multiplications and convolutions in it.
    pub flops: u64,
    /// Whether the compiler has no figure for it and it works on more than [`Row::SMALL`] elements.
    pub is_unpriced: bool,
}

impl Row {
    /// The most elements of an operation whose time is negligible.
    pub const SMALL: u64 = 1024;

    /// The duration of all executions.
    #[must_use]
    pub fn total(&self) -> Estimate {
        self.each.times(self.executions)
    }

    /// The compiler's cycles of all executions.
    #[must_use]
    pub fn total_cycles(&self) -> u64 {
        self.cycles.unwrap_or(0).saturating_mul(self.executions)
    }

    /// The rate that bounds it, if the compiler has a figure for it and it moves or computes anything.
    #[must_use]
    pub fn roof(&self, rates: &Rates) -> Option<Roof> {
        let is_known = self.basis == Basis::Cycles && (self.bytes > 0 || self.flops > 0);
        let computes = rates.seconds_of_flops(self.flops) > rates.seconds_of_bytes(self.bytes);
        is_known.then_some(if computes { Roof::Compute } else { Roof::Memory })
    }

    /// Whether only a bound of its duration is known: of its own, or of the awaited operation's.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        match self.basis {
            Basis::Cycles => false,
            Basis::Bound | Basis::Unknown => true,
            Basis::Wait => self.kind != Kind::DmaWait,
        }
    }
}

/// The full rate that bounds an operation: the one that takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Roof {
    /// Operations at the peak.
    Compute,
    /// Bytes at the memory's rate.
    Memory,
}

impl Roof {
    /// Its name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
        }
    }
}

/// One loop's time.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LoopRow {
    /// The index of the `while`.
    pub instruction: usize,
    /// The number of turns in each run of the loop; `None` if unknown, when it counts as one.
    pub trips: Option<u64>,
    /// How often the loop runs.
    pub executions: u64,
    /// The duration of one turn.
    pub each: Estimate,
}

impl LoopRow {
    /// The duration of all turns.
    #[must_use]
    pub fn total(&self) -> Estimate {
        self.each.times(self.trips.unwrap_or(1).saturating_mul(self.executions))
    }
}

/// Operations of one kind that the compiler has no figure for.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unpriced {
    /// The kind.
    pub kind: Kind,
    /// The number of instructions.
    pub operations: usize,
    /// Their share of the total, with the waits for them, in seconds: a lower bound.
    pub seconds: f64,
}

/// The reason why a program's time is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoTime {
    /// The program is not for a TPU, whose compiler alone counts cycles.
    OtherMachine,
    /// The text has no entry computation.
    NoEntry,
    /// The text isn't in the order of execution.
    Unscheduled,
    /// Computations call each other in a circle.
    Circle,
    /// It has fusions, and none has cycles: it was written before code generation.
    BeforeCodeGeneration,
    /// No instruction has cycles: kernels, gathers and the like have none.
    NothingPriced,
}

impl NoTime {
    /// A stable name in snake case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OtherMachine => "other_machine",
            Self::NoEntry => "no_entry",
            Self::Unscheduled => "unscheduled",
            Self::Circle => "circle",
            Self::BeforeCodeGeneration => "before_code_generation",
            Self::NothingPriced => "nothing_priced",
        }
    }
}

impl fmt::Display for NoTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherMachine => "only a TPU's compiler writes cycle counts into its programs",
            Self::NoEntry => "the text has no entry computation",
            Self::Unscheduled => "the text isn't scheduled, so its order isn't that of execution",
            Self::Circle => "computations of the text call each other in a circle",
            Self::BeforeCodeGeneration => {
                "this text was written before code generation and has no cycle counts: take `compiled.as_text()`, or \
                 `*.after_codegen.txt` of a dump instead of `*.after_optimizations.txt`"
            }
            Self::NothingPriced => "the compiler counts no cycles for any operation of this program",
        })
    }
}

impl std::error::Error for NoTime {}

impl Time {
    /// The compiler's cycles of a run, those of loops times their trips; as far as 64 bits go.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        cycles(&self.rows)
    }

    /// The compiler's cycles of the instructions of one kind.
    #[must_use]
    pub fn cycles_of(&self, kind: Kind) -> u64 {
        cycles(self.rows.iter().filter(|row| row.kind == kind))
    }

    /// The part of the total that is only bounded, 0 … 1.
    #[must_use]
    pub fn bound_share(&self) -> f64 {
        let bound: f64 = self
            .rows
            .iter()
            .filter(|row| row.is_bound())
            .map(|row| row.total().estimate)
            .fold(0.0, |sum, one| sum + one);
        if self.total.estimate > 0.0 { bound / self.total.estimate } else { 0.0 }
    }

    /// The seconds of the total due to padding: for operations that the memory's rate bounds, the share of their bytes
    /// that is padding.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an estimate of two digits")]
    pub fn padding_seconds(&self) -> f64 {
        let moving = self.rows.iter().filter(|row| row.bytes > 0 && row.roof(&self.rates) != Some(Roof::Compute));
        moving
            .map(|row| row.total().estimate * (row.padding_bytes as f64 / row.bytes as f64))
            .fold(0.0, |sum, one| sum + one)
    }

    /// Operations that the compiler has no figure for, by kind.
    #[must_use]
    pub fn unpriced(&self) -> Vec<Unpriced> {
        let of = |kind: Kind| {
            let operations = self.rows.iter().filter(|row| row.is_unpriced && row.kind == kind).count();
            let is_for_it = |row: &&Row| (row.is_unpriced && row.kind == kind) || row.kind.awaited() == Some(kind);
            let seconds =
                self.rows.iter().filter(is_for_it).map(|row| row.total().estimate).fold(0.0, |sum, one| sum + one);
            (operations > 0).then_some(Unpriced { kind, operations, seconds })
        };
        Kind::ALL.into_iter().filter_map(of).collect()
    }
}

fn cycles<'a>(rows: impl IntoIterator<Item = &'a Row>) -> u64 {
    rows.into_iter().map(Row::total_cycles).fold(0, u64::saturating_add)
}
