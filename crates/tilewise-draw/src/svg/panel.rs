//! One grid: where its tracks, cells and borders go.

use super::{
    canvas::{Canvas, Escaped, N},
    measure::{strong_width, width, wrap_strong},
    style::{CELL, HEADING, LABEL, NOTE},
};
use crate::{
    grid::{Cell, Edges, Grid, Kind},
    scene::Panel,
    text::list,
    tracks::{Axis, Item},
};
use std::{collections::HashSet, fmt::Write as _};

/// The space a gap takes.
const GAP: f64 = 20.0;

/// The space between two rows that lines join.
const LINKED: f64 = 54.0;

const LINE: f64 = 1.35;

/// A panel with its measures; coordinates are relative to its own corner.
pub(crate) struct Placed<'a> {
    panel: &'a Panel,
    heading: Vec<String>,
    /// Words about gaps for which there is no space inside.
    remarks: Vec<String>,
    cell: (f64, f64),
    /// Corner of the first cell.
    origin: (f64, f64),
    /// Where each item of the axes starts, and at last where they end.
    xs: Vec<f64>,
    ys: Vec<f64>,
    columns: Vec<Item>,
    rows: Vec<Item>,
    /// Whether the row label runs upwards at the left.
    upward: bool,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl<'a> Placed<'a> {
    pub(crate) fn of(panel: &'a Panel) -> Self {
        let grid = &panel.grid;
        let cell = cell_size(grid);
        let (columns, rows) = (grid.columns.items(), grid.rows.items());
        let between = if grid.links.is_empty() { 0.0 } else { LINKED };
        let xs = starts(&columns, cell.0, 0.0);
        let ys = starts(&rows, cell.1, between);
        let (across, down) = (last(&xs), last(&ys));

        let names = grid.rows.tracks.iter().map(|track| width(&track.name, LABEL)).fold(0.0, f64::max);
        let upward = !grid.rows.label.is_empty() && width(&grid.rows.label, LABEL) <= down;
        let mut left = if names > 0.0 { names + 8.0 } else { 2.0 };
        if upward {
            left += LABEL * LINE;
        }
        let heading =
            wrap_strong(&panel.heading, HEADING, (left + across).max(if panel.beside { 250.0 } else { 340.0 }));
        let heading_width = heading.iter().map(|line| strong_width(line, HEADING)).fold(0.0, f64::max);
        let mut top = heading.len() as f64 * HEADING * LINE + 4.0;
        let labels = [&grid.rows.label, &grid.columns.label];
        let labels_above = labels.iter().skip(usize::from(upward)).filter(|label| !label.is_empty());
        top += labels_above.clone().count() as f64 * LABEL * LINE;
        if grid.columns.tracks.iter().any(|track| !track.name.is_empty()) {
            top += LABEL * LINE;
        }
        top += 4.0;
        let labels_width = labels_above.map(|label| width(label, LABEL) + 14.0).fold(0.0, f64::max);

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
                if width(&axis.gap_in_words(first, hidden), LABEL) > to - from {
                    remarks.push(axis.gap_with_range(first, hidden));
                }
            }
        }
        remarks
    }

    pub(crate) fn write(&self, canvas: &mut Canvas, x: f64, y: f64) {
        let grid = &self.panel.grid;
        canvas.write(format_args!(
            "<g data-panel=\"{}\" transform=\"translate({} {})\">\n",
            self.panel.name,
            N(x),
            N(y)
        ));
        for (number, line) in self.heading.iter().enumerate() {
            canvas.text("tw-heading", 0.0, HEADING + number as f64 * HEADING * LINE, line);
        }
        self.write_labels(canvas);
        for cell in &grid.cells {
            self.write_cell(canvas, cell);
        }
        self.write_borders(canvas);
        self.write_gaps(canvas);
        self.write_links(canvas);
        for cell in grid.cells.iter().filter(|cell| cell.spot.highlighted) {
            let (x, y) = self.corner(cell);
            let (w, h) = self.cell;
            canvas.rect("tw-halo", x, y, w, h, " rx=\"3\"");
            canvas.rect("tw-ring", x, y, w, h, " rx=\"3\"");
        }
        canvas.out.push_str("</g>\n");
    }

    fn write_labels(&self, canvas: &mut Canvas) {
        let grid = &self.panel.grid;
        let (left, top) = self.origin;
        let names = grid.columns.tracks.iter().any(|track| !track.name.is_empty());
        let mut y = top - 6.0;
        if names {
            for (item, track) in tracks(&grid.columns, &self.columns) {
                canvas.text("tw-label tw-middle", left + self.xs[item] + self.cell.0 / 2.0, y, &track.name);
            }
            y -= LABEL * LINE;
        }
        if !grid.columns.label.is_empty() {
            canvas.text("tw-label", left, y, &format!("→ {}", grid.columns.label));
            y -= LABEL * LINE;
        }
        for (item, track) in tracks(&grid.rows, &self.rows) {
            let middle = top + self.ys[item] + self.cell.1 / 2.0 + LABEL * 0.36;
            canvas.text("tw-label tw-end", left - 6.0, middle, &track.name);
        }
        if grid.rows.label.is_empty() {
            return;
        }
        if self.upward {
            canvas.upward_text("tw-label", LABEL - 1.0, top + last(&self.ys) / 2.0, &grid.rows.label);
        } else {
            canvas.text("tw-label", left, y, &format!("↓ {}", grid.rows.label));
        }
    }

    fn write_cell(&self, canvas: &mut Canvas, cell: &Cell) {
        let ((x, y), (w, h)) = (self.corner(cell), self.cell);
        let spot = &cell.spot;
        let mut data = String::new();
        if let Some(index) = &spot.index {
            let _ = write!(data, " data-index=\"{}\"", list(index));
        }
        if let Some(offset) = spot.offset {
            let _ = write!(data, " data-offset=\"{offset}\"");
        }
        match spot.kind {
            Kind::Element => {}
            Kind::Padding => data.push_str(" data-padding=\"tile\""),
            Kind::Tail => data.push_str(" data-padding=\"tail\""),
        }
        let (class, on) = match cell.color {
            Some(color) => (format!("tw-c tw-{color}"), "tw-on"),
            None => {
                data.push_str(" fill=\"url(#tw-padding)\"");
                ("tw-c".to_owned(), "tw-muted")
            }
        };
        canvas.rect(&class, x, y, w, h, &data);
        let middle = x + w / 2.0;
        let wide = width(&spot.text, CELL);
        let size = if wide > w - 6.0 { (CELL * (w - 6.0) / wide).max(6.0) } else { CELL };
        let baseline = if spot.note.is_empty() { y + h / 2.0 + size * 0.36 } else { y + h / 2.0 + 1.0 };
        if !spot.text.is_empty() {
            let class = format!("tw-cell {on}");
            if size < CELL {
                canvas.sized_text(&class, middle, baseline, size, &spot.text);
            } else {
                canvas.text(&class, middle, baseline, &spot.text);
            }
        }
        if !spot.note.is_empty() {
            canvas.text(&format!("tw-note {on}"), middle, y + h - 5.0, &spot.note);
        }
        if spot.moved {
            let right = x + w - 2.5;
            canvas.path("tw-accent", &format!("M{} {}h-7l7 7z", N(right), N(y + 2.5)));
        }
    }

    fn write_borders(&self, canvas: &mut Canvas) {
        let (mut tile, mut inner) = (String::new(), String::new());
        // Neighbours have the same border.
        let mut drawn = HashSet::new();
        for cell in &self.panel.grid.cells {
            let ((x, y), (w, h)) = (self.corner(cell), self.cell);
            let Edges { left, top, right, bottom } = cell.edges;
            for (edge, x, y, along) in [
                (top, x, y, ("h", w)),
                (bottom, x, y + h, ("h", w)),
                (left, x, y, ("v", h)),
                (right, x + w, y, ("v", h)),
            ] {
                let path = match edge {
                    0 => continue,
                    1 => &mut tile,
                    _ => &mut inner,
                };
                let segment = format!("M{} {}{}{}", N(x), N(y), along.0, N(along.1));
                if !drawn.contains(&segment) {
                    path.push_str(&segment);
                    drawn.insert(segment);
                }
            }
        }
        canvas.path("tw-inner", &inner);
        canvas.path("tw-tile", &tile);
    }

    fn write_gaps(&self, canvas: &mut Canvas) {
        let grid = &self.panel.grid;
        let (left, top) = self.origin;
        // Words about columns keep out of the way of words about rows.
        let across = last(&self.xs);
        let middle = left + across / 2.0;
        for (item, text) in gaps(&grid.rows, &self.rows) {
            let text = if width(&text, LABEL) > across { "…" } else { &text };
            canvas.text("tw-label tw-middle", middle, top + self.ys[item] + GAP / 2.0 + 4.0, text);
        }
        let down = longest_run(&self.rows, &self.ys);
        let middle = top + (down.0 + down.1) / 2.0;
        for (item, text) in gaps(&grid.columns, &self.columns) {
            let x = left + self.xs[item] + GAP / 2.0;
            if width(&text, LABEL) > down.1 - down.0 {
                canvas.text("tw-label tw-middle", x, middle + 3.0, "…");
            } else {
                canvas.upward_text("tw-label", x + 4.0, middle, &text);
            }
        }
        let down = last(&self.ys);
        for (number, text) in self.remarks.iter().enumerate() {
            canvas.text("tw-label", left, top + down + 2.0 + (number + 1) as f64 * LABEL * LINE, text);
        }
    }

    fn write_links(&self, canvas: &mut Canvas) {
        let grid = &self.panel.grid;
        for moved in [false, true] {
            let mut data = String::new();
            for link in grid.links.iter().filter(|link| link.moved == moved) {
                let (Some(from), Some(to)) = (grid.cells.get(link.from), grid.cells.get(link.to)) else { continue };
                let ((x1, y1), (x2, y2)) = (self.corner(from), self.corner(to));
                let (x1, y1, x2) = (x1 + self.cell.0 / 2.0, y1 + self.cell.1 + 2.0, x2 + self.cell.0 / 2.0);
                let y2 = y2 - 2.0;
                let bend = (y2 - y1) / 2.0;
                let (y1, y2, c1, c2) = (N(y1), N(y2), N(y1 + bend), N(y2 - bend));
                let (x1, x2) = (N(x1), N(x2));
                let _ = write!(data, "M{x1} {y1}C{x1} {c1} {x2} {c2} {x2} {y2}");
            }
            canvas.path(if moved { "tw-moved-link" } else { "tw-link" }, &data);
        }
    }

    fn corner(&self, cell: &Cell) -> (f64, f64) {
        let item =
            |items: &[Item], track: usize| items.iter().position(|item| *item == Item::Track(track)).unwrap_or(0);
        let (left, top) = self.origin;
        (left + self.xs[item(&self.columns, cell.column)], top + self.ys[item(&self.rows, cell.row)])
    }
}

