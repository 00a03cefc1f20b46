//! Walks the loops of a nest, and hands the innermost to a kernel.
//!
//! # Why no access leaves the buffers
//!
//! A plan is made of the digits of two [`Tiled`](tilewise::Tiled), whose offsets of indices inside the bounds are below their physical
//! element counts; `run` takes only buffers of exactly those lengths. The walk visits digits whose sum stays below each number's
//! bound (that is what limits are for), so each pair of offsets it reaches is that of some index. Kernels touch, besides
//! whole units at such offsets:
//!
//! - in the source, the units between two of one interleaved group, which are the tile's own padding: the plan makes such a group only
//!   where no other digit has a stride inside it, so its place in the mixed-radix offset ends before the next digit's;
//! - in the destination, the same, and what is left of the room that a loop's value has up to the next, which by the same argument
//!   belongs to no other element (to one of an [edge](crate::plan::Edge) at most, and edges are written afterwards).
//!
//! A byte that packs elements of several rows is a unit whose elements lie a pitch apart on the other side: that pitch is the stride of a
//! digit's lowest part, which the plan takes out of the loops only where its number ends with a whole byte, so that every one of those
//! rows is there. Such a leaf writes rows that are far apart, and nothing between them: it leaves padding to others.
//!
//! Threads divide the values of one loop, or the columns or bytes of one leaf, between them. Offsets of different elements differ,
//! so the bytes they write do too, except that elements narrower than a byte may share one: such loops are divided only where each value
//! starts a byte of its own. The rows of a transpose are divided as its columns are.

use crate::{
    cpu::Cpu,
    kernels::{self, Body, Deinterleave, Grid, Interleave, Job, KernelState, Repeat, Side, Span, Stride},
    leaf::{Chain, Convert, Leaf, Loop, Transpose},
    nest::Nest,
    part::{Part, Split},
    plan::Irregular,
    scalar::Bytes,
    size::size,
};

/// The destination; each thread writes its own bytes of it.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    start: *mut u8,
    length: usize,
}

impl Target {
    pub(crate) fn new(destination: &mut [u8]) -> Self {
        Self { start: destination.as_mut_ptr(), length: destination.len() }
    }
}

// SAFETY: the pointer stands for a mutable borrow that outlives the threads, and they write different bytes (see the head of this file).
unsafe impl Send for Target {}
// SAFETY: a shared `Target` only hands out the pointer; what is written through it is divided as for `Send`.
unsafe impl Sync for Target {}

/// One pass over a nest.
pub(crate) struct Walk<'a> {
    pub(crate) nest: &'a Nest,
    pub(crate) source: &'a [u8],
    pub(crate) to: Target,
    pub(crate) cpu: Cpu,
    pub(crate) state: KernelState,
    pub(crate) non_temporal: bool,
    /// Whether elements are passed over and nothing but padding is written.
    pub(crate) only_padding: bool,
    pub(crate) part: Part,
    pub(crate) split: Split,
}

