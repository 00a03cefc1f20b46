//! Bytes and memory space of each position.

use tilewise_hlo::dataflow::{Slot, Table};

/// The size and memory space of the value at a position.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Storage {
    pub(crate) bytes: u64,
    pub(crate) memory_space: u8,
    /// Whether it is an array of one element, which a register can hold.
    pub(crate) fits_register: bool,
}

/// The storage of each position of a program.
pub(crate) type Storages = Table<Slot, Storage>;
