//! Advice, best first, each with an exact or a greatest saving.

use super::{kernel, run_time, torch::leaves_graph_uncut};
use crate::{
    advice::{
        Change, Recommendation, Target,
        finding::{
            Asker, CacheFinding, ElsewhereFinding, Finding, Holders, MemoryFinding, MessageLacks, RunTimeFinding,
            Shrink, WholeArray,
        },
        of_message,
    },
    message::Listing,
};
use tilewise_oom::{
    Budget, Done, Form, Framework, Kept, Level, Message, Occasion, OomVerdict, PrintedSize, Reason, Run, Section,
    Server, Told, Way,
};

/// Smaller sizes stand for too much else.
pub(super) const TELLING: u64 = 32;

/// Bytes that count in the smallest TPU's memory, a sixty-fourth of it.
const MUCH: u64 = 128 << 20;

/// A reduction that one sample less of many may bring.
const LITTLE_PERCENT: u64 = 10;

/// Maximum number of recommendations: readers stop here.
const MOST: usize = 4;

/// Advice on a message of a program that ran out of memory.
pub(super) fn advice(listing: Listing<'_>) -> Vec<Recommendation> {
    let message = listing.message;
    let framework = message.framework.unwrap_or(Framework::Jax);
    match message.verdict() {
        OomVerdict::Spills => kernel::spills(listing, framework),
        OomVerdict::KernelMemory => kernel::of(listing, framework),
        OomVerdict::Reservation | OomVerdict::Fragmentation if message.form == Form::RunTime => run_time::of(message),
        OomVerdict::Unknown => {
            let mut advice = of_message(listing);
            // Larger entries came before those of a list's tail.
            advice.retain(|piece| !message.is_beheaded() || piece.saving.bytes().is_none_or(|saved| saved >= MUCH));
            advice.truncate(MOST - 1);
            advice.push(run_time::unknown(message));
            advice
        }
        _ if message.memory_space.as_deref() == Some("host") => {
            let budget = message.budget();
            let bytes = budget.used_bytes;
            let are_made = budget.temporary_bytes.zip(bytes).is_some_and(|(made, all)| made > all / 2);
            let percent = Shrink::of(&budget, message.form).map(|shrink| shrink.percent);
            let finding = Finding::Memory(MemoryFinding::OffHost { bytes, are_made, percent });
            vec![Recommendation::new(finding, Target::Value, Some(framework))]
        }
        verdict => program(listing, framework, verdict),
    }
}

