//! The vectors of each instruction set.

pub(super) mod portable;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86_64;
