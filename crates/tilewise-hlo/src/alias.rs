//! The alias lists of modules and instructions.

use crate::error::{Error, ErrorKind};
use crate::scan::{peek, skip_trivia};

/// One entry of a module's `input_output_alias`: an output that lives in a parameter's buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputOutputAlias {
    /// The path to the output within the result's tuples.
    pub output_index: Vec<usize>,
    /// The parameter, from 0.
    pub parameter_number: usize,
    /// The path to the buffer within the parameter's tuples.
    pub parameter_index: Vec<usize>,
    /// Whether the caller may refuse to donate the buffer.
    pub kind: AliasKind,
}

impl InputOutputAlias {
    /// The alias of an output that may live in the whole of a parameter, as JAX writes it of a donated array.
    ///
    /// ```
    /// let alias = tilewise_hlo::InputOutputAlias::of_parameter(vec![1], 0);
    /// assert_eq!((alias.output_index, alias.parameter_index), (vec![1], vec![]));
    /// ```
    #[must_use]
    pub fn of_parameter(output_index: Vec<usize>, parameter_number: usize) -> Self {
        Self { output_index, parameter_number, parameter_index: Vec::new(), kind: AliasKind::May }
    }
}

/// Whether an alias may or must be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AliasKind {
    /// `may-alias`: the caller decides at run time.
    May,
    /// `must-alias`.
    Must,
}

/// One entry of an instruction's `output_to_operand_aliasing`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperandAlias {
    /// The path to the output within the result's tuples.
    pub output_index: Vec<usize>,
    /// The operand, from 0.
    pub operand_number: usize,
    /// The path to the buffer within the operand's tuples.
    pub operand_index: Vec<usize>,
}

/// Reads `{ {0}: (0, {}, may-alias), … }`; `base` is the start of `text` in the source.
pub(crate) fn input_output_aliases(text: &str, base: usize) -> Result<Vec<InputOutputAlias>, Error> {
    entries(text, base, |cursor, output_index, parameter_number, parameter_index| {
        // XLA's parser takes an alias without kind for `may-alias`.
        let mut kind = AliasKind::May;
        if cursor.eat(b',') {
            kind = match () {
                () if cursor.eat_word(b"may-alias") => AliasKind::May,
                () if cursor.eat_word(b"must-alias") => AliasKind::Must,
                () => return Err(cursor.error("`may-alias` or `must-alias`")),
            };
        }
        let parameter_number = parameter_number.ok_or_else(|| cursor.error("the number of a parameter"))?;
        Ok(InputOutputAlias { output_index, parameter_number, parameter_index, kind })
    })
}

/// Reads `{{}: (0, {}), {1}: (2, {0})}`; `base` is the start of `text` in the source.
pub(crate) fn operand_aliases(text: &str, base: usize) -> Result<Vec<OperandAlias>, Error> {
    let entries = entries(text, base, |_, output_index, operand_number, operand_index| {
        Ok(operand_number.map(|operand_number| OperandAlias { output_index, operand_number, operand_index }))
    })?;
    // XLA reads and prints −1, which is no operand.
    Ok(entries.into_iter().flatten().collect())
}

fn entries<T>(
    text: &str,
    base: usize,
    mut finish: impl FnMut(&mut Cursor<'_>, Vec<usize>, Option<usize>, Vec<usize>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut cursor = Cursor { bytes: text.as_bytes(), at: 0, base };
    let mut entries = Vec::new();
    cursor.expect(b'{')?;
    while !cursor.eat(b'}') {
        if !entries.is_empty() {
            cursor.expect(b',')?;
        }
        let output = cursor.index()?;
        cursor.expect(b':')?;
        cursor.expect(b'(')?;
        let is_negative = cursor.eat(b'-');
        let number = Some(cursor.number()?).filter(|_| !is_negative);
        cursor.expect(b',')?;
        let index = cursor.index()?;
        entries.push(finish(&mut cursor, output, number, index)?);
        cursor.expect(b')')?;
    }
    Ok(entries)
}

struct Cursor<'t> {
    bytes: &'t [u8],
    at: usize,
    base: usize,
}

impl Cursor<'_> {
    fn error(&self, expected: &str) -> Error {
        let at = self.base + self.at;
        // All bytes of the character: the first, and those that only continue it.
        let rest = self.bytes.get(self.at + 1..).unwrap_or(&[]);
        let continuing = rest.iter().take_while(|&&byte| byte & 0xc0 == 0x80).count();
        let end = at + usize::from(self.at < self.bytes.len()) + continuing;
        Error::new(ErrorKind::Syntax, Some(at..end), format!("expected {expected} in an alias list"))
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.at = skip_trivia(self.bytes, self.at);
        let found = self.at < self.bytes.len() && peek(self.bytes, self.at) == byte;
        self.at += usize::from(found);
        found
    }

    fn eat_word(&mut self, word: &[u8]) -> bool {
        self.at = skip_trivia(self.bytes, self.at);
        let found = self.bytes[self.at..].starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), Error> {
        if self.eat(byte) { Ok(()) } else { Err(self.error(&format!("`{}`", char::from(byte)))) }
    }

    fn number(&mut self) -> Result<usize, Error> {
        self.at = skip_trivia(self.bytes, self.at);
        let mut value = None;
        while peek(self.bytes, self.at).is_ascii_digit() {
            let digit = usize::from(self.bytes[self.at] - b'0');
            value = Some(
                value
                    .unwrap_or(0_usize)
                    .checked_mul(10)
                    .and_then(|value| value.checked_add(digit))
                    .ok_or_else(|| self.error("a smaller number"))?,
            );
            self.at += 1;
        }
        value.ok_or_else(|| self.error("a number"))
    }

    fn index(&mut self) -> Result<Vec<usize>, Error> {
        let mut index = Vec::new();
        self.expect(b'{')?;
        while !self.eat(b'}') {
            if !index.is_empty() {
                self.expect(b',')?;
            }
            index.push(self.number()?);
        }
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_as_xla_prints_them() {
        let aliases = input_output_aliases("{ {0}: (0, {}, may-alias), {1,2}: (7, {3}, must-alias) }", 0).unwrap();
        assert_eq!(aliases[1].output_index, [1, 2]);
        assert_eq!((aliases[1].parameter_number, aliases[1].kind), (7, AliasKind::Must));
        assert_eq!(aliases[1].parameter_index, [3]);
        assert_eq!(input_output_aliases("{}", 0).unwrap(), []);
        assert_eq!(operand_aliases("{{2,0}: (0, {2,0}), {2,1}: (0, {2,1})}", 0).unwrap().len(), 2);
    }

    #[test]
    fn errors_say_where() {
        let error = operand_aliases("{{}: (x, {})}", 100).unwrap_err();
        assert_eq!((error.kind(), error.span()), (ErrorKind::Syntax, Some(106..107)));
        assert_eq!(operand_aliases("{{}: (∗, {})}", 0).unwrap_err().span(), Some(6..9), "a whole character");
        for text in
            ["", "{", "{{", "{{}: (0, {}, may-alias)}", "{{}: (99999999999999999999999, {})}", "{{0 1}: (0, {})}"]
        {
            assert_eq!(operand_aliases(text, 0).unwrap_err().kind(), ErrorKind::Syntax, "{text}");
        }
        assert!(input_output_aliases("{{}: (0, {}, never)}", 0).is_err());
    }
}
