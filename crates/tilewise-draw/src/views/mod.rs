//! Sheets: the panels of each view, their legend and captions.

mod array;
pub(crate) mod compare;
mod memory;
mod merged;
pub(crate) mod steps;
mod word;

use crate::{
    Error, Options, View,
    grid::{Colors, Edge, Kind},
    padded::{NO_BLOCK, PaddedArray, TILE},
    plane::Plane,
    scene::{Panel, Sheet, Slider, Swatch},
    text::{counted, grouped},
    trace,
};
use tilewise::{ArrayShape, Shape, Tile, Tiled};

/// A panel of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Array,
    Memory,
    WordsOfArray,
    Words,
}

/// The most sliders of dimensions that are not drawn; the rest are counted.
const MOST_SLIDERS: usize = 6;

/// One layout being drawn, in one plane: the source of every panel.
pub(crate) struct Drawing<'a> {
    pub(crate) tiled: &'a Tiled,
    pub(crate) padded: PaddedArray,
    pub(crate) plane: Plane,
    pub(crate) highlighted_index: Option<Vec<u64>>,
    pub(crate) highlighted_offset: Option<u64>,
    /// Tile sizes of another layout of the array, by dimension number; its borders are drawn, too.
    pub(crate) periods: Vec<Vec<u64>>,
}

/// The picture of one array with these options.
pub(crate) fn sheet_of(tiled: &Tiled, options: &Options) -> Result<Sheet, Error> {
    match &options.view {
        View::Compare(other) => compare::sheet(tiled, other, options),
        View::Logical => sheet(tiled, options, &[Part::Array]),
        View::Memory => sheet(tiled, options, &[Part::Memory]),
        View::Both => sheet(tiled, options, &[Part::Array, Part::Memory]),
        View::Word => sheet(tiled, options, &[Part::WordsOfArray, Part::Words]),
    }
}

fn sheet(tiled: &Tiled, options: &Options, parts: &[Part]) -> Result<Sheet, Error> {
    let drawing = Drawing::of(tiled, options)?;
    let mut colors = Colors::default();
    let mut panels = Vec::new();
    if tiled.tiled_elements() > 0 {
        for part in parts {
            panels.push(drawing.panel(*part, &mut colors));
            if *part == Part::Array {
                panels.extend(drawing.merged(&mut colors));
            }
        }
    }
    let words = parts.contains(&Part::Words);
    let legend = drawing.legend(&panels, words);
    let mut captions = drawing.captions(options, parts);
    if words {
        captions.extend(drawing.highlighted_offset.map(|offset| word::caption(tiled, offset)));
    }
    Ok(Sheet {
        title: title(tiled),
        summary: summary(tiled),
        sliders: drawing.sliders(),
        panels,
        legend,
        colors_repeat: colors.repeat(),
        captions,
    })
}

impl<'a> Drawing<'a> {
    pub(crate) fn of(tiled: &'a Tiled, options: &Options) -> Result<Self, Error> {
        let padded = PaddedArray::of(tiled);
        let plane = Plane::of(tiled, &padded, options)?;
        let highlighted_offset = options.highlight.as_ref().map(|index| tiled.offset_of(index)).transpose()?;
        let highlighted_index = options.highlight.clone();
        Ok(Self { tiled, padded, plane, highlighted_index, highlighted_offset, periods: Vec::new() })
    }

    fn panel(&self, part: Part, colors: &mut Colors) -> Panel {
        match part {
            Part::Array => self.array(colors),
            Part::Memory => self.memory(colors),
            Part::WordsOfArray => self.words_of_array(colors),
            Part::Words => self.words(colors),
        }
    }

    /// The colour key of a place: one for each tile, or, without tiles, for each run along the fastest dimension drawn.
    pub(crate) fn color_key(&self, place: &[u64]) -> Option<u64> {
        if self.padded.levels().is_empty() {
            return Some(self.slower_dimension().map_or(0, |dimension| place[dimension]));
        }
        Some(self.padded.blocks(place)[TILE])
    }

    /// The number of the tile at a place, counted along memory.
    pub(crate) fn tile(&self, place: &[u64]) -> Option<u64> {
        self.padded.levels().first()?;
        Some(self.padded.blocks(place)[TILE]).filter(|&tile| tile != NO_BLOCK)
    }

    /// Whether the tile at a place has elements outside the plane. The first and last in memory are the tile's corners.
    pub(crate) fn is_open(&self, place: &[u64]) -> bool {
        /// The longest padding inside a tile of merged dimensions (`*`), which has no place, behind its last element.
        const LONGEST_PADDING: u64 = 64;
        let Some(tile) = self.tile(place) else { return false };
        let length = self.padded.tile_length();
        let Some(first) = tile.checked_mul(length) else { return false };
        let ends = (length.saturating_sub(LONGEST_PADDING)..length).rev();
        let last = ends.filter_map(|at| self.padded.place_at(first.checked_add(at)?)).next();
        let mut corners = [self.padded.place_at(first), last].into_iter().flatten();
        // Later tiles can mix the elements of several tiles.
        corners.any(|corner| self.tile(&corner) == Some(tile) && !self.plane.holds(&corner))
    }

