//! Blocks that the compiler refuses.

use crate::{
    block::element_bits,
    kernel::{Memory, Operand, join},
};
use alloc::vec::Vec;
use core::fmt;
use tilewise::tpu::{LANES, SUBLANES};

/// The reason why a kernel with such a block can't be compiled, with the nearest block that can.
///
/// The rules are those of JAX 0.10.2's lowering of Pallas to Mosaic (`_check_block_mappings`), and of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsupported {
    /// The last dimension of a block is the array's or a multiple of 128, the one before the array's or a multiple of 8.
    LastTwoDimensions {
        /// The nearest block.
        nearest: Vec<u64>,
    },
    /// A block of rank 1 is the array, or a multiple of 1024, or a power of two from 128 words on.
    RankOne {
        /// The nearest block.
        nearest: Vec<u64>,
        /// The least power of two, in elements.
        least: u64,
    },
    /// A window has at least one dimension.
    Scalar,
    /// An operand that is left in its memory has no blocks.
    BlockOutsideWindow,
    /// Windows that move have one or two buffers.
    Buffers {
        /// The number that was asked for.
        asked: u64,
    },
}

impl Unsupported {
    /// The nearest block that can be compiled, if the block's bounds are the cause.
    #[must_use]
    pub fn nearest(&self) -> Option<&[u64]> {
        match self {
            Self::LastTwoDimensions { nearest } | Self::RankOne { nearest, .. } => Some(nearest),
            _ => None,
        }
    }

    pub(crate) fn of(operand: &Operand, buffers: u64) -> Option<Self> {
        let (array, block) = (&operand.array.dimensions[..], operand.bounds());
        match operand.memory {
            Memory::Any | Memory::Hbm => return (!operand.is_whole()).then_some(Self::BlockOutsideWindow),
            Memory::Smem if operand.is_whole() => return None,
            Memory::Semaphore => return None,
            Memory::Smem | Memory::Vmem => {}
        }
        // An operand without a window has no buffers, so not the number it asked for.
        if !(1..=2).contains(&buffers) && operand.buffered == Some(buffers) {
            return Some(Self::Buffers { asked: buffers });
        }
        let mut nearest = block.clone();
        match (&mut nearest[..], array) {
            ([bound], &[whole]) => {
                let least = LANES * 32 / element_bits(operand.array.element_type).ok()?;
                *bound = nearest_line(*bound, whole, least);
                (nearest != block).then_some(Self::RankOne { nearest, least })
            }
            ([.., rows, columns], &[.., all_rows, all_columns]) => {
                *rows = nearest_multiple(*rows, all_rows, SUBLANES);
                *columns = nearest_multiple(*columns, all_columns, LANES);
                (nearest != block).then_some(Self::LastTwoDimensions { nearest })
            }
            _ => Some(Self::Scalar),
        }
    }
}

impl fmt::Display for Unsupported {
    /// The rule, and the nearest block that keeps it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LastTwoDimensions { .. } => f.write_str(
                "the last two bounds of a block are multiples of 8 and 128, or the array's own; the nearest such block is ",
            )?,
            Self::RankOne { least, .. } => write!(
                f,
                "a block of one dimension is the array, a multiple of 1024, or a power of two from {least} on; the nearest \
                 such block is "
            )?,
            Self::Scalar => return f.write_str("a window has at least one dimension; put a scalar in SMEM"),
            Self::BlockOutsideWindow => {
                return f.write_str("what is left in its memory has no blocks; copy parts of it in the kernel");
            }
            Self::Buffers { asked } => {
                return write!(f, "a block that moves has one or two buffers, not {asked}; `emit_pipeline` takes more");
            }
        }
        join(f, self.nearest().unwrap_or_default())
    }
}

/// The bound if it is allowed, else the nearest of the multiples and the whole dimension; of two the smaller.
fn nearest_multiple(bound: u64, whole: u64, multiple: u64) -> u64 {
    if bound == whole || bound.is_multiple_of(multiple) {
        return bound;
    }
    let below = bound - bound % multiple;
    nearest_of(bound, [below, below.saturating_add(multiple), whole])
}

/// The bound if a block of rank 1 may have it, else the nearest one that it may have.
fn nearest_line(bound: u64, whole: u64, least: u64) -> u64 {
    let power = bound.checked_next_power_of_two().unwrap_or(1 << 63);
    if bound == whole || bound.is_multiple_of(SUBLANES * LANES) || (bound >= least && power == bound) {
        return bound;
    }
    let below = bound - bound % (SUBLANES * LANES);
    let half = if power / 2 >= least { power / 2 } else { 0 };
    nearest_of(bound, [half, below, power.max(least), below.saturating_add(SUBLANES * LANES), whole])
}

fn nearest_of<const N: usize>(bound: u64, candidates: [u64; N]) -> u64 {
    let positive = candidates.into_iter().filter(|&candidate| candidate > 0);
    positive.min_by_key(|&candidate| (candidate.abs_diff(bound), candidate)).unwrap_or(bound)
}