/// Advice on a program that does not fit into HBM.
fn program(listing: Listing<'_>, framework: Framework, verdict: OomVerdict) -> Vec<Recommendation> {
    let budget = listing.message.budget();
    let new = |finding, target| Recommendation::new(Finding::Memory(finding), target, Some(framework));
    let mut advice = of_message(listing);
    let is_done = |done| listing.message.job.done.contains(&done);
    advice.retain(|piece| piece.change != Change::Checkpoint || !is_done(Done::Recomputed));
    let scores = advice.iter_mut().filter(|piece| matches!(piece.finding, Finding::AttentionScores(_)));
    for piece in scores.filter(|_| is_done(Done::BlockwiseAttention)) {
        piece.finding = Finding::Memory(MemoryFinding::ScoresBesideKernel);
    }
    // If padding is the cause, advice that reduces it comes first.
    let works_on_padding = |piece: &Recommendation| match piece.change {
        Change::Chunk | Change::Checkpoint | Change::Donate => false,
        Change::Narrow => piece.target == Target::Compiler,
        _ => true,
    };
    advice.sort_by_key(|piece| verdict == OomVerdict::Padding && !works_on_padding(piece));
    let are_most = |arguments: u64| arguments > budget.used_bytes.unwrap_or_default() / 2;
    let is_size = verdict == OomVerdict::Size && budget.argument_bytes.is_some_and(are_most);
    if verdict == OomVerdict::Arguments || is_size {
        // Donation takes no time: if it is enough, it stays first.
        let is_enough = |piece: &Recommendation| {
            piece.change == Change::Donate
                && piece.saving.bytes().zip(budget.missing_bytes).is_some_and(|(it, missing)| it >= missing)
        };
        let at = usize::from(verdict == OomVerdict::Size && advice.first().is_some_and(is_enough));
        advice.insert(at, new(arguments(&budget), Target::Argument));
    }
    advice.truncate(MOST);
    if advice.is_empty() {
        advice.extend(results(&budget, 2).map(|finding| new(finding, Target::Result)));
    }
    let form = listing.message.form;
    if form == Form::Cores {
        return vec![run_time::cores(listing.message)];
    }
    let may_loop = listing.message.raised_at.is_some() && listing.message.job.run != Some(Run::Inference);
    if leaves_graph_uncut(listing.message)
        && (may_loop || listing.message.job.has_run || listing.message.job.shows_step)
    {
        advice.insert(0, new(MemoryFinding::UncutGraph, Target::Process));
    }
    let is_bare = listing.allocations.is_empty();
    if matches!(listing.message.occasion(), Some(Occasion::Move | Occasion::Gather)) && advice.is_empty() {
        return vec![Recommendation::new(
            Finding::RunTime(RunTimeFinding::Move { gathers: listing.message.occasion() == Some(Occasion::Gather) }),
            Target::Value,
            Some(framework),
        )];
    }
    let own = listing.message.function_of_jax().filter(|_| advice.is_empty());
    if let Some(name) = own {
        // There is no program of the reader's to look into.
        return vec![new(MemoryFinding::OwnFunction { name: name.to_owned() }, Target::Value)];
    }
    // A size alone may be of something else than a vocabulary.
    let is_guess = |piece: &Recommendation| matches!(&piece.finding, Finding::Logits(logits) if !logits.is_shown);
    advice.sort_by_key(is_guess);
    if advice.iter().all(is_guess) {
        advice.extend(one_array(listing, &budget).map(|finding| new(finding, Target::Value)));
    }
    if form == Form::EarlyAbort && is_bare {
        advice.push(new(MemoryFinding::EarlyAbort, Target::Compiler));
    }
    let lacks = if is_bare {
        Some(MessageLacks::Arrays)
    } else if advice.is_empty() {
        Some(MessageLacks::Change)
    } else {
        budget.missing_bytes.is_some_and(|missing| freed(&advice) < missing).then_some(MessageLacks::Rest)
    };
    if let Some(lacks) = lacks {
        let shrink = Shrink::of(&budget, form).filter(|_| lacks != MessageLacks::Rest);
        advice.push(new(
            MemoryFinding::LookInside {
                lacks,
                shrink,
                dump: listing.message.job.dump.clone(),
                is_elsewhere: listing.message.job.is_compiled_elsewhere,
            },
            Target::Process,
        ));
        let sizes = sizes_of_inputs(listing).filter(|_| lacks == MessageLacks::Change);
        advice.extend(sizes.map(|sizes| new(MemoryFinding::SmallerInputs(sizes), Target::Argument)));
    }
    advice
}

/// The sizes of the largest array inside the program, but for its last one, which is most often of features: one or two.
pub(super) fn sizes_of_inputs(listing: Listing<'_>) -> Option<Vec<u64>> {
    let inside = listing.allocations.iter().filter(|row| row.entry.section == Section::Allocations);
    let largest = inside.max_by_key(|row| row.taken_bytes())?;
    let bounds: Vec<u64> =
        largest.shape.as_ref()?.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
    let (_, leading) = bounds.split_last()?;
    let sizes: Vec<u64> = leading.iter().copied().filter(|size| *size >= TELLING).take(2).collect();
    (!sizes.is_empty()).then_some(sizes)
}

