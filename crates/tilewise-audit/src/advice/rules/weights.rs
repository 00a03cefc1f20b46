//! The weights of a program's layers, and how much each layer makes.

use crate::{
    advice::program::ProgramModel,
    program::{is_input, name},
};
use std::collections::{BTreeMap, HashSet};

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

    /// Whether but one layer makes so much, so that whatever has as much is on the way to it or from it.
    pub(super) fn are_of_one_layer(&self, classes: u64) -> bool {
        self.0.get(&classes).is_some_and(|weights| weights.len() == 1)
    }
}
