//! Arrays that a loop stacks up, a slice in each step, in a program that may not fit: where they are only returned, or little
//! is made of them, it may take less of each step.

use super::stacked_cache::Stack;
use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, OfStep, OverSteps, StackedSteps},
        program::{LiveArray, ProgramModel},
        recommendation::AdvisedArray,
        rule::{Proposal, Rule},
    },
    program::{any_fused, bounds as bounds_of, elements, source_line, with_fused},
};
use foldhash::HashSet;
use std::cmp::Reverse;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Position, Use},
};
use tilewise_memory::Machine;

/// Returned stacks matter from this part of the program's bytes on.
const MUCH: u64 = 8;

/// Less than this part of a stack is little of it.
const LITTLE: u64 = 4;

pub(crate) struct ResultsOfALoop;

impl Rule for ResultsOfALoop {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let Some(program) = evidence.program().filter(|program| program.may_be_too_large()) else { return Vec::new() };
        let loops = program.module.instructions().filter(|at| at.opcode() == Opcode::While);
        // Of a program that may fit, the results are wanted as they are.
        let kinds: &[bool] = if program.is_too_large() { &[true, false] } else { &[false] };
        let both = |around| kinds.iter().filter_map(move |results| proposal(program, &around, *results));
        loops.flat_map(both).collect()
    }
}

/// The proposal for stacks that are results, or for those of which little is made.
fn proposal<'m>(program: &ProgramModel<'m>, around: &Instruction<'m>, are_results: bool) -> Option<Proposal> {
    let steps = program.flow.trip_count(program.flow.op(around)?).filter(|steps| *steps > 1)?;
    let stack = Stack::of(around)?;
    let mut arrays: Vec<(&LiveArray<'m>, OfStep)> = Vec::new();
    let mut between: HashSet<Position> = HashSet::default();
    for number in &stack.written {
        let bounds = stack.bounds(*number).filter(|bounds| bounds.first() == Some(&steps) && bounds.len() > 1);
        let is_new = |array: &&LiveArray<'m>| {
            Some(&array.bounds) == bounds.as_ref() && !arrays.iter().any(|(known, _)| known.buffer == array.buffer)
        };
        let (found, enough): (Vec<&LiveArray<'m>>, OfStep) = if are_results {
            let mut results = program.results().filter(is_new);
            let found = results.find(|array| stack.is_held_in(program, *number, array));
            (found.into_iter().collect(), stack.narrower(*number).map_or(OfStep::Returned, OfStep::Narrower))
        } else {
            let Some(element) = element(program, around, *number) else { continue };
            let origin = program.flow.origin(element);
            // A copy in another layout, too.
            let is_it = |array: &&LiveArray<'m>| {
                stack.is_held_in(program, *number, array) || program.flow.origin(array.position) == origin
            };
            let found = program.peak_temporaries().filter(is_new).filter(is_it);
            let Some(made) = Made::of(program, around, element) else { continue };
            between.extend(made.between);
            let enough = match (made.over_steps, made.picked) {
                _ if is_last_read(program, element, steps) => OfStep::Last,
                (None, picked) if picked > 0 => OfStep::Picked(picked),
                (Some(over), _) => OfStep::MadeOverSteps(over),
                (None, _) => OfStep::Made,
            };
            (found.collect(), enough)
        };
        arrays.extend(found.into_iter().map(|array| (array, enough)));
    }
    arrays.sort_by_key(|(array, _)| Reverse(array.bytes));
    let (largest, enough) = *arrays.first()?;
    let bytes = arrays.iter().map(|(array, _)| array.bytes).fold(0, u64::saturating_add);
    if bytes < program.total_bytes / MUCH {
        return None;
    }
    let is_of_all = arrays.iter().all(|(_, of)| *of == enough);
    let over_steps = arrays.iter().map(|(_, of)| *of).find(|of| matches!(of, OfStep::MadeOverSteps(_)));
    let enough = match are_results {
        _ if is_of_all => enough,
        true => OfStep::Returned,
        false => over_steps.unwrap_or(OfStep::Made),
    };
    let left = |array: &LiveArray<'_>| match enough {
        OfStep::Narrower(narrower) => {
            array.bytes / u64::from(array.element_type().bits() / narrower.bits().max(1)).max(1)
        }
        OfStep::Last => 0,
        OfStep::Picked(picked) => array.bytes / steps * picked.min(steps),
        _ => array.bytes / steps,
    };
    let source = source_line(around);
    let about = AdvisedArray { source: source.clone(), ..program.advised(largest) };
    let finding = Finding::StackedSteps(StackedSteps { steps, arrays: arrays.len(), enough, bytes, source });
    let target = if are_results { Target::Result } else { Target::Loop };
    let proposal = Proposal::new(finding, target, about).bound();
    let between = program.peak_temporaries().filter(|array| between.contains(&array.position));
    let left = arrays.iter().map(|(array, _)| *array).chain(between).map(|array| (array.buffer, left(array)));
    Some(proposal.at_most(left))
}

