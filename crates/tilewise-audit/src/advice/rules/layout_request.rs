//! Arguments and results that the program copies into another layout: the caller can pass and take them in that layout.

use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, LayoutRequest, Parameter, RequestedLayout},
        program::{BufferChanges, ProgramModel},
        recommendation::{AdvisedArray, Recommendation},
        rule::{Proposal, Rule},
    },
    copies::{Copied, CopiedInterface, InterfaceArray, RequestObstacle},
    program::{name, op_name, root, traced},
};
use foldhash::{HashMap, HashSet};
use std::{cmp::Reverse, collections::BTreeMap};
use tilewise_memory::Role;

/// Largest size of an array in a requested layout, as a multiple of its size now: the caller keeps it beyond the call.
const MOST_PADDED: u64 = 3;
/// Maximum number of arrays that are priced, the largest first: each plans the program's memory again.
const MOST_PRICED: usize = 64;

impl Rule for LayoutRequests<'_> {
    fn propose(&self, _: &dyn Evidence) -> Vec<Proposal> {
        self.list.iter().map(|request| request.proposal.clone()).collect()
    }
}

/// A request for layouts of arguments and results that removes copies.
#[derive(Clone, Debug)]
pub(crate) struct Requested<'m> {
    proposal: Proposal,
    arrays: Vec<InterfaceArray<'m>>,
    /// Bytes that it frees after the preceding requests.
    saved: u64,
}

/// Layout requests for what is copied at the interface, and the copies that they remove.
#[derive(Debug, Default)]
pub(crate) struct LayoutRequests<'m> {
    list: Vec<Requested<'m>>,
    /// The request and its array that remove a copy, by the copy's index.
    by_copy: HashMap<usize, (usize, usize)>,
    /// The obstacles of other copies, by index.
    obstacles: HashMap<usize, RequestObstacle>,
}

impl<'m> LayoutRequests<'m> {
    pub(crate) fn new(program: &ProgramModel<'m>) -> Self {
        let mut found = Self::default();
        if !program.has_relayouts {
            return found;
        }
        let (lone, together) = found.pair(program);
        let lone = largest(lone, InterfaceArray::requested_bytes);
        let of_all = |arrays: &Vec<InterfaceArray<'m>>| arrays.iter().map(InterfaceArray::requested_bytes).max();
        let together = largest(together, |arrays| of_all(arrays).unwrap_or(0));
        let mut kept: Vec<BufferChanges> = Vec::new();
        let mut total = program.total_bytes;
        // Results are named in one call of `jit`: each that doesn't cost more joins the preceding ones.
        let mut joined: Vec<InterfaceArray<'m>> = Vec::new();
        all_or_each(&together, |groups| {
            let new = groups.concat();
            let with: Vec<InterfaceArray<'m>> = joined.iter().chain(&new).cloned().collect();
            match price(program, &kept, &with, &new, total) {
                Ok((_, after)) => (total, joined) = (after, with),
                Err(obstacle) if groups.len() == 1 => found.refuse_arrays(&new, obstacle),
                Err(_) => return false,
            }
            true
        });
        if let Some(buffers) = changes(program, &joined).filter(|_| !joined.is_empty()) {
            kept.push(buffers.clone());
            found.keep(program, joined, buffers, program.total_bytes - total);
        }
        // Requests that free nothing only save time, and are joined for each parameter, such as weights of all layers.
        let mut timely: BTreeMap<String, Vec<InterfaceArray<'m>>> = BTreeMap::new();
        all_or_each(&lone, |arrays| {
            match price(program, &kept, arrays, arrays, total) {
                Ok((buffers, after)) if after == total => {
                    kept.push(buffers);
                    for array in arrays {
                        timely.entry(root(&name(&array.instruction)).to_owned()).or_default().push(array.clone());
                    }
                }
                Ok((buffers, after)) if arrays.len() == 1 => {
                    kept.push(buffers.clone());
                    found.keep(program, arrays.to_vec(), buffers, total - after);
                    total = after;
                }
                Err(obstacle) if arrays.len() == 1 => found.refuse_arrays(arrays, obstacle),
                _ => return false,
            }
            true
        });
        for arrays in timely.into_values() {
            let Some(buffers) = changes(program, &arrays) else { continue };
            found.keep(program, arrays, buffers, 0);
        }
        found
    }

    /// The obstacle to removing a copy by another layout at the interface.
    pub(crate) fn obstacle(&self, copy: usize) -> Option<RequestObstacle> {
        self.obstacles.get(&copy).copied()
    }

    /// The recommendation that removes a copy.
    pub(crate) fn fix(&self, program: &ProgramModel<'_>, copy: usize) -> Option<Recommendation> {
        let (request, array) = self.by_copy.get(&copy)?;
        let request = self.list.get(*request)?;
        let array = request.arrays.get(*array)?;
        let (op_name, source) = traced(program.flow, &array.instruction);
        let about = AdvisedArray {
            shape_text: array.from.to_string(),
            instruction: Some(array.instruction.name().to_owned()),
            requested: Some(array.to.clone()),
            op_name,
            source,
        };
        let target = if array.role == Role::Argument { Target::Argument } else { Target::Result };
        let proposal = Proposal::new(request.proposal.finding.clone(), target, about);
        Some(proposal.recommendation(program, request.saved))
    }

