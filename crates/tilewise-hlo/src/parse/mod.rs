//! One pass over the text.
//!
//! A line as compilers print it is recognised by its two ends (`line.rs`); any other text of XLA's grammar is read
//! token by token (`grammar.rs`). If that leaves anything unread, the text is read again without the shortcut.

mod foreign;
mod grammar;
mod line;
mod quoted;
mod shown;
mod wrapping;

use crate::error::{Error, Warning, WarningKind, check_size};
use crate::record::{ComputationRecord, Data, InstructionRecord};
use crate::scan::{
    balanced_end, identifier_end, is_identifier, line_end, looks_like_instruction, peek, shape_end, skip_trivia,
};
use crate::source_table::SourceTable;
use crate::span::Span;
pub(crate) use foreign::of_dump;
use foreign::{find_header, header_name, not_hlo};
use grammar::Pending;
use shown::shown;

/// Reads the first module of `source`. Only a text that is too large, or that holds no instruction at all, is an error.
pub(crate) fn parse(source: String) -> Result<Data, Error> {
    let source = shown(source);
    check_size(&source)?;
    let parser = Parser::read(&source, source.len(), true);
    let rest = parser.next_module;
    let mut parsed = parser.finish();
    if let (Ok(parsed), Some(next)) = (&mut parsed, rest) {
        let span = Span::new(next, line_end(source.as_bytes(), next));
        parsed.warnings.push(Warning::new(WarningKind::SeveralModules, span));
    }
    parsed?.own(source)
}

