//! From a kernel to the bytes of its rows and their totals.

use crate::{
    block::{PaddedBlock, within_limit},
    kernel::{Array, Kernel, Memory, Operand},
    limits::Limits,
    rules::Unsupported,
};
use alloc::{format, string::String, vec::Vec};
use tilewise::{Error, MAX_SIZE, tpu::Generation};

/// The granule of windows in VMEM, in bytes.
const WINDOW_GRANULE: u64 = 1024;
/// The granule of scratch, and of all of SMEM, in bytes.
const GRANULE: u64 = 512;

/// The VMEM and SMEM of a kernel on a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// The generation.
    pub generation: Generation,
    /// A row for each operand, inputs and outputs in the order of the kernel.
    pub windows: Vec<Window>,
    /// A row for each array of scalars that is prefetched into SMEM.
    pub prefetched: Vec<Allocation>,
    /// A row for each scratch array.
    pub scratch: Vec<Allocation>,
    /// Declared bytes of VMEM.
    pub vmem_bytes: u64,
    /// Declared bytes of SMEM.
    pub smem_bytes: u64,
    /// The guessed VMEM of the body, if a guess was given.
    pub guess_bytes: Option<u64>,
    /// The limit of VMEM in force; `None` on v2, for a kernel that asks for none.
    pub limit_bytes: Option<u64>,
    /// The limits of the generation; `None` on v2.
    pub limits: Option<Limits>,
    /// Whether it fits; `None` without a limit.
    pub verdict: Option<KernelFit>,
}

impl Budget {
    /// Bytes of windows that are not allocated if XLA keeps their arrays in VMEM anyway.
    #[must_use]
    pub fn bytes_that_may_be_kept(&self) -> u64 {
        self.windows.iter().filter(|window| window.may_be_kept).map(|window| window.bytes).sum()
    }

    /// Bytes that all windows move over the whole grid; `None` if that of one is unknown, or above 2^63 − 1.
    #[must_use]
    pub fn moved_bytes(&self) -> Option<u64> {
        let windows = self.windows.iter().filter(|window| window.buffers > 0);
        let mut moved = windows.map(|window| window.moved_bytes);
        moved.try_fold(0_u64, |sum, moved| sum.checked_add(moved?)).filter(|&sum| sum <= MAX_SIZE)
    }

    /// The `vmem_limit_bytes` that the declared memory needs, with the guess and its margin if there is one, in whole
    /// MiB or the cap; `None` if even the cap is too small, and on v2.
    #[must_use]
    pub fn limit_needed(&self) -> Option<u64> {
        let cap = self.limits?.cap_bytes;
        let needed = self.vmem_bytes.checked_add(with_margin(self.guess_bytes.unwrap_or_default()))?;
        (needed <= cap).then(|| needed.next_multiple_of(1 << 20).min(cap))
    }
}

/// Whether a kernel fits. No verdict is "fits" without the body, whose memory only the compiler knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KernelFit {
    /// The declared memory is more than the limit of VMEM, or than SMEM.
    DoesNotFit,
    /// The declared memory fits; no guess of the body was given.
    DeclaredFits,
    /// The declared memory fits, but not with the guess and a tenth of it.
    ProbablyDoesNotFit,
    /// The declared memory fits with the guess and a tenth of it.
    ProbablyFits,
}

impl KernelFit {
    /// Its name: `does_not_fit`, `declared_fits`, `probably_does_not_fit` or `probably_fits`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DoesNotFit => "does_not_fit",
            Self::DeclaredFits => "declared_fits",
            Self::ProbablyDoesNotFit => "probably_does_not_fit",
            Self::ProbablyFits => "probably_fits",
        }
    }
}

/// The memory of an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Window {
    /// Its name: `in0`, `out1`.
    pub name: String,
    /// The operand, as the kernel has it.
    pub operand: Operand,
    /// Its block with padding; `None` without a window.
    pub padded: Option<PaddedBlock>,
    /// Blocks that are held at a time; 0 without a window.
    pub buffers: u64,
    /// The reason for that number of buffers.
    pub cause: BufferCause,
    /// Bytes of all buffers, rounded up to 1024 in VMEM and to 512 in SMEM.
    pub bytes: u64,
    /// Bytes that are copied to or from the window over the whole grid: a block whenever its index changes. `None`
    /// without a window, for a grid known only at run time, and above 2^63 − 1.
    pub moved_bytes: Option<u64>,
    /// Whether the array is small enough for XLA to keep it in VMEM as a whole. Then the window is not allocated, and
    /// the kernel takes fewer bytes; that is unknown before compiling.
    pub may_be_kept: bool,
    /// The reason why the compiler will refuse the block, if it will.
    pub unsupported: Option<Unsupported>,
}

