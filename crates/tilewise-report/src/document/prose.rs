//! A page or a paragraph: the shapes, layouts, operations and formulas in it, each answered.

use super::{Equation, Part, evaluate::Function, token::continues_word};
use crate::plain::Plain;
use crate::{
    Terminal, WriteText,
    shape::{lenient, open_sizes},
    style::{STRONG, bytes, styled},
};
use foldhash::HashSet;
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{Layout, Shape, Tiled};
use tilewise_hlo::OperationLine;

/// The pieces of XLA's notation in a text of prose, each once.
///
/// ```
/// use tilewise_report::Prose;
///
/// let prose = Prose::read("F32[3,5]{1,0:T(2,2)} has linear_index_with_tile((2,3), (3,5), (2,2)) = 17.");
/// assert_eq!(prose.len(), 2);
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct Prose {
    pieces: Vec<Piece>,
}

/// A piece of XLA's notation.
#[derive(Clone, Debug, Serialize)]
struct Piece {
    /// The line it begins on, the first being 1.
    line: usize,
    /// `shape`, `operation`, `equation`, `layout` or `part`.
    kind: &'static str,
    /// Its canonical text.
    text: String,
    /// Its meaning, in a sentence.
    meaning: String,
}

/// Bytes of a text that are read; pages are shorter.
const LONGEST: usize = 4 << 20;
/// The most pieces.
const MOST: usize = 1000;
/// The longest formula or operation.
const LONGEST_PIECE: usize = 4096;

impl Prose {
    /// The pieces of a text.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let end = (0..=LONGEST.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        let source = &text[..end];
        let plain = Plain::of(source);
        let text = plain.text();
        let mut finder =
            Finder { text, source, plain: &plain, line: 1, lines_to: 0, pieces: Vec::new(), known: HashSet::default() };
        let mut at = 0;
        // The last character of a word: letters of another script begin a new one, as in text without blanks.
        let mut inside: Option<char> = None;
        while let Some(c) = text[at..].chars().next() {
            if finder.pieces.len() == MOST {
                break;
            }
            let goes_on = inside.is_some_and(|before| before.is_ascii() == c.is_ascii());
            match if goes_on { None } else { finder.piece(at) } {
                Some(length) => {
                    at += length.max(c.len_utf8());
                    inside = None;
                }
                None => {
                    inside = (continues_word(c) || c == '.' && inside.is_some()).then_some(c);
                    at += c.len_utf8();
                }
            }
        }
        Self { pieces: finder.pieces }
    }

    /// The number of pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether there are no pieces.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

struct Finder<'a> {
    text: &'a str,
    source: &'a str,
    plain: &'a Plain,
    /// The line of the source at its byte `lines_to`.
    line: usize,
    lines_to: usize,
    pieces: Vec<Piece>,
    known: HashSet<String>,
}

