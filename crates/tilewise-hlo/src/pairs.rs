//! `, name=value, …`, read as strictly as XLA's parser does. [`Attributes`](crate::attributes::Attributes) skips
//! unknown text.

use crate::scan::{identifier_end, peek, skip_trivia, value_end};

/// Iterates over the pairs; stops at the first text that isn't a pair.
pub(crate) struct Pairs<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Pairs<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The next name, and the start of its value, which must be skipped; `None` if no pair follows.
    pub(crate) fn next_name(&mut self) -> Option<(&'t str, usize)> {
        let bytes = self.text.as_bytes();
        let comma = skip_trivia(bytes, self.at);
        if peek(bytes, comma) != b',' {
            self.at = comma;
            return None;
        }
        let start = skip_trivia(bytes, comma + 1);
        let end = identifier_end(bytes, start);
        let equals = skip_trivia(bytes, end);
        if end == start || peek(bytes, equals) != b'=' {
            return None;
        }
        Some((&self.text[start..end], skip_trivia(bytes, equals + 1)))
    }

    pub(crate) fn skip_value(&mut self, start: usize) -> &'t str {
        self.at = value_end(self.text.as_bytes(), start, false);
        self.text[start..self.at].trim_ascii_end()
    }

    pub(crate) fn rest(&self) -> &'t str {
        &self.text[self.at.min(self.text.len())..]
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }
}

impl<'t> Iterator for Pairs<'t> {
    type Item = (&'t str, &'t str);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.next_name()?;
        Some((name, self.skip_value(value)))
    }
}
