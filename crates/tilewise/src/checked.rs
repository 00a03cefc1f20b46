//! Sizes in arithmetic that never wraps.

use crate::MAX_SIZE;

/// The product: 0 if any factor is 0, `None` above 2^63 − 1.
pub(crate) fn product(factors: impl Iterator<Item = u64> + Clone) -> Option<u64> {
    if factors.clone().any(|factor| factor == 0) {
        return Some(0);
    }
    factors.into_iter().try_fold(1u64, |product, factor| product.checked_mul(factor).filter(|&p| p <= MAX_SIZE))
}

/// The least multiple of `multiple` that is not below `n`.
pub(crate) fn round_up(n: u64, multiple: u64) -> Option<u64> {
    n.checked_next_multiple_of(multiple).filter(|&n| n <= MAX_SIZE)
}

/// Bytes of that many elements packed back to back. The bit count may exceed 64 bits; the byte count may not exceed 2^63 − 1.
pub(crate) fn bytes(elements: u64, bits: u64) -> Option<u64> {
    let bytes = (u128::from(elements) * u128::from(bits)).div_ceil(8);
    u64::try_from(bytes).ok().filter(|&bytes| bytes <= MAX_SIZE)
}
