//! Memory held by others while a program runs, and messages that list no arrays.

use super::{holders::holders, torch::leaves_graph_uncut};
use crate::advice::{
    Recommendation, Saving, Target,
    finding::{Asker, CoreHalt, ElsewhereFinding, Finding, Holders, MemoryFinding, RunTimeFinding, Shrink},
};
use tilewise_oom::{Form, Framework, Level, Message, Occasion, OomVerdict, PrintedSize, Reason, Server};

/// A smaller program finds a piece where less than this part of it is missing.
const FEW_PERCENT: u64 = 30;

/// Advice on a program that compiled, but found no room.
pub(super) fn of(message: &Message) -> Vec<Recommendation> {
    let new = |finding, target| Recommendation::new(Finding::RunTime(finding), target, message.framework);
    let (asked, free) = (message.used.clone(), message.limit.clone());
    // A server that refuses less has no more to give.
    let server = message.server.filter(|_| !message.has_refused_server());
    let room = server.and_then(|server| server_room(message, server));
    let mut advice: Vec<Recommendation> = room.map(|finding| new(finding, Target::Process)).into_iter().collect();
    if message.verdict() == OomVerdict::Fragmentation {
        let is_program = message.page() == "E0101";
        let percent = asked.as_ref().zip(message.contiguous.as_ref()).map(|(asked, piece)| {
            let missing = asked.bytes().saturating_sub(piece.bytes());
            missing.saturating_mul(100).div_ceil(asked.bytes().max(1))
        });
        advice.push(new(RunTimeFinding::Fragmented { is_program, asked }, Target::Process));
        let shrink = percent.filter(|percent| (1..FEW_PERCENT).contains(percent));
        let shrink = shrink.map(|percent| Shrink { percent, is_of_temporaries: false, is_least: false });
        let less = shrink.map(|shrink| RunTimeFinding::AskLess { asker: Asker::Program, shrink: Some(shrink) });
        advice.extend(less.filter(|_| is_program).map(|finding| new(finding, Target::Value)));
        return advice;
    }
    let are_joined = match message.occasion() {
        Some(Occasion::Collection) => true,
        Some(Occasion::Evaluation) => message.job.is_batch_ruled_out || message.job.has_run,
        _ => false,
    };
    if are_joined && message.framework != Some(Framework::Jax) && message.server.is_none() {
        // Its own program fits: outputs of batches before it are there, too.
        let finding = Finding::Elsewhere(ElsewhereFinding::TorchCollection);
        advice.push(Recommendation::new(finding, Target::Value, message.framework));
    }
    let is_of_torch = message.framework == Some(Framework::TorchXla);
    if message.occasion() == Some(Occasion::Update) && is_of_torch && !message.job.has_run {
        let finding = Finding::Elsewhere(ElsewhereFinding::OptimizerState);
        advice.push(Recommendation::new(finding, Target::Value, message.framework));
    }
    let is_more = |size: &&PrintedSize| asked.as_ref().is_none_or(|asked| size.bytes() > asked.bytes());
    advice.extend(whole_state(message).map(|finding| new(finding, Target::Argument)));
    let output = message.persistent.iter().find(|row| row.name == "output");
    let padding = output.and_then(|row| row.padding_bytes()).filter(|bytes| *bytes > 0);
    let percent = output.and_then(|row| row.percent).filter(|_| padding.is_some());
    let returns = |size: PrintedSize, are_more| {
        let found = new(RunTimeFinding::Returns { size, are_more, percent }, Target::Result);
        // A result that is left out frees more than its padding.
        let freed = padding.filter(|_| !are_more).map_or(Saving::Unknown, Saving::AtMost);
        found.saving(freed)
    };
    let returned = message.facts.size("graph_output").or_else(|| Some(&output?.size)).filter(is_more).cloned();
    let are_more = returned.is_some();
    advice.extend(returned.map(|size| returns(size, true)));
    let programs = message.facts.size("reserved").is_none_or(|reserved| reserved.bytes() > 0);
    let has_run = message.job.has_run;
    let others = new(RunTimeFinding::OthersHold { asked, free, programs, has_run }, Target::Process);
    // A program that asks for more than half of a device is itself too large sooner than others are.
    let is_large = message.page() == "E0101"
        && message.used.as_ref().zip(message.device_bytes()).is_some_and(|(asked, all)| asked.bytes() > all / 2);
    let is_program = message.requirement.is_some() || message.module.is_some() || is_large;
    let asker = match (Asker::of_weights(message), server) {
        (Some(asker), _) => Some(asker),
        (None, Some(server)) => {
            let percent = message.job.serving.memory_percent;
            Some(Asker::Server { server, is_lowered: !advice.is_empty(), percent })
        }
        (None, None) if matches!(message.occasion(), Some(Occasion::Move | Occasion::Gather)) => None,
        _ => Some(if is_program { Asker::Program } else { Asker::Array }),
    };
    // A sentence tells neither of an array nor of a program.
    if message.is_retold && asker == Some(Asker::Array) && message.used.is_none() && message.limit.is_none() {
        let is_uncut = leaves_graph_uncut(message) && message.job.shows_step;
        let uncut = Finding::Memory(MemoryFinding::UncutGraph);
        advice.extend(is_uncut.then(|| Recommendation::new(uncut, Target::Process, message.framework)));
        let finding = Finding::Elsewhere(ElsewhereFinding::Holders(holders(message, true)));
        advice.push(Recommendation::new(finding, Target::Process, message.framework));
        return advice;
    }
    // Steps that ran before found room for as much.
    if has_run && asker == Some(Asker::Array) {
        advice.push(others);
        return advice;
    }
    // A server's memory holds its own weights, and a cache that a flag sizes; what is loaded is needed; and most jobs that
    // find no room for an array never ran a step.
    let is_needed = asker != Some(Asker::Program) || is_large && !has_run;
    let (first, last) = if is_needed { (None, Some(others)) } else { (Some(others), None) };
    advice.extend(first);
    let padded = output.filter(|_| padding.is_some() && !are_more);
    advice.extend(padded.map(|row| returns(row.size.clone(), false)));
    // The request for an array tells nothing of all that a step takes.
    let shrink = Shrink::of(&message.budget(), message.form).filter(|_| asker == Some(Asker::Program));
    let moved = RunTimeFinding::Move { gathers: message.occasion() == Some(Occasion::Gather) };
    let finding = asker.map_or(moved, |asker| RunTimeFinding::AskLess { asker, shrink });
    advice.push(new(finding, Target::Value));
    // A server's arrays are its own.
    advice.extend(last.filter(|_| has_run || server.is_none()));
    advice
}

