//! Comparison of the run times of two programs.

use super::{
    Amount, Change, Outcome,
    fields::{each_once, is_zero},
};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::collections::BTreeMap;
use tilewise_audit::{
    Report,
    time::{Kind, Row, Time},
};

/// The time of a program's run: estimated from the compiler's own cycle counts, not measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ComparedTime {
    /// The estimate, to three digits; a lower bound if there are [`unpriced`](Self::unpriced) operations.
    #[serde(deserialize_with = "duration")]
    pub estimate_seconds: f64,
    /// The cores that it is compiled for, of a chip whose two cores can be one device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u8>,
    /// The number of operations without cycle counts, by kind; without those that move nothing to or from HBM.
    #[serde(default, deserialize_with = "each_once", skip_serializing_if = "BTreeMap::is_empty")]
    pub unpriced: BTreeMap<String, u64>,
    /// Loops of unknown trip count, each of which counts once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted_loops: u64,
}

impl ComparedTime {
    /// Times that differ by less of the first's are the same.
    const LEAST: f64 = 0.1;

    /// The compared time of a report; `None` without cycle counts or a TPU generation.
    pub(super) fn of(report: &Report) -> Option<Self> {
        let time = report.time().ok()?;
        let generation = report.machine.generation()?;
        Some(Self {
            estimate_seconds: three_digits(time.total.estimate),
            cores: time.cores.of_chip(generation),
            unpriced: unpriced(time),
            uncounted_loops: time.loops.iter().filter(|row| row.trips.is_none()).count() as u64,
        })
    }

    /// Whether it is a lower bound.
    pub(super) fn is_at_least(&self) -> bool {
        !self.unpriced.is_empty() || self.uncounted_loops > 0
    }

    /// Whether the cores and the unknown parts are the same.
    fn is_comparable(&self, other: &Self) -> bool {
        (self.cores, &self.unpriced, self.uncounted_loops) == (other.cores, &other.unpriced, other.uncounted_loops)
    }

    /// The change of the run time, for two programs of one generation: only beyond a tenth. It is an estimate, so it
    /// makes no program worse.
    pub(super) fn change_to(&self, after: &Self) -> Option<Change> {
        let (was, is) = (self.estimate_seconds, after.estimate_seconds);
        let differs = (is - was).abs() > Self::LEAST * was;
        (self.is_comparable(after) && differs)
            .then(|| Change::of("time", [was, is].map(Amount::Seconds), Outcome::Changed))
    }
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    let is_one = seconds.is_finite() && seconds >= 0.0;
    is_one.then_some(seconds).ok_or_else(|| de::Error::custom("a time below zero"))
}

fn unpriced(time: &Time) -> BTreeMap<String, u64> {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    // Copies within the core come and go with the schedule.
    let is_within = |row: &Row| row.kind == Kind::Copy && row.bytes == 0;
    for row in time.rows.iter().filter(|row| row.is_unpriced && !is_within(row)) {
        *kinds.entry(row.kind.as_str().to_owned()).or_default() += 1;
    }
    kinds
}

/// More digits would only change from one compilation to the next.
fn three_digits(seconds: f64) -> f64 {
    format!("{seconds:.2e}").parse().unwrap_or(seconds)
}
