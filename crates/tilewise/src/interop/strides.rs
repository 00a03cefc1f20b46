//! One stride a dimension: NumPy's and DLPack's arrays, and MLIR's strided memrefs.

use super::{
    CuTe,
    modes::{self, Mode, not_expressible},
    numbers,
    pjrt::field,
};
use crate::{ElementKind, ElementType, Error, Layout, Tiled};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// Bounds and strides, in elements, by dimension number, as in DLPack and strided memrefs; made by [`Tiled::strides`].
///
/// Padding behind the last element is no part of it, nor is the size of the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strides {
    /// The bounds.
    pub dimensions: Vec<u64>,
    /// Elements between neighbours; 0 along a dimension of bound 1.
    pub strides: Vec<u64>,
}

impl Tiled {
    /// The layout as one stride a dimension, in elements.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) where a tile cuts a dimension in two.
    ///
    /// ```
    /// let tiled = tilewise::Tiled::new(&"f32[3,5]{0,1}".parse()?)?;
    /// assert_eq!(tiled.strides()?.strides, [1, 3]);
    /// assert!(tilewise::Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?.strides().is_err());
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn strides(&self) -> Result<Strides, Error> {
        let one = |(dimension, modes): (usize, Vec<Mode>)| match modes[..] {
            [mode] => Ok(mode.stride),
            _ => {
                let message = format!("tiles cut dimension {dimension} in {} parts, each with its stride", modes.len());
                Err(not_expressible(message))
            }
        };
        let strides = modes::modes(self)?.into_iter().enumerate().map(one).collect::<Result<_, _>>()?;
        Ok(Strides { dimensions: self.logical_dimensions().to_vec(), strides })
    }

    /// A NumPy expression for the array in the flat buffer `x`, which has an item for each stored element: a view, or,
    /// where tiles cut a dimension, a view of the parts that `reshape` joins by a copy.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) where tiles don't nest in each other;
    /// [`Derivation::numpy`](crate::Derivation::numpy) does without strides.
    ///
    /// ```
    /// let tiled = tilewise::Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// assert_eq!(
    ///     tiled.as_strided()?,
    ///     "as_strided(x, (2, 2, 3, 2), (12 * x.itemsize, 2 * x.itemsize, 4 * x.itemsize, x.itemsize)).reshape(4, 6)[:3, :5]"
    /// );
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn as_strided(&self) -> Result<String, Error> {
        let modes = modes::modes(self)?;
        let parts: Vec<Mode> = modes.iter().flat_map(|modes| modes.iter().rev()).copied().collect();
        let counts: Vec<u64> = parts.iter().map(|mode| mode.count).collect();
        let bytes: Vec<String> = parts.iter().map(|mode| bytes(mode.stride)).collect();
        let separator = if parts.len() == 1 { "," } else { "" };
        let view = format!("as_strided(x, {}, ({}{separator}))", super::tuple(&counts), bytes.join(", "));
        if modes.iter().all(|modes| modes.len() == 1) {
            return Ok(view);
        }
        let padded: Vec<u64> = modes.iter().map(|modes| modes.iter().map(|mode| mode.count).product()).collect();
        let bounds = self.logical_dimensions();
        let joined = format!("{view}.reshape({})", super::list(&padded));
        if padded == bounds {
            return Ok(joined);
        }
        let range = |(bound, padded): (&u64, &u64)| if bound == padded { ":".into() } else { format!(":{bound}") };
        let ranges: Vec<String> = bounds.iter().zip(&padded).map(range).collect();
        Ok(format!("{joined}[{}]", ranges.join(", ")))
    }

