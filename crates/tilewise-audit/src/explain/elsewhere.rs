//! Machines without tiles: GPUs, hosts, Tenstorrent's.

use super::holders::{holders, of_any};
use crate::{
    advice::{
        Target, conversion,
        finding::{
            Asker,
            ElsewhereFinding::{self, *},
            Finding, Holders, LargestBuffer, RunTimeFinding, Transform, WholeArray,
        },
    },
    message::{Allocation, Listing},
};
use tilewise::ElementType;
use tilewise_oom::{
    Done, Form, Framework, InputKind, InputOption, Message, Occasion, OomVerdict, PrintedSize, Product, Reason, Run,
    Section, Server, Setting, UntiledMachine,
};

pub(super) fn findings(listing: Listing<'_>) -> Vec<(Finding, Target)> {
    let target = |finding: &ElsewhereFinding| match finding {
        Smaller(_)
        | TorchCheckpoint
        | TorchLess { .. }
        | Whole(_)
        | TorchSave { .. }
        | OptimizerState
        | TorchCollection
        | HostCollection
        | HostShuffle(_)
        | NoGradients
        | Mapped(_)
        | Matrix(_)
        | TorchGrowth
        | HostGrowth(_)
        | HostShared
        | HostCompilation
        | HostPrograms
        | HostInputs(_)
        | HostCopies(_)
        | HostConversion(_)
        | HostPerUnit { .. }
        | HostState(_)
        | SmallerWorkspace
        | SmallerOperand { .. }
        | OffloadLess => Target::Value,
        Bank { .. } | SharedMemory { .. } | OtherKernel | Implementation(_) => Target::Kernel,
        AnyAlgorithm | NoAutotuning => Target::Compiler,
        _ => Target::Process,
    };
    let is_held = matches!(listing.message.reason(), Reason::Tiny | Reason::Small | Reason::Results);
    if is_held && listing.message.machine() == Some(UntiledMachine::Unnamed) {
        return super::run_time::on_any_device(listing.message);
    }
    let mut found = with_settings_of_pool(of_machine(listing), listing.message);
    // Neither a batch nor arrays of earlier steps are there yet, nor a server's cache.
    let is_of_batch = |finding: &ElsewhereFinding| {
        matches!(
            finding,
            Holders(Holders { arrays: true, .. } | Holders { program: true, .. })
                | ServerPrograms { .. }
                | ServerBeside { .. }
                | TorchCheckpoint
                | TorchLess { .. }
        )
    };
    let is_there = |finding: &ElsewhereFinding| is_of_batch(finding) || matches!(finding, OldArrays { .. });
    let asker = Asker::of_weights(listing.message).filter(|_| found.iter().any(is_there));
    if asker.is_some() {
        found.retain(|finding| !is_of_batch(finding));
    }
    let of_weights = |asker| Finding::RunTime(RunTimeFinding::AskLess { asker, shrink: None });
    let weights = asker.map(|asker| (of_weights(asker), Target::Argument));
    let is_unlisted = listing.allocations.is_empty() && listing.message.job.enables_x64;
    let is_of_arrays = |finding: &ElsewhereFinding| matches!(finding, Smaller(_) | Holders(_) | Mapped(_) | Matrix(_));
    if found.iter().any(is_of_arrays) && (are_doubles(listing) || is_unlisted) {
        // A change comes before a look.
        let at = usize::from(!matches!(found[0], Holders(_)));
        found.insert(at, Doubles { is_listed: !is_unlisted });
    }
    let is_shrunk = found.iter().any(|finding| matches!(finding, Smaller(_) | Holders(_)));
    let copy = largest(listing).filter(|_| is_shrunk).and_then(conversion);
    let copy = copy.map(|copy| (Finding::ConvertedArguments(copy), Target::Argument));
    // Fewer samples don't make a copy of a weight smaller.
    let is_most = || largest(listing).zip(listing.message.budget().temporary_bytes);
    let is_most = copy.is_some() && is_most().is_some_and(|(row, all)| row.taken_bytes() > all / 2);
    let found = found.into_iter().filter(|finding| !(is_most && matches!(finding, Smaller(_)))).map(|finding| {
        let target = target(&finding);
        (Finding::Elsewhere(finding), target)
    });
    let pool = &listing.message.job.pool;
    // A small request that fails where a script imports it only to read data.
    let reason = listing.message.reason();
    let is_held = is_held || matches!(reason, Reason::Library | Reason::Handle | Reason::Taken | Reason::Ungrown);
    let lets = pool.lets_tensorflow || pool.imports_tensorflow && is_held;
    let beside = pool.tensorflow_bytes.map(Some).or(lets.then_some(None)).filter(|_| {
        let is_gpu = listing.message.machine().is_some_and(|machine| machine != UntiledMachine::Host);
        listing.message.framework == Some(Framework::Jax) && is_gpu
    });
    let beside = beside.map(|bytes| (Finding::Elsewhere(TensorFlowBeside(bytes)), Target::Process));
    let is_of_device = listing.message.machine() != Some(UntiledMachine::Host);
    let whole = super::run_time::whole_state(listing.message).filter(|_| is_of_device);
    let whole = whole.map(|finding| (Finding::RunTime(finding), Target::Argument));
    beside.into_iter().chain(whole).chain(copy).chain(weights).chain(found).collect()
}

