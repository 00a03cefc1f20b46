//! What to change in a program so that it holds less at its peak: one file a rule, with the signs that it looks for in a
//! program and in a message, what buffers then take, and its words.
//!
//! A TPU compiler chooses the layouts of values inside a program from the operations around them, and undoes what a
//! program asks for there. So only two sorts of change are proposed: of what crosses the program's interface, whose
//! layout is the caller's, and of which arrays exist at all.
//!
//! A rule is a type that implements [`Rule`] or [`MessageRule`], and a line of [`RULES`] or [`MESSAGE_RULES`]. What it
//! frees of a program, and whether that is worth a line, is worked out for all rules alike ([`crate::pricing`]).

mod attention;
mod checkpoint;
mod chunk;
mod columns;
mod copied_weights;
mod cut_off;
mod donate;
mod flat_records;
mod gathered_pages;
mod graphs;
mod in_parts;
mod kernel;
pub(crate) mod layout_request;
mod logits;
mod naming;
mod narrow;
mod pinned_order;
mod repeated_layers;
mod sample_gradients;
mod shuffled_rows;
mod upstream;

pub(crate) use logits::Vocabulary;
pub(crate) use naming::{at_line, listed, name, root, tree};

use crate::{
    Recommendation,
    message_model::MessageModel,
    origin::traced,
    program_model::{BufferChanges, LiveArray, ProgramModel},
    recommendation::{AdvisedArray, Change, Saving, Snippet, Target},
};
use tilewise_memory::Machine;

/// Every rule. Of changes that free as much, those of the earlier one come first: what is the caller's own.
pub(crate) const RULES: &[&dyn Rule] = &[
    &layout_request::LayoutRequested,
    &pinned_order::PinnedOrder,
    &columns::PaddedColumns,
    &flat_records::FlatRecords,
    &donate::UndonatedState,
    &upstream::GatheredRows,
    &gathered_pages::GatheredPages,
    &kernel::KernelOfFewColumns,
    &checkpoint::LoopKeepsValues,
    &logits::VocabularyLogits,
    &repeated_layers::RepeatedLayers,
    &sample_gradients::GradientsOfSamples,
    &shuffled_rows::ShuffledRows,
    &graphs::GraphsOfABatch,
    &chunk::OneLargeDimension,
];

/// Every rule for messages about programs that do not fit into HBM, in that order, too.
pub(crate) const MESSAGE_RULES: &[&dyn MessageRule] = &[
    &pinned_order::PinnedOrder,
    &columns::PaddedColumns,
    &copied_weights::CopiedWeights,
    &upstream::GatheredRows,
    &logits::VocabularyLogits,
    &attention::AttentionScores,
    &narrow::WidePredicates,
    &cut_off::CutOffShapes,
    &chunk::OneLargeDimension,
    &narrow::ConvertedArguments,
    &checkpoint::LoopKeepsValues,
    &donate::UndonatedState,
];

/// Finds one sign in a program, and what to change where it is found.
pub(crate) trait Rule {
    /// Whether what it proposes helps on this machine: on others than TPUs, where sizes are dense, only what does away
    /// with arrays.
    fn holds_on(&self, machine: Machine) -> bool {
        machine.generation().is_some()
    }

    /// The changes that may help; what they free isn't known yet.
    fn propose<'m>(&self, program: &ProgramModel<'m>) -> Vec<Proposal<'m>>;
}

/// Finds one sign in a message, and what to change where it is found.
pub(crate) trait MessageRule {
    /// What may help. There is no program to plan again: what it frees is what the message tells of it, mostly a bound.
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation>;
}

/// A change that may help.
#[derive(Clone, Debug)]
pub(crate) struct Proposal<'m> {
    pub(crate) change: Change,
    pub(crate) target: Target,
    /// The array it is about, of several the largest.
    pub(crate) about: LiveArray<'m>,
    /// What buffers take instead.
    pub(crate) buffers: BufferChanges,
    /// What it frees by itself, where a plan with other sizes alone doesn't tell.
    pub(crate) estimate: Option<u64>,
    /// Whether it may free less than that.
    pub(crate) is_bound: bool,
    /// The parts of the batch that it frees so much with, where more parts free more.
    pub(crate) parts: Option<u64>,
    /// What to do: a sentence without a full stop.
    pub(crate) sentence: String,
    /// The code that does it.
    pub(crate) snippet: Option<Snippet>,
}

impl<'m> Proposal<'m> {
    /// A proposal without code; a plan with its changed buffers says what it frees.
    fn new(change: Change, target: Target, about: LiveArray<'m>, sentence: String) -> Self {
        let buffers = BufferChanges::default();
        Self { change, target, about, buffers, estimate: None, is_bound: false, parts: None, sentence, snippet: None }
    }

    /// What is recommended, once it is known that it frees so much.
    pub(crate) fn recommendation(self, program: &ProgramModel<'_>, bytes_saved: u64) -> Recommendation {
        let (op_name, source) = traced(program.flow, &self.about.instruction);
        Recommendation {
            change: self.change,
            target: self.target,
            array: Some(AdvisedArray {
                shape_text: self.about.shape.to_string(),
                instruction: Some(self.about.instruction.name().to_owned()),
                requested: None,
                op_name,
                source,
            }),
            saving: if self.is_bound { Saving::AtMost(bytes_saved) } else { Saving::Exact(bytes_saved) },
            parts: self.parts,
            sentence: self.sentence,
            snippet: self.snippet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise::tpu::Generation;
    use tilewise_testing::programs;

    /// Its table has a row for each rule, in their order.
    #[test]
    fn the_page_about_machines_says_where_each_rule_holds() {
        let page = std::fs::read_to_string(programs::example("../docs/machines.md")).unwrap();
        let table = page.split("| advice | ").nth(1).unwrap().lines().skip(2);
        let rows = table.take_while(|line| line.starts_with('|'));
        let said: Vec<Vec<&str>> = rows.map(|row| row.split(" | ").skip(1).collect()).collect();
        let holds = |rule: &&dyn Rule| {
            let machines = [Generation::V5e.into(), Machine::Gpu, Machine::Cpu];
            machines.map(|machine| if rule.holds_on(machine) { "yes" } else { "no" })
        };
        let said: Vec<String> = said.iter().map(|row| row.join(" ").replace(" |", "")).collect();
        assert_eq!(said, RULES.iter().map(|rule| holds(rule).join(" ")).collect::<Vec<_>>());
    }
}