/// Reads every module of `source`, each with a text of its own. There is at least one result.
pub(crate) fn parse_all(source: String) -> Vec<Result<Data, Error>> {
    let source = shown(source);
    if let Err(error) = check_size(&source) {
        return vec![Err(error)];
    }
    let mut modules = Vec::new();
    let mut rest = source.as_str();
    let mut trusts_header = true;
    loop {
        // Most texts have one module; guesses at the lengths of the others would add up.
        let expected = if modules.is_empty() { rest.len() } else { 0 };
        let parser = Parser::read(rest, expected, trusts_header).within_its_module();
        trusts_header &= !parser.header_is_open;
        // If nothing was read, reading ends: each round takes a part of the text.
        let next = parser.next_module.filter(|next| *next > 0);
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

/// The parts that were read of a text.
#[derive(Default)]
struct Parsed {
    name: Span,
    header: Option<Span>,
    /// In the order in which they were closed, as in XLA: those within an instruction come before those around them.
    computations: Vec<ComputationRecord>,
    instructions: Vec<InstructionRecord>,
    /// The start and the index of each computation within an instruction.
    inline: Vec<(u32, u32)>,
    /// The text to append to the source: names of instructions and computations within others, and operands that
    /// mention these.
    appendix: String,
    table: SourceTable,
    warnings: Vec<Warning>,
}

impl Parsed {
    /// A module, with the text that was read.
    fn own(self, source: String) -> Result<Data, Error> {
        let Self { name, header, computations, instructions, mut inline, appendix, table, warnings } = self;
        let length = source.len();
        let mut source = source;
        source.push_str(&appendix);
        check_size(&source)?;
        inline.sort_unstable();
        let mut data = Data {
            name,
            header: header.unwrap_or_default(),
            computations,
            instructions,
            inline,
            operands: Vec::new(),
            first_operands: Vec::new(),
            uses: Vec::new(),
            table,
            warnings,
            has_header: header.is_some(),
            entry: None,
            computations_by_name: Default::default(),
            instructions_by_name: Default::default(),
            attributes: Default::default(),
            owning: Default::default(),
            has_tiles: Default::default(),
            source,
            length,
        };
        let elements = crate::elements::expand(&mut data);
        check_size(&data.source)?;
        crate::resolve::resolve(&mut data, &elements)?;
        Ok(data)
    }
}

/// A computation whose closing brace has not come yet.
struct OpenComputation {
    record: ComputationRecord,
    /// Its instructions, if a computation within it is closed before it.
    aside: Option<Vec<InstructionRecord>>,
    /// The brace that opened it, if it stands within an instruction, and the number of instructions open there.
    within: Option<(usize, usize)>,
}

struct Parser<'s> {
    source: &'s str,
    bytes: &'s [u8],
    parsed: Parsed,
    /// The innermost last.
    open: Vec<OpenComputation>,
    /// Instructions that are open, the innermost last.
    pending: Vec<Pending>,
    /// The number of instructions without a name.
    anonymous: usize,
    /// The start of the current statement.
    began: usize,
    /// The start of a comment without an end.
    open_comment: Option<usize>,
    /// The start of the last search for `*/`, and its result: lines that can't be read may begin comments that all end
    /// there.
    comment_end: Option<(usize, Option<usize>)>,
    /// Whether lines that look as printed are taken as such.
    as_printed: bool,
    /// Whether a header may reach over lines that look like instructions, because its strings do.
    trusts_header: bool,
    /// Whether the search for a header's end reached the end of the text in vain.
    header_is_open: bool,
    /// The start of another module, where reading stops.
    next_module: Option<usize>,
}

impl<'s> Parser<'s> {
    /// Reads a text, in which `expected` bytes are expected to be this module's.
    fn read(source: &'s str, expected: usize, trusts_header: bool) -> Self {
        let mut parser = Self::new(source, expected, trusts_header);
        parser.run();
        if !parser.parsed.warnings.is_empty() {
            let trusts_header = trusts_header && !parser.header_is_open;
            let header_is_open = parser.header_is_open;
            let read = parser.next_module.unwrap_or(source.len());
            parser = Self { as_printed: false, ..Self::new(source, expected.min(read), trusts_header) };
            parser.run();
            parser.header_is_open |= header_is_open;
        }
        parser.parsed.table.finish();
        parser
    }

    fn new(source: &'s str, expected: usize, trusts_header: bool) -> Self {
        Self {
            source,
            bytes: source.as_bytes(),
            // Real programs have 150 to 250 bytes a line: one allocation is nearly always enough.
            parsed: Parsed { instructions: Vec::with_capacity(expected / 160), ..Parsed::default() },
            open: Vec::new(),
            pending: Vec::new(),
            anonymous: 0,
            began: 0,
            open_comment: None,
            comment_end: None,
            as_printed: true,
            trusts_header,
            header_is_open: false,
            next_module: None,
        }
    }

    /// The parser of a module whose text ends where another begins: warnings beyond are the other's, and appended text
    /// belongs at its end.
    fn within_its_module(self) -> Self {
        let Some(next) = self.next_module else { return self };
        if self.parsed.appendix.is_empty() && self.parsed.warnings.iter().all(|warning| warning.end as usize <= next) {
            return self;
        }
        let Self { source, as_printed, trusts_header, header_is_open, .. } = self;
        let mut parser = Self { as_printed, header_is_open, ..Self::new(&source[..next], 0, trusts_header) };
        parser.run();
        parser.parsed.table.finish();
        parser.next_module.get_or_insert(next);
        parser
    }

    fn finish(self) -> Result<Parsed, Error> {
        let Self { mut parsed, .. } = self;
        let instructions = &mut parsed.instructions;
        if instructions.is_empty() {
            let text = self.next_module.and_then(|end| self.source.get(..end)).unwrap_or(self.source);
            return Err(not_hlo(text, parsed.header.is_some()));
        }
        if instructions.len() < instructions.capacity() / 2 {
            instructions.shrink_to_fit();
        }
        Ok(parsed)
    }

    fn run(&mut self) {
        let mut at = match find_header(self.bytes) {
            // Instructions before it are of another module, which has lost its head.
            Some(start) if !has_instruction(&self.bytes[..start]) => self.header(start),
            _ if self.bytes.starts_with("\u{feff}".as_bytes()) => 3,
            _ => 0,
        };
        loop {
            let read = if self.is_within_instruction() {
                self.go_on(at)
            } else {
                at = self.skip(at);
                self.began = at;
                if at >= self.bytes.len() {
                    break;
                }
                self.statement(at)
            };
            if self.next_module.is_some() {
                break;
            }
            at = read.unwrap_or_else(|stop| self.give_up(stop));
        }
        while !self.open.is_empty() {
            self.end_computation();
        }
        if let Some(start) = self.open_comment {
            self.warn(WarningKind::UnterminatedComment, start, self.bytes.len());
        }
    }

    /// Reads the `HloModule` line at `start` and returns its end.
    fn header(&mut self, start: usize) -> usize {
        let name = skip_trivia(self.bytes, start + "HloModule".len());
        let mut end = name;
        while end < self.bytes.len()
            && !matches!(self.bytes[end], b',' | b' ' | b'\t' | b'\r' | b'\n')
            && !self.bytes[end..].starts_with(b"/*")
        {
            end += 1;
        }
        self.parsed.name = Span::new(name, end);
        let stop = self.header_end(end);
        self.parsed.header = Some(Span::new(end, stop));
        stop
    }

    /// The end of the header's attributes, which begin at `at`. Its strings may hold modules of their own
    /// (`origin_recovery_table`), so lines in them may look like instructions.
    fn header_end(&mut self, at: usize) -> usize {
        if self.trusts_header {
            match self.attributes(at, false) {
                Ok(end) => return end,
                Err(_) => self.header_is_open = true,
            }
        }
        self.attributes(at, true).unwrap_or_else(|_| {
            let end = line_end(self.bytes, at);
            self.warn(WarningKind::UnreadLines, at, end);
            end
        })
    }

    /// Reads the statement at `at`, outside any instruction, and returns its end, or else the place of the fault.
    fn statement(&mut self, at: usize) -> Result<usize, usize> {
        match self.bytes[at] {
            b'}' => return self.close(at),
            b',' => return self.continuation(at),
            _ => {}
        }
        if let Some(end) = self.as_printed.then(|| self.line(at)).flatten() {
            return Ok(end);
        }
        let (mut start, mut end) = self.word(at);
        let (mut is_root, mut is_entry) = (false, false);
        let following = self.skip(end);
        if following > end && (peek(self.bytes, following) == b'%' || is_identifier(peek(self.bytes, following))) {
            match &self.bytes[start..end] {
                b"ROOT" => is_root = true,
                b"ENTRY" => is_entry = true,
                b"HloModule" if at > 0 && header_name(self.bytes, start).is_ok() => {
                    self.next_module = Some(at);
                    return Ok(at);
                }
                _ => {}
            }
            if is_root || is_entry {
                (start, end) = self.word(following);
            }
        }
        let name = Span::new(start, end);
        let next = self.skip(end);
        let read = match peek(self.bytes, next) {
            _ if end == start => Err(end),
            b'=' if !is_entry => self.begin_instruction(Some(name), is_root, next + 1),
            b'(' | b'{' if !is_root => self.computation(name, next, is_entry),
            _ if self.open.is_empty() && self.parsed.computations.is_empty() => {
                self.parsed.table.read(self.bytes, start, end).ok_or(end)
            }
            _ => Err(end),
        };
        if read.is_err() && find_header(&self.bytes[at..line_end(self.bytes, at)]).is_some() {
            // Another module, behind a log's prefix.
            self.next_module = Some(at);
        }
        read
    }

    /// The identifier at `at`, without its sigil.
    fn word(&self, at: usize) -> (usize, usize) {
        let start = at + usize::from(peek(self.bytes, at) == b'%');
        (start, identifier_end(self.bytes, start))
    }

    /// Skips white space and comments, to the end of the text if one has no end.
    fn skip(&mut self, mut at: usize) -> usize {
        while at < self.bytes.len() {
            match self.bytes[at] {
                b' ' | b'\t' | b'\r' | b'\n' => at += 1,
                b'/' if peek(self.bytes, at + 1) == b'/' => at = line_end(self.bytes, at),
                b'/' if peek(self.bytes, at + 1) == b'*' => match self.comment_end(at + 2) {
                    Some(end) => at = end,
                    None => {
                        self.open_comment.get_or_insert(at);
                        return self.bytes.len();
                    }
                },
                _ => break,
            }
        }
        at
    }

    /// The end of the comment that is open at `at`.
    fn comment_end(&mut self, at: usize) -> Option<usize> {
        match self.comment_end {
            Some((from, end)) if from <= at && end.is_none_or(|end| at + 2 <= end) => end,
            _ => {
                let end = memchr::memmem::find(&self.bytes[at..], b"*/").map(|offset| at + offset + 2);
                self.comment_end = Some((at, end));
                end
            }
        }
    }

    /// Adds an instruction to the innermost computation.
    fn push(&mut self, mut instruction: InstructionRecord) {
        let text = |span: Span| self.source.get(span.range()).unwrap_or_default();
        instruction.opcode = instruction.opcode.wrapping(text(instruction.shape), text(instruction.attributes));
        if self.open.is_empty() {
            // A line on its own, pasted from somewhere: XLA too wraps it in a computation (`ParseSingleInstruction`).
            let record = ComputationRecord::implicit(self.parsed.instructions.len());
            self.open.push(OpenComputation { record, aside: None, within: None });
        }
        match self.open.last_mut().and_then(|open| open.aside.as_mut()) {
            Some(aside) => aside.push(instruction),
            None => self.parsed.instructions.push(instruction),
        }
    }

    /// A line that starts with a comma goes on with the attributes of the instruction above.
    fn continuation(&mut self, at: usize) -> Result<usize, usize> {
        let Some(open) = self.open.last_mut() else { return Err(at) };
        let first = if open.aside.is_some() { 0 } else { open.record.first };
        let list = open.aside.as_mut().unwrap_or(&mut self.parsed.instructions);
        let is_inside = list.len() > first;
        let is_above = |last: &mut InstructionRecord| skip_trivia(self.bytes, last.attributes.end as usize) == at;
        match list.pop_if(|last| is_inside && is_above(last)) {
            Some(last) => Ok(self.reopen(last)),
            None => Err(at),
        }
    }

    /// Reads `(parameters) -> shape {` or `{` at `at` and returns the position behind the brace.
    fn computation(&mut self, name: Span, at: usize, is_entry: bool) -> Result<usize, usize> {
        let brace = signature(self.bytes, at)?;
        if self.open.last().is_some_and(|open| open.within.is_some()) {
            return Err(at);
        }
        self.end_computation();
        let record = ComputationRecord {
            name,
            signature: Span::new(at, brace),
            is_entry,
            ..ComputationRecord::implicit(self.parsed.instructions.len())
        };
        self.open.push(OpenComputation { record, aside: None, within: None });
        Ok(brace + 1)
    }

    /// Opens the computation whose brace, within the innermost instruction, is at `at`.
    fn open_within(&mut self, at: usize) -> usize {
        // Computations around it come after it, so their instructions are moved aside.
        if let Some(around) = self.open.last_mut().filter(|open| open.aside.is_none()) {
            around.aside = Some(self.parsed.instructions.split_off(around.record.first));
        }
        let record = ComputationRecord::implicit(0);
        self.open.push(OpenComputation { record, aside: Some(Vec::new()), within: Some((at, self.pending.len())) });
        at + 1
    }

    /// Reads `}` and the attributes behind it.
    fn close(&mut self, at: usize) -> Result<usize, usize> {
        let Some(mut open) = self.open.pop_if(|open| open.within.is_some() || !open.record.is_implicit()) else {
            return Err(at);
        };
        let end = at + 1;
        let Some((brace, _)) = open.within else {
            let read = self.attributes(end, true);
            open.record.attributes = Span::new(end, read.unwrap_or(end));
            // It ends, whatever follows the brace.
            self.close_computation(open);
            return read;
        };
        let number = self.parsed.inline.len();
        open.record.name = self.append(&if number == 0 { "_".to_owned() } else { format!("_.{number}") });
        let place = Span::new(brace, self.parsed.computations.len());
        self.parsed.inline.push((place.start, place.end));
        if let Some(around) = self.pending.last_mut() {
            around.attributes.end = Span::new(at, end).end;
        }
        self.close_computation(open);
        Ok(end)
    }

    fn close_computation(&mut self, open: OpenComputation) {
        let OpenComputation { mut record, aside, .. } = open;
        if let Some(aside) = aside {
            record.first = self.parsed.instructions.len();
            self.parsed.instructions.extend(aside);
        }
        record.end = self.parsed.instructions.len();
        self.parsed.computations.push(record);
    }

    /// Ends the innermost computation without its brace.
    fn end_computation(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if let Some((brace, _)) = open.within {
            self.warn(WarningKind::UnterminatedComputation, brace, brace + 1);
        } else if !open.record.is_implicit() {
            let name = open.record.name;
            self.warn(WarningKind::UnterminatedComputation, name.start as usize, name.end as usize);
        }
        self.close_computation(open);
    }

    /// Notes that a statement can't be read from `stop` on, and returns the end of its line.
    fn give_up(&mut self, stop: usize) -> usize {
        // With a part of an instruction, all of it is lost, up to the computation around it.
        let kept = self.open.last().and_then(|open| open.within).map_or(0, |(_, pending)| pending);
        let start = self.pending.get(kept).map_or(self.began, |pending| pending.start);
        self.pending.truncate(kept);
        let end = line_end(self.bytes, stop.max(start));
        let names_place = |last: &Warning| last.kind == WarningKind::OperandSyntax && last.start as usize >= start;
        if self.parsed.warnings.last().is_some_and(names_place) {
            return end;
        }
        if let Some(last) = self.parsed.warnings.last_mut().filter(|last| last.kind == WarningKind::UnreadLines) {
            let between = &self.bytes[(last.end as usize).min(start)..start];
            if between.iter().all(u8::is_ascii_whitespace) {
                last.end = Span::new(start, end).end;
                return end;
            }
        }
        self.warn(WarningKind::UnreadLines, start, end);
        end
    }

    fn warn(&mut self, kind: WarningKind, start: usize, end: usize) {
        self.parsed.warnings.push(Warning::new(kind, Span::new(start, end)));
    }

    /// Puts a text behind the source.
    fn append(&mut self, text: &str) -> Span {
        let start = self.source.len() + self.parsed.appendix.len();
        self.parsed.appendix.push_str(text);
        Span::new(start, start + text.len())
    }
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

/// Whether any line looks like an instruction.
fn has_instruction(bytes: &[u8]) -> bool {
    looks_like_instruction(bytes, 0)
        || memchr::memchr_iter(b'\n', bytes).any(|at| looks_like_instruction(bytes, at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of reading a text, with the shortcut for printed lines or without.
    fn read(text: &str, as_printed: bool) -> String {
        let mut parser = Parser { as_printed, ..Parser::new(text, 0, true) };
        parser.run();
        let Parsed { name, header, computations, mut instructions, warnings, .. } = parser.parsed;
        for instruction in &mut instructions {
            // The shortcut leaves the blanks at the end of a line.
            let attributes = &text[instruction.attributes.range()];
            instruction.attributes = Span::new(
                instruction.attributes.start as usize,
                instruction.attributes.start as usize + attributes.trim_ascii_end().len(),
            );
        }
        format!("{name:?} {header:?}\n{computations:#?}\n{instructions:#?}\n{warnings:?}")
    }

    #[test]
    fn the_shortcut_reads_what_the_grammar_does() {
        for name in ["gnn.v6e", "sampler_loop.v6e", "rigid_frames.v5e", "pallas_kernel.v5e", "host_weights_scan.v7x"] {
            let text = tilewise_testing::programs::text(&format!("{name}.hlo"));
            let printed = read(&text, true);
            assert!(printed.ends_with("\n[]"), "{name} is as printed");
            assert!(printed == read(&text, false), "{name}");
        }
    }
}