/// Puts first what code keeps: a checkpoint, or a list of arrays, where steps ran before one found no memory.
pub(super) fn with_kept(mut advice: Vec<Recommendation>, message: &Message) -> Vec<Recommendation> {
    let is_of_loop = |kept: &Kept| matches!(kept, Kept::Sum { .. } | Kept::Models);
    let is_of_host = message.form == Form::Host && message.job.kept.as_ref().is_some_and(is_of_loop);
    let is_of_device = matches!(message.form, Form::RunTime | Form::Gpu | Form::Device | Form::Told);
    let is_of_step = (is_of_device || is_of_host) && message.server.is_none();
    let has_grown = message.job.grows || message.job.has_run;
    let is_cause = |kept: &Kept| match kept {
        Kept::Checkpoint(_) | Kept::Models | Kept::Traceback => true,
        Kept::OfEachRank => !message.job.has_run,
        _ => has_grown && Asker::of_weights(message).is_none(),
    };
    if let Some(kept) = message.job.kept.clone().filter(|kept| is_of_step && is_cause(kept)) {
        let is_growth =
            |finding: &_| matches!(finding, ElsewhereFinding::TorchGrowth | ElsewhereFinding::HostGrowth(_));
        advice.retain(|piece| !matches!(&piece.finding, Finding::Elsewhere(finding) if is_growth(finding)));
        let finding = Finding::RunTime(RunTimeFinding::Kept(kept));
        advice.insert(0, Recommendation::new(finding, Target::Value, message.framework));
    } else if is_of_device && is_of_step && keeps_steps(message) {
        let finding = Finding::RunTime(RunTimeFinding::StepsOfALoop);
        advice.insert(0, Recommendation::new(finding, Target::Loop, Some(Framework::Jax)));
    }
    advice
}

/// Whether all that a text tells of a first step is that its gradient goes through a loop.
fn keeps_steps(message: &Message) -> bool {
    let is_of_jax = matches!(message.framework, Some(Framework::Jax) | None);
    let is_listed = !message.entries.is_empty() || message.usage.is_some();
    is_of_jax && message.job.differentiates_a_loop && !message.job.has_run && !is_listed
}

/// Puts the compiler's own answer first where a text asks for a size, and has no error.
pub(super) fn with_size(mut advice: Vec<Recommendation>, message: &Message) -> Vec<Recommendation> {
    let is_of_jax = matches!(message.framework, Some(Framework::Jax) | None);
    if message.job.asks_size && message.form == Form::Told && is_of_jax {
        let finding = Finding::RunTime(RunTimeFinding::AskCompiler);
        advice.insert(0, Recommendation::new(finding, Target::Compiler, Some(Framework::Jax)));
    }
    advice
}

/// Puts the setting of a GPU's pool first where a text asks why a process takes most of the memory.
pub(super) fn with_pool(mut advice: Vec<Recommendation>, message: &Message) -> Vec<Recommendation> {
    let pool = &message.job.pool;
    let is_of_gpu = match message.form {
        Form::Told => pool.is_asked || pool.is_shared,
        Form::Gpu | Form::Device => pool.is_asked && message.used.is_none() || pool.is_shared,
        Form::GpuRetry => pool.is_shared,
        _ => false,
    };
    let sets_aside = matches!(message.framework, Some(Framework::Jax | Framework::TensorFlow));
    if pool.preallocates != Some(false) && is_of_gpu && sets_aside {
        // The pool holds the memory.
        advice.retain(|piece| !matches!(piece.finding, Finding::Elsewhere(ElsewhereFinding::Holders(_))));
        let finding = Finding::Elsewhere(ElsewhereFinding::SetAside);
        advice.insert(0, Recommendation::new(finding, Target::Process, message.framework));
    } else if pool.keeps_freed && message.form == Form::Told && message.framework == Some(Framework::Jax) {
        let finding = Finding::Elsewhere(ElsewhereFinding::KeptByPool);
        advice.insert(0, Recommendation::new(finding, Target::Process, message.framework));
    }
    advice
}

/// Puts the array first that a compiled function closes over.
pub(super) fn with_closed_over(mut advice: Vec<Recommendation>, message: &Message) -> Vec<Recommendation> {
    let is_of_jax = matches!(message.framework, Some(Framework::Jax) | None);
    if message.job.closes_over && is_of_jax && (message.form.level() == Level::Error || message.form == Form::Told) {
        let finding = Finding::RunTime(RunTimeFinding::ClosedOver);
        advice.insert(0, Recommendation::new(finding, Target::Argument, Some(Framework::Jax)));
    }
    advice
}

