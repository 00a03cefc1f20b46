//! Logits of classes at each of many places, as of each pixel's: the loss needs those of a part of the places at a time.

use super::{
    attention::{elements, softened, sorted},
    batch::Batch,
    logits::Vocabulary,
};
use crate::advice::{
    change::Target,
    evidence::Evidence,
    finding::{ClassLogits, Finding},
    program::{LiveArray, ProgramModel},
    purpose::is_input,
    rule::{Proposal, Rule},
};
use crate::program::name;
use std::collections::{BTreeMap, HashSet};

/// Parts of the places.
const CHUNKS: u64 = 8;
/// Fewer places fill no memory.
const PLACES: u64 = 1024;

pub(crate) struct LogitsOfClasses;

impl Rule for LogitsOfClasses {
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.program().and_then(proposal).into_iter().collect()
    }
}

fn proposal(program: &ProgramModel<'_>) -> Option<Proposal> {
    if !program.has_gradient() || Vocabulary::of(program).is_some() {
        return None;
    }
    let weights = Weights::of(program);
    let of_classes = softened(program).into_iter().filter(|(bounds, keys)| weights.make(bounds, *keys));
    let (logits, classes) = of_classes.max_by_key(|(bounds, _)| elements(bounds))?;
    let count = elements(&logits);
    let given: HashSet<Vec<u64>> = program.arguments().map(|argument| sorted(&argument.bounds)).collect();
    // What leads to the logits has their classes as well, such as those of a smaller picture.
    let is_on_the_way = |array: &LiveArray<'_>| weights.are_of_one_layer(classes) && array.bounds.contains(&classes);
    let is_it = |array: &&LiveArray<'_>| {
        (array.elements() == count || is_on_the_way(array))
            && array.elements() / classes >= PLACES
            && !given.contains(&sorted(&array.bounds))
    };
    let largest = program.peak_temporaries().filter(is_it).max_by_key(|array| array.bytes)?;
    // Parts of a batch have fewer places, and all that is made of them.
    if Batch::of(program).is_some() {
        return None;
    }
    let finding = Finding::ClassLogits(ClassLogits { classes, chunks: CHUNKS });
    let proposal = Proposal::new(finding, Target::Value, program.advised(largest)).bound();
    let those = program.temporaries().filter(is_it);
    Some(proposal.at_most(those.map(|array| (array.buffer, array.bytes / CHUNKS))))
}

/// The sizes of what layers make, with the bounds of the weights that make so much.
pub(super) struct Weights(BTreeMap<u64, HashSet<Vec<u64>>>);

impl Weights {
    pub(super) fn of(program: &ProgramModel<'_>) -> Self {
        let mut found: BTreeMap<u64, HashSet<Vec<u64>>> = BTreeMap::new();
        for parameter in program.parameters().iter().filter(|parameter| !is_input(&name(parameter))) {
            let Ok(shape) = parameter.shape() else { continue };
            for (_, leaf) in shape.leaves() {
                let bounds: Vec<u64> = leaf.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
                if let [.., _, made] = bounds[..] {
                    found.entry(made).or_default().insert(bounds);
                }
            }
        }
        Self(found)
    }

    /// Whether a softmax of so many keys goes over classes, of which a layer makes as many at each place, and not over positions, as
    /// attention's.
    pub(super) fn make(&self, bounds: &[u64], keys: u64) -> bool {
        self.0.contains_key(&keys) && bounds.iter().filter(|bound| **bound == keys).count() == 1
    }

    fn are_of_one_layer(&self, classes: u64) -> bool {
        self.0.get(&classes).is_some_and(|weights| weights.len() == 1)
    }
}
