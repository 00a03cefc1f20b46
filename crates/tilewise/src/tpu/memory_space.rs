//! Names of memory spaces.

use alloc::{borrow::Cow, format};

/// The name of a memory space, by its use in TPU programs: `hbm`, `vmem`, `semaphore`, `cmem`, `smem`, `host`,
/// `scalar`, else `space_N`.
///
/// The names follow the use of the space by compiled programs of each generation, and agree with jax's own table
/// (`MemorySpace.color`) where it has one. The labels in memory-usage reports come from a table that does not fit.
///
/// ```
/// assert_eq!(tilewise::tpu::memory_space_name(1), "vmem");
/// assert_eq!(tilewise::tpu::memory_space_name(11), "space_11");
/// ```
#[must_use]
pub fn memory_space_name(space: u8) -> Cow<'static, str> {
    Cow::Borrowed(match space {
        0 => "hbm",
        1 => "vmem",
        2 => "semaphore",
        3 => "cmem",
        4 => "smem",
        5 => "host",
        6 => "scalar",
        _ => return Cow::Owned(format!("space_{space}")),
    })
}
