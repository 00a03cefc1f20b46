//! A picture of choices by their bytes and time.

#[cfg(feature = "png")]
use crate::Error;
use crate::{
    Options,
    figure::{
        Figure, MARGIN, SPACE, WIDEST,
        class::{Class, Part, Style},
        ground,
        mark::{Anchor, Group, Line, Mark, Rect, Text},
        measure::width,
        title,
    },
    plan::scale,
    svg,
    text::{bytes, shown},
};
use std::fmt::Write as _;

/// The costs of choices of one program, such as of a training step's residuals, ready to be drawn as SVG, text or PNG.
///
/// Bytes go to the right, time goes up; a line joins the choices that no other one beats in both, and the limit is a
/// vertical line. Of the options, only the theme has an effect.
///
/// ```
/// use tilewise_draw::{FrontierPicture, FrontierPoint, Options};
///
/// let point = |label: &str, bytes, seconds| FrontierPoint { label: label.into(), bytes, seconds, is_chosen: false };
/// let picture = FrontierPicture {
///     title: "step on v5e".into(),
///     points: vec![point("as written", 30 << 30, 0.25), FrontierPoint { is_chosen: true, ..point("chosen", 8 << 30, 0.23) }],
///     limit: Some(16 << 30),
///     ..FrontierPicture::default()
/// };
/// assert!(picture.to_svg(&Options::new()).starts_with("<svg "));
/// assert!(picture.to_terminal().ends_with("8.00 GiB   230.0 ms  chosen\n30.00 GiB  250.0 ms  as written\n"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct FrontierPicture {
    /// The title.
    pub title: String,
    /// A summary of the choice, in sentences.
    pub summary: String,
    /// The meaning of the time, for the axis.
    pub time: String,
    /// The choices, in any order; those without a finite time aren't drawn.
    pub points: Vec<FrontierPoint>,
    /// Bytes available.
    pub limit: Option<u64>,
}

/// A choice of a [`FrontierPicture`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrontierPoint {
    /// Its name; empty for a choice among many.
    pub label: String,
    /// Bytes at the peak.
    pub bytes: u64,
    /// Seconds of a run.
    pub seconds: f64,
    /// Whether it is the recommended one.
    pub is_chosen: bool,
}

const HEIGHT: f64 = 320.0;
const RADIUS: f64 = 5.0;
/// The distance from one label to another below it.
const APART: f64 = 15.0;
/// If the fastest time is at least this share of the slowest, the axis doesn't begin at 0.
const NEAR: f64 = 0.5;
const TICKS: f64 = 6.0;

impl FrontierPicture {
    /// The picture as an SVG document.
    #[must_use]
    pub fn to_svg(&self, options: &Options) -> String {
        svg::write(&self.figure(), options.theme)
    }

