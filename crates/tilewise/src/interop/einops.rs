//! The derivation as einops patterns: all steps between two pads are one `rearrange`.

use super::{
    Line,
    modes::{Part, arrange, not_expressible},
    pad, python, slice,
};
use crate::{Derivation, Error, Layout, Operation, Shape};
use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::fmt;

/// A Python program like [`NumPy`](super::NumPy)'s, with every reshape and transpose as an einops `rearrange`; made by
/// [`Derivation::einops`].
///
/// Axes have the documents' letters (y, x; z, y, x; p, z, y, x) or are d0, d1, …. If a tile cuts y, y counts the tiles
/// and y1 is inside of one; if y and x are merged before further tiling, that axis is yx; t is an axis of bound 1 that
/// a tile pads.
#[derive(Clone, Copy, Debug)]
pub struct Einops<'a>(&'a Derivation);

impl Derivation {
    /// The derivation as runnable einops. Bits are not packed: a buffer item is one stored element.
    ///
    /// ```
    /// let derivation = tilewise::Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?.derivation();
    /// let program = derivation.einops().to_string();
    /// assert!(program.contains("x = rearrange(x, '(y y1) (x x1) -> (y x y1 x1)', y1=2, x1=2)"));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn einops(&self) -> Einops<'_> {
        Einops(self)
    }
}

impl fmt::Display for Einops<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut writer = Writer::new(self.0);
        for step in self.0.steps() {
            writer.cause(self.0.cause(step));
            match &step.operation {
                Operation::Transpose { permutation } => {
                    writer.axes = permutation.iter().map(|&axis| writer.axes[axis].clone()).collect();
                }
                Operation::Reshape { groups } => writer.reshape(groups, &step.to),
                Operation::Pad { padding } => writer.pad(padding, &step.from),
            }
        }
        writer.rearrange();
        writer.from_buffer.reverse();
        let imports = "import numpy as np\nfrom einops import rearrange";
        python(f, self.0, imports, &writer.to_buffer, &writer.from_buffer)
    }
}

/// The layout of an array that an einops `rearrange` turns into its buffer: `(y y1) (x x1) -> (y x y1 x1)`.
///
/// `lengths` are those of the pattern's names; the first of each dimension may be left out, as in einops, unless it
/// lies inside others. Padding is no part of a pattern: bounds are taken as rounded up to whole tiles.
///
/// # Errors
/// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) for ellipses, and names that don't occur once on
/// each side or have no length.
///
/// ```
/// let layout = tilewise::interop::layout_of_rearrange("(y y1) (x x1) -> (y x y1 x1)", &[("y1", 8), ("x1", 128)])?;
/// assert_eq!(layout.to_string(), "{1,0:T(8,128)}");
/// # Ok::<(), tilewise::Error>(())
/// ```
pub fn layout_of_rearrange(pattern: &str, lengths: &[(&str, u64)]) -> Result<Layout, Error> {
    let (left, right) =
        pattern.split_once("->").ok_or_else(|| not_expressible("a pattern is written `left -> right`"))?;
    let dimensions = axes(left)?;
    let memory: Vec<&str> = axes(right)?.concat();
    let names: Vec<&str> = dimensions.concat();
    let is_once =
        |name: &&str| [&names, &memory].iter().all(|side| side.iter().filter(|other| *other == name).count() == 1);
    if names.len() > MOST_NAMES || names.len() != memory.len() || !names.iter().all(is_once) {
        return Err(not_expressible(format!("each name of `{}` must be once on either side", pattern.trim())));
    }
    let mut parts = Vec::new();
    for name in memory {
        let place = |(dimension, names): (usize, &Vec<&str>)| Some((dimension, names.iter().position(|n| *n == name)?));
        let Some((dimension, level)) = dimensions.iter().enumerate().find_map(place) else { continue };
        let count = lengths.iter().find(|(known, _)| *known == name).map(|&(_, length)| length);
        if count.is_none() && level > 0 {
            return Err(not_expressible(format!("the length of `{name}` is needed")));
        }
        parts.push(Part { dimension, level, count, is_quotient: level == 0 });
    }
    arrange(dimensions.len(), &parts)
}

