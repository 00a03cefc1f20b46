//! A kernel: its grid, operands, scalars and scratch.

use alloc::{string::String, vec::Vec};
use core::fmt;
use tilewise::{ElementType, tpu::Generation};

/// A kernel's grid, operands, scalars and scratch: the arguments of its `pallas_call`.
///
/// It is read from a text of a line each:
///
/// ```text
/// name matmul                        # optional, as everything here
/// tpu v6e
/// grid 16,16,8                       # `?` for a bound that only the run knows
/// prefetch s32[24,64]
/// in  bf16[8192,8192] block 1024,1024 @ 0,2
/// in  s4[8192,8192] block 1024,1024 @ 2,1 buffered 1
/// in  f32[64,128] any                # or `hbm`: left where it is
/// in  f32[64,128] block 8,128 @ 0,- fused   # computed in the pipeline: `allow_input_fusion`
/// in  s32[8,4] smem                  # without a block: the whole array
/// out bf16[4,8192] block -,1024 @ -,1
/// scratch vmem f32[1024,1024]
/// scratch dma
/// limit 64MiB                        # vmem_limit_bytes
/// body 2MiB                          # what the body is guessed to take
/// ```
///
/// Behind `@` stands, for each dimension, the axis of the grid that its block index depends on, or `-` without one. As
/// a bound of a block, `-` is a dimension that the kernel doesn't see (`None`, `pl.Squeezed()`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kernel {
    /// The kernel's name.
    pub name: Option<String>,
    /// The generation that the text names.
    pub generation: Option<Generation>,
    /// Steps along each axis; `None` for a bound known only at run time, which counts as more than 1.
    pub grid: Vec<Option<u64>>,
    /// Scalars that are in SMEM before the first step.
    pub prefetched: Vec<Array>,
    /// Inputs and outputs, each in its order.
    pub operands: Vec<Operand>,
    /// `scratch_shapes`, and the allocations of `pl.run_scoped` and `emit_pipeline` inside the body.
    pub scratch: Vec<Scratch>,
    /// `vmem_limit_bytes`.
    pub limit_bytes: Option<u64>,
    /// The guessed VMEM of the body.
    pub body_bytes: Option<u64>,
}

/// An array's type and bounds, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Array {
    /// The type of its elements.
    pub element_type: ElementType,
    /// Its bounds.
    pub dimensions: Vec<u64>,
}

impl fmt::Display for Array {
    /// As XLA writes a shape without its layout: `bf16[8192,8192]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.element_type)?;
        join(f, &self.dimensions)?;
        f.write_str("]")
    }
}

/// An input or an output.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operand {
    /// Whether it is an output.
    pub is_output: bool,
    /// The whole array.
    pub array: Array,
    /// The memory in which the kernel sees it.
    pub memory: Memory,
    /// The block's bounds, one a dimension; `None` is squeezed.
    pub block: Vec<Option<u64>>,
    /// For each dimension the axis of the grid that its block index depends on.
    pub index: Vec<Option<usize>>,
    /// `pl.Buffered(n)`.
    pub buffered: Option<u64>,
    /// Whether XLA computes it inside the kernel's pipeline, as `allow_input_fusion` lets it.
    pub is_fused: bool,
}

impl Operand {
    /// The block's bounds with 1 for squeezed dimensions.
    pub(crate) fn bounds(&self) -> Vec<u64> {
        self.block.iter().map(|bound| bound.unwrap_or(1)).collect()
    }

    /// Whether its block is the whole array, and stays.
    pub(crate) fn is_whole(&self) -> bool {
        self.bounds() == self.array.dimensions && self.index.iter().all(Option::is_none)
    }
}

/// Scratch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scratch {
    /// The memory it lies in.
    pub memory: Memory,
    /// The array it holds; `None` for semaphores.
    pub array: Option<Array>,
}

/// A memory in which a kernel sees an operand or has scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Memory {
    /// Vector memory.
    Vmem,
    /// Scalar memory.
    Smem,
    /// Wherever the array lies: `pl.ANY`.
    Any,
    /// The device's memory.
    Hbm,
    /// Semaphores, of DMAs or regular.
    Semaphore,
}

impl Memory {
    /// Its name: `vmem`, `smem`, `any`, `hbm`, `semaphore`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vmem => "vmem",
            Self::Smem => "smem",
            Self::Any => "any",
            Self::Hbm => "hbm",
            Self::Semaphore => "semaphore",
        }
    }
}

/// The bounds, divided by commas.
pub(crate) fn join(f: &mut fmt::Formatter<'_>, bounds: &[u64]) -> fmt::Result {
    for (position, bound) in bounds.iter().enumerate() {
        write!(f, "{}{bound}", if position > 0 { "," } else { "" })?;
    }
    Ok(())
}
