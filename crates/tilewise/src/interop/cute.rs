//! CuTe's layouts: `((2,2),(2,3)):((2,12),(1,4))`.

use super::modes::{self, Mode, not_expressible};
use crate::{Error, Layout, Tiled};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt, str::FromStr};

/// A CuTe layout, `shape:stride`, with a mode for each logical dimension; made by [`Tiled::cute`] or parsed.
///
/// A dimension that tiles cut is a nested mode, its fastest part first (CuTe counts colexicographically). Bounds are
/// rounded up to whole tiles: CuTe has no padding, and kernels guard the rest by predicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CuTe {
    /// The parts of each dimension, the fastest first; strides in elements.
    pub modes: Vec<Vec<Mode>>,
}

impl Tiled {
    /// The layout as CuTe writes it.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) where tiles don't nest in each other, so that a
    /// dimension is no sum of strided parts.
    ///
    /// ```
    /// let tiled = tilewise::Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// assert_eq!(tiled.cute()?.to_string(), "((2,2),(2,3)):((2,12),(1,4))");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn cute(&self) -> Result<CuTe, Error> {
        Ok(CuTe { modes: modes::modes(self)? })
    }
}

impl CuTe {
    /// A layout that puts every element where this one does.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) for strides that make elements overlap (0 among
    /// them), or that are no multiples of each other.
    ///
    /// ```
    /// let cute: tilewise::interop::CuTe = "((2,2),(2,3)):((2,12),(1,4))".parse()?;
    /// assert_eq!(cute.layout()?.to_string(), "{1,0:T(2,2)}");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn layout(&self) -> Result<Layout, Error> {
        modes::layout(&self.modes)
    }
}

impl fmt::Display for CuTe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |part: fn(&Mode) -> u64| {
            let dimension = |modes: &Vec<Mode>| match &modes[..] {
                [mode] => part(mode).to_string(),
                modes => format!("({})", modes.iter().map(|mode| part(mode).to_string()).collect::<Vec<_>>().join(",")),
            };
            self.modes.iter().map(dimension).collect::<Vec<String>>().join(",")
        };
        write!(f, "({}):({})", side(|mode| mode.count), side(|mode| mode.stride))
    }
}

impl FromStr for CuTe {
    type Err = Error;

    /// Reads `shape:stride` of numbers; static ones may be written `_2`. The outer tuple has the dimensions.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) unless both sides are tuples of numbers of the same form.
    fn from_str(text: &str) -> Result<Self, Error> {
        let malformed = || not_expressible("a CuTe layout is written shape:stride, such as ((2,2),8):((1,16),2)");
        let (shape, stride) = text.split_once(':').ok_or_else(malformed)?;
        let counts = leaves(shape).ok_or_else(malformed)?;
        let strides = leaves(stride).ok_or_else(malformed)?;
        if profile(shape) != profile(stride) {
            return Err(not_expressible("the shape and the stride of a CuTe layout have the same form"));
        }
        let dimension = |(counts, strides): (&Vec<u64>, &Vec<u64>)| {
            counts.iter().zip(strides).map(|(&count, &stride)| Mode { count, stride }).collect()
        };
        Ok(Self { modes: counts.iter().zip(&strides).map(dimension).collect() })
    }
}

/// The numbers of each element of the outer tuple, in order; a number alone is a tuple of one.
fn leaves(text: &str) -> Option<Vec<Vec<u64>>> {
    let text: String = text.chars().filter(|&c| !c.is_whitespace() && c != '_').collect();
    let mut dimensions: Vec<Vec<u64>> = Vec::new();
    let (mut depth, mut before, mut rest) = (0_usize, '(', &*text);
    while let Some(next) = rest.chars().next() {
        let is_item = matches!(before, '(' | ',');
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()).max(next.len_utf8());
        match next {
            '(' if is_item => {
                if depth == 1 {
                    dimensions.push(Vec::new());
                }
                depth += 1;
            }
            ')' => depth = depth.checked_sub(1)?,
            ',' if !is_item && depth > 0 => {}
            '0'..='9' if is_item => {
                let number = rest[..length].parse().ok()?;
                match dimensions.last_mut().filter(|_| depth > 1) {
                    Some(parts) => parts.push(number),
                    None => dimensions.push(alloc::vec![number]),
                }
            }
            _ => return None,
        }
        before = next;
        rest = &rest[length..];
        // The text ends behind the outer tuple, or a number alone.
        if depth == 0 && !rest.is_empty() {
            return None;
        }
    }
    (depth == 0 && !text.is_empty()).then_some(dimensions)
}

/// The brackets and commas alone.
fn profile(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '(' | ')' | ',')).collect()
}
