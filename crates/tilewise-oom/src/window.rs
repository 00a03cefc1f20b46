//! Purposes of a kernel's allocations.

use crate::entry::{Entry, WrittenShape};
use crate::text::instruction::shape_length;

/// A kernel's purpose for an allocation of VMEM or SMEM, by its tag and label.
///
/// ```
/// use tilewise_oom::{Message, WindowKind};
///
/// let text = "Largest program allocations in vmem:
///   1. Size: 128.00M
///      Shape: u8[134217728]{0}
///      Tag: input window allocation for operator input 0. The window shape is f32[4096,4000], while the full shape is \
///            f32[8192,4000]. The u8 shape/size shown above represents the raw byte size of this window in VMEM. This \
///            allocation has 2 buffering levels.
///      ==========================";
/// let window = Message::parse(text)?.entries[0].window().unwrap();
/// assert_eq!((window.kind, window.operand, window.buffers), (WindowKind::Input, Some(0), Some(2)));
/// assert_eq!(window.block.unwrap().text, "f32[4096,4000]");
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Window {
    /// Its contents.
    pub kind: WindowKind,
    /// The number of the operand, from 0.
    pub operand: Option<u32>,
    /// The block of the operand that is in memory at a time.
    pub block: Option<WrittenShape>,
    /// The whole operand.
    pub full: Option<WrittenShape>,
    /// How many blocks are in memory at once: 2 where one is copied while the kernel works on the other.
    pub buffers: Option<u32>,
}

/// The contents of a kernel's allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WindowKind {
    /// Blocks of an input.
    Input,
    /// Blocks of an output.
    Output,
    /// Memory that the kernel asked for (`scratch_shapes`).
    Scratch,
    /// A whole operand that the kernel's grid reads before it starts (`PrefetchScalarGridSpec`).
    Prefetched,
    /// Values that did not fit into registers.
    Spill,
    /// The compiler's own memory for an instruction.
    Stack,
}

impl WindowKind {
    /// A name for people: `input window`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input window",
            Self::Output => "output window",
            Self::Scratch => "scratch",
            Self::Prefetched => "prefetched operand",
            Self::Spill => "spilled registers",
            Self::Stack => "stack",
        }
    }
}

impl Entry {
    /// The kernel's purpose for this allocation; `None` if neither tag nor label shows it.
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        let tag = self.tag.as_deref().unwrap_or("");
        let kind = if self.is_spill() {
            WindowKind::Spill
        } else if tag.starts_with("input window") {
            WindowKind::Input
        } else if tag.starts_with("output window") {
            WindowKind::Output
        } else if tag.starts_with("scratch") {
            WindowKind::Scratch
        } else if tag.starts_with("prefetched") {
            WindowKind::Prefetched
        } else if tag.starts_with("scoped memory") || tag.contains("scratch") || tag.contains("stack") {
            WindowKind::Stack
        } else {
            return None;
        };
        let shape = |words: &str| {
            let (_, after) = tag.split_once(words)?;
            let length = shape_length(after);
            (length > 0).then(|| WrittenShape::new(after[..length].to_owned()))
        };
        let number = |word: &str| word.trim_end_matches('.').parse().ok();
        let buffers = tag.split_once(" buffering level").and_then(|(before, _)| number(before.rsplit(' ').next()?));
        // `operator input 0.`, `SMEM operand 0`
        let mut words = tag.split(". ").next().unwrap_or("").split(' ').rev();
        let operand = words.next().and_then(number);
        Some(Window { kind, operand, block: shape("The window shape is "), full: shape("the full shape is "), buffers })
    }

    /// Whether it holds values that did not fit into registers.
    pub(crate) fn is_spill(&self) -> bool {
        self.label.as_deref().is_some_and(|label| label.contains("spill"))
            || self.tag.as_deref().is_some_and(|tag| tag.contains("spill"))
    }
}
