//! Numbers in sentences.

use tilewise_oom::PrintedSize;

/// Bytes in the largest unit that leaves at least 1: `16.00 GiB`; whole below a KiB: `512 B`.
///
/// ```
/// assert_eq!(tilewise_audit::bytes_in_words(1 << 34), "16.00 GiB");
/// assert_eq!(tilewise_audit::bytes_in_words((1 << 20) - 1), "1.00 MiB");
/// ```
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "shown with two decimals")]
pub fn bytes_in_words(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = count as f64;
    let mut larger = None;
    let mut units = UNITS.into_iter();
    // What would print as 1024.00 belongs to the next unit.
    while value >= 1023.995
        && let Some(unit) = units.next()
    {
        value /= 1024.0;
        larger = Some(unit);
    }
    larger.map_or_else(|| format!("{count} B"), |unit| format!("{value:.2} {unit}"))
}

/// A size as a message prints it, with a unit if it is a bare number of bytes.
#[must_use]
pub fn size_in_words(size: &PrintedSize) -> String {
    let text = size.text();
    if text.bytes().all(|byte| byte.is_ascii_digit()) { bytes_in_words(size.bytes()) } else { text.to_owned() }
}
