//! Slices as runs: the bits of a buffer that the elements of a slice take.

mod diagram;
mod pieces;
mod spans;

use crate::{Error, ErrorKind, Tiled};
use alloc::{format, vec::Vec};
use core::ops::Range;
use diagram::{Branch, Diagram, ELEMENT, NodeId};
use pieces::Progression;

impl Tiled {
    /// The runs of bits that the elements `start` ≤ index < `limit` take, in the order of memory, neighbours merged.
    ///
    /// Runs hold the bits of the slice's elements only: padding ends a run, as do the bits of another element.
    /// [`SliceRuns`] counts and measures them before any is made, and makes them one by one, without a table. An empty
    /// slice has no runs.
    ///
    /// # Errors
    /// [`ErrorKind::IndexRankMismatch`]; [`ErrorKind::IndexOutOfBounds`] where a limit is above its bound or below its start;
    /// [`ErrorKind::Overflow`] for a buffer of 2^64 bits and more; [`ErrorKind::Undecided`] for a slice of thousands of rows that `*`
    /// merges with columns where the next tile cuts across them.
    ///
    /// ```
    /// use tilewise::Tiled;
    ///
    /// let tiled = Tiled::new(&"bf16[64,256]{1,0:T(8,128)(2,1)}".parse()?)?;
    /// let rows = tiled.slice_runs(&[8, 0], &[24, 256])?;   // two rows of tiles
    /// assert_eq!((rows.remaining(), rows.shortest()), (1, 16 * 256 * 16));
    /// let columns = tiled.slice_runs(&[0, 128], &[64, 256])?;
    /// assert_eq!(columns.remaining(), 8);                  // a tile of each row of tiles
    /// assert_eq!(columns.map(|run| run.start / 8).take(3).collect::<Vec<_>>(), [2048, 6144, 10240]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[doc(alias = "GetMajorSliceByteSize")]
    pub fn slice_runs(&self, start: &[u64], limit: &[u64]) -> Result<SliceRuns, Error> {
        self.runs(start, limit, None, RunOrder::Memory)
    }

    /// [`slice_runs`](Self::slice_runs) of every `strides[d]`-th index from `start[d]` on, as XLA's `slice` has them, in either order.
    ///
    /// In the order of the slice, neighbours are merged where the next element is the next in memory, so that the runs, one after the
    /// other, hold the slice as a row-major array.
    ///
    /// # Errors
    /// As for [`slice_runs`](Self::slice_runs), and [`ErrorKind::InvalidDimension`] for a stride of 0;
    /// [`ErrorKind::Undecided`] also if strides and tiles have no small common multiple, and for [`RunOrder::Slice`] if
    /// the layout has [nested axes](Self::nested_axes).
    ///
    /// ```
    /// use tilewise::{RunOrder, Tiled};
    ///
    /// let tiled = Tiled::new(&"s8[4,6]{0,1}".parse()?)?;
    /// let runs = tiled.strided_slice_runs(&[0, 1], &[4, 6], &[2, 4], RunOrder::Slice)?;
    /// assert_eq!(runs.map(|run| run.start / 8).collect::<Vec<_>>(), [4, 20, 6, 22]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn strided_slice_runs(
        &self,
        start: &[u64],
        limit: &[u64],
        strides: &[u64],
        order: RunOrder,
    ) -> Result<SliceRuns, Error> {
        self.runs(start, limit, Some(strides), order)
    }

    fn runs(&self, start: &[u64], limit: &[u64], strides: Option<&[u64]>, order: RunOrder) -> Result<SliceRuns, Error> {
        let bits = self.stored_bits();
        if self.physical_elements().checked_mul(bits).is_none() {
            return Err(Error::new(ErrorKind::Overflow, "the buffer has 2^64 bits or more, so runs can't count them"));
        }
        let Some(slice) = self.slice(start, limit, strides)? else { return Ok(SliceRuns::none()) };
        if order == RunOrder::Slice && !self.nested_axes().is_empty() {
            let message = "where tiles cut across merged or tiled dimensions, runs are told in memory's order only";
            return Err(Error::new(ErrorKind::Undecided, message));
        }
        let groups = pieces::pieces(self, &slice)?;
        let levels = match order {
            RunOrder::Memory => diagram::levels(self, &groups),
            RunOrder::Slice => diagram::row_major_levels(self, &groups),
        };
        let elements = slice.iter().map(|values| values.count).product();
        Ok(SliceRuns::of(Diagram::of(&groups, levels)?, elements, bits))
    }

    /// The indices of each dimension; `None` for an empty slice.
    fn slice(&self, start: &[u64], limit: &[u64], strides: Option<&[u64]>) -> Result<Option<Vec<Progression>>, Error> {
        let bounds = self.logical_dimensions();
        for (what, given) in [("start", Some(start)), ("limit", Some(limit)), ("strides", strides)] {
            let given = given.unwrap_or(start).len();
            if given != bounds.len() {
                let message = format!("the slice's {what} has {given} numbers, the array {} dimensions", bounds.len());
                return Err(Error::new(ErrorKind::IndexRankMismatch, message));
            }
        }
        let (mut slice, mut is_empty) = (Vec::with_capacity(bounds.len()), false);
        for (dimension, &bound) in bounds.iter().enumerate() {
            let (start, limit) = (start[dimension], limit[dimension]);
            let stride = strides.map_or(1, |strides| strides[dimension]);
            if start > limit || limit > bound {
                let message =
                    format!("the slice {start}…{limit} is not inside dimension {dimension}, which has bound {bound}");
                return Err(Error::new(ErrorKind::IndexOutOfBounds, message)
                    .with_help("start ≤ limit ≤ bound; an element at the limit is not in the slice"));
            }
            if stride == 0 {
                let message = format!("the stride of dimension {dimension} is 0");
                return Err(Error::new(ErrorKind::InvalidDimension, message).with_help("1 takes every index"));
            }
            is_empty |= start == limit;
            slice.push(Progression::new(start, stride, (limit - start).div_ceil(stride).max(1)));
        }
        Ok((!is_empty).then_some(slice))
    }
}

