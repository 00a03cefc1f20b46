//! The bundled font: pictures are the same on every machine.

use std::{collections::HashMap, sync::LazyLock};
use tiny_skia::{Path, PathBuilder};

/// One weight of the font.
pub(super) struct Font {
    pub(super) is_strong: bool,
    /// The font's units per size.
    units: f32,
    glyphs: HashMap<char, Glyph>,
}

pub(super) struct Glyph {
    /// Distance to the next glyph.
    pub(super) advance: f32,
    /// Its outline, with y upwards from the baseline; `None` for a space.
    pub(super) outline: Option<Path>,
}

pub(super) static REGULAR: LazyLock<Font> =
    LazyLock::new(|| Font::read(false, include_str!("../../fonts/regular.txt")));
pub(super) static SEMIBOLD: LazyLock<Font> =
    LazyLock::new(|| Font::read(true, include_str!("../../fonts/semibold.txt")));

impl Font {
    /// Reads the units of a size, then a line for each character with its advance and its outline, as
    /// `fonts/outlines.py` writes them.
    fn read(is_strong: bool, text: &str) -> Self {
        let mut lines = text.lines();
        let units = lines.next().and_then(|line| line.parse().ok()).unwrap_or(1.0);
        let glyph = |line: &str| {
            let mut characters = line.chars();
            let character = characters.next()?;
            let mut words = characters.as_str().split_ascii_whitespace();
            Some((character, Glyph { advance: words.next()?.parse().ok()?, outline: outline(words) }))
        };
        Self { is_strong, units, glyphs: lines.filter_map(glyph).collect() }
    }

    /// A character's glyph, or that of a question mark if the font lacks it.
    pub(super) fn glyph(&self, character: char) -> Option<&Glyph> {
        self.glyphs.get(&character).or_else(|| self.glyphs.get(&'?'))
    }

    /// The factor from the font's units to the picture's, at a size.
    pub(super) fn scale(&self, size: f32) -> f32 {
        size / self.units
    }
}

/// A path in SVG's notation, of `M`, `L`, `C` and `Z`.
fn outline<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Path> {
    let mut path = PathBuilder::new();
    while let Some(command) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
        match command {
            "M" => path.move_to(number(), number()),
            "L" => path.line_to(number(), number()),
            "C" => path.cubic_to(number(), number(), number(), number(), number(), number()),
            _ => path.close(),
        }
    }
    path.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Options, Scene, View,
        figure::{Figure, mark::Mark, measure::width},
    };

    #[test]
    fn pictures_are_measured_in_this_font() {
        let advance = |c| f64::from(REGULAR.glyph(c).expect("a glyph").advance / REGULAR.units);
        let whole = width("0", 1.0) / advance('0');
        for c in ' '..='~' {
            assert!((width(&c.to_string(), 1.0) / whole - advance(c)).abs() < 0.001, "{c}");
        }
    }

    #[test]
    fn capitals_stand_on_the_baseline() {
        for font in [&*REGULAR, &*SEMIBOLD] {
            let outline = font.glyph('H').and_then(|glyph| glyph.outline.as_ref()).expect("an outline");
            assert_eq!((outline.bounds().top(), outline.bounds().bottom()), (0.0, 2048.0));
            assert!(font.glyph(' ').expect("a glyph").outline.is_none());
        }
    }

    #[test]
    fn no_character_of_a_picture_is_missing() {
        for text in
            ["f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", "s4[<=64,256]{1,0:T(8,128)(8,1)L(4096)E(4)S(1)}", "f32[0]"]
        {
            let tiled = tilewise::Tiled::new(&text.parse().expect(text)).expect(text);
            let other = View::Compare(Box::new(tiled.clone()));
            let views = [View::Both, View::Word, other].map(|view| Options::new().with_view(view));
            let scenes =
                views.iter().map(|options| Scene::of(&tiled, options)).chain([Scene::steps(&tiled, &views[0])]);
            for scene in scenes.map(|scene| scene.expect(text)) {
                for mark in Figure::of(&scene).groups.iter().flat_map(|group| &group.marks) {
                    let Mark::Text(mark) = mark else { continue };
                    let font = if mark.style.is_strong() { &*SEMIBOLD } else { &*REGULAR };
                    for c in mark.text.chars() {
                        assert!(font.glyphs.contains_key(&c), "{c} of {}", mark.text);
                    }
                }
            }
        }
    }
}
