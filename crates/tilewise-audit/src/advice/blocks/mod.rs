//! A large array inside the program whose readers need one part of it at a time: the lines that make and read it can take a block
//! of its rows after another. A region is such an array with those that it is made of or that are made of it, as large as its
//! blocks or larger, in one computation; along one axis of it, positions may meet in nothing but sums that leave it.

mod anew;

pub(super) use anew::made_anew;

use super::{
    change::Target,
    devices::Devices,
    finding::{Blocks, Finding, Library},
    program::{LiveArray, ProgramModel},
    rule::Proposal,
    taken_apart::is_joined,
};
use crate::program::{
    Carry, SourceLine, bounds, elements, is_backward, is_of_directions, name, op_name, ranks_rows, scores, source_line,
};
use foldhash::{HashMap, HashSet};
use std::cmp::Reverse;
use tilewise::Shape;
use tilewise_hlo::{
    Computation, Instruction, Opcode,
    dataflow::{Axes, AxisId, Event, EventKind, FactorKind, Position, Reached, Use},
};

/// The largest arrays matter from this part of the program's bytes on.
const MUCH: u64 = 8;
/// Most blocks: what remains of a sixteenth is seldom the largest.
const BLOCKS: u64 = 16;
/// Rows that have a name may free less by this part.
const NAMED: u64 = 8;
/// Fewer places aren't rows.
const ROWS: u64 = 8;
/// Most large arrays that are tried.
const MOST_TRIED: usize = 6;
/// Most other computations that have the array.
const MOST_TWINS: usize = 4;
/// Most lines that join the rows of blocks.
const MOST_JOINED: usize = 3;
/// Maximum depth of fusions in fusions, and of loops in loops.
const DEPTH: usize = 8;

/// The best blocks of one of the largest arrays at the peak, with the bytes that they free, if `enough` gives them; where a few lines
/// join all rows, if `may_join`.
pub(super) fn blocks(
    program: &ProgramModel<'_>,
    may_join: bool,
    enough: impl Fn(&Proposal) -> Option<u64>,
) -> Option<(u64, Proposal)> {
    let mut large: Vec<&LiveArray<'_>> = program.peak_temporaries().collect();
    large.sort_by_key(|array| array.bytes);
    large.reverse();
    let most = large.first()?.bytes;
    // Scores are for kernels of attention.
    let scores = scores(program.module, 1);
    large.retain(|array| array.bytes > most / 2);
    let bytes = large.iter().map(|array| array.bytes).fold(0, u64::saturating_add);
    if bytes < program.total_bytes / MUCH || scores.contains_key(&large[0].elements()) {
        return None;
    }
    large.retain(|array| is_read_here(program, array.position));
    let mut areas: Vec<Area<'_, '_>> = Vec::new();
    let mut found: Option<(u64, Proposal)> = None;
    for array in large.into_iter().take(MOST_TRIED) {
        let computation = array.instruction.computation();
        if !areas.iter().any(|area| area.computation == computation) {
            areas.extend(Area::of(program, computation, array.elements() / BLOCKS));
        }
        let Some(area) = areas.iter().find(|area| area.computation == computation) else { continue };
        let better = blocks_in(area, array, may_join, &enough);
        found = better.filter(|(freed, _)| found.as_ref().is_none_or(|(before, _)| freed > before)).or(found);
    }
    found
}

/// The best blocks of an array, with the bytes that they free.
pub(super) fn blocks_of(
    program: &ProgramModel<'_>,
    largest: &LiveArray<'_>,
    enough: impl Fn(&Proposal) -> Option<u64>,
) -> Option<(u64, Proposal)> {
    let area = Area::of(program, largest.instruction.computation(), largest.elements() / BLOCKS)?;
    blocks_in(&area, largest, false, enough)
}

