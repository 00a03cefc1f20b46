//! One pass over the text: the head of each line is read, the rest is skipped.

use memchr::memmem;

use crate::error::{Error, ErrorKind, Warning, WarningKind};
use crate::opcode::Opcode;
use crate::record::{ComputationRecord, Data, InstructionRecord};
use crate::scan::{
    balanced_end, closed_line_end, identifier_end, is_identifier, line_end, looks_like_instruction, peek, shape_end,
    skip_blank, skip_trivia,
};
use crate::source_table::SourceTable;
use crate::span::Span;

/// Reads the first module of `source`. Only a text that is too large, or that holds no instruction at all, is an error.
pub(crate) fn parse(source: String) -> Result<Data, Error> {
    check_size(&source)?;
    let parser = Parser::read(&source, source.len(), true);
    let rest = parser.next_module;
    let mut parsed = parser.finish();
    if let (Ok(parsed), Some(next)) = (&mut parsed, rest) {
        let Span { start, end } = Span::new(next, line_end(source.as_bytes(), next));
        parsed.warnings.push(Warning { kind: WarningKind::SeveralModules, start, end });
    }
    parsed?.own(source)
}

/// Reads every module of `source`, each with a text of its own. There is at least one result.
pub(crate) fn parse_all(source: String) -> Vec<Result<Data, Error>> {
    if let Err(error) = check_size(&source) {
        return vec![Err(error)];
    }
    let mut modules = Vec::new();
    let mut rest = source.as_str();
    let mut trusts_header = true;
    loop {
        // Of the first module's text there is mostly no other; a guess at the length of the others would add up.
        let expected = if modules.is_empty() { rest.len() } else { 0 };
        let parser = Parser::read(rest, expected, trusts_header);
        trusts_header &= !parser.header_is_open;
        let next = parser.next_module;
        let parsed = parser.finish();
        match next.and_then(|next| rest.split_at_checked(next)) {
            Some((text, others)) => {
                modules.push(parsed.and_then(|parsed| parsed.own(text.to_owned())));
                rest = others;
            }
            None if modules.is_empty() => return vec![parsed.and_then(|parsed| parsed.own(source))],
            None => {
                modules.push(parsed.and_then(|parsed| parsed.own(rest.to_owned())));
                return modules;
            }
        }
    }
}

fn check_size(source: &str) -> Result<(), Error> {
    if u32::try_from(source.len()).is_err() {
        let message = "HLO text of 4 GiB or more can't be read; split it by module or by computation";
        return Err(Error::new(ErrorKind::TooLarge, None, message));
    }
    Ok(())
}

/// What was read of a text.
struct Parsed {
    name: Span,
    header: Option<Span>,
    computations: Vec<ComputationRecord>,
    instructions: Vec<InstructionRecord>,
    table: SourceTable,
    warnings: Vec<Warning>,
}

impl Parsed {
    /// A module, with the text that was read.
    #[expect(clippy::unnecessary_wraps, reason = "closes a chain of results")]
    fn own(self, source: String) -> Result<Data, Error> {
        let Self { name, header, computations, instructions, table, warnings } = self;
        let mut data = Data {
            name,
            header: header.unwrap_or_default(),
            computations,
            instructions,
            table,
            warnings,
            has_header: header.is_some(),
            entry: None,
            computations_by_name: Default::default(),
            instructions_by_name: Default::default(),
            owning: Default::default(),
            source,
        };
        data.choose_entry();
        Ok(data)
    }
}

struct Parser<'s> {
    source: &'s str,
    bytes: &'s [u8],
    name: Span,
    header: Option<Span>,
    computations: Vec<ComputationRecord>,
    instructions: Vec<InstructionRecord>,
    table: SourceTable,
    warnings: Vec<Warning>,
    /// Whether the last computation still waits for its closing brace.
    open: bool,
    /// A search for a closing bracket is known to fail up to here, so it isn't begun again.
    hopeless_before: usize,
    /// Whether a header may reach over lines that look like instructions, because its strings do.
    trusts_header: bool,
    /// Whether a header was searched for its end up to the end of the text, in vain.
    header_is_open: bool,
    /// Where another module begins; reading stops there.
    next_module: Option<usize>,
}

