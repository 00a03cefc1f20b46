//! Whether a program fits a memory, and by how much.

use crate::{memory_name, style::bytes};
use tilewise::tpu::Generation;
use tilewise_audit::{Machine, Report};

/// Whether a program fits a memory, and by how much.
///
/// ```
/// use tilewise_report::Verdict;
///
/// let text = "HloModule m, is_scheduled=true\nENTRY e { ROOT x = f32[8,3]{1,0:T(8,128)} parameter(0) }";
/// let report = tilewise_audit::Audit::new(&tilewise_audit::Program::parse(text)?).run();
/// let verdict = Verdict::of(&report, 4096);
/// assert_eq!((verdict, verdict.as_str()), (Verdict::DoesNotFit { missing: 4096 }, "does_not_fit"));
/// assert_eq!(verdict.sentence("4 KiB of HBM"), "Does not fit 4 KiB of HBM: 4.00 KiB too much");
/// # Ok::<(), tilewise_audit::Failure>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It fits.
    Fits {
        /// Bytes that it leaves.
        left: u64,
    },
    /// It doesn't fit.
    DoesNotFit {
        /// Bytes that are missing.
        missing: u64,
    },
    /// It may or may not.
    MayNotFit(Doubt),
}

/// The reason why it isn't known whether a program fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// The text shows no machine.
    Machine,
    /// XLA hasn't compiled the text for this machine.
    NotCompiled,
    /// Not all of the text could be read or sized.
    Unread,
    /// The text is of another generation of TPUs, and the compiler for the one asked for may need more.
    OtherGeneration {
        /// The generation that it was compiled for.
        other: Generation,
        /// Bytes that the text takes, planned for the one asked for.
        planned: u64,
    },
    /// The program has no plan, and its temporaries may share memory.
    Sharing {
        /// Bytes that it needs at least.
        least: u64,
        /// Bytes that it needs at most.
        most: u64,
    },
}

impl Verdict {
    /// The verdict on a report, for a memory of this many bytes.
    #[must_use]
    pub fn of(report: &Report, limit: u64) -> Self {
        let bounds = report.memory_bounds;
        let (least, most) = (bounds.at_least_bytes(), bounds.at_most_bytes);
        match bounds.fits(limit) {
            Some(true) => Doubt::of_other_generation(report, limit)
                .map_or(Self::Fits { left: limit.saturating_sub(most) }, Self::MayNotFit),
            Some(false) => Self::DoesNotFit { missing: least.saturating_sub(limit) },
            None if bounds.is_assumed => Self::MayNotFit(Doubt::Machine),
            None => Self::MayNotFit(Doubt::of(report).unwrap_or(Doubt::Sharing { least, most })),
        }
    }

    /// A stable name in snake case, for machines.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fits { .. } => "fits",
            Self::DoesNotFit { .. } => "does_not_fit",
            Self::MayNotFit(Doubt::Sharing { .. } | Doubt::OtherGeneration { .. }) => "may_not_fit",
            Self::MayNotFit(_) => "unknown",
        }
    }

    /// In words, without a full stop; `place` is the memory to fit, such as `15.75 GiB of HBM` or `v5e`.
    #[must_use]
    pub fn sentence(self, place: &str) -> String {
        match self {
            Self::MayNotFit(doubt) => format!("{}: {doubt}", self.short(place)),
            _ => self.short(place),
        }
    }

    /// As [`sentence`](Self::sentence), without the doubt.
    #[must_use]
    pub fn short(self, place: &str) -> String {
        match self {
            Self::Fits { left } => format!("Fits {place}: {} left", bytes(left)),
            Self::DoesNotFit { missing } => format!("Does not fit {place}: {} too much", bytes(missing)),
            Self::MayNotFit(_) => format!("May not fit {place}"),
        }
    }
}

impl Doubt {
    fn of_other_generation(report: &Report, limit: u64) -> Option<Self> {
        let planned = report.memory_bounds.at_most_bytes;
        report.doubted_by(limit).map(|other| Self::OtherGeneration { other, planned })
    }

    /// Why a program's memory isn't known; `None` if all of it was read and sized.
    #[must_use]
    pub fn of(report: &Report) -> Option<Self> {
        let is_compiled = report.is_scheduled || report.machine.generation().is_some();
        let bounds = report.memory_bounds;
        match (bounds.is_complete && bounds.doubtful_bytes == 0, is_compiled) {
            (true, _) => None,
            (false, true) => Some(Self::Unread),
            (false, false) => Some(Self::NotCompiled),
        }
    }
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Machine => {
                f.write_str("the text does not show whether a GPU or a CPU is to run it; `--machine` says it")
            }
            Self::NotCompiled => f.write_str(
                "this text isn't scheduled, so XLA hasn't compiled it, and nothing tells which temporaries it takes",
            ),
            Self::Unread => f.write_str("not all of it could be read or sized"),
            Self::OtherGeneration { other, planned } => {
                write!(
                    f,
                    "the text is a {other}'s and takes {} there; compiled for this TPU it may need a third more",
                    bytes(*planned)
                )
            }
            Self::Sharing { least, most } => {
                write!(f, "it needs {} to {}, as temporaries share memory", bytes(*least), bytes(*most))
            }
        }
    }
}

/// A machine's memory of this many bytes, as verdicts name it: `15.75 GiB of HBM`.
#[must_use]
pub fn memory_of(machine: Machine, limit: u64) -> String {
    format!("{} of {}", bytes(limit), memory_name(machine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise_audit::{Audit, Program};

    #[test]
    fn another_generations_text_may_need_more() {
        let text = "HloModule m, is_scheduled=true\nENTRY e { ROOT x = f32[8,3]{1,0:T(8,128)} parameter(0) }";
        let program = Program::parse(text).expect("a module");
        let of = |name: &'static str, limit: u64| {
            let machine = Machine::Tpu(Generation::V5e);
            Verdict::of(&Audit::new(&program).source(name).machine(machine).limit(limit).run(), limit)
        };
        let doubt = Doubt::OtherGeneration { other: Generation::V6e, planned: 8192 };
        assert_eq!(of("step.v6e.hlo", 10_000), Verdict::MayNotFit(doubt));
        assert_eq!(of("step.v6e.hlo", 8191), Verdict::DoesNotFit { missing: 1 });
        assert_eq!(of("step.v6e.hlo", 12_000), Verdict::Fits { left: 12_000 - 8192 });
        assert_eq!(of("step.v5e.hlo", 10_000), Verdict::Fits { left: 10_000 - 8192 });
    }
}
