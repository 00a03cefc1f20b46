//! The purposes of arrays in a plan.

use crate::program::{
    AxisName, NamedAxis, Purpose, Scores, is_backward, is_forward, name, op_name, runs_backward, traced,
};
use foldhash::HashSet;
use tilewise::ElementType;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Dataflow, Use},
};
use tilewise_memory::{AssignedValue, MemoryPlan, Role};

/// Attention over fewer keys doesn't fill a memory.
const KEYS: u64 = 128;

/// Facts about a program that determine the purposes of its arrays.
pub(super) struct Purposes<'f> {
    flow: &'f Dataflow,
    /// The moment at which the backward pass begins; `None` without one.
    backward: Option<usize>,
    /// The bounds of its weights.
    weights: HashSet<Vec<u64>>,
    scores: Scores,
}

impl<'f> Purposes<'f> {
    pub(super) fn of(flow: &'f Dataflow, plan: &MemoryPlan) -> Self {
        let module = flow.module();
        let arguments = module.entry().into_iter().flat_map(|entry| entry.instructions().collect::<Vec<_>>());
        let weights = arguments
            .filter(|at| at.opcode() == Opcode::Parameter && Purpose::of_argument(&name(at)) == Purpose::Parameter)
            .filter_map(|at| Some(at.shape().ok()?.leaves().filter_map(|(_, leaf)| leaf.bounds()).collect::<Vec<_>>()))
            .flatten();
        let is_backward = |at: &Instruction<'_>| op_name(at).is_some_and(|name| is_backward(&name));
        let begins = |instruction| module.instruction(instruction).is_some_and(|at| is_backward(&at));
        Self {
            flow,
            backward: plan.order().position(begins),
            weights: weights.collect(),
            scores: Scores::of(module, KEYS),
        }
    }

    pub(super) fn of_value(&self, value: &AssignedValue, instruction: &Instruction<'_>) -> Purpose {
        match value.role {
            Role::Argument => Purpose::of_argument(&name(instruction)),
            Role::Output => Purpose::Result,
            Role::Temporary => match self.of_temporary(value, instruction) {
                Purpose::Kept | Purpose::LoopCarry | Purpose::Intermediate if self.are_scores(value) => Purpose::Scores,
                other => other,
            },
            _ => Purpose::Intermediate,
        }
    }

    /// Whether an array has one element for each query and key of an attention.
    fn are_scores(&self, value: &AssignedValue) -> bool {
        let bounds = value.shape().and_then(|shape| shape.bounds());
        bounds.is_some_and(|bounds| self.scores.have(&bounds))
    }

    /// The purpose of an array whose axes are known: temporaries along the vocabulary or classes are logits, and values
    /// that a loop stacks for each of its steps, if there is a backward pass, are kept for that.
    pub(super) fn of_axes(&self, purpose: Purpose, axes: &[NamedAxis], op_name: Option<&str>) -> Purpose {
        let has = |is: fn(&AxisName) -> bool| axes.iter().any(|axis| is(&axis.name));
        let is_stacked = has(|name| matches!(name, AxisName::Steps | AxisName::Layers));
        let is_forward = || op_name.is_some_and(is_forward);
        match purpose {
            Purpose::Kept | Purpose::LoopCarry | Purpose::Intermediate
                if has(|name| matches!(name, AxisName::Vocabulary | AxisName::Classes)) =>
            {
                Purpose::Logits
            }
            Purpose::LoopCarry if self.backward.is_some() && is_stacked && (op_name.is_none() || is_forward()) => {
                Purpose::Kept
            }
            // The compiler makes loops of other operations, too, such as a gather of long slices.
            Purpose::LoopCarry if op_name.is_some_and(|name| !name.contains("while")) => Purpose::Intermediate,
            Purpose::Intermediate if self.backward.is_some() && is_stacked && is_forward() => Purpose::Kept,
            other => other,
        }
    }

    fn of_temporary(&self, value: &AssignedValue, instruction: &Instruction<'_>) -> Purpose {
        let flow = self.flow;
        let origin = flow.op_at(flow.origin(value.position));
        let Some(made) = flow.instruction(origin) else { return Purpose::Intermediate };
        let is_argument = |at: &Instruction<'_>| at.opcode() == Opcode::Parameter && at.computation().is_entry();
        let converted = || {
            let operand = flow.operands(origin).first().filter(|_| made.opcode() == Opcode::Convert)?;
            flow.instruction(flow.op_at(flow.origin(flow[*operand].position)))
        };
        if is_argument(&made) || converted().is_some_and(|from| is_argument(&from)) {
            return Purpose::CopyOfArgument;
        }
        let name = traced(flow, instruction).0.unwrap_or_default();
        // A scheduler may run a few operations of the backward pass early, such as broadcasts of constants.
        let is_across = self.backward.is_some_and(|begin| value.first < begin && begin <= value.last);
        if is_forward(&name) && (is_across || self.readers(value).any(|reader| runs_backward(&reader))) {
            return Purpose::Kept;
        }
        let is_of_weight =
            || value.shape().and_then(|shape| shape.bounds()).is_some_and(|of| self.weights.contains(&of));
        match made.opcode() {
            _ if is_backward(&name) && is_of_weight() => Purpose::Gradient,
            Opcode::While | Opcode::Parameter => Purpose::LoopCarry,
            _ if self.is_workspace(value, &made) => Purpose::Workspace,
            _ => Purpose::Intermediate,
        }
    }

    /// Whether an array is a library's workspace: flat bytes that only library routines read, and no other operation
    /// fills.
    fn is_workspace(&self, value: &AssignedValue, made: &Instruction<'_>) -> bool {
        let is_library = |at: &Instruction<'_>| at.opcode() == Opcode::CustomCall;
        let is_flat = value.shape().is_some_and(|shape| {
            shape.dimensions().len() == 1 && matches!(shape.element_type(), Some(ElementType::S8 | ElementType::U8))
        });
        let is_filled = made.operands().next().is_some() && !is_library(made);
        is_flat && !is_filled && self.readers(value).all(|reader| is_library(&reader))
    }

    fn readers(&self, value: &AssignedValue) -> impl Iterator<Item = Instruction<'_>> {
        self.flow.readers(value.position).filter_map(|found| match found {
            Use::Read(op) => self.flow.instruction(op),
            _ => None,
        })
    }

    /// The library's routine that works in an array: its reader, or else its maker.
    pub(super) fn routine(&self, value: &AssignedValue) -> Option<String> {
        let made = || self.flow.instruction(self.flow.op_at(self.flow.origin(value.position)));
        let target = self.readers(value).next().or_else(made)?.attribute("custom_call_target")?;
        Some(target.trim_matches('"').to_owned())
    }
}