    /// The array as an MLIR memref: strided, or with an affine map where tiles cut a dimension.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) for packed bits (`E`), and where [`Tiled::affine_offset_map`] would be too long.
    ///
    /// ```
    /// let memref = |text: &str| tilewise::Tiled::new(&text.parse()?)?.memref();
    /// assert_eq!(memref("f32[3,5]{0,1:S(1)}")?, "memref<3x5xf32, strided<[1, 3]>, 1>");
    /// assert_eq!(
    ///     memref("f32[3,5]{1,0:T(2,2)}")?,
    ///     "memref<3x5xf32, affine_map<(d0, d1) -> ((d0 mod 2) * 2 + (d0 floordiv 2) * 12 + d1 mod 2 + (d1 floordiv 2) * 4)>>"
    /// );
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn memref(&self) -> Result<String, Error> {
        let array = self.array();
        if array.stored_bits() != u64::from(array.element_type().natural_bits()) {
            let message = format!("E({}): a memref's elements take their type's whole bytes", array.stored_bits());
            return Err(not_expressible(message));
        }
        let layout = match self.strides() {
            Ok(Strides { dimensions, strides }) => {
                let row_major = dimensions.iter().zip(&strides).rev().try_fold(1_u64, |expected, (bound, stride)| {
                    (*bound == 1 || *stride == expected).then(|| expected.saturating_mul(*bound))
                });
                if row_major.is_some() { String::new() } else { format!(", strided<[{}]>", super::list(&strides)) }
            }
            Err(_) => match self.affine_offset_map() {
                Some(map) => format!(", {map}"),
                None => return Err(not_expressible("the affine map of these nested tiles has more than 10,000 terms")),
            },
        };
        let space = match array.memory_space() {
            0 => String::new(),
            space => format!(", {space}"),
        };
        let bounds: String = self.logical_dimensions().iter().map(|bound| format!("{bound}x")).collect();
        Ok(format!("memref<{bounds}{}{layout}{space}>", mlir_type(array.element_type())))
    }
}

impl Strides {
    /// Bounds and strides, in elements, of an array from elsewhere; NumPy's strides divided by the item size.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) unless the numbers of strides and bounds are
    /// equal.
    pub fn new(dimensions: impl Into<Vec<u64>>, strides: impl Into<Vec<u64>>) -> Result<Self, Error> {
        let (dimensions, strides) = (dimensions.into(), strides.into());
        if dimensions.len() != strides.len() {
            return Err(not_expressible(format!("{} bounds and {} strides", dimensions.len(), strides.len())));
        }
        Ok(Self { dimensions, strides })
    }

    /// A layout that puts every element there; a pitch wider than the bound becomes a tile that pads.
    ///
    /// # Errors
    /// [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible) for strides that make elements overlap (0 among
    /// them), or that are no multiples of each other.
    ///
    /// ```
    /// use tilewise::interop::Strides;
    ///
    /// assert_eq!(Strides::new([3, 5], [1, 3])?.layout()?.to_string(), "{0,1}");
    /// assert_eq!(Strides::new([3, 5], [8, 1])?.layout()?.to_string(), "{1,0:T(8)}");
    /// assert!(Strides::new([3, 5], [0, 1])?.layout().is_err());
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn layout(&self) -> Result<Layout, Error> {
        let mode = |(&count, &stride): (&u64, &u64)| alloc::vec![Mode { count, stride }];
        modes::layout(&self.dimensions.iter().zip(&self.strides).map(mode).collect::<Vec<_>>())
    }

    /// The fields of DLPack's `DLTensor`: `shape = {3, 5}, strides = {1, 3}`.
    #[must_use]
    pub fn dlpack(&self) -> String {
        format!("shape = {{{}}}, strides = {{{}}}", super::list(&self.dimensions), super::list(&self.strides))
    }
}

/// The fields that [`Strides::dlpack`] prints.
pub(super) fn of_dlpack(text: &str) -> Result<Strides, Error> {
    let malformed = || not_expressible("DLPack's fields are written such as shape = {3, 5}, strides = {5, 1}");
    let numbers = |name| field(text, name).ok_or_else(malformed);
    Strides::new(numbers("shape")?, numbers("strides")?)
}

