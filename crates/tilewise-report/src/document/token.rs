//! The tokens of the documents' equations.

use super::wrong::Wrong;
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

    /// The tokens in front of the first character that formulas don't have.
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
                // `&` aligns the lines of LaTeX's equations; quotes surround copied text.
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

/// The length of the word that a text begins with. Between digits, as in `2x2`, an `x` is a word alone; so is each symbol of `d_nd_{n-1}`.
fn word_length(text: &str) -> usize {
    if text.starts_with(['x', 'X']) && text[1..].starts_with(|next: char| next.is_ascii_digit()) {
        return 1;
    }
    let end = text.find(|c| !continues_word(c)).unwrap_or(text.len());
    match Symbol::first(text) {
        Some((symbol, length)) if !symbol.subscript.is_empty() && begins_symbols(text, end) => length,
        _ => end,
    }
}

/// Whether the word that ends there is made of symbols with subscripts; the last may go on behind it, `d_{n-1}`,
/// `tn-1`.
fn begins_symbols(text: &str, end: usize) -> bool {
    /// No word of the documents has more.
    const MOST: usize = 64;
    let mut at = 0;
    for _ in 0..MOST {
        if at >= end {
            return true;
        }
        match Symbol::first(&text[at..]) {
            Some((symbol, length)) if !symbol.subscript.is_empty() => at += length,
            _ => return false,
        }
    }
    false
}

/// A letter of the documents' formulas with its subscript, which stands in braces, behind `_`, or, copied from a page, behind the letter or
/// a blank: `e`, `d1`, `t_n`, `tn-1`, `t n-1`, `t_{n-1}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol<'a> {
    pub(super) letter: char,
    pub(super) subscript: &'a str,
}

impl<'a> Symbol<'a> {
    /// The symbol that a text begins with, and its length.
    fn first(text: &'a str) -> Option<(Self, usize)> {
        let letter = text.chars().next().filter(|first| first.is_ascii_alphabetic() && !matches!(first, 'x' | 'X'))?;
        let rest = &text[1..];
        let is_blank = rest.starts_with(' ') && matches!(letter, 'e' | 'd' | 't');
        let is_marked = rest.starts_with('_') || is_blank;
        let inside = &rest[usize::from(is_marked)..];
        if let Some(braced) = inside.strip_prefix('{').filter(|_| is_marked) {
            let close = braced.find('}')?;
            return Some((Self { letter, subscript: &braced[..close] }, 4 + close));
        }
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let length = match digits(inside) {
            0 if inside.starts_with(['n', 'i', 'k']) => {
                let less = inside[1..].strip_prefix('-').map_or(0, digits);
                1 + if less > 0 { 1 + less } else { 0 }
            }
            length => length,
        };
        // Behind a blank, a longer word is one of its own.
        let length = if is_blank && inside[length..].starts_with(continues_word) { 0 } else { length };
        let marked = usize::from(is_marked && length > 0);
        Some((Self { letter, subscript: &inside[..length] }, 1 + marked + length))
    }
}

/// The symbols that a text is made of, `e`, or with subscripts, `d_nd_{n-1}`; `None` of any other text.
pub(super) fn symbols(text: &str) -> Option<Vec<Symbol<'_>>> {
    let mut symbols = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (symbol, length) = Symbol::first(&text[at..])?;
        symbols.push(symbol);
        at += length;
    }
    let is_single = symbols.len() == 1;
    (!symbols.is_empty() && (is_single || symbols.iter().all(|symbol| !symbol.subscript.is_empty()))).then_some(symbols)
}

/// The symbol that begins a text as a word, or the first of a word of symbols, and its length.
pub(super) fn leading_symbol(text: &str) -> Option<(Symbol<'_>, usize)> {
    let (symbol, length) = Symbol::first(text)?;
    let end = text.find(|c| !continues_word(c)).unwrap_or(text.len());
    (length >= end || begins_symbols(text, end)).then_some((symbol, length))
}

impl Symbol<'_> {
    /// Whether it is of the documents' formulas, an element's index, bounds or a tile, with the number of a dimension.
    pub(super) fn is_of_dimension(self) -> bool {
        matches!(self.letter, 'e' | 'd' | 't') && !self.subscript.is_empty()
    }
}

/// Whether a word is one symbol.
pub(super) fn is_symbol(word: &str) -> bool {
    symbols(word).is_some_and(|symbols| symbols.len() == 1)
}
