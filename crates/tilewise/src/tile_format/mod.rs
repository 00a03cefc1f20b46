//! Tile formats of TPUs, other machines and libraries, by name.

mod names;
mod onednn;

use crate::{
    ArrayShape, Dimension, ElementType, Error, ErrorKind, Layout, Shape, Tile,
    blocks::{self, Block},
    text::distance,
    tpu::Generation,
};
use alloc::{
    borrow::ToOwned,
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::{fmt, str::FromStr};
use names::{Entry, FORMATS, REFUSED, Rule};

/// A tile format of another machine or library, such as Tenstorrent's `tt-tile` or oneDNN's `onednn-nChw16c`.
///
/// A format has tiles, and most leave the order of dimensions to the shape; those whose definition includes an order
/// have one. [`TileFormat::apply`] gives a shape the format's layout.
///
/// ```
/// use tilewise::{Shape, TileFormat};
///
/// let format: TileFormat = "tt-tile".parse()?;
/// let shape = format.apply(&"bf16[100,300]".parse()?)?;
/// assert_eq!(shape.to_string(), "bf16[100,300]{1,0:T(32,32)(16,16)}");
/// assert_eq!(Shape::parse_any("bf16[100,300]@tt-tile")?, shape);
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TileFormat {
    name: String,
    entry: &'static Entry,
    cut: Cut,
}

/// The way a format cuts an array.
#[derive(Clone, Debug)]
enum Cut {
    /// With these tiles, in this order of dimensions (minor to major), or in the shape's.
    Tiles { order: Option<Vec<usize>>, tiles: Vec<Tile> },
    /// With these tiles, and elements of `bits` bits.
    Packed { tiles: Vec<Tile>, bits: u64 },
    /// With the rows of a tile that the second-minor dimension needs.
    Compact,
    /// Into blocks of these dimensions, in the shape's order: (dimension, size), major → minor.
    Dimensions(Vec<(usize, u64)>),
}

impl TileFormat {
    /// Every format; for those with a parameter in their name, some examples.
    ///
    /// ```
    /// use tilewise::TileFormat;
    ///
    /// assert!(TileFormat::all().any(|format| format.name() == "cublaslt-col32"));
    /// ```
    pub fn all() -> impl Iterator<Item = Self> {
        FORMATS.iter().flat_map(|entry| entry.names.iter().filter_map(|name| entry.read(name)?.ok()))
    }

    /// The format of a TPU that has these tiles, in the documents' list.
    ///
    /// ```
    /// use tilewise::{Layout, TileFormat};
    ///
    /// let layout: Layout = "{1,0:T(8,128)(2,1)}".parse()?;
    /// assert_eq!(TileFormat::of_tpu_tiles(layout.tiles()).expect("a format").name(), "tpu-16bit");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn of_tpu_tiles(tiles: &[Tile]) -> Option<Self> {
        let has_tiles = |format: &Self| match &format.cut {
            Cut::Tiles { tiles: own, .. } | Cut::Packed { tiles: own, .. } => own == tiles,
            _ => false,
        };
        Self::all().filter(|format| format.name.starts_with("tpu-")).find(has_tiles)
    }

    /// The format that XLA's tiled-layout document gives for an array of this type, bounds and order on a TPU; `None`
    /// below rank 2, and for types below 8 bits. Predicates are taken as 4 bytes each. Compilers now choose other
    /// formats ([`tpu`](crate::tpu)).
    ///
    /// ```
    /// use tilewise::{Shape, TileFormat};
    ///
    /// let shape: Shape = "f32[1,128]".parse()?;
    /// let format = TileFormat::documented_for_tpu(shape.as_array().expect("an array")).expect("a format");
    /// assert_eq!(format.name(), "tpu-2x128");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn documented_for_tpu(array: &ArrayShape) -> Option<Self> {
        let second_minor = *array.layout()?.minor_to_major().get(1)?;
        let name = match array.element_type().bits() {
            _ if array.element_type() == ElementType::Pred => "tpu-pred",
            8 => "tpu-8bit",
            16 => "tpu-16bit",
            32.. => match compact_rows(array.dimensions()[second_minor].bound()) {
                2 => "tpu-2x128",
                4 => "tpu-4x128",
                _ => "tpu-8x128",
            },
            _ => return None,
        };
        Self::named(name).ok()
    }

    /// The name, as it is written behind `@`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The pattern of names of this kind, such as `kleidiai-NRxKR`; `None` if the name has no parameter.
    #[must_use]
    pub fn pattern(&self) -> Option<&'static str> {
        self.entry.pattern
    }

    /// The machine or library that lays out arrays this way, and its purpose.
    #[must_use]
    pub fn used_by(&self) -> &'static str {
        self.entry.used_by
    }

    /// The vendor's definition of the format.
    #[must_use]
    pub fn source(&self) -> &'static str {
        self.entry.source
    }

    /// The layout in XLA's notation: `{0,1:T(32,1)}`, or `T(32,32)(16,16)` where the order is the shape's.
    ///
    /// A layout that depends on the shape's order (`linalg-pack-…`) is given for a row-major array.
    #[must_use]
    pub fn layout(&self) -> String {
        let row_major =
            |rank| self.layout_for(&Layout::row_major(rank), &[]).map_or(String::new(), |layout| layout.to_string());
        let written = |tiles: &[Tile]| format!("T{}", tiles.iter().map(Tile::to_string).collect::<String>());
        match &self.cut {
            Cut::Tiles { order: None, tiles } => written(tiles),
            Cut::Packed { tiles, bits } => format!("{}E({bits})", written(tiles)),
            Cut::Compact => "T(2,128), T(4,128) or T(8,128)".to_owned(),
            Cut::Tiles { order: Some(order), .. } => row_major(order.len()),
            Cut::Dimensions(blocks) => {
                row_major(blocks.iter().map(|&(dimension, _)| dimension + 1).max().unwrap_or_default())
            }
        }
    }

    /// The shape in this format. Its layout, if it has one, gets the format's tiles and keeps the rest; its order must
    /// agree with the format's. A shape read by [`str::parse`] always has a layout, [`Shape::parse_as_written`] leaves
    /// it open.
    ///
    /// # Errors
    /// [`ErrorKind::TileFormatConflict`] if the shape has tiles, or another order than the format;
    /// [`ErrorKind::LayoutRankMismatch`] if the format is for another number of dimensions; [`ErrorKind::NotAnArray`].
    pub fn apply(&self, shape: &Shape) -> Result<Shape, Error> {
        let array = shape.array_or_error()?;
        let rank = array.rank();
        let (least, most) = match &self.cut {
            Cut::Tiles { order: None, .. } | Cut::Packed { .. } => (0, usize::MAX),
            Cut::Compact => (2, usize::MAX),
            Cut::Tiles { order: Some(order), .. } => (order.len(), order.len()),
            Cut::Dimensions(blocks) => {
                (blocks.iter().map(|&(dimension, _)| dimension + 1).max().unwrap_or(0), usize::MAX)
            }
        };
        if !(least..=most).contains(&rank) {
            let needed = if least == most { format!("rank {least}") } else { format!("rank {least} or more") };
            let message = format!("`{}` is for arrays of {needed}, and this one has rank {rank}", self.name);
            return Err(Error::new(ErrorKind::LayoutRankMismatch, message));
        }
        let element_type = array.element_type();
        match self.cut {
            Cut::Packed { bits, .. } if u64::from(element_type.bits()) > bits => {
                let message = format!("`{}` is for elements of {bits} bits, and {element_type} has more", self.name);
                return Err(Error::new(ErrorKind::TileFormatConflict, message));
            }
            _ => {}
        }
        let given = array.layout();
        if let Some(given) = given.filter(|layout| !layout.tiles().is_empty()) {
            return Err(self.conflict(&format!("the shape has tiles of its own, {given}")));
        }
        let own_order = match &self.cut {
            Cut::Tiles { order, .. } => order.as_deref(),
            Cut::Dimensions(_) | Cut::Packed { .. } | Cut::Compact => None,
        };
        let layout = match (given, own_order) {
            (Some(given), Some(order)) if given.minor_to_major() != order => {
                return Err(self.conflict(&format!("the shape has the order {given}")));
            }
            (Some(given), _) => given.clone(),
            (None, Some(order)) => Layout::new(order.iter().copied())?,
            (None, None) => Layout::row_major(rank),
        };
        shape.with_layout(self.layout_for(&layout, array.dimensions())?)
    }

    fn conflict(&self, what: &str) -> Error {
        let message = format!("{what}, and `{}` means {}", self.name, self.layout());
        Error::new(ErrorKind::TileFormatConflict, message).with_help("leave out one of them")
    }

    /// The layout with the format's tiles, and its order if it has one.
    fn layout_for(&self, layout: &Layout, dimensions: &[Dimension]) -> Result<Layout, Error> {
        match &self.cut {
            Cut::Packed { tiles, bits } => {
                layout.clone().with_tiles(tiles.iter().cloned())?.with_element_size_in_bits(*bits)
            }
            Cut::Compact => {
                let second_minor = layout.minor_to_major().get(1).and_then(|&second| dimensions.get(second)?.bound());
                layout.clone().with_tiles([[compact_rows(second_minor), 128]])
            }
            Cut::Tiles { order: None, tiles } => layout.clone().with_tiles(tiles.iter().cloned()),
            Cut::Tiles { order: Some(order), tiles } => {
                let ordered = Layout { minor_to_major: order.iter().copied().collect(), ..layout.clone() };
                ordered.with_tiles(tiles.iter().cloned())
            }
            Cut::Dimensions(sizes) => {
                let order: Vec<usize> = layout.minor_to_major().iter().rev().copied().collect();
                layout.clone().with_tiles(blocks::tiles(&order, &levels(sizes))?)
            }
        }
    }

    /// The format of that name; errors have no span.
    fn named(name: &str) -> Result<Self, Error> {
        if let Some(read) = FORMATS.iter().find_map(|entry| entry.read(name)) {
            return read;
        }
        if name == "tpu" || name.parse::<Generation>().is_ok() {
            let message =
                format!("`{}` isn't a tile format: a TPU picks tiles by type, sizes and generation", shown(name));
            let help =
                "ask `tilewise predict SHAPE --tpu v5e`, or name a format: `tpu-8x128`, `tpu-16bit`, `tpu-8bit`, …";
            return Err(Error::new(ErrorKind::UnknownTileFormat, message).with_help(help));
        }
        if let Some((_, reason)) = REFUSED
            .iter()
            .find(|(known, _)| known.strip_suffix('…').map_or(name == *known, |start| name.starts_with(start)))
        {
            let message = format!("tiles can't express `{}`: {reason}", shown(name));
            return Err(Error::new(ErrorKind::UnsupportedTileFormat, message));
        }
        let error = Error::new(ErrorKind::UnknownTileFormat, format!("`{}` isn't a tile format", shown(name)));
        Err(error.with_help(nearest(name)))
    }
}

