//! The picture laid out: the profile above, addresses below, then the legend.

use super::{
    CONTENT, MemoryPicture, Owners,
    blocks::{Block, Blocks},
    legend,
    profile::{self, Column, Share, column_of, profile},
    scale::{self, Scale},
};
use crate::{
    figure::{
        Figure, MARGIN, SPACE, WIDEST,
        class::{Class, Part, Style},
        ground,
        mark::{Anchor, Group, Line, Mark, Point, Rect, Text},
        measure::width,
        paragraph, title,
    },
    text::{bytes, grouped, shown},
};

const PROFILE_HEIGHT: f64 = 260.0;
const BLOCKS_HEIGHT: f64 = 300.0;

/// The height of ticks' labels below a plot.
const TICKS: f64 = 22.0;

/// The height of a heading, and of the line for the labels of the peak and the limit between it and the profile.
const HEADING: f64 = 30.0;
const LABELS: f64 = 16.0;

/// A rectangle with shorter sides has no border, which would cover all of it.
const BORDERED: f64 = 4.0;

/// Maximum characters of an instruction's name.
const LONGEST_NAME: usize = 60;

/// The distance that the cut through resident memory extends beyond the profile, on either side.
const CUT_OVERHANG: f64 = 1.0;

/// A limit of more than this many times the peak would press the picture into its floor.
const FAR: u64 = 2;

pub(super) fn figure<'a>(picture: &MemoryPicture<'a>) -> Figure<'a> {
    let owners = Owners::of(picture);
    let sketch = Sketch::of(picture, &owners);
    let mut head = Group::new(None, (0.0, 0.0));
    let summary = picture.summary();
    let heading = shown(&picture.title);
    let mut y = title(&mut head, &heading, &summary, CONTENT, MARGIN) + SPACE * 0.7;
    let mut groups = vec![sketch.profile(y)];
    y += HEADING + LABELS + PROFILE_HEIGHT + TICKS;
    if sketch.has_addresses() {
        y += SPACE * 0.5;
        groups.push(sketch.addresses(y));
        y += HEADING + BLOCKS_HEIGHT + TICKS;
    }
    let mut foot = Group::new(None, (0.0, 0.0));
    let left = MARGIN + sketch.gutter + sketch.wide / 2.0;
    let axis = format!("step of {}, in the order of execution", grouped(picture.moments() as u64));
    y += Style::Label.size();
    foot.text(Text::new(Style::Label, (left, y), axis).anchored(Anchor::Middle));
    y = legend::draw(&mut foot, picture, &owners, y + SPACE * 0.4);
    for caption in sketch.captions() {
        y = paragraph(&mut foot, Style::Aside, &caption, CONTENT, y + 5.0);
    }
    let size = (WIDEST, (y + MARGIN).ceil());
    groups.splice(0..0, [ground(size), head]);
    groups.push(foot);
    Figure { title: heading, description: summary, size, groups }
}

/// The content of the picture, with its scales.
struct Sketch<'p> {
    picture: &'p MemoryPicture<'p>,
    owners: &'p Owners,
    columns: Vec<Column>,
    blocks: Blocks<'p>,
    /// The space for ticks' labels at the left.
    gutter: f64,
    /// The width of both plots.
    wide: f64,
    /// The scale of bytes in the profile.
    scale: Scale,
    /// The limit, if it isn't too far away to be drawn.
    limit: Option<u64>,
}

impl<'p> Sketch<'p> {
    fn of(picture: &'p MemoryPicture<'p>, owners: &'p Owners) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundred units")]
        let columns = profile(picture, owners, CONTENT as usize);
        let live = columns.iter().map(|column| column.live).max().unwrap_or(0);
        let highest = u64::try_from(live).unwrap_or(u64::MAX).saturating_add(picture.resident_bytes);
        let highest = picture.peak.as_ref().map_or(highest, |peak| highest.max(peak.bytes)).max(1);
        let highest = picture.fragmented().map_or(highest, |held| highest.max(held));
        let limit = picture.limit.filter(|limit| *limit <= highest.saturating_mul(FAR));
        let scale = match limit {
            Some(limit) => Scale::whole(limit.max(highest), PROFILE_HEIGHT),
            None => Scale::of(picture.resident_bytes, highest, PROFILE_HEIGHT),
        };
        let labels = scale.ticks().into_iter().chain(scale::bytes(Blocks::top(picture)));
        let gutter = labels.map(|(_, label)| width(&label, Style::Label.size())).fold(0.0, f64::max).ceil() + 10.0;
        let wide = CONTENT - gutter;
        let blocks = Blocks::of(picture, owners, (wide, BLOCKS_HEIGHT));
        Self { picture, owners, columns, blocks, gutter, wide, scale, limit }
    }

