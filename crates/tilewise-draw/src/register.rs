//! A tile as a part of a TPU's vector register, which is 8 sublanes of 128 lanes of 32-bit words (TPU system
//! architecture, and the layouts that its compiler chooses).

use crate::{
    padded::{LEVELS, PaddedArray},
    plane::Plane,
    text::bytes,
};
use tilewise::{TileLevel, Tiled};

const LANES: u64 = 128;
const SUBLANES: u64 = 8;
const WORD: u64 = 32;

/// The first tile of a picture, in terms of registers.
#[derive(Clone, Debug)]
pub(crate) struct Register {
    /// `one vreg (4 KiB)`
    pub(crate) share: String,
    pub(crate) rows: Option<Bracket>,
    pub(crate) columns: Option<Bracket>,
}

/// The name of an axis of the first tile.
#[derive(Clone, Debug)]
pub(crate) struct Bracket {
    /// The number of tracks it spans, from the first on.
    pub(crate) tracks: u64,
    pub(crate) text: String,
}

impl Register {
    /// `None` for tiles that no TPU has.
    pub(crate) fn of(tiled: &Tiled, padded: &PaddedArray, plane: &Plane) -> Option<Self> {
        let bits = tiled.stored_bits();
        let pack = WORD.checked_div(bits).filter(|pack| pack * bits == WORD)?;
        // No TPU nests that many tiles.
        tiled.array().layout().filter(|layout| layout.tiles().len() <= LEVELS)?;
        let levels = tiled.tile_levels();
        let first = levels.first().filter(|_| levels.iter().all(is_plain))?;
        let is_line = first.block_axes() == 1;
        // Memory inside one block of the first tile.
        let blocks = first.physical_dimensions().len() - first.block_axes();
        let sublanes = match tiled.physical_dimensions()[blocks..] {
            [sublanes, LANES] if pack == 1 => sublanes,
            [length] if pack == 1 => length / LANES,
            [sublanes, LANES, rows, 1] if pack > 1 && rows == pack => sublanes,
            _ => return None,
        };
        let height = sublanes.saturating_mul(pack);
        if height.saturating_mul(LANES) != first.block_elements() {
            return None;
        }
        let share = match sublanes {
            SUBLANES => "one vreg",
            4 => "half a vreg",
            2 => "a quarter of a vreg",
            1 => "an eighth of a vreg",
            _ => return None,
        };
        let size = height * LANES * bits / 8;
        let mut minor_to_major = padded.minor_to_major();
        let (minor, second) = (minor_to_major.next(), minor_to_major.next());
        let bracket = |dimension: Option<usize>, track: &str| {
            let tracks = padded.block_extent(0, dimension?);
            let packed = if pack == 1 { String::new() } else { format!(" × {pack}") };
            let sublanes = format!("{sublanes} sublane{}{packed}", if sublanes == 1 { "" } else { "s" });
            let text = match (is_line, dimension) {
                (true, dimension) if dimension == minor && tracks == height * LANES => {
                    format!("{sublanes} × {LANES} lanes")
                }
                (false, dimension) if dimension == minor && tracks == LANES => format!("{LANES} lanes"),
                (false, dimension) if dimension == second && tracks == height => match pack {
                    1 => sublanes,
                    _ => format!("{height} {track} = {sublanes}"),
                },
                _ => return None,
            };
            Some(Bracket { tracks, text })
        };
        let (rows, columns) = (bracket(plane.row, "rows"), bracket(plane.column, "columns"));
        let share = format!("{share} ({})", bytes(u128::from(size)).replace(".00 ", " "));
        (rows.is_some() || columns.is_some()).then_some(Self { share, rows, columns })
    }
}

/// Whether the level's tile has no `*`.
fn is_plain(level: &TileLevel) -> bool {
    level.tile().dimensions().len() == level.block_axes()
}
