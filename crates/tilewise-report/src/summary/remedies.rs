//! Remedies without a price: they change the computation or its place, which no plan of the program shows.

use crate::style::bytes;
use tilewise_audit::{
    AxisName, Machine, Meaning, PeakGroup, PeakRow, Purpose, Report, Width, recommendation::finding::SmallerBatch,
};

/// Whether a loop stacks the arrays of a group over its steps.
pub(super) fn is_stacked(group: &PeakGroup<'_>) -> bool {
    let has_steps =
        |row: &&&PeakRow| row.axes.iter().any(|axis| matches!(axis.name, AxisName::Steps | AxisName::Layers));
    2 * group.rows.iter().filter(has_steps).count() > group.rows.len()
}

/// Whether a loop that stacks arrays is one of a gradient's: names of operations tell it, or aren't there.
fn is_differentiated(group: &PeakGroup<'_>) -> bool {
    let mut names = group.rows.iter().filter_map(|row| row.op_name.as_deref()).peekable();
    names.peek().is_none() || names.any(|name| name.contains("jvp(") || name.contains("transpose("))
}

/// Whether the largest array of a group has two equal dimensions of many: pairs of samples, of which fewer are another loss.
fn is_of_pairs(group: &PeakGroup<'_>) -> bool {
    const MANY: u64 = 1024;
    let sizes = group.rows.first().and_then(|row| row.shape.bounds()).unwrap_or_default();
    sizes.iter().enumerate().any(|(at, size)| *size >= MANY && sizes[..at].contains(size))
}

/// The remedy that keeps every value: parts of what is made and used once.
const IN_PARTS: &str = "Make these arrays in parts, and use each part before the next is made";

/// The remedy for what a loop stacks up for the gradient, where the loop may be a library's.
const OF_STEPS: &str = "Keep less of the loop's steps for the gradient: `jax.checkpoint` around its step, or an option of the library whose loop it \
                        is, such as an adjoint that recomputes";

/// The task that makes the arrays of a group take less, in the imperative; `None` for arrays that are held twice, whose changes
/// have a price. What changes results stands last, and says so.
pub(super) fn remedy(group: &PeakGroup<'_>, report: &Report) -> Option<&'static str> {
    let purpose = match group.meaning {
        Meaning::Purpose(purpose) => purpose,
        Meaning::Padding(_) => {
            return Some(
                "Merge the short dimension with a longer one (a reshape), or keep its slices as arrays of their own",
            );
        }
        _ => return None,
    };
    let width = group.width();
    Some(match purpose {
        Purpose::Parameter => match (width, report.has_gradient()) {
            (Width::Byte, _) | (Width::Half, true) => "Shard the parameters over more devices",
            (Width::Full, true) => {
                "Shard the parameters over more devices (in bfloat16 they take half, and results change)"
            }
            (Width::Half, false) => {
                "Shard the parameters over more devices (in int8 they take half, and results change)"
            }
            (Width::Full, false) => {
                "Shard the parameters over more devices (in bfloat16 they take half, in int8 a quarter, and results \
                 change)"
            }
        },
        Purpose::OptimizerState if width < Width::Full => {
            "Shard the optimizer's state over the devices that have the same parameters (ZeRO, FSDP), or keep it in the \
             host's memory between updates (Adafactor and Lion keep less, and results change)"
        }
        Purpose::OptimizerState => {
            "Shard the optimizer's state over the devices that have the same parameters (ZeRO, FSDP), or keep it in the \
             host's memory between updates (bfloat16, Adafactor and Lion keep less, and results change)"
        }
        Purpose::Cache if width == Width::Byte => "Bound the cache's length, or shard it over heads or sequences",
        Purpose::Cache => {
            "Bound the cache's length, or shard it over heads or sequences (int8 and float8 take less, and results change)"
        }
        Purpose::OtherArgument => "Pass the arguments in parts, or shard them",
        Purpose::Result => "Return less",
        Purpose::Scores => {
            "Compute attention in blocks of keys, which never holds all scores (splash or flash attention, \
             `jax.nn.dot_product_attention` with cuDNN)"
        }
        Purpose::Logits => "Compute the cross entropy in chunks of tokens",
        Purpose::Kept if is_of_pairs(group) => IN_PARTS,
        Purpose::Kept if report.has_checkpoint() => {
            "Take fewer samples at a time and add up the gradients, or save less under the checkpoint"
        }
        Purpose::Kept if report.machine == Machine::Cpu => {
            "Take fewer samples at a time and add up the gradients, or run the layers in a loop (`jax.lax.scan`) with \
             `jax.checkpoint` around its step: XLA for CPUs recomputes nothing outside of loops"
        }
        Purpose::Kept => {
            "Recompute what is kept (`jax.checkpoint`, `nn.remat` or `hk.remat` around each layer), or take fewer \
             samples at a time and add up the gradients"
        }
        Purpose::Gradient if width < Width::Full => "Shard the gradients as the parameters",
        Purpose::Gradient => {
            "Shard the gradients as the parameters (added up in bfloat16 they take half, and results change)"
        }
        Purpose::CopyOfArgument => "Pass the arguments as their readers want them",
        Purpose::Workspace => "Choose another algorithm, or give the library's routine less at once",
        Purpose::Intermediate | Purpose::LoopCarry
            if is_stacked(group) && report.has_gradient() && is_differentiated(group) =>
        {
            OF_STEPS
        }
        Purpose::LoopCarry if is_stacked(group) => {
            "Carry sums or means of the loop's steps in place of the stack, or run fewer steps at a time"
        }
        Purpose::LoopCarry => "Carry less through the loop: finish and drop what no later step reads",
        _ => IN_PARTS,
    })
}

/// Behind a smaller batch whose samples meet.
pub(super) const MIXED: &str = "; samples meet in it, so the loss changes";

/// `Take a batch of 512 instead of 1,024: about 10.4 GiB, should fit`
pub(super) fn smaller_batch(batch: &SmallerBatch) -> String {
    let SmallerBatch { size, to, bytes_after, is_mixed, .. } = *batch;
    let mixed = if is_mixed { MIXED } else { "" };
    format!("Take a batch of {to} instead of {size}: about {}, should fit{mixed}", bytes(bytes_after))
}