fn blocks_in<'m>(
    area: &Area<'_, 'm>,
    largest: &LiveArray<'m>,
    may_join: bool,
    enough: impl Fn(&Proposal) -> Option<u64>,
) -> Option<(u64, Proposal)> {
    let program = area.program;
    let (at, leaf) = program.flow.told(largest.position)?;
    let mut own: Vec<AxisId> = area.axes.in_array(&at, leaf).to_vec();
    own.retain(|axis| area.axes.all()[*axis].size >= ROWS);
    let regions = own.into_iter().filter_map(|axis| Region::of(area, (&at, leaf), axis));
    let regions = regions.filter(|region| may_join || region.met.is_empty());
    // Blocks of rows that devices divide would be moved between them.
    let devices = if program.is_mapped() { None } else { Devices::of(program) };
    let is_whole = |region: &Region<'_, '_, '_>| {
        let dimension = region.dimensions(&at, leaf).next();
        let rows = dimension.map(|dimension| program.flow.axes().of_dimension(&at, leaf, dimension));
        !devices.as_ref().zip(rows).is_some_and(|(devices, rows)| devices.divide(rows))
    };
    let (twins, mut apart) = (twins(program, largest), Vec::new());
    let found = regions.filter(is_whole).filter_map(|region| {
        let proposal = region.proposal(largest)?;
        if apart.is_empty() {
            let areas = twins.iter().map(|twin| Area::of(program, twin.instruction.computation(), area.least));
            apart = areas.collect();
        }
        let dimension = region.dimensions(&at, leaf).next()?;
        let in_blocks = twins.iter().zip(&apart).filter_map(|(twin, area)| in_blocks(area.as_ref()?, twin, dimension));
        let proposal = proposal.at_most(in_blocks.flatten().collect::<Vec<_>>());
        let proposal = if is_joined(program, &proposal) { of_step(program, proposal)? } else { proposal };
        let has_name = matches!(&proposal.finding, Finding::Blocks(Blocks { of: Some(_), .. }));
        Some((enough(&proposal)?, has_name, region.sums.len(), proposal))
    });
    // Rows of an argument before others, unless those free much more; rows that are put together need no sums; among equals, the
    // outermost axis comes first.
    let worth = |(freed, has_name, sums, _): &(u64, bool, usize, Proposal)| {
        (if *has_name { freed.saturating_add(freed / NAMED) } else { *freed }, Reverse(*sums))
    };
    let found: Vec<(u64, bool, usize, Proposal)> = found.collect();
    let dimension = |proposal: &Proposal| match &proposal.finding {
        Finding::Blocks(Blocks { dimension, .. }) => Some(*dimension),
        _ => None,
    };
    let counts = found.iter().map(|(.., proposal)| dimension(proposal)).fold(HashMap::default(), |mut counts, at| {
        *counts.entry(at).or_insert(0_usize) += 1;
        counts
    });
    let best = found.into_iter().reduce(|best, other| if worth(&other) > worth(&best) { other } else { best });
    best.map(|(freed, .., mut proposal)| {
        // Where a dimension's axes, such as those that a compiler made of it for its tiles, all keep apart, it does as a whole.
        if let Finding::Blocks(Blocks { size, dimension, joined, .. }) = &mut proposal.finding
            && joined.is_empty()
            && counts.get(&Some(*dimension)) == Some(&area.axes.of_dimension(&at, leaf, *dimension).len())
        {
            *size = largest.bounds.get(*dimension).copied().unwrap_or(*size);
        }
        (freed, proposal)
    })
}

/// Whether only operations of an array's own computation read it.
fn is_read_here(program: &ProgramModel<'_>, position: Position) -> bool {
    let flow = program.flow;
    let body = flow[flow.op_at(position)].body;
    let is_here = |found: Use| match found {
        Use::Read(op) => {
            flow[op].body == body && !matches!(flow[op].opcode, Opcode::While | Opcode::Call | Opcode::Conditional)
        }
        _ => false,
    };
    flow.readers(position).all(is_here)
}

/// Arrays that the same lines make in other computations, such as a function that is called before a loop and in it.
fn twins<'p, 'm>(program: &'p ProgramModel<'m>, largest: &LiveArray<'m>) -> Vec<&'p LiveArray<'m>> {
    let line = source_line(&largest.instruction);
    let mut computations = vec![largest.instruction.computation()];
    let alike = program.temporaries().filter(|array| array.bounds == largest.bounds && line.is_some());
    let alike = alike.filter(|array| source_line(&array.instruction) == line);
    let apart = alike.filter(|array| {
        let own = array.instruction.computation();
        let is_new = !computations.contains(&own);
        computations.push(own);
        is_new
    });
    apart.take(MOST_TWINS).collect()
}