/// The largest array inside the program.
fn largest<'a>(listing: Listing<'a>) -> Option<&'a Allocation> {
    let inside = listing.allocations.iter().filter(|row| row.entry.section == Section::Allocations);
    // Of equal ones a name tells more.
    inside.max_by_key(|row| (row.taken_bytes(), !row.op_name().is_empty()))
}

/// Fewer elements than these aren't too many to shuffle.
const FEW_ELEMENTS: u64 = 100_000;

fn of_machine(listing: Listing<'_>) -> Vec<ElsewhereFinding> {
    let message = listing.message;
    let fact = |name| message.facts.size(name).map(PrintedSize::bytes);
    match message.form {
        Form::SharedMemory => {
            if let Some(option) = super::library::implementation(message) {
                return vec![Implementation(option.clone())];
            }
            let other = Some(OtherKernel).filter(|_| !message.named.own_kernel);
            let mut found: Vec<_> = [shared_memory(message)].into_iter().chain(other).collect();
            // Code without a kernel calls a library's.
            if message.named.other_code {
                found.reverse();
            }
            return found;
        }
        Form::Autotuning if !message.lacks_workspace() => return vec![NoAutotuning, OtherKernel],
        Form::Autotuning => match message.operand() {
            // Whatever the algorithm, its operands have to be there.
            Some(shape) => return vec![SmallerOperand { shape }],
            None => return vec![SmallerWorkspace, AnyAlgorithm],
        },
        Form::GpuRetry if message.refusal().is_some() => return vec![OfReason(Reason::Refused)],
        Form::GpuRetry if message.facts.get("pinned").is_some() => {
            // More room only delays the end of a job that grows.
            let growth = message.job.grows.then(|| HostGrowth(message.job.rise.clone()));
            return growth.into_iter().chain([Pinned]).collect();
        }
        Form::GpuRetry => return vec![NoFailure(message.facts.text("error").map(str::to_owned))],
        Form::HostWarning => return vec![LargePart],
        Form::HostPool => {
            let asked = message.used.as_ref().map(PrintedSize::bytes);
            return vec![HostPool { gigabytes: message.facts.number("pool_gigabytes"), asked }, OffloadLess];
        }
        _ => {}
    }
    // A server that calls CUDA itself has no program of XLA's.
    let is_of_runtime = message.server.is_some() && message.facts.get("call").is_some();
    match message.reason() {
        Reason::Bank(cause) => {
            vec![Bank { cause, bytes: fact("needed").zip(fact("bank")).map(|(needed, bank)| [needed, bank]) }]
        }
        reason @ (Reason::Host | Reason::Group | Reason::Killed | Reason::Workers) => {
            let occasion = message.occasion().filter(|work| matches!(work, Occasion::Load | Occasion::Save));
            let limit = message.job.host.limit.clone().filter(|_| reason == Reason::Group);
            let is_in_vain = message.job.host.is_limit_in_vain;
            let of_reason = if is_in_vain { HostInVain } else { OfReason(reason) };
            let limit = limit.filter(|_| !is_in_vain).map_or(of_reason, |(option, value)| HostLimit {
                option,
                value,
                job: message.facts.number("slurm_job"),
            });
            let is_evaluated = matches!(message.occasion(), Some(Occasion::Evaluation | Occasion::Collection));
            let is_of_torch = matches!(message.framework, Some(Framework::Torch) | None);
            let collected = Some(HostCollection).filter(|_| is_evaluated && is_of_torch);
            // Each of several processes has a copy of what the first one loads.
            let processes = message.job.host.processes;
            let are_copies = occasion.is_none()
                && reason != Reason::Workers
                && (processes.is_some() || message.job.host.starts_processes);
            let state = occasion.map(HostState).or(are_copies.then_some(HostCopies(processes)));
            let mut found: Vec<_> = state.into_iter().chain(collected).chain([limit]).collect();
            // The limit that a command sets is surer than what to hold less of.
            if matches!(found.last(), Some(HostLimit { .. })) {
                found.reverse();
            }
            let shuffled = message.job.host.shuffle_buffer.filter(|elements| *elements > FEW_ELEMENTS).map(HostShuffle);
            // Those of Ray are a training's own processes.
            let is_of_loader = found.len() == 1 && reason != Reason::Workers;
            let host = &message.job.host;
            let workers = (is_of_loader && host.workers.is_some() || host.lost_worker && !message.job.grows)
                .then_some(HostWorkers(host.workers));
            // More memory only delays the end of a job that grows; names of the work tell more.
            let is_unknown = workers.is_none() && (found.len() == 1 || matches!(found[0], OfReason(_) | HostCopies(_)));
            let programs = message.job.recompiles && message.framework == Some(Framework::Jax);
            let growth = || if programs { HostPrograms } else { HostGrowth(message.job.rise.clone()) };
            let growth = (message.job.grows && is_unknown).then(growth);
            // Pinned arrays, and what processes share, are counted apart.
            let held = ["resident", "of_files", "shared"].map(|name| fact(name).unwrap_or_default());
            let shared =
                (held[2] > held.iter().fold(0, |all: u64, one| all.saturating_add(*one)) / 2).then_some(HostShared);
            // Before a first step, with nothing else known of the host's arrays.
            let per_unit = host.per_unit.map(|per_unit| HostPerUnit { per_unit, converts: host.converts });
            let is_of_compiler = host.is_compiling && !message.job.has_run && occasion.is_none() && per_unit.is_none();
            let is_compiled = is_of_compiler && workers.is_none() && shuffled.is_none();
            let is_converted =
                host.converts && occasion != Some(Occasion::Save) && per_unit.is_none() && workers.is_none();
            let converted = is_converted.then_some(HostConversion(message.job.model));
            let compiled = (is_compiled && !is_converted).then_some(HostCompilation);
            // A pipeline holds data as a job runs, and a save or a load the state.
            let is_of_data = compiled.is_none() && per_unit.is_none() && shuffled.is_none();
            let is_of_stage = |option: &&InputOption| is_of_data && option.kind.is_of_state() == occasion.is_some();
            let inputs: Vec<_> = host.inputs.iter().filter(is_of_stage).cloned().collect();
            let is_less_sure = inputs.iter().all(|option| option.kind == InputKind::Async) && !found.is_empty();
            let mut inputs = (!inputs.is_empty()).then_some(HostInputs(inputs));
            if is_less_sure {
                found.splice(1..1, inputs.take());
            }
            // A job that keeps each part, or a data set, grows, too.
            let growth = growth.filter(|_| per_unit.is_none() && inputs.is_none());
            let largest = message.most_of_node().filter(|_| message.job.has_run);
            let largest = largest.map(|(command, figure)| HostLargest(command.to_owned(), figure.to_owned()));
            let program = host.program_bytes.filter(|_| occasion.is_none()).map(HostProgram);
            let first = largest
                .into_iter()
                .chain(program)
                .chain(per_unit)
                .chain(converted)
                .chain(inputs)
                .chain(growth)
                .chain(shared)
                .chain(compiled);
            let all: Vec<_> = first.chain(shuffled).chain(workers).chain(found).collect();
            // Without a cause, the first step finds one.
            let is_unknown = matches!(&all[..], [OfReason(Reason::Host)]);
            is_unknown.then_some(HostProcesses).into_iter().chain(all).collect()
        }
        reason if reason.is_of_host() || matches!(reason, Reason::BrokenContext | Reason::LateError) => {
            vec![OfReason(reason)]
        }
        _ if message.server == Some(Server::LlamaCpp) && message.framework.is_none() => {
            vec![LlamaLayers {
                layers: message.job.serving.gpu_layers,
                is_of_context: message.cause() == Some(OomVerdict::Size),
                is_of_batch: message.job.serving.lacks_compute_buffer,
            }]
        }
        _ if message.framework == Some(Framework::Torch) || is_of_runtime => super::torch::findings(message),
        _ if message.occasion() == Some(Occasion::Update)
            && message.framework == Some(Framework::TensorFlow)
            && !message.job.has_run =>
        {
            vec![OptimizerState]
        }
        _ if message.product.as_ref().is_some_and(Product::is_of_records) => vec![smaller(listing)],
        reason @ (Reason::Code | Reason::Library) => {
            let others = Holders { others: !message.job.is_alone, ..Holders::default() };
            [beside_pool(message, reason)].into_iter().chain(of_any(others)).collect()
        }
        reason @ Reason::Communicator => vec![beside_pool(message, reason)],
        Reason::OwnArrays(percent) => {
            let old = OldArrays { percent: Some(percent), has_run: message.job.has_run };
            let smaller = match smaller(listing) {
                // The last request of many tells nothing of its program.
                Holders(_) if !message.asks_much() => return vec![old],
                Holders(_) => Holders(Holders { program: true, ..Holders::default() }),
                smaller => smaller,
            };
            let mut found = [old, smaller];
            // A large request finds no room in an empty pool either, and a listed array is of the program's own, unless
            // steps found room for it before.
            let is_listed = matches!(found[1], Smaller(_)) && !message.job.has_run;
            if message.asks_much() || is_listed {
                found.reverse();
            }
            found.into()
        }
        Reason::Size => {
            let variable = message.job.pool.fraction.as_ref().map(|(name, _)| name.clone());
            let unified = unified(message).map(|tenths| UnifiedMemory { tenths, variable });
            let smaller = smaller(listing);
            // Without a list, what to make smaller is unknown.
            let is_unknown = matches!(smaller, Holders(_));
            let left = message.warned_of_rematerialization().and_then(|warning| warning.limit.as_ref());
            // Weights, and whatever else the process holds, stay beside it.
            let free = message.facts.size("free").map(PrintedSize::bytes).filter(|free| *free > 0);
            let room = |all: u64| left.map_or(all, |left| left.bytes().min(all)).min(free.unwrap_or(all));
            let times = message.used.as_ref().zip(message.device_bytes()).filter(|(asked, all)| asked.bytes() > *all);
            let times = times.map(|(asked, all)| asked.bytes().div_ceil(room(all).max(1)));
            let large = times.map(TooLarge).filter(|_| is_unknown && !message.job.done.contains(&Done::UnifiedMemory));
            let changes = large.into_iter().chain([smaller]);
            // A smaller batch takes no time.
            if is_unknown && !message.job.settings.iter().any(Setting::is_of_batch) {
                unified.into_iter().chain(changes).collect()
            } else {
                changes.chain(unified).collect()
            }
        }
        // Memory that others hold doesn't tell why a program makes as much.
        Reason::Results if message.asks_much() => vec![smaller(listing)],
        Reason::Arguments | Reason::MostlyFree | Reason::Unknown if makes_little(message) => {
            of_any(holders(message, false)).into_iter().collect()
        }
        Reason::Arguments | Reason::MostlyFree | Reason::Unknown => vec![smaller(listing)],
        // By the figures it isn't this process that has the rest.
        Reason::Taken | Reason::Ungrown if !message.job.is_alone => {
            vec![Holders(Holders { others: true, ..Holders::default() })]
        }
        Reason::Tiny | Reason::Small | Reason::Taken | Reason::Results | Reason::Ungrown => {
            of_any(holders(message, false)).into_iter().collect()
        }
        reason => vec![OfReason(reason)],
    }
}

