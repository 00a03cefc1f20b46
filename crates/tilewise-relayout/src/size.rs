//! Sizes of buffers as the machine counts them.

/// A stride, a count or an offset inside a buffer that exists.
#[expect(clippy::cast_possible_truncation, reason = "a buffer is no longer than usize")]
#[inline(always)]
pub(crate) fn size(n: u64) -> usize {
    n as usize
}
