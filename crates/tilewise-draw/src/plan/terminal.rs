//! The rise and fall of memory in a line of text.

use super::{
    MemoryPicture, Owners,
    profile::{column_of, profile},
};
use crate::{
    Options,
    terminal::ansi::{Ansi, CellStyle},
    text::{bytes, shown},
};

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_LEVELS: [char; 8] = ['.', ':', '-', '=', '+', '*', '#', '@'];

pub(super) fn write(picture: &MemoryPicture<'_>, options: &Options, width: usize) -> String {
    let width = width.max(1);
    let ansi = Ansi::new(options);
    let columns: Vec<u128> =
        profile(picture, &Owners::of(picture), width).into_iter().map(|column| column.live).collect();
    // Few moments are wide.
    let wide = (width / columns.len().max(1)).max(1);
    let most = columns.iter().copied().max().unwrap_or(0).max(1);
    let peak = picture.peak.as_ref().map(|peak| column_of(peak.moment, picture.moments(), columns.len()));
    let levels = if ansi.is_ascii() { ASCII_LEVELS } else { LEVELS };
    let mut out = String::new();
    for (column, live) in columns.iter().enumerate() {
        // The nearest of eight levels; only 0 bytes have the lowest.
        let nearest = (live.saturating_mul(7) + most / 2) / most;
        let level = usize::try_from(nearest.max(u128::from(*live > 0))).unwrap_or(7).min(7);
        let bar: String = std::iter::repeat_n(levels[level], wide).collect();
        let style = CellStyle { highlighted: peak == Some(column), ..CellStyle::default() };
        out.push_str(&ansi.cell(style, &bar));
    }
    out.push('\n');
    if let (Some(peak), Some(column)) = (&picture.peak, peak) {
        let text = format!("{} at {}", bytes(u128::from(peak.bytes)), shown(&peak.instruction));
        out.push_str(&beside(&ansi, column * wide + (wide - 1) / 2, &ansi.plain(&text), width));
        out.push('\n');
    }
    out.push_str(&ansi.muted(&cut(&ansi, &ansi.plain(&picture.consists()), width)));
    out.push('\n');
    out
}

/// A mark in a column, with a text to its right, or to its left if there is more space.
fn beside(ansi: &Ansi, column: usize, text: &str, width: usize) -> String {
    let mark = ansi.upward();
    let right = width.saturating_sub(column + 2);
    if text.chars().count() > right && column > right {
        let text = cut(ansi, text, column - 1);
        return format!("{text:>0$} {mark}", column - 1);
    }
    format!("{}{mark} {}", " ".repeat(column), cut(ansi, text, right)).trim_end().to_owned()
}

fn cut(ansi: &Ansi, text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let end = ansi.plain("…");
    let kept = text.chars().take(width.saturating_sub(end.len().min(3)));
    kept.chain(end.chars()).take(width).collect()
}