impl Walk<'_> {
    pub(crate) fn all(&mut self, from: u64, to: u64, irregular: Option<&Irregular>) {
        if matches!(self.nest.leaf, Leaf::Nothing) {
            return;
        }
        if self.non_temporal {
            self.state.prefetch = self.nest.reads.at_start(&self.cpu.tuning);
        }
        let mut few = [0; 8];
        let mut many;
        let bounds = &self.nest.limits;
        let limits = if bounds.len() <= few.len() {
            few[..bounds.len()].copy_from_slice(bounds);
            &mut few[..bounds.len()]
        } else {
            many = bounds.clone();
            &mut many
        };
        let room = self.to.length as u64;
        match irregular {
            None => self.walk(0, from, to, room, limits),
            Some(irregular) => irregular.each(|from, to| {
                let scale = self.nest.scale;
                self.walk(0, from * scale, to * scale, 0, limits);
            }),
        }
        // SAFETY: the CPU's level was checked when the plan was made; the state holds what jobs of this level left.
        unsafe { kernels::finish(self.cpu.level, &mut self.state) };
    }

    /// This part's values of a loop, of `0..n`.
    fn range(&self, depth: usize, n: u64) -> (u64, u64) {
        if self.split == Split::Loop(depth) { self.part.share(n, 1) } else { (0, n) }
    }

    /// Whether this part writes the padding behind a loop.
    fn pads(&self, depth: usize) -> bool {
        self.nest.fills && (self.part.is_last() || matches!(self.split, Split::Loop(split) if split < depth))
    }

    /// Walks the loops from `depth` on. `room` is the destination bytes up to the next value of the loop around it.
    fn walk(&mut self, depth: usize, from: u64, to: u64, room: u64, limits: &mut [u64]) {
        let nest = self.nest;
        let Some(outer) = nest.loops.get(depth) else {
            return self.leaf(AS_IS, None, from, to, room, limits);
        };
        if self.only_padding && nest.is_gapless(depth, room, limits) {
            return;
        }
        let n = outer.extent(limits);
        let (start, end) = self.range(depth, n);
        let limit = outer.number.map_or(0, |number| limits[number]);
        let (alike, last) = self.alike(depth, (start, end, n), room, limits);
        let alike = alike.max(start);
        if alike > start {
            if nest.reads.panel == Some(depth) {
                self.prefetch_panel(from + (start + 1) * outer.source_stride);
            }
            if let Some(number) = outer.number {
                limits[number] = limit.min(outer.divisor);
            }
            let outer_repeat = outer.repeat(alike - start);
            let (from, to) = (from + start * outer.source_stride, to + start * outer.destination_stride);
            let room = outer.room(room, start);
            match nest.loops.get(depth + 1) {
                None => self.leaf([Repeat::ONCE, outer_repeat], last, from, to, room, limits),
                Some(inner) => {
                    let repeats = [outer_repeat, inner.repeat(inner.extent(limits))];
                    self.leaf(repeats, last, from, to, inner.room(room, 0), limits);
                }
            }
        }
        for value in alike..end {
            if nest.reads.panel == Some(depth) {
                self.prefetch_panel(from + (value + 1) * outer.source_stride);
            }
            if let Some(number) = outer.number {
                limits[number] = limit - value * outer.divisor;
            }
            let room = outer.room(room, value);
            self.walk(
                depth + 1,
                from + value * outer.source_stride,
                to + value * outer.destination_stride,
                room,
                limits,
            );
        }
        if let Some(number) = outer.number {
            limits[number] = limit;
        }
        if self.pads(depth) && room > n * outer.destination_stride {
            self.zeros(to + n * outer.destination_stride, room - n * outer.destination_stride);
        }
    }

    /// How many of a loop's first values are one job, with the same leaf or inner loop of leaves; and the last leaf of
    /// each pass over the innermost loop, if it differs.
    fn alike(
        &self,
        depth: usize,
        (start, end, n): (u64, u64, u64),
        room: u64,
        limits: &mut [u64],
    ) -> (u64, Option<Span>) {
        let nest = self.nest;
        let outer = &nest.loops[depth];
        match nest.loops.len() - depth {
            1 => {
                let same = self.same(outer, None, end, room, limits);
                let last =
                    if same > start && same + 1 == n && end == n { self.last(outer, n, room, limits) } else { None };
                (if last.is_some() { n } else { same }, last)
            }
            2 if nest.reads.panel != Some(depth) && self.split != Split::Loop(depth + 1) => {
                let inner = &nest.loops[depth + 1];
                let alike = self.same(outer, Some(inner), end, room, limits);
                if alike == 0 {
                    return (0, None);
                }
                let saved = outer.number.map(|number| (number, limits[number]));
                if let Some((number, limit)) = saved {
                    limits[number] = limit.min(outer.divisor);
                }
                let n = inner.extent(limits);
                let same = self.same(inner, None, n, outer.destination_stride, limits);
                let last = if same > 0 && same + 1 == n {
                    self.last(inner, n, outer.destination_stride, limits)
                } else {
                    None
                };
                let whole = (same == n || last.is_some())
                    && (!nest.fills || n * inner.destination_stride == outer.destination_stride);
                if let Some((number, limit)) = saved {
                    limits[number] = limit;
                }
                if whole { (alike, last) } else { (0, None) }
            }
            _ => (0, None),
        }
    }

    /// The last run of a loop of `n` values, if the leaf is a run that is written.
    fn last(&self, outer: &Loop, n: u64, room: u64, limits: &mut [u64]) -> Option<Span> {
        let Leaf::Run { unit, run, .. } = &self.nest.leaf else { return None };
        if self.only_padding {
            return None;
        }
        let saved = outer.number.map(|number| (number, limits[number]));
        if let Some((number, limit)) = saved {
            limits[number] = limit - (n - 1) * outer.divisor;
        }
        let bytes = unit * run.map_or(1, |run| run.extent(limits));
        if let Some((number, limit)) = saved {
            limits[number] = limit;
        }
        let zeros = if self.nest.fills { outer.room(room, n - 1).saturating_sub(bytes) } else { 0 };
        Some(Span { bytes: size(bytes), zeros: size(zeros) })
    }

    /// How many of a loop's values leave the leaf, and the loop between, with the same extents and the same room.
    fn same(&self, outer: &Loop, between: Option<&Loop>, end: u64, room: u64, limits: &[u64]) -> u64 {
        let leaf = &self.nest.leaf;
        let mut same = end;
        if let Some(number) = outer.number {
            let between = between.filter(|between| between.number == Some(number));
            if leaf.is_cut_from(number) || between.is_some() {
                let below = leaf.is_below(number, outer.divisor)
                    && between.is_none_or(|between| between.divisor * between.count <= outer.divisor);
                let limit = limits[number];
                same = match below {
                    false => 0,
                    true if limit >= end * outer.divisor => end,
                    true => limit / outer.divisor,
                };
            }
        }
        if self.nest.fills && end > 0 && outer.room(room, end - 1) < outer.destination_stride {
            same = same.min(end - 1);
        }
        same
    }

    /// From here on, reads prefetch the next panel, which starts at that source offset. (Not inside the caches.)
    fn prefetch_panel(&mut self, source_offset: u64) {
        if self.non_temporal {
            let next_panel = self.source.as_ptr().wrapping_add(size(source_offset));
            self.state.prefetch = self.nest.reads.in_panel(next_panel, &self.cpu.tuning);
        }
    }

    /// Writes the padding behind each repeat of a leaf.
    fn padding_behind(&mut self, [outer, inner]: [Repeat; 2], to: u64, n: u64) {
        if n == 0 {
            return;
        }
        for value in 0..outer.count {
            for repeat in 0..inner.count {
                self.zeros(to + (value * outer.destination_stride + repeat * inner.destination_stride) as u64, n);
            }
        }
    }

    /// Writes padding.
    fn zeros(&mut self, to: u64, n: u64) {
        if !self.non_temporal {
            // SAFETY: see the head of this file. What a stream holds back is written by itself, whatever is behind it.
            unsafe { self.to.start.wrapping_add(size(to)).write_bytes(0, size(n)) };
            return;
        }
        let zeros = Span { bytes: 0, zeros: size(n) };
        self.job(AS_IS, 0, to, Body::Run { each: zeros, last: zeros, convert: Convert::Copy });
    }

    fn job(&mut self, repeats: [Repeat; 2], from: u64, to: u64, body: Body) {
        let job = Job {
            source_start: self.source.as_ptr().wrapping_add(size(from)),
            destination_start: self.to.start.wrapping_add(size(to)),
            repeats,
            body,
        };
        if self.non_temporal
            && let Some(prefetch) = self.nest.reads.in_linear_job(job.source_start, &self.cpu.tuning)
        {
            self.state.prefetch = prefetch;
        }
        // SAFETY: the level was checked when the run began; for the addresses see the head of this file.
        unsafe { kernels::run(self.cpu.level, &job, &mut self.state) };
    }

    fn leaf(&mut self, repeats: [Repeat; 2], last: Option<Span>, from: u64, to: u64, room: u64, limits: &[u64]) {
        match &self.nest.leaf {
            Leaf::Nothing => {}
            Leaf::Elements(elements) => {
                // SAFETY: the destination is borrowed for the run, and this part writes bytes of its own.
                let mut bytes = unsafe { Bytes::new(self.to.start, self.to.length) };
                let [outer, inner] = repeats;
                for value in 0..outer.count {
                    let from = from + (value * outer.source_stride) as u64;
                    let to = to + (value * outer.destination_stride) as u64;
                    let source = (self.source, from, inner.source_stride as u64);
                    elements.convert(source, (&mut bytes, to, inner.destination_stride as u64), inner.count as u64);
                }
            }
            Leaf::Run { source_unit, unit, run, convert } => {
                let extent = run.map_or(1, |run| run.extent(limits));
                let (mut from, mut to, mut bytes) = (from, to, unit * extent);
                let mut zeros = if self.nest.fills { room.saturating_sub(bytes) } else { 0 };
                if self.only_padding {
                    return self.padding_behind(repeats, to + bytes, zeros);
                }
                if self.split == Split::Leaf {
                    let (start, end) = self.part.share(bytes, 4096);
                    // Pages are whole units of either side: one side's unit is a multiple of the other's.
                    let start_in_source =
                        if source_unit >= unit { start * (source_unit / unit) } else { start / (unit / source_unit) };
                    (from, to, bytes) = (from + start_in_source, to + start, end - start);
                    zeros = if self.part.is_last() { zeros } else { 0 };
                }
                let each = Span { bytes: size(bytes), zeros: size(zeros) };
                self.job(repeats, from, to, Body::Run { each, last: last.unwrap_or(each), convert: *convert });
            }
            Leaf::Transpose { unit, rows, columns, kind, convert } => {
                let extents = (rows.extent(limits), columns.extent(limits));
                match *kind {
                    Transpose::Interleave { ways } => {
                        self.interleave((*unit, ways), (rows, columns), *convert, extents, repeats, (from, to), room);
                    }
                    Transpose::Deinterleave { ways } => {
                        let body = Deinterleave {
                            unit: size(*unit),
                            ways,
                            rows: size(extents.1),
                            pitch: size(columns.inner.destination_stride),
                            columns: size(extents.0),
                            run: size(rows.inner.count),
                            run_stride: rows.outer.map_or(0, |outer| size(outer.source_stride)),
                            convert: *convert,
                        };
                        self.job(repeats, from, to, Body::Deinterleave(body));
                    }
                    Transpose::Blocks => self.transpose(*unit, (rows, columns), extents, repeats, from, to),
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one match arm")]
    fn interleave(
        &mut self,
        (unit, ways): (u64, usize),
        (rows, columns): (&Chain, &Chain),
        convert: Convert,
        (present, extent): (u64, u64),
        repeats: [Repeat; 2],
        (from, to): (u64, u64),
        room: u64,
    ) {
        let bytes = extent * unit * ways as u64;
        let body = Interleave {
            unit: size(unit),
            ways,
            rows: size(present),
            pitch: size(rows.inner.source_stride),
            columns: size(extent),
            zeros: if self.nest.fills { size(room.saturating_sub(bytes)) } else { 0 },
            merge: match convert {
                Convert::Pack { bits, pitch } => Some((bits, size(pitch))),
                _ => None,
            },
        };
        if body.rows == ways || self.nest.fills {
            return self.job(repeats, from, to, Body::Interleave(body));
        }
        // The places of missing rows are padding to be left alone: one unit at a time.
        let [outer, inner] = repeats;
        let one = Span { bytes: size(unit), zeros: 0 };
        for value in 0..outer.count as u64 {
            let from = from + value * outer.source_stride as u64;
            let to = to + value * outer.destination_stride as u64;
            for row in 0..present {
                let along = Repeat {
                    count: size(extent),
                    source_stride: size(unit),
                    destination_stride: size(columns.inner.destination_stride),
                };
                let (from, to) = (from + row * rows.inner.source_stride, to + row * unit);
                self.job([inner, along], from, to, Body::Run { each: one, last: one, convert });
            }
        }
    }

    fn transpose(
        &mut self,
        unit: u64,
        (rows, columns): (&Chain, &Chain),
        (row_extent, column_extent): (u64, u64),
        repeats: [Repeat; 2],
        mut from: u64,
        mut to: u64,
    ) {
        let mut extents = (row_extent, column_extent);
        let divided = match self.split {
            Split::Rows => Some((rows, &mut extents.0)),
            Split::Leaf => Some((columns, &mut extents.1)),
            Split::None | Split::Loop(_) => None,
        };
        if let Some((side, extent)) = divided {
            let (start, end) = self.part.share(*extent, side.grain(unit));
            let (source, destination) = side.offsets(start);
            (from, to, *extent) = (from + source, to + destination, end - start);
        }
        let grid = Grid { unit: size(unit), rows: rows.side(extents.0), columns: columns.side(extents.1) };
        self.job(repeats, from, to, Body::Transpose(grid));
    }
}

/// No repeats.
const AS_IS: [Repeat; 2] = [Repeat::ONCE; 2];

impl Loop {
    fn repeat(&self, count: u64) -> Repeat {
        Repeat {
            count: size(count),
            source_stride: size(self.source_stride),
            destination_stride: size(self.destination_stride),
        }
    }
}

impl Chain {
    /// The number of values that parts keep together: a run, or a line.
    pub(crate) fn grain(&self, unit: u64) -> u64 {
        if self.outer.is_some() { self.inner.count } else { 64 / unit }
    }

    /// The offsets of a value from the first on both sides.
    fn offsets(&self, value: u64) -> (u64, u64) {
        let inner = &self.inner;
        match &self.outer {
            None => (value * inner.source_stride, value * inner.destination_stride),
            Some(outer) => {
                let (runs, rest) = (value / inner.count, value % inner.count);
                (
                    runs * outer.source_stride + rest * inner.source_stride,
                    runs * outer.destination_stride + rest * inner.destination_stride,
                )
            }
        }
    }

    /// The first `count` values as a side of a transpose.
    fn side(&self, count: u64) -> Side {
        let jump = |stride: &dyn Fn(&Loop) -> u64| self.outer.as_ref().map_or(0, |outer| size(stride(outer)));
        Side {
            count: size(count),
            run: size(self.inner.count),
            source_stride: Stride { step: size(self.inner.source_stride), jump: jump(&|outer| outer.source_stride) },
            destination_stride: Stride {
                step: size(self.inner.destination_stride),
                jump: jump(&|outer| outer.destination_stride),
            },
        }
    }
}

impl Leaf {
    fn parts(&self) -> [Option<&Loop>; 4] {
        match self {
            Self::Run { run, .. } => [run.as_ref(), None, None, None],
            Self::Transpose { rows, columns, .. } => {
                [Some(&rows.inner), rows.outer.as_ref(), Some(&columns.inner), columns.outer.as_ref()]
            }
            Self::Elements(_) | Self::Nothing => [None; 4],
        }
    }

    /// Whether the limit of a number decides the leaf's extent.
    fn is_cut_from(&self, number: usize) -> bool {
        self.parts().into_iter().flatten().any(|part| part.number == Some(number))
    }

    /// Whether the leaf's digits of a number all lie below a divisor.
    fn is_below(&self, number: usize, divisor: u64) -> bool {
        let mut parts = self.parts().into_iter().flatten().filter(|part| part.number == Some(number));
        parts.all(|part| part.divisor * part.count <= divisor)
    }
}

impl Irregular {
    /// Calls `visit` for every index of the irregular dimensions with its part of both offsets, in elements.
    fn each(&self, mut visit: impl FnMut(u64, u64)) {
        let mut index = vec![0; self.bounds.len()];
        let mut nested = vec![0; self.source_terms.nested_axes().max(self.destination_terms.nested_axes())];
        loop {
            let from = self.source_terms.offset(&index, &mut nested);
            visit(from, self.destination_terms.offset(&index, &mut nested));
            let Some(next) = (0..index.len()).rev().find(|&d| index[d] + 1 < self.bounds[d]) else { return };
            index[next] += 1;
            index[next + 1..].fill(0);
        }
    }
}
