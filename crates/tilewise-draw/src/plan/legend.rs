//! The legend of a plan's picture: each colour's meaning, and its bytes at the peak.

use super::{CONTENT, MemoryPicture, Owners};
use crate::{
    figure::{
        LINE, MARGIN,
        class::{Class, Part, Style},
        mark::{Anchor, Group, Text},
        measure::width,
    },
    text::{self, counted},
};

/// The side of a sample of a colour.
const SIDE: f64 = 13.0;

/// The distance from one entry to the next below.
const HEIGHT: f64 = 20.0;

/// The space between columns, and between the texts in one.
const GAP: f64 = 28.0;
const SPACE: f64 = 8.0;

const WIDEST_LABEL: f64 = 360.0;

/// Draws each colour's meaning, and its bytes at the peak; returns where they end.
pub(super) fn draw(group: &mut Group<'_>, picture: &MemoryPicture<'_>, owners: &Owners, y: f64) -> f64 {
    let style = Style::Text;
    let held = |bytes: u128| if picture.peak.is_some() { text::bytes(bytes) } else { String::new() };
    let mut entries = Vec::new();
    if picture.resident_bytes > 0 {
        let bytes = held(u128::from(picture.resident_bytes));
        entries.push((Class::Part(Part::Resident), bytes, "arguments and outputs".to_owned()));
    }
    for (color, owner) in owners.colored.iter().enumerate() {
        let label = fitting(&picture.label(owner.owner), style.size(), WIDEST_LABEL);
        entries.push((Class::Part(Part::Owner(color)), held(owner.bytes), label));
    }
    if let Some((others, count)) = &owners.others {
        let label = counted(*count as u64, "other owner");
        entries.push((Class::Part(Part::Other), held(others.bytes), label));
    }
    if picture.pieces.iter().any(|piece| piece.padding_bytes > 0) {
        entries.push((Class::Padded, held(picture.padding_at_peak()), "padding, included above".to_owned()));
    }
    let values = entries.iter().map(|entry| width(&entry.1, style.size())).fold(0.0, f64::max).ceil();
    let labels = entries.iter().map(|entry| width(&entry.2, style.size())).fold(0.0, f64::max).ceil();
    let values = if values > 0.0 { values + SPACE } else { 0.0 };
    let cell = SIDE + SPACE + values + labels + GAP;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
    let columns = ((CONTENT + GAP) / cell).clamp(1.0, 3.0) as usize;
    let rows = entries.len().div_ceil(columns).max(1);
    let mut top = y;
    if picture.peak.is_some() && !entries.is_empty() {
        top += Style::Heading.size() * LINE;
        group.text(Text::new(Style::Heading, (MARGIN, top - 4.0), "At the peak"));
    }
    top += 4.0;
    for (number, (class, value, label)) in entries.into_iter().enumerate() {
        let x = MARGIN + (number / rows) as f64 * cell;
        let base = top + (number % rows) as f64 * HEIGHT + SIDE;
        let corner = (x, base - SIDE + 2.0);
        if class == Class::Padded {
            group.rect(Class::Part(Part::Other), corner, (SIDE, SIDE));
        }
        group.rect(class, corner, (SIDE, SIDE));
        let label_at = x + SIDE + SPACE + values;
        group.text(Text::new(style, (label_at - SPACE, base), value).anchored(Anchor::End));
        group.text(Text::new(style, (label_at, base), label));
    }
    top + rows as f64 * HEIGHT
}

/// The end of a text, no wider than `most`.
fn fitting(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_owned();
    }
    let fits = |at: &usize| width(text.get(*at..).unwrap_or_default(), size) + size <= most;
    let from = text.char_indices().map(|(at, _)| at).find(fits).unwrap_or(text.len());
    format!("…{}", text.get(from..).unwrap_or_default())
}
