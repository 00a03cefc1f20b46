//! A result that could reuse the memory of the argument that it updates, if the caller donated that.

use crate::{
    advice::{
        change::Target,
        evidence::{ArrayFact, Evidence},
        finding::{Finding, Jit, UndonatedState},
        message::MessageModel,
        program::{BufferChanges, Donated, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::{is_of_instruction, name, root},
};
use foldhash::{HashMap, HashSet};
use std::{
    cmp::Reverse,
    collections::{BTreeSet, VecDeque},
};
use tilewise::Shape;
use tilewise_hlo::{InputOutputAlias, Instruction};

pub(crate) struct ReturnedState;

impl Rule for ReturnedState {
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        proposal(evidence).into_iter().collect()
    }
}

fn proposal(evidence: &dyn Evidence) -> Option<Proposal> {
    let aliases = evidence.program().map(|program| program.module.input_output_aliases().unwrap_or_default());
    let taken: HashSet<usize> = aliases.iter().flatten().map(|alias| alias.parameter_number).collect();
    let is_free = |argument: &&dyn ArrayFact| {
        let number = |argument: &Instruction<'_>| argument.parameter_number();
        argument.live().is_none_or(|array| number(&array.instruction).is_some_and(|number| !taken.contains(&number)))
    };
    let free: Vec<&dyn ArrayFact> = evidence.arguments().into_iter().filter(is_free).collect();
    let updated = updated(evidence, &free);
    let largest = updated.iter().max_by_key(|argument| argument.bytes());
    if let Some(message) = evidence.message() {
        return of_message(evidence, message, &updated);
    }
    let (program, largest) = (evidence.program()?, *largest?);
    let roots: BTreeSet<String> =
        updated.iter().filter_map(|argument| Some(root_of(&argument.live()?.instruction))).collect();
    let results = results_in_arguments(program, &aliases.unwrap_or_default(), &roots);
    // An argument without a name in Python is donated by its number there.
    let finding = if roots.iter().any(|root| is_of_instruction(root)) {
        UndonatedState { roots: Vec::new(), donated: Vec::new(), jit: None }
    } else {
        let is_donated = |at: &&Instruction<'_>| at.parameter_number().is_some_and(|number| taken.contains(&number));
        let parameters = program.parameters();
        let donated: BTreeSet<String> = parameters.iter().filter(is_donated).map(root_of).collect();
        let donated = donated.difference(&roots).cloned().collect();
        let jit = Jit { function: program.function().to_owned(), library: program.library };
        UndonatedState { roots: roots.into_iter().collect(), donated, jit: Some(jit) }
    };
    Some(Proposal {
        buffers: BufferChanges { donated: results, ..BufferChanges::default() },
        ..Proposal::new(Finding::UndonatedState(finding), Target::Argument, largest.advised(evidence)).bound()
    })
}

/// Arguments that results update, one for each result. Of a parameter of many arrays, which is a state, rather than of constants
/// of its shape, such as coefficients, which are read again.
fn updated<'e>(evidence: &'e dyn Evidence, free: &[&'e dyn ArrayFact]) -> Vec<&'e dyn ArrayFact> {
    let mut by_shape: HashMap<&Shape, Vec<usize>> = HashMap::default();
    for (at, argument) in free.iter().enumerate() {
        by_shape.entry(argument.shape()).or_default().push(at);
    }
    // The last value of a result's memory is the result; those before it may be of other arrays.
    let results = evidence.results();
    let mut last: HashMap<usize, usize> = HashMap::default();
    for (at, result) in results.iter().enumerate() {
        if let Some(array) = result.live() {
            let known = last.entry(array.buffer).or_insert(at);
            let is_later = results[*known].live().is_some_and(|before| array.last > before.last);
            *known = if is_later { at } else { *known };
        }
    }
    let is_last = |at: usize| results[at].live().is_none_or(|array| last.get(&array.buffer) == Some(&at));
    let candidates = results.iter().enumerate().filter(|(at, _)| is_last(*at)).map(|(_, result)| {
        let alike = by_shape.get(result.shape()).cloned().unwrap_or_default();
        // In a message, a result may replace any argument of its shape.
        let Some((program, array)) = evidence.program().zip(result.live()) else { return alike };
        let replaced = program.replaced(array);
        let is_replaced = |at: &usize| free[*at].live().is_none_or(|array| replaced.contains(&array.position));
        alike.into_iter().filter(is_replaced).collect()
    });
    let mut candidates: Vec<Vec<usize>> = candidates.collect();
    // Weights are updated by moments, too, which results of their own replace.
    candidates.sort_by_key(Vec::len);
    let root = |at: usize| free[at].live().map(|array| root_of(&array.instruction));
    let mut arrays: HashMap<Option<String>, usize> = HashMap::default();
    let all: BTreeSet<usize> = candidates.iter().flatten().copied().collect();
    all.iter().for_each(|at| *arrays.entry(root(*at)).or_default() += 1);
    let of_root: HashMap<usize, usize> = all.iter().map(|at| (*at, arrays[&root(*at)])).collect();
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    for own in candidates {
        let left = own.into_iter().filter(|at| !taken.contains(at));
        taken.extend(left.min_by_key(|at| (Reverse(of_root[at]), *at)));
    }
    taken.into_iter().map(|at| free[at]).collect()
}

/// The proposal for a message. If it lists no results, all of them may reuse arguments' memory.
fn of_message(evidence: &dyn Evidence, message: &MessageModel<'_>, updated: &[&dyn ArrayFact]) -> Option<Proposal> {
    let own = message.budget.output_bytes?.min(message.budget.argument_bytes?);
    let matched = updated.iter().map(|argument| argument.bytes()).fold(0, u64::saturating_add);
    let saved = if evidence.results().is_empty() { own } else { own.min(matched) };
    let about = updated.iter().max_by_key(|argument| argument.bytes()).map(|largest| largest.advised(evidence));
    let finding = Finding::UndonatedState(UndonatedState { roots: Vec::new(), donated: Vec::new(), jit: None });
    (saved > 0).then(|| Proposal { estimate: Some(saved), ..Proposal::new(finding, Target::Argument, about).bound() })
}

/// The results, by index, that reuse arguments' memory once these parameters of the Python function are donated: JAX
/// donates all arrays of a parameter, and finds each a result of its shape.
fn results_in_arguments(program: &ProgramModel<'_>, aliases: &[InputOutputAlias], roots: &BTreeSet<String>) -> Donated {
    let taken: HashSet<usize> = aliases.iter().map(|alias| alias.parameter_number).collect();
    let mut free: HashMap<Shape, VecDeque<usize>> = HashMap::default();
    for argument in program.parameters().iter().filter(|argument| roots.contains(&root_of(argument))) {
        let number = argument.parameter_number().filter(|number| !taken.contains(number));
        if let (Some(number), Ok(shape)) = (number, argument.shape()) {
            free.entry(shape).or_default().push_back(number);
        }
    }
    let lies_in_one: HashSet<&[usize]> = aliases.iter().map(|alias| &*alias.output_index).collect();
    let result = program.module.entry().and_then(|entry| entry.root()?.shape().ok());
    let leaves = result.iter().flat_map(Shape::leaves).filter(|(index, _)| !lies_in_one.contains(&**index));
    leaves.filter_map(|(index, leaf)| Some((index.to_vec(), free.get_mut(&leaf)?.pop_front()?))).collect()
}

/// The parameter of the Python function that an argument is part of.
fn root_of(argument: &Instruction<'_>) -> String {
    root(&name(argument)).to_owned()
}