/// The order of a slice's runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RunOrder {
    /// By rising offset.
    #[default]
    Memory,
    /// Row-major over the slice's indices.
    Slice,
}

/// The runs of a slice, as ranges of bits from the buffer's start; made by [`Tiled::slice_runs`].
///
/// An iterator that knows the number of runs left, skips any number of them in one step ([`nth`](Iterator::nth)), and
/// measures all of them, including those already taken.
///
/// ```
/// use tilewise::Tiled;
///
/// let cache = Tiled::new(&"bf16[4096,8,64]{2,1,0:T(8,128)(2,1)}".parse()?)?;
/// let block = cache.slice_runs(&[16, 0, 0], &[32, 8, 64])?;
/// assert_eq!((block.total(), block.longest()), (64, 64 * 2 * 16)); // the other 64 lanes of each pair of rows are padding
///
/// let pages = Tiled::new(&"bf16[4096,8,128]{2,1,0:T(8,128)(2,1)}".parse()?)?;
/// let block = pages.slice_runs(&[16, 0, 0], &[32, 8, 128])?;
/// assert!(block.is_one() && block.alignment() % (4096 * 8) == 0);   // whole pages of 4 KiB
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SliceRuns {
    diagram: Diagram,
    elements: u64,
    bits: u64,
    remaining: u64,
    /// The nodes from the root to the walk's position.
    path: Vec<Frame>,
    /// The next run, which further intervals may still extend.
    pending: Option<Range<u64>>,
}

/// A node on the walk's path.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// The branch the walk is in, and the end of the node's branches.
    branch: u32,
    end: u32,
    /// The offset that the node's offsets are relative to.
    base: u64,
    /// The offset of the branch's next value, and the number of values left.
    at: u64,
    left: u64,
}

impl SliceRuns {
    fn none() -> Self {
        let diagram = Diagram { nodes: Vec::new(), branches: Vec::new(), root: ELEMENT };
        Self { diagram, elements: 0, bits: 0, remaining: 0, path: Vec::new(), pending: None }
    }

    fn of(diagram: Diagram, elements: u64, bits: u64) -> Self {
        let mut runs = Self { remaining: 0, path: Vec::with_capacity(8), pending: None, diagram, elements, bits };
        runs.remaining = runs.total();
        runs.seek(0);
        runs
    }

