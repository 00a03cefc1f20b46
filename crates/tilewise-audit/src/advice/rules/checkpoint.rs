//! What loops keep for their gradient, stacked over their trips: all but what the loop carries can be recomputed.

use crate::{
    advice::{
        message::{MessageModel, total},
        program::{BufferChanges, LiveArray, ProgramModel},
        recommendation::{Change, Recommendation, Saving, Target},
        rule::{MessageRule, Proposal, Rule},
        snippet::JAX,
    },
    message::Allocation,
    program::{at_line, is_forward, op_name},
};
use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::Machine;
use tilewise_oom::Framework;

pub(crate) struct LoopKeepsValues;

impl Rule for LoopKeepsValues {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, program: &ProgramModel<'_>) -> Vec<Proposal> {
        let loops = program.module.instructions().filter(|at| at.opcode() == Opcode::While && runs_forward(at));
        loops.filter_map(|forward| proposal(program, &forward)).collect()
    }
}

fn proposal<'m>(program: &ProgramModel<'m>, forward: &Instruction<'m>) -> Option<Proposal> {
    let trips = program.flow.trip_count(program.flow.op(forward)?).filter(|trips| *trips > 1)?;
    let of_loop: HashSet<usize> = program
        .arrays
        .iter()
        .filter(|array| array.instruction.index() == forward.index())
        .map(|array| array.buffer)
        .collect();
    let mut stacked: Vec<&LiveArray<'m>> = program
        .peak_temporaries()
        .filter(|array| of_loop.contains(&array.buffer) && array.bounds.first() == Some(&trips))
        .collect();
    stacked.sort_by_key(|array| Reverse(array.bytes));
    let largest = *stacked.first()?;
    let mut carried = carried(forward);
    let keeps_its_carry = carried.keys().any(|kept| {
        kept.split_first()
            .is_some_and(|(first, rest)| *first == trips && !rest.is_empty() && carried.contains_key(rest))
    });
    let mut is_carried = |array: &LiveArray<'m>| {
        let left = carried.get_mut(&without_ones(&array.bounds[1..])).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    };
    let (kept, recomputed): (Vec<&LiveArray<'m>>, Vec<_>) = stacked.iter().partition(|array| is_carried(array));
    // Something is carried, be it under other bounds.
    let recomputed = if kept.is_empty() && !keeps_its_carry { &recomputed[1..] } else { &recomputed };
    let at_most = recomputed.iter().map(|array| (array.buffer, 0)).collect();
    let buffers = BufferChanges { at_most, ..BufferChanges::default() };
    let arrays = if stacked.len() == 1 { "an array".to_owned() } else { format!("{} arrays", stacked.len()) };
    let (checkpoint, import, code) = checkpoint(forward);
    let sentence = format!(
        "Put `{checkpoint}` around the step of the loop{}: it keeps {arrays} of all its {trips} steps for the gradient, \
         and could recompute them from what it carries",
        at_line(&largest.instruction)
    );
    (!buffers.at_most.is_empty()).then(|| Proposal {
        buffers,
        snippet: program.snippet(import, code),
        ..Proposal::new(Change::Checkpoint, Target::Loop, program.advised(largest), sentence)
    })
}

/// What the library calls it that runs the loop: Haiku's and Flax's steps have parameters that JAX knows nothing of.
fn checkpoint(forward: &Instruction<'_>) -> (&'static str, &'static str, &'static str) {
    const LIBRARIES: &[(&str, [&str; 3])] = &[
        ("haiku/_src/", ["hk.remat", "import haiku as hk", "ys, state = hk.dynamic_unroll(hk.remat(step), xs, state)"]),
        (
            "flax/core/",
            ["nn.remat", "import flax.linen as nn", "Step = nn.remat(Step)  # the class that nn.scan or nn.RNN runs"],
        ),
    ];
    let runs = |sign: &str| forward.frames().any(|frame| frame.file.contains(sign));
    let of_library = LIBRARIES.iter().find(|(sign, _)| runs(sign));
    of_library.map_or(
        ("jax.checkpoint", JAX, "carry, ys = jax.lax.scan(jax.checkpoint(step), carry, xs)"),
        |(_, [name, import, code])| (*name, *import, *code),
    )
}

/// Whether a loop runs forward in a program that takes a gradient.
fn runs_forward(instruction: &Instruction<'_>) -> bool {
    op_name(instruction).is_some_and(|name| is_forward(&name))
}

/// How many arrays a loop carries, by their bounds, whatever memory they lie in.
fn carried(forward: &Instruction<'_>) -> HashMap<Vec<u64>, usize> {
    let mut carried = HashMap::new();
    let Ok(shape) = forward.shape() else { return carried };
    for (_, leaf) in shape.leaves().filter(|(_, leaf)| leaf.as_array().is_some()) {
        let bounds: Option<Vec<u64>> = leaf.dimensions().iter().map(|dimension| dimension.bound()).collect();
        *carried.entry(without_ones(&bounds.unwrap_or_default())).or_default() += 1;
    }
    carried
}

fn without_ones(bounds: &[u64]) -> Vec<u64> {
    bounds.iter().copied().filter(|bound| *bound != 1).collect()
}

impl MessageRule for LoopKeepsValues {
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation> {
        of_message(message).into_iter().collect()
    }
}

fn of_message(message: &MessageModel<'_>) -> Option<Recommendation> {
    let kept: Vec<&Allocation> = message.temporaries.iter().copied().filter(|row| is_kept(row)).collect();
    let sentence = format!(
        "Put a checkpoint around the layer or the loop's step that makes what is kept for the gradient{}: those values are \
         then recomputed",
        kept.first()?.at_line()
    );
    let saving = Saving::AtMost(total(kept, Allocation::taken_bytes));
    let found = Recommendation::new(Change::Checkpoint, Target::Value, sentence).saving(saving);
    Some(match message.framework {
        Framework::Jax => found.snippet(JAX, "layer = jax.checkpoint(layer)  # or the step of a jax.lax.scan"),
        Framework::TorchXla => {
            found.snippet("from torch_xla.utils.checkpoint import checkpoint", "y = checkpoint(layer, x)")
        }
        Framework::TensorFlow => found.snippet("import tensorflow as tf", "layer = tf.recompute_grad(layer)"),
        _ => found,
    })
}

/// Whether an array is kept for the gradient: names of operations say so.
fn is_kept(row: &Allocation) -> bool {
    let name = row.op_name();
    name.contains("transpose(jvp") || name.contains("/while/body") && row.operation().contains("dynamic_update_slice")
}
