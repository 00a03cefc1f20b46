//! The vectors of each instruction set.

#[cfg(target_arch = "aarch64")]
pub(super) mod aarch64;
#[cfg(any(feature = "portable", not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(super) mod portable;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86_64;