/// The reason for an operand's number of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BufferCause {
    /// The block moves over the grid: one buffer is filled while the other is read.
    Moves,
    /// `pl.Buffered(n)` asks for `n`.
    AsAsked,
    /// Its index depends on no axis of the grid with more than one step. `pl.Buffered(n)` has no effect.
    Constant,
    /// The grid has one step.
    OneStep,
    /// The operand stays in its memory, and has no window.
    NoWindow,
    /// An input of one element: XLA hands it over in scalar memory, also where it is asked to keep it in HBM.
    OneElement,
    /// An input that XLA computes block by block inside the kernel's pipeline, from what its producer reads.
    Fused,
}

impl BufferCause {
    /// Its name: `moves`, `as_asked`, `constant`, `one_step`, `no_window`, `one_element`, `fused`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Moves => "moves",
            Self::AsAsked => "as_asked",
            Self::Constant => "constant",
            Self::OneStep => "one_step",
            Self::NoWindow => "no_window",
            Self::OneElement => "one_element",
            Self::Fused => "fused",
        }
    }
}

/// The memory of scratch or of a prefetched array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allocation {
    /// Its name: `scratch0`, `prefetch1`.
    pub name: String,
    /// The memory it lies in.
    pub memory: Memory,
    /// The array it holds; `None` for semaphores.
    pub array: Option<Array>,
    /// The array with padding; `None` if it takes neither VMEM nor SMEM.
    pub padded: Option<PaddedBlock>,
    /// Bytes; those of scratch are rounded up to 512.
    pub bytes: u64,
}

impl Kernel {
    /// The memory of the kernel on a generation.
    ///
    /// # Errors
    /// Those of [`PaddedBlock::of`], and [`ErrorKind::Overflow`](tilewise::ErrorKind::Overflow) if a total is above
    /// 2^63 − 1 bytes.
    pub fn budget(&self, generation: Generation) -> Result<Budget, Error> {
        let limits = Limits::of(generation);
        let mut counts = [0_usize; 2];
        let mut windows = Vec::with_capacity(self.operands.len());
        for operand in &self.operands {
            let count = &mut counts[usize::from(operand.is_output)];
            let name = format!("{}{count}", if operand.is_output { "out" } else { "in" });
            *count += 1;
            windows.push(self.window(operand, name, generation)?);
        }
        let prefetched = self.prefetched.iter().enumerate().map(|(number, array)| {
            let padded = PaddedBlock::of(array.element_type, &array.dimensions, generation)?;
            let bytes = padded.window_bytes();
            let (name, array) = (format!("prefetch{number}"), Some(array.clone()));
            Ok(Allocation { name, memory: Memory::Smem, array, padded: Some(padded), bytes })
        });
        let prefetched = prefetched.collect::<Result<Vec<_>, Error>>()?;
        let scratch = self.scratch.iter().enumerate().map(|(number, scratch)| {
            let is_counted = matches!(scratch.memory, Memory::Vmem | Memory::Smem);
            let array = scratch.array.as_ref().filter(|_| is_counted);
            let padded = array.map(|array| PaddedBlock::of(array.element_type, &array.dimensions, generation));
            let padded = padded.transpose()?;
            let bytes = padded.as_ref().map_or(Some(0), |it| it.scratch_bytes().checked_next_multiple_of(GRANULE));
            let (name, array) = (format!("scratch{number}"), scratch.array.clone());
            Ok(Allocation { name, memory: scratch.memory, array, padded, bytes: within_limit(bytes)? })
        });
        let scratch = scratch.collect::<Result<Vec<_>, Error>>()?;
        let total = |memory| {
            let windows = windows.iter().filter(|row| row.operand.memory == memory).map(|row| row.bytes);
            let others = prefetched.iter().chain(&scratch).filter(|row| row.memory == memory).map(|row| row.bytes);
            within_limit(windows.chain(others).try_fold(0_u64, u64::checked_add))
        };
        let vmem_bytes = total(Memory::Vmem)?;
        let smem_bytes = total(Memory::Smem)?;
        let limit_bytes = limits.map_or(self.limit_bytes, |limits| Some(limits.in_force(self.limit_bytes)));
        let is_within_smem = limits.is_none_or(|limits| smem_bytes <= limits.smem_bytes);
        let verdict = limit_bytes.map(|limit| match self.body_bytes {
            _ if vmem_bytes > limit || !is_within_smem => KernelFit::DoesNotFit,
            None => KernelFit::DeclaredFits,
            Some(guess) if vmem_bytes.saturating_add(with_margin(guess)) > limit => KernelFit::ProbablyDoesNotFit,
            Some(_) => KernelFit::ProbablyFits,
        });
        let guess_bytes = self.body_bytes;
        Ok(Budget {
            generation,
            windows,
            prefetched,
            scratch,
            vmem_bytes,
            smem_bytes,
            guess_bytes,
            limit_bytes,
            limits,
            verdict,
        })
    }

