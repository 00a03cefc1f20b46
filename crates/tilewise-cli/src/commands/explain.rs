//! `tilewise explain`: a pasted out-of-memory message, and what to do about it.

use crate::{
    cli::ExplainArgs,
    failure::Failure,
    input::read_document,
    output::{
        Output,
        human::{FAINT, STRONG, bytes, bytes_both, percent, screen_width, styled, waste_style},
        parts::{self, FixJson, SourceJson},
        plain,
        rows::{Row, who, write_fix, write_header},
    },
};
use serde::{Serialize, Serializer};
use std::{
    borrow::Cow,
    io::{self, Write},
};
use tilewise::tpu::memory_space_name;
use tilewise_audit::{Allocation, Explanation};
use tilewise_oom::{Message, PrintedSize, Section};

pub(crate) fn run(args: &ExplainArgs, output: &mut Output) -> io::Result<()> {
    let input = args.file.to_string_lossy();
    let explained = read_document(&args.file).and_then(|text| {
        let message = Message::parse(&text)
            .map_err(|error| Failure::new(error.as_str(), error.to_string()).with_help(HOW_TO_ASK))?;
        Ok(Explained(tilewise_audit::explain(message, args.tpu)))
    });
    output.item(&input, explained, |explained, out| explained.write(screen_width(), out))
}

const HOW_TO_ASK: &str = "paste the whole text of the error that begins with RESOURCE_EXHAUSTED";

/// Allocations shown: what two screens hold.
const SHOWN: usize = 8;

/// What `tilewise explain` prints.
#[derive(Clone, Debug)]
pub struct Explained(pub Explanation);

#[derive(Serialize)]
struct ExplainedJson<'a> {
    form: &'static str,
    code: Option<&'a str>,
    module: Option<&'a str>,
    memory_space: Option<u8>,
    memory_space_name: Option<&'a str>,
    used_bytes: Option<u64>,
    limit_bytes: Option<u64>,
    exceeded_bytes: Option<u64>,
    padding_bytes: u64,
    truncated: bool,
    allocations: Vec<AllocationJson<'a>>,
}

#[derive(Serialize)]
struct AllocationJson<'a> {
    section: &'static str,
    instruction: Option<&'a str>,
    opcode: Option<&'a str>,
    label: Option<&'a str>,
    allocation_type: Option<&'a str>,
    tag: Option<&'a str>,
    shape: Option<&'a str>,
    memory_space: Option<u8>,
    memory_space_name: Option<Cow<'static, str>>,
    reported_bytes: Option<u64>,
    reported_unpadded_bytes: Option<u64>,
    /// Whether the printed size is, digit for digit, that of the shape.
    agrees: Option<bool>,
    logical_bytes: Option<u64>,
    physical_bytes: Option<u64>,
    padding_bytes: Option<u64>,
    expansion: Option<f64>,
    cause: Option<String>,
    fix: Option<String>,
    fixes: Vec<FixJson>,
    op_name: Option<&'a str>,
    source: Option<SourceJson<'a>>,
}

impl Serialize for Explained {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = &self.0.message;
        let size = |size: &Option<PrintedSize>| size.as_ref().map(PrintedSize::bytes);
        let space = message.memory_space_number();
        let explained = ExplainedJson {
            form: message.form.as_str(),
            code: message.code.as_deref(),
            module: message.module.as_deref(),
            memory_space: space,
            memory_space_name: message.memory_space.as_deref(),
            used_bytes: size(&message.used),
            limit_bytes: size(&message.limit),
            exceeded_bytes: size(&message.exceeded),
            padding_bytes: self.0.padding_bytes(),
            truncated: message.truncated,
            allocations: self.0.allocations.iter().map(|allocation| AllocationJson::of(allocation, space)).collect(),
        };
        explained.serialize(serializer)
    }
}

impl<'a> AllocationJson<'a> {
    fn of(allocation: &'a Allocation, space: Option<u8>) -> Self {
        let entry = &allocation.entry;
        let (instruction, opcode) = entry.instruction().unzip();
        let sized = allocation.physical_bytes.is_some();
        Self {
            section: entry.section.as_str(),
            instruction,
            opcode,
            label: entry.label.as_deref(),
            allocation_type: entry.allocation_type.as_deref(),
            tag: entry.tag.as_deref(),
            shape: entry.shape.as_ref().map(|shape| shape.text.as_str()),
            memory_space: space,
            memory_space_name: space.map(memory_space_name),
            reported_bytes: entry.size.as_ref().map(PrintedSize::bytes),
            reported_unpadded_bytes: entry.unpadded.as_ref().map(PrintedSize::bytes),
            agrees: allocation.physical_bytes.and_then(|bytes| Some(entry.size.as_ref()?.agrees_with(bytes))),
            logical_bytes: allocation.logical_bytes,
            physical_bytes: allocation.physical_bytes,
            padding_bytes: sized.then(|| allocation.padding_bytes()),
            expansion: sized.then(|| allocation.expansion()),
            cause: (!allocation.causes.is_empty()).then(|| allocation.causes.join("; ")),
            fix: parts::sentence(allocation.advice.as_ref()),
            fixes: parts::fixes(allocation.advice.as_ref()),
            op_name: entry.operator.as_ref().and_then(|operator| operator.op_name()),
            source: allocation.source.as_ref().map(SourceJson::from),
        }
    }
}

impl Explained {
    /// The explanation for people, in lines of so many columns where words can be cut or wrapped.
    #[must_use]
    pub fn to_text(&self, width: usize) -> String {
        plain(|out| self.write(width, out))
    }

