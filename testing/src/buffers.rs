//! Buffers that show accesses outside them, at any distance from a cache line's start.

use std::alloc::{self, Layout};

/// Bytes of a cache line, the base of alignments.
const LINE: usize = 64;

/// The bytes around a [`Guarded`] buffer.
const GUARD: u8 = 0xE7;

/// A buffer between guards, which show that nothing was written outside.
#[derive(Debug)]
pub struct Guarded {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Guarded {
    /// A copy of the content that starts `past_line` bytes (at most 64) past a line.
    ///
    /// # Panics
    ///
    /// If `past_line` is more than 64.
    #[must_use]
    pub fn new(content: &[u8], past_line: usize) -> Self {
        assert!(past_line <= LINE);
        let mut bytes = vec![GUARD; content.len() + 4 * LINE];
        let start = bytes.as_ptr().align_offset(LINE) + LINE + past_line;
        bytes[start..start + content.len()].copy_from_slice(content);
        Self { bytes, start, length: content.len() }
    }

    /// The buffer without its guards.
    pub fn content(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }

    /// Whether nothing was written outside.
    #[must_use]
    pub fn guards_hold(&self) -> bool {
        let (before, rest) = self.bytes.split_at(self.start);
        before.iter().chain(&rest[self.length..]).all(|&byte| byte == GUARD)
    }
}

/// A buffer that ends where its allocation ends, so that AddressSanitizer sees a read past it.
#[derive(Debug)]
pub struct Tight {
    start: *mut u8,
    past_line: usize,
    length: usize,
}

impl Tight {
    /// A copy of the content that starts `past_line` bytes past a line.
    ///
    /// # Panics
    ///
    /// If there is no memory.
    #[must_use]
    pub fn new(content: &[u8], past_line: usize) -> Self {
        let layout = Self::layout(past_line, content.len());
        // SAFETY: the size is not zero.
        let start = unsafe { alloc::alloc_zeroed(layout) };
        assert!(!start.is_null(), "no memory");
        // SAFETY: the content ends where the allocation ends, and no other code knows of the allocation.
        unsafe { start.add(past_line).copy_from_nonoverlapping(content.as_ptr(), content.len()) };
        Self { start, past_line, length: content.len() }
    }

    /// The buffer.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        // SAFETY: inside the allocation, whose bytes were all set.
        unsafe { std::slice::from_raw_parts(self.start.add(self.past_line), self.length) }
    }

    fn layout(past_line: usize, length: usize) -> Layout {
        Layout::from_size_align((past_line + length).max(1), LINE).expect("a buffer in memory")
    }
}

impl Drop for Tight {
    fn drop(&mut self) {
        // SAFETY: allocated with the same layout, and freed once.
        unsafe { alloc::dealloc(self.start, Self::layout(self.past_line, self.length)) }
    }
}
