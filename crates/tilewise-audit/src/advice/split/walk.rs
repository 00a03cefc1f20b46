//! Follows a dimension's positions in program order, to where they are summed or meet.

use super::{Joint, Split, asks_for_any, is_unknown};
use crate::{
    advice::program::ProgramModel,
    program::{is_backward, op_name},
};
use foldhash::{HashMap, HashSet};
use std::{
    collections::{BTreeMap, BTreeSet},
    iter::successors,
    ops::Range,
};
use tilewise::ElementKind;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{AxisId, EventKind, FactorKind, Reached, Use},
};

/// Maximum number of joints; the positions are followed anew after each.
const MOST_JOINTS: usize = 8;

/// Maximum depth of calls that is followed.
const DEEPEST: usize = 32;

/// Levels of calls in which a scatter is looked for.
const CALLS: usize = 4;

/// A program with its callers and lookups, which don't depend on the dimension.
pub(super) struct Walk<'p, 'm> {
    pub(super) program: &'p ProgramModel<'m>,
    joinable_bytes: u64,
    /// The first caller of each computation, by index.
    callers: HashMap<usize, usize>,
    /// Gathers and scatters, by the axes of their indices' dimensions.
    lookups: HashMap<&'p [AxisId], Vec<Instruction<'m>>>,
}

/// Facts about one dimension.
struct Facts<'m> {
    /// Arrays that follow from arguments that may be trained.
    learned: Reached,
    /// Arrays of its positions' numbers, which an iota counts.
    counted: Reached,
    /// Those in another order, by values of the positions.
    reordered: Reached,
    /// Event kinds at each instruction where it ends or its positions mix.
    done: Vec<(Instruction<'m>, Vec<EventKind>)>,
}

impl Facts<'_> {
    /// Whether an instruction's array holds the positions' numbers in their own order.
    fn are_counted(&self, at: usize) -> bool {
        self.counted.has_any(at) && !self.reordered.has_any(at)
    }
}

impl<'p, 'm> Walk<'p, 'm> {
    pub(super) fn new(program: &'p ProgramModel<'m>, joinable_bytes: u64) -> Self {
        let mut callers = HashMap::default();
        for at in program.module.instructions() {
            for callee in at.calls().filter_map(|call| call.computation()) {
                callers.entry(callee.index()).or_insert(at.index());
            }
        }
        let axes = program.flow.axes();
        let mut lookups: HashMap<&'p [AxisId], Vec<Instruction<'m>>> = HashMap::default();
        for at in program.module.instructions().filter(|at| matches!(at.opcode(), Opcode::Gather | Opcode::Scatter)) {
            let indices = indices_of(&at).and_then(|indices| program.module.instruction(indices));
            let own: HashSet<&'p [AxisId]> = indices.iter().flat_map(|indices| axes.of_array(indices, 0)).collect();
            own.into_iter().for_each(|own| lookups.entry(own).or_default().push(at));
        }
        Self { program, joinable_bytes, callers, lookups }
    }

