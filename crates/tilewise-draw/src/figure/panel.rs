//! One grid: the positions of its tracks, cells and borders.

use super::{
    class::{Class, Style},
    mark::{Anchor, Group, Line, Point, Text},
    measure::{strong_width, width, wrap_strong},
};
use crate::{
    axis::{Axis, Item, Track},
    grid::{Cell, Edge, Edges, Grid, byte_label},
    scene::Panel,
};
use std::collections::HashSet;

const CELL: f64 = Style::Cell.size();
const HEADING: f64 = Style::Heading.size();
const LABEL: f64 = Style::Label.size();
const NOTE: f64 = Style::Note.size();

/// The least width of headings.
const NARROWEST: f64 = 420.0;

/// The length of a bracket's ends.
const TICK: f64 = 5.0;

/// The size of a tile's index in its corner.
const TILE_INDEX: f64 = 8.5;

/// The space a gap takes.
const GAP: f64 = 20.0;

/// The space between two rows that lines join.
const LINKED: f64 = 54.0;

const LINE: f64 = 1.35;

/// A panel with its measures; coordinates are relative to its own corner.
pub(crate) struct PanelLayout<'a> {
    panel: &'a Panel,
    heading: Vec<String>,
    /// Labels of gaps that do not fit inside the grid.
    remarks: Vec<String>,
    cell: (f64, f64),
    /// Corner of the first cell.
    origin: (f64, f64),
    /// The start of each item of the axes, then their end.
    xs: Vec<f64>,
    ys: Vec<f64>,
    columns: Vec<Item>,
    rows: Vec<Item>,
    /// Whether the row label runs upwards at the left.
    upward: bool,
    /// The distances from the first cell to the end of rows' asides, and to the bracket's line.
    aside: f64,
    bracket: f64,
    /// Words and length of the brackets along rows and columns.
    brackets: [Option<(String, f64)>; 2],
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl<'a> PanelLayout<'a> {
    pub(crate) fn of(panel: &'a Panel) -> Self {
        let grid = &panel.grid;
        let cell = cell_size(grid);
        let (columns, rows) = (grid.columns.items(), grid.rows.items());
        let between = if grid.links.is_empty() { 0.0 } else { LINKED };
        let xs = starts(&columns, cell.0, 0.0);
        let ys = starts(&rows, cell.1, between);
        let (across, down) = (last(&xs), last(&ys));

        let widest = |text: fn(&Track) -> &str| {
            grid.rows.tracks.iter().map(|track| width(text(track), LABEL)).fold(0.0, f64::max)
        };
        let [names, asides] = [widest(|track| &track.name), widest(|track| &track.aside)];
        let [names, asides] = match (grid.rows.headers, asides > 0.0) {
            (Some([name, aside]), true) => [names.max(width(name, LABEL)), asides.max(width(aside, LABEL))],
            _ => [names, asides],
        };
        let upward = !grid.rows.label.is_empty() && width(&grid.rows.label, LABEL) <= down;
        let mut left = if names > 0.0 { names + 8.0 } else { 2.0 };
        let aside = left;
        if asides > 0.0 {
            left += asides + 10.0;
        }
        let [row_bracket, column_bracket] = brackets(panel, [(&rows, &ys), (&columns, &xs)]);
        let bracket = left;
        if row_bracket.is_some() {
            left += LABEL * LINE + TICK + 2.0;
        }
        if upward {
            left += LABEL * LINE;
        }
        let heading =
            wrap_strong(&heading(panel), HEADING, (left + across).max(if panel.beside { 250.0 } else { NARROWEST }));
        let heading_width = heading.iter().map(|line| strong_width(line, HEADING)).fold(0.0, f64::max);
        let mut top = heading.len() as f64 * HEADING * LINE + 4.0;
        let labels = [&grid.rows.label, &grid.columns.label];
        let labels_above = labels.iter().skip(usize::from(upward)).filter(|label| !label.is_empty());
        top += labels_above.clone().count() as f64 * LABEL * LINE;
        for label in [|track: &Track| !track.name.is_empty(), |track: &Track| !track.aside.is_empty()] {
            if grid.columns.tracks.iter().any(label) {
                top += LABEL * LINE;
            }
        }
        if column_bracket.is_some() {
            top += LABEL * LINE + TICK + 3.0;
        }
        top += 4.0;
        // Lines of odd width are sharp if they run through the middle of a pixel.
        (left, top) = (left.ceil() + 0.5, top.ceil() + 0.5);
        let bracket_width = column_bracket.as_ref().map_or(0.0, |(text, _)| width(text, LABEL));
        let labels_width = labels_above.map(|label| width(label, LABEL) + 14.0).fold(bracket_width, f64::max);

        let mut placed = Self {
            panel,
            heading,
            remarks: Vec::new(),
            cell,
            origin: (left, top),
            xs,
            ys,
            columns,
            rows,
            upward,
            aside,
            bracket,
            brackets: [row_bracket, column_bracket],
            width: (left + across + 2.0).max(heading_width).max(left + labels_width),
            height: 0.0,
        };
        placed.remarks = placed.gaps_without_space();
        let remarks_width = placed.remarks.iter().map(|text| width(text, LABEL)).fold(0.0, f64::max);
        placed.width = placed.width.max(left + remarks_width);
        placed.height = top + down + 2.0 + placed.remarks.len() as f64 * LABEL * LINE;
        placed
    }

    fn gaps_without_space(&self) -> Vec<String> {
        let grid = &self.panel.grid;
        let across = (0.0, last(&self.xs));
        let down = longest_run(&self.rows, &self.ys);
        let mut remarks: Vec<String> = Vec::new();
        for (axis, items, (from, to)) in [(&grid.rows, &self.rows, across), (&grid.columns, &self.columns, down)] {
            for item in items {
                let Item::Gap { from: first, hidden } = *item else { continue };
                if width(&axis.gap_label(first, hidden), LABEL) > to - from {
                    remarks.push(axis.gap_label_with_range(first, hidden));
                }
            }
        }
        remarks
    }

    /// The panel's marks, with its corner at a point.
    pub(crate) fn group(&self, corner: Point) -> Group<'a> {
        let mut group = Group::new(Some(self.panel.name), corner);
        for (number, line) in self.heading.iter().enumerate() {
            group.text(Text::new(Style::Heading, (0.0, HEADING + number as f64 * HEADING * LINE), line));
        }
        self.label(&mut group);
        let cells = &self.panel.grid.cells;
        for cell in cells {
            self.fill(&mut group, cell);
        }
        self.outline(&mut group);
        self.label_gaps(&mut group);
        self.link(&mut group);
        for cell in cells.iter().filter(|cell| cell.content.highlighted) {
            group.round_rect(Class::Halo, self.corner(cell), self.cell, 3.0);
            group.round_rect(Class::Ring, self.corner(cell), self.cell, 3.0);
        }
        group
    }

    fn label(&self, group: &mut Group<'a>) {
        let grid = &self.panel.grid;
        let (left, top) = self.origin;
        let label = |x: f64, y: f64, text: &str| Text::new(Style::Label, (x, y), text);
        let mut y = top - 6.0;
        if grid.columns.tracks.iter().any(|track| !track.name.is_empty()) {
            for (item, track) in tracks(&grid.columns, &self.columns) {
                let middle = left + self.xs[item] + self.cell.0 / 2.0;
                group.text(label(middle, y, &track.name).anchored(Anchor::Middle));
            }
            y -= LABEL * LINE;
        }
        if grid.columns.tracks.iter().any(|track| !track.aside.is_empty()) {
            for (item, track) in tracks(&grid.columns, &self.columns) {
                let middle = left + self.xs[item] + self.cell.0 / 2.0;
                group.text(label(middle, y, &track.aside).anchored(Anchor::Middle));
            }
            y -= LABEL * LINE;
        }
        if let Some((text, length)) = &self.brackets[1] {
            let line = y.floor() - 0.5;
            if *length > 0.0 {
                let ends = [left, left + length].map(|end| Line::down((end, line), TICK));
                group.lines(Class::Bracket, [Line::across((left, line), *length)].into_iter().chain(ends).collect());
            }
            let (x, anchor) = match width(text, LABEL) <= *length {
                true => (left + length / 2.0, Anchor::Middle),
                false => (left, Anchor::Start),
            };
            group.text(label(x, line - 4.0, text).anchored(anchor));
            y -= LABEL * LINE + TICK + 3.0;
        }
        if let Some((text, length)) = &self.brackets[0] {
            let line = (left - self.bracket - TICK).floor() + 0.5;
            let ends = [top, top + length].map(|end| Line::across((line, end), TICK));
            group.lines(Class::Bracket, [Line::down((line, top), *length)].into_iter().chain(ends).collect());
            group.text(label(line - 4.0, top + length / 2.0, text).upward());
        }
        if !grid.columns.label.is_empty() {
            let aside = grid.columns.headers.map_or_else(String::new, |[_, aside]| format!(", {aside} above it"));
            group.text(label(left, y, &format!("→ {}{aside}", grid.columns.label)));
            y -= LABEL * LINE;
        }
        for (item, track) in tracks(&grid.rows, &self.rows) {
            let middle = top + self.ys[item] + self.cell.1 / 2.0 + LABEL * 0.36;
            group.text(label(left - 6.0, middle, &track.name).anchored(Anchor::End));
            if !track.aside.is_empty() {
                group.text(label(left - self.aside - 8.0, middle, &track.aside).anchored(Anchor::End));
            }
        }
        if let Some([name, aside]) = grid.rows.headers {
            group.text(label(left - 6.0, top - 6.0, name).anchored(Anchor::End));
            group.text(label(left - self.aside - 8.0, top - 6.0, aside).anchored(Anchor::End));
        }
        if grid.rows.label.is_empty() {
            return;
        }
        if self.upward {
            group.text(label(LABEL - 1.0, top + last(&self.ys) / 2.0, &grid.rows.label).upward());
        } else {
            group.text(label(left, y, &format!("↓ {}", grid.rows.label)));
        }
    }

    fn fill(&self, group: &mut Group<'a>, cell: &'a Cell) {
        let ((x, y), (w, h)) = (self.corner(cell), self.cell);
        let content = &cell.content;
        group.cell(cell.color, (x, y), (w, h), content);
        let middle = x + w / 2.0;
        let wide = width(&content.text, CELL);
        let size = if wide > w - 6.0 { (CELL * (w - 6.0) / wide).max(6.0) } else { CELL };
        let byte = content.byte().filter(|_| self.panel.grid.has_bytes).map(byte_label);
        let style = if byte.is_some() { Style::Byte } else { Style::Note };
        let note = byte.unwrap_or_else(|| content.note.clone());
        // Tile indices stand above the text.
        let lowered = if has_tile_indices(&self.panel.grid) { TILE_INDEX / 2.0 } else { 0.0 };
        let baseline = if note.is_empty() { y + h / 2.0 + size * 0.36 } else { y + h / 2.0 - 0.5 } + lowered;
        let muted = cell.color.is_none();
        if !content.text.is_empty() {
            group.text(Text { size, muted, ..Text::new(Style::Cell, (middle, baseline), &content.text) });
        }
        if !note.is_empty() {
            group.text(Text { muted, ..Text::new(style, (middle, y + h - 5.5), note) });
        }
        if !content.tile_index.is_empty() {
            let wide = width(&content.tile_index, TILE_INDEX);
            let place = (x + 4.0 + wide / 2.0, y + 9.5);
            group.text(Text { size: TILE_INDEX, muted, ..Text::new(Style::Byte, place, &content.tile_index) });
        }
        if content.moved {
            group.corner(Class::Accent, (x + w - 2.5, y + 2.5), 7.0);
        }
    }

    fn outline(&self, group: &mut Group<'a>) {
        let [mut joined, mut tile, mut open, mut inner, mut deepest] = [const { Vec::new() }; 5];
        // Neighbours have the same border.
        let mut drawn = HashSet::new();
        for cell in &self.panel.grid.cells {
            let ((x, y), (w, h)) = (self.corner(cell), self.cell);
            let Edges { left, top, right, bottom } = cell.edges;
            for (edge, line) in [
                (top, Line::across((x, y), w)),
                (bottom, Line::across((x, y + h), w)),
                (left, Line::down((x, y), h)),
                (right, Line::down((x + w, y), h)),
            ] {
                let lines = match edge {
                    Edge::None => continue,
                    Edge::Joined => &mut joined,
                    Edge::Tile if cell.content.is_open => &mut open,
                    Edge::Tile => &mut tile,
                    Edge::Inner => &mut inner,
                    Edge::Deepest => &mut deepest,
                };
                #[expect(clippy::cast_possible_truncation, reason = "a position in a picture")]
                let place = |at: f64| (at * 10.0).round() as i64;
                if drawn.insert((place(line.from.0), place(line.from.1), line.down)) {
                    lines.push(line);
                }
            }
        }
        group.lines(Class::Deepest, deepest);
        group.lines(Class::Inner, inner);
        group.lines(Class::OpenTile, open);
        group.lines(Class::Tile, tile);
        // Two lines: a wide one, and the background along its middle.
        group.lines(Class::Joined, joined.clone());
        group.lines(Class::JoinedMiddle, joined);
    }

    fn label_gaps(&self, group: &mut Group<'a>) {
        let grid = &self.panel.grid;
        let (left, top) = self.origin;
        let label = |x: f64, y: f64, text: &str| Text::new(Style::Label, (x, y), text);
        // Labels of columns avoid those of rows.
        let across = last(&self.xs);
        let middle = left + across / 2.0;
        for (item, text) in gaps(&grid.rows, &self.rows) {
            let text = if width(&text, LABEL) > across { "…" } else { &text };
            group.text(label(middle, top + self.ys[item] + GAP / 2.0 + 4.0, text).anchored(Anchor::Middle));
        }
        let down = longest_run(&self.rows, &self.ys);
        let middle = top + (down.0 + down.1) / 2.0;
        for (item, text) in gaps(&grid.columns, &self.columns) {
            let x = left + self.xs[item] + GAP / 2.0;
            if width(&text, LABEL) > down.1 - down.0 {
                group.text(label(x, middle + 3.0, "…").anchored(Anchor::Middle));
            } else {
                group.text(label(x + 4.0, middle, &text).upward());
            }
        }
        let down = last(&self.ys);
        for (number, text) in self.remarks.iter().enumerate() {
            group.text(label(left, top + down + 2.0 + (number + 1) as f64 * LABEL * LINE, text));
        }
    }

    fn link(&self, group: &mut Group<'a>) {
        let grid = &self.panel.grid;
        for moved in [false, true] {
            let mut curves = Vec::new();
            for link in grid.links.iter().filter(|link| link.moved == moved) {
                let (Some(from), Some(to)) = (grid.cells.get(link.from), grid.cells.get(link.to)) else { continue };
                let ((x1, y1), (x2, y2)) = (self.corner(from), self.corner(to));
                let middle = self.cell.0 / 2.0;
                let (x1, y1, x2, y2) = (x1 + middle, y1 + self.cell.1 + 2.0, x2 + middle, y2 - 2.0);
                let halfway = (y1 + y2) / 2.0;
                curves.push([(x1, y1), (x1, halfway), (x2, halfway), (x2, y2)]);
            }
            group.curves(if moved { Class::MovedLink } else { Class::Link }, curves);
        }
    }

    fn corner(&self, cell: &Cell) -> (f64, f64) {
        let item =
            |items: &[Item], track: usize| items.iter().position(|item| *item == Item::Track(track)).unwrap_or(0);
        let (left, top) = self.origin;
        (left + self.xs[item(&self.columns, cell.column)], top + self.ys[item(&self.rows, cell.row)])
    }
}

