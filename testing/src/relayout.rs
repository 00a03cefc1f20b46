//! A relayout by definition: each element is read at its offset in one layout and written at its offset in the other.

use tilewise::{ElementKind, ElementType, Shape, Tiled};

/// Moves buffers between two layouts of an array, element by element. Slow, and short enough to be obviously right.
#[derive(Clone, Debug)]
pub struct NaiveRelayout {
    element_type: ElementType,
    /// Bits in which an element is stored on both sides.
    stored_bits: [u64; 2],
    /// Each element's offsets on both sides, in elements.
    offsets: Vec<[u64; 2]>,
}

impl NaiveRelayout {
    /// From one layout to another of the same array.
    ///
    /// # Panics
    ///
    /// If one has no layout, or they are not of the same array.
    #[must_use]
    pub fn new(from: &Shape, to: &Shape) -> Self {
        let sides = [from, to].map(|shape| Tiled::new(shape).expect("an array with a layout"));
        let bounds = sides[0].logical_dimensions();
        assert_eq!(bounds, sides[1].logical_dimensions());
        let mut index = vec![0; bounds.len()];
        let mut offsets = Vec::new();
        for _ in 0..bounds.iter().product() {
            offsets.push([0, 1].map(|side| sides[side].offset_of(&index).expect("inside")));
            for (i, bound) in index.iter_mut().zip(bounds).rev() {
                *i += 1;
                if *i < *bound {
                    break;
                }
                *i = 0;
            }
        }
        let stored_bits = [0, 1].map(|side| sides[side].stored_bits());
        Self { element_type: sides[0].array().element_type(), stored_bits, offsets }
    }

    /// The way back.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        self.stored_bits.reverse();
        self.offsets.iter_mut().for_each(|offsets| offsets.reverse());
        self
    }

    /// Writes every element of the source to the destination; its padding stays.
    ///
    /// If both sides store an element in the same number of bits, all of them are copied, otherwise those of its value.
    /// Widening repeats the sign of signed integers, and fills with zeros otherwise.
    ///
    /// # Panics
    ///
    /// If a buffer is too short.
    pub fn run(&self, source: &[u8], destination: &mut [u8]) {
        let (copied, stored) = (self.copied_bits(), self.stored_bits[1]);
        let signed = self.element_type.kind() == ElementKind::Signed;
        for &[from, to] in &self.offsets {
            let (from, to) = (from * self.stored_bits[0], to * stored);
            for (at, count) in parts(0, copied) {
                set_bits(destination, to + at, count, bits(source, from + at, count));
            }
            let filling = if signed && bits(source, from + copied - 1, 1) == 1 { 0xFF } else { 0 };
            for (at, count) in parts(copied, stored) {
                set_bits(destination, to + at, count, filling);
            }
        }
    }

    /// The offset, in the destination, of the first element that differs between two destinations.
    ///
    /// # Panics
    ///
    /// If a buffer is too short.
    #[must_use]
    pub fn difference(&self, a: &[u8], b: &[u8]) -> Option<u64> {
        let differs = |&offset: &u64| {
            parts(0, self.copied_bits()).any(|(at, count)| {
                let at = offset * self.stored_bits[1] + at;
                bits(a, at, count) != bits(b, at, count)
            })
        };
        self.offsets.iter().map(|[_, to]| *to).find(differs)
    }

    /// All stored bits if both sides store the same number, otherwise the value's.
    fn copied_bits(&self) -> u64 {
        let [from, to] = self.stored_bits;
        if from == to { from } else { self.element_type.bits().into() }
    }
}

/// A range of bits in parts of at most 8: where each starts, and how many it has.
fn parts(start: u64, end: u64) -> impl Iterator<Item = (u64, u32)> {
    (start..end).step_by(8).map(move |at| (at, u32::try_from(8.min(end - at)).expect("8 at most")))
}

/// At most 8 bits, in one byte or two.
fn bits(buffer: &[u8], at: u64, count: u32) -> u8 {
    let byte = byte(at);
    let next = buffer.get(byte + 1).copied().unwrap_or(0);
    let [bits, _] = (u16::from_le_bytes([buffer[byte], next]) >> (at % 8)).to_le_bytes();
    bits & (0xFF >> (8 - count))
}

fn set_bits(buffer: &mut [u8], at: u64, count: u32, value: u8) {
    let mask = (0xFF_u16 >> (8 - count)) << (at % 8);
    let value = (u16::from(value) << (at % 8)) & mask;
    for ((at, mask), value) in (byte(at)..).zip(mask.to_le_bytes()).zip(value.to_le_bytes()) {
        if mask != 0 {
            buffer[at] = buffer[at] & !mask | value;
        }
    }
}

/// The byte that holds a bit.
fn byte(bit: u64) -> usize {
    usize::try_from(bit / 8).expect("inside a buffer")
}
