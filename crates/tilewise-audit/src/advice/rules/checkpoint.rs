//! Values that loops keep for their gradient, stacked over their trips: all but the loop's carry can be recomputed, of
//! each step or of segments of steps.

use super::stacked_cache::Stack;
use crate::{
    advice::{
        change::{Saving, Target},
        evidence::{ArrayFact, Evidence, Listed},
        finding::{Finding, KeptByLoop, Library},
        layer_calls::class_called,
        message::{MessageModel, total},
        program::{LiveArray, ProgramModel},
        recommendation::AdvisedArray,
        rule::{Proposal, Rule},
        scan_residuals::{LoopArrays, without_ones},
    },
    message::Allocation,
    program::{is_forward, is_recomputed, modules, names_under_checkpoints, op_name, source_line},
};
use foldhash::HashSet;
use std::{borrow::Cow, cmp::Reverse};
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::Machine;
use tilewise_oom::Run;

pub(crate) struct LoopKeepsValues;

impl Rule for LoopKeepsValues {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let Some(program) = evidence.program() else {
            return by_names(evidence).or_else(|| of_cut_shapes(evidence)).into_iter().collect();
        };
        let mut loops =
            program.module.instructions().filter(|at| at.opcode() == Opcode::While && runs_forward(at)).peekable();
        if loops.peek().is_none() {
            return Vec::new();
        }
        let arrays = LoopArrays::of(program);
        together(loops.filter_map(|forward| {
            let own = by_loop(program, &arrays, &forward);
            let inner = by_inner_loop(program, &arrays, &forward);
            // Both are recomputed: the step whose own carries leave less. Of equals, the whole outer step.
            let freed = |(_, proposal): &(KeptByLoop, Proposal)| program.freed_with([&proposal.buffers]);
            match (own, inner) {
                (Some(own), Some(inner)) => Some(if freed(&inner) > freed(&own) { inner } else { own }),
                (own, inner) => own.or(inner),
            }
        }))
    }
}

/// Joins the proposals for loops of one source line, which one edit changes.
fn together(loops: impl Iterator<Item = (KeptByLoop, Proposal)>) -> Vec<Proposal> {
    let mut found: Vec<(KeptByLoop, Proposal)> = Vec::new();
    let line = |proposal: &Proposal| proposal.about.as_ref().and_then(|about| about.source.clone());
    for (kept, proposal) in loops {
        let own = line(&proposal);
        let before =
            found.iter_mut().find(|(last, other)| own.is_some() && line(other) == own && are_alike(last, &kept));
        let Some((last, other)) = before else {
            found.push((kept, proposal));
            continue;
        };
        last.loops += 1;
        last.module = last.module.take().zip(kept.module).and_then(|(one, other)| shared_end(&one, &other));
        last.steps = last.steps.zip(kept.steps).map(|((steps, one), (_, other))| (steps, one.max(other)));
        other.buffers.at_most.extend(proposal.buffers.at_most);
    }
    // Once one loop keeps less, the compiler may run others at once.
    let are_several = found.len() > 1;
    let proposals = found.into_iter().map(|(kept, proposal)| {
        let proposal = Proposal { finding: Finding::KeptByLoop(kept), ..proposal };
        if are_several { proposal.rescheduled() } else { proposal }
    });
    proposals.collect()
}

/// Whether the same words tell two loops.
fn are_alike(one: &KeptByLoop, other: &KeptByLoop) -> bool {
    let key =
        |kept: &KeptByLoop| (kept.steps.map(|(steps, _)| steps), kept.segments, kept.is_checkpointed, kept.is_stack);
    key(one) == key(other) && one.library == other.library && one.class == other.class
}

/// The last modules of two paths, if they are equal: `Encoder_0` of `Image_0/Encoder_0` and `Text_0/Encoder_0`.
fn shared_end(one: &str, other: &str) -> Option<String> {
    let (one, other): (Vec<&str>, Vec<&str>) = (one.split('/').collect(), other.split('/').collect());
    let count = one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count();
    (count > 0).then(|| one[one.len() - count..].join("/"))
}