/// Cells as wide as the widest text, within limits.
fn cell_size(grid: &Grid) -> (f64, f64) {
    let texts = grid.cells.iter().map(|cell| width(&cell.content.text, CELL)).fold(0.0, f64::max);
    let bytes = grid.cells.iter().filter(|_| grid.has_bytes).filter_map(|cell| cell.content.byte()).max();
    let notes = grid.cells.iter().map(|cell| width(&cell.content.note, NOTE));
    let notes = notes.chain(bytes.map(|byte| width(&byte_label(byte), NOTE))).fold(0.0, f64::max);
    let names = grid.columns.tracks.iter().flat_map(|track| [&track.name, &track.aside]);
    let names = names.map(|name| width(name, LABEL)).fold(0.0, f64::max);
    let indices = grid.cells.iter().map(|cell| width(&cell.content.tile_index, TILE_INDEX)).fold(0.0, f64::max);
    let names = names.max(indices);
    let wide = (texts + 10.0).max(notes + 8.0).max(names + 6.0).clamp(30.0, 112.0).ceil();
    let high = if notes > 0.0 || grid.tall { 38.0 } else { 30.0 };
    (wide, if has_tile_indices(grid) { high + TILE_INDEX } else { high })
}

fn has_tile_indices(grid: &Grid) -> bool {
    grid.cells.iter().any(|cell| !cell.content.tile_index.is_empty())
}