/// The buffers of a twin's region, with their bytes in blocks along a dimension.
fn in_blocks(area: &Area<'_, '_>, twin: &LiveArray<'_>, dimension: usize) -> Option<Vec<(usize, u64)>> {
    let (at, leaf) = area.program.flow.told(twin.position)?;
    let mut own = area.axes.of_dimension(&at, leaf, dimension).iter().copied();
    let proposal = own.find_map(|axis| Region::of(area, (&at, leaf), axis)?.proposal(twin))?;
    Some(proposal.buffers.at_most.into_iter().collect())
}

/// A computation with those that it fuses.
struct Area<'p, 'm> {
    program: &'p ProgramModel<'m>,
    computation: Computation<'m>,
    /// All instructions, by their indices.
    all: HashMap<usize, Instruction<'m>>,
    /// Instructions that have one value: parameters of fused computations and what is passed for them, results and what gives them.
    same: Vec<(usize, usize)>,
    /// Values that are there before: parameters, results of loops, and their copies.
    given: HashSet<usize>,
    /// Elements of a block: large arrays have more.
    least: u64,
    /// Its axes: rows and columns of a matrix of pairs are two, though one small array has both.
    axes: Axes,
}

impl<'p, 'm> Area<'p, 'm> {
    fn of(program: &'p ProgramModel<'m>, computation: Computation<'m>, least: u64) -> Option<Self> {
        let (all, same, given, axes) = Default::default();
        let mut area = Self { program, computation, all, same, given, least, axes };
        area.add(computation, None, DEPTH)?;
        let is_new = |at: &&Instruction<'m>| !area.given.contains(&at.index());
        let large = area.all.values().filter(is_new).filter(|at| area.leaves(at).next().is_some());
        let large: HashSet<usize> = large.map(|at| at.index()).collect();
        let leaves = large
            .iter()
            .filter_map(|at| area.all.get(at))
            .flat_map(|at| area.leaves(at).map(|leaf| (at.index(), leaf)));
        let follows = area.following(program.flow.axes(), leaves);
        let is_own = |at: usize| !area.given.contains(&at) && (large.contains(&at) || follows.has_any(at));
        area.axes = Axes::apart(program.module, &|at| !area.all.contains_key(&at) || !is_own(at));
        Some(area)
    }

    /// The leaves of an instruction's result that are large.
    fn leaves(&self, at: &Instruction<'m>) -> impl Iterator<Item = usize> + use<> {
        let shape = at.shape();
        let arrays = shape.iter().flat_map(|shape| shape.leaves()).enumerate();
        let is_large = |array: &Shape| array.bounds().is_some_and(|bounds| elements(&bounds) > self.least);
        arrays.filter(|(_, (_, array))| is_large(array)).map(|(leaf, _)| leaf).collect::<Vec<_>>().into_iter()
    }

    /// Whether a result stays whole, because others than this computation's own operations read it.
    fn is_whole(&self, at: &Instruction<'m>) -> bool {
        let flow = self.program.flow;
        let positions = flow.op(at).into_iter().flat_map(|op| flow.positions(op));
        positions.into_iter().any(|position| !flow.is_tuple(position) && !is_read_here(self.program, position))
    }

    /// The arrays that follow from others, in one turn of a loop.
    fn following(&self, axes: &Axes, from: impl IntoIterator<Item = (usize, usize)>) -> Reached {
        let end = self.computation.root().map(|root| root.index());
        axes.reach(from, &|at| Some(at) == end)
    }

    /// Adds a computation, and the fusion that calls it; `None` if fusions are nested too deeply.
    fn add(&mut self, computation: Computation<'m>, fusion: Option<Instruction<'m>>, depth: usize) -> Option<()> {
        for at in computation.instructions() {
            self.all.insert(at.index(), at);
            let mut operands = at.operand_indices().flatten();
            let is_given = match (at.opcode(), fusion) {
                (Opcode::Parameter, Some(fusion)) => {
                    let passed = fusion.operand_indices().nth(at.parameter_number()?).flatten()?;
                    self.same.push((passed, at.index()));
                    self.given.contains(&passed)
                }
                (Opcode::Parameter | Opcode::While | Opcode::Constant, _) => true,
                (
                    Opcode::Copy | Opcode::CopyStart | Opcode::CopyDone | Opcode::Bitcast | Opcode::GetTupleElement,
                    _,
                ) => operands.next().is_some_and(|of| self.given.contains(&of)),
                _ => false,
            };
            if is_given {
                self.given.insert(at.index());
            }
            if at.opcode() == Opcode::Fusion {
                for called in at.calls().filter_map(|call| call.computation()) {
                    self.add(called, Some(at), depth.checked_sub(1)?)?;
                    self.same.extend(called.root().map(|root| (root.index(), at.index())));
                }
            }
        }
        Some(())
    }
}