    /// The number of runs left.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The number of the slice's runs.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.diagram.nodes.get(self.diagram.root as usize).map_or(0, |root| root.runs)
    }

    /// Whether the slice is one run: a single copy moves it.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.total() == 1
    }

    /// The number of the slice's elements.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Bits of all runs together: the elements, each as wide as it is stored.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.elements * self.bits
    }

    /// Bits of the shortest run; 0 without runs.
    #[must_use]
    pub fn shortest(&self) -> u64 {
        self.spans().shortest * self.bits
    }

    /// Bits of the longest run; 0 without runs.
    #[must_use]
    pub fn longest(&self) -> u64 {
        self.spans().longest * self.bits
    }

    /// The largest number of bits that divides the start and the end of every run: multiples of 8 · 4096 are whole
    /// pages, if the buffer begins with one. 0 without runs.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        self.spans().alignment * self.bits
    }

    fn spans(&self) -> spans::Spans {
        if self.elements == 0 { spans::Spans::default() } else { spans::Spans::of(&self.diagram) }
    }

    /// Moves the walk to the run of that number, 0 the first.
    fn seek(&mut self, mut number: u64) {
        self.path.clear();
        self.pending = None;
        let (mut node, mut base) = (self.diagram.root, 0);
        if node == ELEMENT {
            // One element, or none; there is no node to walk.
            self.pending = (self.elements > 0 && number == 0).then_some(0..1);
            return;
        }
        'down: while node != ELEMENT {
            let (from, end) = self.diagram.nodes[node as usize].branches;
            let mut skipped = 0;
            for branch_number in from..end {
                let branch = &self.diagram.branches[branch_number as usize];
                let new = branch.new_runs();
                if number - skipped >= new {
                    skipped += new;
                    continue;
                }
                // The number among the branch's own runs, and the value in which that run begins.
                let (own, joined) = (number - skipped + u64::from(branch.joins_before), u64::from(branch.joins));
                let (value, inside) = if own < branch.runs {
                    (0, own)
                } else {
                    let each = branch.runs - joined;
                    (1 + (own - branch.runs) / each, joined + (own - branch.runs) % each)
                };
                let at = base + branch.offset + value * branch.delta;
                let frame = Frame { branch: branch_number, end, base, at, left: branch.count - value };
                if branch.runs == 1 {
                    self.path.push(frame);
                    return;
                }
                self.path.push(Frame { at: at + branch.delta, left: frame.left - 1, ..frame });
                (node, base, number) = (branch.child, at, inside);
                continue 'down;
            }
            return;
        }
    }

    /// The next interval of memory, in elements: a run or a part of one.
    #[inline]
    fn interval(&mut self) -> Option<Range<u64>> {
        loop {
            let frame = self.path.last_mut()?;
            if frame.left == 0 {
                frame.branch += 1;
                if frame.branch >= frame.end {
                    self.path.pop();
                    continue;
                }
                let branch = &self.diagram.branches[frame.branch as usize];
                (frame.at, frame.left) = (frame.base + branch.offset, branch.count);
            }
            let branch = &self.diagram.branches[frame.branch as usize];
            let at = frame.at;
            if branch.runs == 1 {
                let values = if branch.joins { core::mem::take(&mut frame.left) } else { 1 };
                if !branch.joins {
                    frame.left -= 1;
                    frame.at += branch.delta;
                }
                return Some(at + branch.start..at + (values - 1) * branch.delta + branch.end);
            }
            frame.left -= 1;
            frame.at += branch.delta;
            let child: NodeId = branch.child;
            self.enter(child, at);
        }
    }

    fn enter(&mut self, node: NodeId, base: u64) {
        let (branch, end) = self.diagram.nodes[node as usize].branches;
        let Branch { offset, count, .. } = self.diagram.branches[branch as usize];
        self.path.push(Frame { branch, end, base, at: base + offset, left: count });
    }
}

impl Iterator for SliceRuns {
    type Item = Range<u64>;

    #[inline]
    fn next(&mut self) -> Option<Range<u64>> {
        if self.remaining == 0 {
            return None;
        }
        self.remaining -= 1;
        let mut run = match self.pending.take() {
            Some(run) => run,
            None => self.interval()?,
        };
        while let Some(next) = self.interval() {
            if next.start != run.end {
                self.pending = Some(next);
                break;
            }
            run.end = next.end;
        }
        Some(run.start * self.bits..run.end * self.bits)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match usize::try_from(self.remaining) {
            Ok(remaining) => (remaining, Some(remaining)),
            Err(_) => (usize::MAX, None),
        }
    }

    /// Skips any number of runs in one step.
    fn nth(&mut self, n: usize) -> Option<Range<u64>> {
        self.skip_runs(n as u64);
        self.next()
    }
}

impl SliceRuns {
    /// Skips that many runs in one step, or all that are left.
    ///
    /// ```
    /// let mut runs = tilewise::Tiled::new(&"f32[1000000,12]{1,0:T(8,128)}".parse()?)?.slice_runs(&[0, 0], &[1_000_000, 6])?;
    /// runs.skip_runs(999_999);
    /// assert_eq!(runs.next(), Some(999_999 * 4096..999_999 * 4096 + 6 * 32));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn skip_runs(&mut self, count: u64) {
        let count = count.min(self.remaining);
        if count > 0 {
            let taken = self.total() - self.remaining;
            self.remaining -= count;
            if self.remaining > 0 {
                self.seek(taken + count);
            }
        }
    }
}

impl core::iter::FusedIterator for SliceRuns {}