    fn keep(
        &mut self,
        program: &ProgramModel<'m>,
        arrays: Vec<InterfaceArray<'m>>,
        buffers: BufferChanges,
        saved: u64,
    ) {
        let shown = program.freed_with([&buffers]);
        let Some(proposal) = proposal(program, &arrays, buffers) else { return };
        let proposal = Proposal { estimate: Some(saved).filter(|saved| *saved < shown), ..proposal };
        for (at, array) in arrays.iter().enumerate() {
            for copy in &array.copies {
                self.by_copy.entry(*copy).or_insert((self.list.len(), at));
            }
        }
        self.list.push(Requested { proposal, arrays, saved });
    }

    fn refuse<'a>(&mut self, copies: impl IntoIterator<Item = &'a usize>, obstacle: RequestObstacle) {
        self.obstacles.extend(copies.into_iter().map(|copy| (*copy, obstacle)));
    }

    fn refuse_arrays(&mut self, arrays: &[InterfaceArray<'m>], obstacle: Option<RequestObstacle>) {
        let Some(obstacle) = obstacle else { return };
        self.refuse(arrays.iter().flat_map(|array| &array.copies), obstacle);
    }

    /// The array, if there is no obstacle; otherwise notes the obstacle.
    fn accept(&mut self, copied: Copied<'m>) -> Option<InterfaceArray<'m>> {
        match copied {
            Ok(array) => Some(array),
            Err((copies, obstacle)) => {
                self.refuse(&copies, obstacle);
                None
            }
        }
    }

    /// Lone arguments, and arrays that belong together: each result, with the argument whose memory it takes.
    fn pair(&mut self, program: &ProgramModel<'m>) -> (Vec<InterfaceArray<'m>>, Vec<Vec<InterfaceArray<'m>>>) {
        let interface = CopiedInterface { flow: program.flow, generation: program.generation };
        let (mut arguments, mut results) = (interface.arguments(), interface.results());
        let aliases = program.module.input_output_aliases().unwrap_or_default();
        let results_at = program.flow.entry().map(|entry| program.flow.result(entry));
        let is_returned_at = |argument: &InterfaceArray<'m>, path: &[usize]| {
            argument.returned.is_some() && argument.returned == results_at.and_then(|root| program.flow.at(root, path))
        };
        let mut together = Vec::new();
        for alias in aliases.iter().filter(|alias| alias.parameter_index.is_empty()) {
            match (arguments.remove(&alias.parameter_number), results.remove(&alias.output_index)) {
                (Some(Ok(mut argument)), Some(Ok(result)))
                    if argument.to.same_bytes(&result.to).is_ok_and(|same| same) =>
                {
                    argument.donated_to = Some(result.number);
                    together.push(vec![argument, result]);
                }
                (Some(Ok(mut argument)), None) if is_returned_at(&argument, &alias.output_index) => {
                    let Some(result) = interface.result_of(&argument) else { continue };
                    argument.donated_to = Some(result.number);
                    together.push(vec![argument, result]);
                }
                (argument, result) => {
                    for copied in [argument, result].into_iter().flatten() {
                        if let Some(array) = self.accept(copied) {
                            self.refuse(&array.copies, RequestObstacle::Donated);
                        }
                    }
                }
            }
        }
        let mut arguments: Vec<_> = arguments.into_values().filter_map(|copied| self.accept(copied)).collect();
        arguments.sort_by_key(|array| array.number);
        // An argument that is returned in other memory has to be copied anyway.
        let (returned, arguments): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|array| array.returned.is_some());
        for array in returned {
            self.refuse(&array.copies, RequestObstacle::IsArgument);
        }
        let mut sharing: HashMap<usize, Vec<usize>> = HashMap::default();
        for (instruction, buffer) in &program.buffers {
            sharing.entry(*buffer).or_default().push(*instruction);
        }
        // The copies' buffers hold other values, too: the argument's own bytes can't take their place.
        let (overwritten, lone): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|array| {
            let buffers: HashSet<usize> = array.copies.iter().filter_map(|copy| program.buffer(*copy)).collect();
            buffers.iter().filter_map(|buffer| sharing.get(buffer)).flatten().any(|at| !array.copies.contains(at))
        });
        for array in overwritten {
            self.refuse(&array.copies, RequestObstacle::Overwritten);
        }
        let mut results: Vec<_> = results.into_values().filter_map(|copied| self.accept(copied)).collect();
        results.sort_by_key(|array| array.number);
        together.extend(results.into_iter().map(|array| vec![array]));
        (lone, together)
    }
}

/// Takes the items together, or, where `take` refuses that, each alone: mostly all can be taken, which one plan shows.
fn all_or_each<T>(items: &[T], mut take: impl FnMut(&[T]) -> bool) {
    if items.len() > 1 && take(items) {
        return;
    }
    for item in items {
        take(std::slice::from_ref(item));
    }
}

