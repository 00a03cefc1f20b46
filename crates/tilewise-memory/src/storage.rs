//! What each position takes, and in which memory.

use tilewise_hlo::dataflow::{Slot, Table};

/// What the value at a position takes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Storage {
    pub(crate) bytes: u64,
    pub(crate) memory_space: u8,
    /// Whether it is an array of one element, which a register can hold.
    pub(crate) fits_register: bool,
}

/// What each position of a program takes.
pub(crate) type Storages = Table<Slot, Storage>;
