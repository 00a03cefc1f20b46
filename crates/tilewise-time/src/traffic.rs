//! Bytes that an instruction moves.

use foldhash::HashMap;
use std::rc::Rc;

use tilewise::{Shape, Tiled};
use tilewise_hlo::Instruction;

/// The memory space of the host.
const HOST: u8 = 5;

/// A part of memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) physical: u64,
    pub(crate) logical: u64,
}

impl Part {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            physical: self.physical.saturating_add(other.physical),
            logical: self.logical.saturating_add(other.logical),
        }
    }

    pub(crate) fn min(self, other: Self) -> Self {
        Self { physical: self.physical.min(other.physical), logical: self.logical.min(other.logical) }
    }
}

/// An array of a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    pub(crate) memory_space: u8,
    pub(crate) part: Part,
    pub(crate) elements: u64,
    /// Bits of an element.
    bits: u64,
    /// Whether it has dimensions: a scalar is a flag or a counter.
    pub(crate) is_scalar: bool,
}

impl Array {
    fn of(leaf: &Shape) -> Option<Self> {
        let array = leaf.as_array()?;
        let sizes = Tiled::new(leaf).ok()?.sizes();
        let bounds = array.dimensions().iter().map(|dimension| dimension.bound());
        let elements = bounds.map(|bound| bound.unwrap_or(0)).fold(1_u64, u64::saturating_mul);
        Some(Self {
            memory_space: array.memory_space(),
            part: Part { physical: sizes.physical_bytes, logical: sizes.logical_bytes },
            elements,
            bits: array.stored_bits().max(1),
            is_scalar: array.dimensions().is_empty(),
        })
    }
}

/// The arrays of results. Each text is read once, since programs repeat a few hundred, and each instruction's text is
/// looked up once: a wide tuple may have many readers.
#[derive(Default)]
pub(crate) struct Arrays<'m> {
    of_text: HashMap<&'m str, Rc<Held>>,
    of_instruction: HashMap<usize, Rc<Held>>,
}

/// The arrays of a result.
struct Held {
    arrays: Rc<[Array]>,
    /// The traffic of reading or writing all of it.
    whole: Traffic,
    part: Part,
}

impl<'m> Arrays<'m> {
    fn held(&mut self, instruction: &Instruction<'m>) -> Rc<Held> {
        if let Some(held) = self.of_instruction.get(&instruction.index()) {
            return Rc::clone(held);
        }
        let read = || {
            let arrays: Rc<[Array]> = match instruction.shape() {
                Ok(shape) => shape.leaves().filter_map(|(_, leaf)| Array::of(&leaf)).collect(),
                Err(_) => Rc::default(),
            };
            let mut whole = Traffic::default();
            whole.add(&arrays, |_| None);
            let part = arrays.iter().fold(Part::default(), |sum, array| sum.plus(array.part));
            Rc::new(Held { arrays, whole, part })
        };
        let held = Rc::clone(self.of_text.entry(instruction.shape_text()).or_insert_with(read));
        self.of_instruction.insert(instruction.index(), Rc::clone(&held));
        held
    }

    /// The arrays of an instruction's result, without those of unknown size.
    pub(crate) fn result(&mut self, instruction: &Instruction<'m>) -> Rc<[Array]> {
        Rc::clone(&self.held(instruction).arrays)
    }

    /// The traffic of reading or writing all of a result.
    pub(crate) fn whole(&mut self, instruction: &Instruction<'m>) -> Traffic {
        self.held(instruction).whole
    }

    /// Bytes of the arrays of a result, together.
    pub(crate) fn part(&mut self, instruction: &Instruction<'m>) -> Part {
        self.held(instruction).part
    }

    /// Elements of the largest array of a result.
    pub(crate) fn elements(&mut self, instruction: &Instruction<'m>) -> u64 {
        self.result(instruction).iter().map(|array| array.elements).max().unwrap_or(0)
    }
}

/// The memory traffic of an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    /// Bytes from and to HBM.
    pub(crate) hbm: Part,
    /// Bytes of HBM if every element had at least four.
    pub(crate) wide_bytes: f64,
    /// Bytes from and to the host's memory.
    pub(crate) host_bytes: u64,
}

impl Traffic {
    pub(crate) fn plus(&mut self, other: &Self) {
        self.hbm = self.hbm.plus(other.hbm);
        self.wide_bytes += other.wide_bytes;
        self.host_bytes = self.host_bytes.saturating_add(other.host_bytes);
    }

    pub(crate) fn add(&mut self, arrays: &[Array], part: impl Fn(usize) -> Option<Part>) {
        for (element, array) in arrays.iter().enumerate() {
            match array.memory_space {
                0 => {
                    let moved = part(element).map_or(array.part, |part| part.min(array.part));
                    self.hbm = self.hbm.plus(moved);
                    self.wide_bytes += widened(moved.physical, array.bits);
                }
                HOST => self.host_bytes = self.host_bytes.saturating_add(array.part.physical),
                _ => {}
            }
        }
    }
}

/// Bytes if each element had at least four.
#[expect(clippy::cast_precision_loss, reason = "an estimate of two digits")]
fn widened(bytes: u64, bits: u64) -> f64 {
    bytes as f64 * (32.0 / bits as f64).max(1.0)
}