/// The parts of each dimension in the text of [`Tiled::as_strided`].
pub(super) fn of_as_strided(text: &str) -> Result<CuTe, Error> {
    let malformed = || not_expressible("a view is written such as as_strided(x, (3, 5), (5 * x.itemsize, x.itemsize))");
    let read = || {
        let (counts, rest) = text.strip_prefix("as_strided(x, (")?.split_once("), (")?;
        let (strides, rest) = rest.split_once("))")?;
        let strides = strides.split(',').map(str::trim).filter(|stride| !stride.is_empty());
        let strides: Option<Vec<u64>> = strides
            .map(|stride| match stride.strip_suffix("x.itemsize") {
                Some("") => Some(1),
                Some(factor) => factor.strip_suffix(" * ")?.parse().ok(),
                None => (stride == "0").then_some(0),
            })
            .collect();
        let joined = match rest.strip_prefix(".reshape(") {
            Some(joined) => Some(numbers(joined.split_once(')')?.0)?),
            None => rest.is_empty().then_some(None)?,
        };
        Some((numbers(counts)?, strides?, joined))
    };
    let (counts, strides, joined): (Vec<u64>, Vec<u64>, Option<Vec<u64>>) = read().ok_or_else(malformed)?;
    let parts = Strides::new(counts, strides)?;
    let mut parts = parts.dimensions.into_iter().zip(parts.strides).map(|(count, stride)| Mode { count, stride });
    let Some(joined) = joined else { return Ok(CuTe { modes: parts.map(|mode| alloc::vec![mode]).collect() }) };
    let mut modes = Vec::new();
    for bound in joined {
        let (mut dimension, mut product) = (Vec::new(), 1_u64);
        while dimension.is_empty() || product != bound {
            let mode = parts.next().ok_or_else(malformed)?;
            product = product.saturating_mul(mode.count);
            dimension.push(mode);
        }
        dimension.reverse();
        modes.push(dimension);
    }
    if parts.next().is_some() { Err(malformed()) } else { Ok(CuTe { modes }) }
}

/// The parts of a memref type.
pub(super) struct Memref<'a> {
    pub(super) dimensions: Vec<u64>,
    /// `strided<…>`, `affine_map<…>`, another attribute, or nothing.
    pub(super) layout: &'a str,
    pub(super) memory_space: u8,
}

impl<'a> Memref<'a> {
    pub(super) fn of(text: &'a str) -> Result<Self, Error> {
        Self::parse(text).ok_or_else(|| {
            not_expressible("a memref of known bounds is written such as memref<3x5xf32, strided<[1, 3]>, 1>")
        })
    }

    fn parse(text: &'a str) -> Option<Self> {
        let inner = text.strip_prefix("memref<")?.strip_suffix('>')?;
        let (array, rest) = inner.split_once(", ").unwrap_or((inner, ""));
        let mut bounds = array.split('x').peekable();
        let mut dimensions = Vec::new();
        while let Some(bound) = bounds.next_if(|bound| bound.starts_with(|c: char| c.is_ascii_digit())) {
            dimensions.push(bound.parse().ok()?);
        }
        bounds.next()?.starts_with(|c: char| c.is_ascii_alphabetic()).then_some(())?;
        let (layout, space) = match rest.rsplit_once(">, ") {
            Some((layout, space)) => (rest.get(..layout.len() + 1)?, space),
            None if rest.ends_with('>') => (rest, "0"),
            None if rest.is_empty() => ("", "0"),
            None => ("", rest),
        };
        Some(Self { dimensions, layout, memory_space: space.parse().ok()? })
    }
}

/// The numbers of `strided<[1, 3]>`.
pub(super) fn of_strided(text: &str) -> Result<Vec<u64>, Error> {
    text.strip_prefix("strided<[")
        .and_then(|text| numbers(text.strip_suffix("]>")?))
        .ok_or_else(|| not_expressible(format!("`{text}` isn't a list of known strides without an offset")))
}

/// A stride in bytes, as NumPy has it.
fn bytes(stride: u64) -> String {
    match stride {
        0 => "0".into(),
        1 => "x.itemsize".into(),
        _ => format!("{stride} * x.itemsize"),
    }
}

/// MLIR's name: integers have no sign, and `pred` is one bit.
fn mlir_type(element_type: ElementType) -> String {
    let bits = element_type.bits();
    match element_type.kind() {
        ElementKind::Predicate => "i1".into(),
        ElementKind::Signed | ElementKind::Unsigned => format!("i{bits}"),
        ElementKind::Complex => format!("complex<f{}>", bits / 2),
        _ => match element_type.name() {
            name @ ("f16" | "bf16" | "f32" | "f64") => name.to_string(),
            name => name.to_uppercase().replacen('F', "f", 1),
        },
    }
}
