//! `tilewise explain`: a pasted out-of-memory message, and what to do about it.

mod advice;
mod hint;
mod input;
mod interface;
mod kernel;
mod run_time;
mod table;
mod temporaries;
mod words;

use crate::{
    cli::ExplainArgs,
    failure::Failure,
    output::{
        Output,
        human::{FAINT, STRONG, screen_width, styled},
        plain,
    },
};
use serde::{Serialize, Serializer};
use std::io::{self, Write};
use tilewise::tpu::Generation;
use tilewise_audit::{Allocation, Explanation};
use tilewise_oom::{Budget, Framework, Message, PrintedSize, Section, Verdict};

pub(crate) fn run(args: &ExplainArgs, output: &mut Output) -> io::Result<()> {
    for file in &args.files {
        let input = file.to_string_lossy();
        let explained = input::read(file).and_then(|text| {
            let message = Message::parse(&text)
                .map_err(|error| Failure::new(error.as_str(), error.to_string()).with_help(HOW_TO_ASK))?;
            Ok(Explained::of(message, args.tpu))
        });
        output.item(&input, explained, |explained, out| {
            if args.files.len() > 1 {
                writeln!(out, "{}", styled(FAINT, &input))?;
            }
            explained.write(screen_width(), out)
        })?;
    }
    Ok(())
}

const HOW_TO_ASK: &str = "paste the whole text of the error that begins with RESOURCE_EXHAUSTED";

/// What `tilewise explain` prints.
#[derive(Clone, Debug)]
pub struct Explained(pub Explanation);

impl Explained {
    /// The explanation of a message. The generation prices fixes; without one it is inferred from tiles where it can
    /// be.
    ///
    /// Only what crosses the program's interface keeps fixes of its layout or shape: a compiler undoes what is asked
    /// for of values inside.
    ///
    /// ```
    /// let text = "Ran out of memory in memory space hbm. Used 294.50M of 250.00M hbm. Exceeded hbm capacity by 44.50M.
    ///   Largest program allocations in hbm:
    ///   1. Size: 195.31M
    ///      Shape: f32[400000,12]{1,0:T(8,128)}
    ///      ==========================";
    /// let explained = tilewise_cli::Explained::of(tilewise_oom::Message::parse(text)?, None);
    /// assert!(explained.0.first_fix().is_none());
    /// assert!(explained.to_text(80).contains("Padding is the matter"));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn of(message: Message, generation: Option<Generation>) -> Self {
        let mut explanation = tilewise_audit::explain(message, generation);
        let is_inside = |allocation: &&mut Allocation| allocation.entry.section != Section::ArgumentsAndOutputs;
        for allocation in explanation.allocations.iter_mut().filter(is_inside) {
            allocation.advice = None;
        }
        Self(explanation)
    }

    /// The explanation for people, in lines of so many columns where words can be cut or wrapped.
    #[must_use]
    pub fn to_text(&self, width: usize) -> String {
        plain(|out| self.write(width, out))
    }

    fn write(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let Self(explanation) = self;
        let message = &explanation.message;
        let budget = message.budget();
        writeln!(out, "{}", styled(STRONG, words::headline(message)))?;
        words::write_wrapped(&words::verdict(message, &budget), "", width, out)?;
        if !matches!(message.verdict(), Verdict::KernelMemory | Verdict::Spills) {
            words::write_budget(&budget, out)?;
        }
        advice::write(&advice::of(explanation), &budget, width, out)?;
        table::write(explanation, width, out)?;
        if budget.unread > 0 {
            let arrays = if budget.unread == 1 { "array" } else { "arrays" };
            let words = format!(
                "The shape of {} listed {arrays} could not be read; padding there counts only in totals that the \
                 message prints.",
                budget.unread
            );
            words::write_wrapped(&words, "", width, out)?;
        }
        if message.truncated {
            writeln!(out, "{}", styled(FAINT, "The message is truncated: only what it contains is explained."))?;
        }
        writeln!(out)
    }
}

/// The fields that `docs/json.md` lists, in its order.
#[derive(Serialize)]
struct Fields<'a> {
    verdict: &'static str,
    form: &'static str,
    code: Option<&'a str>,
    module: Option<&'a str>,
    framework: Option<&'static str>,
    memory_space: Option<u8>,
    memory_space_name: Option<&'a str>,
    used_bytes: Option<u64>,
    limit_bytes: Option<u64>,
    exceeded_bytes: Option<u64>,
    padding_bytes: u64,
    budget: BudgetFields,
    advice: Vec<hint::Hint>,
    truncated: bool,
    allocations: &'a [Allocation],
}

#[derive(Serialize)]
struct BudgetFields {
    capacity_bytes: Option<u64>,
    reserved_bytes: Option<u64>,
    others_bytes: Option<u64>,
    argument_bytes: Option<u64>,
    output_bytes: Option<u64>,
    temporary_bytes: Option<u64>,
    program_bytes: Option<u64>,
    padding_bytes: Option<u64>,
    fragmentation_bytes: Option<u64>,
    missing_bytes: Option<u64>,
    unread_shapes: usize,
}

impl BudgetFields {
    fn of(budget: &Budget) -> Self {
        Self {
            capacity_bytes: budget.capacity_bytes,
            reserved_bytes: budget.reserved_bytes,
            others_bytes: budget.others_bytes,
            argument_bytes: budget.argument_bytes,
            output_bytes: budget.output_bytes,
            temporary_bytes: budget.temporary_bytes,
            program_bytes: budget.program_bytes,
            padding_bytes: budget.padding_bytes,
            fragmentation_bytes: budget.fragmentation_bytes,
            missing_bytes: budget.missing_bytes,
            unread_shapes: budget.unread,
        }
    }
}

impl Serialize for Explained {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(explanation) = self;
        let message = &explanation.message;
        let bytes = |size: &Option<PrintedSize>| size.as_ref().map(PrintedSize::bytes);
        Fields {
            verdict: message.verdict().as_str(),
            form: message.form.as_str(),
            code: message.code.as_deref(),
            module: message.module.as_deref(),
            framework: message.framework.map(Framework::as_str),
            memory_space: message.memory_space_number(),
            memory_space_name: message.memory_space.as_deref(),
            used_bytes: bytes(&message.used),
            limit_bytes: bytes(&message.limit),
            exceeded_bytes: bytes(&message.exceeded),
            padding_bytes: explanation.padding_bytes(),
            budget: BudgetFields::of(&message.budget()),
            advice: advice::of(explanation),
            truncated: message.truncated,
            allocations: &explanation.allocations,
        }
        .serialize(serializer)
    }
}