impl<'s> Parser<'s> {
    /// Reads a text, of which so many bytes are expected to be this module's.
    fn read(source: &'s str, expected: usize, trusts_header: bool) -> Self {
        let mut parser = Self {
            source,
            bytes: source.as_bytes(),
            name: Span::default(),
            header: None,
            computations: Vec::new(),
            // Real programs have 150 to 250 bytes a line: one allocation is nearly always enough.
            instructions: Vec::with_capacity(expected / 160),
            table: SourceTable::default(),
            warnings: Vec::new(),
            open: false,
            hopeless_before: 0,
            trusts_header,
            header_is_open: false,
            next_module: None,
        };
        parser.run();
        parser.table.finish();
        parser
    }

    fn finish(self) -> Result<Parsed, Error> {
        let Self { name, header, computations, mut instructions, table, warnings, .. } = self;
        if instructions.is_empty() {
            let text = self.next_module.and_then(|end| self.source.get(..end)).unwrap_or(self.source);
            return Err(not_hlo(text, header.is_some()));
        }
        if instructions.len() < instructions.capacity() / 2 {
            instructions.shrink_to_fit();
        }
        Ok(Parsed { name, header, computations, instructions, table, warnings })
    }

    fn run(&mut self) {
        let mut at = match find_header(self.bytes) {
            Some(start) => self.header(start),
            None if self.bytes.starts_with("\u{feff}".as_bytes()) => 3,
            None => 0,
        };
        loop {
            at = skip_blank(self.bytes, at);
            if at >= self.bytes.len() {
                break;
            }
            at = match self.bytes[at] {
                b'\n' => at + 1,
                b'}' => self.close(at),
                b',' => self.continuation(at),
                b'/' if peek(self.bytes, at + 1) == b'*' => match memmem::find(&self.bytes[at + 2..], b"*/") {
                    Some(offset) => at + 2 + offset + 2,
                    None => {
                        self.warn(WarningKind::UnterminatedComment, at, self.bytes.len());
                        break;
                    }
                },
                b'/' if peek(self.bytes, at + 1) == b'/' => line_end(self.bytes, at),
                _ => match self.statement(at) {
                    Some(next) => next,
                    None => break,
                },
            };
        }
        self.end_computation();
    }

    /// Reads the `HloModule` line at `start` and returns where it ends.
    fn header(&mut self, start: usize) -> usize {
        let name = skip_blank(self.bytes, start + "HloModule".len());
        let mut end = name;
        while end < self.bytes.len() && !matches!(self.bytes[end], b',' | b' ' | b'\t' | b'\r' | b'\n') {
            end += 1;
        }
        self.name = Span::new(name, end);
        let stop = self.header_end(end);
        self.header = Some(Span::new(end, stop));
        stop
    }

    /// Where the header's attributes end. Its strings may hold modules of their own (`origin_recovery_table`), so lines
    /// in them that look like instructions are none.
    fn header_end(&mut self, at: usize) -> usize {
        let end = line_end(self.bytes, at);
        if !leaves_open(&self.bytes[at..end]) || at < self.hopeless_before {
            return end;
        }
        if self.trusts_header {
            match closed_line_end(self.bytes, at, false) {
                Ok(end) => return end,
                Err(_) => self.header_is_open = true,
            }
        }
        self.attributes_end(at)
    }

