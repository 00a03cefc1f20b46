//! What each part of a layout means, in a sentence.

use crate::{ArrayShape, Layout, Tile, TileDimension, text::join, tpu::memory_space_name};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// One part of a layout's text, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayoutPart {
    /// Which part it is.
    pub kind: LayoutPartKind,
    /// The part as it is written, such as `T(8,128)` or `E(4)`.
    pub text: String,
    /// What it says, in a sentence without a full stop.
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
    /// How one dimension is split between memories, `SC(0:64)`.
    Split,
    /// Bytes in front of the data, `M(4)`.
    MetadataPrefix,
}

impl ArrayShape {
    /// What each part of the layout means, in the order of the text; empty without a layout.
    ///
    /// Tiles are told as what they do to memory: `(8,128)` cuts blocks, and on a TPU `(2,1)` after it interleaves rows.
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
        use LayoutPartKind::{
            ElementSize, IndexType, MemorySpace, MetadataPrefix, Order, PointerType, Split, TailPadding, Tile,
        };
        let Some(layout) = self.layout() else { return Vec::new() };
        let mut parts = Vec::new();
        let mut part = |kind, text: String, meaning: String| parts.push(LayoutPart { kind, text, meaning });
        if self.rank() > 0 {
            part(Order, listed(layout.minor_to_major()), order_in_words(layout));
        }
        for (level, tile) in layout.tiles().iter().enumerate() {
            let prefix = if level == 0 { "T" } else { "" };
            part(Tile, format!("{prefix}{tile}"), self.tile_in_words(level, tile));
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
                part(
                    kind,
                    format!("{sign}({named})"),
                    format!("{role} type of a sparse array, which XLA no longer validates"),
                );
            }
        }
        if let Some(bits) = layout.element_size_in_bits() {
            part(ElementSize, format!("E({bits})"), self.element_size_in_words(bits));
        }
        if layout.memory_space() != 0 {
            let space = layout.memory_space();
            part(
                MemorySpace,
                format!("S({space})"),
                format!("in memory space {space}, {} on a TPU", memory_space_name(space)),
            );
        }
        for split in layout.split_configs() {
            let meaning =
                format!("physical dimension {} is split between memories before these indices", split.dimension);
            part(Split, format!("SC({}:{})", split.dimension, listed(&split.split_indices)), meaning);
        }
        if layout.dynamic_shape_metadata_prefix_bytes() != 0 {
            let n = layout.dynamic_shape_metadata_prefix_bytes();
            part(
                MetadataPrefix,
                format!("M({n})"),
                format!("{n} bytes of run-time dimension sizes stand in front of the data"),
            );
        }
        parts
    }

    fn element_size_in_words(&self, bits: u64) -> String {
        let natural = u64::from(self.element_type().natural_bits());
        match bits.cmp(&natural) {
            core::cmp::Ordering::Equal => format!("each element takes {bits} bits, its natural size"),
            core::cmp::Ordering::Less => format!("elements are packed, {bits} bits each instead of {natural}"),
            core::cmp::Ordering::Greater => format!("each element takes {bits} bits instead of its natural {natural}"),
        }
    }

    fn tile_in_words(&self, level: usize, tile: &Tile) -> String {
        let sizes: Option<Vec<u64>> = tile.dimensions().iter().map(|d| d.size()).collect();
        let Some(sizes) = sizes else { return combined_in_words(tile) };
        let bits = self.stored_bits();
        match (level, &sizes[..]) {
            (0, [n]) if self.rank() == 0 => format!("the scalar is padded to {n} elements"),
            (0, [n]) => format!("the minor dimension is cut into blocks of {n}"),
            (0, [rows, columns]) if self.rank() >= 2 => {
                format!("the two minor dimensions are cut into blocks of {rows} rows × {columns} columns")
            }
            (0, [rows, columns]) => {
                format!("blocks of {rows} rows × {columns} columns, for an array of fewer dimensions")
            }
            (0, sizes) => format!("the {} minor dimensions are cut into blocks of {}", sizes.len(), times(sizes)),
            // Interleaving k elements of 32/k bits is what fills the words of a TPU's registers.
            (_, [rows, 1]) if *rows > 1 && rows.saturating_mul(bits) == 32 => {
                format!("{rows} rows are interleaved, so each 32-bit word holds one column of {rows} rows")
            }
            (_, [rows, 1]) if *rows > 1 => {
                format!("{rows} rows are interleaved: each column of {rows} rows lies together")
            }
            (_, [n]) => format!("each block is cut again into runs of {n}"),
            (_, sizes) => format!("each block is cut again into blocks of {}", times(sizes)),
        }
    }
}

fn order_in_words(layout: &Layout) -> String {
    match layout.minor_to_major() {
        [_] => "one dimension".into(),
        [minor, rest @ ..] => {
            format!("{}: dimension {minor} varies fastest, then {}", layout.order_name(), listed(rest))
        }
        [] => String::new(),
    }
}

fn combined_in_words(tile: &Tile) -> String {
    let merged = tile.dimensions().iter().filter(|d| **d == TileDimension::Combined).count();
    let sizes: Vec<u64> = tile.dimensions().iter().filter_map(|d| d.size()).collect();
    let dimensions = if merged == 1 { "dimension is" } else { "dimensions are" };
    format!("{merged} {dimensions} merged into the next more minor, then cut into blocks of {}", times(&sizes))
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
        assert_eq!(parts[1].1, "3 dimensions are merged into the next more minor, then cut into blocks of 2 × 3");
    }
}
