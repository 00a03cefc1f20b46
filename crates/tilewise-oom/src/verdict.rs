//! Verdicts on messages.

/// The cause of a message, which decides the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OomVerdict {
    /// Padding is at least the missing bytes, or most of the used ones.
    Padding,
    /// The arguments alone do not fit.
    Arguments,
    /// The program is too large: it has little padding, or none that the message shows.
    Size,
    /// Enough is free, but not in one piece.
    Fragmentation,
    /// At run time others hold the memory.
    Reservation,
    /// One kernel, or one instruction's stack, needs more VMEM, SMEM or memory of a SparseCore than there is.
    KernelMemory,
    /// Values that did not fit into registers fill VMEM.
    Spills,
    /// The text reports memory, and nothing in it failed.
    Fits,
    /// A warning: rematerialization stopped above its target. The program may still run.
    RematLimit,
    /// A warning: donated arrays couldn't be reused for outputs.
    Donation,
    /// A result ends in host memory, but the program's signature has device memory.
    HostPlacement,
    /// A warning: a value in host memory is computed with on the host.
    HostCompute,
    /// A warning: an array is replicated on its way from one sharding to another.
    Resharding,
    /// Another resource than memory ran out.
    OtherResource,
    /// A check inside the compiler failed; no memory ran out.
    CompilerCheck,
    /// An argument has another size, type, layout or memory than it was compiled for.
    InputMismatch,
    /// A kernel's block, layout, index or type can't be compiled; no memory ran out.
    Mosaic,
    /// Another machine, without tiles, ran out of memory: see [`Message::machine`](crate::Message::machine) and
    /// [`Message::cause`](crate::Message::cause).
    NotTpu,
    /// The message doesn't show the cause.
    Unknown,
}

/// A message's machine, if it has no tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UntiledMachine {
    /// A GPU.
    Gpu,
    /// The host.
    Host,
    /// A device of Tenstorrent's.
    Tenstorrent,
    /// A device that the message doesn't name.
    Unnamed,
}

impl UntiledMachine {
    /// A stable name in snake case, for machines.
    ///
    /// ```
    /// assert_eq!(tilewise_oom::UntiledMachine::Gpu.as_str(), "gpu");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Host => "host",
            Self::Tenstorrent => "tenstorrent",
            Self::Unnamed => "unnamed",
        }
    }
}

impl OomVerdict {
    /// A stable name in snake case, for machines.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Padding => "padding",
            Self::Arguments => "arguments",
            Self::Size => "size",
            Self::Fragmentation => "fragmentation",
            Self::Reservation => "reservation",
            Self::KernelMemory => "kernel_memory",
            Self::Spills => "spills",
            Self::Fits => "fits",
            Self::RematLimit => "remat_limit",
            Self::Donation => "donation",
            Self::HostPlacement => "host_placement",
            Self::HostCompute => "host_compute",
            Self::Resharding => "resharding",
            Self::OtherResource => "other_resource",
            Self::CompilerCheck => "compiler_check",
            Self::InputMismatch => "input_mismatch",
            Self::Mosaic => "mosaic",
            Self::NotTpu => "not_tpu",
            Self::Unknown => "unknown",
        }
    }
}
