//! Logits of classes at each of many positions, such as pixels: the loss can take a part of the positions at a time.

use super::logits::Vocabulary;
use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{ClassLogits, Finding},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::{Weights, elements, softened, sorted},
};
use foldhash::HashSet;
use tilewise_memory::Machine;

/// Parts of the positions.
const CHUNKS: u64 = 8;
/// Fewest positions whose logits fill a memory.
const PLACES: u64 = 1024;

pub(crate) struct LogitsOfClasses;

impl Rule for LogitsOfClasses {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.program().and_then(proposal).into_iter().collect()
    }
}

fn proposal(program: &ProgramModel<'_>) -> Option<Proposal> {
    if !program.has_gradient || Vocabulary::of(program).is_some() {
        return None;
    }
    let weights = Weights::of(program.module);
    let of_classes = softened(program.module).into_iter().filter(|(bounds, keys)| weights.make(bounds, *keys));
    let (logits, classes) = of_classes.max_by_key(|(bounds, _)| elements(bounds))?;
    let count = elements(&logits);
    let given: HashSet<Vec<u64>> = program.arguments().map(|argument| sorted(&argument.bounds)).collect();
    // Arrays on the way to the logits have their classes as well, such as logits of a smaller picture.
    let is_on_the_way = |array: &LiveArray<'_>| weights.are_of_one_layer(classes) && array.bounds.contains(&classes);
    let is_it = |array: &&LiveArray<'_>| {
        (array.elements() == count || is_on_the_way(array))
            && array.elements() / classes >= PLACES
            && !given.contains(&sorted(&array.bounds))
    };
    let largest = program.peak_temporaries().filter(is_it).max_by_key(|array| array.bytes)?;
    let finding = Finding::ClassLogits(ClassLogits { classes, chunks: CHUNKS });
    let proposal = Proposal::new(finding, Target::Value, program.advised(largest)).bound();
    let those = program.temporaries().filter(is_it);
    Some(proposal.at_most(those.map(|array| (array.buffer, array.bytes / CHUNKS))))
}
