//! Arguments and results: what the caller passes and gets, whose layout and shape are the caller's.

use super::{Allocation, Explanation, temporaries::LOOKED_AT};
use crate::{
    Recommendation, bytes_in_words,
    generation::generation_of_tiles,
    recommendation::{Change, Saving, Target},
    rules::{
        columns::{Columns, columns},
        pinned_order::{default_order, major_to_minor},
    },
    snippet,
};
use tilewise::{Shape, tpu::Generation};
use tilewise_oom::{Budget, Framework, Role, Section};

/// What an array could be instead. Nobody knows what reads it, so no more is said than what helped whatever did.
enum Instead {
    /// The default order of dimensions, the slowest-varying first.
    DefaultOrder(Vec<usize>),
    Columns(Columns),
}

impl Instead {
    /// The change of an array, and what it frees.
    fn of(row: &Allocation, generation: Option<Generation>) -> Option<(Self, u64)> {
        let array = row.shape.as_ref()?.as_array()?;
        let taken = row.sizes?.physical_bytes;
        let generation = generation.or_else(|| generation_of_tiles(array)).unwrap_or(Generation::V5e);
        let (instead, after) = match default_order(array, generation) {
            Some(default) => {
                let after = default.as_array()?.sizes().ok()?.physical_bytes;
                (Self::DefaultOrder(major_to_minor(&default)), after)
            }
            None => {
                let columns = columns(array, generation)?;
                let after = columns.bytes;
                (Self::Columns(columns), after)
            }
        };
        Some((instead, taken.checked_sub(after).filter(|saved| *saved > 0)?))
    }
}

/// What to change of the arrays that cross the interface, equal ones together.
pub(super) fn of(explanation: &Explanation, framework: Framework) -> Vec<Recommendation> {
    let mut groups: Vec<(&Allocation, Instead, u64, u64)> = Vec::new();
    let is_outside = |row: &&Allocation| row.entry.section == Section::ArgumentsAndOutputs;
    // Results that lie in donated arguments change with those.
    let is_shared = explanation.message.budget().output_bytes == Some(0);
    for row in explanation.allocations.iter().filter(is_outside).take(LOOKED_AT) {
        if is_shared && matches!(row.entry.role(), Some(Role::Output(_))) {
            continue;
        }
        let Some((instead, saved)) = Instead::of(row, explanation.generation) else { continue };
        let same =
            groups.iter_mut().find(|(first, ..)| first.shape == row.shape && is_argument(first) == is_argument(row));
        match same {
            Some((.., count)) => *count += 1,
            None => groups.push((row, instead, saved, 1)),
        }
    }
    let of_group = |(row, instead, saved, count): &(&Allocation, Instead, u64, u64)| {
        let recommendation = recommendation(row, instead, *count, framework);
        let saved = saved.saturating_mul(*count);
        let shape = row.shape.as_ref().map(ToString::to_string).unwrap_or_default();
        recommendation.about(shape).saving(match instead {
            Instead::DefaultOrder(_) => Saving::Exact(saved),
            Instead::Columns(_) => Saving::AtMost(saved),
        })
    };
    groups.iter().map(of_group).collect()
}

fn is_argument(row: &Allocation) -> bool {
    matches!(row.entry.role(), Some(Role::Argument(..)))
}

fn recommendation(row: &Allocation, instead: &Instead, count: u64, framework: Framework) -> Recommendation {
    let others = match count {
        1 => String::new(),
        2 => " and the other one of this shape".to_owned(),
        _ => format!(" and the {} others of this shape", count - 1),
    };
    let (what, name) = named(row);
    let (verb, target) = if is_argument(row) { ("Pass", Target::Argument) } else { ("Return", Target::Result) };
    match instead {
        Instead::DefaultOrder(major_to_minor) => {
            let order = row.shape.as_ref().and_then(Shape::layout).map(order_of).unwrap_or_default();
            let why = if is_argument(row) {
                "so the caller or the program pins it; this assumes that no kernel needs it"
            } else {
                "so it is pinned, or follows from the operation that makes it: `Layout.AUTO` leaves it to the compiler"
            };
            let sentence = format!(
                "{verb} {what}{others} in the default order of dimensions: the order {order} is not the default one, {why}"
            );
            let found = Recommendation::new(Change::Order, target, sentence);
            match (framework, is_argument(row)) {
                (Framework::Jax, true) => found.snippet(snippet::LAYOUT, snippet::put_in_order(&name, major_to_minor)),
                (Framework::Jax, false) => {
                    let code = format!("{}  # f: the function compiled", snippet::results_in_any_order("f"));
                    found.snippet(snippet::LAYOUT, code)
                }
                _ => found,
            }
        }
        Instead::Columns(Columns { count, rows, .. }) => {
            let sentence = format!(
                "{verb} {what}{others} as {count} arrays of [{rows}], one for each column, if the program can keep them \
                 separate"
            );
            let found = Recommendation::new(Change::Split, target, sentence);
            match framework {
                Framework::Jax => found.snippet(snippet::NUMPY, snippet::unstack_columns(&name, *count)),
                _ => found,
            }
        }
    }
}

/// How an argument or result is called in a sentence, and in code.
fn named(row: &Allocation) -> (String, String) {
    let op_name = row.entry.operator.as_ref().and_then(|operator| operator.op_name());
    // The framework's own name of an argument is an expression, such as `params['w']`; paths are of operations.
    if let Some(name) = op_name.filter(|name| !name.is_empty() && !name.contains(['/', '(', ' '])) {
        return (format!("`{name}`"), name.to_owned());
    }
    let path = |index: &[u32]| match index {
        [] => String::new(),
        _ => format!(" at {{{}}}", index.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
    };
    match row.entry.role() {
        Some(Role::Argument(number, index)) => {
            (format!("argument {number}{}", path(&index)), format!("argument_{number}"))
        }
        Some(Role::Output(index)) => (format!("the result{}", path(&index)), "result".to_owned()),
        _ => ("this array".to_owned(), "array".to_owned()),
    }
}

fn order_of(layout: &tilewise::Layout) -> String {
    let order: Vec<String> = layout.minor_to_major().iter().map(usize::to_string).collect();
    format!("{{{}}}", order.join(","))
}

/// Where the arguments alone do not fit.
pub(super) fn shard(budget: &Budget, framework: Framework) -> Recommendation {
    let taken = budget.argument_bytes.unwrap_or_default();
    // Half of the memory is for the program itself.
    let least = |capacity: u64| taken.saturating_mul(2).div_ceil(capacity.max(1)).max(2);
    let devices = budget.capacity_bytes.map_or(2, least);
    let devices = devices.checked_next_power_of_two().unwrap_or(devices);
    let sentence = format!(
        "Divide the arguments, {}, between devices: {} on each of {devices} leave room for the program; or keep them \
         in a narrower type (bf16, int8), or optimizer state in the host's memory",
        bytes_in_words(taken),
        bytes_in_words(taken / devices)
    );
    let found = Recommendation::new(Change::Shard, Target::Argument, sentence);
    match framework {
        Framework::Jax => found.snippet(
            "import jax\nfrom jax.sharding import NamedSharding, PartitionSpec",
            format!(
                "mesh = jax.make_mesh(({devices},), ('x',))\n\
                 params = jax.device_put(params, NamedSharding(mesh, PartitionSpec('x')))"
            ),
        ),
        Framework::TorchXla => found.snippet(
            "from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel",
            "model = XlaFullyShardedDataParallel(model)",
        ),
        _ => found,
    }
}
