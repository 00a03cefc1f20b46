//! Advice on messages that aren't judged by the contents of a TPU's memory: warnings, logs, kernels that can't be
//! compiled, other machines.

use super::{advice, elsewhere, mismatch::Mismatch, mosaic};
use crate::{
    advice::{
        Recommendation, Saving, Target,
        finding::{
            CacheFinding, DonationFinding, ElsewhereFinding, Finding, PlacementFinding, ReplicatedArray,
            RunTimeFinding, WholeArray,
        },
    },
    message::Listing,
};
use tilewise_oom::{Form, Framework, Message, OomVerdict, Product, Resource, UntiledMachine};

/// Maximum bytes that are too few to matter.
const SMALL: u64 = 1 << 20;

/// Advice on a message of one of these families; `None` for others.
pub(super) fn answers(listing: Listing<'_>, mismatch: Option<&Mismatch>) -> Option<Vec<Recommendation>> {
    let message = listing.message;
    // A process of the host need not run JAX.
    let is_of_host = message.machine() == Some(UntiledMachine::Host);
    let framework = message.framework.or((!is_of_host).then_some(Framework::Jax));
    let new = |finding, target| Recommendation::new(finding, target, framework);
    Some(match (message.form, message.verdict()) {
        (Form::CachePage, _) => vec![new(Finding::Cache(CacheFinding::PaddedHeads), Target::Process)],
        (Form::CacheRoom, _) if message.facts.get("prefill").is_some() => {
            let has_cause = message.facts.get("cause").is_some();
            vec![new(Finding::Cache(CacheFinding::WarmUp(has_cause)), Target::Process)]
        }
        (Form::CacheRoom, _) => {
            vec![new(Finding::Cache(CacheFinding::LongRequests(message.facts.number("length"))), Target::Process)]
        }
        (Form::CacheFull, _) => vec![new(Finding::Cache(CacheFinding::Full), Target::Process)],
        (_, OomVerdict::InputMismatch) => mismatch.map(|mismatch| mismatch.advice(message)).into_iter().collect(),
        (_, OomVerdict::Mosaic) => {
            let findings = mosaic::findings(message).into_iter();
            findings.map(|finding| new(Finding::Mosaic(finding), Target::Kernel)).collect()
        }
        (_, OomVerdict::Donation) => donation(listing),
        (_, OomVerdict::HostPlacement) => {
            let mut found = [PlacementFinding::Host, PlacementFinding::Device]
                .map(|it| new(Finding::Placement(it), Target::Result));
            if message.job.host.is_left {
                found.reverse();
            }
            found.into()
        }
        (_, OomVerdict::HostCompute) => {
            vec![new(Finding::Placement(PlacementFinding::BeforeUse), Target::Value)]
        }
        (_, OomVerdict::Resharding) => vec![new(Finding::Replicated(replicated(message)), Target::Value)],
        (_, OomVerdict::OtherResource) => {
            let finding = |resource| match resource {
                // Constants make a program's text long.
                Resource::Protobuf if message.facts.text("proto").is_none_or(|name| name.contains("Hlo")) => {
                    RunTimeFinding::ClosedOver
                }
                resource => RunTimeFinding::OtherResource(resource),
            };
            let other = |resource| new(Finding::RunTime(finding(resource)), Target::Process);
            message.resource().map(other).into_iter().collect()
        }
        (_, OomVerdict::CompilerCheck) if message.facts.text("ended").is_some() => {
            vec![new(Finding::RunTime(RunTimeFinding::FatalCheck), Target::Process)]
        }
        (_, OomVerdict::CompilerCheck) => {
            let is_of_gpu = message.facts.text("place").is_some_and(|place| place.contains("/gpu/"));
            vec![new(Finding::RunTime(RunTimeFinding::CompilerCheck { is_of_gpu }), Target::Compiler)]
        }
        (_, OomVerdict::RematLimit) => {
            // Where arguments and results exceed the memory, what the program keeps beside them decides nothing.
            vec![match message.facts.size("below_zero") {
                Some(_) => new(Finding::ReplicatedState, Target::Argument),
                None => new(Finding::ExhaustedRematerialization, Target::Value),
            }]
        }
        (Form::BufferAssignment, OomVerdict::Fits) => vec![new(Finding::BufferAssignment, Target::Process)],
        (_, OomVerdict::Fits) => Vec::new(),
        (_, OomVerdict::NotTpu) if message.cause() == Some(OomVerdict::Arguments) && is_gpu(listing) => {
            let results = results(message).map(|(finding, freed)| new(finding, Target::Result).saving(freed));
            let told = |product: &Product| product.is_of_records() || product.is_square();
            let whole = message.product.clone().filter(told).map(WholeArray::Product);
            // A request for nearly as much as arguments and results together is for a result, and no argument is as large.
            let counted = message.others.iter().find(|other| other.form == Form::GpuArguments);
            let asked = message.used.as_ref().zip(counted.and_then(|other| other.used.as_ref()));
            let is_result = asked.is_some_and(|(asked, all)| asked.bytes() / 9 >= all.bytes() / 10);
            let whole = whole.or(is_result.then_some(WholeArray::Unknown));
            let whole = whole.map(|array| new(Finding::Elsewhere(ElsewhereFinding::Whole(array)), Target::Argument));
            let replicated = Some(new(Finding::ReplicatedState, Target::Argument)).filter(|_| whole.is_none());
            whole.into_iter().chain(results).chain(replicated).collect()
        }
        (_, OomVerdict::NotTpu) => {
            let results = results(message).map(|(finding, freed)| new(finding, Target::Result).saving(freed));
            let findings = elsewhere::findings(listing).into_iter().map(|(finding, target)| new(finding, target));
            results.into_iter().chain(findings).collect()
        }
        _ => return None,
    })
}

