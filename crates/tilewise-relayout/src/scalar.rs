//! The scalar fallback: single elements of any width at any bit. All kernels must agree with it; it runs if none fits.

use crate::size::size;

/// How elements are stored on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elements {
    /// Bits of the type.
    pub(crate) bits: u64,
    /// Bits per element in the source.
    pub(crate) source_bits: u64,
    /// Bits per element in the destination.
    pub(crate) destination_bits: u64,
    /// Whether widening repeats the sign.
    pub(crate) signed: bool,
}

/// Reads up to 64 bits, from any bit on; those past the end of the buffer are 0.
pub(crate) fn get(buffer: &[u8], bit: u64, bits: u64) -> u64 {
    let start = size(bit / 8);
    let mut window = [0; 16];
    let end = buffer.len().min(start + 9);
    let bytes = &buffer[start.min(end)..end];
    window[..bytes.len()].copy_from_slice(bytes);
    let value = u128::from_le_bytes(window) >> (bit % 8) & u128::from(mask(bits));
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// Replaces up to 64 bits, from any bit on.
fn put(buffer: &mut Bytes<'_>, bit: u64, bits: u64, value: u64) {
    let shift = bit % 8;
    let (mut value, mut keep) = (u128::from(value) << shift, !(u128::from(mask(bits)) << shift));
    for at in bit / 8..(bit + bits).div_ceil(8) {
        buffer.blend(size(at), value.to_le_bytes()[0], keep.to_le_bytes()[0]);
        (value, keep) = (value >> 8, keep >> 8);
    }
}

impl Elements {
    /// Converts `count` elements; positions are in elements.
    pub(crate) fn convert(
        &self,
        (source, from, from_step): (&[u8], u64, u64),
        (destination, to, to_step): (&mut Bytes<'_>, u64, u64),
        count: u64,
    ) {
        for i in 0..count {
            self.convert_one(source, from + i * from_step, destination, to + i * to_step);
        }
    }

    fn convert_one(&self, source: &[u8], from: u64, destination: &mut Bytes<'_>, to: u64) {
        let (from, to) = (from * self.source_bits, to * self.destination_bits);
        let same = self.source_bits == self.destination_bits;
        let copied = if same { self.source_bits } else { self.bits };
        let mut sign = 0;
        for at in (0..copied).step_by(64) {
            let bits = (copied - at).min(64);
            let value = get(source, from + at, bits);
            sign = value >> (bits - 1) & 1;
            put(destination, to + at, bits, value);
        }
        let rest = if self.signed && sign == 1 { u64::MAX } else { 0 };
        for at in (copied..self.destination_bits).step_by(64) {
            let bits = (self.destination_bits - at).min(64);
            put(destination, to + at, bits, rest & mask(bits));
        }
    }
}

pub(crate) fn mask(bits: u64) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// A destination that several threads write at once, each its own bytes.
pub(crate) struct Bytes<'a> {
    start: *mut u8,
    length: usize,
    buffer: core::marker::PhantomData<&'a mut [u8]>,
}

impl Bytes<'_> {
    /// # Safety
    /// `start` must be valid for reads and writes of `length` bytes, and while this lives no other code may access the
    /// bytes that [`blend`](Self::blend) is called for.
    pub(crate) unsafe fn new(start: *mut u8, length: usize) -> Self {
        Self { start, length, buffer: core::marker::PhantomData }
    }

    /// Replaces the bits of a byte that are 0 in `keep`.
    fn blend(&mut self, at: usize, value: u8, keep: u8) {
        assert!(at < self.length, "an element outside its buffer");
        // SAFETY: just checked; the byte is ours by the contract of `new`.
        unsafe {
            let byte = self.start.add(at);
            *byte = *byte & keep | value & !keep;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widening_repeats_the_sign_and_packing_drops_upper_bits() {
        let convert = |elements: Elements, source: &[u8], bytes: usize| {
            let mut destination = vec![0xAA; bytes];
            // SAFETY: the vector is ours alone.
            let mut out = unsafe { Bytes::new(destination.as_mut_ptr(), bytes) };
            elements.convert((source, 0, 1), (&mut out, 0, 1), 2);
            destination
        };
        let s4 = Elements { bits: 4, source_bits: 4, destination_bits: 12, signed: true };
        assert_eq!(convert(s4, &[0x7F], 3), [0xFF, 0x7F, 0x00]);
        let u4 = Elements { signed: false, ..s4 };
        assert_eq!(convert(u4, &[0x7F], 3), [0x0F, 0x70, 0x00]);
        let pack = Elements { bits: 4, source_bits: 8, destination_bits: 4, signed: true };
        assert_eq!(convert(pack, &[0xAB, 0xCD], 1), [0xDB]);
        let wide = Elements { bits: 32, source_bits: 80, destination_bits: 80, signed: false };
        let source: Vec<u8> = (0..20).collect();
        assert_eq!(convert(wide, &source, 20), source);
    }
}