    /// The choices as lines of text, the smallest first.
    #[must_use]
    pub fn to_terminal(&self) -> String {
        let points = self.sorted();
        let sizes: Vec<_> = points.iter().map(|point| bytes(u128::from(point.bytes))).collect();
        let widest = sizes.iter().map(String::len).max().unwrap_or(0);
        let mut text = shown(&self.title) + "\n";
        if !self.summary.is_empty() {
            text += &format!("{}\n", self.summary);
        }
        for (point, size) in points.iter().zip(sizes) {
            let line = format!("{size:widest$}  {}  {}", milliseconds(point.seconds), shown(&point.label));
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    /// The picture as a PNG image, with `scale` pixels per unit of the SVG. Without an explicit theme it is light.
    ///
    /// # Errors
    /// A scale that isn't a positive number, or an image of more than 100 million pixels.
    #[cfg(feature = "png")]
    pub fn to_png(&self, options: &Options, scale: f32) -> Result<Vec<u8>, Error> {
        crate::png::write(&self.figure(), options.theme, scale)
    }

    /// The drawn points, the smallest first.
    fn sorted(&self) -> Vec<&FrontierPoint> {
        let mut points: Vec<_> = self.points.iter().filter(|point| point.seconds.is_finite()).collect();
        points.sort_by(|one, two| one.bytes.cmp(&two.bytes).then(one.seconds.total_cmp(&two.seconds)));
        points
    }

    fn figure(&self) -> Figure<'static> {
        let mut head = Group::new(None, (0.0, 0.0));
        let heading = shown(&self.title);
        let y = title(&mut head, &heading, &self.summary, WIDEST - 2.0 * MARGIN, MARGIN) + SPACE;
        let points = self.sorted();
        let plot = Plot::of(&points, self.limit);
        let mut group = Group::new(Some("frontier"), ((MARGIN + plot.gutter).round(), y.round()));
        plot.axes(&mut group);
        plot.frontier(&mut group, &points);
        plot.points(&mut group, &points);
        let mut foot = Group::new(None, (0.0, 0.0));
        let y = y + HEIGHT + SPACE + APART + Style::Label.size();
        let words = format!("peak to the right, {} up", self.time);
        foot.text(Text::new(Style::Label, (WIDEST / 2.0, y), words).anchored(Anchor::Middle));
        let size = (WIDEST, (y + MARGIN).ceil());
        Figure {
            title: heading,
            description: self.summary.clone(),
            size,
            groups: vec![ground(size), head, group, foot],
        }
    }
}

/// `226.4 ms`
fn milliseconds(seconds: f64) -> String {
    format!("{:.1} ms", 1e3 * seconds)
}

/// The scales of bytes and times.
struct Plot {
    gutter: f64,
    wide: f64,
    most_bytes: u64,
    limit: Option<u64>,
    /// The first second of the axis, the last, and the step from one tick to the next.
    from: f64,
    to: f64,
    step: f64,
}

impl Plot {
    fn of(points: &[&FrontierPoint], limit: Option<u64>) -> Self {
        let most_bytes = points.iter().map(|point| point.bytes).chain(limit).max().unwrap_or(1).max(1);
        let times = || points.iter().map(|point| point.seconds.max(0.0));
        let slowest = times().fold(0.0, f64::max).max(1e-9);
        let fastest = times().fold(slowest, f64::min);
        let fastest = if fastest < NEAR * slowest { 0.0 } else { fastest };
        let step = round_step((slowest - fastest).max(0.05 * slowest) / TICKS);
        let from = ((fastest / step).floor() - 1.0).max(0.0) * step;
        let to = ((slowest / step).floor() + 1.0) * step;
        let gutter = width(&milliseconds(to), Style::Label.size()).ceil() + 10.0;
        Self { gutter, wide: WIDEST - 2.0 * MARGIN - gutter, most_bytes, limit, from, to, step }
    }

    #[expect(clippy::cast_precision_loss, reason = "positions in a picture")]
    fn across(&self, bytes: u64) -> f64 {
        scale::tenths(bytes as f64 / self.most_bytes as f64 * self.wide)
    }

    fn level(&self, seconds: f64) -> f64 {
        scale::tenths(HEIGHT * (self.to - seconds) / (self.to - self.from))
    }

    fn axes(&self, group: &mut Group<'_>) {
        let mut grid = Vec::new();
        let mut at = self.from;
        while at < self.to + self.step / 2.0 {
            grid.push(Line::across((0.0, self.level(at)), self.wide));
            let place = (-8.0, self.level(at) + 4.0);
            group.text(Text::new(Style::Label, place, milliseconds(at)).anchored(Anchor::End));
            at += self.step;
        }
        for (value, label) in scale::bytes(self.most_bytes) {
            let x = self.across(value);
            grid.push(Line::down((x, HEIGHT), 4.0));
            group.text(Text::new(Style::Label, (x, HEIGHT + 16.0), label).anchored(Anchor::Middle));
        }
        group.lines(Class::Rail, grid);
        let Some(limit) = self.limit else { return };
        let x = self.across(limit);
        group.lines(Class::Limit, vec![Line::down((x, -6.0), HEIGHT + 12.0)]);
        let text = format!("limit {}", bytes(u128::from(limit)));
        let (anchor, side) = if x > self.wide / 2.0 { (Anchor::End, -6.0) } else { (Anchor::Start, 6.0) };
        group.text(Text::new(Style::Label, (x + side, 6.0), text).anchored(anchor));
    }

