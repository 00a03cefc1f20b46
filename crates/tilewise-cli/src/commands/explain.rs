//! `tilewise explain`: a pasted out-of-memory message, and what to do about it.

use crate::{
    cli::ExplainArgs,
    failure::Failure,
    input::read_document,
    output::{
        Output,
        human::{FAINT, STRONG, bytes, bytes_both, percent, screen_width, styled, waste_style},
        plain,
        rows::{Row, who, write_fix, write_header},
    },
};
use serde::Serialize;
use std::io::{self, Write};
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
#[derive(Clone, Debug, Serialize)]
pub struct Explained(pub Explanation);

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
            writeln!(out, "{}", styled(FAINT, "The message is truncated: only what it contains is explained."))?;
        }
        writeln!(out)
    }

    /// What padding has to do with it.
    fn write_share(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self(explanation) = self;
        let padding = explanation.padding_bytes();
        if explanation.allocations.is_empty() {
            let advice = "The message lists no arrays. Audit the program instead: dump it with \
                          XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" and run `tilewise audit` on the dump.";
            return writeln!(out, "{advice}");
        }
        if padding == 0 {
            return writeln!(out, "None of the listed arrays is padded: only less data helps, not other layouts.");
        }
        let taken: u64 = explanation
            .allocations
            .iter()
            .filter_map(|row| row.sizes)
            .map(|sizes| sizes.physical_bytes)
            .fold(0, u64::saturating_add);
        #[expect(clippy::cast_precision_loss, reason = "a share for people")]
        let share = padding as f64 / taken as f64;
        let words = format!("{}, {} of the arrays below, is padding", bytes_both(padding), percent(share));
        let verdict = match explanation.shortfall_bytes() {
            Some(shortfall) if padding >= shortfall => ": more than the shortfall.",
            Some(_) => ": less than the shortfall.",
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
    let takes = allocation
        .sizes
        .map(|sizes| bytes(sizes.physical_bytes))
        .or_else(|| reported.clone())
        .unwrap_or_else(|| "-".to_owned());
    let name = entry.label.as_deref().unwrap_or("no label").to_owned();
    let row = Row {
        padding: allocation.sizes.map(|sizes| sizes.padding_bytes()),
        takes,
        expansion: allocation.expansion(),
        shape: entry.shape.as_ref().map_or(name, |shape| shape.text.clone()),
        who: who_of(allocation),
        causes: &allocation.causes,
        fix: allocation.best_fix(),
    };
    row.write(width, out)?;
    if let (Some(reported), Some(sizes), Some(false)) = (reported, allocation.sizes, allocation.agrees()) {
        let doubt = format!(
            "the message says {reported}, but this shape takes {}: its layout is not printed in full, or the allocation \
             is shared",
            bytes(sizes.physical_bytes)
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

/// `Out of memory in hbm: 294.50M needed, 250.00M available, 44.50M over.`
fn headline(message: &Message) -> String {
    let place = message.memory_space.as_deref().map_or(String::new(), |space| format!(" in {space}"));
    let mut words = format!("Out of memory{place}");
    let figures = [(&message.used, "needed"), (&message.limit, "available"), (&message.exceeded, "over")];
    let figures = figures.into_iter().filter_map(|(size, what)| Some(format!("{} {what}", printed(size.as_ref()?))));
    let figures: Vec<String> = figures.collect();
    if !figures.is_empty() {
        words = format!("{words}: {}", figures.join(", "));
    }
    format!("{words}.")
}
