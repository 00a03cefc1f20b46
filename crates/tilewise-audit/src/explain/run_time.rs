//! Memory that others hold while a program runs, and messages that tell of no arrays.

use crate::advice::{
    Recommendation, Saving, Target,
    finding::{CoreHalt, Finding, RunTimeFinding},
};
use tilewise_oom::{Form, Framework, Message, PrintedSize, Verdict};

/// A program that compiled, but for which there was no room.
pub(super) fn of(message: &Message, framework: Framework) -> Vec<Recommendation> {
    let new = |finding, target| Recommendation::new(Finding::RunTime(finding), target, Some(framework));
    let (asked, free) = (message.used.clone(), message.limit.clone());
    if message.verdict() == Verdict::Fragmentation {
        return vec![new(RunTimeFinding::Fragmented { asked }, Target::Process)];
    }
    let returned = message.facts.text("graph_output").map(|size| size.trim_end_matches('.').to_owned());
    let mut advice = vec![new(RunTimeFinding::OthersHold { asked, free, returned }, Target::Process)];
    let output = message.persistent.iter().find(|row| row.name == "output");
    if let Some((row, padding)) = output.and_then(|row| Some((row, row.padding_bytes().filter(|bytes| *bytes > 0)?))) {
        let (size, percent) = (row.size.clone(), row.percent.unwrap_or_default());
        let padded = new(RunTimeFinding::PaddedResults { size, percent }, Target::Result);
        advice.push(padded.saving(Saving::AtMost(padding)));
    }
    let is_program = message.module.is_some() || message.requirement.is_some();
    advice.push(new(RunTimeFinding::AskLess { is_program }, Target::Value));
    advice
}

/// Both kinds of core in one memory.
pub(super) fn cores(message: &Message) -> Recommendation {
    let of = |name: &str| message.usage.as_ref().and_then(|usage| usage.get(name)).cloned();
    let bytes = |size: &Option<PrintedSize>| size.as_ref().map_or(0, PrintedSize::bytes);
    let (sparse, tensor) = (of("SparseCore"), of("TensorCore"));
    let finding = if bytes(&sparse) > bytes(&tensor) {
        RunTimeFinding::SparseCores { size: sparse }
    } else {
        RunTimeFinding::TensorCore { size: tensor }
    };
    Recommendation::new(Finding::RunTime(finding), Target::Argument, message.framework)
}

fn core_halt(message: &Message) -> CoreHalt {
    let facts = &message.facts;
    let has = |name: &str| facts.get(name).is_some();
    match facts.text("observed") {
        _ if has("bounds_check") => CoreHalt::Bounds,
        _ if has("semaphore") => CoreHalt::Semaphore,
        _ if has("launch") => CoreHalt::Launch,
        Some("Hardware" | "Network" | "Power") => CoreHalt::Machine,
        Some("User") => CoreHalt::Instruction,
        _ => CoreHalt::Unknown,
    }
}

/// A message that tells of no memory.
pub(super) fn unknown(message: &Message) -> Recommendation {
    let finding = match message.form {
        Form::CoreHalt => RunTimeFinding::CoreHalt(core_halt(message)),
        _ => RunTimeFinding::Unknown { code: message.code.clone() },
    };
    Recommendation::new(Finding::RunTime(finding), Target::Process, message.framework)
}
