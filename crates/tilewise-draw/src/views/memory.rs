//! Memory in its order, each cell with the index of its element.

use super::{Drawing, MOST_ROWS, most_columns};
use crate::{
    axis::{Axis, Selection},
    grid::{CellContent, Colors, GridBuilder, Kind, byte_label},
    scene::Panel,
    text::short_index,
};
use tilewise::Tiled;

impl Drawing<'_> {
    pub(super) fn memory(&self, colors: &mut Colors) -> Panel {
        let heading = "Memory: each cell's index in the array";
        self.memory_of(heading, &|content| content, colors)
    }

    /// Memory, with each cell's content changed by `annotate`.
    pub(super) fn memory_of(
        &self,
        heading: &str,
        annotate: &dyn Fn(CellContent) -> CellContent,
        colors: &mut Colors,
    ) -> Panel {
        let line = line(self.tiled);
        let (rows, columns) = self.lines(line);
        let offset = |row: u64, column: u64| {
            let offset = row.checked_mul(line)?.checked_add(column)?;
            (offset < self.tiled.physical_elements()).then_some(offset)
        };
        let content = |row, column| Some(annotate(self.content_at(offset(row, column)?)));
        let blocks = |row, column| Some(self.padded.blocks_at(offset(row, column)?));
        let builder = GridBuilder { rows, columns, content: &content, blocks: &blocks, inner_between_rows: false };
        Panel::of("memory", heading, builder.build(colors))
    }

    /// The content at an offset: the index of an element in the colour of its tile, or padding.
    pub(super) fn content_at(&self, offset: u64) -> CellContent {
        let kind = self.kind(offset);
        let index = if kind == Kind::Element { self.tiled.index_of(offset).ok().flatten() } else { None };
        let tile = self.padded.place_at(offset).and_then(|place| self.tile(&place));
        let color_key = index.as_ref().and_then(|index| self.color_key(&self.padded.place(index)));
        CellContent {
            kind,
            offset: Some(offset),
            bits: self.tiled.stored_bits(),
            tile,
            text: index.as_ref().map_or_else(String::new, |index| short_index(index)),
            index,
            color_key,
            highlighted: self.highlighted_offset == Some(offset),
            ..CellContent::default()
        }
    }

    fn lines(&self, line: u64) -> (Axis, Axis) {
        let total = self.tiled.physical_elements();
        let lines = total.div_ceil(line);
        let first = self.padded.index(&self.plane.place(0, 0)).and_then(|index| self.tiled.offset_of(&index).ok());
        // The highlighted element, or the start of the drawn slice.
        let focus: Vec<u64> = self.highlighted_offset.or(first).into_iter().collect();
        let block = self.padded.levels().first().map_or(0, |level| level.block_elements() / line);

        let rows = Selection {
            most: MOST_ROWS - 4,
            periods: vec![block],
            focus: focus.iter().map(|offset| offset / line).collect(),
        };
        let rows = Axis::new(lines, lines, "line", &rows);
        let columns = Selection {
            most: most_columns(index_length(self.tiled)),
            periods: Vec::new(),
            focus: focus.iter().map(|offset| offset % line).collect(),
        };
        let columns = Axis::new(line, self.first_padding(line), "element", &columns);
        let bits = u128::from(self.tiled.stored_bits());
        let byte = |offset: u64| {
            let bit = u128::from(offset) * bits;
            byte_label((bit / 8, bit % 8))
        };
        let headers = ["offset", "byte"];
        if lines == 1 {
            let columns = if bits == 8 { columns } else { columns.with_asides(headers, byte) };
            return (rows.with_names(|_| String::new()), columns.with_label("offset"));
        }
        let mut rows = rows.with_names(|row| (row * line).to_string());
        if bits != 8 {
            rows = rows.with_asides(headers, |row| byte(row * line));
        }
        rows.each = format!(" of {line} elements");
        let columns = columns.with_label("offset = number on the left + number above");
        (rows, columns.with_names(|column| format!("+{column}")))
    }

    /// The offset of the first padding in the first line, or the line's length without padding.
    fn first_padding(&self, line: u64) -> u64 {
        const LONGEST_SEARCH: u64 = 1024;
        if line > LONGEST_SEARCH {
            return line;
        }
        (0..line).find(|&offset| self.kind(offset) != Kind::Element).unwrap_or(line).max(1)
    }
}

/// Elements per line: the product of as many of the most minor axes of memory as fit.
pub(super) fn line(tiled: &Tiled) -> u64 {
    // The number of cells that are drawn without an ellipsis.
    let longest_line = most_columns(index_length(tiled)) as u64 * 4 / 3;
    let mut line = 1;
    for &bound in tiled.physical_dimensions().iter().rev() {
        let longer = bound.saturating_mul(line);
        if longer <= longest_line {
            line = longer;
            continue;
        }
        if line == 1 {
            return bound;
        }
        // Several small blocks, a divisor of the next axis if possible.
        let several = longest_line / line;
        let fitting =
            (1..=several).rev().find(|&times| bound.is_multiple_of(times) && times * line >= longest_line / 2);
        return line * fitting.unwrap_or(several);
    }
    // There may be more tail padding than elements.
    if tiled.physical_elements() > line && line < longest_line / 2 {
        longest_line.min(tiled.physical_elements())
    } else {
        line
    }
}

/// Characters of the longest index, as cells show it.
pub(super) fn index_length(tiled: &Tiled) -> usize {
    let last: Vec<u64> = tiled.logical_dimensions().iter().map(|bound| bound.saturating_sub(1)).collect();
    short_index(&last).chars().count()
}
