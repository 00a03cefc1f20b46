//! A picture of the array after each step of its derivation.

use super::{Drawing, MOST_ROWS, most_columns, summary, title};
use crate::{
    Error, Options,
    axis::{Axis, Selection},
    grid::{Cell, CellContent, Colors, Edge, GridBuilder, Kind},
    padded::NO_BLOCK,
    scene::{Panel, Sheet, Swatch},
    text::{counted, list, short_index},
};
use tilewise::{Derivation, DerivationStep, Operation, Tiled};

/// The most steps drawn; a layout of two tiles has seven.
const MOST_STEPS: usize = 12;

pub(crate) fn sheet(tiled: &Tiled, options: &Options) -> Result<Sheet, Error> {
    let drawing = Drawing::of(tiled, options)?;
    let derivation = tiled.derivation();
    let steps = derivation.steps();
    let mut colors = Colors::default();
    let mut panels: Vec<Panel> = Vec::new();
    let mut captions = Vec::new();
    if tiled.tiled_elements() > 0 {
        // Colours are assigned in the order of the pictures.
        let drawn = steps.len().min(MOST_STEPS);
        for after in 0..=drawn {
            let panel = drawing.stage(&derivation, after, &mut colors);
            match panels.last_mut() {
                Some(last) if is_same_picture(last, &panel) => {
                    last.heading = format!("{}; {}", last.heading, panel.heading);
                }
                _ => panels.push(panel),
            }
        }
        captions.push("Each picture is read like a page, line by line: that is the order in memory.".to_owned());
        if steps.len() > drawn {
            captions.push(format!("… {} not drawn.", counted((steps.len() - drawn) as u64, "more step")));
        }
    }
    // Borders are those of the axes that a step has made, of later tiles, too.
    let mut legend = drawing.legend(&panels, false);
    legend.retain(|(swatch, _)| !matches!(swatch, Swatch::Unmarked));
    captions.extend(drawing.captions(options, &[super::Part::Memory]));
    Ok(Sheet {
        title: title(tiled),
        summary: summary(tiled),
        sliders: Vec::new(),
        panels,
        legend,
        colors_repeat: colors.repeat(),
        captions,
    })
}

impl Drawing<'_> {
    /// The array after that many steps.
    fn stage(&self, derivation: &Derivation, after: usize, colors: &mut Colors) -> Panel {
        let last = after.checked_sub(1).map(|last| &derivation.steps()[last]);
        let logical = self.tiled.logical_dimensions();
        let bounds = last.map_or(logical, |step| &step.to).to_vec();
        let heading = match last {
            None => format!("0. the array [{}]", list(logical)),
            Some(step) => format!("{after}. {step}{}", formula(step)),
        };
        let followed = self.highlighted_index.as_ref().and_then(|index| destination(derivation, after, index));
        let heading = match followed {
            Some(position) => format!(
                "{heading}: ({}) at ({})",
                list(self.highlighted_index.as_deref().unwrap_or_default()),
                list(&unravel(position, &bounds))
            ),
            None => heading,
        };
        let page = Page::of(&bounds, self.tiled);
        let content = |row, column| {
            let position = page.position(row, column)?;
            let Some(index) = origin(derivation, after, position) else {
                return Some(CellContent { kind: Kind::Padding, ..CellContent::default() });
            };
            let offset = self.tiled.offset_of(&index).ok();
            Some(CellContent {
                text: short_index(&index),
                color_key: self.color_key(&self.padded.place(&index)),
                highlighted: self.highlighted_offset.is_some() && self.highlighted_offset == offset,
                offset,
                bits: self.tiled.stored_bits(),
                tile: self.tile(&self.padded.place(&index)),
                index: Some(index),
                ..CellContent::default()
            })
        };
        let blocks = |row: u64, column: u64| {
            page.position(row, column)?;
            Some([NO_BLOCK, row / page.rows_together, column / page.columns_together, NO_BLOCK])
        };
        let most = most_columns(super::memory::index_length(self.tiled));
        // The lines of the buffer are short enough to draw whole; narrower pictures fit side by side.
        let most = if bounds.len() < 2 { most } else { most.min(6) };
        let selection = |most, period, focus| Selection { most, periods: vec![period], focus };
        let line = followed.map(|position| position / page.columns).into_iter().collect();
        let column = followed.map(|position| position % page.columns).into_iter().collect();
        let rows = page.length.div_ceil(page.columns);
        let rows = Axis::new(rows, rows, "line", &selection(MOST_ROWS / 2, page.rows_together, line));
        let columns = Axis::new(page.columns, page.columns, "element", &selection(most, page.columns_together, column));
        let rows = rows.with_names(|_| String::new());
        let columns = columns.with_names(|_| String::new());
        let builder = GridBuilder { rows, columns, content: &content, blocks: &blocks, inner_between_rows: true };
        let mut grid = builder.build(colors);
        for cell in &mut grid.cells {
            // Borders between columns are as strong as those between rows.
            for edge in [&mut cell.edges.left, &mut cell.edges.right] {
                *edge = (*edge).min(Edge::Tile);
            }
        }
        Panel { beside: after > 0, ..Panel::of("step", heading, grid) }
    }
}