    /// Reads whatever begins at `at` and returns where it ends; `None` if nothing more is to be read.
    fn statement(&mut self, at: usize) -> Option<usize> {
        let (mut start, mut end) = self.word(at);
        let (mut is_root, mut is_entry) = (false, false);
        let following = skip_blank(self.bytes, end);
        if following > end && (peek(self.bytes, following) == b'%' || is_identifier(peek(self.bytes, following))) {
            match &self.bytes[start..end] {
                b"ROOT" => is_root = true,
                b"ENTRY" => is_entry = true,
                b"HloModule" => {
                    self.next_module = Some(at);
                    return None;
                }
                _ => {}
            }
            if is_root || is_entry {
                (start, end) = self.word(following);
            }
        }
        let name = Span::new(start, end);
        let next = skip_blank(self.bytes, end);
        let read = match peek(self.bytes, next) {
            _ if end == start => None,
            b'=' if !is_entry => self.instruction(name, next + 1, is_root),
            b'(' | b'{' if !is_root => self.computation(name, next, is_entry),
            b'\n' | b'\r' | 0 if !self.open => self.table.read(self.bytes, start, end),
            _ => None,
        };
        if read.is_none() && find_header(&self.bytes[at..line_end(self.bytes, at)]).is_some() {
            // Another module, behind a log's prefix.
            self.next_module = Some(at);
            return None;
        }
        Some(read.unwrap_or_else(|| self.unread(at)))
    }

    /// The identifier at `at`, without its sigil.
    fn word(&self, at: usize) -> (usize, usize) {
        let start = at + usize::from(peek(self.bytes, at) == b'%');
        (start, identifier_end(self.bytes, start))
    }

    /// Reads `shape opcode(operands), attributes` and returns where the line ends.
    fn instruction(&mut self, name: Span, at: usize, is_root: bool) -> Option<usize> {
        let bytes = self.bytes;
        let shape = skip_trivia(bytes, at);
        let shape_end = shape_end(bytes, shape).ok()?;
        let opcode = skip_trivia(bytes, shape_end);
        let opcode_end = identifier_end(bytes, opcode);
        let operands = skip_blank(bytes, opcode_end);
        if opcode_end == opcode || peek(bytes, operands) != b'(' {
            return None;
        }
        let operands_end = balanced_end(bytes, operands, true).ok()?;
        let kind = Opcode::of(self.source.get(opcode..opcode_end).unwrap_or_default());
        if has_nested_instruction(&bytes[operands + 1..operands_end - 1]) && kind != Opcode::Constant {
            self.warn(WarningKind::NestedInstruction, operands + 1, operands_end - 1);
        }
        let end = self.attributes_end(operands_end);
        if !self.open {
            // A line on its own, pasted from somewhere: XLA too wraps it in a computation (`ParseSingleInstruction`).
            self.computations.push(ComputationRecord::implicit(self.instructions.len()));
            self.open = true;
        }
        self.instructions.push(InstructionRecord {
            name,
            shape: Span::new(shape, shape_end),
            opcode: kind,
            opcode_text: Span::new(opcode, opcode_end),
            operands: Span::new(operands + 1, operands_end - 1),
            attributes: Span::new(operands_end, end),
            is_root,
        });
        Some(end)
    }

    /// Where the attributes that begin at `at` end: with their line, unless the line leaves something open.
    fn attributes_end(&mut self, at: usize) -> usize {
        let end = line_end(self.bytes, at);
        if !leaves_open(&self.bytes[at..end]) || at < self.hopeless_before {
            return end;
        }
        match closed_line_end(self.bytes, at, true) {
            Ok(end) => end,
            Err(stop) => {
                self.hopeless_before = stop;
                self.warn(WarningKind::UnterminatedAttributes, at, end);
                end
            }
        }
    }

    /// A line that starts with a comma goes on with the attributes of the instruction above.
    fn continuation(&mut self, at: usize) -> usize {
        let above = self.instructions.last().map(|instruction| instruction.attributes.end as usize);
        match above {
            Some(above) if self.open && self.bytes[above..at].iter().all(u8::is_ascii_whitespace) => {
                let end = self.attributes_end(at);
                if let Some(instruction) = self.instructions.last_mut() {
                    instruction.attributes = Span::new(instruction.attributes.start as usize, end);
                }
                end
            }
            _ => self.unread(at),
        }
    }

