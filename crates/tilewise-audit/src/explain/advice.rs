//! What to do, best first: each piece of advice with what it frees, or at most frees.

use super::{kernel, run_time};
use crate::{
    advice::{Change, MESSAGE_RULES, MessageModel, Recommendation, Target},
    message::Listing,
    program::bytes_in_words,
};
use tilewise_oom::{Budget, Form, Framework, Verdict};

/// The most that is recommended: readers stop here.
const MOST: usize = 4;

/// A change matters if it frees a tenth of what is missing, and a hundredth of what is used.
const OF_MISSING: u128 = 10;
const OF_USED: u128 = 100;
/// Beside the best, a twentieth of it is not worth a line.
const OF_BEST: u128 = 20;

/// What to do about a message of a program that ran out of memory.
pub(super) fn advice(listing: Listing<'_>) -> Vec<Recommendation> {
    let message = listing.message;
    let model = MessageModel::new(listing);
    let framework = model.framework;
    match message.verdict() {
        Verdict::Spills => kernel::spills(listing, framework),
        Verdict::KernelMemory => kernel::of(listing, framework),
        Verdict::Reservation | Verdict::Fragmentation if message.form == Form::RunTime => {
            run_time::of(message, framework)
        }
        Verdict::Unknown => vec![run_time::unknown(message)],
        verdict => program(&model, verdict),
    }
}

/// About a program that does not fit into HBM.
fn program(message: &MessageModel<'_>, verdict: Verdict) -> Vec<Recommendation> {
    let MessageModel { listing, budget, framework, .. } = message;
    let matters = |piece: &Recommendation| {
        let saved = u128::from(piece.saving.bytes().unwrap_or_default());
        saved * OF_MISSING >= u128::from(budget.missing_bytes.unwrap_or_default())
            && saved * OF_USED >= u128::from(budget.used_bytes.unwrap_or_default())
            && saved > 0
    };
    let mut advice: Vec<Recommendation> = MESSAGE_RULES.iter().flat_map(|rule| rule.recommend(message)).collect();
    advice.retain(matters);
    let best = advice.iter().filter_map(|piece| piece.saving.bytes()).max().unwrap_or_default();
    advice.retain(|piece| u128::from(piece.saving.bytes().unwrap_or_default()) * OF_BEST >= u128::from(best));
    // Stable: of equals, what the caller hands over comes first, then what keeps every value.
    // If padding is the cause, what works on padding comes first.
    let works_on_padding = |piece: &Recommendation| match piece.change {
        Change::Chunk | Change::Checkpoint | Change::Donate => false,
        Change::Narrow => piece.target == Target::Compiler,
        _ => true,
    };
    let is_beside = |piece: &Recommendation| verdict == Verdict::Padding && !works_on_padding(piece);
    advice.sort_by_key(|piece| (is_beside(piece), std::cmp::Reverse(piece.saving.bytes())));
    let are_most = |arguments: u64| arguments > budget.used_bytes.unwrap_or_default() / 2;
    let is_size = verdict == Verdict::Size && budget.argument_bytes.is_some_and(are_most);
    if verdict == Verdict::Arguments || is_size {
        advice.insert(0, shard(budget, *framework));
    }
    advice.truncate(MOST);
    if listing.message.form == Form::Cores {
        return vec![run_time::cores(listing.message)];
    }
    let is_bare = listing.allocations.is_empty();
    if listing.message.form == Form::Allocation && advice.is_empty() {
        advice.extend(one_array(budget, *framework));
    }
    if listing.message.form == Form::EarlyAbort && is_bare {
        let sentence =
            "Let the compiler go on and list what is largest: it gave up early, and its figure is an estimate";
        let flag = "export LIBTPU_INIT_ARGS=\"--xla_tpu_impure_oom_fast_exit_threshold=-1\"";
        advice.push(Recommendation::new(Change::Audit, Target::Compiler, sentence).snippet(None, flag));
    }
    if advice.is_empty() || is_bare {
        advice.push(look_inside(*framework, is_bare, budget));
    }
    advice
}

