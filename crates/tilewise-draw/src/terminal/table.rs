//! A grid as lines of text, with borders drawn between cells.

use super::{
    ansi::{Ansi, CellStyle},
    wrap,
};
use crate::{
    axis::Item,
    grid::{Cell, Edge, Grid, Kind},
};

pub(crate) fn write(out: &mut String, grid: &Grid, ansi: &Ansi, width: usize) {
    let linked: Vec<_> = grid.links.iter().filter_map(|link| Some((grid.cells.get(link.from)?, link.moved))).collect();
    let grid = fitting(grid, ansi, width);
    let table = Table::of(&grid, ansi);
    for (arrow, label) in [("↓", &grid.rows.label), ("→", &grid.columns.label)] {
        if !label.is_empty() {
            for line in wrap(&ansi.plain(&format!("{arrow} {label}")), width) {
                push(out, &ansi.muted(&line));
            }
        }
    }
    table.write_names(out);
    table.write_separator(out, None, table.rows.first());
    for (at, item) in table.rows.iter().enumerate() {
        match *item {
            Item::Track(row) => table.write_row(out, row),
            Item::Gap { from, hidden } => {
                let text = ansi.plain(&grid.rows.gap_label(from, hidden));
                let indent = if table.gutter + 20 <= width { table.gutter + 1 } else { 0 };
                for line in wrap(&text, width - indent) {
                    push(out, &ansi.muted(&format!("{}{line}", " ".repeat(indent))));
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
            for line in wrap(&ansi.plain(&grid.columns.gap_label_with_range(from, hidden)), width) {
                push(out, &ansi.muted(&line));
            }
        }
    }
}

fn push(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// The grid with as many columns as the width takes.
fn fitting(grid: &Grid, ansi: &Ansi, width: usize) -> Grid {
    let mut most = grid.columns.tracks.len();
    loop {
        let narrowed = grid.narrowed(most);
        if most <= 1 || Table::of(&narrowed, ansi).width() <= width {
            return narrowed;
        }
        most -= 1;
    }
}

struct Table<'a> {
    grid: &'a Grid,
    ansi: &'a Ansi,
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
    fn of(grid: &'a Grid, ansi: &'a Ansi) -> Self {
        let length = |text: &str| ansi.plain(text).chars().count();
        let marks = grid.highlighted().is_some();
        let texts = grid.cells.iter().map(|cell| length(&cell.content.text) + 2 * usize::from(marks));
        let notes = grid.cells.iter().map(|cell| length(&cell.content.note));
        let names = grid.columns.tracks.iter().map(|track| length(&track.name));
        Self {
            grid,
            ansi,
            cells: grid.table(),
            rows: grid.rows.items(),
            columns: grid.columns.items(),
            gutter: grid.rows.tracks.iter().map(|track| length(&track.name)).max().unwrap_or(0),
            cell: texts.chain(notes).chain(names).max().unwrap_or(0).max(1),
            notes: grid.cells.iter().any(|cell| !cell.content.note.is_empty()),
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
    fn vertical(&self, row: Option<usize>, at: usize) -> Edge {
        let Some(row) = row else { return Edge::None };
        let right = self.cell(row, self.columns.get(at)).map_or(Edge::None, |cell| cell.edges.left);
        let before = at.checked_sub(1).and_then(|before| self.columns.get(before));
        let left = self.cell(row, before).map_or(Edge::None, |cell| cell.edges.right);
        strongest(left, right)
    }

    /// The border below one row and above the next, at an item.
    fn horizontal(&self, upper: Option<usize>, lower: Option<usize>, item: Option<&Item>) -> Edge {
        let above = upper.and_then(|row| self.cell(row, item)).map_or(Edge::None, |cell| cell.edges.bottom);
        let below = lower.and_then(|row| self.cell(row, item)).map_or(Edge::None, |cell| cell.edges.top);
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
            let name = self.ansi.plain(name);
            let margin = usize::from(self.marks && matches!(item, Item::Track(_)));
            line.push(' ');
            line.push_str(&format!("{name:>0$}{1}", self.item_width(item) - margin, " ".repeat(margin)));
        }
        push(out, &self.ansi.muted(&line));
    }

    fn write_row(&self, out: &mut String, row: usize) {
        let name = self.grid.rows.tracks.get(row).map_or("", |track| &track.name);
        self.write_line(out, row, &self.ansi.plain(name), &|cell| self.text(cell));
        if self.notes {
            self.write_line(out, row, "", &|cell| self.ansi.plain(&cell.content.note));
        }
    }

    fn text(&self, cell: &Cell) -> String {
        let text = match cell.content.kind {
            Kind::Element => self.ansi.plain(&cell.content.text),
            Kind::Padding | Kind::Tail => self.ansi.padding().to_string(),
        };
        match (self.marks, cell.content.highlighted) {
            (false, _) => text,
            (true, false) => format!("{text} "),
            (true, true) => format!("[{text}]"),
        }
    }

    fn write_line(&self, out: &mut String, row: usize, name: &str, text: &dyn Fn(&Cell) -> String) {
        let mut line = self.ansi.muted(&format!("{name:>0$} ", self.gutter));
        let mut before = CellStyle::default();
        for (at, item) in self.columns.iter().enumerate() {
            let cell = self.cell(row, Some(item));
            let style = cell.map_or(CellStyle::default(), style);
            let border = self.vertical(Some(row), at);
            let joined = !matches!(border, Edge::Joined | Edge::Tile) && before.color == style.color;
            let ground = CellStyle { color: if joined { style.color } else { None }, ..CellStyle::default() };
            line.push_str(&self.ansi.cell(ground, &self.ansi.vertical(border).to_string()));
            let text = match (cell, item) {
                (Some(cell), _) => text(cell),
                (None, Item::Gap { .. }) => self.ansi.plain("…"),
                (None, Item::Track(_)) => String::new(),
            };
            let width = self.item_width(item);
            let text =
                if matches!(item, Item::Gap { .. }) { format!("{text:^width$}") } else { format!("{text:>width$}") };
            line.push_str(&self.ansi.cell(style, &text));
            before = style;
        }
        line.push(self.ansi.vertical(self.vertical(Some(row), self.columns.len())));
        push(out, &line);
    }

    /// The borders between two rows, if there are any.
    fn write_separator(&self, out: &mut String, upper: Option<&Item>, lower: Option<&Item>) {
        let row = |item: Option<&Item>| match item {
            Some(Item::Track(row)) => Some(*row),
            _ => None,
        };
        let (upper, lower) = (row(upper), row(lower));
        let edges: Vec<Edge> = self.columns.iter().map(|item| self.horizontal(upper, lower, Some(item))).collect();
        if edges.iter().all(|&edge| edge == Edge::None) {
            return;
        }
        let mut line = " ".repeat(self.gutter + 1);
        for at in 0..=self.columns.len() {
            let left = at.checked_sub(1).and_then(|before| edges.get(before)).copied().unwrap_or_default();
            let right = edges.get(at).copied().unwrap_or_default();
            line.push(self.ansi.corner([left, right, self.vertical(upper, at), self.vertical(lower, at)]));
            if let Some(item) = self.columns.get(at) {
                line.extend(std::iter::repeat_n(self.ansi.horizontal(right), self.item_width(item)));
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
                    position.is_some() && position == cell.content.offset
                }),
                Item::Gap { .. } => None,
            };
            let mark = link.map_or(' ', |(_, moved)| self.ansi.link(*moved));
            line.push_str(&format!(" {mark:>0$}", self.item_width(item)));
        }
        push(out, &line);
    }
}

/// The outermost of two borders.
fn strongest(a: Edge, b: Edge) -> Edge {
    match (a, b) {
        (Edge::None, edge) | (edge, Edge::None) => edge,
        (a, b) => a.min(b),
    }
}

fn style(cell: &Cell) -> CellStyle {
    CellStyle { color: cell.color, highlighted: cell.content.highlighted, muted: cell.content.kind != Kind::Element }
}
