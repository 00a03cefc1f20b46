//! A job's own settings, switches first, before steps that only look for a cause.

use super::{
    advice::{TELLING, sizes_of_inputs, whole_model},
    lowered::{lowered, sizes},
};
use crate::{
    advice::{
        Recommendation, Target,
        finding::{
            Asker, BlockFinding, ElsewhereFinding, Finding, Holders, MemoryFinding, MessageLacks, RunTimeFinding,
            Shrink, WholeArray,
        },
    },
    message::Listing,
};
use tilewise::{ElementType, Shape};
use tilewise_oom::{Done, Framework, Gpu, Occasion, Run, Section, Setting, Switch, SwitchKind};

/// With fewer tokens, or other elements, in all samples together, weights and their state take most of the memory.
const FEW: u64 = 1024;

/// More sizes aren't said.
const MOST: usize = 3;

/// Whether a setting is, by its name, of a size by which inputs grow.
fn is_of_inputs(setting: &Setting) -> bool {
    const INPUTS: [&str; 15] = [
        "grid",
        "samples",
        "points",
        "pixels",
        "rays",
        "frames",
        "resolution",
        "particles",
        "atoms",
        "residues",
        "envs",
        "walkers",
        "chains",
        "msa",
        "image",
    ];
    let name = setting.name.to_ascii_lowercase();
    name.split(['_', '-']).any(|word| INPUTS.contains(&word))
}

