//! A compiler's own memory plan, as dumps have it: `…-buffer-assignment.txt`.
//!
//! The text is that of `BufferAssignment::ToString` (xla/service/buffer_assignment.cc).

use crate::error::{Error, ErrorKind};

/// What a compiler allocated, and which values it put where.
///
/// ```
/// let text = "\
/// BufferAssignment:
/// allocation 0: size 1024, page 0, preallocated-temp:
///  value: <12 copy-start{0} @0> (size=512,offset=512): f32[8]{0:T(128)}
///
/// Total bytes used: 1024
/// ";
/// let assignment = tilewise_hlo::BufferAssignment::parse(text)?;
/// let value = &assignment.allocations[0].values[0];
/// assert_eq!((value.instruction.as_str(), &value.shape_index[..], value.offset), ("copy-start", &[0][..], 512));
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BufferAssignment {
    /// The allocations, in the order of the text.
    pub allocations: Vec<AssignedAllocation>,
}

/// One allocation of a [`BufferAssignment`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssignedAllocation {
    /// Its number.
    pub index: u64,
    /// Bytes.
    pub size: u64,
    /// The memory space.
    pub memory_space: u8,
    /// What it is, in the compiler's words: `parameter 0`, `constant`, `thread-local`, `preallocated-temp`, …
    pub kind: String,
    /// What lies in it.
    pub values: Vec<AssignedValue>,
}

/// A value in an [`AssignedAllocation`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssignedValue {
    /// The instruction that makes it.
    pub instruction: String,
    /// The path to it within the tuples of the instruction's shape.
    pub shape_index: Vec<usize>,
    /// Bytes.
    pub size: u64,
    /// Bytes from the start of the allocation.
    pub offset: u64,
    /// Its shape, as the text has it.
    pub shape: String,
}

impl BufferAssignment {
    /// Whether a text begins as one does.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        text.trim_start().starts_with("BufferAssignment:")
    }

    /// Reads the text. Lines that are neither an allocation nor a value are skipped.
    ///
    /// # Errors
    ///
    /// [`NotHlo`](ErrorKind::NotHlo) if it doesn't begin with `BufferAssignment:`, or has no allocation.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut this = Self::default();
        for line in text.lines().filter(|_| Self::is_one(text)) {
            if let Some(allocation) = allocation(line) {
                this.allocations.push(allocation);
            } else if let (Some(allocation), Some(value)) = (this.allocations.last_mut(), value(line)) {
                allocation.values.push(value);
            }
        }
        if this.allocations.is_empty() {
            return Err(Error::new(ErrorKind::NotHlo, None, "not a buffer assignment: it has no allocation"));
        }
        Ok(this)
    }
}

/// `allocation 27: size 344576, color 2, page 0, preallocated-temp:`.
fn allocation(line: &str) -> Option<AssignedAllocation> {
    let (index, rest) = line.strip_prefix("allocation ")?.split_once(": size ")?;
    let mut allocation = AssignedAllocation { index: index.parse().ok()?, ..AssignedAllocation::default() };
    let mut parts = rest.trim_end().trim_end_matches(':').split(", ");
    allocation.size = parts.next()?.parse().ok()?;
    let mut kind = Vec::new();
    for part in parts {
        match part.split_once(' ') {
            Some(("color", color)) => allocation.memory_space = color.parse().ok()?,
            Some(("page", _)) => {}
            _ => kind.push(part),
        }
    }
    allocation.kind = kind.join(", ");
    Some(allocation)
}

/// ` value: <12 copy-start{0} @0> (size=512,offset=512): f32[8]{0:T(128)}`.
fn value(line: &str) -> Option<AssignedValue> {
    let (name, rest) = line.trim_start().strip_prefix("value: <")?.split_once(" @")?;
    let name = name.split_once(' ')?.1;
    let (instruction, path) = match name.split_once('{') {
        Some((instruction, path)) => (instruction, path.trim_end_matches('}')),
        None => (name, ""),
    };
    let (_, sizes) = rest.split_once("(size=")?;
    let (size, rest) = sizes.split_once(",offset=")?;
    let (offset, shape) = rest.split_once("): ")?;
    let path = path.split(',').filter(|element| !element.is_empty()).map(|element| element.trim().parse());
    Some(AssignedValue {
        instruction: instruction.to_owned(),
        shape_index: path.collect::<Result<_, _>>().ok()?,
        size: size.parse().ok()?,
        offset: offset.parse().ok()?,
        shape: shape.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_assignment_is_an_error() {
        for text in ["", "HloModule m", "BufferAssignment:\n value: <1 x @0> (size=1,offset=0): f32[]"] {
            assert!(BufferAssignment::parse(text).is_err(), "{text}");
        }
        let odd = "BufferAssignment:\nallocation 1: size 8, color 300, page 0:\nallocation 2: size 8:\n value: <>";
        assert_eq!(BufferAssignment::parse(odd).unwrap().allocations.len(), 1);
    }
}