    fn write(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let Self(explanation) = self;
        writeln!(out, "{}", styled(STRONG, headline(&explanation.message)))?;
        self.write_share(out)?;
        if let Some((allocation, fix)) = explanation.first_fix() {
            writeln!(out)?;
            let shape = allocation.shape.as_ref().map(ToString::to_string).unwrap_or_default();
            writeln!(out, "First, {} {shape}:", who_of(allocation))?;
            write_fix(fix, width, out)?;
        }
        self.write_allocations(width, out)?;
        if explanation.message.truncated {
            writeln!(out, "{}", styled(FAINT, "The message is cut off; this is what its text still holds."))?;
        }
        writeln!(out)
    }

    /// What padding has to do with it.
    fn write_share(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self(explanation) = self;
        let padding = explanation.padding_bytes();
        if explanation.allocations.is_empty() {
            let advice = "The message lists no arrays. Audit the program instead: dump it with XLA_FLAGS=\"--xla_dump_to=DIR \
                          --xla_dump_hlo_as_text\" and run `tilewise audit` on what it wrote.";
            return writeln!(out, "{advice}");
        }
        if padding == 0 {
            return writeln!(
                out,
                "None of the arrays it lists is padded: the program needs less data, not other layouts."
            );
        }
        let taken: u64 = explanation.allocations.iter().filter_map(|a| a.physical_bytes).fold(0, u64::saturating_add);
        #[expect(clippy::cast_precision_loss, reason = "a share for people")]
        let share = padding as f64 / taken as f64;
        let words = format!("{}, {} of what the arrays below take, is padding", bytes_both(padding), percent(share));
        let verdict = match explanation.shortfall_bytes() {
            Some(shortfall) if padding >= shortfall => ": more than is missing.",
            Some(_) => ": less than is missing.",
            None => ".",
        };
        writeln!(out, "{}{verdict}", styled(waste_style(1.0 / (1.0 - share).max(f64::EPSILON)), words))
    }

    fn write_allocations(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let Self(explanation) = self;
        let titles = [(Section::Allocations, "Allocations"), (Section::ArgumentsAndOutputs, "Arguments and outputs")];
        for (section, title) in titles {
            let rows: Vec<_> = explanation.allocations.iter().filter(|row| row.entry.section == section).collect();
            if rows.is_empty() {
                continue;
            }
            writeln!(out, "\n{}", styled(STRONG, title))?;
            write_header(out)?;
            for row in rows.iter().take(SHOWN) {
                write_row(row, width, out)?;
            }
            if rows.len() > SHOWN {
                let left: u64 = rows[SHOWN..].iter().map(|row| row.padding_bytes()).fold(0, u64::saturating_add);
                let count = rows.len() - SHOWN;
                writeln!(out, "  {count} more with {} of padding; --format json lists them all", bytes(left))?;
            }
        }
        Ok(())
    }
}

fn write_row(allocation: &Allocation, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let entry = &allocation.entry;
    let reported = entry.size.as_ref().map(|size| size.text().to_owned());
    let takes = allocation.physical_bytes.map(bytes).or_else(|| reported.clone()).unwrap_or_else(|| "-".to_owned());
    let name = entry.label.as_deref().unwrap_or("no label").to_owned();
    let row = Row {
        padding: allocation.physical_bytes.map(|_| allocation.padding_bytes()),
        takes,
        expansion: allocation.expansion(),
        shape: entry.shape.as_ref().map_or(name, |shape| shape.text.clone()),
        who: who_of(allocation),
        causes: &allocation.causes,
        fix: allocation.best_fix(),
    };
    row.write(width, out)?;
    let disagrees = |physical| entry.size.as_ref().is_some_and(|size| !size.agrees_with(physical));
    if let (Some(reported), Some(physical)) = (reported, allocation.physical_bytes.filter(|&bytes| disagrees(bytes))) {
        let doubt = format!(
            "the message says {reported}, this shape takes {}: a layout it doesn't print, or a shared allocation",
            bytes(physical)
        );
        writeln!(out, "      {}", styled(waste_style(2.0), doubt))?;
    }
    Ok(())
}

fn who_of(allocation: &Allocation) -> String {
    let entry = &allocation.entry;
    let name = entry.instruction().map_or_else(|| entry.label.as_deref().unwrap_or_default(), |(name, _)| name);
    let name = if entry.shape.is_some() { name } else { "" };
    who(allocation.source.as_ref(), name, entry.operator.as_ref().and_then(|operator| operator.op_name()))
}

/// A size as the message prints it, with a unit if it is a bare number of bytes.
fn printed(size: &PrintedSize) -> String {
    if size.text().bytes().all(|byte| byte.is_ascii_digit()) { bytes(size.bytes()) } else { size.text().to_owned() }
}

/// `Out of memory in hbm: 294.50M needed, 250.00M there, 44.50M too much.`
fn headline(message: &Message) -> String {
    let place = message.memory_space.as_deref().map_or(String::new(), |space| format!(" in {space}"));
    let mut words = format!("Out of memory{place}");
    let figures = [(&message.used, "needed"), (&message.limit, "there"), (&message.exceeded, "too much")];
    let figures = figures.into_iter().filter_map(|(size, what)| Some(format!("{} {what}", printed(size.as_ref()?))));
    let figures: Vec<String> = figures.collect();
    if !figures.is_empty() {
        words = format!("{words}: {}", figures.join(", "));
    }
    format!("{words}.")
}