/// The step for what finds no room beside the pool: a smaller fraction than the one that the text sets.
fn beside_pool(message: &Message, reason: Reason) -> ElsewhereFinding {
    match message.job.pool.fraction.clone() {
        Some((name, value)) => PoolFraction { name, value, is_raised: false, to: None },
        None => OfReason(reason),
    }
}

/// Whether most listed bytes are of floats of 64 bits.
fn are_doubles(listing: Listing<'_>) -> bool {
    let total = |is: &dyn Fn(&&Allocation) -> bool| {
        listing.allocations.iter().filter(is).map(Allocation::taken_bytes).fold(0, u64::saturating_add)
    };
    let is_double =
        |row: &&Allocation| row.shape.as_ref().is_some_and(|shape| shape.element_type() == Some(ElementType::F64));
    total(&is_double) > total(&|_| true) / 2
}

/// Adds the process's own settings of its pool. Where earlier steps ran, the program itself fits, so arrays that are still
/// alive replace smaller inputs. No setting makes room for more than the device has.
fn with_settings_of_pool(mut found: Vec<ElsewhereFinding>, message: &Message) -> Vec<ElsewhereFinding> {
    let is_unknown = |finding: &ElsewhereFinding| matches!(finding, Holders(holders) if holders.program);
    let need = message.pool_and_need().filter(|_| message.framework == Some(Framework::Jax));
    let is_said = |finding: &ElsewhereFinding| matches!(finding, Smaller(_) | OldArrays { .. }) || is_unknown(finding);
    let may_be_of_pool = match message.reason() {
        Reason::Size => need.is_some(),
        _ => found.iter().any(is_said),
    };
    let is_of_pool = matches!(message.form, Form::Gpu | Form::Device) && may_be_of_pool;
    if !is_of_pool {
        return found;
    }
    if message.job.has_run && found.iter().any(is_unknown) {
        found.retain(|finding| !is_unknown(finding));
        if !found.iter().any(|finding| matches!(finding, OldArrays { .. })) {
            found.insert(0, OldArrays { percent: None, has_run: true });
        }
    }
    let fraction = |(name, value): (&str, &str), to| PoolFraction {
        name: name.to_owned(),
        value: value.to_owned(),
        is_raised: true,
        to,
    };
    // More memory only delays the end of a job that grows, and a part that doesn't reach is no step.
    let raised = match need {
        _ if message.job.grows => None,
        Some([needed, limit]) => {
            let part = message.job.pool.raised(needed, limit);
            part.map(|(name, value, to)| fraction((name, value), Some(to)))
        }
        None => message.job.pool.small_fraction().map(|part| fraction(part, None)),
    };
    // Before the first step there are no pieces.
    let unpooled = message.job.pool.unpooled.clone().filter(|_| message.job.has_run);
    let unpooled = unpooled.map(|(name, value)| Unpooled(name, value));
    raised.into_iter().chain(unpooled).chain(found).collect()
}