/// Puts an input first that is longer than the model's, where one array fails of a size that such an input has.
pub(super) fn with_long_input(mut advice: Vec<Recommendation>, message: &Message) -> Vec<Recommendation> {
    let [tokens, most] = match message.job.long_input {
        Some(lengths) if message.job.run != Some(Run::Training) && message.asks_for_a_quarter() => lengths,
        _ => return advice,
    };
    let finding = Finding::RunTime(RunTimeFinding::LongInput { tokens, most });
    advice.insert(0, Recommendation::new(finding, Target::Argument, message.framework));
    advice
}

/// Puts the version first with which a job ran, where its text compares it with one that fails.
pub(super) fn with_worked(mut advice: Vec<Recommendation>, message: &Message) -> Vec<Recommendation> {
    if let Some(worked) = message.job.worked.clone() {
        let finding = Finding::RunTime(RunTimeFinding::Worked { worked, machine: message.machine() });
        advice.insert(0, Recommendation::new(finding, Target::Process, message.framework));
    }
    advice
}

/// Puts the state of an optimizer first, where one with less state runs, or memory of earlier attempts in the same process.
pub(super) fn with_history(mut advice: Vec<Recommendation>, message: &Message) -> Vec<Recommendation> {
    let job = &message.job;
    let is_of_device = matches!(message.form, Form::RunTime | Form::Gpu | Form::Device);
    let is_of_program = matches!(message.form, Form::Bound | Form::Assignment | Form::EarlyAbort);
    let is_error = message.form.level() == Level::Error;
    let is_load = |finding: &RunTimeFinding| {
        matches!(finding, RunTimeFinding::AskLess { asker: Asker::Load { .. } | Asker::Weights, .. })
    };
    if let Some(optimizers) = job.optimizers.filter(|_| is_error && (is_of_device || is_of_program)) {
        let (is_divided, is_of_keras) = (job.done.contains(&Done::Sharded), job.names.keras);
        // With another optimizer the same weights were loaded.
        advice.retain(|piece| !matches!(&piece.finding, Finding::RunTime(finding) if is_load(finding)));
        let finding = Finding::RunTime(RunTimeFinding::OptimizerState { optimizers, is_divided, is_of_keras });
        advice.insert(0, Recommendation::new(finding, Target::Argument, message.framework));
    }
    let is_of_host = message.form == Form::Host;
    if job.is_resumed && (is_of_device || is_of_host) && is_error && message.server.is_none() {
        // Program and inputs fit in a fresh run: only arrays beside them tell more.
        advice.retain(|piece| {
            matches!(
                piece.finding,
                Finding::RunTime(RunTimeFinding::OthersHold { .. })
                    | Finding::Elsewhere(ElsewhereFinding::OldArrays { .. } | ElsewhereFinding::HostInVain)
            )
        });
        let finding = match message.framework {
            Some(Framework::Torch | Framework::TorchXla) if !is_of_host && !job.names.spmd => {
                RunTimeFinding::Kept(Kept::Checkpoint("state".to_owned()))
            }
            _ => RunTimeFinding::Resumed { is_of_host },
        };
        advice.insert(0, Recommendation::new(Finding::RunTime(finding), Target::Argument, message.framework));
    }
    if message.server.is_some() && message.occasion() == Some(Occasion::Sync) && is_of_device && is_error {
        let finding = Finding::Cache(CacheFinding::Idle);
        advice.insert(0, Recommendation::new(finding, Target::Process, message.framework));
    }
    if job.names.transforms_samples && (is_of_device || message.form == Form::Host) && is_error {
        let finding = Finding::RunTime(RunTimeFinding::TransformedSamples);
        advice.insert(0, Recommendation::new(finding, Target::Value, message.framework));
    }
    if job.is_repeated && is_of_device && is_error {
        advice.insert(
            0,
            Recommendation::new(Finding::RunTime(RunTimeFinding::Repeated), Target::Process, message.framework),
        );
    }
    advice
}

