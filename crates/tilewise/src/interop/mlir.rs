//! The layout as MLIR affine maps.

use super::{
    CuTe,
    modes::{Mode, Part, arrange, not_expressible},
};
use crate::{Digit, DigitSource, Error, Layout, Tiled};
use alloc::{format, string::String, vec, vec::Vec};
use core::fmt;

/// An MLIR affine map from logical indices, printed as `affine_map<(d0, d1) -> (…)>`; made by [`Tiled::affine_map`] and
/// [`Tiled::affine_offset_map`].
#[derive(Clone, Debug)]
pub struct AffineMap<'a> {
    tiled: &'a Tiled,
    results: Vec<Vec<Digit>>,
}

impl Tiled {
    /// Logical index → the index along each of [`physical_dimensions`](Tiled::physical_dimensions), in MLIR's words.
    ///
    /// Every layout is such a map: a tile is `floordiv` and `mod`, and `*` a sum with constant factors. `None` only where the
    /// text would take more than 10,000 terms, because tile sizes cut across merged dimensions again and again.
    ///
    /// ```
    /// let tiled = tilewise::Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// let map = tiled.affine_map().expect("short");
    /// assert_eq!(map.to_string(), "affine_map<(d0, d1) -> (d0 floordiv 2, d1 floordiv 2, d0 mod 2, d1 mod 2)>");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn affine_map(&self) -> Option<AffineMap<'_>> {
        AffineMap::new(self, self.physical_digits())
    }

    /// Logical index → offset in elements, in MLIR's words; it can stand in a `memref` type as its layout. `None` as for
    /// [`affine_map`](Tiled::affine_map).
    ///
    /// ```
    /// let tiled = tilewise::Tiled::new(&"f32[3,5]{0,1}".parse()?)?;
    /// let map = tiled.affine_offset_map().expect("short");
    /// assert_eq!(map.to_string(), "affine_map<(d0, d1) -> (d0 + d1 * 3)>");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn affine_offset_map(&self) -> Option<AffineMap<'_>> {
        AffineMap::new(self, vec![self.digits().to_vec()])
    }
}

impl<'a> AffineMap<'a> {
    /// A map has no names for values in between: a nested axis is written out wherever a digit is cut from it.
    fn new(tiled: &'a Tiled, results: Vec<Vec<Digit>>) -> Option<Self> {
        const MOST_TERMS: u64 = 10_000;
        let mut nested: Vec<u64> = Vec::new();
        for axis in tiled.nested_axes() {
            nested.push(terms(&axis.digits, &nested));
        }
        let total = results.iter().fold(0, |total: u64, digits| total.saturating_add(terms(digits, &nested)));
        (total <= MOST_TERMS).then_some(Self { tiled, results })
    }

    fn sum<'d>(&self, f: &mut fmt::Formatter<'_>, digits: impl Iterator<Item = &'d Digit>) -> fmt::Result {
        let mut any = false;
        for digit in digits {
            if any {
                f.write_str(" + ")?;
            }
            any = true;
            self.term(f, digit)?;
        }
        if any { Ok(()) } else { f.write_str("0") }
    }

    /// ((source floordiv divisor) mod count) * stride, without the parts that change nothing.
    fn term(&self, f: &mut fmt::Formatter<'_>, digit: &Digit) -> fmt::Result {
        let &Digit { source, divisor, count, outermost, stride, .. } = digit;
        let steps = [(" floordiv ", divisor, divisor > 1), (" mod ", count, !outermost), (" * ", stride, stride > 1)];
        let mut steps = steps.into_iter().filter(|&(_, _, counts)| counts);
        let count = steps.clone().count();
        for _ in 1..count {
            f.write_str("(")?;
        }
        match source {
            DigitSource::Dimension(dimension) => write!(f, "d{dimension}")?,
            DigitSource::Nested(axis) => {
                // The most major part first, as a row-major sum is written.
                let (open, close) = if count > 0 { ("(", ")") } else { ("", "") };
                f.write_str(open)?;
                self.sum(f, self.tiled.nested_axes()[axis].digits.iter().rev())?;
                f.write_str(close)?;
            }
        }
        if let Some((operator, constant, _)) = steps.next() {
            write!(f, "{operator}{constant}")?;
        }
        steps.try_for_each(|(operator, constant, _)| write!(f, "){operator}{constant}"))
    }
}

