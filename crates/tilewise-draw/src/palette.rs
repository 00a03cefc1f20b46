//! Colours that people with any colour vision tell apart, each with text that is readable on it.
//!
//! The light ones are Paul Tol's *light* scheme, made for filling labelled cells; the dark ones have its hues.

/// How many colours tiles have.
pub(crate) const TILES: usize = 8;

/// Red, green and blue.
pub(crate) type Rgb = [u8; 3];

/// The roles of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Color {
    Background,
    /// Text, and the borders of tiles and of tiles within tiles.
    Foreground,
    /// Labels.
    Muted,
    /// Lines between cells.
    Hairline,
    Padding,
    /// The lines padding is hatched with.
    Hatch,
    /// For what is highlighted or moved.
    Accent,
    /// A tile, by the number of its colour.
    Tile(usize),
    /// Memory that stands for a whole run,
    Resident,
    /// and memory without a colour of its own.
    Other,
    /// Text on tiles.
    OnTile,
    /// Text of less weight on tiles.
    OnTileAside,
}

/// The RGB value of each role.
pub(crate) struct Palette {
    background: Rgb,
    foreground: Rgb,
    muted: Rgb,
    hairline: Rgb,
    padding: Rgb,
    hatch: Rgb,
    accent: Rgb,
    tiles: [Rgb; TILES],
    resident: Rgb,
    other: Rgb,
    on_tile: Rgb,
    on_tile_aside: Rgb,
}

impl Palette {
    pub(crate) fn rgb(&self, color: Color) -> Rgb {
        match color {
            Color::Background => self.background,
            Color::Foreground => self.foreground,
            Color::Muted => self.muted,
            Color::Hairline => self.hairline,
            Color::Padding => self.padding,
            Color::Hatch => self.hatch,
            Color::Accent => self.accent,
            Color::Tile(number) => self.tiles[number % TILES],
            Color::Resident => self.resident,
            Color::Other => self.other,
            Color::OnTile => self.on_tile,
            Color::OnTileAside => self.on_tile_aside,
        }
    }
}

pub(crate) const LIGHT: Palette = Palette {
    background: [0xff, 0xff, 0xff],
    foreground: [0x1b, 0x1f, 0x24],
    muted: [0x57, 0x60, 0x6a],
    hairline: [0xff, 0xff, 0xff],
    padding: [0xff, 0xff, 0xff],
    hatch: [0xd0, 0xd7, 0xde],
    accent: [0xb3, 0x00, 0x4b],
    tiles: [
        [0x8f, 0xbb, 0xe8],
        [0xf4, 0xa5, 0x82],
        [0xf0, 0xe0, 0x94],
        [0xf7, 0xb9, 0xcb],
        [0x7f, 0xd1, 0xb5],
        [0xa9, 0xe4, 0xff],
        [0xc9, 0xd3, 0x65],
        [0xcf, 0xc3, 0xe8],
    ],
    resident: [0xd9, 0xdf, 0xe5],
    other: [0xae, 0xb7, 0xc0],
    on_tile: [0x14, 0x17, 0x1a],
    on_tile_aside: [0x3d, 0x44, 0x4c],
};

pub(crate) const DARK: Palette = Palette {
    background: [0x0d, 0x11, 0x17],
    foreground: [0xe6, 0xed, 0xf3],
    muted: [0x9d, 0xa7, 0xb3],
    hairline: [0x0d, 0x11, 0x17],
    padding: [0x0d, 0x11, 0x17],
    hatch: [0x3a, 0x42, 0x4d],
    accent: [0xff, 0x8f, 0xb8],
    tiles: [
        [0x24, 0x54, 0x8c],
        [0x94, 0x46, 0x22],
        [0x6e, 0x5c, 0x12],
        [0x8c, 0x3a, 0x58],
        [0x14, 0x66, 0x4e],
        [0x1b, 0x6b, 0x86],
        [0x58, 0x66, 0x16],
        [0x5b, 0x4a, 0x8e],
    ],
    resident: [0x2a, 0x31, 0x3a],
    other: [0x4c, 0x56, 0x62],
    on_tile: [0xf6, 0xf8, 0xfa],
    on_tile_aside: [0xdb, 0xe1, 0xe8],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(color: Rgb) -> f64 {
        let linear = color.map(|c| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    fn contrast(a: Rgb, b: Rgb) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// WCAG asks 4.5 for text, and 3 for what isn't.
    #[test]
    fn text_is_readable_on_everything_it_stands_on() {
        for palette in [LIGHT, DARK] {
            for tile in palette.tiles.into_iter().chain([palette.resident, palette.other]) {
                assert!(contrast(palette.on_tile, tile) >= 5.0, "{tile:x?}");
                assert!(contrast(palette.on_tile_aside, tile) >= 4.5, "{tile:x?}");
            }
            for text in [palette.foreground, palette.muted, palette.accent] {
                assert!(contrast(text, palette.background) >= 4.5, "{text:x?}");
            }
        }
    }
}