/// Puts the job's own settings before a step that only looks for a cause, unless arguments take half of the memory. Of a
/// list, an array has to have a setting's value as a bound.
pub(super) fn with_settings(mut advice: Vec<Recommendation>, listing: Listing<'_>) -> Vec<Recommendation> {
    let message = listing.message;
    let budget = message.budget();
    let is_made = budget.temporary_bytes.zip(budget.used_bytes).is_none_or(|(made, used)| made > used / 2);
    let shapes: Vec<&Shape> = listing.allocations.iter().filter_map(|row| row.shape.as_ref()).collect();
    let bounds = || shapes.iter().flat_map(|shape| shape.dimensions()).filter_map(|dimension| dimension.bound());
    let is_bound = |setting: &Setting| {
        let sizes = sizes(setting, listing);
        bounds().any(|bound| sizes.contains(&bound))
    };
    let has_bound = |setting: &&Setting| {
        shapes.is_empty()
            || message.server.is_some()
            || is_bound(setting)
            || bounds().any(|bound| Some(bound) == message.job.elements_of_samples())
    };
    // A batch of 1 can't be lowered.
    let is_ruled_out = |setting: &Setting| setting.is_of_batch() && message.job.is_batch_ruled_out;
    // An evaluation has a batch of its own.
    let is_evaluated = message.occasion() == Some(Occasion::Evaluation);
    let is_of_stage = |setting: &Setting| !(is_evaluated && setting.name.contains("train"));
    let is_lowerable =
        |setting: &&Setting| setting.value > 1 && !is_ruled_out(setting) && is_of_stage(setting) && has_bound(setting);
    if let Some(finding) = whole_model(&advice, listing) {
        advice.insert(0, Recommendation::new(Finding::Memory(finding), Target::Argument, message.framework));
        return advice;
    }
    // A batch that has to stay isn't taken apart either.
    let batches = || message.job.settings.iter().filter(|setting| is_ruled_out(setting)).map(|setting| setting.value);
    let has_size = |size: u64| batches().any(|batch| batch == size);
    advice.retain(|piece| !matches!(&piece.finding, Finding::LargeDimension(of) if has_size(of.size)));
    let first = |shape: &Shape| shape.dimensions().first().and_then(|dimension| dimension.bound());
    let is_global = |setting: &&Setting| {
        setting.name.to_ascii_lowercase().contains("global")
            && shapes.iter().any(|shape| first(shape) == Some(setting.value))
    };
    if let Some(global) = message.job.settings.iter().find(is_global) {
        let finding = Finding::Memory(MemoryFinding::GlobalBatch(global.clone()));
        advice.insert(0, Recommendation::new(finding, Target::Argument, message.framework));
        return advice;
    }
    let mut settings: Vec<Setting> = message.job.settings.iter().filter(is_lowerable).cloned().collect();
    if settings.is_empty() && message.server.is_none() {
        let sizes = sizes_of_inputs(listing).unwrap_or_default();
        let named = |size: &u64| message.job.sizes.iter().find(|setting| setting.value == *size).cloned();
        settings = sizes.iter().filter_map(named).collect();
        if listing.allocations.is_empty() {
            settings = message.job.sizes.iter().filter(|setting| is_of_inputs(setting)).take(MOST).cloned().collect();
        }
    }
    let samples =
        message.job.elements_of_samples().filter(|elements| *elements < FEW && listing.allocations.is_empty());
    let samples = samples.filter(|_| message.job.run == Some(Run::Training));
    // Where a state is divided already, a part of it may be less than what a batch makes.
    let samples = samples.filter(|_| !message.job.done.contains(&Done::Sharded));
    if settings.is_empty() || !is_made {
        return advice;
    }
    // A kernel's arrays grow by a server's settings; a bound that is equal may be its own block's all the same.
    let is_of_bound = |setting: &&Setting| message.server.is_some() && setting.value >= TELLING && is_bound(setting);
    let of_kernel: Vec<Setting> = settings.iter().filter(is_of_bound).cloned().collect();
    let is_of_kernel = |piece: &Recommendation| {
        matches!(piece.finding, Finding::Block(BlockFinding::Unlisted { .. } | BlockFinding::Library { .. }))
    };
    // The rows of a server's program on a SparseCore are its tokens.
    let is_of_tokens = |piece: &Recommendation| matches!(piece.finding, Finding::Block(BlockFinding::SparseCore(_)));
    if advice.first().is_some_and(is_of_tokens)
        && let Some(server) = message.server
    {
        let of_tokens = |setting: &&Setting| setting.is_option(server.tokens_flag());
        let shrink = Shrink::of(&budget, message.form);
        let settings = lowered(settings.iter().filter(of_tokens).cloned().collect(), shrink, listing);
        let finding =
            MemoryFinding::Settings { settings, shrink, is_trained: false, is_evaluated: false, accumulation: None };
        if !matches!(&finding, MemoryFinding::Settings { settings, .. } if settings.is_empty()) {
            advice.insert(0, Recommendation::new(Finding::Memory(finding), Target::Argument, message.framework));
        }
        return advice;
    }
    if advice.first().is_some_and(is_of_kernel) && !of_kernel.is_empty() {
        let shrink = Shrink::of(&budget, message.form);
        let settings = lowered(of_kernel, shrink, listing);
        let finding =
            MemoryFinding::Settings { settings, shrink, is_trained: false, is_evaluated: false, accumulation: None };
        let finding = Finding::Memory(finding);
        advice.insert(1, Recommendation::new(finding, Target::Argument, message.framework));
        return advice;
    }
    let is_trained = message.job.run == Some(Run::Training) && !is_evaluated;
    // Where changes to listed arrays don't reach, a batch that these show does.
    let lacks_rest = |piece: &Recommendation| {
        let finding = &piece.finding;
        matches!(finding, Finding::Memory(MemoryFinding::LookInside { lacks: MessageLacks::Rest, .. }))
    };
    let is_shown = |setting: &Setting| setting.is_of_batch() && is_bound(setting);
    if let Some(at) = advice.iter().position(lacks_rest).filter(|at| *at > 0)
        && settings.iter().any(is_shown)
    {
        let shrink = Shrink::of(&budget, message.form);
        let settings = lowered(settings.into_iter().filter(is_shown).collect(), shrink, listing);
        let accumulation = message.job.accumulation.clone();
        let finding = MemoryFinding::Settings { settings, shrink, is_trained, is_evaluated, accumulation };
        advice.insert(at, Recommendation::new(Finding::Memory(finding), Target::Argument, message.framework));
        return advice;
    }
    let required = match advice.first_mut().map(|first| &mut first.finding) {
        // Said once, of the settings.
        Some(Finding::Memory(MemoryFinding::LookInside { shrink, .. })) => shrink.take(),
        Some(Finding::Memory(MemoryFinding::EarlyAbort)) => Shrink::of(&budget, message.form),
        Some(Finding::Block(BlockFinding::ScalarTables { shrink, .. })) if message.server.is_some() => {
            let of_all = shrink.map(|percent| Shrink { percent, is_of_temporaries: false, is_least: false });
            of_tables(listing).or(of_all)
        }
        // In the first step of a training its own arrays fill the device.
        Some(Finding::Elsewhere(ElsewhereFinding::Holders(_)))
            if is_trained && !message.job.has_run && settings.iter().any(is_bound) =>
        {
            None
        }
        Some(Finding::RunTime(RunTimeFinding::AskLess { asker: Asker::Program | Asker::Array, shrink })) => {
            shrink.take()
        }
        Some(Finding::Elsewhere(
            ElsewhereFinding::Holders(Holders { program: true, .. }) | ElsewhereFinding::TooLarge(_),
        )) => None,
        Some(Finding::Elsewhere(
            ElsewhereFinding::TorchCheckpoint
            | ElsewhereFinding::TorchLess { is_last_of_many: false, .. }
            | ElsewhereFinding::Whole(WholeArray::Unknown),
        )) => None,
        Some(Finding::Elsewhere(ElsewhereFinding::Smaller(largest)))
            if !largest.is_random && largest.transform.is_none() =>
        {
            None
        }
        Some(Finding::Memory(MemoryFinding::OneArray { .. })) => Shrink::of(&budget, message.form),
        Some(Finding::Logits(logits)) if !logits.is_shown => Shrink::of(&budget, message.form),
        // The dimension is the batch, as the setting says.
        Some(Finding::LargeDimension(dimension)) if settings.iter().any(|setting| setting.value == dimension.size) => {
            Shrink::of(&budget, message.form)
        }
        _ => return advice,
    };
    let settings = lowered(settings, required, listing);
    if settings.is_empty() && samples.is_none() {
        return advice;
    }
    let finding = Finding::Memory(match samples {
        Some(elements) => MemoryFinding::FewSamples { elements },
        None => {
            let accumulation = message.job.accumulation.clone();
            MemoryFinding::Settings { settings, shrink: required, is_trained, is_evaluated, accumulation }
        }
    });
    // A setting names the batch of this step.
    let is_of_batch = |piece: &Recommendation| {
        matches!(&piece.finding, Finding::Elsewhere(ElsewhereFinding::Smaller(_)) | Finding::LargeDimension(_))
    };
    advice.retain(|piece| !is_of_batch(piece));
    let names_batch = message.job.settings.iter().any(|setting| setting.is_of_batch() && is_lowerable(&setting));
    advice.iter_mut().for_each(|piece| piece.is_batch_ruled_out |= names_batch);
    advice.insert(0, Recommendation::new(finding, Target::Argument, message.framework));
    advice
}

