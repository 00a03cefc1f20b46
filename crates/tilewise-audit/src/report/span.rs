//! A part of a run.

use super::timeline::Timeline;
use foldhash::HashMap;
use std::cmp::Reverse;

/// Allocations and frees in a part of a run, and the most bytes in use there: [`Timeline::span`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Span {
    /// Its first moment.
    pub first: usize,
    /// Its last moment.
    pub last: usize,
    /// Arrays that are allocated there.
    pub arrays: usize,
    /// Bytes of these arrays.
    pub allocated_bytes: u64,
    /// Bytes that are freed before it ends.
    pub freed_bytes: u64,
    /// The most bytes in use at one of its moments, with the arrays that are live for the whole run.
    pub most_bytes: u64,
    /// The first such moment.
    pub most_moment: usize,
    /// Owners that allocate, by index in [`Timeline::owners`], with their bytes; the largest first.
    pub owners: Vec<(usize, u64)>,
    /// Its duration in seconds, estimated; `None` if the text has no cycle counts.
    pub seconds: Option<f64>,
}

impl Timeline {
    /// The part of the run from one moment to another, both included; moments behind the end are taken for the last
    /// one.
    ///
    /// ```
    /// let text = "
    /// HloModule m, is_scheduled=true
    ///
    /// ENTRY main {
    ///   x = f32[8,128]{1,0:T(8,128)} parameter(0)
    ///   y = f32[8,128]{1,0:T(8,128)} negate(x)
    ///   z = f32[16,128]{1,0:T(8,128)} concatenate(y, y), dimensions={0}
    ///   ROOT r = f32[8,128]{1,0:T(8,128)} slice(z), slice={[0:8], [0:128]}
    /// }";
    /// let module = tilewise_hlo::Module::parse(text)?;
    /// let timeline = tilewise_audit::audit(&module).timeline(0).expect("a plan");
    /// let span = timeline.span(1, 2);
    /// assert_eq!((span.arrays, span.allocated_bytes, span.freed_bytes), (2, 12 << 10, 0));
    /// // The argument and the result stand; `y` and `z` are both alive while `z` is made.
    /// assert_eq!((span.most_bytes, span.most_moment), (20 << 10, 2));
    /// assert_eq!(timeline.span(2, 3).freed_bytes, 4 << 10);
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn span(&self, first: usize, last: usize) -> Span {
        let last = last.min(self.order.len().saturating_sub(1));
        let first = first.min(last);
        // Steps wrap where more bytes end than begin; their running sums are right again.
        let mut steps = vec![0u64; last - first + 1];
        let mut owners: HashMap<usize, u64> = HashMap::default();
        let (mut arrays, mut allocated_bytes, mut freed_bytes) = (0, 0u64, 0u64);
        for piece in self.pieces.iter().filter(|piece| piece.first <= last && piece.last >= first) {
            if piece.first >= first {
                arrays += 1;
                allocated_bytes = allocated_bytes.saturating_add(piece.bytes);
                let of_owner = owners.entry(piece.owner).or_default();
                *of_owner = of_owner.saturating_add(piece.bytes);
            }
            let begin = piece.first.max(first) - first;
            steps[begin] = steps[begin].wrapping_add(piece.bytes);
            if piece.last < last {
                freed_bytes = freed_bytes.saturating_add(piece.bytes);
                let end = piece.last + 1 - first;
                steps[end] = steps[end].wrapping_sub(piece.bytes);
            }
        }
        let mut alive = self.resident_bytes;
        let (mut most_bytes, mut most_moment) = (0, first);
        for (at, step) in steps.into_iter().enumerate() {
            alive = alive.wrapping_add(step);
            if alive > most_bytes {
                (most_bytes, most_moment) = (alive, first + at);
            }
        }
        let mut owners: Vec<(usize, u64)> = owners.into_iter().collect();
        owners.sort_by_key(|(owner, bytes)| (Reverse(*bytes), *owner));
        let seconds = self.times.get(first..=last).map(|times| times.iter().map(|time| time.seconds).sum());
        Span { first, last, arrays, allocated_bytes, freed_bytes, most_bytes, most_moment, owners, seconds }
    }
}
