//! Memory that others hold while a program runs, and messages that tell of no arrays.

use crate::{
    advice::{Change, Recommendation, Saving, Target, snippet},
    program::size_in_words,
};
use tilewise_oom::{Form, Framework, Message, PrintedSize, Verdict};

/// A program that compiled, but for which there was no room.
pub(super) fn of(message: &Message, framework: Framework) -> Vec<Recommendation> {
    let asked = message.used.as_ref().map(size_in_words).unwrap_or_default();
    let free =
        message.limit.as_ref().map(size_in_words).map(|free| format!(" where {free} are free")).unwrap_or_default();
    if message.verdict() == Verdict::Fragmentation {
        let sentence = format!(
            "Free arrays before this program is loaded, load the largest programs first, allocate what stays before \
             what comes and goes, and donate arguments, so that results take their place: {asked} are needed in one \
             piece"
        );
        return vec![release(Recommendation::new(Change::Free, Target::Process, sentence), framework)];
    }
    let sentence = format!(
        "See what else is in memory: {asked} are asked for{free}. Arrays that Python still refers to (old states, \
         results kept in a list, a second copy of the parameters), other compiled programs, and other processes on the \
         chip count; donated arguments are freed early{}",
        message.facts.text("graph_output").map_or_else(String::new, |size| format!(
            ". This program's own results take {}: look at what it returns first",
            size.trim_end_matches('.')
        ))
    );
    let mut advice = vec![release(Recommendation::new(Change::Free, Target::Process, sentence), framework)];
    let persistent = |name: &str| message.persistent.iter().find(|row| row.name == name);
    if let Some(row) = persistent("output").filter(|row| row.padding_bytes().is_some_and(|padding| padding > 0)) {
        let sentence = format!(
            "Return less, or arrays whose last dimensions fill their tiles: results take {} between runs, {:.1} % of \
             it data",
            size_in_words(&row.size),
            row.percent.unwrap_or_default()
        );
        advice.push(
            Recommendation::new(Change::Reshape, Target::Result, sentence)
                .saving(Saving::AtMost(row.padding_bytes().unwrap_or_default())),
        );
    }
    let is_program = message.module.is_some() || message.requirement.is_some();
    let smaller = if is_program {
        "Make the program itself smaller: fewer samples at once, a checkpoint around layers"
    } else {
        "Ask for less at once: fewer samples, or arrays divided between devices"
    };
    let smaller = format!(
        "{smaller}; a server can plan with less of the memory, and leave room for programs (in vLLM a lower \
         `--gpu-memory-utilization`)"
    );
    advice.push(Recommendation::new(Change::Chunk, Target::Value, smaller));
    advice
}

fn release(piece: Recommendation, framework: Framework) -> Recommendation {
    match framework {
        Framework::Jax => piece.snippet(
            snippet::JAX,
            "for a in sorted(jax.live_arrays(), key=lambda a: -a.nbytes)[:20]: print(a.nbytes, a.shape, a.dtype)\n\
             jax.clear_caches()  # drops compiled programs that are not needed any more",
        ),
        Framework::TorchXla => piece.snippet(
            "import torch_xla.core.xla_model as xm",
            "xm.mark_step()\nprint(xm.get_memory_info(xm.xla_device()))",
        ),
        _ => piece,
    }
}

/// Both kinds of core in one memory.
pub(super) fn cores(message: &Message) -> Recommendation {
    let of = |name: &str| message.usage.as_ref().and_then(|usage| usage.get(name));
    let bytes = |name: &str| of(name).map_or(0, PrintedSize::bytes);
    let size = |name: &str| of(name).map(size_in_words).unwrap_or_default();
    let sentence = if bytes("SparseCore") > bytes("TensorCore") {
        format!(
            "Divide the embedding tables between more devices, lower `max_ids_per_partition`, \
             `max_unique_ids_per_partition` and the batch, and widen tables of fewer than 8 columns, whose rows are \
             padded to 32 bytes: the SparseCores need {} of it",
            size("SparseCore")
        )
    } else {
        format!(
            "Dump the program and run `tilewise audit DIR`, which says what owns the peak: the TensorCore needs {} of \
             it",
            size("TensorCore")
        )
    };
    Recommendation::new(Change::Shard, Target::Argument, sentence)
}

/// A core that stopped: why, by the signs that <https://openxla.org/xla/errors/error_0200> lists.
fn core_halt(message: &Message) -> Recommendation {
    const PAGE: &str = "see https://openxla.org/xla/errors/error_0200";
    let facts = &message.facts;
    let has = |name: &str| facts.get(name).is_some();
    let words = if has("bounds_check") {
        "Check the indices of your own kernels (`pl.debug_print`, `checkify`) and that sharding annotations fit the shapes: a \
         copy went out of its array's bounds"
    } else if has("semaphore") {
        "Pair every semaphore signal of the kernel with a wait, and wait for every copy that it starts: one was left over at \
         its end"
    } else if has("launch") {
        "Run the same program on all hosts, with the same `XLA_FLAGS`, image and libtpu: the cores run different programs"
    } else {
        match facts.text("observed") {
            Some("Hardware" | "Network" | "Power") => {
                "Try again, and take the host out if it fails again: the machine failed"
            }
            Some("User") => {
                "Report it to XLA with a dump of the program: the compiler made an instruction that the core refuses"
            }
            _ => {
                "Look for `observed errors are`, `BoundsCheck`, `scheck` or `Semaphore` in the log: each has its own cause"
            }
        }
    };
    Recommendation::new(Change::None, Target::Process, format!("{words}; {PAGE}"))
}

/// A message that tells of no memory.
pub(super) fn unknown(message: &Message) -> Recommendation {
    if message.form == Form::CoreHalt {
        return core_halt(message);
    }
    let sentence = match message.code.as_deref() {
        Some(code) => {
            let number = code.trim_start_matches('E');
            format!("See https://openxla.org/xla/errors/error_{number}; sizes and layouts of arrays are not the cause")
        }
        _ => "Paste the whole text of the error, from RESOURCE_EXHAUSTED on, with the list of allocations".to_owned(),
    };
    Recommendation::new(Change::None, Target::Process, sentence)
}