    /// Gathers and scatters whose indices have a dimension of these axes.
    pub(super) fn lookups(&self, own: &[AxisId]) -> Vec<Instruction<'m>> {
        self.lookups.get(own).cloned().unwrap_or_default()
    }

    fn instruction(&self, at: usize) -> Option<Instruction<'m>> {
        self.program.module.instruction(at)
    }

    fn caller(&self, at: &Instruction<'_>) -> Option<Instruction<'m>> {
        self.instruction(*self.callers.get(&at.computation().index())?)
    }

    /// The instruction of the entry computation that runs an instruction.
    fn outermost(&self, at: &Instruction<'_>) -> usize {
        let callers = successors(self.caller(at), |caller| self.caller(caller)).take(DEEPEST);
        callers.last().map_or(at.index(), |caller| caller.index())
    }

    /// Whether the compiler added an instruction: it has no operation name, and isn't in a loop of the program's own.
    pub(super) fn is_of_compiler(&self, at: &Instruction<'_>) -> bool {
        op_name(at).is_none() && !self.caller(at).is_some_and(|caller| self.program.own_loops.contains(&caller.index()))
    }

    /// Whether an instruction is of the backward pass; one without a name, by its outermost caller.
    fn is_backward(&self, at: &Instruction<'_>) -> bool {
        let name = op_name(at).or_else(|| op_name(&self.instruction(self.outermost(at))?));
        name.is_some_and(|name| is_backward(&name))
    }

    /// Follows the dimension from `born`, and notes where it is joined; `None` if joints are too many or too large.
    pub(super) fn run(&self, split: &mut Split<'p>, born: &[(usize, usize)]) -> Option<()> {
        let axes = split.axes;
        let counts = split.made(self.program).filter(|at| at.opcode() == Opcode::Iota);
        // Numbers that become floats are values, even where they are rounded again.
        let is_value = |at: usize| {
            let of = self.instruction(at).and_then(|at| at.shape().ok()?.element_type());
            of.is_some_and(|of| of.kind() == ElementKind::Float)
        };
        let counted = axes.reach_elements(counts.map(|at| (at.index(), 0)), &is_value);
        let reordered = axes.reach_elements(self.reordered(split, &counted), &|_| false);
        let learned = axes.reach(self.learned(split), &|_| false);
        // Event kinds at each instruction, once each: one event may occur along many axes.
        let mut done: BTreeMap<usize, Vec<EventKind>> = BTreeMap::new();
        for event in split.events().filter(|event| matches!(event.kind, EventKind::Ends(_) | EventKind::Mixed)) {
            let kinds = done.entry(event.instruction).or_default();
            if !kinds.contains(&event.kind) {
                kinds.push(event.kind);
            }
        }
        let done = done.into_iter().map(|(at, kinds)| Some((self.instruction(at)?, kinds)));
        let facts = Facts { learned, counted, reordered, done: done.collect::<Option<Vec<_>>>()? };
        let unknown = split.made(self.program).filter(is_unknown);
        let unknown: Vec<usize> = unknown.map(|at| at.index()).collect();
        split.whole =
            axes.reach(unknown.into_iter().flat_map(|at| (0..axes.leaves(at)).map(move |leaf| (at, leaf))), &|_| false);
        let mut joints: BTreeSet<usize> = BTreeSet::new();
        for _ in 0..=MOST_JOINTS {
            split.each = axes.reach(born.iter().copied(), &|at| joints.contains(&at));
            let joined = joints.iter().flat_map(|at| (0..axes.leaves(*at)).map(|leaf| (*at, leaf)));
            split.after = axes.reach(joined, &|_| false);
            let Some(at) = self.first_joint(split, &facts, &joints)? else {
                return (!joints.is_empty() || self.is_kept_track_of(split, &facts)).then_some(());
            };
            if !joints.insert(at) || !self.is_small(split, at) {
                return None;
            }
            split.joined.get_or_insert((at, Joint::Rows));
        }
        None
    }

    /// The results of sorts along the dimension by other keys than its positions' numbers, which these follow.
    fn reordered(&self, split: &Split<'_>, counted: &Reached) -> Vec<(usize, usize)> {
        let is_own = |at: &Instruction<'_>| at.opcode() == Opcode::Sort && !looks_up(at) && !self.is_of_compiler(at);
        let sorts = self.program.module.instructions().filter(is_own);
        let is_by_values = |at: &Instruction<'_>| {
            let along = at.dimensions().and_then(|of| of.first().copied());
            along.is_some_and(|along| split.places(at, 0).any(|place| place == along))
                && self.key(at).is_none_or(|key| !counted.has_any(key))
        };
        let leaves = |at: usize| (0..split.axes.leaves(at)).map(move |leaf| (at, leaf));
        let sorts = sorts.filter(is_by_values).map(|at| at.index());
        sorts.flat_map(leaves).filter(|(at, leaf)| counted.has(*at, *leaf)).collect()
    }

    /// Whether a compiler sorts rows that it then scatters.
    fn is_before_scatter(&self, sort: &Instruction<'_>) -> bool {
        let flow = self.program.flow;
        let mut readers =
            flow.op(sort).into_iter().flat_map(|op| flow.positions(op)).flat_map(|at| flow.readers(at)).peekable();
        let scatters = |found: Use| match found {
            Use::Read(op) => {
                let reader = flow.instruction(op).and_then(|at| self.instruction(at.index()));
                // The start has the computation, and the update may have the operands.
                let is_update = |at: &Instruction<'m>| at.opcode() == Opcode::AsyncUpdate;
                let start = reader.filter(is_update).and_then(|at| at.operands().next()?.instruction());
                let reader = start.or(reader);
                reader.is_some_and(|reader| runs_scatter(&reader, CALLS))
            }
            Use::Passed(_) | Use::Bitcast(_) | Use::Copied(..) => true,
            _ => false,
        };
        self.is_of_compiler(sort) && readers.peek().is_some() && readers.all(scatters)
    }

    /// The key of a sort, if it may be of positions' numbers: a float is a value, which a comparison of numbers may pick.
    fn key(&self, sort: &Instruction<'_>) -> Option<usize> {
        let key = self.instruction(sort.operand_indices().next().flatten()?)?;
        let kind = key.shape().ok()?.element_type()?.kind();
        (kind != ElementKind::Float).then(|| key.index())
    }

    /// Whether an operation ends the dimension, or else all results that depend on the position have it: otherwise positions
    /// met somewhere unseen.
    fn is_kept_track_of(&self, split: &Split<'_>, facts: &Facts<'m>) -> bool {
        let ends = |(at, kinds): &(Instruction<'m>, Vec<EventKind>)| {
            kinds.iter().any(|kind| self.end(split, facts, at, *kind) != End::None)
        };
        let root = self.program.module.entry().and_then(|entry| entry.root());
        let is_lost = |root: &Instruction<'_>| {
            let mut leaves = 0..split.axes.leaves(root.index());
            leaves.any(|leaf| split.each.has(root.index(), leaf) && split.place(root, leaf).is_none())
        };
        self.program.has_gradient
            || split.is_made
            || facts.done.iter().any(ends)
            || !root.is_some_and(|root| is_lost(&root))
    }

    /// Arrays of arguments that may be trained: of floats, not scalars, and without the dimension unless they are
    /// states.
    fn learned(&self, split: &Split<'_>) -> Vec<(usize, usize)> {
        let is_number = |kind: ElementKind| matches!(kind, ElementKind::Float | ElementKind::Complex);
        let results = self.program.states();
        let mut found = Vec::new();
        for parameter in self.program.parameters() {
            let Ok(shape) = parameter.shape() else { continue };
            for (leaf, (_, array)) in shape.leaves().enumerate() {
                let is_float = array.element_type().is_some_and(|of| is_number(of.kind()));
                let is_state = || results.contains(&array.without_layout().to_string());
                if is_float && !array.dimensions().is_empty() && (split.place(&parameter, leaf).is_none() || is_state())
                {
                    found.push((parameter.index(), leaf));
                }
            }
        }
        found
    }

    /// The first instruction of the entry computation that joins positions; `Some(None)` if there isn't any, `None` if
    /// sums are too large. Reads of small forward sums in the backward pass don't count, but are noted in
    /// `split.joined`.
    fn first_joint(&self, split: &mut Split<'p>, facts: &Facts<'m>, known: &BTreeSet<usize>) -> Option<Option<usize>> {
        let is_after = |split: &Split<'_>, at: &Instruction<'_>| {
            split.after.has_any(at.index()) || known.contains(&self.outermost(at))
        };
        let mut joints: BTreeSet<usize> = BTreeSet::new();
        let [mut sums, mut others, mut ranked, mut counts] = [const { BTreeSet::<(usize, usize)>::new() }; 4];
        let mut adding: HashSet<usize> = HashSet::default();
        let mut done: Vec<(Instruction<'m>, &[EventKind])> =
            facts.done.iter().map(|(at, kinds)| (*at, &kinds[..])).collect();
        done.retain(|(at, _)| self.reads_each(split, at));
        let all_of = |at: &Instruction<'_>| {
            let at = at.index();
            (0..split.axes.leaves(at)).map(move |leaf| (at, leaf))
        };
        let ends = |split: &Split<'_>, at: &Instruction<'_>, kinds: &[EventKind]| -> Vec<End> {
            kinds.iter().map(|kind| self.end(split, facts, at, *kind)).collect()
        };
        for (at, kinds) in &done {
            if ends(split, at, kinds).contains(&End::All) {
                ranked.extend(all_of(at));
            }
        }
        let of_ranked = split.axes.reach(ranked.iter().copied(), &|_| false);
        for (at, kinds) in &done {
            let is_ranked = of_ranked.has_any(at.index()) && !ranked.contains(&(at.index(), 0));
            if is_ranked || is_after(split, at) {
                continue;
            }
            let ends = ends(split, at, kinds);
            if ends.contains(&End::Sum) {
                adding.insert(at.index());
                if !facts.learned.has_any(at.index()) {
                    counts.extend(all_of(at));
                }
            }
            if ends.contains(&End::Sum) && facts.learned.has_any(at.index()) {
                let is_forward = !self.is_backward(at);
                if is_forward { sums.extend(all_of(at)) } else { others.extend(all_of(at)) }
            }
            if ends.contains(&End::All) {
                others.extend(all_of(at));
            }
            if ends.contains(&End::Joint) {
                joints.insert(self.outermost(at));
            }
        }
        for (at, leaf) in split.each.all() {
            let Some(at) = self.instruction(at).filter(|at| !split.is_made && makes(at.opcode())) else { continue };
            if split.places(&at, leaf).nth(1).is_some() && !is_after(split, &at) {
                joints.insert(self.outermost(&at));
            }
        }
        split.is_divided = self.is_divided(split, facts, counts);
        // A maximum is no sum of the parts' own.
        let adds = |at: &usize| self.instruction(*at).is_some_and(|at| adds_up(&at));
        split.is_reduced = !adding.iter().all(adds);
        split.added = adding.iter().min().copied().filter(|_| !split.is_reduced);
        let sorts = |at: &usize| self.instruction(*at).is_some_and(|at| at.opcode() == Opcode::Sort);
        split.ranked = ranked.iter().map(|(at, _)| *at).find(sorts);
        let stops = |at: usize| split.after.has_any(at);
        let of_sums = split.axes.reach(sums.iter().copied(), &stops);
        let of_others = split.axes.reach(others.iter().copied(), &stops);
        let mut late = false;
        for at in self.program.module.instructions().filter(|at| makes(at.opcode())) {
            // A sum that goes on from another sum, its initial operand, doesn't combine that with single positions.
            let begins = if adding.contains(&at.index()) { initial(&at) } else { 0..0 };
            let read = || at.operand_indices().enumerate().filter(|(number, _)| !begins.contains(number));
            let is_all = |reached: &Reached| read().filter_map(|(_, read)| read).any(|read| reached.has_any(read));
            let (by_sums, by_others) = (is_all(&of_sums), is_all(&of_others));
            if !by_sums && !by_others || is_after(split, &at) {
                continue;
            }
            let is_own = |operand: usize| !of_sums.has_any(operand) && !of_others.has_any(operand);
            // The numbers of positions are their own, too.
            let is_numbered = |at: &Instruction<'_>| facts.are_counted(at.index()) && split.place(at, 0).is_some();
            let meets = |operand: &Instruction<'_>| self.is_each(split, operand) || is_numbered(operand);
            if !self.read(&at).any(|operand| is_own(operand.index()) && meets(&operand)) {
                continue;
            }
            let is_late = self.is_backward(&at);
            if is_late && !by_others && split.joined.is_none_or(|(_, joint)| joint == Joint::Sums) {
                late = true;
            } else {
                joints.insert(self.outermost(&at));
            }
        }
        if late && joints.is_empty() {
            let makers: BTreeSet<usize> = sums.iter().map(|(at, _)| *at).collect();
            let bytes = makers.into_iter().map(|at| self.bytes(at, |_| true)).fold(0, u64::saturating_add);
            if bytes > self.joinable_bytes {
                return None;
            }
            split.joined = sums.first().map(|(at, _)| (*at, Joint::Sums));
        }
        // A ranking needs all parts.
        if joints.is_empty() && !ranked.is_empty() {
            let known = split.after.all().collect::<Vec<_>>();
            split.after = split.axes.reach(known.into_iter().chain(ranked), &|_| false);
        }
        Some(joints.first().copied())
    }

    /// Whether something is divided by one of these sums over all positions, such as a loss by that of a mask: each part's
    /// sum is another.
    fn is_divided(&self, split: &Split<'_>, facts: &Facts<'m>, counts: BTreeSet<(usize, usize)>) -> bool {
        let of_counts = split.axes.reach(counts, &|at| facts.learned.has_any(at));
        let divides = |at: &Instruction<'_>| {
            let divisor = at.operand_indices().nth(1).flatten();
            divisor
                .is_some_and(|by| of_counts.has_any(by) && !facts.learned.has_any(by) && split.place(at, 0).is_none())
        };
        self.program.module.instructions().any(|at| at.opcode() == Opcode::Divide && divides(&at))
    }

    /// An event's effect on the positions at an instruction.
    fn end(&self, split: &Split<'_>, facts: &Facts<'m>, at: &Instruction<'_>, kind: EventKind) -> End {
        match kind {
            EventKind::Ends(FactorKind::Sum | FactorKind::Reduce) if at.opcode() == Opcode::Scatter => {
                return if self.is_by_number(split, facts, at) { End::None } else { End::Sum };
            }
            EventKind::Ends(FactorKind::Sum | FactorKind::Reduce) => {
                return if packs_bits(at) || asks_for_any(at) { End::None } else { End::Sum };
            }
            EventKind::Ends(_) | EventKind::Mixed => {}
            _ => return End::None,
        }
        // Compilers gather and scatter by sorts, pads and lookups, move arrays in slices, and add loops over parts.
        let around = self.instruction(self.outermost(at)).unwrap_or(*at);
        let is_start = |at: &Instruction<'_>| at.opcode() == Opcode::AsyncStart;
        let is_moved = is_start(at) || self.caller(at).is_some_and(|caller| is_start(&caller));
        let is_part =
            matches!(at.opcode(), Opcode::DynamicSlice | Opcode::DynamicUpdateSlice) && self.is_of_compiler(at);
        let is_looked_up = looks_up(at) || around.opcode() == Opcode::While && looks_up(&around);
        if is_moved || is_part || is_looked_up && !matches!(at.opcode(), Opcode::Gather | Opcode::Scatter) {
            return End::None;
        }
        match at.opcode() {
            Opcode::Gather | Opcode::Scatter if self.is_by_number(split, facts, at) => End::None,
            Opcode::Sort => {
                if self.is_before_scatter(at) || self.key(at).is_some_and(|key| facts.are_counted(key)) {
                    End::None
                } else {
                    End::All
                }
            }
            Opcode::Pad | Opcode::Concatenate | Opcode::Slice if split.goes_on(self, at) => End::None,
            // A kernel's result may have either of the two dimensions.
            Opcode::CustomCall | Opcode::Unknown if split.is_of_pairs => End::Joint,
            Opcode::CustomCall | Opcode::Unknown if split.place(at, 0).is_some() => End::None,
            Opcode::CustomCall | Opcode::Unknown => End::All,
            _ => End::Joint,
        }
    }

    /// Whether a gather or scatter keeps to each position's own rows: its indices count positions, or are several, one
    /// of them each position's.
    fn is_by_number(&self, split: &Split<'_>, facts: &Facts<'m>, at: &Instruction<'_>) -> bool {
        let indices = indices_of(at);
        let dimensions = if at.opcode() == Opcode::Gather { at.gather_dimensions() } else { at.scatter_dimensions() };
        let is_one_of_several = dimensions.is_some_and(|dimensions| dimensions.indexed.len() > 1);
        indices.is_some_and(|indices| {
            let is_of_places = || self.instruction(indices).is_some_and(|at| split.place(&at, 0).is_some());
            facts.are_counted(indices) || is_one_of_several && is_of_places()
        })
    }

    /// Whether an operand has the dimension, with other contents at each position.
    fn reads_each(&self, split: &Split<'_>, at: &Instruction<'m>) -> bool {
        self.read(at).any(|operand| self.is_each(split, &operand))
    }

    /// The operands of an instruction.
    fn read(&self, at: &Instruction<'m>) -> impl Iterator<Item = Instruction<'m>> {
        let module = self.program.module;
        at.operand_indices().flatten().filter_map(|operand| module.instruction(operand))
    }

    fn is_each(&self, split: &Split<'_>, at: &Instruction<'_>) -> bool {
        (0..split.axes.leaves(at.index())).any(|leaf| {
            split.each.has(at.index(), leaf) && !split.after.has(at.index(), leaf) && split.place(at, leaf).is_some()
        })
    }

    /// Whether an instruction's operands with the dimension take at most `joinable_bytes`.
    fn is_small(&self, split: &Split<'_>, at: usize) -> bool {
        let Some(at) = self.instruction(at) else { return false };
        let read =
            self.read(&at).map(|operand| self.bytes(operand.index(), |leaf| split.place(&operand, leaf).is_some()));
        read.fold(0, u64::saturating_add) <= self.joinable_bytes
    }

    /// Bytes of an instruction's arrays that `is_one` selects.
    fn bytes(&self, at: usize, is_one: impl Fn(usize) -> bool) -> u64 {
        let shape = self.instruction(at).and_then(|at| at.shape().ok());
        let leaves = shape.iter().flat_map(|shape| shape.leaves()).enumerate().filter(|(leaf, _)| is_one(*leaf));
        let bytes = leaves.filter_map(|(_, (_, leaf))| Some(leaf.as_array()?.sizes().ok()?.physical_bytes));
        bytes.fold(0, u64::saturating_add)
    }
}