/// The proposal for a message: listed arrays whose names show that a loop's steps, or else layers, keep them.
fn by_names(evidence: &dyn Evidence) -> Option<Proposal> {
    let is_of_loop = |name: &str| name.contains("/while/body");
    let is_trained = |message: &MessageModel<'_>| message.listing.message.job.run == Some(Run::Training);
    let is_differentiated = evidence.has_gradient() == Some(true) || evidence.message().is_some_and(is_trained);
    let is_kept = |array: &&dyn ArrayFact| {
        let stacks = || {
            evidence.message().is_some_and(|message| {
                let row = message.arrays.iter().find(|listed| listed.number == array.buffer());
                row.is_some_and(|listed| listed.row.operation().contains("dynamic_update_slice"))
            })
        };
        let name = array.op_name();
        // Without a gradient, a stack is a cache or a result. In a loop of the forward pass, an array of more than two
        // dimensions is stacked over its steps.
        let is_stack = || array.bounds().len() > 2 && name.contains("jvp(");
        name.contains("transpose(jvp") || is_of_loop(&name) && (is_differentiated && stacks() || is_stack())
    };
    let temporaries = evidence.temporaries();
    let mut kept: Vec<&dyn ArrayFact> = temporaries.into_iter().filter(is_kept).collect();
    // Under a checkpoint lies what its policy saves; the others are its inputs, which stay, and what is recomputed is of one layer.
    let is_checkpointed = kept.iter().any(|array| is_recomputed(&array.op_name()));
    if is_checkpointed {
        kept.retain(|array| is_recomputed(&array.op_name()) && is_saved(&array.op_name()));
    }
    let largest = kept.iter().max_by_key(|array| array.bytes())?;
    let target = if is_of_loop(&largest.op_name()) { Target::Loop } else { Target::Value };
    let finding = Finding::KeptByLoop(KeptByLoop { is_checkpointed, ..UNTOLD });
    let proposal = Proposal::new(finding, target, largest.advised(evidence)).bound();
    Some(proposal.at_most(kept.iter().map(|array| (array.buffer(), 0))))
}

/// Whether an operation's name is one of the forward pass, whose value is saved for the backward pass.
fn is_saved(name: &str) -> bool {
    !name.contains("transpose(jvp") && !name.split('/').any(|word| word == "rematted_computation")
}

/// A message doesn't tell the steps of a loop, nor whether it is one.
const UNTOLD: KeptByLoop = KeptByLoop {
    steps: None,
    segments: None,
    library: Library::Jax,
    module: None,
    class: None,
    is_checkpointed: false,
    is_stack: false,
    loops: 1,
};

/// The proposal for a message that ends within a shape: all that it tells is a name of the forward pass of a gradient.
fn of_cut_shapes(evidence: &dyn Evidence) -> Option<Proposal> {
    let message = evidence.message()?;
    let is_kept = |row: &&Allocation| row.shape.is_none() && row.op_name().contains("jvp(");
    let kept: Vec<&Allocation> = message.temporaries.iter().copied().filter(is_kept).collect();
    let largest = *kept.iter().max_by_key(|row| row.taken_bytes())?;
    let held = total(kept.iter().copied(), Allocation::taken_bytes);
    let finding = Finding::KeptByLoop(KeptByLoop { is_checkpointed: is_recomputed(largest.op_name()), ..UNTOLD });
    let proposal = Proposal::new(finding, Target::Value, AdvisedArray::of_row(largest)).bound();
    Some(proposal.extrapolated(evidence, held, Listed::Bytes))
}

