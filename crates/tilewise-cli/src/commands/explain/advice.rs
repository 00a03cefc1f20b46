//! What to do, best first: each piece of advice with what it frees, or at most frees.

use super::{hint::Hint, interface, kernel, run_time, temporaries};
use crate::output::human::{FAINT, STRONG, bytes, styled};
use std::io::{self, Write};
use tilewise_audit::Explanation;
use tilewise_oom::{Budget, Form, Framework, Verdict};

/// More than that nobody reads.
const MOST: usize = 4;

/// A change matters if it frees a tenth of what is missing, and a hundredth of what is used.
const OF_MISSING: u128 = 10;
const OF_USED: u128 = 100;
/// Beside the best, a twentieth of it is not worth a line.
const OF_BEST: u128 = 20;

/// What to do about a message, best first.
pub(super) fn of(explanation: &Explanation) -> Vec<Hint> {
    let message = &explanation.message;
    let budget = message.budget();
    // Where nothing tells, the code is JAX's.
    let framework = message.framework.unwrap_or(Framework::Jax);
    match message.verdict() {
        Verdict::NotTpu => {
            vec![Hint::new("none", "process", "ask the documentation of that device's allocator; nothing here applies")]
        }
        Verdict::Spills => kernel::spills(explanation, framework),
        Verdict::KernelMemory => kernel::of(explanation, framework),
        Verdict::Reservation | Verdict::Fragmentation if message.form == Form::RunTime => {
            run_time::of(message, framework)
        }
        Verdict::Unknown => vec![run_time::unknown(message)],
        verdict => program(explanation, &budget, framework, verdict),
    }
}

/// About a program that does not fit into HBM.
fn program(explanation: &Explanation, budget: &Budget, framework: Framework, verdict: Verdict) -> Vec<Hint> {
    let matters = |hint: &Hint| {
        let saved = u128::from(hint.bytes_saved.unwrap_or_default());
        saved * OF_MISSING >= u128::from(budget.missing_bytes.unwrap_or_default())
            && saved * OF_USED >= u128::from(budget.used_bytes.unwrap_or_default())
            && saved > 0
    };
    let mut hints = interface::of(explanation, framework);
    hints.extend(temporaries::of(explanation, budget, framework));
    hints.retain(matters);
    let best = hints.iter().filter_map(|hint| hint.bytes_saved).max().unwrap_or_default();
    hints.retain(|hint| u128::from(hint.bytes_saved.unwrap_or_default()) * OF_BEST >= u128::from(best));
    // Stable: of equals, what the caller hands over comes first, then what keeps every value.
    // If padding is the matter, what works on padding comes first.
    let works_on_padding = |hint: &Hint| match hint.kind {
        "chunk" | "checkpoint" | "donate" => false,
        "narrow" => hint.target == "compiler",
        _ => true,
    };
    let is_beside = |hint: &Hint| verdict == Verdict::Padding && !works_on_padding(hint);
    hints.sort_by_key(|hint| (is_beside(hint), std::cmp::Reverse(hint.bytes_saved)));
    let are_most = |arguments: u64| arguments > budget.used_bytes.unwrap_or_default() / 2;
    let is_size = verdict == Verdict::Size && budget.argument_bytes.is_some_and(are_most);
    if verdict == Verdict::Arguments || is_size {
        hints.insert(0, interface::shard(budget, framework));
    }
    hints.truncate(MOST);
    if explanation.message.form == Form::Cores {
        return vec![run_time::cores(&explanation.message)];
    }
    if hints.is_empty() || explanation.allocations.is_empty() {
        hints.push(look_inside(framework, explanation.allocations.is_empty()));
    }
    hints
}

/// What the message itself does not tell.
fn look_inside(framework: Framework, is_bare: bool) -> Hint {
    let why =
        if is_bare { "the message lists no arrays" } else { "nothing that the message lists tells what would help" };
    let sentence = format!("{why}: dump the program, and run `tilewise audit DIR`, which says what owns the peak");
    let code = match framework {
        Framework::TensorFlow => "TF_XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" python train.py",
        _ => "XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" python train.py",
    };
    Hint { code: Some(code.to_owned()), ..Hint::new("audit", "process", sentence) }
}

pub(super) fn write(hints: &[Hint], budget: &Budget, width: usize, out: &mut dyn Write) -> io::Result<()> {
    if hints.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", styled(STRONG, "What to do"))?;
    for hint in hints {
        let lead = match hint.bytes_saved {
            Some(saved) if hint.is_bound => format!("frees up to {}: ", bytes(saved)),
            Some(saved) => format!("frees {}: ", bytes(saved)),
            None => String::new(),
        };
        let options = textwrap::Options::new(width).initial_indent("  → ").subsequent_indent("    ");
        for (number, line) in textwrap::wrap(&format!("{lead}{}", hint.sentence), options).into_iter().enumerate() {
            let line = if number == 0 { line.replacen(&lead, &styled(STRONG, &lead), 1) } else { line.into_owned() };
            writeln!(out, "{line}")?;
        }
        for line in hint.imports.into_iter().chain(hint.code.as_deref()).flat_map(str::lines) {
            writeln!(out, "      {}", styled(FAINT, line))?;
        }
    }
    let together = hints.iter().filter_map(|hint| hint.bytes_saved).fold(0, u64::saturating_add);
    if let Some(missing) = budget.missing_bytes.filter(|missing| together > 0 && together < *missing) {
        let words = format!("All of it frees at most {} of the {} that is missing.", bytes(together), bytes(missing));
        super::words::write_wrapped(&words, "  ", width, out)?;
    }
    Ok(())
}