fn terms(digits: &[Digit], nested: &[u64]) -> u64 {
    let term = |digit: &Digit| match digit.source {
        DigitSource::Dimension(_) => 1,
        DigitSource::Nested(axis) => nested[axis],
    };
    digits.iter().map(term).fold(0, u64::saturating_add)
}

/// The layout of an array whose memory is indexed by the results of an affine map, major → minor: each a dimension, its
/// `floordiv`, `mod` or both, as [`Tiled::affine_map`] prints it where nothing is merged.
///
/// A map doesn't give the lengths of its axes: one that is always 0 is taken to have bound 1, and one without `mod` to
/// end with its dimension.
///
/// # Errors
/// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) for other expressions (sums among them), and unless
/// the results are each part of every dimension exactly once.
///
/// ```
/// use tilewise::interop::layout_of_affine_map;
///
/// let map = "affine_map<(d0, d1) -> (d0 floordiv 8, d1 floordiv 128, d0 mod 8, d1 mod 128)>";
/// assert_eq!(layout_of_affine_map(map)?.to_string(), "{1,0:T(8,128)}");
/// assert_eq!(layout_of_affine_map("affine_map<(d0, d1) -> (d1, d0)>")?.to_string(), "{0,1}");
/// # Ok::<(), tilewise::Error>(())
/// ```
pub fn layout_of_affine_map(text: &str) -> Result<Layout, Error> {
    let text = in_one_line(text);
    let (names, results) = sides(&text)?;
    // (dimension, divisor, count where it is not the rest)
    let mut digits: Vec<(usize, u64, Option<u64>)> = Vec::new();
    for result in results.into_iter().filter(|result| *result != "0") {
        let digit = digit(result, &names)
            .ok_or_else(|| not_expressible(format!("`{result}` isn't part of one dimension, so no tile makes it")))?;
        digits.push(digit);
    }
    let mut parts = Vec::new();
    for &(dimension, divisor, count) in &digits {
        let above = digits.iter().filter(|other| other.0 == dimension && other.1 > divisor);
        let next = above.clone().map(|other| other.1).min();
        if count.map(|count| divisor.saturating_mul(count)) != next {
            return Err(not_expressible(format!("the parts of `{}` don't join to the whole", names[dimension])));
        }
        let level = above.count();
        parts.push(Part { dimension, level, count, is_quotient: level == 0 });
    }
    let is_whole = |dimension| digits.iter().filter(|digit| digit.0 == dimension && digit.1 == 1).count() == 1;
    match (0..names.len()).find(|&dimension| !is_whole(dimension)) {
        Some(dimension) => Err(not_expressible(format!("the parts of `{}` don't join to the whole", names[dimension]))),
        None => arrange(names.len(), &parts),
    }
}