impl FromStr for TileFormat {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::UnknownTileFormat`] with the nearest names, or [`ErrorKind::UnsupportedTileFormat`] with the reason
    /// for formats that are no tiles: XOR swizzles, numbers that share an exponent, Triton's linear layouts.
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::named(name).map_err(|error| error.at(0..name.len()))
    }
}

impl fmt::Display for TileFormat {
    /// The name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

impl Shape {
    /// `SHAPE@NAME`: a shape without tiles, and a format; `None` without a name behind `@`.
    pub(crate) fn parse_with_tile_format(text: &str) -> Option<Result<Self, Error>> {
        let is_name = |name: &str| name.starts_with(|first: char| first.is_ascii_alphanumeric());
        let (shape, name) = text.rsplit_once('@').filter(|(_, name)| is_name(name))?;
        Some(Self::parse_as_written(shape).and_then(|shape| {
            let named = TileFormat::named(name).and_then(|format| format.apply(&shape));
            named.map_err(|error| error.at(text.len() - name.len()..text.len()))
        }))
    }
}

impl Entry {
    /// The format, if the name is of this kind; an error if the name has the kind's prefix but not its pattern.
    fn read(&'static self, name: &str) -> Option<Result<TileFormat, Error>> {
        let format = |cut| TileFormat { name: name.to_owned(), entry: self, cut };
        let tiles =
            |tiles: &[&[u64]]| tiles.iter().map(|sizes| Tile::new(sizes.iter().copied())).collect::<Result<_, _>>();
        let of_pattern = |cut: Option<Result<Cut, Error>>| {
            let error = || {
                let pattern = self.pattern.unwrap_or_default();
                Error::new(ErrorKind::UnknownTileFormat, format!("`{}` is not of the form `{pattern}`", shown(name)))
                    .with_help(format!("such as `{}`", self.names.join("`, `")))
            };
            cut.unwrap_or_else(|| Err(error())).map(format)
        };
        match &self.rule {
            Rule::Tiles { order, tiles: sizes } => self
                .names
                .contains(&name)
                .then(|| Ok(format(Cut::Tiles { order: order.map(<[usize]>::to_vec), tiles: tiles(sizes)? }))),
            Rule::Packed { tiles: sizes, bits } => {
                self.names.contains(&name).then(|| Ok(format(Cut::Packed { tiles: tiles(sizes)?, bits: *bits })))
            }
            Rule::Compact => self.names.contains(&name).then(|| Ok(format(Cut::Compact))),
            Rule::Written => {
                Some(tiles_as_written(name.strip_prefix('T').filter(|rest| rest.starts_with('('))?).map(format))
            }
            Rule::Block(start) => Some(of_pattern(block(name.strip_prefix(start)?))),
            Rule::Pack(start) => Some(of_pattern(pack(name.strip_prefix(start)?))),
            Rule::OneDnn(start) => Some(of_pattern(onednn::cut(name.strip_prefix(start)?))),
        }
    }
}

/// `(8,128)(2,1)`: tiles as XLA writes them.
fn tiles_as_written(tiles: &str) -> Result<Cut, Error> {
    // Other parts of a layout, behind its tiles, are no part of a format.
    // The span would be in another text.
    let without_span = |error: Error| Error::new(error.kind(), error.to_string());
    let layout: Layout = format!("{{:T{tiles}}}").parse().map_err(without_span)?;
    match layout == Layout::row_major(0).with_tiles(layout.tiles().iter().cloned())? {
        true => Ok(Cut::Tiles { order: None, tiles: layout.tiles().to_vec() }),
        false => Err(Error::new(ErrorKind::UnknownTileFormat, "a tile format of tiles has nothing behind them")),
    }
}

/// The rows of a tile in the documents' compact 2nd minor layout.
pub(crate) const fn compact_rows(second_minor: Option<u64>) -> u64 {
    match second_minor {
        Some(0..=2) => 2,
        Some(3 | 4) => 4,
        _ => 8,
    }
}

/// `4x8`: one tile.
fn block(sizes: &str) -> Option<Result<Cut, Error>> {
    let (rows, columns) = sizes.split_once('x')?;
    let sizes = [number(rows)?, number(columns)?];
    Some(Tile::new(sizes).map(|tile| Cut::Tiles { order: None, tiles: vec![tile] }))
}

/// `1:16,0:2`: dimensions and sizes.
fn pack(blocks: &str) -> Option<Result<Cut, Error>> {
    let block = |text: &str| {
        let (dimension, size) = text.split_once(':')?;
        let dimension =
            usize::try_from(number(dimension)?).ok().filter(|&dimension| dimension < blocks::MOST_BLOCKS)?;
        Some((dimension, number(size).filter(|&size| size > 0)?))
    };
    let blocks: Vec<(usize, u64)> =
        blocks.split(',').take(blocks::MOST_BLOCKS + 1).map(block).collect::<Option<_>>()?;
    // `linalg.pack` tiles a dimension once.
    let is_once = |&(dimension, _): &(usize, u64)| blocks.iter().filter(|other| other.0 == dimension).count() == 1;
    blocks.iter().all(is_once).then_some(Ok(Cut::Dimensions(blocks)))
}

/// A number in digits alone, without a leading zero.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

/// Blocks in the order of memory, where an earlier block of a dimension is the more significant one.
fn levels(sizes: &[(usize, u64)]) -> Vec<Block> {
    let level = |at: usize| sizes[..at].iter().filter(|(dimension, _)| *dimension == sizes[at].0).count();
    sizes
        .iter()
        .enumerate()
        .filter(|(_, (_, size))| *size > 1)
        .map(|(at, &(dimension, size))| Block { dimension, size, level: level(at) })
        .collect()
}

/// At most 40 characters of a name.
fn shown(name: &str) -> String {
    name.chars().take(40).collect()
}

/// The help for an unknown name: the three most similar ones.
fn nearest(name: &str) -> String {
    let name = shown(name).to_ascii_lowercase();
    let mut known: Vec<(usize, &str)> = FORMATS
        .iter()
        .flat_map(|entry| entry.names)
        .map(|known| {
            // The vendor or the variant is often left out: a name inside another is near.
            let contained = !name.is_empty() && known.to_ascii_lowercase().contains(&*name);
            (if contained { 0 } else { distance(&name, &known.to_ascii_lowercase()) }, *known)
        })
        .collect();
    known.sort_by_key(|&(distance, _)| distance);
    let nearest: Vec<&str> = known.iter().take(3).map(|&(_, known)| known).collect();
    format!("the nearest names are `{}`", nearest.join("`, `"))
}