/// Arrays that are computed in blocks along an axis.
struct Region<'a, 'p, 'm> {
    area: &'a Area<'p, 'm>,
    axis: AxisId,
    /// The instructions that make them.
    made: HashSet<usize>,
    /// The instructions that add positions up, or reduce them otherwise, but for those of a backward pass.
    sums: Vec<Instruction<'m>>,
    /// The instructions in which positions meet otherwise.
    met: Vec<usize>,
}

impl<'a, 'p, 'm> Region<'a, 'p, 'm> {
    /// `None` unless each block follows from the region's own block, and from arrays that are there before.
    fn of(area: &'a Area<'p, 'm>, (largest, leaf): (&Instruction<'m>, usize), axis: AxisId) -> Option<Self> {
        let mut region = Self { area, axis, made: HashSet::default(), sums: Vec::new(), met: Vec::new() };
        let is_new = |at: &&Instruction<'m>| !area.given.contains(&at.index());
        let large = area.all.values().filter(is_new).filter(|at| region.leaves(at).next().is_some());
        let large: HashSet<usize> = large.map(|at| at.index()).collect();
        // Beyond an array that stays whole, others are made of all its rows.
        let is_whole = |at: usize| area.all.get(&at).is_some_and(|at| area.is_whole(at));
        let made = connected(area, &large, largest.index(), is_whole);
        // Of two dimensions of one array, even a small one such as products of all pairs, one would be whole.
        let is_paired = |at: &Instruction<'m>| {
            (0..area.axes.leaves(at.index())).any(|leaf| region.dimensions(at, leaf).nth(1).is_some())
        };
        let is_alike = |at: &usize| area.all.get(at).is_some_and(keeps_places);
        let has_it = region.leaves(largest).any(|has| has == leaf);
        if !has_it || !made.iter().all(is_alike) || area.all.values().any(is_paired) {
            return None;
        }
        region.made = made;
        region.met = region.meetings()?;
        Some(region)
    }

    /// The dimensions of an array that have the axis.
    fn dimensions(&self, at: &Instruction<'m>, leaf: usize) -> impl Iterator<Item = usize> {
        let all = self.area.axes.of_array(at, leaf).enumerate();
        all.flat_map(|(dimension, axes)| axes.iter().filter(|axis| **axis == self.axis).map(move |_| dimension))
    }

    /// The leaves of an instruction's result that have the axis, and are large.
    fn leaves(&self, at: &Instruction<'m>) -> impl Iterator<Item = usize> {
        let leaves = self.area.leaves(at).filter(|leaf| self.dimensions(at, *leaf).next().is_some());
        leaves.collect::<Vec<_>>().into_iter()
    }

    /// Its arrays: instructions with leaves.
    fn arrays(&self) -> impl Iterator<Item = (usize, usize)> {
        let made = self.made.iter().filter_map(|at| self.area.all.get(at));
        made.flat_map(|at| self.leaves(at).map(|leaf| (at.index(), leaf)))
    }

    /// Where positions meet but in sums that nothing in the region reads, other than the backward pass of forward sums, which it notes;
    /// `None` if they meet in making the region's arrays.
    fn meetings(&mut self) -> Option<Vec<usize>> {
        let (area, axes) = (self.area, &self.area.axes);
        let of_region = area.following(axes, self.arrays());
        let (mut forward, mut backward, mut met) = (Vec::new(), Vec::new(), Vec::new());
        for event in axes.events(self.axis) {
            let Some(at) = area.all.get(&event.instruction) else { continue };
            let reads = |is: &dyn Fn(usize) -> bool| at.operand_indices().flatten().any(is);
            let reads_it = reads(&|of| self.made.contains(&of));
            let is_made = self.made.contains(&at.index());
            let is_met = match event.kind {
                EventKind::Made(FactorKind::Repeat) => false,
                EventKind::Made(_) if is_made && at.opcode() != Opcode::Iota => return None,
                EventKind::Ends(FactorKind::Sum | FactorKind::Reduce) if reads_it => {
                    // The place of a largest element counts from each block's first; two sums, as of complex numbers, are apart.
                    let is_alone = axes.leaves(at.index()) == 1 || event.kind == EventKind::Ends(FactorKind::Sum);
                    if !matches!(at.opcode(), Opcode::Dot | Opcode::Convolution | Opcode::Reduce) {
                        return None;
                    }
                    met.extend(Some(at.index()).filter(|_| !is_alone));
                    // Those of a backward pass follow from its blocks by themselves.
                    self.sums.extend(Some(*at).filter(|at| is_alone && !is_of_backward(at)));
                    true
                }
                EventKind::Ends(_) if self.picks_by_number(at) || self.ranks_each(at) => false,
                EventKind::Mixed if reads_it || is_made => return None,
                EventKind::Ends(_) if is_made => return None,
                EventKind::Ends(_) if reads_it && at.opcode() == Opcode::Gather => {
                    met.push(at.index());
                    true
                }
                EventKind::Ends(_) if reads_it => return None,
                EventKind::Ends(_) | EventKind::Mixed => reads(&|of| of_region.has_any(of)),
                _ => false,
            };
            if is_met {
                if is_of_backward(at) { backward.push(at.index()) } else { forward.push(at.index()) }
            }
        }
        let leaves = |at: usize| (0..axes.leaves(at)).map(move |leaf| (at, leaf));
        let after = |sums: &[usize]| area.following(axes, sums.iter().copied().flat_map(leaves));
        let (after, after_backward) = (after(&forward), after(&backward));
        let is_late = |at: &usize| area.all.get(at).is_some_and(is_of_backward);
        if self.arrays().any(|(at, leaf)| after_backward.has(at, leaf)) {
            return None;
        }
        if self.arrays().any(|(at, leaf)| after.has(at, leaf) && !is_late(&at)) {
            met.extend(forward);
        }
        Some(met)
    }

    /// The instructions that join the positions of other arrays, such as a solver's scalar products; of a loop, sums too, which its
    /// next turn reads.
    fn joined_apart(&self, rows: &[AxisId]) -> Vec<usize> {
        let (flow, area) = (self.area.program.flow, self.area);
        let events = rows.iter().flat_map(|axis| flow.axes().events(*axis));
        let joints = events.filter(|event| matches!(event.kind, EventKind::Ends(FactorKind::Sum | FactorKind::Reduce)));
        let reads_it = |at: &Instruction<'_>| at.operand_indices().flatten().any(|of| self.made.contains(&of));
        let joints = joints.filter_map(|event| area.program.module.instruction(event.instruction));
        let others = joints.filter(|at| !reads_it(at)).map(|at| at.index());
        let caller = area.computation.instructions().next().and_then(|at| flow.caller(flow.op(&at)?));
        let is_loop = caller.is_some_and(|caller| flow[caller].opcode == Opcode::While);
        let sums = self.sums.iter().filter(|_| is_loop).map(|at| at.index());
        others.chain(sums).collect()
    }

    /// Whether an instruction ranks the numbers of each position's own row, the last dimension.
    fn ranks_each(&self, at: &Instruction<'m>) -> bool {
        let rows = at.operands().next().and_then(|of| of.instruction()).filter(|_| ranks_rows(at));
        let last = |of: &Instruction<'_>| bounds(of).map(|bounds| bounds.len().saturating_sub(1));
        rows.is_some_and(|rows| self.dimensions(&rows, 0).all(|dimension| Some(dimension) != last(&rows)))
    }

    /// Whether a gather picks elements of each position's own row: by several numbers, one of them the position's.
    fn picks_by_number(&self, at: &Instruction<'m>) -> bool {
        let Some(numbers) = at.gather_dimensions().filter(|numbers| numbers.indexed.len() > 1) else { return false };
        let mut operands = at.operands().map(|of| of.instruction());
        let [Some(Some(array)), Some(Some(indices))] = [operands.next(), operands.next()] else { return false };
        let is_numbered = self.dimensions(&array, 0).any(|dimension| numbers.indexed.contains(&dimension));
        is_numbered && self.dimensions(&indices, 0).next().is_some()
    }

    /// The proposal, if the largest array needn't be whole.
    fn proposal(&self, largest: &LiveArray<'m>) -> Option<Proposal> {
        let program = self.area.program;
        let size = self.area.axes.all()[self.axis].size;
        let blocks = (2..=BLOCKS).rev().find(|blocks| size.is_multiple_of(*blocks))?;
        let of_blocks: Vec<&LiveArray<'m>> = program.temporaries().filter(|array| self.is_in_blocks(array)).collect();
        if !of_blocks.iter().any(|array| array.position == largest.position) {
            return None;
        }
        let has_gradient = self.made.iter().any(|at| self.area.all.get(at).is_some_and(is_of_backward));
        let (at, leaf) = program.flow.told(largest.position)?;
        let dimension = self.dimensions(&at, leaf).next()?;
        let rows = program.flow.axes().of_dimension(&at, leaf, dimension);
        // Samples of which each has its own derivatives are passed.
        let is_passed = |event: &Event| matches!(event.kind, EventKind::Argument(..));
        let are_directions = op_name(&at).is_some_and(|name| is_of_directions(&name))
            && !rows.iter().flat_map(|axis| program.flow.axes().events(*axis)).any(is_passed);
        let of = self.argument_of_rows(rows).filter(|_| !are_directions);
        let size = if are_directions { *largest.bounds.get(dimension)? } else { size };
        let met = self.met.iter().filter_map(|at| source_line(self.area.all.get(at)?));
        let mut joined: Vec<SourceLine> = met.collect();
        joined.sort_by(|one, other| one.place().cmp(&other.place()));
        joined.dedup_by(|one, other| one.place() == other.place());
        // More lines are another algorithm, and unknown lines can't be rewritten.
        if joined.len() > MOST_JOINED || joined.is_empty() != self.met.is_empty() || has_gradient && !joined.is_empty()
        {
            return None;
        }
        let counts = |event: &Event| {
            self.made.contains(&event.instruction)
                && matches!(event.kind, EventKind::Made(kind) if kind != FactorKind::Repeat)
        };
        let are_counted = self.area.axes.events(self.axis).iter().any(counts);
        let is_maximum = |at: &&Instruction<'_>| {
            at.calls().any(|call| {
                call.computation().and_then(|of| of.root()).is_some_and(|root| root.opcode() == Opcode::Maximum)
            })
        };
        let (sums, maxima) = (self.sums.len(), self.sums.iter().filter(is_maximum).count());
        let finding = Blocks {
            size,
            dimension,
            of,
            are_directions,
            are_counted,
            blocks,
            sums,
            maxima,
            joined,
            has_gradient,
            is_of_step: false,
        };
        let proposal = Proposal::new(Finding::Blocks(finding), Target::Value, program.advised(largest)).bound();
        let proposal = Proposal { apart: self.joined_apart(rows), ..proposal };
        Some(proposal.at_most(of_blocks.iter().map(|array| (array.buffer, array.bytes / blocks))))
    }

    /// Whether an array is made in the region, has the axis, and is read within its computation alone.
    fn is_in_blocks(&self, array: &LiveArray<'m>) -> bool {
        let program = self.area.program;
        let Some((at, leaf)) = program.flow.told(array.position) else { return false };
        let is_made = self.made.contains(&at.index()) && at.computation() == self.area.computation;
        let has_it = || self.leaves(&at).any(|has| has == leaf);
        is_made && has_it() && is_read_here(program, array.position)
    }

    /// The name of the nearest argument that begins with one of these axes of the program, and that the region reads; in a loop, of
    /// its initial value.
    fn argument_of_rows(&self, rows: &[AxisId]) -> Option<String> {
        let read =
            self.made.iter().filter_map(|at| self.area.all.get(at)).flat_map(|at| at.operand_indices().flatten());
        let mut read: Vec<usize> = read.filter(|at| !self.made.contains(at)).collect();
        read.sort_unstable();
        read.dedup();
        self.argument(rows, read, DEPTH)
    }

    fn argument(&self, rows: &[AxisId], from: Vec<usize>, depth: usize) -> Option<String> {
        let (module, flow) = (self.area.program.module, self.area.program.flow);
        let has_it = |at: &Instruction<'_>| {
            let first = |leaf: usize| flow.axes().of_dimension(at, leaf, 0).first();
            (0..flow.axes().leaves(at.index())).filter_map(first).any(|axis| rows.contains(axis))
        };
        let passed: HashMap<usize, usize> = self.area.same.iter().map(|(passed, at)| (*at, *passed)).collect();
        let (mut waiting, mut seen) = (std::collections::VecDeque::from(from), HashSet::default());
        while let Some(next) = waiting.pop_front() {
            let Some(at) = module.instruction(next).filter(|at| seen.insert(at.index()) && has_it(at)) else {
                continue;
            };
            let is_argument = at.opcode() == Opcode::Parameter && at.computation().is_entry();
            if is_argument {
                return Some(name(&at)).filter(|name| !name.is_empty());
            }
            let of_tuple = at.operands().next().and_then(|of| of.instruction());
            let carried =
                of_tuple.filter(|of| of.opcode() == Opcode::Parameter && at.opcode() == Opcode::GetTupleElement);
            if let Some(taken) = carried {
                let around = flow.op(&taken).and_then(|op| flow.loop_around(op)).and_then(|op| flow.instruction(op));
                let around = around.and_then(|around| module.instruction(around.index()));
                let start = around.and_then(|around| Carry::of(&around)?.start(at.tuple_index()?));
                if let Some(start) = start.filter(|_| depth > 0) {
                    return self.argument(rows, vec![start.index()], depth - 1);
                }
                continue;
            }
            waiting.extend(passed.get(&next).copied().into_iter().chain(at.operand_indices().flatten()));
        }
        None
    }
}