    /// The line of choices that no smaller one beats, from the smallest on.
    fn frontier(&self, group: &mut Group<'_>, points: &[&FrontierPoint]) {
        let mut lines = Vec::new();
        let mut before: Option<&FrontierPoint> = None;
        for point in points {
            match before {
                Some(last) if point.seconds >= last.seconds => continue,
                Some(last) => {
                    let (x, y) = (self.across(last.bytes), self.level(last.seconds));
                    let (end, below) = (self.across(point.bytes), self.level(point.seconds));
                    lines.push(Line::across((x, y), end - x));
                    lines.push(Line::down((end, y), below - y));
                }
                None => {}
            }
            before = Some(point);
        }
        group.lines(Class::Crest, lines);
    }

    fn points(&self, group: &mut Group<'static>, points: &[&FrontierPoint]) {
        let mut taken: Vec<(f64, f64, f64)> = Vec::new();
        // Named ones lie above the others in their place.
        let rank = |point: &FrontierPoint| (point.is_chosen, !point.label.is_empty());
        let mut ordered = points.to_vec();
        ordered.sort_by_key(|point| rank(point));
        for point in ordered {
            let (x, y) = (self.across(point.bytes), self.level(point.seconds));
            let (class, radius) = match rank(point) {
                (true, _) => (Class::Accent, RADIUS + 2.0),
                (_, true) => (Class::Block(Part::Owner(1)), RADIUS + 1.0),
                _ => (Class::Block(Part::Other), RADIUS),
            };
            let size = bytes(u128::from(point.bytes));
            let hint = format!("{} {size}, {}", shown(&point.label), milliseconds(point.seconds));
            group.marks.push(Mark::Rect(Rect {
                class,
                corner: (x - radius, y - radius),
                size: (2.0 * radius, 2.0 * radius),
                radius,
                content: None,
                hint: Some(hint.trim_start().to_owned()),
            }));
            if point.label.is_empty() {
                continue;
            }
            let label = shown(&point.label);
            let long = width(&label, Style::Text.size());
            let is_left = x + long + 12.0 > self.wide;
            let from = if is_left { x - 12.0 - long } else { x + 12.0 };
            let mut line = y - 8.0;
            while taken
                .iter()
                .any(|(left, right, at)| from < *right && *left < from + long && f64::abs(at - line) < APART)
            {
                line += APART;
            }
            taken.push((from, from + long, line));
            group.text(Text::new(Style::Text, (from, line), label));
        }
    }
}

/// 1, 2 or 5 times a power of ten, no less than this.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|factor| factor * power).find(|step| *step >= least).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(label: &str, bytes: u64, seconds: f64) -> FrontierPoint {
        FrontierPoint { label: label.into(), bytes, seconds, is_chosen: false }
    }

    #[test]
    fn the_line_passes_what_another_choice_beats() {
        let points = [point("", 1, 0.4), point("", 2, 0.5), point("", 3, 0.3), point("as written", 4, 0.3)];
        let points: Vec<_> = points.iter().collect();
        let plot = Plot::of(&points, None);
        let mut group = Group::new(None, (0.0, 0.0));
        plot.frontier(&mut group, &points);
        let Some(Mark::Lines(_, lines)) = group.marks.first() else { panic!("no line") };
        assert_eq!(lines.len(), 2, "one step, from the first choice to the third");
        assert_eq!((lines[0].from.0, lines[0].length), (plot.across(1), plot.across(3) - plot.across(1)));
    }

    #[test]
    fn times_have_round_ticks_and_a_place() {
        assert_eq!([0.011, 0.02, 0.3, 7.0].map(round_step), [0.02, 0.02, 0.5, 10.0]);
        let plot = Plot::of(&[&point("", 1, 0.190), &point("", 2, 0.279)], Some(3));
        assert!(
            plot.from > 0.1 && plot.level(0.279) >= 0.0 && plot.level(0.190) <= HEIGHT,
            "close times aren't pressed together"
        );
        assert_eq!(Plot::of(&[&point("", 1, 0.01), &point("", 2, 0.279)], None).from, 0.0);
        // No points, no time, and no finite time.
        for points in
            [vec![], vec![point("a", 0, 0.0)], vec![point("a", u64::MAX, f64::INFINITY), point("b", 1, f64::NAN)]]
        {
            let picture = FrontierPicture { points, ..FrontierPicture::default() };
            assert!(!picture.to_svg(&Options::new()).contains("NaN"));
        }
    }
}