    /// The slower of the two dimensions drawn.
    fn slower_dimension(&self) -> Option<usize> {
        let (row, column) = (self.plane.row?, self.plane.column?);
        let fastest = self.padded.minor_to_major().find(|&dimension| dimension == row || dimension == column)?;
        Some(if fastest == row { column } else { row })
    }

    /// The kind of an offset: element, padding or tail.
    pub(crate) fn kind(&self, offset: u64) -> Kind {
        if offset >= self.tiled.tiled_elements() {
            return Kind::Tail;
        }
        match self.tiled.index_of(offset) {
            Ok(Some(_)) => Kind::Element,
            _ => Kind::Padding,
        }
    }

    /// The label of a dimension.
    pub(crate) fn dimension_label(&self, dimension: Option<usize>) -> String {
        let Some(dimension) = dimension else { return String::new() };
        match dimension.checked_sub(self.padded.added()) {
            Some(dimension) => dimension_label(self.tiled.array(), dimension),
            None => "added by the tile, size 1".to_owned(),
        }
    }

    fn sliders(&self) -> Vec<Slider> {
        let slider = |dimension: usize| Slider {
            label: named(self.tiled.array(), dimension - self.padded.added()),
            at: self.plane.at[dimension],
            size: self.padded.bounds()[dimension],
        };
        self.hidden().map(slider).take(MOST_SLIDERS).collect()
    }

    /// Dimensions that aren't drawn and have more than one index.
    fn hidden(&self) -> impl Iterator<Item = usize> + '_ {
        let drawn = [self.plane.row, self.plane.column];
        let own = self.padded.added()..self.padded.extents().len();
        own.filter(move |&dimension| !drawn.contains(&Some(dimension)) && self.padded.bounds()[dimension] > 1)
    }

    fn legend(&self, panels: &[Panel], words: bool) -> Vec<(Swatch, String)> {
        let cells = || panels.iter().flat_map(|panel| &panel.grid.cells);
        let mut legend = Vec::new();
        let tiles = self.padded.levels();
        let shown = cells().any(|cell| cell.color.is_some());
        match (words, tiles.first()) {
            _ if !shown => {}
            (true, _) => legend.push((Swatch::Words, word::unit(self.tiled).to_owned())),
            (false, Some(tile)) => legend.push((Swatch::Tiles, format!("tile {}", tile.tile()))),
            (false, None) => {
                if let (Some(_), Some(across)) = (self.plane.row, self.slower_dimension()) {
                    let along = if self.plane.row == Some(across) { self.plane.column } else { self.plane.row };
                    let along = along.map_or(0, |dimension| dimension - self.padded.added());
                    let run = format!("run along {}", named(self.tiled.array(), along));
                    legend.push((Swatch::Runs, run));
                }
            }
        }
        if !words && shown {
            self.name_later_tiles(panels, &mut legend);
        }
        if let Some(inner) = tiles.get(1).filter(|_| words && panels.iter().any(|panel| panel.grid.has(Edge::Inner))) {
            legend.push((Swatch::Inner, format!("tile {}", inner.tile())));
        }
        if cells().any(|cell| cell.content.is_open) {
            legend.push((Swatch::OpenTile, "a tile that goes on outside this plane".to_owned()));
        }
        if cells().any(|cell| cell.content.kind != Kind::Element) {
            legend.push((Swatch::Padding, "padding".to_owned()));
        }
        if cells().any(|cell| cell.content.highlighted) {
            legend.push((Swatch::Highlight, "the element followed below".to_owned()));
        }
        legend
    }

    /// Names the later tiles that join or cut others, with a border or without.
    fn name_later_tiles(&self, panels: &[Panel], legend: &mut Vec<(Swatch, String)>) {
        /// The most tiles that are named; more are counted.
        const MOST_NAMED: usize = 6;
        let tiles = self.tiled.array().layout().map_or(&[][..], |layout| layout.tiles());
        let joined = self.padded.joined();
        let (joining, cutting): (Vec<_>, Vec<_>) = tiles
            .iter()
            .enumerate()
            .skip(1)
            .take(MOST_NAMED)
            .partition(|(level, _)| joined.is_some_and(|joined| joined.levels().contains(level)));
        let names =
            |tiles: &[(usize, &Tile)]| tiles.iter().map(|(_, tile)| tile.to_string()).collect::<Vec<_>>().join(" and ");
        if let Some(joined) = joined {
            let dimensions: Vec<String> = joined.dimensions().iter().map(|&dimension| self.named(dimension)).collect();
            let along =
                if dimensions.is_empty() { String::new() } else { format!(" along {}", dimensions.join(" and ")) };
            let words = format!("{} tiles{along} joined by {}", grouped(joined.count()), names(&joining));
            legend.push((Swatch::Joined, words));
        }
        let more = tiles.len().saturating_sub(1 + MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let has = |edge| panels.iter().any(|panel| panel.grid.has(edge));
        match (has(Edge::Inner), cutting.is_empty()) {
            // Inside a tile, a joining tile is outlined as far as it reaches there.
            (true, true) => legend.push((Swatch::Inner, format!("part of a tile {}{more}", names(&joining)))),
            (true, false) => {
                // Dimensions merged by `*` may reach from tile to tile.
                let is_inside =
                    cutting.iter().all(|(_, tile)| tile.dimensions().iter().all(|size| size.size().is_some()));
                let inside = if is_inside { " inside it" } else { "" };
                // Each level has a frame of its own.
                let (framed, rest) = cutting.split_at(if has(Edge::Deepest) { 1 } else { cutting.len() });
                let more_here = if rest.is_empty() { &*more } else { "" };
                legend.push((Swatch::Inner, format!("tile {}{more_here}{inside}", names(framed))));
                if !rest.is_empty() {
                    legend.push((Swatch::Deepest, format!("tile {}{more} inside that", names(rest))));
                }
            }
            (false, true) => {}
            (false, false) => {
                legend.push((Swatch::Unmarked, format!("then {}{more}, without a border here", names(&cutting))));
            }
        }
    }

    /// A dimension of the padded array.
    fn named(&self, dimension: usize) -> String {
        match dimension.checked_sub(self.padded.added()) {
            Some(own) => named(self.tiled.array(), own),
            None => "a dimension added by the tile".to_owned(),
        }
    }

    fn captions(&self, options: &Options, parts: &[Part]) -> Vec<String> {
        let mut captions = Vec::new();
        if self.tiled.tiled_elements() == 0 {
            captions.push("The array has no elements, so there is nothing to draw: it takes 0 bytes.".to_owned());
            return captions;
        }
        if let Some(index) = &options.highlight {
            captions.extend(trace::captions(self.tiled, index));
            if self.plane.focus.is_none() {
                captions.push("This element lies outside the slice that is drawn.".to_owned());
            }
        }
        if let Some(more @ 1..) = self.hidden().count().checked_sub(MOST_SLIDERS) {
            captions.push(format!("One index is drawn of {}, too.", counted(more as u64, "more dimension")));
        }
        let places = self.padded.extents().iter().fold(1, |product: u64, &extent| product.saturating_mul(extent));
        let elsewhere = self.tiled.physical_elements().saturating_sub(places);
        if elsewhere > 0 && !parts.contains(&Part::Memory) {
            let padding = counted(elsewhere, "more place");
            captions.push(format!("{padding} of padding belong to no row and column; the memory view shows them."));
        }
        captions
    }
}