/// Steps where others hold the memory of a device that may be a TPU or a GPU.
pub(super) fn on_any_device(message: &Message) -> Vec<(Finding, Target)> {
    let asker = Asker::of_weights(message).unwrap_or(Asker::Array);
    let (asked, has_run) = (message.used.clone(), message.job.has_run);
    let others = RunTimeFinding::OthersHold { asked, free: None, programs: true, has_run };
    let less = (Finding::RunTime(RunTimeFinding::AskLess { asker, shrink: None }), Target::Value);
    let less = Some(less).filter(|_| !has_run || asker != Asker::Array);
    let others = (Finding::RunTime(others), Target::Process);
    let processes = ElsewhereFinding::Holders(Holders { others: true, ..Holders::default() });
    let processes = Some((Finding::Elsewhere(processes), Target::Process)).filter(|_| !message.job.is_alone);
    let whole = whole_state(message).map(|finding| (Finding::RunTime(finding), Target::Argument));
    // Whoever asks for little finds a full device: what fills it tells more than the last request.
    let is_last_straw = asker == Asker::Array && message.reason() != Reason::Results;
    let (first, then) = if is_last_straw { (Some(others), less) } else { (less, Some(others)) };
    whole.into_iter().chain(first).chain(then).chain(processes).collect()
}

