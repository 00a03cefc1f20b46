//! JSON with visible characters only.

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use std::{
    borrow::Cow,
    io::{self, Write},
};
use tilewise::visible;

/// Writes a value as JSON in one line. Characters that a terminal would obey or not show, such as U+202E in a file's
/// name, are escaped: a reader of JSON gets the value as it is.
///
/// # Errors
/// Those of the writer.
///
/// ```
/// let mut json = Vec::new();
/// tilewise_report::to_visible_json(&mut json, "a\u{202e}b\u{e0041}é")?;
/// assert_eq!(json, br#""a\u202eb\udb40\udc41"#.iter().chain("é\"".as_bytes()).copied().collect::<Vec<u8>>());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn to_visible_json(out: &mut (impl Write + ?Sized), value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    Ok(value.serialize(&mut Serializer::with_formatter(out, Visible(CompactFormatter)))?)
}

struct Visible(CompactFormatter);

impl Formatter for Visible {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        if matches!(visible(fragment), Cow::Borrowed(_)) {
            return self.0.write_string_fragment(out, fragment);
        }
        for letter in fragment.chars() {
            let mut bytes = [0; 4];
            let text = letter.encode_utf8(&mut bytes);
            match visible(text) {
                Cow::Borrowed(text) => out.write_all(text.as_bytes())?,
                Cow::Owned(_) => {
                    letter.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))?
                }
            }
        }
        Ok(())
    }
}
