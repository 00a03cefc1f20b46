//! A picture as a PNG image.

mod font;
mod glyphs;

use crate::{
    Error, ErrorKind, Theme,
    figure::{
        Figure,
        class::{Class, Fill, HATCH_SPACING, HATCH_WIDTH, STRIPE_WIDTH},
        mark::{Anchor, Line, Mark, Point, Rect, Text},
    },
    palette::{self, DARK, LIGHT, Palette},
};
use glyphs::Glyphs;
use std::io::{self, Write as _};
use tiny_skia::{
    Color, FillRule, GradientStop, LineCap, LinearGradient, Paint, PathBuilder, Pixmap, Shader, SpreadMode, Stroke,
    StrokeDash, Transform,
};

/// Pixels of an image, at most.
const MOST_PIXELS: f64 = 1e8;

/// Rows that are painted at once, and encoded while they are in the cache.
const BAND: u32 = 128;

pub(crate) fn write(figure: &Figure<'_>, theme: Theme, scale: f32) -> Result<Vec<u8>, Error> {
    if !(scale.is_finite() && scale > 0.0) {
        return Err(Error::new(ErrorKind::InvalidScale, format!("the scale must be a positive number, not {scale}")));
    }
    let (width, height) = (figure.size.0 * f64::from(scale), figure.size.1 * f64::from(scale));
    if width * height > MOST_PIXELS {
        let message = format!("{width:.0} × {height:.0} pixels are more than the limit of 100 million");
        return Err(Error::new(ErrorKind::ImageTooLarge, message));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and below the limit")]
    let (width, height) = (width.ceil().max(1.0) as u32, height.ceil().max(1.0) as u32);
    let Some(pixels) = Pixmap::new(width, height.min(BAND)) else {
        return Err(Error::new(
            ErrorKind::ImageTooLarge,
            format!("an image of {width} × {height} pixels can't be made"),
        ));
    };
    let palette = if theme == Theme::Dark { &DARK } else { &LIGHT };
    let mut painter = Painter { pixels, palette, place: Transform::identity(), glyphs: Glyphs::default() };
    image(&mut painter, figure, scale, height)
        .map_err(|error| Error::new(ErrorKind::Rendering, format!("the image can't be encoded: {error}")))
}

/// The figure as an image of that many rows, painted and encoded band by band.
fn image(painter: &mut Painter<'_>, figure: &Figure<'_>, scale: f32, height: u32) -> io::Result<Vec<u8>> {
    let mut image = Vec::new();
    let mut encoder = png::Encoder::new(&mut image, painter.pixels.width(), height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    // Flat colours need no filter, and compress well at the lowest level; higher ones take several times longer.
    encoder.set_deflate_compression(png::DeflateCompression::Level(1));
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    let mut rows = writer.stream_writer_with_size(1 << 16)?;
    for top in (0..height).step_by(BAND as usize) {
        painter.pixels.fill(Color::TRANSPARENT);
        for group in &figure.groups {
            let (x, y) = point(group.corner);
            painter.place = Transform::from_translate(0.0, -(top as f32)).pre_scale(scale, scale).pre_translate(x, y);
            group.marks.iter().for_each(|mark| painter.mark(mark));
        }
        unpremultiply(painter.pixels.data_mut());
        let last = 4 * painter.pixels.width() as usize * (height - top).min(BAND) as usize;
        rows.write_all(&painter.pixels.data()[..last])?;
    }
    rows.finish()?;
    writer.finish()?;
    Ok(image)
}

struct Painter<'a> {
    /// A band of the image.
    pixels: Pixmap,
    palette: &'a Palette,
    /// The position and scale of marks in the band.
    place: Transform,
    glyphs: Glyphs,
}

impl Painter<'_> {
    fn mark(&mut self, mark: &Mark<'_>) {
        match mark {
            Mark::Rect(rect) => self.rect(rect),
            Mark::Areas(class, areas) => self.areas(*class, areas),
            Mark::Lines(class, lines) => lines.iter().for_each(|line| self.line(*class, *line)),
            Mark::Curves(class, curves) => self.shape(*class, |path| {
                for [from, a, b, to] in curves {
                    let [from, (ax, ay), (bx, by), (x, y)] = [from, a, b, to].map(|at| point(*at));
                    path.move_to(from.0, from.1);
                    path.cubic_to(ax, ay, bx, by, x, y);
                }
            }),
            Mark::Corner(class, at, side) => self.shape(*class, |path| {
                let ((x, y), side) = (point(*at), single(*side));
                path.move_to(x, y);
                path.line_to(x - side, y);
                path.line_to(x, y + side);
                path.close();
            }),
            Mark::Text(text) => self.text(text),
        }
    }

    fn rect(&mut self, rect: &Rect<'_>) {
        let fill = match rect.class.fill() {
            Fill::Plain(color) if rect.radius == 0.0 => self.paint(color),
            Fill::Hatched | Fill::Striped => self.hatch(rect.class.fill()),
            _ => return self.shape(rect.class, |path| rounded(path, rect)),
        };
        // The outline is the part of a larger rectangle that the inner one leaves uncovered.
        let mut half = 0.0;
        if let Some((color, width)) = rect.class.stroke() {
            half = width / 2.0;
            self.area(rect.corner, rect.size, half, &self.paint(color));
        }
        self.area(rect.corner, rect.size, -half, &fill);
    }

    fn areas(&mut self, class: Class, areas: &[Vec<Point>]) {
        let mut path = PathBuilder::new();
        for area in areas {
            let ys = || area.iter().map(|(_, y)| self.place.ty + single(*y) * self.place.sy);
            if !self.shows(ys().fold(f32::MAX, f32::min), ys().fold(f32::MIN, f32::max)) {
                continue;
            }
            for (number, at) in area.iter().enumerate() {
                let (x, y) = point(*at);
                if number == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
            }
            path.close();
        }
        self.path(class, path);
    }

    fn line(&mut self, class: Class, line: Line) {
        let Some((color, width)) = class.stroke() else { return };
        if let Some(dash) = class.dashes() {
            return self.dashed(line, dash, width, &self.paint(color));
        }
        let size = if line.down { (0.0, line.length) } else { (line.length, 0.0) };
        self.area(line.from, size, width / 2.0, &self.paint(color));
    }

    /// A line in dashes, without the square ends of other lines.
    fn dashed(&mut self, line: Line, dash: f64, width: f64, paint: &Paint<'_>) {
        let (x, y) = line.from;
        let mut along = 0.0;
        while along < line.length {
            let length = dash.min(line.length - along);
            let (corner, size) = match line.down {
                true => ((x - width / 2.0, y + along), (width, length)),
                false => ((x + along, y - width / 2.0), (length, width)),
            };
            self.area(corner, size, 0.0, paint);
            along += 2.0 * dash;
        }
    }

    /// Fills a rectangle, enlarged by a margin on each side.
    fn area(&mut self, (x, y): Point, (width, height): Point, margin: f64, paint: &Paint<'_>) {
        let ((x, y), (width, height)) =
            (point((x - margin, y - margin)), point((width + 2.0 * margin, height + 2.0 * margin)));
        let rect = tiny_skia::Rect::from_xywh(x, y, width, height).and_then(|rect| rect.transform(self.place));
        if let Some(rect) = rect.filter(|rect| self.shows(rect.top(), rect.bottom())) {
            self.pixels.fill_rect(rect, paint, Transform::identity(), None);
        }
    }

    fn shape(&mut self, class: Class, draw: impl FnOnce(&mut PathBuilder)) {
        let mut path = PathBuilder::new();
        draw(&mut path);
        self.path(class, path);
    }

    fn path(&mut self, class: Class, path: PathBuilder) {
        let Some(path) = path.finish() else { return };
        let paint = match class.fill() {
            Fill::Plain(color) => Some(self.paint(color)),
            fill @ Fill::Striped => Some(self.hatch(fill)),
            Fill::None | Fill::Hatched => None,
        };
        // Paints are in the image's coordinates, stripes too.
        if let (Some(paint), Some(path)) = (paint, path.clone().transform(self.place)) {
            self.pixels.fill_path(&path, &paint, FillRule::Winding, Transform::identity(), None);
        }
        if let Some((color, width)) = class.stroke() {
            let dash = class.dashes().and_then(|dash| StrokeDash::new(vec![single(dash); 2], 0.0));
            let line_cap = if dash.is_some() { LineCap::Butt } else { LineCap::Square };
            let stroke = Stroke { width: single(width), line_cap, dash, ..Stroke::default() };
            self.pixels.stroke_path(&path, &self.paint(color), &stroke, self.place, None);
        }
    }

    fn text(&mut self, text: &Text) {
        let font = if text.style.is_strong() { &*font::SEMIBOLD } else { &*font::REGULAR };
        let color = self.palette.rgb(if text.muted { palette::Color::Muted } else { text.style.color() });
        let (x, y) = point(text.at);
        let (baseline, reach) = (self.place.ty + y * self.place.sy, single(text.size) * self.place.sy);
        if !text.upward && !self.shows(baseline - reach, baseline + reach) {
            return;
        }
        let size = font.scale(single(text.size));
        let start = self.place.pre_translate(x, y);
        let start = if text.upward { start.pre_rotate(-90.0) } else { start }.pre_scale(size, -size);
        let advance = |character| font.glyph(character).map_or(0.0, |glyph| glyph.advance);
        let width: f32 = text.text.chars().map(advance).sum();
        let mut along = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -width / 2.0,
            Anchor::End => -width,
        };
        for character in text.text.chars() {
            self.glyphs.paint(&mut self.pixels, font, character, start.pre_translate(along, 0.0), color);
            along += advance(character);
        }
    }

    /// Whether some of the rows between `top` and `bottom` are in this band.
    fn shows(&self, top: f32, bottom: f32) -> bool {
        bottom > 0.0 && top < self.pixels.height() as f32
    }

    fn paint(&self, color: palette::Color) -> Paint<'static> {
        Paint { shader: Shader::SolidColor(self.color(color)), ..Paint::default() }
    }

    fn color(&self, color: palette::Color) -> Color {
        let [red, green, blue] = self.palette.rgb(color);
        Color::from_rgba8(red, green, blue, u8::MAX)
    }

    /// Lines that run from bottom left to top right: bands of a gradient that repeats along the other diagonal.
    fn hatch(&self, fill: Fill) -> Paint<'static> {
        let (blank, line, width) = if fill == Fill::Striped {
            let line = self.color(palette::Color::Background);
            let mut blank = line;
            blank.set_alpha(0.0);
            (blank, line, STRIPE_WIDTH)
        } else {
            (self.color(palette::Color::Padding), self.color(palette::Color::Hatch), HATCH_WIDTH)
        };
        let (spacing, half) = (single(HATCH_SPACING), single(width) / 2.0);
        // Edges are as soft as a pixel is wide.
        let soft = (0.5 / self.place.sx).min(half);
        let stop = |from_middle: f32, color| GradientStop::new(0.5 + from_middle / spacing, color);
        let stops =
            vec![stop(-half - soft, blank), stop(soft - half, line), stop(half - soft, line), stop(half + soft, blank)];
        let across = spacing / std::f32::consts::SQRT_2;
        let bands =
            LinearGradient::new((0.0, 0.0).into(), (across, across).into(), stops, SpreadMode::Repeat, self.place);
        bands.map_or_else(
            || Paint { shader: Shader::SolidColor(blank), ..Paint::default() },
            |shader| Paint { shader, ..Paint::default() },
        )
    }
}