    fn window(&self, operand: &Operand, name: String, generation: Generation) -> Result<Window, Error> {
        let (buffers, cause) = self.buffers(operand);
        let unsupported = Unsupported::of(operand, buffers);
        let operand = operand.clone();
        if buffers == 0 {
            return Ok(Window {
                name,
                operand,
                padded: None,
                buffers,
                cause,
                bytes: 0,
                moved_bytes: None,
                may_be_kept: false,
                unsupported,
            });
        }
        let array = &operand.array;
        let padded = PaddedBlock::of(array.element_type, &operand.bounds(), generation)?;
        let granule = if operand.memory == Memory::Smem { GRANULE } else { WINDOW_GRANULE };
        let bytes = padded.window_bytes().checked_mul(buffers);
        let bytes = within_limit(bytes.and_then(|bytes| bytes.checked_next_multiple_of(granule)))?;
        // An array that is larger than all of VMEM can't be kept there. Its own tiles pad it no less than these.
        let whole = PaddedBlock::of(array.element_type, &array.dimensions, generation);
        let may_be_kept = operand.memory == Memory::Vmem
            && whole
                .is_ok_and(|it| Limits::of(generation).is_none_or(|limits| it.window_bytes() < limits.physical_bytes));
        let moved_bytes = self.copies(&operand).and_then(|copies| copies.checked_mul(padded.window_bytes()));
        let moved_bytes = moved_bytes.filter(|&moved| moved <= MAX_SIZE);
        Ok(Window { name, operand, padded: Some(padded), buffers, cause, bytes, moved_bytes, may_be_kept, unsupported })
    }

    /// The number of copies of a block: one at each step of the axes down to the innermost that its index depends on.
    /// `None` if unknown.
    fn copies(&self, operand: &Operand) -> Option<u64> {
        let axes = operand.index.iter().flatten().copied();
        let innermost = axes.filter(|&axis| self.grid.get(axis).is_some_and(|&steps| steps != Some(1))).max();
        let count = innermost.map_or(0, |axis| axis + 1);
        self.grid[..count].iter().try_fold(1_u64, |copies, &steps| copies.checked_mul(steps?))
    }

    /// The number of blocks of an operand that are held at a time, and the reason.
    fn buffers(&self, operand: &Operand) -> (u64, BufferCause) {
        if !matches!(operand.memory, Memory::Vmem | Memory::Smem) {
            return (0, BufferCause::NoWindow);
        }
        if operand.is_fused {
            return (0, BufferCause::Fused);
        }
        let bounds = &operand.array.dimensions;
        let is_one_element = !bounds.is_empty() && bounds.iter().all(|&bound| bound == 1);
        if is_one_element && !operand.is_output && operand.memory == Memory::Vmem {
            return (0, BufferCause::OneElement);
        }
        let is_long = |steps: Option<u64>| steps != Some(1);
        if !self.grid.iter().copied().any(is_long) {
            return (1, BufferCause::OneStep);
        }
        let mut axes = operand.index.iter().flatten();
        if !axes.any(|&axis| self.grid.get(axis).copied().is_some_and(is_long)) {
            return (1, BufferCause::Constant);
        }
        match operand.buffered {
            Some(asked) => (asked, BufferCause::AsAsked),
            None => (2, BufferCause::Moves),
        }
    }
}

/// A guess plus a tenth of it: with this margin, the verdicts on nine matrix products, each just below the limit or
/// above it, are the compiler's.
const fn with_margin(guess: u64) -> u64 {
    guess.saturating_add(guess.div_ceil(10))
}