/// The modes of the layout whose offsets are the one result of an affine map: a sum of parts of dimensions, each times
/// its stride.
pub(super) fn modes_of_offset_map(text: &str, bounds: &[u64]) -> Result<CuTe, Error> {
    let text = in_one_line(text);
    let (names, results) = sides(&text)?;
    let [sum] = results[..] else { return Err(not_expressible("the map has several results, and an offset is one")) };
    if names.len() != bounds.len() {
        return Err(not_expressible(format!(
            "the map is of {} dimensions, the array has {}",
            names.len(),
            bounds.len()
        )));
    }
    let mut digits = Vec::new();
    for term in sum.split(" + ").filter(|term| *term != "0") {
        let unknown = || not_expressible(format!("`{term}` isn't part of one dimension times a stride"));
        // The term was cut inside a nested sum.
        if term.matches('(').count() != term.matches(')').count() {
            return Err(not_expressible(format!("`{sum}` has a part of a sum, which no stride has")));
        }
        let (part, stride) = match term.rsplit_once(" * ") {
            Some((part, stride)) => (part, stride.parse().map_err(|_| unknown())?),
            None => (term, 1),
        };
        let (dimension, divisor, count) = digit(part, &names).ok_or_else(unknown)?;
        let rest = bounds[dimension].div_ceil(divisor);
        digits.push((dimension, divisor, Mode { count: count.unwrap_or(rest), stride }));
    }
    digits.sort_by_key(|&(dimension, divisor, _)| (dimension, divisor));
    let mut modes = vec![Vec::new(); bounds.len()];
    let mut below = vec![1_u64; bounds.len()];
    for (dimension, divisor, mode) in digits {
        if divisor != below[dimension] {
            return Err(not_expressible(format!("the parts of `{}` don't join to the whole", names[dimension])));
        }
        below[dimension] = divisor.saturating_mul(mode.count);
        modes[dimension].push(mode);
    }
    // A dimension that is in no term has one element, or repeats elements.
    modes.iter_mut().zip(bounds).filter(|(modes, _)| modes.is_empty()).for_each(|(modes, &bound)| {
        modes.push(Mode { count: bound, stride: 0 });
    });
    Ok(CuTe { modes })
}

/// The number of results of a map; 0 for a text that isn't a map.
pub(super) fn results_of(text: &str) -> usize {
    sides(&in_one_line(text)).map_or(0, |(_, results)| results.len())
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The names of the dimensions, and the results.
fn sides(text: &str) -> Result<(Vec<&str>, Vec<&str>), Error> {
    let malformed =
        || not_expressible("an affine map is written such as affine_map<(d0, d1) -> (d0 floordiv 8, d1, d0 mod 8)>");
    let inner = text.strip_prefix("affine_map<(").unwrap_or(text).trim_start_matches('(');
    let inner = inner.strip_suffix('>').unwrap_or(inner).trim_end().strip_suffix(')').ok_or_else(malformed)?;
    // The map of no dimensions has no names.
    let (names, results) = inner.split_once(") -> (").or_else(|| inner.split_once(" -> (")).ok_or_else(malformed)?;
    Ok((split(names).collect(), split(results).collect()))
}

fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// `d0`, `d0 floordiv 8`, `d0 mod 8`, `(d0 floordiv 8) mod 2` or `(d0 mod 16) floordiv 8`.
fn digit(text: &str, names: &[&str]) -> Option<(usize, u64, Option<u64>)> {
    let plain = text.replace(['(', ')'], "");
    let words: Vec<&str> = plain.split(' ').collect();
    let dimension = names.iter().position(|name| Some(name) == words.first())?;
    let number = |text: &str| text.parse().ok().filter(|&number: &u64| number > 0);
    match words[1..] {
        [] => Some((dimension, 1, None)),
        ["floordiv", divisor] => Some((dimension, number(divisor)?, None)),
        ["mod", count] => Some((dimension, 1, Some(number(count)?))),
        ["floordiv", divisor, "mod", count] => Some((dimension, number(divisor)?, Some(number(count)?))),
        ["mod", whole, "floordiv", divisor] => {
            let (whole, divisor) = (number(whole)?, number(divisor)?);
            (whole % divisor == 0).then_some((dimension, divisor, Some(whole / divisor)))
        }
        _ => None,
    }
}

impl fmt::Display for AffineMap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("affine_map<(")?;
        for dimension in 0..self.tiled.array().rank() {
            let separator = if dimension == 0 { "" } else { ", " };
            write!(f, "{separator}d{dimension}")?;
        }
        f.write_str(") -> (")?;
        for (position, digits) in self.results.iter().enumerate() {
            if position > 0 {
                f.write_str(", ")?;
            }
            self.sum(f, digits.iter())?;
        }
        f.write_str(")>")
    }
}
