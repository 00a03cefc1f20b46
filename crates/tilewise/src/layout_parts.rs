//! The meaning of each part of a layout, in a sentence.

use crate::{
    ArrayShape, Layout, Tile, TileDimension, Tiled,
    array::letter,
    text::join,
    tile_cover::{CoveredAxis, Cut, Origin},
    tpu::memory_space_name,
};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// One part of a layout's text, and its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayoutPart {
    /// The kind of part.
    pub kind: LayoutPartKind,
    /// The part as it is written, such as `T(8,128)` or `E(4)`.
    pub text: String,
    /// The meaning, as a sentence without a full stop.
    pub meaning: String,
}

/// The parts of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LayoutPartKind {
    /// The order of the dimensions, `1,0`.
    Order,
    /// One tile, `T(8,128)` or, after the first, `(2,1)`.
    Tile,
    /// The alignment of the end, `L(1024)`.
    TailPadding,
    /// The type of a sparse array's indices, `#(u32)`.
    IndexType,
    /// The type of a sparse array's pointers, `*(u32)`.
    PointerType,
    /// The size of an element, `E(4)`.
    ElementSize,
    /// The memory space, `S(1)`.
    MemorySpace,
    /// The split of one dimension between memories, `SC(0:64)`.
    Split,
    /// Bytes in front of the data, `M(4)`.
    MetadataPrefix,
}

impl ArrayShape {
    /// The meaning of each part of the layout, in the order of the text; empty without a layout.
    ///
    /// Tiles are described by their effect on memory: `(8,128)` cuts blocks, on a TPU `(2,1)` after it interleaves
    /// rows, and `(2,1,1,1)` joins two blocks.
    ///
    /// ```
    /// let shape: tilewise::Shape = "bf16[300,500]{1,0:T(8,128)(2,1)}".parse()?;
    /// let parts = shape.as_array().expect("an array").layout_in_words();
    /// assert_eq!(parts[2].text, "(2,1)");
    /// assert_eq!(parts[2].meaning, "2 rows are interleaved, so each 32-bit word holds one column of 2 rows");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn layout_in_words(&self) -> Vec<LayoutPart> {
        self.layout().map_or(Vec::new(), |layout| parts(layout, Some(self)))
    }
}

impl Layout {
    /// The meaning of each part of the layout, in the order of the text, independent of an array: dimensions are named
    /// by the documents' letters.
    ///
    /// ```
    /// let layout: tilewise::Layout = "3,2,0,1:T(8,128)(2,1)".parse()?;
    /// assert_eq!(layout.in_words()[0].meaning, "dimension 3 (x) varies fastest, then 2 (y), 0 (p), 1 (z)");
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn in_words(&self) -> Vec<LayoutPart> {
        parts(self, None)
    }
}