/// Puts a checkpoint around layers before a look inside of a training whose arrays aren't listed.
pub(super) fn with_recomputing(mut advice: Vec<Recommendation>, listing: Listing<'_>) -> Vec<Recommendation> {
    let message = listing.message;
    let is_known = |piece: &Recommendation| {
        matches!(
            piece.finding,
            Finding::Memory(
                MemoryFinding::FewSamples { .. }
                    | MemoryFinding::WholeModel(_)
                    | MemoryFinding::GlobalBatch(_)
                    | MemoryFinding::Arguments { .. }
                    | MemoryFinding::Results { .. }
            )
        )
    };
    let is_whole = message.memory_space.as_deref() == Some("hbm") && listing.allocations.is_empty();
    let is_trained = message.job.run == Some(Run::Training)
        && message.occasion() != Some(Occasion::Evaluation)
        && !message.job.done.contains(&Done::Recomputed);
    let looks = |piece: &Recommendation| matches!(piece.finding, Finding::Memory(MemoryFinding::LookInside { .. }));
    let at = advice.iter().position(looks).filter(|_| is_whole && is_trained && !advice.iter().any(is_known));
    if let Some(at) = at {
        // The first step says how far it is, since a checkpoint alone seldom frees half of all.
        let shrink = match &mut advice[at].finding {
            Finding::Memory(MemoryFinding::LookInside { shrink, .. }) if at == 0 => shrink.take(),
            _ => None,
        };
        let finding = MemoryFinding::Recompute { is_of_keras: message.job.names.keras, shrink };
        let framework = message.framework.or(Some(Framework::Jax));
        advice.insert(at, Recommendation::new(Finding::Memory(finding), Target::Value, framework));
    }
    advice
}

