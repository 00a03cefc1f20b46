//! Runs one part of the destination at a time, so that a pipeline sends finished parts while the rest is converted.

use crate::{
    Error, Plan,
    leaf::{Chain, Convert, Leaf, Loop, Transpose},
    part::{Part, Split},
    plan::Clear,
    walk::Target,
};
use std::ops::Range;

/// The cost of a run, known in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cost {
    /// Bytes of the source that hold elements; its padding isn't read.
    pub read_bytes: u64,
    /// Bytes of the destination that are written: all of them if its padding becomes zero, else those of elements.
    pub written_bytes: u64,
    /// Starts of the innermost work, at most: 1 for a plain copy, the number of elements if each is moved alone.
    pub pieces: u64,
}

/// How the destination is cut: the split, its number of values, and the bits from one to the next.
struct Cut {
    split: Split,
    values: u64,
    /// Parts are multiples of this number of values.
    grain: u64,
    stride_bits: u64,
}

impl Plan {
    /// The cost of a run.
    ///
    /// ```
    /// use tilewise_relayout::Plan;
    ///
    /// let cost = Plan::new(&"f32[24,256]".parse()?, &"f32[24,256]{1,0:T(8,128)}".parse()?)?.cost();
    /// assert_eq!((cost.read_bytes, cost.written_bytes, cost.pieces), (24_576, 24_576, 48));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cost(&self) -> Cost {
        let [source, destination] = &self.tiled;
        let elements: u64 = source.logical_dimensions().iter().fold(1, |product, &bound| product.saturating_mul(bound));
        let bytes = |bits: u64| {
            let bytes = (u128::from(elements) * u128::from(bits)).div_ceil(8);
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        let work = &self.work;
        let each = work.irregular.as_ref().map_or(1, |irregular| irregular.bounds.iter().product());
        let times = |nest: &crate::nest::Nest| match nest.leaf {
            Leaf::Nothing => 0,
            _ => nest.loops.iter().fold(1_u64, |product, inner| product.saturating_mul(inner.count)),
        };
        let edges: u64 = work.edges.iter().map(|edge| times(&edge.nest)).fold(0, u64::saturating_add);
        let zeroes = self.padding() == crate::Padding::Zero;
        Cost {
            read_bytes: bytes(source.stored_bits()),
            written_bytes: if zeroes { self.destination_bytes() } else { bytes(destination.stored_bits()) },
            pieces: times(&work.nest).saturating_mul(each).saturating_add(edges),
        }
    }

    /// The most parts that [`run_part`](Self::run_part) can cut the destination into; of more, some are empty. 1 if
    /// nothing is done before the end, as for layouts without common loops.
    #[must_use]
    pub fn most_parts(&self) -> u64 {
        self.cut().map_or(1, |cut| cut.values.div_ceil(cut.grain).max(1))
    }

    /// Converts part number `part` of the `parts` that the destination is cut into. Returns the finished bytes of the
    /// destination, which later parts don't write. The ranges of all parts in turn make the whole destination.
    ///
    /// Parts are run in order, each once and on one thread. Where the plan can't be [cut](Self::most_parts), the last part makes everything.
    /// A number past the last makes nothing.
    ///
    /// # Errors
    /// As for [`run`](Plan::run).
    ///
    /// ```
    /// use tilewise_relayout::Plan;
    ///
    /// let plan = Plan::new(&"u8[64,128]".parse()?, &"u8[64,128]{1,0:T(32,128)(4,1)}".parse()?)?;
    /// let (source, mut destination) = ([7; 8192], [0; 8192]);
    /// for part in 0..2 {
    ///     let made = plan.run_part(part, 2, &source, &mut destination)?;
    ///     assert_eq!(made, part as u64 * 4096..(part as u64 + 1) * 4096); // send them while the next part runs
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_part(
        &self,
        part: usize,
        parts: usize,
        source: &[u8],
        destination: &mut [u8],
    ) -> Result<Range<u64>, Error> {
        let end = self.destination_bytes();
        let share = Part { index: part, of: parts };
        self.check_lengths(source, destination)?;
        let Some(cut) = self.cut().filter(|_| parts > 1) else {
            if !share.is_last() {
                return Ok(0..0);
            }
            return self.run(source, destination).map(|()| 0..end);
        };
        if part >= parts {
            return Ok(end..end);
        }
        let to = Target::new(destination);
        if let (0, Clear::Around(nest)) = (part, &self.work.clear) {
            self.alone(nest, source, to, true).all(0, 0, None);
        }
        self.pass(self.is_non_temporal(), source, to, cut.split, share).all(0, 0, None);
        let (first, last) = share.share(cut.values, cut.grain);
        let byte = |value: u64| value * cut.stride_bits / 8;
        Ok(byte(first)..if share.is_last() { end } else { byte(last) })
    }

