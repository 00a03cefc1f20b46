//! The grammar of the documents' equations.
//!
//! ```text
//! equation = {separator} member {separator member} {separator} ["."]     separator: "=", a line's end
//! member   = product {("+" | "-") product}
//! product  = factor {["·" | "*" | "x" | "/" | "mod"] factor}
//! factor   = number | symbol | name "(" list ")" | "(" list ")" | "[" list "]" | "⌊" member "⌋" | "⌈" member "⌉" | "-" factor | "*"
//! list     = [item {"," item}]        item = member | letter "=" member
//! ```

use super::{
    token::{Sign, Token, Tokens, is_symbol},
    wrong::Wrong,
};
use crate::plain::Plain;
use std::ops::Range;
use tilewise_audit::Failure;

/// Brackets inside brackets, at most: a reader calls itself for each.
const DEEPEST: usize = 64;

/// Operators of an equation, at most: each holds its left side, and is evaluated inside the next one.
const MOST_OPERATORS: usize = 1000;

/// A node of an expression, and its bytes of the plain text.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) span: Range<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Number(i64),
    /// `*`, a dimension that a tile merges.
    Star,
    /// `e`, `d_{n-1}`, `…`: no number.
    Symbol,
    /// `(2,3)`, `(2,)`; of one item without a comma, brackets around it.
    List(Vec<Node>),
    /// `(2,4)(2,1)`: tiles behind each other; of numbers, their product.
    Adjacent(Vec<Node>),
    /// A function by its name.
    Call(String, Vec<Node>),
    /// `y=2`, by the letter of its dimension.
    Lettered(String, Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Floor(Box<Node>),
    Ceiling(Box<Node>),
    Negative(Box<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
}

/// The members of an equation, one or more.
///
/// # Errors
/// A syntax error, with its bytes of the source.
pub(super) fn parse(plain: &Plain) -> Result<Vec<Node>, Failure> {
    let tokens = Tokens::of(plain.text()).map_err(|wrong| wrong.of(plain))?;
    let mut parser = Parser { tokens, at: 0, depth: 0, operators: 0, is_prose: false };
    let mut members = Vec::new();
    parser.equation(&mut members).map_err(|wrong| wrong.of(plain))?;
    Ok(members)
}

/// The members that a text begins with; none if it begins with no equation.
pub(super) fn parse_prefix(text: &str) -> Vec<Node> {
    let mut parser = Parser { tokens: Tokens::before_wrong(text), at: 0, depth: 0, operators: 0, is_prose: true };
    let mut members = Vec::new();
    // The text behind the last member is prose.
    let _ = parser.equation(&mut members);
    members
}

struct Parser {
    tokens: Tokens,
    at: usize,
    depth: usize,
    operators: usize,
    /// Whether a line that goes on with neither `=` nor an operator doesn't belong to it.
    is_prose: bool,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at)
    }

    /// The token behind the next one.
    fn peek_behind(&self) -> &Token {
        self.tokens.get(self.at + 1)
    }

    fn span(&self) -> Range<usize> {
        self.tokens.span(self.at)
    }

    fn eat(&mut self, sign: Sign) -> bool {
        let found = *self.peek() == Token::Sign(sign);
        self.at += usize::from(found);
        found
    }

    fn skip_lines(&mut self) {
        while *self.peek() == Token::LineEnd {
            self.at += 1;
        }
    }

    fn expected(&self, what: &str) -> Wrong {
        let found = match self.peek() {
            Token::End => "the text ends".to_owned(),
            Token::LineEnd => "the line ends".to_owned(),
            Token::Number(number) => format!("there is `{number}`"),
            Token::Word(word) => format!("there is `{word}`"),
            Token::Ellipsis => "there is `…`".to_owned(),
            Token::Sign(sign) => format!("there is `{}`", sign.as_char()),
        };
        Wrong::new("syntax", format!("expected {what}, but {found}"), self.span())
    }

    fn equation(&mut self, members: &mut Vec<Node>) -> Result<(), Wrong> {
        loop {
            while *self.peek() == Token::LineEnd || *self.peek() == Token::Sign(Sign::Equals) {
                self.at += 1;
            }
            if *self.peek() == Token::End && !members.is_empty() {
                return Ok(());
            }
            members.push(self.member()?);
            // The end of a sentence.
            if self.eat(Sign::Stop) {
                self.skip_lines();
            }
            if self.is_prose && !self.goes_on(&[Sign::Equals]) {
                return Ok(());
            }
            match self.peek() {
                Token::End | Token::LineEnd | Token::Sign(Sign::Equals) => {}
                _ => return Err(self.expected("`=`, an operator or the end")),
            }
        }
    }

    /// Whether the next line goes on with an operator; if so, it is reached.
    fn goes_on(&mut self, signs: &[Sign]) -> bool {
        let mut next = self.at;
        while *self.tokens.get(next) == Token::LineEnd {
            next += 1;
        }
        let goes_on = signs.iter().any(|sign| *self.tokens.get(next) == Token::Sign(*sign));
        if goes_on {
            self.at = next;
        }
        goes_on
    }

    fn member(&mut self) -> Result<Node, Wrong> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let message = format!("brackets are open inside each other more than {DEEPEST} times");
            return Err(Wrong::new("nesting_too_deep", message, self.span()));
        }
        let mut sum = self.product()?;
        while self.goes_on(&[Sign::Plus, Sign::Minus]) {
            let operator = if *self.peek() == Token::Sign(Sign::Plus) { Operator::Plus } else { Operator::Minus };
            self.at += 1;
            self.skip_lines();
            let right = self.product()?;
            sum = self.binary(operator, sum, right)?;
        }
        self.depth -= 1;
        Ok(sum)
    }

    fn product(&mut self) -> Result<Node, Wrong> {
        let mut product = self.factor()?;
        loop {
            let operator = match self.peek() {
                Token::Sign(Sign::Dot | Sign::Star) => Operator::Times,
                Token::Sign(Sign::Slash) => Operator::Over,
                Token::Word(word) if word == "mod" => Operator::Modulo,
                Token::Word(word) if word.eq_ignore_ascii_case("x") => Operator::Times,
                Token::LineEnd => {
                    if self.goes_on(&[Sign::Dot, Sign::Slash]) {
                        continue;
                    }
                    return Ok(product);
                }
                Token::Sign(Sign::Open) => {
                    if let Some(end) = self.end_of_remark() {
                        self.at = end;
                        continue;
                    }
                    let next = self.factor()?;
                    product = adjacent(product, next);
                    continue;
                }
                // `e_{n}d_{n-1}…d_{1}`; behind a blank, a letter is a word.
                Token::Word(word) if is_symbol(word) && self.span().start == product.span.end => {
                    let next = self.factor()?;
                    product = self.binary(Operator::Times, product, next)?;
                    continue;
                }
                Token::Ellipsis if self.span().start == product.span.end => {
                    let next = self.factor()?;
                    product = self.binary(Operator::Times, product, next)?;
                    continue;
                }
                _ => return Ok(product),
            };
            self.at += 1;
            self.skip_lines();
            let right = self.factor()?;
            product = self.binary(operator, product, right)?;
        }
    }

    /// The end of a remark in brackets, such as `(arithmetic is elementwise, (a,b) is concatenation)`: it has words
    /// that aren't those of a formula.
    fn end_of_remark(&self) -> Option<usize> {
        let (mut at, mut depth, mut has_words) = (self.at, 0_usize, false);
        loop {
            match self.tokens.get(at) {
                Token::Sign(Sign::Open) => depth += 1,
                Token::Sign(Sign::Close) if depth <= 1 => return has_words.then_some(at + 1),
                Token::Sign(Sign::Close) => depth -= 1,
                Token::Word(word) => {
                    let is_call = *self.tokens.get(at + 1) == Token::Sign(Sign::Open);
                    has_words |= !is_call && !is_symbol(word) && !matches!(word.as_str(), "mod" | "x" | "X");
                }
                Token::End => return None,
                _ => {}
            }
            at += 1;
        }
    }

    fn factor(&mut self) -> Result<Node, Wrong> {
        let start = self.span().start;
        let kind = match self.peek().clone() {
            Token::Number(number) => {
                self.at += 1;
                Kind::Number(number)
            }
            Token::Ellipsis => {
                self.at += 1;
                Kind::Symbol
            }
            Token::Word(word) => self.named(word)?,
            Token::Sign(Sign::Star) => {
                self.at += 1;
                Kind::Star
            }
            Token::Sign(Sign::Minus) => {
                self.at += 1;
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err(Wrong::new("nesting_too_deep", "there are too many signs", self.span()));
                }
                let factor = self.factor()?;
                self.depth -= 1;
                Kind::Negative(Box::new(factor))
            }
            Token::Sign(Sign::Open) => Kind::List(self.list(Sign::Open, Sign::Close)?),
            Token::Sign(Sign::OpenSquare) => Kind::List(self.list(Sign::OpenSquare, Sign::CloseSquare)?),
            Token::Sign(sign @ (Sign::OpenFloor | Sign::OpenCeiling)) => {
                self.at += 1;
                self.skip_lines();
                let inside = Box::new(self.member()?);
                self.skip_lines();
                let (close, kind) = match sign {
                    Sign::OpenFloor => (Sign::CloseFloor, Kind::Floor(inside)),
                    _ => (Sign::CloseCeiling, Kind::Ceiling(inside)),
                };
                if !self.eat(close) {
                    return Err(self.expected(&format!("`{}`", close.as_char())));
                }
                kind
            }
            _ => return Err(self.expected("a number, a list in brackets or `linear_index(…)`")),
        };
        Ok(Node { kind, span: start..self.tokens.span(self.at - 1).end })
    }

    /// A function's call, or a symbol; names of several words are those of a translation.
    fn named(&mut self, first: String) -> Result<Kind, Wrong> {
        let start = self.span();
        let mut name = first;
        self.at += 1;
        while let Token::Word(next) = self.peek() {
            if name.is_ascii() || next.is_ascii() {
                break;
            }
            name = format!("{name} {next}");
            self.at += 1;
        }
        match self.peek() {
            Token::Sign(Sign::Open) if !is_symbol(&name) => Ok(Kind::Call(name, self.list(Sign::Open, Sign::Close)?)),
            Token::Sign(Sign::OpenSquare) if is_symbol(&name) => {
                self.list(Sign::OpenSquare, Sign::CloseSquare)?;
                Ok(Kind::Symbol)
            }
            _ if is_symbol(&name) => Ok(Kind::Symbol),
            _ => {
                let message = format!("`{name}` is neither a number nor a symbol of the document");
                Err(Wrong::new("syntax", message, start.start..self.tokens.span(self.at - 1).end))
            }
        }
    }

    fn binary(&mut self, operator: Operator, left: Node, right: Node) -> Result<Node, Wrong> {
        let span = left.span.start..right.span.end;
        self.operators += 1;
        if self.operators > MOST_OPERATORS {
            let message = format!("an equation has at most {MOST_OPERATORS} operators");
            return Err(Wrong::new("nesting_too_deep", message, right.span));
        }
        Ok(Node { kind: Kind::Binary(operator, Box::new(left), Box::new(right)), span })
    }

    fn list(&mut self, open: Sign, close: Sign) -> Result<Vec<Node>, Wrong> {
        if !self.eat(open) {
            return Err(self.expected(&format!("`{}`", open.as_char())));
        }
        let mut items = Vec::new();
        loop {
            self.skip_lines();
            if self.eat(close) {
                return Ok(items);
            }
            let item = match (self.peek().clone(), self.peek_behind()) {
                (Token::Word(letter), Token::Sign(Sign::Equals)) => {
                    let start = self.span().start;
                    self.at += 2;
                    let value = self.member()?;
                    let end = value.span.end;
                    Node { kind: Kind::Lettered(letter, Box::new(value)), span: start..end }
                }
                _ => self.member()?,
            };
            items.push(item);
            self.skip_lines();
            if !self.eat(Sign::Comma) && *self.peek() != Token::Sign(close) {
                return Err(self.expected(&format!("`,` or `{}`", close.as_char())));
            }
        }
    }
}

fn adjacent(left: Node, right: Node) -> Node {
    let span = left.span.start..right.span.end;
    let kind = match left.kind {
        Kind::Adjacent(mut parts) => {
            parts.push(right);
            Kind::Adjacent(parts)
        }
        kind => Kind::Adjacent(vec![Node { kind, span: left.span }, right]),
    };
    Node { kind, span }
}