/// The reduction of a setting by which one of a kernel's tables grows, whichever that is: the smallest that can make the
/// difference.
fn of_tables(listing: Listing<'_>) -> Option<Shrink> {
    let missing = listing.message.budget().missing_bytes?;
    let smallest = listing.allocations.iter().map(|row| row.taken_bytes()).filter(|taken| *taken > missing).min()?;
    let percent = u64::try_from((u128::from(missing) * 100).div_ceil(u128::from(smallest))).ok()?;
    Some(Shrink { percent, is_of_temporaries: false, is_least: false })
}

/// Puts the job's own options first that are off, and would make its program smaller, before settings that would have to be
/// lowered and before a look inside.
pub(super) fn with_switches(mut advice: Vec<Recommendation>, listing: Listing<'_>) -> Vec<Recommendation> {
    let message = listing.message;
    let job = &message.job;
    let is_of_list = |piece: &Recommendation| {
        matches!(
            piece.finding,
            Finding::Memory(
                MemoryFinding::Settings { .. }
                    | MemoryFinding::Recompute { .. }
                    | MemoryFinding::LookInside { .. }
                    | MemoryFinding::EarlyAbort
            )
        )
    };
    let Some(at) = advice.iter().position(is_of_list) else { return advice };
    let inside = listing.allocations.iter().filter(|row| row.entry.section == Section::Allocations);
    let largest = inside.max_by_key(|row| row.taken_bytes()).and_then(|row| row.shape.as_ref()?.element_type());
    let is_wide = largest.is_none_or(|element| element == ElementType::F32);
    // A GPU that the text doesn't name may have no bfloat16.
    let has_bfloat = message.machine().is_none() || job.gpu.as_ref().is_some_and(Gpu::has_bfloat16);
    let is_trained = job.run == Some(Run::Training) && message.occasion() != Some(Occasion::Evaluation);
    let is_useful = |switch: &&Switch| match switch.kind {
        SwitchKind::Narrow => is_wide && has_bfloat,
        SwitchKind::Recompute => is_trained && !job.done.contains(&Done::Recomputed),
        _ => is_trained,
    };
    let switches: Vec<Switch> = job.switches.iter().filter(is_useful).cloned().collect();
    if switches.is_empty() {
        return advice;
    }
    let is_named = switches.iter().any(|switch| switch.kind == SwitchKind::Recompute);
    let finding = Finding::Memory(MemoryFinding::Switches(switches));
    advice.insert(at, Recommendation::new(finding, Target::Process, message.framework));
    // A checkpoint by its option.
    advice.retain(|piece| !(is_named && matches!(piece.finding, Finding::Memory(MemoryFinding::Recompute { .. }))));
    advice
}
