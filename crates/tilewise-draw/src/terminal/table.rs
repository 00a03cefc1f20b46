//! A grid as lines of text, with borders drawn between cells.

use super::{
    ink::{Ink, Look},
    wrap,
};
use crate::{
    grid::{Cell, Grid, Kind},
    tracks::Item,
};

pub(crate) fn write(out: &mut String, grid: &Grid, ink: &Ink, width: usize) {
    let linked: Vec<_> = grid.links.iter().filter_map(|link| Some((grid.cells.get(link.from)?, link.moved))).collect();
    let grid = fitting(grid, ink, width);
    let table = Table::of(&grid, ink);
    for (arrow, label) in [("↓", &grid.rows.label), ("→", &grid.columns.label)] {
        if !label.is_empty() {
            for line in wrap(&ink.plain(&format!("{arrow} {label}")), width) {
                push(out, &ink.muted(&line));
            }
        }
    }
    table.write_names(out);
    table.write_separator(out, None, table.rows.first());
    for (at, item) in table.rows.iter().enumerate() {
        match *item {
            Item::Track(row) => table.write_row(out, row),
            Item::Gap { from, hidden } => {
                let text = ink.plain(&grid.rows.gap_in_words(from, hidden));
                let indent = if table.gutter + 20 <= width { table.gutter + 1 } else { 0 };
                for line in wrap(&text, width - indent) {
                    push(out, &ink.muted(&format!("{}{line}", " ".repeat(indent))));
                }
            }
        }
        if !linked.is_empty() && at == 0 {
            table.write_separator(out, Some(item), None);
            table.write_links(out, &linked);
            table.write_separator(out, None, table.rows.get(1));
        } else {
            table.write_separator(out, Some(item), table.rows.get(at + 1));
        }
    }
    for item in &table.columns {
        if let Item::Gap { from, hidden } = *item {
            for line in wrap(&ink.plain(&grid.columns.gap_with_range(from, hidden)), width) {
                push(out, &ink.muted(&line));
            }
        }
    }
}

fn push(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// The grid with as many columns as the width takes.
fn fitting(grid: &Grid, ink: &Ink, width: usize) -> Grid {
    let mut most = grid.columns.tracks.len();
    loop {
        let narrowed = grid.narrowed(most);
        if most <= 1 || Table::of(&narrowed, ink).width() <= width {
            return narrowed;
        }
        most -= 1;
    }
}

struct Table<'a> {
    grid: &'a Grid,
    ink: &'a Ink,
    cells: Vec<Option<&'a Cell>>,
    rows: Vec<Item>,
    columns: Vec<Item>,
    /// Characters of the names at the left.
    gutter: usize,
    /// Characters of a cell.
    cell: usize,
    notes: bool,
    /// Whether some cell is marked, which takes a character on each side.
    marks: bool,
}

/// Characters of a gap.
const GAP: usize = 3;

impl<'a> Table<'a> {
    fn of(grid: &'a Grid, ink: &'a Ink) -> Self {
        let length = |text: &str| ink.plain(text).chars().count();
        let marks = grid.highlighted().is_some();
        let texts = grid.cells.iter().map(|cell| length(&cell.spot.text) + 2 * usize::from(marks));
        let notes = grid.cells.iter().map(|cell| length(&cell.spot.note));
        let names = grid.columns.tracks.iter().map(|track| length(&track.name));
        Self {
            grid,
            ink,
            cells: grid.table(),
            rows: grid.rows.items(),
            columns: grid.columns.items(),
            gutter: grid.rows.tracks.iter().map(|track| length(&track.name)).max().unwrap_or(0),
            cell: texts.chain(notes).chain(names).max().unwrap_or(0).max(1),
            notes: grid.cells.iter().any(|cell| !cell.spot.note.is_empty()),
            marks,
        }
    }

    fn width(&self) -> usize {
        self.gutter + 2 + self.columns.iter().map(|item| self.item_width(item) + 1).sum::<usize>()
    }

    fn item_width(&self, item: &Item) -> usize {
        match item {
            Item::Track(_) => self.cell,
            Item::Gap { .. } => GAP,
        }
    }