impl Finder<'_> {
    /// Keeps the piece that begins here, and returns its length.
    fn piece(&mut self, at: usize) -> Option<usize> {
        let rest = &self.text[at..];
        let first = rest.chars().next()?;
        // A name in another script ends where ASCII's letters begin.
        let ends = |c: char| !continues_word(c) || !first.is_ascii() && c.is_ascii_alphabetic();
        let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
        match first {
            '%' | 'a'..='z' | 'A'..='Z' => self
                .operation(at)
                .or_else(|| self.shape(at))
                .or_else(|| self.made(at))
                .or_else(|| self.equation(at, word)),
            '(' if rest[1..].starts_with(|next: char| next.is_ascii_alphabetic() || next == '(') => self.shape(at),
            '(' => self.tiles(at),
            '{' | '0'..='9' => self.layout(at),
            _ if !word.is_empty() => self.equation(at, word),
            _ => None,
        }
    }

    fn keep(&mut self, at: usize, kind: &'static str, text: String, meaning: String) {
        let here = self.plain.source(at..at).start;
        self.line += self.source.get(self.lines_to..here).map_or(0, |between| between.matches('\n').count());
        self.lines_to = here;
        if self.known.insert(text.clone()) {
            self.pieces.push(Piece { line: self.line, kind, text, meaning });
        }
    }

    fn shape(&mut self, at: usize) -> Option<usize> {
        let (shape, length) = Shape::parse_prefix(window(&self.text[at..])).ok()?;
        self.keep(at, "shape", shape.to_string(), size_in_words(&shape));
        Some(length)
    }

    /// `%fusion.3 = bf16[8,128]{1,0} fusion(…)`, up to the bracket that closes its operands; attributes behind it are not needed.
    fn operation(&mut self, at: usize) -> Option<usize> {
        let rest = window(&self.text[at..]);
        let name = rest.find('=')?;
        let is_name = rest[..name]
            .trim()
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'%'));
        if !is_name {
            return None;
        }
        let start = name + 1 + rest[name + 1..].len() - rest[name + 1..].trim_start().len();
        let (_, length) = Shape::parse_prefix(&rest[start..]).ok()?;
        let behind = start + length;
        let open = behind
            + rest[behind..].find('(').filter(|open| {
                rest[behind..behind + open].trim().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            })?;
        let end = open + closed(&rest[open..])?;
        let line: OperationLine = rest[..end].parse().ok()?;
        let operands: Vec<&str> = line.operands.iter().map(|operand| &*operand.name).collect();
        let text = format!("{} = {} {}({})", line.name, line.result, line.opcode, operands.join(", "));
        self.keep(at, "operation", text, size_in_words(&line.result));
        for operand in &line.operands {
            if let Some(shape) = &operand.shape {
                self.keep(
                    at,
                    "shape",
                    shape.to_string(),
                    format!("{}, operand {}", size_in_words(shape), operand.name),
                );
            }
        }
        Some(end)
    }

    /// `ShapeUtil::MakeShape(F32, {3, 5})`
    fn made(&mut self, at: usize) -> Option<usize> {
        let rest = window(&self.text[at..]);
        let open = rest.strip_prefix("ShapeUtil::Make").and(rest.find('('))?;
        let end = open + closed(&rest[open..])?;
        let (text, meaning) = match lenient::read(&rest[..end]) {
            Some(shape) => (shape.to_string(), format!("{}, made by XLA's function", size_in_words(&shape))),
            None => (rest[..end].to_owned(), "a shape of those sizes, whatever they are".to_owned()),
        };
        self.keep(at, "shape", text, meaning);
        Some(end)
    }

    fn equation(&mut self, at: usize, word: &str) -> Option<usize> {
        let rest = window(&self.text[at..]);
        // In prose, words of other languages stand in front of brackets, too: those of the document's translations have `_`.
        let is_named = Function::named(word)? != Function::Translated || word.contains('_');
        if !is_named || !rest[word.len()..].trim_start().starts_with('(') {
            return None;
        }
        let (equation, length) = Equation::read_prefix(rest)?;
        self.keep(at, "equation", equation.shortened(), equation.in_words());
        Some(length)
    }

    /// `{1,0:T(2,2)}`, `{0,1}`, `3,2,0,1:T(8,128)(2,1)`
    fn layout(&mut self, at: usize) -> Option<usize> {
        let rest = window(&self.text[at..]);
        let is_braced = rest.starts_with('{');
        let is_part =
            |c: char| c.is_ascii_digit() || matches!(c, ',' | ':' | 'T' | 'L' | 'S' | 'E' | 'M' | '(' | ')' | '*');
        let inside = &rest[usize::from(is_braced)..];
        let end = inside.find(|c| !is_part(c)).unwrap_or(inside.len());
        let end = match is_braced {
            true => usize::from(inside[end..].starts_with('}')).checked_sub(1).map(|_| end + 2)?,
            false => inside[..end].contains(":T(").then(|| inside[..end].rfind(')').map(|close| close + 1))??,
        };
        let layout: Layout = rest[..end].parse().ok().filter(|layout: &Layout| !layout.minor_to_major().is_empty())?;
        let words: Vec<String> = layout.in_words().into_iter().map(|part| part.meaning).collect();
        self.keep(at, "layout", layout.to_string(), words.join("; "));
        Some(end)
    }

    /// `(8,128)(2,1)`: two lists or more, behind each other.
    fn tiles(&mut self, at: usize) -> Option<usize> {
        let rest = window(&self.text[at..]);
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, ',' | ' ' | '*' | '(' | ')');
        let all = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let end = all.rfind(')')? + 1;
        let text = &all[..end];
        let count = text.matches('(').count();
        if count < 2 || text.matches(")(").count() + 1 != count {
            return None;
        }
        let part = Part::read(text)?;
        self.keep(at, "part", text.replace(' ', ""), part.in_words());
        Some(end)
    }
}

/// The beginning of a text, at most the longest piece.
fn window(text: &str) -> &str {
    let end = (0..=LONGEST_PIECE.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    &text[..end]
}

/// The length of a text up to the bracket that closes its first one.
fn closed(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth <= 1 => return Some(at + 1),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// `60 B of data in 96 B: 36 B is padding`; for a shape without a layout, its data.
fn size_in_words(shape: &Shape) -> String {
    match Tiled::new(shape) {
        Ok(tiled) if tiled.padding_bytes() == 0 => format!("{}, no padding", bytes(tiled.physical_bytes())),
        Ok(tiled) => {
            let (data, all, padding) = (tiled.logical_bytes(), tiled.physical_bytes(), tiled.padding_bytes());
            format!("{} of data in {}: {} is padding", bytes(data), bytes(all), bytes(padding))
        }
        Err(_) => open_sizes(shape).map_or_else(|| "no size".to_owned(), |data| format!("{} of data", bytes(data))),
    }
}

impl WriteText for Prose {
    fn write_text(&self, _: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let s = if self.pieces.len() == 1 { "" } else { "s" };
        writeln!(out, "{} piece{s} of XLA's notation:", self.pieces.len())?;
        for piece in &self.pieces {
            writeln!(out, "line {}  {}", piece.line, styled(STRONG, &piece.text))?;
            writeln!(out, "        {}", piece.meaning)?;
        }
        writeln!(out, "\n`tilewise show` says more of a shape, `tilewise index` of an element and an equation")
    }
}