/// Leaves out what can't make up for a need of a hundred times what there is: all but steps that free as much, that never make
/// an array whole, or that take a cause away.
pub(super) fn within_reach(mut advice: Vec<Recommendation>, message: &Message) -> Vec<Recommendation> {
    let Some(times) = message.times_too_large() else { return advice };
    let missing = message.budget().missing_bytes;
    advice.retain(|piece| match &piece.finding {
        Finding::Elsewhere(ElsewhereFinding::Whole(WholeArray::Unknown)) | Finding::LargeDimension(_) => false,
        Finding::Elsewhere(finding) => matches!(
            finding,
            ElsewhereFinding::Whole(_)
                | ElsewhereFinding::Mapped(_)
                | ElsewhereFinding::Matrix(_)
                | ElsewhereFinding::OfReason(Reason::DamagedSize)
        ),
        Finding::Memory(finding) => matches!(finding, MemoryFinding::OneArray { .. }),
        Finding::RunTime(finding) => matches!(finding, RunTimeFinding::Worked { .. } | RunTimeFinding::Told { .. }),
        _ => piece.change == Change::Chunk || piece.saving.bytes().zip(missing).is_some_and(|(it, all)| it >= all),
    });
    if advice.is_empty() {
        let finding = Finding::Memory(MemoryFinding::OutOfReach(times));
        advice.push(Recommendation::new(finding, Target::Argument, message.framework));
    }
    advice
}

/// Adds smaller inputs to a step that only looks for a cause: the next run needs both.
pub(super) fn with_less_at_once(mut advice: Vec<Recommendation>, message: &Message) -> Vec<Recommendation> {
    if let [only] = &advice[..]
        && let Some(shrink) = looks_inside(&only.finding)
        && message.server.is_none()
    {
        let finding = Finding::Memory(MemoryFinding::LessAtOnce { shrink });
        let less = Recommendation {
            is_batch_ruled_out: only.is_batch_ruled_out,
            ..Recommendation::new(finding, Target::Argument, only.framework)
        };
        // A little less of the inputs is at hand before a program is looked into.
        let is_little = shrink.is_some_and(|shrink| shrink.percent <= LITTLE_PERCENT);
        advice.insert(usize::from(!is_little), less);
    }
    advice
}

/// The reduction that a step into a program asks for, if it only looks there.
fn looks_inside(finding: &Finding) -> Option<Option<Shrink>> {
    match finding {
        Finding::Memory(MemoryFinding::LookInside { shrink, is_elsewhere: false, .. }) => Some(*shrink),
        Finding::Elsewhere(ElsewhereFinding::Holders(Holders {
            program: true, arrays: false, others: false, ..
        })) => Some(None),
        _ => None,
    }
}

/// Puts the setting that the error itself names first.
pub(super) fn with_told(mut advice: Vec<Recommendation>, message: &Message) -> Vec<Recommendation> {
    // The hint of a server that refuses its options isn't about another program.
    let is_of_server = message.form != Form::CacheRoom && message.has_refused_server();
    let told = message.job.told.clone().filter(|_| message.form.level() == Level::Error && !is_of_server);
    let is_told = |piece: &Recommendation| match (&piece.finding, &told) {
        (Finding::Elsewhere(ElsewhereFinding::ServerPrograms { server, .. }), Some(told)) => {
            told.is_option(server.tokens_flag())
        }
        // That flag again, with the command of another server.
        (Finding::Cache(CacheFinding::LongRequests(None)), Some(told)) => {
            message.server.is_some_and(|server| server != Server::Vllm && told.is_option(server.memory_flag()))
        }
        _ => false,
    };
    advice.retain(|piece| !is_told(piece));
    let is_of_memory = |server: Server| told.as_ref().is_some_and(|told| told.is_option(server.memory_flag()));
    // A figure of the message's own is surer, and fewer graphs leave the cache its tokens.
    let is_sure = |piece: &Recommendation| match &piece.finding {
        Finding::Cache(CacheFinding::LongRequests(Some(_)) | CacheFinding::WarmUp(true))
        | Finding::RunTime(RunTimeFinding::ServerRoom { percent: Some(_), .. }) => true,
        Finding::Elsewhere(ElsewhereFinding::ServerPrograms { server, is_capture: true, .. }) => is_of_memory(*server),
        _ => false,
    };
    let at = usize::from(advice.first().is_some_and(is_sure));
    let exhausted = told.as_ref().filter(|told| told.is_exhausted).and(message.server);
    if let Some(server) = exhausted {
        let devices = message.job.serving.devices;
        let finding = Finding::Cache(CacheFinding::NoPart { server, devices });
        return vec![Recommendation::new(finding, Target::Process, message.framework)];
    }
    let to = told.as_ref().and_then(|told| match told.way {
        Way::Lower => lowered(told, message).map(|to| to.to_string()),
        Way::Raise => raised(told, message),
        _ => None,
    });
    let found = told.filter(|told| !is_beyond(told, message));
    let found = found.map(|told| Finding::RunTime(RunTimeFinding::Told { told, to }));
    let found = found.map(|finding| Recommendation::new(finding, Target::Process, message.framework));
    advice.splice(at..at, found);
    advice
}