/// Blocks for which the step is rewritten as a whole; `None` where it can't be.
fn of_step(program: &ProgramModel<'_>, proposal: Proposal) -> Option<Proposal> {
    let is_whole = program.library == Library::Jax && program.partitions <= 1;
    match proposal.finding {
        Finding::Blocks(found) if is_whole && found.joined.is_empty() && found.sums > found.maxima => {
            Some(Proposal { finding: Finding::Blocks(Blocks { is_of_step: true, ..found }), ..proposal })
        }
        _ => None,
    }
}

/// The instructions among these that lead to one, or follow from it, through each other, but not beyond those that are whole.
fn connected(
    area: &Area<'_, '_>,
    large: &HashSet<usize>,
    from: usize,
    is_whole: impl Fn(usize) -> bool,
) -> HashSet<usize> {
    let mut near: HashMap<usize, Vec<usize>> = HashMap::default();
    let operands = large.iter().filter_map(|at| area.all.get(at));
    let operands = operands.filter(|at| at.opcode() != Opcode::Fusion);
    let read = operands.flat_map(|at| at.operand_indices().flatten().map(|of| (of, at.index())).collect::<Vec<_>>());
    let both =
        read.chain(area.same.iter().copied()).filter(|(one, other)| large.contains(one) && large.contains(other));
    let mut whole: HashMap<usize, bool> = HashMap::default();
    for (one, other) in both {
        if *whole.entry(one).or_insert_with(|| is_whole(one)) {
            continue;
        }
        near.entry(one).or_default().push(other);
        near.entry(other).or_default().push(one);
    }
    let (mut waiting, mut found) = (vec![from], HashSet::default());
    while let Some(next) = waiting.pop() {
        if large.contains(&next) && found.insert(next) {
            waiting.extend(near.get(&next).into_iter().flatten());
        }
    }
    found
}

/// Whether an instruction may be done for a block of positions: it draws nothing, calls nothing, and no other device takes part.
fn keeps_places(at: &Instruction<'_>) -> bool {
    let is_call = matches!(at.opcode(), Opcode::Call | Opcode::Conditional | Opcode::While | Opcode::AsyncStart);
    let is_drawn = matches!(at.opcode(), Opcode::Xor | Opcode::Rng | Opcode::RngBitGenerator);
    !is_call && !is_drawn && at.group_size().is_none()
}

fn is_of_backward(at: &Instruction<'_>) -> bool {
    op_name(at).is_some_and(|name| is_backward(&name) && !is_of_directions(&name))
}

#[cfg(test)]
mod tests;