/// Whether temporaries take less than a twentieth of arguments and results.
fn makes_little(message: &Message) -> bool {
    const LITTLE: u64 = 20;
    let budget = message.budget();
    let beside = [budget.argument_bytes, budget.output_bytes].into_iter().flatten().fold(0, u64::saturating_add);
    budget.temporary_bytes.is_some_and(|made| made < beside / LITTLE)
}

/// Smaller blocks of a kernel.
fn shared_memory(message: &Message) -> ElsewhereFinding {
    let figures = message.used.as_ref().zip(message.limit.as_ref());
    let percent = figures.map(|(used, limit)| limit.bytes().saturating_mul(100) / used.bytes().max(1));
    let fusion = message.facts.text("function").filter(|name| name.contains("fusion")).map(str::to_owned);
    let largest = message.block_sizes.iter().max_by_key(|each| each.size).cloned();
    SharedMemory { percent, fusion, largest, is_of_pallas: message.named.pallas, is_own: message.named.own_kernel }
}

/// The tenths of a GPU's memory that a process may take where it overflows into the host's; `None` where that is set already,
/// where a job trains, which would wait for the host in each step, and where the GPU's memory is unknown or far too small.
fn unified(message: &Message) -> Option<u64> {
    let is_of_structures = message.job.names.structures;
    let is_possible = (message.framework == Some(Framework::Jax) || is_of_structures)
        && message.machine() == Some(UntiledMachine::Gpu);
    // Few hosts have more beside it, and beside the request of what isn't known to be a model that runs lie arrays as large.
    let most = match message.job.run {
        _ if is_of_structures => 100,
        Some(Run::Inference) => 40,
        _ => 15,
    };
    let is_useful = !message.job.done.contains(&Done::UnifiedMemory) && message.job.run != Some(Run::Training);
    let total = message.usage.as_ref().map(|usage| usage.total.bytes());
    let asked = total.max(message.used.as_ref().map(PrintedSize::bytes))?;
    let warning = message.warned_of_rematerialization();
    let made = warning.and_then(|warning| warning.used.as_ref()).map_or(0, PrintedSize::bytes);
    // The warning's target is what arguments leave of the pool, three quarters of the memory.
    let warned = || Some(warning?.limit.as_ref()?.bytes() / 3 * 4);
    let all = message.device_bytes().or_else(warned)?;
    let tenths = asked.max(made).saturating_mul(12).div_ceil(all.max(1));
    (is_possible && is_useful && tenths <= most).then_some(tenths)
}