/// As wide as the widest text, within limits.
fn cell_size(grid: &Grid) -> (f64, f64) {
    let texts = grid.cells.iter().map(|cell| width(&cell.spot.text, CELL)).fold(0.0, f64::max);
    let notes = grid.cells.iter().map(|cell| width(&cell.spot.note, NOTE)).fold(0.0, f64::max);
    let names = grid.columns.tracks.iter().map(|track| width(&track.name, LABEL)).fold(0.0, f64::max);
    let wide = (texts + 10.0).max(notes + 8.0).max(names + 6.0).clamp(30.0, 112.0).ceil();
    (wide, if notes > 0.0 || grid.tall { 38.0 } else { 30.0 })
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

/// Where the longest run of tracks without a gap starts and ends.
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

fn tracks<'a>(axis: &'a Axis, items: &'a [Item]) -> impl Iterator<Item = (usize, &'a crate::tracks::Track)> {
    items.iter().enumerate().filter_map(|(at, item)| match item {
        Item::Track(track) => Some((at, axis.tracks.get(*track)?)),
        Item::Gap { .. } => None,
    })
}

/// The gaps with what they leave out.
fn gaps<'a>(axis: &'a Axis, items: &'a [Item]) -> impl Iterator<Item = (usize, String)> + 'a {
    items.iter().enumerate().filter_map(|(at, item)| match *item {
        Item::Gap { from, hidden } => Some((at, axis.gap_in_words(from, hidden))),
        Item::Track(_) => None,
    })
}

/// What a heading or caption would be without markup.
pub(crate) fn described(canvas: &mut Canvas, element: &str, text: &str) {
    canvas.write(format_args!("<{element}>{}</{element}>\n", Escaped(text)));
}
