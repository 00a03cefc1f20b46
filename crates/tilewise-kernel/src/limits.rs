//! The VMEM and SMEM that a kernel may have.

use tilewise::tpu::Generation;

/// The limits of one kernel on a generation, in bytes.
///
/// Measured without a TPU, by compiling kernels: the physical size from "would exceed memory (size=…)", the default from
/// "Scoped allocation with size … and limit …", the cap from `scoped_memory_configs` of a kernel compiled with
/// `vmem_limit_bytes=1 << 40`, SMEM by bisection of a scratch buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// VMEM that a core has.
    pub physical_bytes: u64,
    /// VMEM of a kernel that asks for no limit.
    pub default_bytes: u64,
    /// The largest `vmem_limit_bytes` that is honoured; a larger one is silently cut to this.
    pub cap_bytes: u64,
    /// The largest SMEM scratch that compiles; the compiler keeps the rest.
    pub smem_bytes: u64,
}

impl Limits {
    /// The versions of libtpu that the limits are of. Measured with the first; with the last, SMEM, the default, and
    /// the memory of a kernel under the largest limit were found again, but for v7x, whose largest limit is the last
    /// version's.
    pub const LIBTPU: &'static str = "0.0.42.1 to 0.0.52";

    /// The limits of a generation; `None` for v2, for which no kernel was compiled.
    ///
    /// ```
    /// use tilewise::tpu::Generation;
    /// use tilewise_kernel::Limits;
    ///
    /// let v5e = Limits::of(Generation::V5e).expect("known");
    /// assert_eq!((v5e.default_bytes, v5e.cap_bytes), (16 << 20, 128 << 20)); // an eighth by default
    /// ```
    #[must_use]
    pub const fn of(generation: Generation) -> Option<Self> {
        const MIB: u64 = 1 << 20;
        /// The part of VMEM that the compiler keeps on v5p, v6e and v7x.
        const RESERVED: u64 = 64 << 10;
        let (physical_bytes, default_bytes, cap_bytes, smem_bytes) = match generation {
            // A limit above the memory is not cut here, and gives no more.
            Generation::V3 => (16 * MIB, 16 * MIB, 16 * MIB, 15_360),
            Generation::V4 => (16 * MIB, 16 * MIB, 16 * MIB, 1_048_064),
            Generation::V5e => (128 * MIB, 16 * MIB, 128 * MIB, 1_046_528),
            Generation::V5p => (64 * MIB, 16 * MIB, 64 * MIB - RESERVED, 1_046_528),
            Generation::V6e => (128 * MIB, 32 * MIB, 128 * MIB - RESERVED, 1_046_528),
            // libtpu 0.0.42.1 kept no part of it, 0.0.52 does.
            Generation::V7x => (64 * MIB, 32 * MIB, 64 * MIB - RESERVED, 1_046_528),
            _ => return None,
        };
        Some(Self { physical_bytes, default_bytes, cap_bytes, smem_bytes })
    }

    /// The limit in force for a kernel that asks for `asked` bytes by `vmem_limit_bytes`, or for none.
    #[must_use]
    pub const fn in_force(&self, asked: Option<u64>) -> u64 {
        match asked {
            Some(asked) if asked < self.cap_bytes => asked,
            Some(_) => self.cap_bytes,
            None => self.default_bytes,
        }
    }
}

/// VMEM that a generation offers to programs, in bytes; `None` if no message of the compiler with it was seen.
///
/// From "Used 256.00M of 128.00M vmem" on v5e and "of 127.94M vmem" on v6e: the most that one kernel may ask for,
/// [`Limits::cap_bytes`]. A kernel that asks for no limit has less: 16 MiB on v5e.
#[must_use]
pub const fn vmem_bytes(generation: Generation) -> Option<u64> {
    match (generation, Limits::of(generation)) {
        (Generation::V5e | Generation::V6e | Generation::V7x, Some(limits)) => Some(limits.cap_bytes),
        _ => None,
    }
}
