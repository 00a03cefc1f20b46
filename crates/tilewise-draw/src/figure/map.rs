//! A map of a grid that leaves something out, as a whole and to scale: data, padding, and the tiles that are drawn.

use super::{
    class::{Class, Style},
    mark::{Group, Line, Point, Text},
    measure::{width, wrap},
};
use crate::{axis::Axis, grid::Grid, text::grouped};
use std::collections::BTreeMap;

/// The least width of a map, and the most of its area's sides.
pub(super) const NARROWEST: f64 = 150.0;
const WIDEST: f64 = 240.0;
const HIGHEST: f64 = 170.0;

/// The least side of the area; if one is shorter, each side has its own scale.
const THINNEST: f64 = 14.0;

/// The least distance of lines between tiles.
const CLOSEST: f64 = 5.0;

/// The least side of a drawn tile, and of the data.
const SEEN: f64 = 2.0;

const HEADING: f64 = Style::Heading.size();
const LABEL: f64 = Style::Label.size();
const LINE: f64 = 1.35;

/// A map with its measures; coordinates are relative to its own corner.
pub(super) struct MapLayout<'a> {
    grid: &'a Grid,
    /// Rows and columns of a tile; 0 in an array without tiles.
    tile: (u64, u64),
    origin: Point,
    /// The area's sides, across and down.
    area: Point,
    heading: &'static str,
    remarks: Vec<String>,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl<'a> MapLayout<'a> {
    /// The map of a grid, no wider than that if its heading allows it; `None` if the grid shows everything.
    pub(super) fn of(grid: &'a Grid, tile: (u64, u64), most: f64) -> Option<Self> {
        let is_whole = |axis: &Axis| axis.tracks.len() as u64 == axis.extent;
        if is_whole(&grid.rows) && is_whole(&grid.columns) {
            return None;
        }
        let left = LABEL * LINE + 4.0;
        let (columns, rows) = (real(grid.columns.extent), real(grid.rows.extent));
        let widest = (most - left).clamp(NARROWEST - left, WIDEST);
        let scale = (widest / columns).min(HIGHEST / rows);
        let ideal = (columns * scale, rows * scale);
        let area = (ideal.0.max(THINNEST).round(), ideal.1.max(THINNEST).round());
        let is_stretched = ideal.0 < THINNEST || ideal.1 < THINNEST;
        // A side with its own scale may take all available space.
        let area = match is_stretched {
            true if ideal.0 < THINNEST => (widest.min(HIGHEST).round(), area.1),
            _ => area,
        };
        let is_line = grid.rows.extent == 1;
        let heading = if is_stretched && !is_line { "Each side to scale" } else { "To scale" };
        let mut map = Self {
            grid,
            tile,
            origin: (left.ceil() + 0.5, (HEADING * LINE + 6.0 + LABEL * LINE).ceil() + 0.5),
            area,
            heading,
            remarks: Vec::new(),
            width: 0.0,
            height: 0.0,
        };
        let mut remarks = Vec::new();
        if !is_line && width(&extent(&grid.rows), LABEL) > area.1 {
            remarks.push(format!("↓ {}", extent(&grid.rows)));
        }
        let data = real(grid.columns.bound) / columns * (real(grid.rows.bound) / rows);
        if data < 1.0 {
            remarks.push(match data * 100.0 {
                percent if percent < 10.0 => format!("{percent:.1} % of it is data"),
                percent => format!("{:.0} % of it is data", percent.floor()),
            });
        }
        if !map.tiles().is_empty() {
            remarks.push("in colour: the tiles drawn".to_owned());
        }
        let most = widest.max(area.0);
        map.remarks = remarks.iter().flat_map(|remark| wrap(remark, LABEL, most)).collect();
        let texts =
            map.remarks.iter().map(|line| width(line, LABEL)).fold(width(&extent(&grid.columns), LABEL), f64::max);
        map.width = (map.origin.0 + texts.max(area.0) + 2.0).max(super::strong_width(heading, HEADING));
        map.height = map.origin.1 + area.1 + map.remarks.len() as f64 * LABEL * LINE + 4.0;
        Some(map)
    }

    /// The map's marks, with its corner at a point.
    pub(super) fn group(&self, corner: Point) -> Group<'a> {
        let mut group = Group::new(Some("map"), corner);
        let ((left, top), (wide, high)) = (self.origin, self.area);
        group.text(Text::new(Style::Heading, (0.0, HEADING), self.heading));
        let label = |at, text: String| Text::new(Style::Label, at, text);
        group.text(label((left, top - 6.0), format!("→ {}", extent(&self.grid.columns))));
        let rows = extent(&self.grid.rows);
        if self.grid.rows.extent > 1 && width(&rows, LABEL) <= high {
            group.text(label((LABEL - 1.0, top + high / 2.0), rows).upward());
        }
        group.rect(Class::Swatch(None), (left, top), (wide, high));
        let (x, y) = (along(&self.grid.columns, wide), along(&self.grid.rows, high));
        let (data_right, data_bottom) = (x(self.grid.columns.bound).max(SEEN), y(self.grid.rows.bound).max(SEEN));
        group.rect(Class::Extent, (left, top), (data_right, data_bottom));
        let side = |number: u64, period: u64, at: &dyn Fn(u64) -> f64, end: f64| {
            let from = at(number.saturating_mul(period)).min(end - SEEN);
            let to = at(number.saturating_add(1).saturating_mul(period)).clamp(from + SEEN, end.max(from + SEEN));
            (from, tenths(to - from))
        };
        for ((row, column), color) in self.tiles() {
            let (right, wide) = side(column, self.tile.1, &x, data_right);
            let (down, high) = side(row, self.tile.0, &y, data_bottom);
            group.rect(Class::Swatch(Some(color)), (tenths(left + right), tenths(top + down)), (wide, high));
        }
        group.lines(Class::Bracket, self.borders());
        group.rect(Class::Outline, (left, top), (wide, high));
        if let Some(cell) = self.grid.highlighted() {
            const DOT: f64 = 6.0;
            let position = |axis: &Axis, track: usize| axis.tracks.get(track).map_or(0, |track| track.position);
            let middle = |from: f64, to: f64| (from + to) / 2.0 - DOT / 2.0;
            let (column, row) = (position(&self.grid.columns, cell.column), position(&self.grid.rows, cell.row));
            let at = (left + middle(x(column), x(column + 1)), top + middle(y(row), y(row + 1)));
            group.round_rect(Class::Accent, (tenths(at.0), tenths(at.1)), (DOT, DOT), DOT / 2.0);
        }
        for (number, text) in self.remarks.iter().enumerate() {
            group.text(label((left, top + high + 4.0 + (number + 1) as f64 * LABEL * LINE), text.clone()));
        }
        group
    }

    /// The tiles that the grid shows a part of, by row and column of tiles, with their colours; empty if tiles aren't
    /// such rectangles.
    fn tiles(&self) -> BTreeMap<(u64, u64), usize> {
        let mut tiles = BTreeMap::new();
        let number = |axis: &Axis, track: usize, period: u64| {
            axis.tracks.get(track).and_then(|track| track.position.checked_div(period))
        };
        for cell in &self.grid.cells {
            let row = number(&self.grid.rows, cell.row, self.tile.0);
            let column = number(&self.grid.columns, cell.column, self.tile.1);
            let (Some(row), Some(column), Some(color)) = (row, column, cell.color) else { continue };
            if *tiles.entry((row, column)).or_insert(color) != color {
                return BTreeMap::new();
            }
        }
        tiles
    }

    /// Lines between tiles, if they aren't too close to tell apart.
    fn borders(&self) -> Vec<Line> {
        let ((left, top), (wide, high)) = (self.origin, self.area);
        let steps = |period: u64, axis: &Axis, side: f64| {
            let far_enough = period > 1 && real(period) / real(axis.extent) * side >= CLOSEST;
            let last = if far_enough { axis.extent.saturating_sub(1) / period } else { 0 };
            (1..=last).map(move |step| step * period)
        };
        let (x, y) = (along(&self.grid.columns, wide), along(&self.grid.rows, high));
        let down = steps(self.tile.1, &self.grid.columns, wide);
        let across = steps(self.tile.0, &self.grid.rows, high);
        let down = down.map(|column| Line::down((left + x(column), top), high));
        down.chain(across.map(|row| Line::across((left, top + y(row)), wide))).collect()
    }
}

/// `12 of 128`
fn extent(axis: &Axis) -> String {
    match axis.bound < axis.extent {
        true => format!("{} of {}", grouped(axis.bound), grouped(axis.extent)),
        false => grouped(axis.extent),
    }
}

/// The start of a track along a side of the area.
fn along(axis: &Axis, side: f64) -> impl Fn(u64) -> f64 {
    let extent = real(axis.extent.max(1));
    move |position| tenths(real(position) / extent * side)
}

fn tenths(at: f64) -> f64 {
    (at * 10.0).round() / 10.0
}

#[expect(clippy::cast_precision_loss, reason = "a position in a picture")]
fn real(n: u64) -> f64 {
    n as f64
}