/// An element of a loop's result.
pub(super) fn element(program: &ProgramModel<'_>, around: &Instruction<'_>, number: usize) -> Option<Position> {
    let result = program.flow.positions(program.flow.op(around)?).next()?;
    program.flow.element(result, number)
}

/// The little that is made of an element of a loop's result, behind the loop and not in another one.
struct Made {
    /// Arrays as large as the element, each step's part of which is made of that step's alone.
    between: Vec<Position>,
    /// Reductions over all steps.
    over_steps: Option<OverSteps>,
    /// Number of steps that are picked.
    picked: u64,
}

impl Made {
    fn of(program: &ProgramModel<'_>, around: &Instruction<'_>, element: Position) -> Option<Self> {
        /// Maximum number of large arrays that are followed.
        const MOST: usize = 16;

        let (flow, axes) = (program.flow, program.flow.axes());
        let bounds: Vec<u64> = flow.shape(element)?.bounds()?;
        let all = elements(&bounds);
        let (of_loop, leaf) = flow.told(element)?;
        let (number, steps) = (*bounds.first()?, axes.of_dimension(&of_loop, leaf, 0));
        let has_steps = |position: Position| {
            flow.told(position).is_some_and(|(at, leaf)| axes.of_array(&at, leaf).any(|of| of == steps))
        };
        let mut made = Self { between: Vec::new(), over_steps: None, picked: 0 };
        let (mut waiting, mut little) = (vec![element], 0_u64);
        let (mut over, mut readers, mut is_each_read) = (Vec::new(), Vec::new(), false);
        let mut over_steps: Vec<Instruction<'_>> = Vec::new();
        while let Some(position) = waiting.pop() {
            for found in flow.readers(position) {
                let Use::Read(op) = found else { return None };
                let reader = flow.instruction(op)?;
                readers.push(reader);
                // A loop may need all steps at once, as an unknown operation may.
                let needs_all =
                    matches!(reader.opcode(), Opcode::While | Opcode::CustomCall | Opcode::Sort | Opcode::Fft);
                if needs_all || reader.computation() != around.computation() {
                    return None;
                }
                for result in flow.positions(op).filter(|result| !flow.is_tuple(*result)) {
                    let bounds: Vec<u64> = flow.shape(result)?.bounds()?;
                    let count = elements(&bounds);
                    if count <= all / LITTLE {
                        little = little.saturating_add(count);
                        if has_steps(result) || has_size(&bounds, number) {
                            is_each_read = true;
                        } else {
                            match picked_steps(&reader, number) {
                                Some(picked) => made.picked = made.picked.max(picked),
                                None => over_steps.push(reader),
                            }
                            over.extend(flow.told(result).map(|(at, leaf)| (at.index(), leaf)));
                        }
                    } else if !has_steps(result) || made.between.len() == MOST {
                        return None;
                    } else if !made.between.contains(&result) {
                        made.between.push(result);
                        waiting.push(result);
                    }
                }
            }
        }
        // Where a step's part is made of all steps, such as a softmax's, these are gone through twice.
        let of_all = axes.reach(over, &|_| false);
        let is_of_all = |at: &Instruction<'_>| of_all.has_any(at.index());
        let reduces = readers.iter().flat_map(|at| with_fused(*at)).filter(|at| at.opcode() == Opcode::Reduce);
        // But a sum of exponentials less the maximum goes on from step to step, if both do, as does a sum of squared
        // deviations from the mean.
        let goes_on = |at: &Instruction<'_>| is_log_sum(at) || is_sum_of_squares(at, &is_of_all);
        let mut reduced = reduces.filter(|at| !goes_on(at)).filter_map(|at| at.operands().next()?.instruction());
        let is_large = |at: &Instruction<'_>| bounds_of(at).is_some_and(|bounds| elements(&bounds) > all / LITTLE);
        let is_twice = reduced.any(|operand| is_of_all(&operand) && is_large(&operand))
            || made.between.iter().any(|made| flow.told(*made).is_some_and(|(at, leaf)| of_all.has(at.index(), leaf)));
        if !over_steps.is_empty() {
            let mut made_over = OverSteps { is_each_read, ..OverSteps::default() };
            over_steps.iter().for_each(|reader| made_over.add(reader, number, &is_of_all));
            made.over_steps = Some(made_over);
        }
        (little > 0 && little <= all / LITTLE && !is_twice).then_some(made)
    }
}