/// The heading, with additions for pictures, which show more than terminals.
fn heading(panel: &Panel) -> String {
    let bits = panel.grid.cells.iter().find_map(|cell| Some(cell.content.bits).filter(|&bits| bits > 0));
    let byte = match bits.filter(|_| panel.grid.has_bytes) {
        Some(bits) if bits.is_multiple_of(8) => ", its byte below",
        Some(_) => ", its byte:bit below",
        None => "",
    };
    let index = if has_tile_indices(&panel.grid) { ", each tile's index in its corner" } else { "" };
    format!("{}{byte}{index}", panel.heading)
}

/// The words and lengths of the brackets around the first tile's rows and columns.
fn brackets(panel: &Panel, ends: [(&[Item], &[f64]); 2]) -> [Option<(String, f64)>; 2] {
    let Some(register) = &panel.register else { return [None, None] };
    let [rows, columns] = ends;
    let row =
        register.rows.as_ref().map(|bracket| (bracket.text.clone(), reach(&panel.grid.rows, rows, bracket.tracks)));
    // Upward text reads from the bottom: its arrow points down in the picture.
    let fits = |(text, length): &(String, f64)| width(text, LABEL) + LABEL <= *length;
    let (beside, above) = match row {
        Some(row) if fits(&row) => (Some((format!("← {}", row.0), row.1)), None),
        Some((text, length)) => (Some((String::new(), length)), Some(format!("↓ {text}"))),
        None => (None, None),
    };
    let across = register.columns.as_ref();
    let along = across.map(|bracket| format!("{} →", bracket.text));
    let words: Vec<String> = along.into_iter().chain(above).collect();
    let length = across.map_or(0.0, |bracket| reach(&panel.grid.columns, columns, bracket.tracks));
    let words = if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) };
    [beside, Some((format!("{}{words}", register.share), length))]
}

