//! Numbers in sentences.

use tilewise::ByteSize;
use tilewise_oom::PrintedSize;

/// Bytes in the largest unit that leaves at least 1: `16.00 GiB`; whole below a KiB: `512 B`.
///
/// ```
/// assert_eq!(tilewise_audit::bytes_in_words(1 << 34), "16.00 GiB");
/// assert_eq!(tilewise_audit::bytes_in_words((1 << 20) - 1), "1.00 MiB");
/// ```
#[must_use]
pub fn bytes_in_words(count: u64) -> String {
    ByteSize(count).to_string()
}

/// A size as a message prints it, with a unit if it is a bare number of bytes.
#[must_use]
pub fn size_in_words(size: &PrintedSize) -> String {
    let text = size.text();
    if text.bytes().all(|byte| byte.is_ascii_digit()) { bytes_in_words(size.bytes()) } else { text.to_owned() }
}