/// The parts of a layout, alone or of an array.
fn parts(layout: &Layout, array: Option<&ArrayShape>) -> Vec<LayoutPart> {
    use LayoutPartKind::{
        ElementSize, IndexType, MemorySpace, MetadataPrefix, Order, PointerType, Split, TailPadding, Tile,
    };
    let mut parts = Vec::new();
    let mut part = |kind, text: String, meaning: String| parts.push(LayoutPart { kind, text, meaning });
    let rank = layout.minor_to_major().len();
    if rank > 0 {
        // Next to its array, whose dimensions have letters already, numbers are enough.
        let letter = |dimension| if array.is_some() { None } else { letter(rank, dimension) };
        part(Order, listed(layout.minor_to_major()), order_in_words(layout, letter));
    }
    // Without bounds, or with too large ones, tiles are described by their sizes alone.
    let tiled = array.and_then(|array| Tiled::of_array(array).ok());
    let coverings = tiled.map(|tiled| tiled.coverings()).unwrap_or_default();
    let bits = array.map(ArrayShape::stored_bits).or(layout.element_size_in_bits());
    let mut previous = None;
    for (level, tile) in layout.tiles().iter().enumerate() {
        let prefix = if level == 0 { "T" } else { "" };
        let cuts = coverings.get(level).map_or(&[][..], Vec::as_slice);
        part(Tile, format!("{prefix}{tile}"), tile_in_words(rank, previous, tile, cuts, bits));
        previous = Some(tile);
    }
    if layout.tail_padding_alignment() != 1 {
        let n = layout.tail_padding_alignment();
        part(TailPadding, format!("L({n})"), format!("padded at the end to a multiple of {n} elements"));
    }
    for (kind, sign, role, named) in [
        (IndexType, "#", "index", layout.index_primitive_type()),
        (PointerType, "*", "pointer", layout.pointer_primitive_type()),
    ] {
        if let Some(named) = named {
            let meaning = format!("{role} type of a sparse array, which XLA no longer validates");
            part(kind, format!("{sign}({named})"), meaning);
        }
    }
    if let Some(bits) = layout.element_size_in_bits() {
        part(ElementSize, format!("E({bits})"), element_size_in_words(bits, array));
    }
    if layout.memory_space() != 0 {
        let space = layout.memory_space();
        let name = memory_space_name(space);
        let on_tpu = if name.starts_with("space_") { String::new() } else { format!(", {name} on a TPU") };
        part(MemorySpace, format!("S({space})"), format!("in memory space {space}{on_tpu}"));
    }
    for split in layout.split_configs() {
        let meaning = format!("physical dimension {} is split between memories before these indices", split.dimension);
        part(Split, format!("SC({}:{})", split.dimension, listed(&split.split_indices)), meaning);
    }
    if layout.dynamic_shape_metadata_prefix_bytes() != 0 {
        let n = layout.dynamic_shape_metadata_prefix_bytes();
        let meaning = format!("{n} bytes of run-time dimension sizes stand in front of the data");
        part(MetadataPrefix, format!("M({n})"), meaning);
    }
    parts
}

fn element_size_in_words(bits: u64, array: Option<&ArrayShape>) -> String {
    let Some(array) = array else { return format!("each element takes {bits} bits") };
    let natural = u64::from(array.element_type().natural_bits());
    match bits.cmp(&natural) {
        core::cmp::Ordering::Equal => format!("each element takes {bits} bits, its natural size"),
        core::cmp::Ordering::Less => {
            let s = if bits == 1 { "" } else { "s" };
            format!("elements are packed, {bits} bit{s} each instead of {natural}")
        }
        core::cmp::Ordering::Greater => format!("each element takes {bits} bits instead of its natural {natural}"),
    }
}

/// Describes a tile, the first or one behind `previous`. `cuts` are empty if bounds are unknown, `bits` are `None` if
/// the element is.
fn tile_in_words(rank: usize, previous: Option<&Tile>, tile: &Tile, cuts: &[Cut], bits: Option<u64>) -> String {
    let sizes: Option<Vec<u64>> = tile.dimensions().iter().map(|d| d.size()).collect();
    match (previous, sizes) {
        (None, Some(sizes)) => first_tile_in_words(rank, &sizes),
        (None, None) => combined_in_words(tile, cuts, None),
        (Some(previous), Some(sizes)) => later_tile_in_words(previous, &sizes, cuts, bits),
        (Some(previous), None) => combined_in_words(tile, cuts, Some(previous)),
    }
}

fn first_tile_in_words(rank: usize, sizes: &[u64]) -> String {
    match *sizes {
        [n] if rank == 0 => format!("the scalar is padded to {n} elements"),
        [n] => format!("the minor dimension is cut into blocks of {n}"),
        [rows, columns] if rank >= 2 => {
            format!("the two minor dimensions are cut into blocks of {}", rows_and_columns(rows, columns))
        }
        [rows, columns] => format!("blocks of {}, for an array of fewer dimensions", rows_and_columns(rows, columns)),
        _ if sizes.len() > rank => format!("blocks of {}, for an array of fewer dimensions", times(sizes)),
        _ => format!("the {} minor dimensions are cut into blocks of {}", sizes.len(), times(sizes)),
    }
}