/// The end of the first `tracks` tracks; inside a gap, its middle.
fn reach(axis: &Axis, (items, starts): (&[Item], &[f64]), tracks: u64) -> f64 {
    let last_track = tracks.saturating_sub(1);
    for (item, ends) in items.iter().zip(starts.windows(2)) {
        match *item {
            Item::Track(track) if axis.tracks.get(track).is_some_and(|track| track.position == last_track) => {
                return ends[1];
            }
            Item::Gap { from, hidden } if (from..from.saturating_add(hidden)).contains(&last_track) => {
                return (ends[0] + ends[1]) / 2.0;
            }
            _ => {}
        }
    }
    last(starts)
}

fn starts(items: &[Item], track: f64, between: f64) -> Vec<f64> {
    let mut starts = vec![0.0];
    let mut end = 0.0;
    for (at, item) in items.iter().enumerate() {
        end += match item {
            Item::Track(_) => track,
            Item::Gap { .. } => GAP,
        };
        if at + 1 < items.len() {
            end += between;
        }
        starts.push(end);
    }
    starts
}

/// The start and end of the longest run of tracks without a gap.
fn longest_run(items: &[Item], starts: &[f64]) -> (f64, f64) {
    let (mut longest, mut from) = ((0.0, 0.0), 0.0);
    for (item, ends) in items.iter().zip(starts.windows(2)) {
        match item {
            Item::Gap { .. } => from = ends[1],
            Item::Track(_) if ends[1] - from > longest.1 - longest.0 => longest = (from, ends[1]),
            Item::Track(_) => {}
        }
    }
    longest
}

fn last(starts: &[f64]) -> f64 {
    starts.last().copied().unwrap_or(0.0)
}

fn tracks<'a>(axis: &'a Axis, items: &'a [Item]) -> impl Iterator<Item = (usize, &'a crate::axis::Track)> {
    items.iter().enumerate().filter_map(|(at, item)| match item {
        Item::Track(track) => Some((at, axis.tracks.get(*track)?)),
        Item::Gap { .. } => None,
    })
}

/// The gaps, each with its label.
fn gaps<'a>(axis: &'a Axis, items: &'a [Item]) -> impl Iterator<Item = (usize, String)> + 'a {
    items.iter().enumerate().filter_map(|(at, item)| match *item {
        Item::Gap { from, hidden } => Some((at, axis.gap_label(from, hidden))),
        Item::Track(_) => None,
    })
}
