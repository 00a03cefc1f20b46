//! Three figures for one duration.

use std::ops::{Add, AddAssign};

/// A duration in seconds: three figures from the same text, none of them measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Estimate {
    /// Bytes at the memory's full rate, or operations at the peak, whichever takes longer.
    pub floor: f64,
    /// The compiler's figure, corrected where it charges narrow types as if every element had four bytes.
    pub estimate: f64,
    /// The compiler's cycles at the core's clock.
    pub compiler: f64,
}

impl Estimate {
    /// One figure for all three.
    #[must_use]
    pub fn of(seconds: f64) -> Self {
        Self { floor: seconds, estimate: seconds, compiler: seconds }
    }

    /// The duration times a count.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an estimate of two digits")]
    pub fn times(self, count: u64) -> Self {
        let count = count as f64;
        self.map(self, |seconds, _| seconds * count)
    }

    /// The later of two times, figure by figure.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.map(other, f64::max)
    }

    /// The time from another to this one, figure by figure; 0 if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        self.map(earlier, |later, earlier| (later - earlier).max(0.0))
    }

    /// Whether all figures are 0.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self == Self::default()
    }

    /// No figure is infinite, so that none of their differences is undefined.
    fn map(self, other: Self, of: impl Fn(f64, f64) -> f64) -> Self {
        let finite = |left, right| of(left, right).min(f64::MAX);
        Self {
            floor: finite(self.floor, other.floor),
            estimate: finite(self.estimate, other.estimate),
            compiler: finite(self.compiler, other.compiler),
        }
    }
}

impl Add for Estimate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.map(other, |left, right| left + right)
    }
}

impl AddAssign for Estimate {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
