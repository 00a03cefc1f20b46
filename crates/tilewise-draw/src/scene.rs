//! The contents of a picture, before it is laid out.

use crate::{Options, grid::Grid, palette::TILES, register::Register};

/// A picture of a layout: grids of cells with labels, ready to be written as SVG, terminal text or PNG.
///
/// Its size is bounded whatever the array's: for large arrays it holds the corners and the borders of tiles, and the
/// number of omitted cells.
///
/// ```
/// use tilewise_draw::{Options, Scene, View};
///
/// let tiled = tilewise::Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
/// let scene = Scene::of(&tiled, &Options::new().with_view(View::Logical)).expect("no index was given");
/// assert!(scene.to_svg().starts_with("<svg "));
/// assert!(scene.to_terminal(80).contains("│12 13│16 17│20  ╱│"));
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scene {
    /// One for each array, from the top to the bottom.
    pub(crate) sheets: Vec<Sheet>,
    pub(crate) options: Options,
}

/// The picture of one array.
#[derive(Clone, Debug)]
pub(crate) struct Sheet {
    pub(crate) title: String,
    /// Elements, padding and bytes, in words.
    pub(crate) summary: String,
    pub(crate) sliders: Vec<Slider>,
    pub(crate) panels: Vec<Panel>,
    pub(crate) legend: Vec<(Swatch, String)>,
    /// Whether more tiles, runs or words are drawn than there are colours.
    pub(crate) colors_repeat: bool,
    pub(crate) captions: Vec<String>,
}

/// The index of the drawn plane along a dimension that is not drawn.
#[derive(Clone, Debug)]
pub(crate) struct Slider {
    pub(crate) label: String,
    pub(crate) at: u64,
    pub(crate) size: u64,
}

/// One grid with its heading.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// Its name in the SVG.
    pub(crate) name: &'static str,
    pub(crate) heading: String,
    pub(crate) grid: Grid,
    /// The tile's shape in a TPU's registers.
    pub(crate) register: Option<Register>,
    /// Rows and columns of a tile, if a map shows the whole grid to scale when the grid leaves something out.
    pub(crate) mapped_tile: Option<(u64, u64)>,
    /// Whether to place it to the right of the panel before, if there is space.
    pub(crate) beside: bool,
}

impl Panel {
    pub(crate) fn of(name: &'static str, heading: impl Into<String>, grid: Grid) -> Self {
        Self { name, heading: heading.into(), grid, register: None, mapped_tile: None, beside: false }
    }
}

/// The entries of a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Swatch {
    /// One colour for each tile,
    Tiles,
    /// for each run along a dimension,
    Runs,
    /// for each 32-bit word.
    Words,
    OpenTile,
    /// Tiles that a later one joins.
    Joined,
    Inner,
    Deepest,
    /// Words alone.
    Unmarked,
    Padding,
    Highlight,
    Moved,
}

impl Sheet {
    /// The words of a swatch of several colours: the unit that has one colour each.
    pub(crate) fn per_color(&self, text: &str) -> String {
        let repeating = if self.colors_repeat { format!(", repeating after {TILES}") } else { String::new() };
        format!("one colour per {text}{repeating}")
    }
}

impl Swatch {
    /// The colours that stand for tiles.
    pub(crate) const COLORS: [usize; 3] = [0, 1, 2];
}
