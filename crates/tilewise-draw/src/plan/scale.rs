//! The scale of bytes in a plot, and the places and labels of its ticks.

use crate::text::{self, UNITS, grouped};

/// A tick: its value and its label.
pub(crate) type Tick = (u64, String);

/// Resident memory is cut if it is more than this many times the rest, which would be nearly invisible.
const CUT_FROM: u64 = 20;

/// The share of a plot that is left to resident memory if it is cut, and the height of the gap in it.
const FLOOR: f64 = 0.15;
const GAP: f64 = 5.0;

/// The bytes from the bottom of a plot to its top.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Bytes below the cut, or 0.
    cut: u64,
    /// Bytes at the top.
    most: u64,
    height: f64,
}

impl Scale {
    /// From 0 on, without a cut.
    pub(super) fn whole(most: u64, height: f64) -> Self {
        Self { cut: 0, most: most.max(1), height }
    }

    /// From 0 on, with resident memory cut short if it would hide the rest.
    pub(super) fn of(resident: u64, most: u64, height: f64) -> Self {
        let above = most.saturating_sub(resident);
        let cut = if above > 0 && above.saturating_mul(CUT_FROM) < resident { resident } else { 0 };
        Self { cut, ..Self::whole(most, height) }
    }

    /// The height of resident memory if it is cut.
    fn floor(&self) -> f64 {
        if self.cut > 0 { self.height * FLOOR } else { 0.0 }
    }

    /// The distance of bytes from the top. Below a cut only 0 and all of resident memory have a level.
    #[expect(clippy::cast_precision_loss, reason = "a position in a plot")]
    pub(super) fn level(&self, bytes: u128) -> f64 {
        let Some(above) = bytes.checked_sub(u128::from(self.cut)) else { return tenths(self.height) };
        let span = self.most.saturating_sub(self.cut).max(1) as f64;
        let floor = self.height - self.floor();
        tenths(floor - above as f64 / span * floor)
    }

    /// The top and the height of the gap that shows the cut, if there is one.
    pub(super) fn cut(&self) -> Option<(f64, f64)> {
        (self.cut > 0).then(|| (tenths(self.height - (self.floor() + GAP) / 2.0), GAP))
    }

    /// The ticks; labels above a cut are relative to it.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        if self.cut == 0 {
            return bytes(self.most);
        }
        let above = bytes(self.most.saturating_sub(self.cut)).into_iter().map(|(value, label)| match value {
            0 => (self.cut, text::bytes(u128::from(self.cut))),
            more => (self.cut.saturating_add(more), format!("+{label}")),
        });
        std::iter::once((0, "0".to_owned())).chain(above).collect()
    }
}

/// Rounds to the precision of documents, so that equal marks are equal.
pub(crate) fn tenths(at: f64) -> f64 {
    (at * 10.0).round() / 10.0
}

/// Multiples of a power of two of bytes up to a size, at most eight beside 0, all in one unit.
pub(crate) fn bytes(most: u64) -> Vec<Tick> {
    const TICKS: u64 = 8;
    let step = most.div_ceil(TICKS).max(1).checked_next_power_of_two().unwrap_or(1 << 63);
    let unit = most.max(1).ilog2() / 10;
    let label = |value: u64| {
        #[expect(clippy::cast_precision_loss, reason = "a multiple of a large power of two")]
        let number = value as f64 / 2f64.powi(10 * i32::try_from(unit).unwrap_or(0));
        format!("{number} {}", UNITS.get(unit as usize).unwrap_or(&""))
    };
    (0..=most / step).map(|n| (n * step, if n == 0 { "0".to_owned() } else { label(n * step) })).collect()
}

/// Steps of `moments` moments, counted from 1: the first, and multiples of 1, 2 or 5 times a power of ten, at most ten.
pub(super) fn steps(moments: u64) -> Vec<Tick> {
    const TICKS: u64 = 10;
    let mut step: u64 = 1;
    for factor in [2, 5, 10].into_iter().cycle() {
        if moments / step <= TICKS {
            break;
        }
        // 1, 2, 5, 10, 20 …
        step = match factor {
            2 => step.saturating_mul(2),
            5 => (step / 2).saturating_mul(5),
            _ => step.saturating_mul(2),
        };
    }
    let first = (step > 1).then_some(1);
    first.into_iter().chain((1..=moments / step).map(|n| n * step)).map(|n| (n, grouped(n))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: Vec<Tick>) -> Vec<String> {
        ticks.into_iter().map(|(_, text)| text).collect()
    }

    /// 1000 bytes and 4 on top of them, in a plot 100 high: 15 are left to the thousand.
    #[test]
    fn what_stands_is_cut_where_it_would_hide_the_rest() {
        let scale = Scale::of(1000, 1004, 100.0);
        assert_eq!([0, 1000, 1002, 1004].map(|bytes| scale.level(bytes)), [100.0, 85.0, 42.5, 0.0]);
        assert_eq!(scale.cut(), Some((90.0, 5.0)));
        assert_eq!(texts(scale.ticks()), ["0", "1000 B", "+1 B", "+2 B", "+3 B", "+4 B"]);
        // A twentieth is visible, and resident memory alone hides nothing.
        for (resident, most) in [(1000, 1050), (1000, 1000), (0, 4), (u64::MAX, u64::MAX)] {
            let scale = Scale::of(resident, most, 100.0);
            assert_eq!((scale.cut(), scale.level(0), scale.level(most.into())), (None, 100.0, 0.0));
        }
        assert_eq!(Scale::of(u64::MAX - 1, u64::MAX, 100.0).level(u128::from(u64::MAX) - 1), 85.0);
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(texts(bytes(3 << 20)), ["0", "0.5 MiB", "1 MiB", "1.5 MiB", "2 MiB", "2.5 MiB", "3 MiB"]);
        assert_eq!(texts(bytes(311 << 20)), ["0", "64 MiB", "128 MiB", "192 MiB", "256 MiB"]);
        assert_eq!(texts(bytes(7)), ["0", "1 B", "2 B", "3 B", "4 B", "5 B", "6 B", "7 B"]);
        assert_eq!(texts(steps(24)), ["1", "5", "10", "15", "20"]);
        assert_eq!(
            texts(steps(10_194)),
            ["1", "1,000", "2,000", "3,000", "4,000", "5,000", "6,000", "7,000", "8,000", "9,000", "10,000"]
        );
        for bound in [0, 1, 2, 11, 12, 1 << 40, u64::MAX - 1, u64::MAX] {
            assert!((0..=11).contains(&steps(bound).len()), "{bound}");
            assert!((1..=10).contains(&bytes(bound).len()), "{bound}");
        }
    }
}