/// New buffer sizes with these arrays, and the program's bytes with them. An error, with its obstacle if there is one, if
/// the program would hold more than `total`, its bytes with the changes in `kept`, or if a `new` array is padded too far.
fn price(
    program: &ProgramModel<'_>,
    kept: &[BufferChanges],
    arrays: &[InterfaceArray<'_>],
    new: &[InterfaceArray<'_>],
    total: u64,
) -> Result<(BufferChanges, u64), Option<RequestObstacle>> {
    let is_padded = |array: &&InterfaceArray<'_>| array.requested_bytes() > array.bytes().saturating_mul(MOST_PADDED);
    if let Some(array) = new.iter().find(is_padded) {
        return Err(Some(RequestObstacle::Padded(array.requested_bytes())));
    }
    let changes = changes(program, arrays).ok_or(None)?;
    // The plan may put others into the gaps that an array's own buffer has now, while a copy that goes on takes them.
    let with = |changes: &BufferChanges| program.total_with(kept.iter().chain([changes]));
    let after = in_place(program, arrays, &changes).map_or(0, |in_place| with(&in_place)).max(with(&changes));
    if after > total { Err(Some(RequestObstacle::Larger(after - total))) } else { Ok((changes, after)) }
}

/// The changes where copies of arguments go on in their buffers, such as where a loop carries them: these stay, and the
/// arguments' own go. `None` if none does.
fn in_place(
    program: &ProgramModel<'_>,
    arrays: &[InterfaceArray<'_>],
    changes: &BufferChanges,
) -> Option<BufferChanges> {
    let mut in_place = changes.clone();
    let arguments = || arrays.iter().filter(|array| array.role == Role::Argument);
    let copies: HashSet<usize> = arguments().flat_map(|array| array.copies.iter().copied()).collect();
    let values = program.plan.space(0).into_iter().flat_map(|hbm| &hbm.values);
    let shared: HashSet<usize> =
        values.filter(|value| !copies.contains(&value.instruction)).map(|value| value.buffer).collect();
    for array in arguments() {
        let copied = array.copies.iter().filter_map(|copy| program.buffer(*copy));
        for copy in copied.filter(|copy| shared.contains(copy)) {
            in_place.exactly.remove(&copy);
            in_place.exactly.insert(program.buffer(array.instruction.index())?, 0);
        }
    }
    (in_place.exactly != changes.exactly).then_some(in_place)
}

/// The `MOST_PRICED` largest items, in the order they were in.
fn largest<T>(items: Vec<T>, bytes: impl Fn(&T) -> u64) -> Vec<T> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_cached_key(|at| Reverse(bytes(&items[*at])));
    let kept: HashSet<usize> = order.into_iter().take(MOST_PRICED).collect();
    items.into_iter().enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, item)| item).collect()
}

/// New buffer sizes with these arrays in the requested layouts; `None` if the plan lacks their buffers.
fn changes(program: &ProgramModel<'_>, arrays: &[InterfaceArray<'_>]) -> Option<BufferChanges> {
    let mut changes = BufferChanges::default();
    for array in arrays {
        let gone = array.copies.iter().chain(&array.made).filter_map(|copy| program.buffer(*copy));
        changes.exactly.extend(gone.map(|buffer| (buffer, 0)));
    }
    for array in arrays {
        changes.exactly.insert(program.buffer(array.instruction.index())?, array.requested_bytes());
    }
    Some(changes)
}

fn proposal<'m>(program: &ProgramModel<'m>, arrays: &[InterfaceArray<'m>], buffers: BufferChanges) -> Option<Proposal> {
    let about = program.live_array(arrays.iter().max_by_key(|array| array.requested_bytes())?)?;
    let is_argument = arrays.iter().any(|array| array.role == Role::Argument);
    let target = if is_argument { Target::Argument } else { Target::Result };
    let requested = |array: &InterfaceArray<'_>| RequestedLayout {
        argument: (array.role == Role::Argument).then(|| name(&array.instruction)),
        number: array.number,
        donated_to: array.donated_to,
        to: array.to.clone(),
        bytes: [array.bytes(), array.requested_bytes()],
    };
    let result = program.module.entry().and_then(|entry| entry.root()?.shape().ok());
    let finding = LayoutRequest {
        arrays: arrays.iter().map(requested).collect(),
        function: program.function().to_owned(),
        parameters: parameters(program),
        partitions: program.partitions,
        returns_one: result.is_some_and(|result| result.as_array().is_some()),
        generation: program.generation,
    };
    Some(Proposal { buffers, ..Proposal::new(Finding::LayoutRequest(finding), target, program.advised(&about)) })
}

/// The Python function's parameters, each with its first entry parameter; `None` if the program lacks a name.
fn parameters(program: &ProgramModel<'_>) -> Option<Vec<Parameter>> {
    let mut known = HashSet::default();
    let mut parameters = Vec::new();
    for argument in program.parameters() {
        let first = op_name(&argument)?.into_owned();
        let root = root(&first).to_owned();
        if known.insert(root.clone()) {
            parameters.push(Parameter { root, first });
        }
    }
    Some(parameters)
}
