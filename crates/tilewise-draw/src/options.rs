//! Options of a picture: its content and colours.

use tilewise::Tiled;

/// The content of a picture.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum View {
    /// The array as a grid: each cell shows its offset in memory, coloured by tile, inner tiles outlined.
    Logical,
    /// Memory in its order: each cell shows the index of its element; padding is hatched.
    Memory,
    /// The array, and memory below it, in the same colours.
    #[default]
    Both,
    /// The elements that share each 32-bit word.
    Word,
    /// This layout and another one of the same array: the elements that move, and their new places.
    Compare(Box<Tiled>),
}

/// The colours of SVG and PNG pictures, and of colours in the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Theme {
    /// An SVG follows its viewer's `prefers-color-scheme`; everything else is light.
    #[default]
    Auto,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// The colours of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ColorMode {
    /// No escape sequence at all.
    #[default]
    None,
    /// The 256 colours of xterm.
    Palette256,
    /// 24-bit colours.
    TrueColor,
}

/// The content and look of a picture; the default is the array and its memory.
///
/// ```
/// use tilewise_draw::{Options, Scene, View};
///
/// let tiled = tilewise::Tiled::new(&"bf16[4,16,256]{2,1,0:T(8,128)(2,1)}".parse()?)?;
/// let options = Options::new().with_view(View::Logical).with_slice(0, 3).with_highlight([3, 1, 0]);
/// let scene = Scene::of(&tiled, &options).expect("an index inside the array");
/// assert!(scene.to_terminal(80).contains("dimension 0 (z) at 3 of size 4"));
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) view: View,
    pub(crate) slices: Vec<(i64, u64)>,
    pub(crate) highlight: Option<Vec<u64>>,
    pub(crate) theme: Theme,
    pub(crate) color: ColorMode,
    pub(crate) ascii: bool,
}

impl Options {
    /// The array and its memory, following the viewer's colour scheme, without colours in the terminal.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the content of the picture.
    #[must_use]
    pub fn with_view(mut self, view: View) -> Self {
        self.view = view;
        self
    }

    /// Draws the plane at this index of a dimension; a negative number counts from the last dimension, −1.
    ///
    /// A picture has two dimensions, the two fastest-varying of those that aren't sliced. All others are drawn at the
    /// highlighted index, or at 0.
    #[must_use]
    pub fn with_slice(mut self, dimension: i64, index: u64) -> Self {
        self.slices.push((dimension, index));
        self
    }

    /// Highlights one element, by its logical index, and follows it through its tiles to its offset.
    #[must_use]
    pub fn with_highlight(mut self, index: impl Into<Vec<u64>>) -> Self {
        self.highlight = Some(index.into());
        self
    }

    /// Sets the colours of SVG and PNG, and those of the terminal if it has any.
    #[must_use]
    pub fn with_theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// Sets the colours of the terminal.
    #[must_use]
    pub fn with_color(mut self, color: ColorMode) -> Self {
        self.color = color;
        self
    }

    /// Restricts terminal text to ASCII, for terminals without box drawing.
    #[must_use]
    pub fn with_ascii(mut self, ascii: bool) -> Self {
        self.ascii = ascii;
        self
    }
}