/// The state that a text shows as replicated beside an error; what is being made is divided as it is made.
pub(super) fn whole_state(message: &Message) -> Option<RunTimeFinding> {
    let line = message.job.replicated.clone().filter(|_| message.form.level() == Level::Error)?;
    (Asker::of_weights(message) != Some(Asker::Weights)).then_some(RunTimeFinding::WholeState(line))
}

/// The room that a server leaves for programs; `None` unless its log shows a sized cache: statistics, or a load.
fn server_room(message: &Message, server: Server) -> Option<RunTimeFinding> {
    /// Bytes left in addition to those missing: the next program may need more.
    const MARGIN: u64 = 256 << 20;
    /// Hundredths below a value that was tried.
    const STEP: u64 = 5;

    let mut statistics = message.others.iter().filter(|other| other.form == Form::ServerStatistics).peekable();
    let is_program = message.facts.text("verb") == Some("reserve");
    if statistics.peek().is_none() && !is_program {
        return None;
    }
    let figure =
        |other: &Message, name| other.facts.text(name)?.parse::<f64>().ok().filter(|it| it.is_finite() && *it > 0.0);
    let figures = |other| Some([figure(other, "hbm_used")?, figure(other, "hbm_limit")?]);
    // Weights come first, then the cache.
    let filled: Vec<[f64; 2]> = statistics.filter_map(figures).filter(|[used, limit]| used <= limit).collect();
    let weights = filled.iter().map(|[used, _]| *used).fold(f64::INFINITY, f64::min);
    // Weights alone are no cache.
    let filled =
        filled.into_iter().filter(|[used, _]| *used > weights).max_by(|[used, _], [other, _]| used.total_cmp(other));
    let missing = message.used.as_ref().zip(message.limit.as_ref());
    let missing = missing.map(|(asked, free)| asked.bytes().saturating_sub(free.bytes()));
    #[expect(clippy::cast_precision_loss, reason = "hundredths are asked for")]
    let part = |[used, limit]: [f64; 2], missing: u64| {
        (used - missing.saturating_add(MARGIN) as f64 / f64::from(1 << 30)) / limit
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 100, and above 0")]
    let percent =
        filled.zip(missing).map(|(filled, missing)| (part(filled, missing) * 100.0).floor().clamp(0.0, 99.0) as u64);
    // The weights stay in memory: a lower flag leaves no room for them.
    #[expect(clippy::cast_precision_loss, reason = "a percentage")]
    let is_enough = |percent: u64| filled.is_some_and(|[_, limit]| percent as f64 / 100.0 * limit > weights);
    let below = message.job.serving.memory_percent_in_vain.map_or(u64::MAX, |tried| tried.saturating_sub(STEP));
    let percent = percent.map(|percent| percent.min(below));
    Some(RunTimeFinding::ServerRoom { server, filled, percent: percent.filter(|percent| is_enough(*percent)) })
}

/// Advice on both kinds of core in one memory.
pub(super) fn cores(message: &Message) -> Recommendation {
    let of = |name: &str| message.usage.as_ref().and_then(|usage| usage.get(name)).cloned();
    let bytes = |size: &Option<PrintedSize>| size.as_ref().map_or(0, PrintedSize::bytes);
    let (sparse, tensor) = (of("SparseCore"), of("TensorCore"));
    let finding = if bytes(&sparse) > bytes(&tensor) {
        RunTimeFinding::SparseCores { size: sparse }
    } else {
        let budget = message.budget();
        let all = budget.capacity_bytes.filter(|all| bytes(&tensor) < *all);
        RunTimeFinding::TensorCore { over: all.and(budget.missing_bytes), size: tensor }
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

/// Advice on a message that isn't about memory.
pub(super) fn unknown(message: &Message) -> Recommendation {
    let finding = match message.form {
        Form::CoreHalt => RunTimeFinding::CoreHalt(core_halt(message)),
        _ => RunTimeFinding::Unknown { code: message.code.clone() },
    };
    Recommendation::new(Finding::RunTime(finding), Target::Process, message.framework)
}