    /// Reads `(parameters) -> shape {` or `{` at `at` and returns where its line goes on.
    fn computation(&mut self, name: Span, at: usize, is_entry: bool) -> Option<usize> {
        let brace = self.signature_end(at)?;
        self.end_computation();
        self.computations.push(ComputationRecord {
            name,
            signature: Span::new(at, brace),
            is_entry,
            ..ComputationRecord::implicit(self.instructions.len())
        });
        self.open = true;
        Some(brace + 1)
    }

    /// The position of the brace that opens the computation whose signature starts at `at`.
    fn signature_end(&mut self, at: usize) -> Option<usize> {
        let line = &self.bytes[..line_end(self.bytes, at)];
        if let Ok(brace) = signature(line, at) {
            return Some(brace);
        }
        if at < self.hopeless_before {
            return None;
        }
        match signature(self.bytes, at) {
            Ok(brace) => Some(brace),
            Err(stop) => {
                self.hopeless_before = stop;
                None
            }
        }
    }

    /// Reads `}` and what follows it on its line.
    fn close(&mut self, at: usize) -> usize {
        let named = self.computations.last().is_some_and(|computation| !computation.is_implicit());
        if !(self.open && named) {
            return self.unread(at);
        }
        let end = self.attributes_end(at + 1);
        let count = self.instructions.len();
        if let Some(computation) = self.computations.last_mut() {
            computation.attributes = Span::new(at + 1, end);
            computation.close(count);
        }
        self.open = false;
        end
    }

    fn end_computation(&mut self) {
        let count = self.instructions.len();
        let Some(computation) = self.computations.last_mut().filter(|_| self.open) else {
            return;
        };
        computation.close(count);
        self.open = false;
        if !computation.is_implicit() {
            let name = computation.name;
            self.warn(WarningKind::UnterminatedComputation, name.start as usize, name.end as usize);
        }
    }

    /// Skips the line at `at`, with a warning.
    fn unread(&mut self, at: usize) -> usize {
        let end = line_end(self.bytes, at);
        if let Some(last) = self.warnings.last_mut().filter(|last| last.kind == WarningKind::UnreadLines) {
            let between = &self.bytes[last.end as usize..at];
            if between.iter().all(u8::is_ascii_whitespace) {
                last.end = Span::new(at, end).end;
                return end;
            }
        }
        self.warn(WarningKind::UnreadLines, at, end);
        end
    }

    fn warn(&mut self, kind: WarningKind, start: usize, end: usize) {
        let Span { start, end } = Span::new(start, end);
        self.warnings.push(Warning { kind, start, end });
    }
}

/// Whether the attributes on a line go on in the next. Pretty-printed values break lines only after these; a complete
/// line never ends with one.
fn leaves_open(line: &[u8]) -> bool {
    let last = line.iter().rev().find(|byte| !byte.is_ascii_whitespace());
    matches!(last, Some(b'{' | b'[' | b'(' | b','))
}

/// Whether an operand is an instruction itself: `negate(f32[2] parameter(0))`. In a shape only single letters stand
/// before a parenthesis.
fn has_nested_instruction(operands: &[u8]) -> bool {
    memchr::memchr_iter(b'(', operands).any(|at| {
        let word = operands[..at].iter().rev().take(2);
        word.filter(|byte| is_identifier(**byte)).count() == 2
    })
}

/// The position of the `{` after `(parameters) -> shape`, or where the search gave up.
fn signature(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let mut at = at;
    if bytes[at] == b'(' {
        let arrow = skip_trivia(bytes, balanced_end(bytes, at, true)?);
        if !bytes[arrow.min(bytes.len())..].starts_with(b"->") {
            return Err(arrow);
        }
        let shape = skip_trivia(bytes, arrow + 2);
        at = skip_trivia(bytes, shape_end(bytes, shape)?);
    }
    if peek(bytes, at) == b'{' { Ok(at) } else { Err(at) }
}

