//! Colours that people with any colour vision tell apart, each with text that is readable on it.
//!
//! The light ones are Paul Tol's *light* scheme, made for filling labelled cells, a little farther apart; the dark ones
//! have its hues. Neighbours in their circular order are told apart with any colour vision: see the test.

/// The number of colours for tiles.
pub(crate) const TILES: usize = 8;

/// Red, green and blue.
pub(crate) type Rgb = [u8; 3];

/// The roles of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Color {
    Background,
    /// Text, and the borders of tiles.
    Foreground,
    /// The borders of tiles within tiles, by their level.
    Frame(usize),
    /// Labels.
    Muted,
    /// Lines between cells.
    Hairline,
    Padding,
    /// The lines padding is hatched with.
    Hatch,
    /// The colour of highlighted or moved elements.
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
    frames: [Rgb; 2],
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
            Color::Frame(level) => self.frames[level % self.frames.len()],
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
    frames: [[0xc8, 0x10, 0x1e], [0x0b, 0x4f, 0xc4]],
    muted: [0x57, 0x60, 0x6a],
    hairline: [0xff, 0xff, 0xff],
    padding: [0xff, 0xff, 0xff],
    hatch: [0xd0, 0xd7, 0xde],
    accent: [0xb3, 0x00, 0x4b],
    tiles: [
        [0x8c, 0xbc, 0xed],
        [0xc9, 0xd3, 0x65],
        [0xfd, 0xbc, 0xcb],
        [0xa7, 0xe3, 0xff],
        [0x79, 0xd0, 0xb7],
        [0xf4, 0xa5, 0x82],
        [0xcc, 0xbd, 0xdc],
        [0xf0, 0xe0, 0x94],
    ],
    resident: [0xd9, 0xdf, 0xe5],
    other: [0xae, 0xb7, 0xc0],
    on_tile: [0x14, 0x17, 0x1a],
    on_tile_aside: [0x3d, 0x44, 0x4c],
};

pub(crate) const DARK: Palette = Palette {
    background: [0x0d, 0x11, 0x17],
    foreground: [0xe6, 0xed, 0xf3],
    frames: [[0xff, 0x6e, 0x6e], [0x7c, 0xc4, 0xff]],
    muted: [0x9d, 0xa7, 0xb3],
    hairline: [0x0d, 0x11, 0x17],
    padding: [0x0d, 0x11, 0x17],
    hatch: [0x3a, 0x42, 0x4d],
    accent: [0xff, 0x8f, 0xb8],
    tiles: [
        [0x24, 0x54, 0x8c],
        [0x14, 0x66, 0x4e],
        [0x5b, 0x4d, 0x96],
        [0x6c, 0x5a, 0x00],
        [0x8c, 0x3a, 0x58],
        [0x58, 0x66, 0x16],
        [0x1b, 0x6b, 0x86],
        [0x92, 0x4a, 0x2a],
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

    /// Full colour vision, then vision without the cones for red or for green: G. Machado, M. Oliveira, L. Fernandes, A
    /// Physiologically-based Model for Simulation of Color Vision Deficiency (2009), at full severity.
    const VISIONS: [[[f64; 3]; 3]; 3] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    ];

    /// A colour in CIELAB, for the white D65.
    fn lab(color: Rgb, vision: [[f64; 3]; 3]) -> [f64; 3] {
        let linear = color.map(|c| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        });
        let times = |m: [f64; 3], v: [f64; 3]| m[0] * v[0] + m[1] * v[1] + m[2] * v[2];
        let seen = vision.map(|row| times(row, linear).clamp(0.0, 1.0));
        let f = |t: f64| if t > 216.0 / 24389.0 { t.cbrt() } else { (24389.0 / 27.0 * t + 16.0) / 116.0 };
        let x = f(times([0.4124564, 0.3575761, 0.1804375], seen) / 0.95047);
        let y = f(times([0.2126729, 0.7151522, 0.0721750], seen));
        let z = f(times([0.0193339, 0.1191920, 0.9503041], seen) / 1.08883);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// CIEDE2000: G. Sharma, W. Wu, E. Dalal, The CIEDE2000 Color-Difference Formula (2005).
    fn difference([l1, a1, b1]: [f64; 3], [l2, a2, b2]: [f64; 3]) -> f64 {
        let seventh = |c: f64| (c.powi(7) / (c.powi(7) + 25_f64.powi(7))).sqrt();
        let g = 1.5 - 0.5 * seventh(f64::midpoint(a1.hypot(b1), a2.hypot(b2)));
        let (c1, c2) = ((a1 * g).hypot(b1), (a2 * g).hypot(b2));
        let hue = |a: f64, b: f64| b.atan2(a * g).to_degrees().rem_euclid(360.0);
        let (h1, h2) = (hue(a1, b1), hue(a2, b2));
        let turn = (h2 - h1 + 540.0).rem_euclid(360.0) - 180.0;
        let mean = (h1 + turn / 2.0).rem_euclid(360.0);
        let (l, c) = (f64::midpoint(l1, l2), f64::midpoint(c1, c2));
        let cosine = |times: f64, shift: f64| (times * mean + shift).to_radians().cos();
        let t = 1.0 - 0.17 * cosine(1.0, -30.0) + 0.24 * cosine(2.0, 0.0) + 0.32 * cosine(3.0, 6.0)
            - 0.2 * cosine(4.0, -63.0);
        let dl = (l2 - l1) / (1.0 + 0.015 * (l - 50.0).powi(2) / (20.0 + (l - 50.0).powi(2)).sqrt());
        let dc = (c2 - c1) / (1.0 + 0.045 * c);
        let dh = 2.0 * (c1 * c2).sqrt() * (turn / 2.0).to_radians().sin() / (1.0 + 0.015 * c * t);
        let turned = (60.0 * (-((mean - 275.0) / 25.0).powi(2)).exp()).to_radians().sin();
        (dl * dl + dc * dc + dh * dh - 2.0 * seventh(c) * turned * dc * dh).sqrt()
    }

    /// The first and the last rows of the paper's table 1, and a pair whose hues lie on either side of 0°.
    #[test]
    fn differences_are_those_of_the_paper() {
        for (a, b, expected) in [
            ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
            ([50.0, 2.5, 0.0], [56.0, -27.0, -3.0], 31.9030),
            ([2.0776, 0.0795, -1.1350], [0.9033, -0.0636, -0.5514], 0.9082),
        ] {
            assert!((difference(a, b) - expected).abs() < 1e-4, "{a:?} {b:?}: {}", difference(a, b));
        }
    }

    #[test]
    fn neighbours_are_told_apart_with_any_colour_vision() {
        for palette in [LIGHT, DARK] {
            let colors = [&[palette.resident], &palette.tiles[..], &[palette.other]].concat();
            let round = [palette.tiles[TILES - 1], palette.tiles[0]];
            for (pair, vision) in
                colors.windows(2).chain([&round[..]]).flat_map(|pair| VISIONS.map(|vision| (pair, vision)))
            {
                let apart = difference(lab(pair[0], vision), lab(pair[1], vision));
                assert!(apart >= 10.0, "{pair:x?}: {apart}");
            }
        }
    }

    /// WCAG asks 4.5 for text, and 3 for other marks.
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
            for frame in palette.frames {
                assert!(contrast(frame, palette.background) >= 4.5, "{frame:x?}");
                assert!(palette.tiles.iter().all(|&tile| contrast(frame, tile) >= 2.0), "{frame:x?}");
            }
        }
    }
}
