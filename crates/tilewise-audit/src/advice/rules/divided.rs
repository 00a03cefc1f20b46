//! Weights and optimizer state that don't fit beside the rest: devices share them.

use crate::advice::{
    change::Target,
    finding::{Finding, MemoryFinding},
    program::{LiveArray, ProgramModel},
    rule::Proposal,
};
use crate::program::{Purpose, is_name, name, root};
use tilewise_memory::Machine;

/// Most devices to share them: a larger slice is seldom at hand.
const MOST: u64 = 256;

/// The weights and the optimizer's state, divided between the fewest devices with which the program fits, if one TPU or GPU
/// runs it now, with the bytes freed; `enough` gives those of a proposal that is enough. Values inside the program keep
/// their sizes: a product of a divided weight may be whole.
pub(crate) fn divided(
    program: &ProgramModel<'_>,
    enough: impl Fn(&Proposal) -> Option<u64>,
) -> Option<(u64, Proposal)> {
    let is_of_model = |array: &&LiveArray<'_>| {
        let purpose = Purpose::of_argument(&name(&array.instruction));
        matches!(purpose, Purpose::Parameter | Purpose::OptimizerState)
    };
    let arrays: Vec<&LiveArray<'_>> = program.arguments().filter(is_of_model).collect();
    let mut roots: Vec<String> = Vec::new();
    for array in &arrays {
        let root = root(&name(&array.instruction)).to_owned();
        if is_name(&root) && !roots.contains(&root) {
            roots.push(root);
        }
    }
    let largest = arrays
        .iter()
        .max_by_key(|array| array.bytes)
        .filter(|_| program.partitions <= 1 && program.machine != Machine::Cpu)?;
    let bytes = arrays.iter().map(|array| array.bytes).fold(0, u64::saturating_add);
    let of_type = |element| {
        arrays.iter().filter(move |array| array.element_type() == element).map(|array| array.bytes).sum::<u64>()
    };
    let element = arrays.iter().map(|array| array.element_type()).find(|element| of_type(*element) > bytes / 2);
    let between = |devices: u64| {
        let parts = arrays.iter().map(|array| (array.buffer, array.bytes.div_ceil(devices)));
        let finding = MemoryFinding::Arguments { bytes, devices, left: None, roots: roots.clone(), element };
        Proposal::new(Finding::Memory(finding), Target::Argument, program.advised(largest)).at_most(parts).bound()
    };
    let mut counts = std::iter::successors(Some(2), |devices| Some(devices * 2)).take_while(|devices| *devices <= MOST);
    counts.find_map(|devices| {
        let proposal = between(devices);
        Some((enough(&proposal)?, proposal))
    })
}
