//! A reader for which any white space equals a space, since messages are often re-wrapped.

use memchr::memmem;

use crate::text::size::PrintedSize;

/// A position in a text.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    pub(crate) fn skip_space(&mut self) {
        self.at += space(self.rest());
    }

    /// Steps over `words`, in which a space stands for any white space, after white space; or stays.
    pub(crate) fn eat(&mut self, words: &str) -> bool {
        let start = self.at + space(self.rest());
        match match_words(self.text.get(start..).unwrap_or(""), words) {
            Some(length) => {
                self.at = start + length;
                true
            }
            None => false,
        }
    }

    /// A size, after white space; or stays.
    pub(crate) fn size(&mut self) -> Option<PrintedSize> {
        self.number(PrintedSize::prefix)
    }

    /// A size as people write it, too, after white space; or stays.
    pub(crate) fn figure(&mut self) -> Option<PrintedSize> {
        self.number(PrintedSize::figure)
    }

    fn number(&mut self, read: fn(&str) -> Option<(PrintedSize, usize)>) -> Option<PrintedSize> {
        let start = self.at + space(self.rest());
        let (size, length) = read(self.text.get(start..)?)?;
        self.at = start + length;
        Some(size)
    }

    /// A percentage such as `9.8%`, after white space; or stays.
    pub(crate) fn percent(&mut self) -> Option<f64> {
        let start = self.at + space(self.rest());
        let rest = self.text.get(start..)?;
        let length = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let value = rest[..length].parse().ok()?;
        (rest.as_bytes().get(length) == Some(&b'%')).then(|| {
            self.at = start + length + 1;
            value
        })
    }

    /// The characters up to white space, a comma, a quote or a bracket, after white space.
    pub(crate) fn word(&mut self) -> &'a str {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || ",'\"()[]".contains(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }
}

fn space(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// The length of `words` at the start of `text`, a space standing for any white space.
pub(crate) fn match_words(text: &str, words: &str) -> Option<usize> {
    let mut at = 0;
    for (number, word) in words.split(' ').enumerate() {
        let gap = if number == 0 { 0 } else { space(&text[at..]) };
        if number > 0 && gap == 0 || !text[at + gap..].starts_with(word) {
            return None;
        }
        at += gap + word.len();
    }
    Some(at)
}

/// Start and end of the first `words` from `from` on.
pub(crate) fn find_words(text: &str, from: usize, words: &str) -> Option<(usize, usize)> {
    let first = words.split(' ').next()?;
    let finder = memmem::find_iter(text.as_bytes().get(from..)?, first);
    finder.map(|offset| from + offset).find_map(|start| Some((start, start + match_words(&text[start..], words)?)))
}