/// The only size of an array that prose counts something by.
fn counted(row: &Allocation, counts: &[u64]) -> Option<u64> {
    let bounds = row.shape.as_ref()?.dimensions().iter().filter_map(|dimension| dimension.bound());
    let mut found = bounds.filter(|bound| counts.contains(bound));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The size of an array's first dimension, behind that of `pmap`, of which a device has one.
fn rows(row: &Allocation) -> Option<u64> {
    let dimensions = row.shape.as_ref()?.dimensions();
    let is_mapped = row.op_name().contains("pmap(") && dimensions.first()?.bound() == Some(1);
    dimensions.get(usize::from(is_mapped))?.bound()
}

fn transform(op_name: &str) -> Option<Transform> {
    // The names of operations in TensorFlow's `GradientTape`.
    let signs = [("jvp(", Transform::Gradient), ("gradient_tape/", Transform::Gradient), ("vmap(", Transform::Map)];
    signs.into_iter().find_map(|(sign, transform)| op_name.contains(sign).then_some(transform))
}

/// Whether an operation makes random bits, outside of a gradient.
fn is_random(op_name: &str) -> bool {
    let is_of_bits = |name: &str| ["threefry2x32", "random_bits", "rng_bit_generator"].contains(&name);
    op_name.split('/').any(is_of_bits) && transform(op_name) != Some(Transform::Gradient)
}

fn smaller(listing: Listing<'_>) -> ElsewhereFinding {
    let is_mapped = listing.allocations.is_empty() && listing.message.product.as_ref().is_none_or(Product::is_square);
    if let Some(function) = listing.message.job.mapped.clone().filter(|_| is_mapped) {
        return Mapped(function);
    }
    if let Some(derivatives) = listing.message.job.derivatives.filter(|_| listing.allocations.is_empty()) {
        return Matrix(derivatives);
    }
    if let Some(product) = &listing.message.product {
        return Whole(WholeArray::of_sizes(product, listing.message.job.names));
    }
    let Some(row) = largest(listing) else {
        return Holders(holders(listing.message, true));
    };
    let own = row.source.as_ref().filter(|source| !source.is_installed());
    let line = own.map(|source| [&*source.file, &source.line.to_string()].join(":"));
    let name = Some(row.op_name()).filter(|name| !name.is_empty()).map(str::to_owned);
    // A name may lack the transformation that the reader's own line has.
    let line_of_call = listing.message.raised_at.as_ref().and_then(|frame| frame.code.as_deref());
    Smaller(LargestBuffer {
        owner: line.or(name),
        bytes: row.taken_bytes(),
        rows: counted(row, &listing.message.job.counts).or_else(|| rows(row)),
        is_random: is_random(row.op_name()),
        transform: transform(row.op_name()).or_else(|| transform(line_of_call?)),
    })
}
