//! Dimensions as strides: from a layout, and back to one.

use crate::{
    Error, ErrorKind, Layout, Tiled,
    blocks::{self, Block, MOST_BLOCKS},
};
use alloc::{format, string::String, vec, vec::Vec};

/// A part of a dimension's index, and the elements between its successive values: a mode, in CuTe's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// How many values the part takes.
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

/// The layout with these strides. It has the fewest tiles that put every element there; what lies behind the last element,
/// strides don't say.
pub(super) fn layout(modes: &[Vec<Mode>]) -> Result<Layout, Error> {
    let mut parts: Vec<(u64, Part)> = Vec::new();
    for (dimension, modes) in modes.iter().enumerate() {
        let part = |level, count| Part { dimension, level, count: Some(count), is_quotient: level == PADDING_LEVELS };
        let before = parts.len();
        for (level, mode) in modes.iter().rev().filter(|mode| mode.count > 1).enumerate() {
            if mode.stride == 0 {
                return Err(not_expressible(format!("stride 0 repeats elements along dimension {dimension}")));
            }
            parts.push((mode.stride, part(PADDING_LEVELS + level, mode.count)));
        }
        if parts.len() == before {
            // It moves nothing, and keeps its place in the order.
            parts.push((modes.first().map_or(0, |mode| mode.stride), part(PADDING_LEVELS, 1)));
        }
    }
    parts.sort_by_key(|&(stride, _)| core::cmp::Reverse(stride));
    arrange(modes.len(), &with_padding(&parts)?)
}

/// Levels kept free for parts of padding alone, which are more significant than all others.
const PADDING_LEVELS: usize = MOST_BLOCKS;

/// The parts with those added that are padding alone, so that each stride is what the parts below fill.
fn with_padding(parts: &[(u64, Part)]) -> Result<Vec<Part>, Error> {
    let (still, moving): (Vec<(u64, Part)>, Vec<(u64, Part)>) =
        parts.iter().partition(|(_, part)| part.count == Some(1));
    // Minor → major; where a dimension ends, what is beyond its bound may lie further out.
    let mut filled: Vec<Part> = Vec::with_capacity(parts.len());
    let mut ended: Option<usize> = still.first().map(|(_, part)| part.dimension);
    let mut paddings = 0;
    let mut below = 1;
    for &(stride, part) in moving.iter().rev() {
        let needed = filled.last().and_then(|inner| inner.count).unwrap_or(1);
        let room = stride / below;
        if stride % below != 0 || room < needed {
            return Err(not_expressible(format!("stride {stride} is no multiple of what stride {below} fills")));
        }
        if room > needed {
            match filled.last_mut() {
                Some(inner) if inner.level == PADDING_LEVELS => {
                    *inner = Part { count: Some(room), is_quotient: false, ..*inner }
                }
                inner => {
                    let gap = || match inner {
                        Some(inner) => format!("stride {stride} leaves a gap inside dimension {}", inner.dimension),
                        None => format!("neighbours lie {stride} elements apart; a layout leaves no gaps between them"),
                    };
                    let dimension = ended.filter(|_| room % needed == 0 && paddings < PADDING_LEVELS);
                    let dimension = dimension.ok_or_else(|| not_expressible(gap()))?;
                    paddings += 1;
                    let level = PADDING_LEVELS - paddings;
                    filled.push(Part { dimension, level, count: Some(room / needed), is_quotient: false });
                }
            }
        }
        if let Some(inner) = filled.last().filter(|inner| inner.level == PADDING_LEVELS) {
            ended = ended.or(Some(inner.dimension));
        }
        filled.push(part);
        below = stride;
    }
    let mut all: Vec<Part> = filled.into_iter().rev().collect();
    for &(stride, part) in &still {
        let moves_less = |(other, _): &&(u64, Part)| *other < stride;
        let after = moving.iter().rev().take_while(moves_less).count();
        all.insert(all.len().saturating_sub(after), part);
    }
    Ok(all)
}

/// A part of a dimension's index, as an axis of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) dimension: usize,
    /// How significant it is in the dimension's index; the least level is the most.
    pub(super) level: usize,
    /// How many values it takes; `None` where that follows from the bound.
    pub(super) count: Option<u64>,
    /// Whether it is the dimension's most significant part, and as long as the bound needs.
    pub(super) is_quotient: bool,
}

/// The layout whose memory is these parts, major → minor.
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
    Layout::new(order.into_iter().rev())?.with_tiles(tiles)
}
