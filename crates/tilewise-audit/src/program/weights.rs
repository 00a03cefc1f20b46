//! The weights of a program's layers, by the width of each layer's output.

use super::{is_input, name};
use foldhash::HashSet;
use std::collections::BTreeMap;
use tilewise_hlo::{Module, Opcode};

/// Widths of layers' outputs, with the bounds of the weights that end with each.
pub(crate) struct Weights(BTreeMap<u64, HashSet<Vec<u64>>>);

impl Weights {
    pub(crate) fn of(module: &Module) -> Self {
        let mut found: BTreeMap<u64, HashSet<Vec<u64>>> = BTreeMap::new();
        let given = module.entry().into_iter().flat_map(|entry| entry.instructions().collect::<Vec<_>>());
        let parameters = given.filter(|at| at.opcode() == Opcode::Parameter);
        for parameter in parameters.filter(|parameter| !is_input(&name(parameter))) {
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

    /// Whether a softmax over `keys` goes over classes, the output of a layer at each position, and not over positions,
    /// as in attention.
    pub(crate) fn make(&self, bounds: &[u64], keys: u64) -> bool {
        self.0.contains_key(&keys) && bounds.iter().filter(|bound| **bound == keys).count() == 1
    }

    /// Whether a single layer has this output width, so that any array with it is on the way to that layer or from it.
    pub(crate) fn are_of_one_layer(&self, classes: u64) -> bool {
        self.0.get(&classes).is_some_and(|weights| weights.len() == 1)
    }
}
