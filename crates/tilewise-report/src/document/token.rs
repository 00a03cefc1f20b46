//! The tokens of the documents' equations.

use super::expression::Wrong;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Number(i64),
    /// A name or a symbol, in any script, with its subscript.
    Word(String),
    Sign(Sign),
    /// `...` or `…`
    Ellipsis,
    LineEnd,
    End,
}

macro_rules! signs {
    ($($sign:ident = $character:literal,)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Sign {
            $($sign,)+
        }

        impl Sign {
            pub(super) fn as_char(self) -> char {
                match self { $(Self::$sign => $character,)+ }
            }

            fn of(character: char) -> Option<Self> {
                match character { $($character => Some(Self::$sign),)+ _ => None }
            }
        }
    };
}

signs! {
    Open = '(',
    Close = ')',
    OpenSquare = '[',
    CloseSquare = ']',
    OpenFloor = '⌊',
    CloseFloor = '⌋',
    OpenCeiling = '⌈',
    CloseCeiling = '⌉',
    Equals = '=',
    Plus = '+',
    Minus = '-',
    Dot = '·',
    Star = '*',
    Slash = '/',
    Comma = ',',
    Stop = '.',
}

/// All tokens of a text.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    tokens: Vec<(Token, Range<usize>)>,
    end: usize,
}

impl Tokens {
    /// # Errors
    /// A number that is too large, or a character that formulas don't have.
    pub(super) fn of(text: &str) -> Result<Self, Wrong> {
        let mut tokens = Self { tokens: Vec::new(), end: text.trim_end().len() };
        tokens.read(text)?;
        Ok(tokens)
    }

    /// Those in front of the first character that formulas don't have.
    pub(super) fn before_wrong(text: &str) -> Self {
        let mut tokens = Self { tokens: Vec::new(), end: text.len() };
        if let Err(wrong) = tokens.read(text) {
            tokens.end = wrong.span.start;
        }
        tokens
    }

    fn read(&mut self, text: &str) -> Result<(), Wrong> {
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let (token, length) = match c {
                '\n' => (Some(Token::LineEnd), 1),
                // `&` aligns the lines of LaTeX's equations; quotes surround what was copied.
                ' ' | '\t' | '\r' | '&' | '`' | '"' | '\'' => (None, 1),
                '…' => (Some(Token::Ellipsis), c.len_utf8()),
                '.' if rest.starts_with("..") => {
                    (Some(Token::Ellipsis), rest.bytes().take_while(|byte| *byte == b'.').count())
                }
                '0'..='9' => {
                    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
                    let number = rest[..length].parse().map_err(|_| {
                        Wrong::new("overflow", "this number does not fit in a signed 64-bit integer", at..at + length)
                    })?;
                    (Some(Token::Number(number)), length)
                }
                _ => match Sign::of(c) {
                    Some(sign) => (Some(Token::Sign(sign)), c.len_utf8()),
                    None if continues_word(c) && !c.is_ascii_digit() => {
                        let length = word_length(rest);
                        (Some(Token::Word(rest[..length].to_owned())), length)
                    }
                    None => {
                        let message = format!("`{c}` isn't a sign of the document's formulas");
                        return Err(Wrong::new("syntax", message, at..at + c.len_utf8()));
                    }
                },
            };
            self.tokens.extend(token.map(|token| (token, at..at + length)));
            at += length;
        }
        Ok(())
    }

    pub(super) fn get(&self, at: usize) -> &Token {
        self.tokens.get(at).map_or(&Token::End, |(token, _)| token)
    }

    pub(super) fn span(&self, at: usize) -> Range<usize> {
        self.tokens.get(at).map_or(self.end..self.end, |(_, span)| span.clone())
    }
}

/// Whether a character is one of a name's: letters, digits, `_`, and of other scripts their marks.
pub(super) fn continues_word(c: char) -> bool {
    let is_mark =
        !c.is_ascii() && Sign::of(c).is_none() && !c.is_whitespace() && !matches!(c, '…' | '→' | '≤' | '≥' | '≠');
    c.is_alphanumeric() || c == '_' || is_mark
}

/// The length of the word that a text begins with. Between digits, as in `2x2`, an `x` is a word alone; a subscript in braces belongs to it.
fn word_length(text: &str) -> usize {
    if text.starts_with(['x', 'X']) && text[1..].starts_with(|next: char| next.is_ascii_digit()) {
        return 1;
    }
    let end = text.find(|c| !continues_word(c)).unwrap_or(text.len());
    let subscript = text[..end].ends_with('_').then(|| text[end..].strip_prefix('{')?.find('}')).flatten();
    subscript.map_or(end, |inside| end + inside + 2)
}