/// Describes a later tile without `*`: if no longer than the tile before, it cuts each block again; if longer, it joins
/// neighbouring blocks.
fn later_tile_in_words(previous: &Tile, sizes: &[u64], cuts: &[Cut], bits: Option<u64>) -> String {
    let inside: Vec<u64> = previous.dimensions().iter().filter_map(|d| d.size()).collect();
    // Interleaving k elements of 32/k bits fills the words of a TPU's registers.
    let fills_word = |count: u64| bits.is_some_and(|bits| count.saturating_mul(bits) == 32);
    let across = sizes.len().saturating_sub(inside.len());
    let joined = &sizes[..across];
    let sizes = &sizes[across..];
    if joined.iter().all(|&size| size == 1) {
        return match *sizes {
            [rows, 1] if rows > 1 && fills_word(rows) => {
                format!("{rows} rows are interleaved, so each 32-bit word holds one column of {rows} rows")
            }
            [rows, 1] if rows > 1 => format!("{rows} rows are interleaved: each column of {rows} rows lies together"),
            [n] => format!("each block is cut again into runs of {n}"),
            _ => format!("each block is cut again into blocks of {}", times(sizes)),
        };
    }
    let count = product(joined);
    if let ([row], [1], [rows]) = (&inside[..], sizes, joined) {
        let what = format!("{rows} rows of {row} are interleaved");
        return match fills_word(*rows) {
            true => format!("{what}, so each 32-bit word holds one column of {rows} rows"),
            false => format!("{what}: each column of {rows} rows lies together"),
        };
    }
    let which = cuts.iter().zip(joined).filter(|(_, size)| **size > 1).filter_map(|(cut, _)| cut.axes.last());
    let counts: Vec<u64> = joined.iter().copied().filter(|&size| size > 1).collect();
    let taken = match *sizes {
        _ if sizes.iter().all(|&size| size == 1) && fills_word(count) => {
            "each 32-bit word holds the elements at the same place of each".into()
        }
        _ if sizes.iter().all(|&size| size == 1) => "the elements at the same place of each lie together".into(),
        _ if sizes == inside => "each is whole, one behind the other".into(),
        [rows, columns] => format!("{} of each lie together", rows_and_columns(rows, columns)),
        [n] => format!("{n} elements of each lie together"),
        _ => format!("{} elements of each lie together", times(sizes)),
    };
    format!(
        "{} neighbouring tiles {previous}{} are joined: {taken}",
        times(&counts),
        along(which.map(|axis| axis.origin))
    )
}

/// `1 row × 128 columns`
fn rows_and_columns(rows: u64, columns: u64) -> String {
    let s = |count: u64| if count == 1 { "" } else { "s" };
    format!("{rows} row{} × {columns} column{}", s(rows), s(columns))
}

/// ` along dimensions 0 and 1`
fn along(origins: impl Iterator<Item = Origin>) -> String {
    let dimensions: Option<Vec<usize>> = origins.map(Origin::dimension).collect();
    match dimensions.as_deref() {
        None | Some([]) => String::new(),
        Some([dimension]) => format!(" along dimension {dimension}"),
        Some([first @ .., last]) => format!(" along dimensions {} and {last}", listed(first)),
    }
}

fn product(sizes: &[u64]) -> u64 {
    sizes.iter().copied().fold(1, u64::saturating_mul)
}

fn order_in_words(layout: &Layout, letter: impl Fn(usize) -> Option<char>) -> String {
    let named = |&dimension: &usize| match letter(dimension) {
        Some(letter) => format!("{dimension} ({letter})"),
        None => format!("{dimension}"),
    };
    let separator = if letter(0).is_some() { ", " } else { "," };
    match layout.minor_to_major() {
        [_] => "one dimension".into(),
        [minor, rest @ ..] => {
            let name = match layout.order_name() {
                Some(name) => format!("{name} (dim 0 is {}): ", if name == "row-major" { "major" } else { "minor" }),
                None => String::new(),
            };
            let rest: Vec<String> = rest.iter().map(named).collect();
            format!("{name}dimension {} varies fastest, then {}", named(minor), rest.join(separator))
        }
        [] => String::new(),
    }
}