/// Whether a cache lacks more than a server's larger part of the memory would give it: all that is left beside a part of nine
/// tenths, vLLM's own, unless the text sets another.
fn is_beyond(told: &Told, message: &Message) -> bool {
    let is_part = message.server.is_some_and(|server| told.is_option(server.memory_flag())) && told.way == Way::Raise;
    let budget = message.budget();
    let (missing, all) = (budget.missing_bytes, message.device_bytes().or(message.job.serving.gpu_bytes));
    let left = all.map(|all| all / 100 * 100_u64.saturating_sub(message.job.serving.memory_percent.unwrap_or(90)));
    is_part
        && message.facts.number("wanted").is_some()
        && missing.zip(left).is_some_and(|(missing, left)| missing > left)
}

/// The part of the memory that gives a server's cache what it lacks, and a twentieth of the memory.
fn raised(told: &Told, message: &Message) -> Option<String> {
    const MARGIN: u64 = 5;
    /// Programs of others, such as a screen's, have the rest.
    const MOST: u64 = 95;
    let is_part = message.server.is_some_and(|server| told.is_option(server.memory_flag()));
    let part = told.value.as_ref()?.parse::<f64>().ok().filter(|part| is_part && (0.01..1.0).contains(part))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 100")]
    let now = (part * 100.0).round() as u64;
    let (lacking, all) = (message.facts.size("lacking")?.bytes(), message.job.serving.gpu_bytes?);
    let more = lacking.saturating_mul(100).div_ceil(all.max(1)).saturating_add(MARGIN);
    let to = now.saturating_add(more).next_multiple_of(MARGIN);
    (to <= MOST).then(|| format!("0.{to}"))
}

/// The value of a setting by which a request is as large as what is free.
fn lowered(told: &Told, message: &Message) -> Option<u64> {
    let now: u64 = told.value.as_ref()?.parse().ok()?;
    let (asked, free) = (message.used.as_ref()?.bytes(), message.facts.size("free")?.bytes());
    let to = u64::try_from(u128::from(now) * u128::from(free) / u128::from(asked.max(1))).ok()?;
    // Two digits.
    let unit = 10_u64.checked_pow(to.max(1).ilog10().saturating_sub(1))?;
    (0 < to && to < now).then_some(to / unit * unit)
}