    /// Where the destination can be cut: along the largest stride there, if all others stay inside one of its values.
    fn cut(&self) -> Option<Cut> {
        let work = &self.work;
        let nest = &work.nest;
        let is_late = !work.edges.is_empty() || matches!(work.clear, Clear::Everything);
        if is_late || work.irregular.is_some() || work.small.is_some() {
            return None;
        }
        let limits = &nest.limits[..];
        let reach = |inner: &Loop| inner.count * inner.destination_stride;
        let (leaf_reach, leaf_bits) = match &nest.leaf {
            Leaf::Nothing => return None,
            Leaf::Elements(elements) => (1, elements.destination_bits),
            Leaf::Run { unit, run, convert, .. } => (unit * run.map_or(1, |run| run.count) + rows_apart(*convert), 8),
            Leaf::Transpose { rows, columns, convert, .. } => {
                let chains = [rows, columns].into_iter().flat_map(|chain| [Some(chain.inner), chain.outer]);
                (chains.flatten().map(|part| reach(&part)).max()?.max(rows_apart(*convert)), 8)
            }
        };
        if let Some((outermost, others)) = nest.loops.split_first() {
            let inside = others.iter().map(reach).max().unwrap_or(0).max(leaf_reach);
            if inside <= outermost.destination_stride && self.keeps_bytes_apart(0) {
                let values = outermost.extent(limits);
                let stride_bits = outermost.destination_stride * leaf_bits;
                return Some(Cut { split: Split::Loop(0), values, grain: 1, stride_bits });
            }
        }
        match &nest.leaf {
            Leaf::Run { unit, run: None, convert, .. } if nest.loops.is_empty() && !convert.is_across_rows() => {
                Some(Cut { split: Split::Leaf, values: *unit, grain: 4096, stride_bits: 8 })
            }
            Leaf::Transpose { unit, rows, columns, kind: Transpose::Blocks, .. } => {
                let Chain { inner, outer } = columns;
                let grain = columns.grain(*unit);
                let stride = outer.map_or(inner.destination_stride, |outer| outer.destination_stride);
                let inside = nest.loops.iter().chain([&rows.inner]).chain(&rows.outer);
                let inside = inside.chain(outer.as_ref().map(|_| inner)).map(reach).max()?;
                // The loops must not limit the columns: each iteration has the same number of them.
                let number = inner.number.or(outer.and_then(|outer| outer.number));
                let is_constant = number.is_none() || nest.loops.iter().all(|inner| inner.number != number);
                // A value of a two-digit chain lies in a run of the inner digit, and parts take whole runs.
                let stride_bits = if outer.is_some() { stride * 8 / inner.count } else { stride * 8 };
                let is_exact = outer.is_none() || (stride * 8).is_multiple_of(inner.count);
                (inside <= stride && is_constant && is_exact).then(|| Cut {
                    split: Split::Leaf,
                    values: columns.extent(limits),
                    grain,
                    stride_bits,
                })
            }
            _ => None,
        }
    }
}

/// Destination bytes over which a source byte's elements spread; 0 if they stay together.
fn rows_apart(convert: Convert) -> u64 {
    match convert {
        Convert::Unpack { bits, pitch, .. } if pitch > 1 => u64::from(8 / bits) * pitch,
        _ => 0,
    }
}
