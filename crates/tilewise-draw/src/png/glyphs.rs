//! Glyphs as pixels. Most glyphs of a picture are the same few digits: each is rasterised once.

use super::font::Font;
use crate::palette::Rgb;
use std::collections::HashMap;
use tiny_skia::{FillRule, Mask, Path, Pixmap, Transform};

/// Positions within a pixel, in each direction, at which a glyph may start.
const PHASES: f32 = 4.0;

/// The glyphs painted so far, rasterised.
#[derive(Default)]
pub(super) struct Glyphs {
    stamps: HashMap<Key, Option<Stamp>>,
}

/// A character, whether it is strong, and the bits of its size, its direction and its position within a pixel.
type Key = (char, bool, [u32; 4]);

/// The coverage of each pixel by a glyph, and the offset of the first pixel from the one the glyph starts in.
struct Stamp {
    mask: Mask,
    left: i32,
    top: i32,
}

impl Glyphs {
    /// Paints a character; the transform gives the start of its baseline and its size.
    pub(super) fn paint(&mut self, pixels: &mut Pixmap, font: &Font, character: char, place: Transform, color: Rgb) {
        let (x, y) = ((place.tx * PHASES).round() / PHASES, (place.ty * PHASES).round() / PHASES);
        let within = Transform { tx: x - x.floor(), ty: y - y.floor(), ..place };
        let bits = [within.sx, within.ky, within.tx, within.ty].map(f32::to_bits);
        let stamp = self.stamps.entry((character, font.is_strong, bits)).or_insert_with(|| {
            let outline = font.glyph(character)?.outline.clone()?;
            Stamp::of(&outline.transform(within)?)
        });
        if let Some(stamp) = stamp {
            stamp.blend(pixels, (floor(x) + stamp.left, floor(y) + stamp.top), color);
        }
    }
}

impl Stamp {
    fn of(outline: &Path) -> Option<Self> {
        let bounds = outline.bounds().round_out()?;
        let (left, top) = (bounds.left(), bounds.top());
        let mut mask = Mask::new(bounds.width(), bounds.height())?;
        #[expect(clippy::cast_precision_loss, reason = "no glyph is that large")]
        let place = Transform::from_translate(-left as f32, -top as f32);
        mask.fill_path(outline, FillRule::Winding, true, place);
        Some(Self { mask, left, top })
    }

    fn blend(&self, pixels: &mut Pixmap, (left, top): (i32, i32), [red, green, blue]: Rgb) {
        let (width, height) = (pixels.width(), pixels.height());
        let data = pixels.data_mut();
        for (y, row) in (top..).zip(self.mask.data().chunks_exact(self.mask.width() as usize)) {
            for (x, &coverage) in (left..).zip(row) {
                let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else { continue };
                if coverage == 0 || x >= width || y >= height {
                    continue;
                }
                let at = 4 * (y as usize * width as usize + x as usize);
                for (under, over) in data[at..at + 4].iter_mut().zip([red, green, blue, u8::MAX]) {
                    *under = mixed(*under, over, coverage);
                }
            }
        }
    }
}

fn mixed(under: u8, over: u8, coverage: u8) -> u8 {
    let [under, over, coverage] = [under, over, coverage].map(u32::from);
    let sum = over * coverage + under * (255 - coverage);
    u8::try_from((sum + 127) / 255).unwrap_or(u8::MAX)
}

#[expect(clippy::cast_possible_truncation, reason = "a pixel of an image")]
fn floor(x: f32) -> i32 {
    x.floor() as i32
}