pub(crate) fn title(tiled: &Tiled) -> String {
    Shape::from(tiled.array().clone()).to_string()
}

/// The elements, padding and bytes of a layout, in words.
pub(crate) fn summary(tiled: &Tiled) -> String {
    let elements = tiled.logical_dimensions().iter().fold(1, |product: u64, &bound| product.saturating_mul(bound));
    let padding = tiled.physical_elements().saturating_sub(elements);
    let bytes = match (tiled.logical_bytes(), tiled.physical_bytes()) {
        (logical, physical) if logical == physical => format!("{}.", counted(physical, "byte")),
        (logical, physical) => format!("{} of data take {}.", counted(logical, "byte"), grouped(physical)),
    };
    let elements_in_words = counted(elements, "element");
    match padding {
        0 => format!("{elements_in_words}, no padding, {bytes}"),
        _ => {
            let places = grouped(tiled.physical_elements());
            let are = if padding == 1 { "is" } else { "are" };
            format!("{elements_in_words} in {places} places, {} {are} padding; {bytes}", grouped(padding))
        }
    }
}

/// `dimension 1 (x)`
pub(crate) fn named(array: &ArrayShape, dimension: usize) -> String {
    match array.dimension_letter(dimension) {
        Some(letter) => format!("dimension {dimension} ({letter})"),
        None => format!("dimension {dimension}"),
    }
}

/// `dimension 1 (x), size 5`
fn dimension_label(array: &ArrayShape, dimension: usize) -> String {
    let size = array.dimensions().get(dimension).copied().unwrap_or_default();
    let bound = grouped(size.bound().unwrap_or(0));
    let at_most = if size.is_dynamic() { "at most " } else { "" };
    format!("{}, size {at_most}{bound}", named(array, dimension))
}

/// The most columns drawn of cells with texts of that many characters.
pub(crate) fn most_columns(characters: usize) -> usize {
    match characters {
        0..=4 => 12,
        5..=6 => 10,
        7..=9 => 8,
        _ => 6,
    }
}

/// The most rows drawn.
pub(crate) const MOST_ROWS: usize = 12;