impl OverSteps {
    /// Adds what an instruction reduces this number of steps by; `is_of_all` tells values that are made of all steps.
    fn add(&mut self, reader: &Instruction<'_>, steps: u64, is_of_all: &dyn Fn(&Instruction<'_>) -> bool) {
        let is_over_steps = |at: &Instruction<'_>| {
            at.opcode() == Opcode::Reduce && bounds_of(at).is_none_or(|bounds| !has_size(&bounds, steps))
        };
        let mut reduces = with_fused(*reader).filter(is_over_steps).peekable();
        self.others |= reduces.peek().is_none();
        for at in reduces {
            for root in at.calls().filter_map(|call| Some(call.computation()?.root()?.opcode())) {
                match root {
                    Opcode::Add if is_log_sum(&at) => self.log_sums = true,
                    Opcode::Add if is_sum_of_squares(&at, is_of_all) => self.squares = true,
                    Opcode::Add => self.sums = true,
                    Opcode::Maximum => self.maxima = true,
                    Opcode::Minimum => self.minima = true,
                    _ => self.others = true,
                }
            }
        }
    }
}

/// Whether bounds have a dimension for this number of steps: all but the first or the last are steps, too.
fn has_size(bounds: &[u64], steps: u64) -> bool {
    bounds.iter().any(|bound| bound.abs_diff(steps) <= 1)
}

/// Whether a reduction adds up exponentials of differences, as `logsumexp` does, with the maximum taken off.
fn is_log_sum<'m>(reduce: &Instruction<'m>) -> bool {
    let adds = |at: Instruction<'_>| at.opcode() == Opcode::Add;
    let is_sum = reduce.calls().any(|call| call.computation().and_then(|of| of.root()).is_some_and(adds));
    let first = |at: &Instruction<'m>| at.operands().next()?.instruction();
    let of = first(reduce).filter(|at| is_sum && at.opcode() == Opcode::Exponential).and_then(|at| first(&at));
    of.is_some_and(|at| at.opcode() == Opcode::Subtract)
}

/// Whether a reduction adds up squares of values less what all steps are made to, such as their mean: a variance.
fn is_sum_of_squares<'m>(reduce: &Instruction<'m>, is_of_all: &dyn Fn(&Instruction<'m>) -> bool) -> bool {
    let two = |at: &Instruction<'m>| {
        let mut operands = at.operands().map(|operand| operand.instruction());
        Some((operands.next()??, operands.next()??))
    };
    let square = reduce.operands().next().and_then(|operand| operand.instruction());
    let deviation = square.filter(|at| at.opcode() == Opcode::Multiply).and_then(|at| two(&at));
    let deviation = deviation.filter(|(one, other)| one.index() == other.index()).map(|(one, _)| one);
    let parts = deviation.filter(|at| at.opcode() == Opcode::Subtract).and_then(|at| two(&at));
    parts.is_some_and(|(value, mean)| !is_of_all(&value) && is_of_all(&mean))
}

/// The number of steps that an instruction picks of a stack of all, by their numbers.
fn picked_steps(reader: &Instruction<'_>, steps: u64) -> Option<u64> {
    let rows = |at: Instruction<'_>| {
        let (stack, indexed) = (bounds_of(&at.operands().next()?.instruction()?)?, at.gather_dimensions()?.indexed);
        let of_step = elements(&stack) / stack.first().filter(|rows| **rows == steps && indexed == [0])?;
        elements(&bounds_of(&at)?).checked_div(of_step)
    };
    let mut gathers = with_fused(*reader).filter(|at| at.opcode() == Opcode::Gather);
    let has_reduction = with_fused(*reader).any(|at| at.opcode() == Opcode::Reduce);
    let picked = gathers.next().and_then(rows).filter(|_| !has_reduction && gathers.next().is_none());
    picked.filter(|picked| *picked < steps)
}