/// Values that the steps of a loop keep.
fn by_loop<'m>(
    program: &ProgramModel<'m>,
    arrays: &LoopArrays<'_, 'm>,
    forward: &Instruction<'m>,
) -> Option<(KeptByLoop, Proposal)> {
    let trips = program.flow.trip_count(program.flow.op(forward)?).filter(|trips| *trips > 1)?;
    let of_loop: HashSet<usize> = program
        .arrays
        .iter()
        .filter(|array| array.instruction.index() == forward.index())
        .map(|array| array.buffer)
        .collect();
    // Once the loop at the peak keeps less, another one may be it.
    let mut stacked: Vec<&LiveArray<'m>> = program
        .temporaries()
        .filter(|array| of_loop.contains(&array.buffer) && array.bounds.first() == Some(&trips))
        .collect();
    stacked.sort_by_key(|array| Reverse(array.bytes));
    let largest = *stacked.first()?;
    let stacks = arrays.stacks(forward, trips)?;
    let recomputed = arrays.recomputed(&stacks);
    let library = library(forward);
    // A library's loop takes no scan around it.
    let freed = recomputed.iter().map(|array| array.bytes).fold(0, u64::saturating_add);
    let segments = stacks.segments(trips, freed).filter(|_| library == Library::Jax);
    let finding = KeptByLoop {
        segments: segments.map(|segments| segments.count),
        ..of_steps(program, forward, (trips, stacked.len()))
    };
    let until_backward = read_until_backward(program, forward, trips, largest);
    // The compiler recomputes some of a step's values when its backward pass begins, some when they are read.
    let of_a_step = |array: &LiveArray<'m>| array.bytes / trips / 2;
    let about = about(program, forward, largest);
    if let Some(segments) = segments {
        let proposal = Proposal::new(Finding::KeptByLoop(finding.clone()), Target::Loop, about).bound();
        let of_segment =
            arrays.of_stacks(&stacks).into_iter().map(|array| (array.buffer, array.bytes / segments.count));
        let carried = segments.carry_bytes.saturating_add(until_backward);
        let carried = (largest.buffer, carried.saturating_add(largest.bytes / segments.count));
        return Some((finding, proposal.at_most(of_segment.chain([carried]))));
    }
    let new_stacks = stacks.new_stacks(trips);
    let holder = recomputed.iter().max_by_key(|array| array.bytes).filter(|_| new_stacks < freed);
    holder.map(|holder| {
        let proposal = Proposal::new(Finding::KeptByLoop(finding.clone()), Target::Loop, about);
        let proposal = if stacks.is_carry_of_its_type { proposal } else { proposal.bound() };
        let new_stacks = new_stacks.saturating_add(until_backward);
        let carried = (holder.buffer, of_a_step(holder).saturating_add(new_stacks));
        let of_steps = recomputed.iter().map(|array| (array.buffer, of_a_step(array)));
        let new = (new_stacks > 0).then_some(carried);
        (finding, proposal.at_most(of_steps.chain(new)))
    })
}

/// Bytes of what the steps read that ends with the loop now, before `kept` is read: recomputed steps read it again.
fn read_until_backward(program: &ProgramModel<'_>, forward: &Instruction<'_>, trips: u64, kept: &LiveArray<'_>) -> u64 {
    let Some(stack) = program.module.instruction(forward.index()).and_then(|forward| Stack::of(&forward)) else {
        return 0;
    };
    let of_steps =
        stack.read.iter().filter(|number| stack.bounds(**number).is_some_and(|of| of.first() == Some(&trips)));
    // The stack's own memory has several values, the last of which the backward pass reads.
    let of_stack = program.arrays.iter().filter(|array| array.buffer == kept.buffer);
    let last = of_stack.map(|array| array.last).max().unwrap_or(kept.last);
    let ends = |array: &&LiveArray<'_>| array.buffer != kept.buffer && array.last < last;
    let read = of_steps.filter_map(|number| {
        program.temporaries().filter(ends).find(|array| stack.is_held_in(program, *number, array))
    });
    read.map(|array| array.bytes).fold(0, u64::saturating_add)
}

/// Values that the steps of a loop inside of a loop keep: the outer loop's stacks of the inner one's, and their copies.
fn by_inner_loop<'m>(
    program: &ProgramModel<'m>,
    arrays: &LoopArrays<'_, 'm>,
    outer: &Instruction<'m>,
) -> Option<(KeptByLoop, Proposal)> {
    let trips = |at: &Instruction<'_>| program.flow.trip_count(program.flow.op(at)?).filter(|trips| *trips > 1);
    let all = arrays.stacks(outer, trips(outer)?)?;
    let called = outer.calls().filter_map(|call| call.computation());
    let inside = called.flat_map(|computation| computation.instructions().collect::<Vec<_>>());
    let loops = inside.filter(|at| at.opcode() == Opcode::While && runs_forward(at));
    let found = loops.filter_map(|inner| {
        let steps = trips(&inner)?;
        let slices: HashSet<&[u64]> = all.slices().filter(|slice| slice.len() > 1 && slice[0] == steps).collect();
        // Another outer loop may stack arrays of equal bounds.
        let is_of_step = |array: &&LiveArray<'m>| slices.contains(&*without_ones(&array.bounds));
        let is_stack =
            |array: &&LiveArray<'m>| without_ones(&array.bounds).get(1..).is_some_and(|slice| slices.contains(slice));
        let stacks = arrays.of_stacks(&all).into_iter().filter(is_stack);
        let kept: Vec<&LiveArray<'m>> = program.temporaries().filter(is_of_step).chain(stacks).collect();
        let largest = *kept.iter().max_by_key(|array| array.bytes)?;
        let stacked = all.slices().filter(|slice| slices.contains(slice)).count();
        // The inner carry is stacked in place of the rest.
        let carried = arrays.stacks(&inner, steps)?.carry_bytes().saturating_mul(steps).saturating_mul(trips(outer)?);
        let finding = of_steps(program, &inner, (steps, stacked));
        let proposal =
            Proposal::new(Finding::KeptByLoop(finding.clone()), Target::Loop, about(program, &inner, largest));
        let of_a_step = kept.iter().map(|array| (array.buffer, array.bytes / steps));
        let proposal = proposal.at_most(of_a_step.chain([(largest.buffer, carried)]));
        // Values of a step that is recomputed may be fused, or be kept in parts.
        Some((finding, Proposal { saving: Saving::About, ..proposal }))
    });
    found.max_by_key(|(_, proposal)| program.freed_with([&proposal.buffers]))
}