fn rounded(path: &mut PathBuilder, rect: &Rect<'_>) {
    let ((x, y), (width, height), r) = (point(rect.corner), point(rect.size), single(rect.radius));
    let (right, bottom) = (x + width, y + height);
    // The distance of the control points of a quarter circle from the corner.
    let k = 0.447_715_25 * r;
    path.move_to(x + r, y);
    path.line_to(right - r, y);
    path.cubic_to(right - k, y, right, y + k, right, y + r);
    path.line_to(right, bottom - r);
    path.cubic_to(right, bottom - k, right - k, bottom, right - r, bottom);
    path.line_to(x + r, bottom);
    path.cubic_to(x + k, bottom, x, bottom - k, x, bottom - r);
    path.line_to(x, y + r);
    path.cubic_to(x, y + k, x + k, y, x + r, y);
    path.close();
}

fn point((x, y): Point) -> (f32, f32) {
    (single(x), single(y))
}

#[expect(clippy::cast_possible_truncation, reason = "a position in a picture")]
fn single(x: f64) -> f32 {
    x as f32
}

/// Divides colours by the alpha they are multiplied with; it is below 255 only at the picture's round corners.
fn unpremultiply(data: &mut [u8]) {
    let (pixels, _) = data.as_chunks_mut::<4>();
    if pixels.iter().fold(u8::MAX, |all, pixel| all & pixel[3]) == u8::MAX {
        return;
    }
    for [color @ .., alpha] in pixels.iter_mut().filter(|pixel| pixel[3] < u8::MAX && pixel[3] > 0) {
        for part in color {
            *part = u8::try_from(u16::from(*part) * 255 / u16::from(*alpha)).unwrap_or(u8::MAX);
        }
    }
}
