//! Dimensions as strides: from a layout, and back to one.

use crate::{
    Error, ErrorKind, Layout, Tiled,
    blocks::{self, Block, MOST_BLOCKS},
};
use alloc::{format, string::String, vec, vec::Vec};

/// A part of a dimension's index, and the elements between its successive values: a mode, in CuTe's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// The number of values the part takes.
    pub count: u64,
    /// In elements; 0 where the part takes one value.
    pub stride: u64,
}

pub(super) fn not_expressible(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::NotExpressible, message)
}

/// Each dimension's parts, from the least significant. Their counts multiply to the bound rounded up to whole tiles.
pub(super) fn modes(tiled: &Tiled) -> Result<Vec<Vec<Mode>>, Error> {
    let dimension = |(dimension, &bound): (usize, &u64)| {
        let cut_across = || {
            not_expressible(format!("tiles cut dimension {dimension} in pieces that no stride joins"))
                .with_help("an MLIR affine map says every layout: --as mlir")
        };
        if tiled.is_nested(dimension) {
            return Err(cut_across());
        }
        let mut modes = Vec::new();
        let mut below = 1;
        for digit in tiled.digits_of(dimension) {
            if digit.divisor != below {
                return Err(cut_across());
            }
            below = below.checked_mul(digit.count).ok_or_else(cut_across)?;
            modes.push(Mode { count: digit.count, stride: digit.stride });
        }
        if modes.is_empty() {
            modes.push(Mode { count: bound, stride: 0 });
        }
        Ok(modes)
    };
    tiled.logical_dimensions().iter().enumerate().map(dimension).collect()
}

/// The layout with these strides, and the fewest tiles that put every element there; strides leave out padding behind
/// the last element.
pub(super) fn layout(modes: &[Vec<Mode>]) -> Result<Layout, Error> {
    let mut parts: Vec<(u64, Part)> = Vec::new();
    // Parts of padding are more significant than all others, and there are fewer of them.
    let top: usize = modes.iter().map(|modes| modes.len().max(1)).sum();
    for (dimension, modes) in modes.iter().enumerate() {
        let part = |level, count| Part { dimension, level, count: Some(count), is_quotient: level == top };
        let before = parts.len();
        for (level, mode) in modes.iter().rev().filter(|mode| mode.count > 1).enumerate() {
            if mode.stride == 0 {
                return Err(not_expressible(format!("stride 0 repeats elements along dimension {dimension}")));
            }
            parts.push((mode.stride, part(top + level, mode.count)));
        }
        if parts.len() == before {
            // It moves no element, and keeps its place in the order.
            parts.push((modes.first().map_or(0, |mode| mode.stride), part(top, 1)));
        }
    }
    parts.sort_by_key(|&(stride, _)| core::cmp::Reverse(stride));
    arrange(modes.len(), &with_padding(&parts, top, modes.len())?)
}

/// Adds the parts that are only padding, so that each stride is the size that the parts below fill.
///
/// A gap becomes a part beyond the bound of a dimension: one of bound 1, one whose parts all lie further in, or the
/// dimension of bound 1 that a tile longer than the rank prepends.
fn with_padding(parts: &[(u64, Part)], top: usize, rank: usize) -> Result<Vec<Part>, Error> {
    let is_still = |(_, part): &&(u64, Part)| part.count == Some(1);
    let mut ended = parts.iter().find(is_still).map(|(_, part)| part.dimension);
    // Minor → major.
    let mut filled: Vec<Part> = Vec::with_capacity(parts.len());
    let (mut paddings, mut below, mut needed) = (0, 1, 1);
    for &(stride, part) in parts.iter().rev() {
        if part.count == Some(1) {
            filled.push(part);
            continue;
        }
        let room = stride / below;
        if stride % below != 0 || room < needed {
            return Err(not_expressible(format!("stride {stride} isn't a multiple of what stride {below} fills")));
        }
        let mut inner = filled.iter_mut().rev().find(|part| part.count != Some(1));
        match &mut inner {
            _ if room == needed => {}
            Some(inner) if inner.level == top => {
                (inner.count, inner.is_quotient) = (Some(room), false);
            }
            Some(inner) if room % needed != 0 => {
                return Err(not_expressible(format!(
                    "stride {stride} leaves a gap inside dimension {}",
                    inner.dimension
                )));
            }
            _ => {
                paddings += 1;
                let dimension = ended.unwrap_or(rank);
                let count = Some(room / needed);
                filled.push(Part { dimension, level: top - paddings, count, is_quotient: false });
            }
        }
        if part.level == top {
            ended = ended.or(Some(part.dimension));
        }
        filled.push(part);
        (below, needed) = (stride, part.count.unwrap_or(1));
    }
    filled.reverse();
    Ok(filled)
}

/// A part of a dimension's index, as an axis of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) dimension: usize,
    /// The significance of the part in the dimension's index; the least level is the most significant.
    pub(super) level: usize,
    /// The number of values it takes; `None` if that follows from the bound.
    pub(super) count: Option<u64>,
    /// Whether it is the dimension's most significant part, and as long as the bound needs.
    pub(super) is_quotient: bool,
}

/// The layout whose memory is these parts, major → minor; dimension `rank` is one that a tile prepends.
pub(super) fn arrange(rank: usize, parts: &[Part]) -> Result<Layout, Error> {
    if parts.len() > rank.saturating_add(MOST_BLOCKS) {
        return Err(not_expressible(format!("more than {MOST_BLOCKS} parts of dimensions")));
    }
    let mut seen = vec![false; rank];
    let mut order = Vec::with_capacity(rank);
    for part in parts {
        if let Some(seen) = seen.get_mut(part.dimension).filter(|seen| !**seen) {
            *seen = true;
            order.push(part.dimension);
        }
    }
    if parts.iter().any(|part| part.dimension == rank) {
        order.insert(0, rank);
    }
    // Whole quotients come first; from the first other part on, all are inside tiles.
    let quotients = parts.iter().take_while(|part| part.is_quotient).count();
    let mut inside = Vec::new();
    for part in &parts[quotients..] {
        let size = part.count.ok_or_else(|| {
            not_expressible(format!(
                "the outer part of dimension {} lies inside others: its length is needed",
                part.dimension
            ))
        })?;
        if size > 1 {
            inside.push(Block { dimension: part.dimension, size, level: part.level });
        }
    }
    let tiles = blocks::tiles(&order, &inside)?;
    Layout::new(order.into_iter().rev().filter(|&dimension| dimension < rank))?.with_tiles(tiles)
}