    fn has_addresses(&self) -> bool {
        !self.blocks.single.is_empty()
    }

    fn panel<'a>(&self, name: &'static str, heading: &str, y: f64, above: f64) -> Group<'a> {
        let mut group = Group::new(Some(name), ((MARGIN + self.gutter).round(), (y + above).round()));
        group.text(Text::new(Style::Heading, (-self.gutter, 12.0 - above), heading));
        group
    }

    /// Lines and labels of the axes, behind everything else.
    fn axes(&self, group: &mut Group<'_>, scale: &Scale, height: f64) {
        let mut grid = Vec::new();
        for (value, label) in scale.ticks() {
            let y = scale.level(u128::from(value));
            grid.push(Line::across((0.0, y), self.wide));
            group.text(Text::new(Style::Label, (-8.0, y + 4.0), label).anchored(Anchor::End));
        }
        for (step, label) in scale::steps(self.picture.moments() as u64) {
            let x = self.middle(usize::try_from(step - 1).unwrap_or(usize::MAX));
            grid.push(Line::down((x, height), 4.0));
            group.text(Text::new(Style::Label, (x, height + 16.0), label).anchored(Anchor::Middle));
        }
        group.lines(Class::Rail, grid);
    }

    /// The middle of a moment, or of its column if there are more moments than columns.
    fn middle(&self, moment: usize) -> f64 {
        let column = column_of(moment, self.picture.moments(), self.columns.len());
        scale::tenths((column as f64 + 0.5) * self.wide / self.columns.len() as f64)
    }

    /// Memory over the order, stacked by owner.
    fn profile<'a>(&self, y: f64) -> Group<'a> {
        let mut group = self.panel("profile", "Memory in use", y, HEADING + LABELS);
        self.axes(&mut group, &self.scale, PROFILE_HEIGHT);
        let level = |bytes| self.scale.level(bytes);
        let resident = u128::from(self.picture.resident_bytes);
        let floor = level(resident);
        if resident > 0 {
            group.rect(Class::Part(Part::Resident), (0.0, floor), (self.wide, PROFILE_HEIGHT - floor));
        }
        if let Some((top, high)) = self.scale.cut() {
            group.rect(Class::Background, (-CUT_OVERHANG, top), (self.wide + 2.0 * CUT_OVERHANG, high));
        }
        let mut below = vec![resident; self.columns.len()];
        let mut padded = Vec::new();
        for slot in 0..profile::PARTS {
            let (mut bands, mut paddings) = (Vec::new(), Vec::new());
            for (column, below) in self.columns.iter().zip(&mut below) {
                let Share { bytes, padding } = column.parts.get(slot).copied().unwrap_or_default();
                let top = *below + bytes;
                bands.push((level(*below), level(top)));
                paddings.push((level(top - padding), level(top)));
                *below = top;
            }
            group.areas(Class::Part(profile::part(slot)), self.steps(&bands));
            padded.extend(self.steps(&paddings));
        }
        group.areas(Class::Padded, padded);
        group.lines(Class::Crest, self.crest(&below.iter().map(|bytes| level(*bytes)).collect::<Vec<_>>()));
        if let (Some(held), Some(peak)) = (self.picture.fragmented(), &self.picture.peak) {
            let (held, peak) = (level(u128::from(held)), level(u128::from(peak.bytes)));
            // Nearer to the peak, the two lines would look like one.
            if peak - held >= 2.0 {
                group.lines(Class::Crest, vec![Line::across((0.0, held), self.wide)]);
            }
        }
        if let Some(limit) = self.limit {
            let at = level(u128::from(limit));
            group.lines(Class::Limit, vec![Line::across((0.0, at), self.wide)]);
            // On the side that the peak's label leaves free.
            let peak_is_left =
                self.picture.peak.as_ref().is_some_and(|peak| self.middle(peak.moment) < self.wide / 2.0);
            let (x, anchor) = if peak_is_left { (self.wide, Anchor::End) } else { (0.0, Anchor::Start) };
            let words = format!("limit {}", bytes(u128::from(limit)));
            group.text(Text::new(Style::Text, (x, at - 6.0), words).anchored(anchor));
        }
        if let Some(peak) = &self.picture.peak {
            let x = self.middle(peak.moment);
            // The line ends on top, so as not to hide a peak of a single moment.
            group.lines(Class::Peak, vec![Line::down((x, -16.0), 16.0 + level(u128::from(peak.bytes)))]);
            let words = format!("{} at {}", bytes(u128::from(peak.bytes)), short(&peak.instruction, LONGEST_NAME));
            let (x, anchor) = if x < self.wide / 2.0 { (x + 6.0, Anchor::Start) } else { (x - 6.0, Anchor::End) };
            group.text(Text::new(Style::Text, (x, -7.0), words).anchored(anchor));
        }
        group
    }

    /// The polygons between two levels of each column, where they differ.
    fn steps(&self, bands: &[(f64, f64)]) -> Vec<Vec<Point>> {
        let x = |column: usize| scale::tenths(column as f64 * self.wide / bands.len() as f64);
        let mut polygons = Vec::new();
        let mut column = 0;
        for run in bands.chunk_by(|a, b| (a.0 > a.1) == (b.0 > b.1)) {
            let from = column;
            column += run.len();
            if run.first().is_none_or(|band| band.0 <= band.1) {
                continue;
            }
            let mut above = Vec::new();
            let mut below = Vec::new();
            let mut at = from;
            for same in run.chunk_by(|a, b| a == b) {
                let (left, right) = (x(at), x(at + same.len()));
                if let Some((low, high)) = same.first() {
                    above.extend([(left, *high), (right, *high)]);
                    below.extend([(left, *low), (right, *low)]);
                }
                at += same.len();
            }
            above.extend(below.into_iter().rev());
            polygons.push(above);
        }
        polygons
    }

    /// The upper edge of all columns.
    fn crest(&self, levels: &[f64]) -> Vec<Line> {
        let x = |column: usize| scale::tenths(column as f64 * self.wide / levels.len() as f64);
        let mut lines = Vec::new();
        let (mut column, mut before) = (0, None);
        for same in levels.chunk_by(|a, b| a == b) {
            let (left, right) = (x(column), x(column + same.len()));
            let level = same.first().copied().unwrap_or_default();
            if let Some(before) = before {
                lines.push(Line::down((left, f64::min(before, level)), f64::abs(level - before)));
            }
            lines.push(Line::across((left, level), right - left));
            (column, before) = (column + same.len(), Some(level));
        }
        lines
    }

    /// A rectangle for each allocation, by time and address.
    fn addresses<'a>(&self, y: f64) -> Group<'a> {
        let mut group = self.panel("addresses", "Where each allocation lies, by its address", y, HEADING);
        self.axes(&mut group, &Scale::whole(self.blocks.top, BLOCKS_HEIGHT), BLOCKS_HEIGHT);
        for (part, areas) in &self.blocks.coarse {
            group.areas(Class::Part(*part), areas.clone());
        }
        for block in &self.blocks.single {
            self.block(&mut group, block);
        }
        if let Some(peak) = &self.picture.peak {
            group.lines(Class::Peak, vec![Line::down((self.middle(peak.moment), 0.0), BLOCKS_HEIGHT)]);
        }
        for block in &self.blocks.single {
            self.name(&mut group, block);
        }
        group
    }

    fn block(&self, group: &mut Group<'_>, block: &Block<'_>) {
        let part = self.owners.part(block.piece.owner);
        let (x, y) = block.corner;
        // A plan may consist of small pieces only: none is too small to be drawn.
        let (wide, high) = (block.size.0.max(1.0), block.size.1.max(1.0));
        let y = y.min(BLOCKS_HEIGHT - high);
        let class = if wide.min(high) < BORDERED { Class::Part(part) } else { Class::Block(part) };
        group.marks.push(Mark::Rect(Rect {
            class,
            corner: (x, y),
            size: (wide, high),
            radius: 0.0,
            content: None,
            hint: Some(self.hint(block)),
        }));
        let padded = high * padding_share(block);
        if padded >= 0.5 {
            // The edges keep the colour, to end with the allocation.
            let edge = if wide.min(padded) < BORDERED { 0.0 } else { 1.5 };
            group.rect(Class::Padded, (x + edge, y + edge), (wide - 2.0 * edge, padded - edge));
        }
    }

    /// The name of an allocation within its rectangle, across or upwards, if it fits.
    fn name(&self, group: &mut Group<'_>, block: &Block<'_>) {
        const SIZE: f64 = Style::Note.size();
        let ((x, y), (wide, high)) = (block.corner, block.size);
        // Most don't fit, whatever their names.
        if block.piece.name.is_empty() || wide.min(high) < SIZE + 4.0 {
            return;
        }
        let name = short(block.piece.name, LONGEST_NAME);
        let along = width(&name, SIZE) + 8.0;
        let (x, y) = (x + wide / 2.0, y + high / 2.0);
        let (text, plate) = if along <= wide {
            (Text::new(Style::Note, (x, y + 4.0), name), (along, SIZE + 4.0))
        } else if along <= high {
            (Text::new(Style::Note, (x + 4.0, y), name).upward(), (SIZE + 4.0, along))
        } else {
            return;
        };
        // Neither stripes nor the peak's line run through it.
        let class = Class::Part(self.owners.part(block.piece.owner));
        group.round_rect(class, (x - plate.0 / 2.0, y - plate.1 / 2.0), plate, 2.0);
        group.text(text);
    }

    /// A description of an allocation, in a line.
    fn hint(&self, block: &Block<'_>) -> String {
        let piece = block.piece;
        let mut hint = short(piece.name, LONGEST_NAME);
        if !hint.is_empty() {
            hint.push_str(": ");
        }
        hint.push_str(&bytes(u128::from(piece.bytes)));
        if piece.padding_bytes > 0 {
            hint.push_str(&format!(", {} of it padding", bytes(u128::from(piece.padding_bytes))));
        }
        let (first, end) = self.picture.span(piece);
        hint.push_str(&format!("; steps {} to {end}; at byte {}", first.saturating_add(1), grouped(block.offset)));
        format!("{hint}; {}", self.picture.label(piece.owner))
    }

    /// The captions on omissions of the picture.
    fn captions(&self) -> Vec<String> {
        let mut captions = Vec::new();
        if self.scale.cut().is_some() {
            captions.push(
                "Memory in use is cut: arguments and outputs are far more than what comes on top of them.".to_owned(),
            );
        }
        if self.blocks.others > 0 {
            captions.push(format!(
                "The {} largest allocations are drawn one by one; of the other {}, every cell has the colour of what \
                 takes most of it.",
                grouped(self.blocks.single.len() as u64),
                grouped(self.blocks.others as u64)
            ));
        }
        let homeless = self.picture.pieces.iter().filter(|piece| piece.offset.is_none()).count();
        match (homeless, self.has_addresses()) {
            (0, _) => {}
            (_, false) => captions.push("Where the allocations lie isn't known.".to_owned()),
            (1, true) => captions.push("1 allocation lies apart, and isn't among those drawn by address.".to_owned()),
            (many, true) => captions.push(format!(
                "{} allocations lie apart, and aren't among those drawn by address.",
                grouped(many as u64)
            )),
        }
        if let (Some(limit), None) = (self.picture.limit, self.limit) {
            captions.push(format!("The limit, {}, is far above what is drawn.", bytes(u128::from(limit))));
        }
        captions
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn padding_share(block: &Block<'_>) -> f64 {
    block.piece.padding_bytes.min(block.piece.bytes) as f64 / block.piece.bytes.max(1) as f64
}

/// The start of a text, of at most `most` characters.
fn short(text: &str, most: usize) -> String {
    let text = shown(text);
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