/// A step's formula in the names of the document: d are the bounds, t the tile. The font of pictures has no ⌈ and ⌉.
fn formula(step: &DerivationStep) -> &'static str {
    match (&step.operation, step.level) {
        (Operation::Pad { .. }, Some(_)) => " = ceil(d/t)·t",
        (Operation::Reshape { groups }, Some(_)) if groups.iter().any(|&(_, to)| to == 2) => {
            " = (ceil(d/t), t) of each"
        }
        (Operation::Transpose { .. }, Some(_)) => " = (ceil(d/t)…, t…)",
        _ => "",
    }
}

/// Whether two pictures are the same: cells in the same places, with the same borders.
fn is_same_picture(one: &Panel, other: &Panel) -> bool {
    let of = |panel: &Panel| -> Vec<_> {
        let cell = |cell: &Cell| (cell.row, cell.column, cell.content.text.clone(), cell.content.kind, cell.edges);
        panel.grid.cells.iter().map(cell).collect()
    };
    one.grid.cells.len() == other.grid.cells.len() && of(one) == of(other)
}

/// A row-major array as a page of lines: the leading axes run down, the trailing ones to the right.
struct Page {
    length: u64,
    columns: u64,
    /// The most minor axis of those that run down, and of those that run to the right.
    rows_together: u64,
    columns_together: u64,
}

impl Page {
    fn of(bounds: &[u64], tiled: &Tiled) -> Self {
        let length = bounds.iter().fold(1, |product: u64, &bound| product.saturating_mul(bound));
        if bounds.len() < 2 {
            let columns = super::memory::line(tiled).min(length).max(1);
            return Self { length, columns, rows_together: u64::MAX, columns_together: u64::MAX };
        }
        // Axes of size 1 change nothing in the picture.
        let bounds: Vec<u64> = bounds.iter().copied().filter(|&bound| bound > 1).collect();
        let right = (bounds.len() / 2).max(1).min(bounds.len());
        let (down, right) = bounds.split_at(bounds.len() - right);
        let together = |axes: &[u64]| if axes.len() > 1 { axes[axes.len() - 1] } else { u64::MAX };
        let columns = right.iter().fold(1, |product: u64, &bound| product.saturating_mul(bound));
        Self { length, columns, rows_together: together(down), columns_together: together(right) }
    }

    fn position(&self, row: u64, column: u64) -> Option<u64> {
        let position = row.checked_mul(self.columns)?.checked_add(column)?;
        (column < self.columns && position < self.length).then_some(position)
    }
}

/// The element at a position of the array after that many steps, by undoing them; `None` for padding.
fn origin(derivation: &Derivation, after: usize, position: u64) -> Option<Vec<u64>> {
    let mut position = position;
    for step in derivation.steps()[..after].iter().rev() {
        position = match &step.operation {
            Operation::Reshape { .. } => position,
            Operation::Pad { .. } => {
                let index = unravel(position, &step.to);
                if index.iter().zip(&step.from).any(|(at, bound)| at >= bound) {
                    return None;
                }
                ravel(&index, &step.from)
            }
            Operation::Transpose { permutation } => {
                let mut index = vec![0; step.from.len()];
                for (at, &axis) in unravel(position, &step.to).into_iter().zip(permutation) {
                    *index.get_mut(axis)? = at;
                }
                ravel(&index, &step.from)
            }
            _ => return None,
        };
    }
    let logical = match derivation.steps().first() {
        Some(step) => unravel(position, &step.from),
        None => unravel(position, &bounds_of(derivation)),
    };
    Some(logical)
}

/// The position of an element after that many steps.
fn destination(derivation: &Derivation, after: usize, index: &[u64]) -> Option<u64> {
    let mut position = ravel(index, &bounds_of(derivation));
    for step in &derivation.steps()[..after] {
        position = match &step.operation {
            Operation::Reshape { .. } => position,
            Operation::Pad { .. } => ravel(&unravel(position, &step.from), &step.to),
            Operation::Transpose { permutation } => {
                let index = unravel(position, &step.from);
                let index: Option<Vec<u64>> = permutation.iter().map(|&axis| index.get(axis).copied()).collect();
                ravel(&index?, &step.to)
            }
            _ => return None,
        };
    }
    Some(position)
}

fn bounds_of(derivation: &Derivation) -> Vec<u64> {
    derivation.shape().dimensions().iter().map(|dimension| dimension.bound().unwrap_or(0)).collect()
}

fn ravel(index: &[u64], bounds: &[u64]) -> u64 {
    index.iter().zip(bounds).fold(0, |position, (at, bound)| position * bound + at)
}

fn unravel(position: u64, bounds: &[u64]) -> Vec<u64> {
    let mut rest = position;
    let mut index: Vec<u64> = bounds
        .iter()
        .rev()
        .map(|&bound| {
            let at = rest % bound.max(1);
            rest /= bound.max(1);
            at
        })
        .collect();
    index.reverse();
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_where_they_went() {
        for text in [
            "f32[3,5]{1,0:T(2,2)}",
            "bf16[5,3,7]{0,2,1:T(2,4)(2,1)L(32)}",
            "f32[2,3,4,5]{3,2,1,0:T(*,2,3)}",
            "f32[]{:T(4)}",
        ] {
            let tiled = Tiled::new(&text.parse().expect(text)).expect(text);
            let derivation = tiled.derivation();
            let steps = derivation.steps().len();
            for offset in 0..tiled.physical_elements() {
                let index = tiled.index_of(offset).expect(text);
                assert_eq!(origin(&derivation, steps, offset), index, "{text} at {offset}");
                if let Some(index) = index {
                    assert_eq!(destination(&derivation, steps, &index), Some(offset), "{text}, {index:?}");
                }
            }
        }
    }
}