/// Maximum number of axes that are named one by one; beyond that, only their number is given.
const MOST_NAMED: usize = 8;

/// Describes a tile with `*`: the merged axes, the blocks cut from them, and the joined blocks of the tile before.
fn combined_in_words(tile: &Tile, cuts: &[Cut], previous: Option<&Tile>) -> String {
    let sizes: Vec<u64> = tile.dimensions().iter().filter_map(|d| d.size()).collect();
    let merges: Vec<&Cut> = cuts.iter().filter(|cut| cut.axes.len() > 1).collect();
    if merges.is_empty() || merges.iter().map(|cut| cut.axes.len()).sum::<usize>() > MOST_NAMED {
        let merged = tile.dimensions().iter().filter(|d| **d == TileDimension::Combined).count();
        let dimensions = if merged == 1 { "dimension is" } else { "dimensions are" };
        return format!(
            "{merged} {dimensions} merged into the next more minor, then cut into blocks of {}",
            times(&sizes)
        );
    }
    let merges: Vec<String> =
        merges.iter().map(|cut| format!("{} merge into one of {}", names(cut, previous), cut.bound())).collect();
    let cut_then = format!("{}, then blocks of {} are cut", merges.join(", "), times(&sizes));
    let Some(previous) = previous else { return cut_then };
    let joined: Option<u64> =
        cuts.iter().map(Cut::joins).try_fold(1, |count, cut| Some(u64::saturating_mul(count, cut?)));
    match joined {
        Some(1) => cut_then,
        Some(count) => format!("{cut_then}: each joins {count} neighbouring tiles {previous}"),
        None => format!("{cut_then}: they end inside tiles {previous}"),
    }
}

/// The axes of a cut: `dimensions 0 and 1`, or behind a tile `the number of tiles (2,4) along dimension 1 and dimension 0 inside the tile`.
fn names(cut: &Cut, previous: Option<&Tile>) -> String {
    let name = |of: &str, origin: Origin| match origin.dimension() {
        Some(dimension) => format!("{of}dimension {dimension}"),
        None if origin == Origin::Added => format!("{of}an added dimension"),
        None => format!("{of}merged dimensions"),
    };
    let Some(previous) = previous else {
        let dimensions: Option<Vec<usize>> = cut.axes.iter().map(|axis| axis.origin.dimension()).collect();
        return match dimensions.as_deref() {
            Some([first @ .., last]) => format!("dimensions {} and {last}", listed(first)),
            _ => cut.axes.iter().map(|axis| name("", axis.origin)).collect::<Vec<_>>().join(" and "),
        };
    };
    let (across, inside): (Vec<&CoveredAxis>, Vec<&CoveredAxis>) = cut.axes.iter().partition(|axis| axis.is_across);
    let mut all = Vec::new();
    if !across.is_empty() {
        let s = if across.len() == 1 { "" } else { "s" };
        all.push(format!("the number{s} of tiles {previous}{}", along(across.iter().map(|axis| axis.origin))));
    }
    all.extend(inside.iter().map(|axis| name("", axis.origin) + " inside the tile"));
    all.join(" and ")
}

fn times(sizes: &[u64]) -> String {
    sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ")
}

fn listed<T: core::fmt::Display>(items: &[T]) -> String {
    let mut list = String::new();
    // Writing to a string can't fail.
    let _ = join(&mut list, items);
    list
}

#[cfg(test)]
mod tests {
    use crate::Shape;
    use alloc::vec::Vec;

    fn words(text: &str) -> Vec<(alloc::string::String, alloc::string::String)> {
        let shape: Shape = text.parse().expect(text);
        let parts = shape.as_array().expect(text).layout_in_words();
        parts.into_iter().map(|part| (part.text, part.meaning)).collect()
    }

