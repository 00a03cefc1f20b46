//! The picture of a memory budget: the parts of a bar, to scale with the limit, and below it bars of related parts.

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
    palette::TILES,
    svg,
    text::{bytes, shown},
};

/// The budget of a memory, such as a kernel's VMEM or the HBM of several programs, ready to be drawn as SVG or PNG.
///
/// A bar has a part for each buffer, padding striped; the limit is a line. Below it are the legend of the parts, and a
/// bar for each row, in the same colours, to a scale of its own. Of the options, only the theme has an effect.
///
/// ```
/// use tilewise_draw::{BudgetPart, BudgetPicture, Options};
///
/// let part = |label: &str, bytes, padding_bytes, buffers| BudgetPart { label: label.into(), bytes, padding_bytes, buffers };
/// let picture = BudgetPicture {
///     title: "matmul on v5e".into(),
///     summary: "It declares 12.00 MiB.".into(),
///     parts: vec![part("in0 × 2", 4 << 20, 0, 2), part("scratch0", 8 << 20, 4 << 20, 1)],
///     limit: Some(16 << 20),
///     ..BudgetPicture::default()
/// };
/// assert!(picture.to_svg(&Options::new()).starts_with("<svg "));
/// ```
#[derive(Clone, Debug, Default)]
pub struct BudgetPicture {
    /// The title.
    pub title: String,
    /// The verdict, in sentences.
    pub summary: String,
    /// The parts of the memory, in its order.
    pub parts: Vec<BudgetPart>,
    /// Bytes available.
    pub limit: Option<u64>,
    /// A heading for the rows.
    pub rows_heading: String,
    /// Bars below, such as one for each of several programs.
    pub rows: Vec<BudgetRow>,
}

/// A part of a [`BudgetPicture`], such as a window of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetPart {
    /// Its label: `in0: [1024,1024] of bf16[8192,8192]`.
    pub label: String,
    /// Bytes of all its buffers.
    pub bytes: u64,
    /// The number of those bytes that are padding.
    pub padding_bytes: u64,
    /// The number of its buffers; each is drawn.
    pub buffers: u64,
}

/// A bar below that of a [`BudgetPicture`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetRow {
    /// Its label, such as the program's name.
    pub label: String,
    /// Its bytes, each with the number of the part that gives the colour.
    pub bytes: Vec<(usize, u64)>,
}

const BAR: f64 = 64.0;
/// The side of a colour swatch, and the distance from one legend entry to the next.
const SIDE: f64 = 13.0;
const HEIGHT: f64 = 21.0;
/// The most buffers of one window that are drawn apart.
const MOST_BUFFERS: u64 = 16;
/// The height of a row's bar, and the most rows drawn.
const ROW: f64 = 16.0;
const MOST_ROWS: usize = 64;

impl BudgetPicture {
    /// The picture as an SVG document.
    #[must_use]
    pub fn to_svg(&self, options: &Options) -> String {
        svg::write(&self.figure(), options.theme)
    }

    /// The picture as a PNG image, with `scale` pixels per unit of the SVG. Without an explicit theme it is light.
    ///
    /// # Errors
    /// A scale that isn't a positive number, or an image of more than 100 million pixels.
    #[cfg(feature = "png")]
    pub fn to_png(&self, options: &Options, scale: f32) -> Result<Vec<u8>, Error> {
        crate::png::write(&self.figure(), options.theme, scale)
    }

