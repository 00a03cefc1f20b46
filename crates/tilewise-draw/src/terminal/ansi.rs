//! Characters and ANSI escape sequences, as far as the terminal shows them.

use crate::{
    ColorMode, Options, Theme,
    grid::Edge,
    palette::{Color, DARK, LIGHT, Palette, Rgb},
};

pub(crate) struct Ansi {
    mode: ColorMode,
    ascii: bool,
    palette: &'static Palette,
}

/// The look of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CellStyle {
    /// The number of a tile's colour.
    pub(crate) color: Option<usize>,
    pub(crate) highlighted: bool,
    pub(crate) muted: bool,
}

impl Ansi {
    pub(crate) fn new(options: &Options) -> Self {
        let palette = if options.theme == Theme::Dark { &DARK } else { &LIGHT };
        Self { mode: options.color, ascii: options.ascii, palette }
    }

    /// Text in the characters that the terminal has.
    pub(crate) fn plain(&self, text: &str) -> String {
        if !self.ascii {
            return text.to_owned();
        }
        let mut plain = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '→' => plain.push_str("->"),
                '↓' => plain.push('v'),
                '…' => plain.push_str("..."),
                '–' | '−' => plain.push('-'),
                '×' => plain.push('x'),
                '·' => plain.push('*'),
                '≤' => plain.push_str("<="),
                c if c.is_ascii() => plain.push(c),
                _ => plain.push('?'),
            }
        }
        plain
    }

    pub(crate) fn is_colored(&self) -> bool {
        self.mode != ColorMode::None
    }

    pub(crate) fn is_ascii(&self) -> bool {
        self.ascii
    }

    /// A mark that points upwards.
    pub(crate) fn upward(&self) -> char {
        if self.ascii { '^' } else { '▲' }
    }

    pub(crate) fn padding(&self) -> char {
        if self.ascii { '.' } else { '╱' }
    }

    pub(crate) fn mark(&self) -> char {
        if self.ascii { '#' } else { '●' }
    }

    pub(crate) fn dot(&self) -> char {
        if self.ascii { '-' } else { '○' }
    }

    /// The character for a link whose element stays, or moves.
    pub(crate) fn link(&self, moved: bool) -> char {
        match (moved, self.ascii) {
            (false, false) => '│',
            (false, true) => '|',
            (true, false) => '╳',
            (true, true) => 'X',
        }
    }

    pub(crate) fn vertical(&self, edge: Edge) -> char {
        match (edge, self.ascii) {
            (Edge::None, _) => ' ',
            (Edge::Joined, false) => '║',
            (Edge::Joined, true) => '#',
            (Edge::Tile, false) => '│',
            (Edge::Tile, true) => '|',
            (Edge::Inner, false) => '┊',
            (Edge::Inner, true) => ':',
            (Edge::Deepest, false) => '┆',
            (Edge::Deepest, true) => ';',
        }
    }

    pub(crate) fn horizontal(&self, edge: Edge) -> char {
        match (edge, self.ascii) {
            (Edge::None, _) => ' ',
            (Edge::Joined, false) => '═',
            (Edge::Joined, true) => '=',
            (Edge::Tile, false) => '─',
            (Edge::Tile, true) => '-',
            (Edge::Inner, false) => '┄',
            (Edge::Inner, true) => '.',
            (Edge::Deepest, false) => '┈',
            (Edge::Deepest, true) => ',',
        }
    }

    /// Where borders meet: those to the left, to the right, upwards and downwards.
    pub(crate) fn corner(&self, [left, right, up, down]: [Edge; 4]) -> char {
        let [has_left, has_right, has_up, has_down] =
            [left, right, up, down].map(|edge| matches!(edge, Edge::Joined | Edge::Tile));
        // Lines with one stroke; with two across; with two along; with two both ways.
        let corners = match [has_left, has_right, has_up, has_down] {
            [false, false, false, false] => {
                let (across, along) = (left.max(right), up.max(down));
                return match (across, along) {
                    (Edge::None, along) => self.vertical(along),
                    (across, Edge::None) => self.horizontal(across),
                    _ => self.vertical(Edge::Inner),
                };
            }
            [_, _, false, false] => ['─', '═', '─', '═'],
            [false, false, _, _] => ['│', '│', '║', '║'],
            [false, true, false, true] => ['┌', '╒', '╓', '╔'],
            [true, false, false, true] => ['┐', '╕', '╖', '╗'],
            [false, true, true, false] => ['└', '╘', '╙', '╚'],
            [true, false, true, false] => ['┘', '╛', '╜', '╝'],
            [false, true, true, true] => ['├', '╞', '╟', '╠'],
            [true, false, true, true] => ['┤', '╡', '╢', '╣'],
            [true, true, false, true] => ['┬', '╤', '╥', '╦'],
            [true, true, true, false] => ['┴', '╧', '╨', '╩'],
            [true, true, true, true] => ['┼', '╪', '╫', '╬'],
        };
        let is_joined = |a, b| a == Edge::Joined || b == Edge::Joined;
        let (across, along) = (is_joined(left, right), is_joined(up, down));
        match (self.ascii, corners[0]) {
            (false, _) => corners[usize::from(across) + 2 * usize::from(along)],
            (true, '─') => self.horizontal(if across { Edge::Joined } else { Edge::Tile }),
            (true, '│') => self.vertical(if along { Edge::Joined } else { Edge::Tile }),
            (true, _) if across || along => '#',
            (true, _) => '+',
        }
    }

    pub(crate) fn strong(&self, text: &str) -> String {
        self.wrapped("1", text)
    }

    pub(crate) fn muted(&self, text: &str) -> String {
        self.wrapped("2", text)
    }

    pub(crate) fn cell(&self, style: CellStyle, text: &str) -> String {
        if self.mode == ColorMode::None || style == CellStyle::default() {
            return text.to_owned();
        }
        let mut codes: Vec<String> = Vec::new();
        if let Some(color) = style.color {
            codes.push(self.color(48, self.palette.rgb(Color::Tile(color))));
            codes.push(self.color(38, self.palette.rgb(Color::OnTile)));
        } else if style.muted {
            codes.push("2".to_owned());
        }
        if style.highlighted {
            codes.push("1;7".to_owned());
        }
        self.wrapped(&codes.join(";"), text)
    }

    fn wrapped(&self, codes: &str, text: &str) -> String {
        if self.mode == ColorMode::None || text.trim().is_empty() && !codes.contains("8;") {
            return text.to_owned();
        }
        format!("\x1b[{codes}m{text}\x1b[0m")
    }

    fn color(&self, ground: u8, [r, g, b]: Rgb) -> String {
        if self.mode == ColorMode::TrueColor {
            return format!("{ground};2;{r};{g};{b}");
        }
        // The nearest of xterm's 6 × 6 × 6 cube, whose steps are 0, 95, 135, 175, 215 and 255.
        let step = |c: u8| match c {
            0..48 => 0,
            48..115 => 1,
            _ => (u16::from(c) - 35) / 40,
        };
        format!("{ground};5;{}", 16 + 36 * step(r) + 6 * step(g) + step(b))
    }
}