/// The layout of the one `rearrange` towards the buffer in a program, or of a pattern with its lengths: `(y y1) x -> (y x y1), y1=8`.
pub(super) fn of_program(text: &str, bounds: &[u64]) -> Result<Layout, Error> {
    let to_buffer = text.split_once("def from_buffer").map_or(text, |(to_buffer, _)| to_buffer);
    let mut calls = to_buffer.split("rearrange(x, '");
    let padding = calls.next().and_then(|before| before.split_once("np.pad(x, [")).map_or("", |(_, padding)| padding);
    let (pattern, lengths) = match (calls.next(), calls.next()) {
        (Some(call), None) => {
            let (pattern, rest) = call.split_once('\'').unwrap_or((call, ""));
            (pattern, rest.split_once(')').map_or(rest, |(lengths, _)| lengths))
        }
        (Some(_), Some(_)) => {
            return Err(not_expressible("several patterns with padding between them don't describe one layout"));
        }
        (None, _) => text.split_once(',').unwrap_or((text, "")),
    };
    let length = |item: &str| {
        let (name, length) = item.split_once('=')?;
        Some((name.trim().to_string(), length.trim().parse().ok()?))
    };
    let lengths = lengths.split(',').filter(|item| !item.trim().is_empty()).map(length);
    let lengths: Option<Vec<(String, u64)>> = lengths.collect();
    let lengths = lengths.ok_or_else(|| not_expressible("lengths are written such as y1=8, x1=128"))?;
    let lengths: Vec<(&str, u64)> = lengths.iter().map(|(name, length)| (&**name, *length)).collect();
    let layout = layout_of_rearrange(pattern, &lengths)?;
    if !padding.is_empty() {
        // The pattern implies only padding up to its lengths.
        let dimensions = axes(pattern.split_once("->").map_or("", |(left, _)| left))?;
        let known = |name: &&str| lengths.iter().find(|(other, _)| other == name).map_or(1, |&(_, length)| length);
        let tile = |names: &Vec<&str>| names.iter().map(known).fold(1, u64::saturating_mul);
        let rounded = bounds
            .iter()
            .zip(dimensions.iter().map(tile))
            .map(|(&bound, tile)| bound.checked_next_multiple_of(tile).map_or(0, |rounded| rounded - bound));
        let added = padding.split("(0, ").skip(1).map_while(|pair| pair.split_once(')')?.0.parse::<u64>().ok());
        if !rounded.eq(added) {
            return Err(not_expressible("the program pads further than to the lengths of its pattern"));
        }
    }
    Ok(layout)
}

/// Maximum number of names in a pattern, more than einops takes.
const MOST_NAMES: usize = 256;

/// The axes of one side, each as the names it is made of.
fn axes(side: &str) -> Result<Vec<Vec<&str>>, Error> {
    let malformed = || not_expressible(format!("`{}` isn't a list of names and products", side.trim()));
    let mut axes: Vec<Vec<&str>> = Vec::new();
    let mut is_open = false;
    let mut rest = side.trim();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' | ')' => 1,
            _ => rest.find(|c: char| c.is_whitespace() || c == '(' || c == ')').unwrap_or(rest.len()),
        };
        let (word, behind) = rest.split_at(length);
        match word {
            "(" if !is_open => {
                is_open = true;
                axes.push(Vec::new());
            }
            ")" if is_open => is_open = false,
            "(" | ")" => return Err(malformed()),
            // An axis of bound 1 on its own is a dimension; inside a product it has no effect.
            "1" if is_open => {}
            "1" => axes.push(Vec::new()),
            name if name.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                match axes.last_mut().filter(|_| is_open) {
                    Some(axis) => axis.push(name),
                    None => axes.push(vec![name]),
                }
            }
            _ => return Err(malformed()),
        }
        rest = behind.trim_start();
    }
    if is_open { Err(malformed()) } else { Ok(axes) }
}

/// A factor of an axis, as a pattern names it.
#[derive(Clone, PartialEq, Eq)]
struct Factor {
    name: String,
    /// The logical dimensions that the factor is cut from.
    dimensions: Vec<usize>,
    bound: u64,
}

/// An axis as the product of its factors, major → minor; an axis of bound 1 may have none.
type Factors = Vec<Factor>;

struct Writer {
    /// Names of the logical dimensions.
    letters: Vec<String>,
    /// The number of names of each combination of dimensions.
    names: BTreeMap<String, usize>,
    /// The axes at the last pad, or the beginning: the left side of the pattern to come.
    start: Vec<Factors>,
    /// The axes now: its right side.
    axes: Vec<Factors>,
    /// The parts of the layout that caused the steps since then.
    causes: Vec<String>,
    to_buffer: Vec<Line>,
    from_buffer: Vec<Line>,
}

impl Writer {
    fn new(derivation: &Derivation) -> Self {
        let bounds = &derivation.logical_dimensions;
        let mut writer = Self {
            letters: (0..bounds.len()).map(|dimension| letter(derivation.shape(), bounds.len(), dimension)).collect(),
            names: BTreeMap::new(),
            start: Vec::new(),
            axes: Vec::new(),
            causes: Vec::new(),
            to_buffer: Vec::new(),
            from_buffer: Vec::new(),
        };
        for (dimension, &bound) in bounds.iter().enumerate() {
            let factor = writer.factor(vec![dimension], bound);
            writer.axes.push(vec![factor]);
        }
        writer.start.clone_from(&writer.axes);
        writer
    }

    /// A new name: that of the dimensions, with a number from the second use on.
    fn factor(&mut self, dimensions: Vec<usize>, bound: u64) -> Factor {
        let mut name: String = dimensions.iter().map(|&dimension| &*self.letters[dimension]).collect();
        if name.is_empty() {
            name.push('t');
        }
        let separator = if name.ends_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
        let uses = self.names.entry(name.clone()).or_default();
        if *uses > 0 {
            name = format!("{name}{separator}{uses}");
        }
        *uses += 1;
        Factor { name, dimensions, bound }
    }

