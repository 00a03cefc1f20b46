//! Numbers, styles and widths for people.

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use tilewise::ByteSize;
use tilewise_audit::{OwnerName, SourceLine, recommendation::Saving};

/// Bytes in the largest unit that leaves at least 1: `16.00 GiB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    ByteSize(count).to_string()
}

/// The bytes that a change frees, with their certainty: `up to 16.00 GiB`.
pub(crate) fn freed(saving: Saving) -> Option<String> {
    let freed = bytes(saving.bytes()?);
    Some(match saving {
        Saving::AtMost(_) => format!("up to {freed}"),
        Saving::About(_) => format!("about {freed}"),
        _ => freed,
    })
}

/// The bytes held after changes: `about 16.00 GiB`, unless a plan has exactly that.
pub(crate) fn left(count: u64, saving: Saving) -> String {
    if is_uncertain(saving) { format!("about {}", bytes(count)) } else { bytes(count) }
}

/// Whether other bytes than these may be freed.
pub(crate) fn is_uncertain(saving: Saving) -> bool {
    saving.is_bound() || saving.is_estimate()
}

/// A duration with two digits: `160 ms`, `1.2 µs`.
///
/// ```
/// use tilewise_report::style::duration;
///
/// assert_eq!([0.1634, 0.0163, 1.2e-6, 0.000_999_9].map(duration), ["160 ms", "16 ms", "1.2 µs", "1.0 ms"]);
/// ```
#[must_use]
pub fn duration(seconds: f64) -> String {
    if seconds.is_nan() || seconds <= 0.0 {
        return "0 s".to_owned();
    }
    // Rounded first: a value just below a unit may reach it.
    let digit = 10f64.powf(seconds.log10().floor() - 1.0);
    let rounded = (seconds / digit).round() * digit;
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];
    let (unit, name) = units.into_iter().find(|(unit, _)| rounded >= unit * 0.999_999).unwrap_or((1e-9, "ns"));
    let count = rounded / unit;
    if count < 9.99 { format!("{count:.1} {name}") } else { format!("{count:.0} {name}") }
}

/// 12,345: a count with its thousands apart.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let ends = |at: usize| at > 0 && (digits.len() - at).is_multiple_of(3);
    digits.char_indices().flat_map(|(at, digit)| ends(at).then_some(',').into_iter().chain([digit])).collect()
}

/// For the most important text.
pub const STRONG: Style = Style::new().bold();
/// For details.
pub const FAINT: Style = Style::new().dimmed();

/// The emphasis of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Tone {
    /// A detail.
    Faint,
    /// Ordinary text.
    Plain,
    /// An important text.
    Strong,
    /// Not good.
    Warning,
    /// Bad.
    Bad,
}

impl Tone {
    /// The tone of an array that takes `expansion` times its data.
    #[must_use]
    pub fn of_expansion(expansion: f64) -> Self {
        match expansion {
            e if e >= 4.0 => Self::Bad,
            e if e >= 1.5 => Self::Warning,
            _ => Self::Plain,
        }
    }
}

/// The style of a tone: yellow warns.
#[must_use]
pub fn style_of(tone: Tone) -> Style {
    let color = match tone {
        Tone::Faint => return FAINT,
        Tone::Strong => return STRONG,
        Tone::Warning => AnsiColor::Yellow,
        Tone::Bad => AnsiColor::Red,
        Tone::Plain => return Style::new(),
    };
    Style::new().fg_color(Some(color.into()))
}

/// The style of an array that takes `expansion` times its data.
#[must_use]
pub fn waste_style(expansion: f64) -> Style {
    style_of(Tone::of_expansion(expansion))
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

/// A share of 0 … 1 in per cent; one that would round to 0.0 % becomes `<0.1 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.0005 { "<0.1 %".to_owned() } else { format!("{:.1} %", share * 100.0) }
}

/// The part of a whole, 0 of nothing.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a share for people")]
pub fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
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

/// The text cut to that many columns, with `…` in place of the rest.
#[must_use]
pub fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// A long path without its first folders: people look for its end and the line. Of an absolute path, the file alone:
/// the rest differs between machines.
pub(crate) fn shortened(path: &str) -> String {
    const LONGEST: usize = 32;
    if let Some((_, file)) =
        path.strip_prefix('/').and_then(|path| path.rsplit_once('/')).filter(|(_, file)| !file.is_empty())
    {
        return file.to_owned();
    }
    let mut rest = path;
    while rest.chars().count() > LONGEST {
        match rest.trim_start_matches('/').split_once('/') {
            Some((_, shorter)) => rest = shorter,
            None => break,
        }
    }
    if rest.len() == path.len() { path.to_owned() } else { format!("…/{rest}") }
}

/// `train.py:25 › …/bert/modeling_flax_bert.py:212`
pub(crate) fn line_of(source: &SourceLine) -> String {
    let line = |source: &SourceLine| format!("{}:{}", shortened(&source.file), source.line);
    let library = source.library.as_ref().map(|library| format!(" › {}", line(library)));
    format!("{}{}", line(source), library.unwrap_or_default())
}

/// A file without its folders.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// `train.py:25 › modeling_flax_bert.py:212`
pub(crate) fn file_and_line(source: &SourceLine) -> String {
    let line = |source: &SourceLine| format!("{}:{}", tilewise::visible(file_name(&source.file)), source.line);
    let library = source.library.as_ref().map(|library| format!(" › {}", line(library)));
    format!("{}{}", line(source), library.unwrap_or_default())
}

/// The owner of an array in full: `train.py:25 step › /home/…/modeling_flax_bert.py:212`.
pub(crate) fn owner_label(owner: &OwnerName) -> String {
    let line = |source: &SourceLine| format!("{}:{}", source.file, source.line);
    match owner {
        OwnerName::Line(source) => {
            let function = source.function.as_ref().map(|function| format!(" {function}")).unwrap_or_default();
            let library = source.library.as_ref().map(|library| format!(" › {}", line(library)));
            format!("{}{function}{}", line(source), library.unwrap_or_default())
        }
        OwnerName::Operation(name) => name.clone(),
        _ => "no line".to_owned(),
    }
}

/// The owner of an array in short: where a user's line leads to a library's, the library's, which tells arrays apart.
pub(crate) fn owner_name(owner: &OwnerName) -> String {
    let OwnerName::Line(source) = owner else { return owner_label(owner) };
    let of = source.library.as_deref().unwrap_or(source);
    let function = of.function.as_ref().map(|function| format!(" {function}")).unwrap_or_default();
    format!("{}:{}{function}", of.file.rsplit('/').next().filter(|file| !file.is_empty()).unwrap_or(&of.file), of.line)
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

    #[test]
    fn long_paths_keep_their_end() {
        assert_eq!(shortened("model.py"), "model.py");
        assert_eq!(shortened("/home/someone/projects/network/layers/attention.py"), "attention.py");
        assert_eq!(shortened("someones_projects/network/layers/attention.py"), "…/network/layers/attention.py");
        let name = "a".repeat(80);
        assert_eq!(shortened(&format!("b/{name}")), format!("…/{name}"));
        assert_eq!(shortened("/".repeat(80).as_str()), "/".repeat(80));
    }
}