    #[test]
    fn every_part_is_told() {
        let parts = words("s4[64,256]{1,0:T(8,128)(8,1)L(4)E(4)S(1)SC(0:32)M(8)}");
        let texts: Vec<&str> = parts.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["1,0", "T(8,128)", "(8,1)", "L(4)", "E(4)", "S(1)", "SC(0:32)", "M(8)"]);
        assert_eq!(parts[2].1, "8 rows are interleaved, so each 32-bit word holds one column of 8 rows");
        assert_eq!(parts[4].1, "elements are packed, 4 bits each instead of 8");
    }

    #[test]
    fn merging_is_told() {
        let parts = words("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}");
        let merged = "dimensions 0,1 and 2 merge into one of 112, dimensions 3 and 4 merge into one of 110";
        assert_eq!(parts[1].1, alloc::format!("{merged}, then blocks of 2 × 3 are cut"));
        let parts = words("f32[?,8]{1,0:T(*,6)}");
        assert_eq!(parts[1].1, "1 dimension is merged into the next more minor, then cut into blocks of 6");
    }

    /// A later tile that is longer than the one before joins its tiles, side by side or one below the other.
    #[test]
    fn joined_tiles_are_told() {
        for (text, meaning) in [
            (
                "f32[4,8]{1,0:T(2,4)(2,2,1)}",
                "2 neighbouring tiles (2,4) along dimension 1 are joined: 2 rows × 1 column of each lie together",
            ),
            (
                "f32[8,8]{1,0:T(2,4)(4,2,2,4)}",
                "4 × 2 neighbouring tiles (2,4) along dimensions 0 and 1 are joined: each is whole, one behind the other",
            ),
            (
                "f32[4,8]{0,1:T(2,4)(2,2,1,1)}",
                "2 × 2 neighbouring tiles (2,4) along dimensions 1 and 0 are joined: the elements at the same place of each lie \
                 together",
            ),
            (
                "bf16[32,256]{1,0:T(8,128)(2,1,1,1)}",
                "2 neighbouring tiles (8,128) along dimension 0 are joined: each 32-bit word holds the elements at the same place of each",
            ),
            (
                "f32[3,4,8]{2,1,0:T(2,4)(3,1,1,2,4)}",
                "3 neighbouring tiles (2,4) along dimension 0 are joined: each is whole, one behind the other",
            ),
            (
                "f32[8,8]{1,0:T(2,4)(*,2,2,4)}",
                "the numbers of tiles (2,4) along dimensions 0 and 1 merge into one of 8, then blocks of 2 × 2 × 4 are cut: each \
                 joins 2 neighbouring tiles (2,4)",
            ),
            ("f32[4,8]{1,0:T(2,4)(1,2,1)}", "2 rows are interleaved: each column of 2 rows lies together"),
            (
                "bf16[5000]{0:T(1024)(128)(2,1)}",
                "2 rows of 128 are interleaved, so each 32-bit word holds one column of 2 rows",
            ),
            (
                "f32[4,8]{1,0:T(2,4)(*,4,1)}",
                "the number of tiles (2,4) along dimension 1 and dimension 0 inside the tile merge into one of 4, then blocks of \
                 4 × 1 are cut: each joins 2 neighbouring tiles (2,4)",
            ),
            (
                "f32[4,8]{1,0:T(2,4)(*,2,1)}",
                "the number of tiles (2,4) along dimension 1 and dimension 0 inside the tile merge into one of 4, then blocks of \
                 2 × 1 are cut",
            ),
            (
                "f32[4,8]{1,0:T(2,4)(*,3,1)}",
                "the number of tiles (2,4) along dimension 1 and dimension 0 inside the tile merge into one of 4, then blocks of \
                 3 × 1 are cut: they end inside tiles (2,4)",
            ),
            (
                "f32[4,8]{1,0:T(2,4)(2,*,1)}",
                "dimension 0 inside the tile and dimension 1 inside the tile merge into one of 8, then blocks of 2 × 1 are cut: each joins 2 neighbouring tiles (2,4)",
            ),
        ] {
            assert_eq!(words(text).last().map(|(_, words)| &**words), Some(meaning), "{text}");
        }
    }
}
