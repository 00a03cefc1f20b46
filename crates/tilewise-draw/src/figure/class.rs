//! Classes of marks and their colours, widths and sizes, shared by SVG's style sheet and PNG's painter.

use crate::palette::Color;

/// The class of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Background,
    /// A cell in the colour of its tile; one of padding has none.
    Cell(Option<usize>),
    /// A sample in the legend: a tile's colour, or the hatching of padding.
    Swatch(Option<usize>),
    /// A mark on what moved, or on a slider.
    Accent,
    /// The border of a tile.
    Tile,
    /// The border of a tile that continues outside the drawn plane.
    OpenTile,
    /// The border of a tile inside a tile,
    Inner,
    /// and of one inside that.
    Deepest,
    /// The outline of a map; in the legend, a line of a double border.
    Outline,
    /// The double border of tiles that a later tile joins, and the middle between its lines.
    Joined,
    JoinedMiddle,
    /// A bracket along an axis.
    Bracket,
    /// All elements of a map.
    Extent,
    Link,
    MovedLink,
    /// A dimension that isn't drawn, or a line of an axis across a plot.
    Rail,
    /// The ring around a highlighted cell.
    Ring,
    /// The margin that separates the ring from its neighbours.
    Halo,
    /// A part of a program's memory.
    Part(Part),
    /// An allocation, apart from its neighbours.
    Block(Part),
    /// The share of a part or an allocation that is padding, over its colour.
    Padded,
    /// The upper edge of all parts.
    Crest,
    /// The moment of the peak.
    Peak,
    /// The size of the memory.
    Limit,
}

/// The owner of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Arguments and outputs: there for the whole run.
    Resident,
    /// An owner with a colour of its own, by its number.
    Owner(usize),
    /// All other owners.
    Other,
}

/// The look of the inside of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    None,
    Plain(Color),
    /// Padding: lines of [`HATCH_WIDTH`] every [`HATCH_SPACING`], from bottom left to top right.
    Hatched,
    /// Padding within a colour: the background shows in stripes of [`STRIPE_WIDTH`], spaced and directed the same.
    Striped,
}

pub(crate) const HATCH_SPACING: f64 = 6.0;
pub(crate) const HATCH_WIDTH: f64 = 1.2;
/// The length of dashes and of the spaces between them; a cell's sides are longer.
pub(crate) const DASH: f64 = 5.0;
pub(crate) const STRIPE_WIDTH: f64 = 2.4;

impl Class {
    /// The classes without a tile's number.
    pub(crate) const SINGLE: [Self; 13] = [
        Self::Background,
        Self::Accent,
        Self::Tile,
        Self::OpenTile,
        Self::Inner,
        Self::Outline,
        Self::Bracket,
        Self::Extent,
        Self::Link,
        Self::MovedLink,
        Self::Rail,
        Self::Ring,
        Self::Halo,
    ];

    /// The classes of joined tiles, and of a third level, which few pictures have.
    pub(crate) const OF_JOINED: [Self; 2] = [Self::Joined, Self::JoinedMiddle];
    pub(crate) const OF_DEEPEST: [Self; 1] = [Self::Deepest];

    /// The classes of pictures of plans only.
    pub(crate) const OF_PLAN: [Self; 6] =
        [Self::Part(Part::Resident), Self::Part(Part::Other), Self::Padded, Self::Crest, Self::Peak, Self::Limit];

    pub(crate) fn fill(self) -> Fill {
        match self {
            Self::Background => Fill::Plain(Color::Background),
            Self::Cell(tile) | Self::Swatch(tile) => tile.map_or(Fill::Hatched, |tile| Fill::Plain(Color::Tile(tile))),
            Self::Accent => Fill::Plain(Color::Accent),
            Self::Part(part) | Self::Block(part) => Fill::Plain(match part {
                Part::Resident => Color::Resident,
                Part::Owner(number) => Color::Tile(number),
                Part::Other => Color::Other,
            }),
            Self::Padded => Fill::Striped,
            Self::Extent => Fill::Plain(Color::Other),
            Self::Tile
            | Self::OpenTile
            | Self::Inner
            | Self::Deepest
            | Self::Outline
            | Self::Joined
            | Self::JoinedMiddle
            | Self::Bracket
            | Self::Link
            | Self::MovedLink
            | Self::Rail
            | Self::Ring
            | Self::Halo => Fill::None,
            Self::Crest | Self::Peak | Self::Limit => Fill::None,
        }
    }

    /// The lengths of an outline's dashes and of the spaces between them; `None` for a solid line.
    pub(crate) fn dashes(self) -> Option<f64> {
        (self == Self::OpenTile).then_some(DASH)
    }

    /// The outline's colour and width; all outlines have square ends.
    pub(crate) fn stroke(self) -> Option<(Color, f64)> {
        match self {
            Self::Background | Self::Swatch(Some(_)) | Self::Accent | Self::Extent | Self::Part(_) | Self::Padded => {
                None
            }
            Self::Cell(_) | Self::Block(_) => Some((Color::Hairline, 1.0)),
            Self::Swatch(None) | Self::Rail => Some((Color::Hatch, 1.0)),
            Self::Bracket => Some((Color::Muted, 1.0)),
            Self::OpenTile => Some((Color::Foreground, 2.2)),
            Self::Tile => Some((Color::Foreground, 2.8)),
            Self::Inner => Some((Color::Frame(0), 1.6)),
            Self::Deepest => Some((Color::Frame(1), 1.4)),
            Self::Outline => Some((Color::Foreground, 1.3)),
            Self::Joined => Some((Color::Foreground, 5.2)),
            Self::JoinedMiddle => Some((Color::Background, 1.8)),
            Self::Link => Some((Color::Hatch, 1.2)),
            Self::MovedLink => Some((Color::Accent, 1.6)),
            Self::Ring => Some((Color::Accent, 3.5)),
            Self::Halo => Some((Color::Background, 7.0)),
            Self::Crest => Some((Color::Foreground, 1.2)),
            Self::Peak => Some((Color::Accent, 1.4)),
            Self::Limit => Some((Color::Foreground, 1.6)),
        }
    }
}

/// The style of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Title,
    Heading,
    Text,
    /// Text of less weight.
    Aside,
    /// At axes and gaps.
    Label,
    /// In a cell.
    Cell,
    /// Smaller, below the text of a cell,
    Note,
    /// and of less weight.
    Byte,
}

impl Style {
    pub(crate) const fn size(self) -> f64 {
        match self {
            Self::Title => 17.0,
            Self::Heading => 13.0,
            Self::Text | Self::Aside => 12.5,
            Self::Label => 11.5,
            Self::Cell => 14.0,
            Self::Note => 11.0,
            Self::Byte => 10.5,
        }
    }

    pub(crate) fn is_strong(self) -> bool {
        matches!(self, Self::Title | Self::Heading)
    }

    pub(crate) fn color(self) -> Color {
        match self {
            Self::Title | Self::Heading | Self::Text => Color::Foreground,
            Self::Aside | Self::Label => Color::Muted,
            Self::Cell | Self::Note => Color::OnTile,
            Self::Byte => Color::OnTileAside,
        }
    }
}