/// The finding that the results take more than all else, or, of a program that is too large by itself, more than a third; and
/// their bytes.
fn results(message: &Message) -> Option<(Finding, Saving)> {
    let (parts, budget) = (if message.cause() == Some(OomVerdict::Size) { 3 } else { 2 }, message.budget());
    let finding = advice::results(&budget, parts)?;
    Some((Finding::Memory(finding), Saving::AtMost(budget.output_bytes?)))
}

fn replicated(message: &Message) -> ReplicatedArray {
    let sharding = |field| message.facts.text(field).map(str::to_owned);
    ReplicatedArray { array: message.resharding(), from: sharding("from"), to: sharding("to") }
}

/// Advice on donated arrays that couldn't be reused for a result.
fn donation(listing: Listing<'_>) -> Vec<Recommendation> {
    if listing.message.facts.text("platform").is_some() {
        return Vec::new();
    }
    let held = listing.allocations.iter().map(|row| row.taken_bytes()).fold(0, u64::saturating_add);
    let new = |finding, target| Recommendation::new(Finding::Donation(finding), target, Some(Framework::Jax));
    let only = new(DonationFinding::OnlyState, Target::Argument);
    if is_small(listing) {
        return vec![only];
    }
    let saving = if held > 0 { Saving::AtMost(held) } else { Saving::Unknown };
    vec![new(DonationFinding::State, Target::Result).saving(saving), only]
}

/// Whether donated arrays that are held twice are too small to matter.
pub(super) fn is_small(listing: Listing<'_>) -> bool {
    let held = listing.allocations.iter().map(|row| row.taken_bytes()).fold(0, u64::saturating_add);
    held <= SMALL && !listing.allocations.is_empty()
}

fn is_gpu(listing: Listing<'_>) -> bool {
    let is_other = matches!(listing.message.machine(), Some(UntiledMachine::Host | UntiledMachine::Tenstorrent));
    !is_other && listing.message.framework != Some(Framework::Torch)
}