    fn cell(&self, row: usize, item: Option<&Item>) -> Option<&'a Cell> {
        match item? {
            Item::Track(column) => self.cells.get(row * self.grid.columns.tracks.len() + column).copied().flatten(),
            Item::Gap { .. } => None,
        }
    }

    /// The border to the left of an item of a row; behind the last item, the one to its right.
    fn vertical(&self, row: Option<usize>, at: usize) -> u8 {
        let Some(row) = row else { return 0 };
        let right = self.cell(row, self.columns.get(at)).map_or(0, |cell| cell.edges.left);
        let before = at.checked_sub(1).and_then(|before| self.columns.get(before));
        let left = self.cell(row, before).map_or(0, |cell| cell.edges.right);
        strongest(left, right)
    }

    /// The border below one row and above the next, at an item.
    fn horizontal(&self, upper: Option<usize>, lower: Option<usize>, item: Option<&Item>) -> u8 {
        let above = upper.and_then(|row| self.cell(row, item)).map_or(0, |cell| cell.edges.bottom);
        let below = lower.and_then(|row| self.cell(row, item)).map_or(0, |cell| cell.edges.top);
        strongest(above, below)
    }

    fn write_names(&self, out: &mut String) {
        if self.grid.columns.tracks.iter().all(|track| track.name.is_empty()) {
            return;
        }
        let mut line = " ".repeat(self.gutter + 1);
        for item in &self.columns {
            let name = match item {
                Item::Track(column) => self.grid.columns.tracks.get(*column).map_or("", |track| &track.name),
                Item::Gap { .. } => "",
            };
            let name = self.ink.plain(name);
            let margin = usize::from(self.marks && matches!(item, Item::Track(_)));
            line.push(' ');
            line.push_str(&format!("{name:>0$}{1}", self.item_width(item) - margin, " ".repeat(margin)));
        }
        push(out, &self.ink.muted(&line));
    }

    fn write_row(&self, out: &mut String, row: usize) {
        let name = self.grid.rows.tracks.get(row).map_or("", |track| &track.name);
        self.write_line(out, row, &self.ink.plain(name), &|cell| self.text(cell));
        if self.notes {
            self.write_line(out, row, "", &|cell| self.ink.plain(&cell.spot.note));
        }
    }

    fn text(&self, cell: &Cell) -> String {
        let text = match cell.spot.kind {
            Kind::Element => self.ink.plain(&cell.spot.text),
            Kind::Padding | Kind::Tail => self.ink.padding().to_string(),
        };
        match (self.marks, cell.spot.highlighted) {
            (false, _) => text,
            (true, false) => format!("{text} "),
            (true, true) => format!("[{text}]"),
        }
    }

    fn write_line(&self, out: &mut String, row: usize, name: &str, text: &dyn Fn(&Cell) -> String) {
        let mut line = self.ink.muted(&format!("{name:>0$} ", self.gutter));
        let mut before = Look::default();
        for (at, item) in self.columns.iter().enumerate() {
            let cell = self.cell(row, Some(item));
            let look = cell.map_or(Look::default(), look);
            let border = self.vertical(Some(row), at);
            let joined = border != 1 && before.color == look.color;
            let ground = Look { color: if joined { look.color } else { None }, ..Look::default() };
            line.push_str(&self.ink.cell(ground, &self.ink.vertical(border).to_string()));
            let text = match (cell, item) {
                (Some(cell), _) => text(cell),
                (None, Item::Gap { .. }) => self.ink.plain("…"),
                (None, Item::Track(_)) => String::new(),
            };
            let width = self.item_width(item);
            let text =
                if matches!(item, Item::Gap { .. }) { format!("{text:^width$}") } else { format!("{text:>width$}") };
            line.push_str(&self.ink.cell(look, &text));
            before = look;
        }
        line.push(self.ink.vertical(self.vertical(Some(row), self.columns.len())));
        push(out, &line);
    }

    /// The borders between two rows, if there are any.
    fn write_separator(&self, out: &mut String, upper: Option<&Item>, lower: Option<&Item>) {
        let row = |item: Option<&Item>| match item {
            Some(Item::Track(row)) => Some(*row),
            _ => None,
        };
        let (upper, lower) = (row(upper), row(lower));
        let edges: Vec<u8> = self.columns.iter().map(|item| self.horizontal(upper, lower, Some(item))).collect();
        if edges.iter().all(|&edge| edge == 0) {
            return;
        }
        let mut line = " ".repeat(self.gutter + 1);
        for at in 0..=self.columns.len() {
            let left = at.checked_sub(1).and_then(|before| edges.get(before)).copied().unwrap_or(0);
            let right = edges.get(at).copied().unwrap_or(0);
            line.push(self.ink.corner([left, right, self.vertical(upper, at), self.vertical(lower, at)]));
            if let Some(item) = self.columns.get(at) {
                line.extend(std::iter::repeat_n(self.ink.horizontal(right), self.item_width(item)));
            }
        }
        push(out, &line);
    }

    fn write_links(&self, out: &mut String, linked: &[(&Cell, bool)]) {
        let mut line = " ".repeat(self.gutter + 1);
        for item in &self.columns {
            let link = match item {
                Item::Track(column) => linked.iter().find(|(cell, _)| {
                    let position = self.grid.columns.tracks.get(*column).map(|track| track.position);
                    position.is_some() && position == cell.spot.offset
                }),
                Item::Gap { .. } => None,
            };
            let mark = link.map_or(' ', |(_, moved)| self.ink.link(*moved));
            line.push_str(&format!(" {mark:>0$}", self.item_width(item)));
        }
        push(out, &line);
    }
}

/// The outermost of two borders.
fn strongest(a: u8, b: u8) -> u8 {
    match (a, b) {
        (0, edge) | (edge, 0) => edge,
        (a, b) => a.min(b),
    }
}

fn look(cell: &Cell) -> Look {
    Look { color: cell.color, highlighted: cell.spot.highlighted, muted: cell.spot.kind != Kind::Element }
}