/// Where the text says `HloModule name`, after log prefixes, blank lines and the like.
fn find_header(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let found = from + memmem::find(&bytes[from..], b"HloModule ")?;
        let line = memchr::memrchr(b'\n', &bytes[from..found]).map_or(from, |offset| from + offset + 1);
        let before = &bytes[line..found];
        let glued = before.last().is_some_and(|byte| is_identifier(*byte));
        if let Some(end) = open_comment_end(bytes, from, found) {
            from = end;
            continue;
        }
        let is_comment = before.trim_ascii_start().starts_with(b"//");
        if !glued && !is_comment && !before.contains(&b'"') && !looks_like_instruction(bytes, line) {
            return Some(found);
        }
        // A name within an attribute, not a header; nor is anything else on its line.
        from = line_end(bytes, found);
    }
}

/// The end of the comment that starts a line between `from` and `at`, and that is open at `at`.
fn open_comment_end(bytes: &[u8], from: usize, at: usize) -> Option<usize> {
    let between = &bytes[from..at];
    let open = memmem::rfind(between, b"/*").filter(|open| memmem::find(&between[*open..], b"*/").is_none())?;
    let starts_line = between[..open].iter().rev().find(|byte| !matches!(byte, b' ' | b'\t'));
    if !matches!(starts_line, None | Some(b'\n')) {
        return None;
    }
    Some(memmem::find(&bytes[at..], b"*/").map_or(bytes.len(), |end| at + end + 2))
}

/// The error for a file of a dump that a better one lies beside.
pub(crate) fn of_dump(what: &str) -> Error {
    let message = format!(
        "not HLO: this is {what} of a dump; give the `….after_optimizations.txt`, the `….after_optimizations.hlo.pb` \
         or the `…-buffer-assignment.txt` beside it, or the whole folder"
    );
    Error::new(ErrorKind::NotHlo, None, message)
}

/// The error for a text without instructions, with a guess at what it is instead.
fn not_hlo(source: &str, has_header: bool) -> Error {
    let start = source.trim_start_matches('\u{feff}').trim_start();
    let head: &str = start.get(..4096).unwrap_or(start);
    const HOW: &str =
        "write HLO text with XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\", or `compiled.as_text()` in jax";
    let what = if start.is_empty() {
        "the text is empty"
    } else if has_header {
        return Error::new(
            ErrorKind::NotHlo,
            None,
            "the module has no instruction: the text may be cut after its header",
        );
    } else if start.starts_with("module @")
        || start.starts_with("module {")
        || head.contains("stablehlo.")
        || head.contains("func.func")
    {
        "this is StableHLO or another MLIR text, which has no layouts yet; it must be compiled first"
    } else if start.starts_with("{ lambda") {
        "this is a jaxpr, which has no layouts yet; it must be compiled first"
    } else if start.starts_with("BufferAssignment:") {
        "this is a buffer assignment, not HLO text"
    } else if start.starts_with("HloLiveRange")
        || start.starts_with("Total bytes used:")
        || head.contains("Used values:")
    {
        return of_dump("a list of values or live ranges");
    } else if start.starts_with("Memory Space:") || head.contains("cumulative_size;") {
        return of_dump("a memory-usage report");
    } else if head.contains("RESOURCE_EXHAUSTED") {
        "this is an out-of-memory message, not HLO text"
    } else if head.bytes().any(|byte| byte < b' ' && !byte.is_ascii_whitespace()) {
        "this looks like binary data, perhaps a serialised HloProto, not HLO text"
    } else {
        "no line reads `name = shape opcode(operands)`"
    };
    Error::new(ErrorKind::NotHlo, None, format!("not HLO text: {what}; {HOW}"))
}