/// An event's effect on positions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Each stays separate.
    None,
    /// They are added up, or reduced otherwise.
    Sum,
    /// The result depends on all of them.
    All,
    /// They meet.
    Joint,
}

/// The array of a gather's or a scatter's indices.
fn indices_of(at: &Instruction<'_>) -> Option<usize> {
    at.operand_indices().nth(at.indices_operand()?)?
}

/// Whether an instruction is a scatter, or calls one.
fn runs_scatter(at: &Instruction<'_>, depth: usize) -> bool {
    let mut inside = at.calls().filter_map(|call| call.computation()).flat_map(|called| called.instructions());
    at.opcode() == Opcode::Scatter || depth > 0 && inside.any(|at| runs_scatter(&at, depth - 1))
}

/// Whether a reduction, a scatter or a product adds up.
fn adds_up(at: &Instruction<'_>) -> bool {
    at.calls().next().is_none() || FactorKind::of_reduction(at) == FactorKind::Sum
}

/// Whether a reduction is an `or` of predicates, each shifted to its position's bit.
fn packs_bits(at: &Instruction<'_>) -> bool {
    let mut made = at.operands().next().and_then(|operand| operand.instruction());
    while let Some(convert) = made.filter(|made| made.opcode() == Opcode::Convert) {
        made = convert.operands().next().and_then(|operand| operand.instruction());
    }
    let mut calls = at.calls().filter_map(|call| call.computation()?.root());
    made.is_some_and(|made| made.opcode() == Opcode::ShiftLeft) && calls.any(|root| root.opcode() == Opcode::Or)
}

/// Whether an instruction is of a gather or a scatter, which a compiler may do by sorts, pads and loops.
fn looks_up(at: &Instruction<'_>) -> bool {
    let name = op_name(at).unwrap_or_default();
    let operation = name.rsplit('/').next().unwrap_or_default();
    operation.starts_with("gather") || operation.starts_with("scatter")
}

/// The numbers of a reduction's or scatter's initial operands.
fn initial(at: &Instruction<'_>) -> Range<usize> {
    let operands = at.operand_indices().count();
    match at.opcode() {
        Opcode::Scatter => 0..operands / 2,
        Opcode::Reduce | Opcode::ReduceWindow => operands / 2..operands,
        _ => 0..0,
    }
}

/// Whether an operation computes arrays, other than by passing them on or by running a computation.
fn makes(opcode: Opcode) -> bool {
    !matches!(
        opcode,
        Opcode::Parameter
            | Opcode::Tuple
            | Opcode::GetTupleElement
            | Opcode::Fusion
            | Opcode::Call
            | Opcode::While
            | Opcode::Conditional
            | Opcode::AsyncStart
            | Opcode::AsyncUpdate
            | Opcode::AsyncDone
            | Opcode::OptimizationBarrier
    )
}