/// Whether each reader of a stack takes the slice of its last step alone.
fn is_last_read(program: &ProgramModel<'_>, element: Position, steps: u64) -> bool {
    let is_last = |at: &Instruction<'_>| {
        let limits = at.slice_limits().filter(|_| at.opcode() == Opcode::Slice);
        limits.and_then(|limits| limits.first().copied()).is_some_and(|of| (of.start, of.limit) == (steps - 1, steps))
    };
    let mut readers = program.flow.readers(element).peekable();
    let is_read = readers.peek().is_some();
    is_read
        && readers.all(|found| match found {
            Use::Read(op) => program.flow.instruction(op).is_some_and(|reader| any_fused(&reader, is_last)),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::super::looped::{Looped, STACKS};
    use crate::advice::{
        Recommendation,
        finding::{Finding, OfStep, OverSteps},
    };
    use tilewise::ElementType;

    /// 64 steps, 128 MiB.
    fn advice(turn: &str, end: &str) -> Vec<Recommendation> {
        let start = r#"ALL custom-call(), custom_call_target="AllocateBuffer""#;
        Looped { steps: 64, matrix: "512,1024", turn, start, end }.advice()
    }

    fn enough(turn: &str, end: &str) -> Option<OfStep> {
        advice(turn, end).iter().find_map(|one| match &one.finding {
            Finding::StackedSteps(stack) if stack.steps == 64 => Some(stack.enough),
            _ => None,
        })
    }

    #[test]
    fn less_is_stacked_where_little_is_read() {
        let end = "ROOT r.1 = f32[64,1,1024]{2,0,1:T(8,128)} slice(e), slice={[0:64], [3:4], [0:1024]}";
        assert_eq!(enough(STACKS, end), Some(OfStep::Made));
        let last = "ROOT r.1 = f32[1,512,1024]{2,1,0:T(8,128)} slice(e), slice={[63:64], [0:512], [0:1024]}";
        assert_eq!(enough(STACKS, last), Some(OfStep::Last));
        // A row of what is computed of each step, and a row of a maximum over the steps.
        let of_each = "doubled = ALL exponential(e)\n  ROOT r.1 = f32[64,1,1024]{2,0,1:T(8,128)} slice(doubled), slice={[0:64], [3:4], [0:1024]}";
        assert_eq!(enough(STACKS, of_each), Some(OfStep::Made));
        let over_steps = "doubled = ALL exponential(e)
  least = f32[] constant(0)
  ROOT r.1 = f32[512,1024]{1,0:T(8,128)} reduce(doubled, least), dimensions={0}, to_apply=most";
        let maxima = OverSteps { maxima: true, ..OverSteps::default() };
        assert_eq!(enough(STACKS, over_steps), Some(OfStep::MadeOverSteps(maxima)));
        // A sum of exponentials less the maximum goes on from step to step, too; a row of each step is little.
        let exponentials = "least = f32[] constant(0)
  m = ONE reduce(e, least), dimensions={0}, to_apply=most
  p = ONE fusion(e, m), kind=kLoop, calls=powers
  row = f32[64,1,1024]{2,0,1:T(8,128)} slice(e), slice={[0:64], [3:4], [0:1024]}
  ROOT r.1 = (ONE, f32[64,1,1024]{2,0,1:T(8,128)}) tuple(p, row)";
        let log_sums = OverSteps { log_sums: true, is_each_read: true, ..maxima };
        assert_eq!(enough(STACKS, exponentials), Some(OfStep::MadeOverSteps(log_sums)));
        // A variance goes on from step to step; squares less something else are sums.
        let deviations = "least = f32[] constant(0)
  m = ONE reduce(e, least), dimensions={0}, to_apply=sum
  ROOT v = ONE fusion(e, m), kind=kLoop, calls=squares";
        let sums = OverSteps { sums: true, ..OverSteps::default() };
        assert_eq!(enough(STACKS, deviations), Some(OfStep::MadeOverSteps(OverSteps { squares: true, ..sums })));
        let errors = "ROOT v = ONE fusion(e, x.1), kind=kLoop, calls=squares";
        assert_eq!(enough(STACKS, errors), Some(OfStep::MadeOverSteps(sums)));
        // A sum that goes on from step to step needs all steps, as does all of it.
        let windows = "ROOT r.1 = ALL reduce-window(e, least), window={size=64x1x1 pad=63_0x0_0x0_0}, to_apply=most";
        assert_eq!(enough(STACKS, &format!("least = f32[] constant(0)\n  {windows}")), None);
        assert_eq!(enough(STACKS, "ROOT r.1 = ALL exponential(e)"), None);
    }

    #[test]
    fn narrower_values_are_stacked_before_their_conversion() {
        let turn = "z = u8[512,1024]{1,0:T(8,128)(4,1)} convert(x)
  y = ONE negate(x)
  kept = ALL fusion(stack, z, i), kind=kLoop, calls=written";
        let returned = "ROOT r.1 = ALL get-tuple-element(w), index=2";
        assert_eq!(enough(STACKS, returned), Some(OfStep::Returned));
        assert_eq!(enough(turn, returned), Some(OfStep::Narrower(ElementType::U8)));
    }
}
