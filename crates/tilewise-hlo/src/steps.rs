//! A count of steps, by which tests measure how work grows with the text: no test measures time.

#[cfg(feature = "unstable-testing")]
thread_local! {
    static TAKEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts steps; does nothing without the feature `unstable-testing`.
#[inline]
pub(crate) fn take(count: usize) {
    #[cfg(feature = "unstable-testing")]
    TAKEN.with(|taken| taken.set(taken.get() + count as u64));
    #[cfg(not(feature = "unstable-testing"))]
    let _ = count;
}

/// Steps that this thread has taken: looks at an instruction, a position or a value, and bytes of shapes and of
/// attributes read.
#[cfg(feature = "unstable-testing")]
#[must_use]
pub fn steps() -> u64 {
    TAKEN.with(std::cell::Cell::get)
}
