//! Where ticks of axes go, and what they say.

use crate::text::{UNITS, grouped};

/// A tick: its value and its label.
pub(super) type Tick = (u64, String);

/// Multiples of a power of two of bytes up to a size, at most eight beside 0, all in one unit.
pub(super) fn bytes(most: u64) -> Vec<Tick> {
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

/// Multiples of 1, 2 or 5 times a power of ten below a bound, at most ten beside 0.
pub(super) fn moments(bound: u64) -> Vec<Tick> {
    const TICKS: u64 = 10;
    let mut step: u64 = 1;
    for factor in [2, 5, 10].into_iter().cycle() {
        if bound.saturating_sub(1) / step <= TICKS {
            break;
        }
        // 1, 2, 5, 10, 20 …
        step = match factor {
            2 => step.saturating_mul(2),
            5 => (step / 2).saturating_mul(5),
            _ => step.saturating_mul(2),
        };
    }
    (0..=bound.saturating_sub(1) / step).map(|n| (n * step, grouped(n * step))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: Vec<Tick>) -> Vec<String> {
        ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(texts(bytes(3 << 20)), ["0", "0.5 MiB", "1 MiB", "1.5 MiB", "2 MiB", "2.5 MiB", "3 MiB"]);
        assert_eq!(texts(bytes(311 << 20)), ["0", "64 MiB", "128 MiB", "192 MiB", "256 MiB"]);
        assert_eq!(texts(bytes(7)), ["0", "1 B", "2 B", "3 B", "4 B", "5 B", "6 B", "7 B"]);
        assert_eq!(texts(moments(24)), ["0", "5", "10", "15", "20"]);
        assert_eq!(
            texts(moments(10_194)),
            ["0", "1,000", "2,000", "3,000", "4,000", "5,000", "6,000", "7,000", "8,000", "9,000", "10,000"]
        );
        for bound in [0, 1, 2, 11, 12, 1 << 40, u64::MAX - 1, u64::MAX] {
            assert!((1..=11).contains(&moments(bound).len()), "{bound}");
            assert!((1..=10).contains(&bytes(bound).len()), "{bound}");
        }
    }
}