/// The finding that the model which the text names takes most of what is needed, where nothing else is known to.
pub(super) fn whole_model(advice: &[Recommendation], listing: Listing<'_>) -> Option<MemoryFinding> {
    let message = listing.message;
    let looks = |piece: &Recommendation| matches!(&piece.finding, Finding::Memory(MemoryFinding::LookInside { .. }));
    let is_unknown = listing.allocations.is_empty() && advice.first().is_some_and(looks) && message.server.is_none();
    // A save and an evaluation have arrays of their own beside the state.
    let is_of_state = matches!(message.occasion(), None | Some(Occasion::Load | Occasion::Weights));
    let model = message.job.model.filter(|_| is_of_state)?;
    // A server divides a model as its flag tells, and perhaps by itself.
    if message.server.is_some() && listing.allocations.is_empty() {
        let devices = message.job.serving.devices;
        let (part, room) = (model.bytes() / devices.unwrap_or(1).max(1), message.budget().capacity_bytes?);
        let is_most = if devices.is_some() { room / 2..=room / 4 * 5 } else { room..=u64::MAX };
        let is_told = message.form != Form::RunTime && is_most.contains(&part);
        return is_told.then_some(MemoryFinding::ServedModel { model, devices, part, room });
    }
    let is_whole = if is_unknown {
        // A job that needs less has divided it already.
        message.budget().used_bytes.is_some_and(|used| (used / 2..=used).contains(&model.bytes()))
    } else {
        // A small request tells little of what is held; a sharded model may be of several devices' size.
        let is_request = matches!(message.form, Form::RunTime | Form::Gpu | Form::Device) && message.server.is_none();
        let is_loaded = matches!(message.occasion(), Some(Occasion::Load | Occasion::Weights));
        // A model that needs several devices is divided as it is loaded; a narrower type alone isn't enough.
        let parts = message.job.devices.count.filter(|count| is_loaded && *count > 1);
        let fits = |all: u64| parts.is_some_and(|parts| model.bytes() / parts < all / 4 * 3);
        let exceeds = |all: u64| message.machine().is_none() && model.bytes() >= all;
        let all = message
            .device_bytes()
            .filter(|all| is_request && (model.is_trained || is_loaded || exceeds(*all)) && !fits(*all));
        let most = if message.job.done.contains(&Done::Sharded) { 2 } else { u64::MAX };
        let asked = message.used.as_ref().map_or(0, PrintedSize::bytes);
        all.is_some_and(|all| asked < all / 8 && (all / 4 * 3..=all.saturating_mul(most)).contains(&model.bytes()))
    };
    is_whole.then_some(MemoryFinding::WholeModel(model))
}

/// The most bytes that the advice frees together; advice without a figure may free all that is missing.
fn freed(advice: &[Recommendation]) -> u64 {
    let freed = advice.iter().map(|piece| piece.saving.bytes().unwrap_or(u64::MAX));
    freed.fold(0, u64::saturating_add)
}

/// The finding that one array exceeds the memory, with no known way to make it smaller.
fn one_array(listing: Listing<'_>, budget: &Budget) -> Option<MemoryFinding> {
    let capacity = budget.capacity_bytes?;
    let largest = listing.allocations.iter().map(|row| row.taken_bytes()).max();
    let bytes = match listing.message.form {
        Form::Allocation => budget.used_bytes,
        _ => Some(largest.filter(|largest| *largest > capacity)?),
    };
    Some(MemoryFinding::OneArray { bytes })
}

/// The finding that the results take more than one of `parts` of arguments, results and temporaries together.
pub(super) fn results(budget: &Budget, parts: u64) -> Option<MemoryFinding> {
    let (bytes, temporaries) = (budget.output_bytes?, budget.temporary_bytes?);
    let arguments = budget.argument_bytes?;
    let all = bytes.saturating_add(arguments).saturating_add(temporaries);
    (bytes > all / parts).then_some(MemoryFinding::Results { bytes, arguments, all })
}

/// The finding that the arguments alone do not fit.
fn arguments(budget: &Budget) -> MemoryFinding {
    let bytes = budget.argument_bytes.unwrap_or_default();
    // Half of the memory is for the program itself.
    let least = |capacity: u64| bytes.saturating_mul(2).div_ceil(capacity.max(1)).max(2);
    let devices = budget.capacity_bytes.map_or(2, least);
    let devices = devices.checked_next_power_of_two().unwrap_or(devices);
    let left = budget.capacity_bytes.map(|capacity| capacity.saturating_sub(bytes.div_ceil(devices)));
    MemoryFinding::Arguments { bytes, devices, left, roots: Vec::new(), element: None }
}