/// Words of loops in the names of operations, which are no modules.
const LOOPS: [&str; 2] = ["while", "eval_jaxpr"];

/// The finding on the steps of a loop that keeps arrays.
fn of_steps(program: &ProgramModel<'_>, forward: &Instruction<'_>, steps: (u64, usize)) -> KeptByLoop {
    let module = op_name(forward).map(|name| modules(&name).skip(1).collect::<Vec<_>>().join("/"));
    let library = library(forward);
    let body = forward.calls().filter_map(|call| call.computation());
    let inside = body.flat_map(|computation| computation.instructions().collect::<Vec<_>>());
    let class = || class_called(&source_line(forward)?, inside);
    KeptByLoop {
        steps: Some(steps),
        segments: None,
        class: if library == Library::Linen { class() } else { None },
        library,
        module: module.filter(|module| !module.is_empty() && !LOOPS.iter().any(|word| module.contains(word))),
        is_checkpointed: is_checkpointed(program, forward),
        is_stack: runs(forward, "layer_stack"),
        loops: 1,
    }
}

/// A loop's largest stack. Buffers in which a loop stacks arrays may have no line; the loop has one.
fn about<'m>(program: &ProgramModel<'m>, forward: &Instruction<'m>, largest: &LiveArray<'m>) -> AdvisedArray {
    let kept = program.advised(largest);
    AdvisedArray {
        op_name: op_name(forward).map(Cow::into_owned).or(kept.op_name),
        source: source_line(forward).or(kept.source),
        ..kept
    }
}

/// Whether JAX's operation names show the step under a checkpoint, whose policy decides what it saves.
fn is_checkpointed(program: &ProgramModel<'_>, forward: &Instruction<'_>) -> bool {
    let Some(name) = op_name(forward) else { return false };
    // An operation of the loop's forward pass, or of its backward pass, whose name has both; not of an inner loop.
    let of_loop = |within: Cow<'_, str>| {
        let within = within.replace("transpose(jvp(", "jvp(").replace("))", ")");
        within.strip_prefix(&*name).and_then(|step| step.split("/while").next()).is_some_and(is_recomputed)
    };
    names_under_checkpoints(program.module).any(of_loop)
}

/// The library of a loop: Haiku's and Flax's steps have parameters that JAX doesn't know.
fn library(forward: &Instruction<'_>) -> Library {
    let libraries = [("haiku/_src/", Library::Haiku), ("layer_stack", Library::Haiku), ("flax/core/", Library::Linen)];
    libraries.into_iter().find(|(sign, _)| runs(forward, sign)).map_or(Library::Jax, |(_, library)| library)
}

/// Whether the loop's call stack has a file with `sign` in its name.
fn runs(forward: &Instruction<'_>, sign: &str) -> bool {
    forward.frames().any(|frame| frame.file.contains(sign))
}

/// Whether a loop runs forward in a program that takes a gradient.
fn runs_forward(instruction: &Instruction<'_>) -> bool {
    op_name(instruction).is_some_and(|name| is_forward(&name))
}

#[cfg(test)]
mod tests {
    use super::shared_end;

    #[test]
    fn two_modules_of_one_line() {
        assert_eq!(shared_end("Image_0/Encoder_0", "Text_0/Encoder_0").as_deref(), Some("Encoder_0"));
        assert_eq!(shared_end("Encoder_0", "Encoder_1"), None);
    }
}
