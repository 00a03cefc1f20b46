//! Numbers, styles and widths for people.

use anstyle::{AnsiColor, Style};
pub use tilewise_audit::bytes_in_words as bytes;

/// For what matters most.
pub const STRONG: Style = Style::new().bold();
/// For details.
pub const FAINT: Style = Style::new().dimmed();

/// The colour for an expansion: yellow from 1.5, red from 4.
#[must_use]
pub fn waste_style(expansion: f64) -> Style {
    let color = match expansion {
        e if e >= 4.0 => AnsiColor::Red,
        e if e >= 1.5 => AnsiColor::Yellow,
        _ => return Style::new(),
    };
    Style::new().fg_color(Some(color.into()))
}

/// The text in a style; pad it to its width first.
#[must_use]
pub fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Bytes both ways: `16.00 GiB (17179869184)`.
#[must_use]
pub fn bytes_both(count: u64) -> String {
    if count < 1024 { bytes(count) } else { format!("{} ({count})", bytes(count)) }
}

/// A share of 0 … 1 in per cent; padding that would round to 0.0 % says so.
#[must_use]
pub fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.0005 { "<0.1 %".to_owned() } else { format!("{:.1} %", share * 100.0) }
}

/// `1.07x`, `10.7x`: three significant digits.
#[must_use]
pub fn times(expansion: f64) -> String {
    if expansion < 9.995 { format!("{expansion:.2}x") } else { format!("{expansion:.1}x") }
}

/// Numbers as a product, `38 × 4 × 128`.
#[must_use]
pub fn product(numbers: &[u64]) -> String {
    let factors: Vec<String> = numbers.iter().map(u64::to_string).collect();
    factors.join(" × ")
}

/// Items as in an index, `2,3`.
#[must_use]
pub fn listed(items: &[impl ToString]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The text cut to that many columns, with `…` for what is left out.
#[must_use]
pub fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_printed_in_fitting_units() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.00 KiB");
        assert_eq!(bytes_both(1 << 34), "16.00 GiB (17179869184)");
        assert_eq!(bytes((1 << 20) - 1), "1.00 MiB");
        assert_eq!(bytes(u64::MAX), "16.00 EiB");
    }

    #[test]
    fn shares_and_ratios() {
        assert_eq!((percent(0.5), percent(0.0001), percent(0.0)), ("50.0 %".into(), "<0.1 %".into(), "0.0 %".into()));
        assert_eq!((times(10.666), times(1.0)), ("10.7x".into(), "1.00x".into()));
        assert_eq!(cut("abcdef", 4), "abc…");
    }
}
