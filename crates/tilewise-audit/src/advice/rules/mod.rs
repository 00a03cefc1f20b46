//! Changes that lower a program's peak: one file for each rule, with its signs in a program, in a message or in both,
//! the new buffer sizes, and its data.
//!
//! A TPU compiler chooses the layouts of values inside a program from the operations around them, and undoes what a
//! program asks for there. So rules propose only two kinds of change: to arguments and results, whose layouts are the
//! caller's, and to the set of arrays that exist at all.
//!
//! A rule is a type that implements [`Rule`] once, for programs and messages alike, and a line of [`RULES`].
//! `pricing.rs` computes the savings of all rules, and selects those worth showing.

mod alike;
mod all_pairs;
mod attention;
mod batch;
mod checkpoint;
mod chunk;
mod class_logits;
mod columns;
mod copied_weights;
mod cut_off;
mod divided;
mod donate;
mod flat_records;
mod flat_stacks;
mod frozen_state;
mod gathered_pages;
mod graphs;
mod in_parts;
mod kept_rows;
mod kernel;
mod layout_request;
mod logits;
#[cfg(test)]
mod looped;
mod made_for_steps;
mod narrow;
mod narrow_rows;
mod narrow_state;
mod one_hot_slots;
mod overhead;
mod padded_heads;
mod picked_rows;
mod pinned_order;
mod repeated;
mod repeated_layers;
mod returned_arguments;
mod sample_gradients;
mod shuffled_rows;
mod small_products;
mod stacked_cache;
mod stacked_steps;

pub(crate) use attention::scores_of;
pub(crate) use divided::divided;
pub(crate) use layout_request::LayoutRequests;
pub(crate) use narrow::conversion;
pub(crate) use narrow_state::narrowed;

use super::rule::Rule;

/// Every rule but the layout requests. Of changes with equal savings, the earlier rule's come first: those in the
/// caller's hands.
const RULES: &[&dyn Rule] = &[
    &pinned_order::PinnedOrders,
    &columns::PaddedArguments,
    &copied_weights::CopiedArguments,
    &flat_records::ReshapedRecords,
    &donate::ReturnedState,
    &frozen_state::StateOfFrozenWeights,
    &narrow_rows::GatheredRows,
    &kept_rows::KeptRows,
    &small_products::ProductsOfSmallMatrices,
    &gathered_pages::PagesOfACache,
    &stacked_cache::CacheBesideItsNext,
    &stacked_steps::ResultsOfALoop,
    &made_for_steps::PartsMadeBefore,
    &picked_rows::RowsPickedLate,
    &flat_stacks::MatricesOfALoop,
    &returned_arguments::UnchangedResults,
    &repeated::RepeatedOperands,
    &one_hot_slots::OneHotDispatch,
    &padded_heads::CacheOfPaddedHeads,
    &kernel::KernelOfFewColumns,
    &alike::AlikeOnAllDevices,
    &checkpoint::LoopKeepsValues,
    &logits::VocabularyLogits,
    &class_logits::LogitsOfClasses,
    &all_pairs::MatrixOfPairs,
    &attention::ScoresOfAttention,
    &repeated_layers::LayersKeepValues,
    &sample_gradients::GradientsOfSamples,
    &shuffled_rows::RowsBeforeALoop,
    &narrow::PredicatesInWords,
    &cut_off::UnseenPadding,
    &graphs::GraphsOfABatch,
    &chunk::OneLargeDimension,
    &narrow::SecondType,
];

/// Every rule, beginning with the layout requests at the program's interface.
pub(crate) fn rules<'a>(requests: &'a LayoutRequests<'a>) -> Vec<&'a dyn Rule> {
    [requests as &dyn Rule].into_iter().chain(RULES.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise::tpu::Generation;
    use tilewise_memory::Machine;
    use tilewise_testing::programs;

    /// The page's table has a row for each rule of programs, in their order.
    #[test]
    fn the_page_about_machines_says_where_each_rule_holds() {
        let page = std::fs::read_to_string(programs::example("../docs/machines.md")).unwrap();
        let table = page.split("| advice | ").nth(1).unwrap().lines().skip(2);
        let rows = table.take_while(|line| line.starts_with('|'));
        let said: Vec<Vec<&str>> = rows.map(|row| row.split(" | ").skip(1).collect()).collect();
        let holds = |rule: &&dyn Rule| {
            let machines = [Generation::V5e.into(), Machine::Gpu(None), Machine::Cpu];
            machines.map(|machine| if rule.holds_on(machine) { "yes" } else { "no" })
        };
        let said: Vec<String> = said.iter().map(|row| row.join(" ").replace(" |", "")).collect();
        assert_eq!(
            said,
            rules(&LayoutRequests::default())
                .iter()
                .filter(|rule| rule.is_of_programs())
                .map(|rule| holds(rule).join(" "))
                .collect::<Vec<_>>()
        );
    }
}