/// What the message itself does not tell.
fn look_inside(framework: Framework, is_bare: bool, budget: &Budget) -> Recommendation {
    let why =
        if is_bare { "the message lists no arrays" } else { "nothing that the message lists tells what would help" };
    let sentence = format!(
        "Dump the program and run `tilewise audit DIR`, which says what owns the peak: {why}{}",
        shrink(budget).unwrap_or_default()
    );
    let code = match framework {
        Framework::TensorFlow => "TF_XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" python train.py",
        _ => "XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" python train.py",
    };
    Recommendation::new(Change::Audit, Target::Process, sentence).snippet(None, code)
}

/// More than this, in percent, no smaller batch brings.
const MOST_OF_BATCH: u128 = 60;

/// By how much, rounded up, and how.
fn shrink(budget: &Budget) -> Option<String> {
    let missing = budget.missing_bytes?;
    let (what, of) = match (budget.temporary_bytes.filter(|bytes| *bytes > missing), budget.used_bytes) {
        (Some(temporaries), _) => ("The temporaries have", temporaries),
        (None, used) => ("What is needed has", used?),
    };
    let percent = (u128::from(missing) * 100).div_ceil(u128::from(of.max(1)));
    let how = if percent <= MOST_OF_BATCH {
        "try a smaller batch meanwhile"
    } else {
        "an array that should be divided between devices is likelier than a batch that is too large"
    };
    (missing > 0 && percent < 100).then(|| format!(". {what} to shrink by {percent} %: {how}"))
}

/// Where one array is larger than the memory, and nothing tells which.
fn one_array(budget: &Budget, framework: Framework) -> Option<Recommendation> {
    let capacity = budget.capacity_bytes?;
    let of = budget.used_bytes.map(|used| format!(" of {}", bytes_in_words(used))).unwrap_or_default();
    let sentence = format!(
        "Shard the array, or what it is computed from: one array{of} alone is larger than the memory, so it is most \
         likely replicated where a sharding annotation is missing"
    );
    let found = Recommendation::new(Change::Shard, Target::Value, sentence);
    // So many that there is room beside it.
    let enough = |used: u64| used.div_ceil(capacity.max(1)).saturating_add(1).checked_next_power_of_two();
    let devices = budget.used_bytes.and_then(enough);
    let devices = devices.map_or_else(|| "jax.device_count()".to_owned(), |devices| devices.to_string());
    Some(match framework {
        Framework::Jax => found.snippet(
            "import jax\nfrom jax.sharding import NamedSharding, PartitionSpec",
            format!(
                "mesh = jax.make_mesh(({devices},), ('x',))\n\
                 x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec('x')))"
            ),
        ),
        _ => found,
    })
}

/// Where the arguments alone do not fit.
fn shard(budget: &Budget, framework: Framework) -> Recommendation {
    let taken = budget.argument_bytes.unwrap_or_default();
    // Half of the memory is for the program itself.
    let least = |capacity: u64| taken.saturating_mul(2).div_ceil(capacity.max(1)).max(2);
    let devices = budget.capacity_bytes.map_or(2, least);
    let devices = devices.checked_next_power_of_two().unwrap_or(devices);
    let sentence = format!(
        "Divide the arguments, {}, between devices: {} on each of {devices} leave room for the program; or keep them \
         in a narrower type (bf16, int8), or optimizer state in the host's memory",
        bytes_in_words(taken),
        bytes_in_words(taken / devices)
    );
    let found = Recommendation::new(Change::Shard, Target::Argument, sentence);
    match framework {
        Framework::Jax => found.snippet(
            "import jax\nfrom jax.sharding import NamedSharding, PartitionSpec",
            format!(
                "mesh = jax.make_mesh(({devices},), ('x',))\n\
                 params = jax.device_put(params, NamedSharding(mesh, PartitionSpec('x')))"
            ),
        ),
        Framework::TorchXla => found.snippet(
            "from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel",
            "model = XlaFullyShardedDataParallel(model)",
        ),
        _ => found,
    }
}