    fn cause(&mut self, cause: String) {
        if !cause.is_empty() {
            self.causes.push(cause);
        }
    }

    fn reshape(&mut self, groups: &[(usize, usize)], to: &[u64]) {
        let mut position = 0;
        let mut to = to.iter();
        let mut axes = Vec::new();
        // A product of factors is cut as one axis, which a pattern can do only if it starts there.
        let cuts_product = {
            let mut start = 0;
            groups.iter().any(|&(from, to)| {
                start += from;
                to == 2 && self.axes[start - from].len() > 1
            })
        };
        if cuts_product {
            let last = self.causes.pop();
            self.rearrange();
            self.causes.extend(last);
        }
        for &(from, into) in groups {
            let operand = &self.axes[position..position + from];
            position += from;
            let bounds: Vec<u64> = to.by_ref().take(into).copied().collect();
            match (operand, &bounds[..]) {
                ([whole], &[outer, inner]) => {
                    let whole = whole.clone();
                    axes.extend(self.cut(whole, outer, inner));
                }
                (parts, _) => axes.push(parts.concat()),
            }
        }
        self.axes = axes;
    }

    /// Cuts an axis of at most one factor in two, on both sides of the pattern.
    fn cut(&mut self, whole: Factors, outer: u64, inner: u64) -> [Factors; 2] {
        let [factor] = &whole[..] else { return [whole, Factors::new()] };
        if inner == 1 {
            return [whole, Factors::new()];
        }
        if outer == 1 {
            return [Factors::new(), whole];
        }
        let minor = self.factor(factor.dimensions.clone(), inner);
        let major = Factor { bound: outer, ..factor.clone() };
        for axis in &mut self.start {
            if let Some(at) = axis.iter().position(|other| other.name == factor.name) {
                axis.splice(at..=at, [major.clone(), minor.clone()]);
            }
        }
        [vec![major], vec![minor]]
    }

    fn pad(&mut self, padding: &[u64], from: &[u64]) {
        let cause = self.causes.pop();
        self.rearrange();
        let cause = cause.unwrap_or_default();
        self.to_buffer.push(Line { code: pad(padding), cause: cause.clone() });
        self.from_buffer.push(Line { code: slice(from, padding), cause: cause.clone() });
        self.causes.push(cause);
        for (axis, (padding, from)) in padding.iter().zip(from).enumerate().filter(|(_, (padding, _))| **padding > 0) {
            match &mut self.axes[axis][..] {
                [factor] => factor.bound = from + padding,
                _ => self.axes[axis] = vec![self.factor(Vec::new(), from + padding)],
            }
        }
        self.start.clone_from(&self.axes);
    }

    /// Writes the pattern from the start to now, unless they are the same, and makes now the start.
    fn rearrange(&mut self) {
        let mut causes = core::mem::take(&mut self.causes);
        causes.dedup();
        let causes = causes.join(" ");
        if self.start != self.axes {
            let code = |left: &[Factors], right: &[Factors]| {
                let pattern = format!("{} -> {}", side(left), side(right));
                format!("rearrange(x, '{}'{})", pattern.trim(), lengths(left))
            };
            self.to_buffer.push(Line { code: code(&self.start, &self.axes), cause: causes.clone() });
            self.from_buffer.push(Line { code: code(&self.axes, &self.start), cause: causes });
        }
        for axis in 0..self.axes.len() {
            if let [_, _, ..] = self.axes[axis][..] {
                let factors = core::mem::take(&mut self.axes[axis]);
                let bound = factors.iter().map(|factor| factor.bound).fold(1, u64::saturating_mul);
                let mut dimensions: Vec<usize> = factors.into_iter().flat_map(|factor| factor.dimensions).collect();
                dimensions.sort_unstable();
                dimensions.dedup();
                self.axes[axis] = vec![self.factor(dimensions, bound)];
            }
        }
        self.start.clone_from(&self.axes);
    }
}

fn letter(shape: &Shape, rank: usize, dimension: usize) -> String {
    match shape.as_array().and_then(|array| array.dimension_letter(dimension)) {
        Some(letter) => letter.to_string(),
        None if rank == 1 => "x".into(),
        None => format!("d{dimension}"),
    }
}

/// One side of a pattern: `(y y1) x 1`.
fn side(axes: &[Factors]) -> String {
    let axes: Vec<String> = axes
        .iter()
        .map(|factors| match &factors[..] {
            [] => "1".into(),
            [factor] => factor.name.clone(),
            factors => format!("({})", factors.iter().map(|factor| &*factor.name).collect::<Vec<_>>().join(" ")),
        })
        .collect();
    axes.join(" ")
}

/// The lengths that einops needs to take products apart: all but the first of each, and that one too if a length is 0,
/// where it can't be found by division.
fn lengths(axes: &[Factors]) -> String {
    let empty = axes.iter().flatten().any(|factor| factor.bound == 0);
    let known = if empty { 0 } else { 1 };
    let factors = axes.iter().filter(|factors| factors.len() > 1).flat_map(|factors| &factors[known..]);
    factors.map(|factor| format!(", {}={}", factor.name, factor.bound)).collect()
}