    fn figure(&self) -> Figure<'static> {
        let content = WIDEST - 2.0 * MARGIN;
        let mut head = Group::new(None, (0.0, 0.0));
        let heading = shown(&self.title);
        let y = title(&mut head, &heading, &self.summary, content, MARGIN) + SPACE;
        let mut bar = Group::new(Some("budget"), (MARGIN, y.round()));
        self.bar(&mut bar, content);
        let mut legend = Group::new(None, (0.0, 0.0));
        let y = self.legend(&mut legend, y + BAR + SPACE + Style::Label.size());
        let y = self.rows(&mut legend, y, content);
        let size = (WIDEST, (y + MARGIN).ceil());
        Figure {
            title: heading,
            description: self.summary.clone(),
            size,
            groups: vec![ground(size), head, bar, legend],
        }
    }

    /// The parts from left to right, and the limit.
    fn bar(&self, group: &mut Group<'static>, content: f64) {
        let total = self.parts.iter().map(|part| u128::from(part.bytes)).sum::<u128>();
        let most = total.max(u128::from(self.limit.unwrap_or_default())).max(1);
        #[expect(clippy::cast_precision_loss, reason = "positions in a picture")]
        let wide = |count: u128| count as f64 / most as f64 * content;
        group.rect(Class::Part(Part::Resident), (0.0, 0.0), (content, BAR));
        let mut at = 0_u128;
        for (number, part) in self.parts.iter().enumerate() {
            let buffers = u128::from(part.buffers.clamp(1, MOST_BUFFERS));
            for _ in 0..buffers {
                let (from, length) = (wide(at), wide(u128::from(part.bytes) / buffers));
                let class = Class::Block(Part::Owner(number % TILES));
                let hint = Some(format!("{} ({})", shown(&part.label), bytes(u128::from(part.bytes) / buffers)));
                let corner = (from, 0.0);
                group.marks.push(Mark::Rect(Rect {
                    class,
                    corner,
                    size: (length, BAR),
                    radius: 0.0,
                    content: None,
                    hint,
                }));
                let padding = wide(u128::from(part.padding_bytes) / buffers);
                if padding > 0.0 {
                    group.rect(Class::Padded, (from + length - padding, 0.0), (padding, BAR));
                }
                at += u128::from(part.bytes) / buffers;
            }
        }
        let Some(limit) = self.limit else { return };
        let x = wide(u128::from(limit));
        group.lines(Class::Limit, vec![Line::down((x, -6.0), BAR + 12.0)]);
        let text = format!("limit {}", bytes(u128::from(limit)));
        let anchor = if x > content / 2.0 { Anchor::End } else { Anchor::Start };
        group.text(Text::new(Style::Label, (x, BAR + 6.0 + Style::Label.size()), text).anchored(anchor));
    }

    /// Draws the label of each part; returns where they end.
    fn legend(&self, group: &mut Group<'static>, mut y: f64) -> f64 {
        let sizes: Vec<String> = self.parts.iter().map(|part| bytes(u128::from(part.bytes))).collect();
        let widest = sizes.iter().map(|size| width(size, Style::Text.size())).fold(0.0, f64::max).ceil();
        // Empty parts have no colour in the bar.
        let parts = self.parts.iter().zip(sizes).enumerate().filter(|(_, (part, _))| part.bytes > 0);
        for (number, (part, size)) in parts {
            y += HEIGHT;
            group.rect(Class::Part(Part::Owner(number % TILES)), (MARGIN, y - SIDE + 2.0), (SIDE, SIDE));
            let at = MARGIN + SIDE + 8.0 + widest;
            group.text(Text::new(Style::Text, (at, y), size).anchored(Anchor::End));
            let padding = match part.padding_bytes {
                0 => String::new(),
                padding => format!(", {} of it padding", bytes(u128::from(padding))),
            };
            group.text(Text::new(Style::Text, (at + 10.0, y), format!("{}{padding}", shown(&part.label))));
        }
        y
    }

    /// Draws the bars of the rows, the largest as wide as the picture; returns where they end.
    fn rows(&self, group: &mut Group<'static>, mut y: f64, content: f64) -> f64 {
        if self.rows.is_empty() {
            return y;
        }
        y += SPACE + Style::Heading.size();
        group.text(Text::new(Style::Heading, (MARGIN, y), self.rows_heading.clone()));
        let total = |row: &BudgetRow| row.bytes.iter().map(|(_, bytes)| u128::from(*bytes)).sum::<u128>();
        let most = self.rows.iter().map(total).max().unwrap_or(0).max(1);
        for row in self.rows.iter().take(MOST_ROWS) {
            y += SPACE * 0.5 + Style::Text.size();
            let label = format!("{}: {}", shown(&row.label), bytes(total(row)));
            group.text(Text::new(Style::Text, (MARGIN, y), label));
            y += 6.0;
            let mut at = 0_u128;
            for (part, count) in row.bytes.iter().filter(|(_, count)| *count > 0) {
                #[expect(clippy::cast_precision_loss, reason = "positions in a picture")]
                let wide = |count: u128| count as f64 / most as f64 * content;
                let (from, length) = (wide(at), wide(u128::from(*count)));
                group.rect(Class::Part(Part::Owner(part % TILES)), (MARGIN + from, y), (length, ROW));
                at += u128::from(*count);
            }
            y += ROW;
        }
        if let Some(left) = self.rows.len().checked_sub(MOST_ROWS).filter(|left| *left > 0) {
            y += SPACE * 0.5 + Style::Text.size();
            group.text(Text::new(Style::Text, (MARGIN, y), format!("… and {left} more")));
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_buffer_is_drawn_to_scale() {
        let part = |label: &str, bytes, buffers| BudgetPart { label: label.into(), bytes, padding_bytes: 0, buffers };
        let parts = vec![part("in0", 4 << 20, 2), part("scratch0", 2 << 20, 1), part("many", 2 << 20, 1 << 60)];
        let picture = BudgetPicture { parts, limit: Some(16 << 20), ..BudgetPicture::default() };
        let mut group = Group::new(None, (0.0, 0.0));
        picture.bar(&mut group, 1600.0);
        let drawn: Vec<_> = group
            .marks
            .iter()
            .filter_map(|mark| match mark {
                Mark::Rect(Rect { hint: Some(_), corner, size, .. }) => Some((corner.0, size.0)),
                _ => None,
            })
            .collect();
        assert_eq!(drawn[..3], [(0.0, 200.0), (200.0, 200.0), (400.0, 200.0)]);
        assert_eq!(drawn.len(), 3 + 16, "of many buffers a few are drawn");
        let row = |bytes: &[(usize, u64)]| BudgetRow { label: "program".into(), bytes: bytes.to_vec() };
        let picture = BudgetPicture { rows: vec![row(&[(0, 3 << 20), (2, 1 << 20)]), row(&[])], ..picture };
        let mut rows = Group::new(None, (0.0, 0.0));
        picture.rows(&mut rows, 0.0, 1600.0);
        let drawn = rows.marks.iter().filter_map(|mark| match mark {
            Mark::Rect(Rect { corner, size, .. }) => Some((corner.0 - MARGIN, size.0)),
            _ => None,
        });
        assert_eq!(drawn.collect::<Vec<_>>(), [(0.0, 1200.0), (1200.0, 400.0)]);
        assert!(!BudgetPicture::default().to_svg(&Options::new()).is_empty(), "a memory that nothing takes");
    }
}
