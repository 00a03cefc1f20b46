//! Changes of arrays between a kernel and the producers of its operands or the users of its results.

use super::{
    change::{BoundaryChange, copied_bytes},
    remedy::Remedy,
};
use tilewise::Shape;
use tilewise_hlo::Opcode;

/// The side of a kernel that an array is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KernelSide {
    /// The kernel reads it.
    Operand,
    /// The kernel writes it.
    Result,
}

impl KernelSide {
    /// Its name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operand => "operand",
            Self::Result => "result",
        }
    }
}

/// An operand of a kernel with XLA's changes to it before the call, or a result and one of its readers, with XLA's
/// changes to it before that.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KernelArray {
    /// Operand or result.
    pub side: KernelSide,
    /// Its number among the operands, or among the arrays that the kernel makes.
    pub index: usize,
    /// The array as the kernel takes or makes it: row-major, since a kernel knows no other order.
    pub shape: Shape,
    /// The instruction or parameter that makes an operand; the instruction that reads a result, or the program's root.
    pub other: String,
    /// The opcode of [`other`](Self::other).
    pub other_opcode: Opcode,
    /// The changes between the two, from the kernel on.
    pub between: Vec<BoundaryChange>,
    /// The cause of its copies; `None` if it isn't copied.
    pub forced_by: Option<ForcedBy>,
    /// The change that avoids its copies, if known.
    pub remedy: Option<Remedy>,
}

impl KernelArray {
    /// The copies between the two, from the kernel on.
    pub fn copies(&self) -> impl DoubleEndedIterator<Item = &BoundaryChange> {
        self.between.iter().filter(|change| change.is_copy())
    }

    /// Bytes that these copies read and write in all their runs; loops of an unknown trip count are counted once.
    #[must_use]
    pub fn copied_bytes(&self) -> u64 {
        copied_bytes(&self.between)
    }

    /// The array before the first copy and after the last one; `None` without copies.
    #[must_use]
    pub fn ends(&self) -> Option<[&Shape; 2]> {
        let (near, far) = (self.copies().next()?, self.copies().next_back()?);
        Some(match self.side {
            KernelSide::Operand => [&far.from, &near.to],
            KernelSide::Result => [&near.from, &far.to],
        })
    }
}

/// Why an array is copied at a kernel: a kernel takes and makes row-major arrays, and something fixes another order, or
/// the same memory, on the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForcedBy {
    /// Only the kernel's order: the value is computed inside the program.
    Kernel,
    /// The layout of an argument or a result of the program.
    Interface,
    /// The layout of a value that a loop carries.
    Loop,
    /// The layout of a value passed into or out of a branch.
    Branch,
    /// The kernel writes its result over the operand, whose value is still needed or isn't donated.
    Donation,
}

impl ForcedBy {
    /// Its name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Interface => "interface",
            Self::Loop => "loop",
            Self::Branch => "branch",
            Self::Donation => "donation",
        }
    }
}
