//! Arguments and results: what the caller hands over and gets, whose layout and shape are the caller's.

use super::{Allocation, Explanation, MessageAdvice, temporaries::LOOKED_AT};
use crate::{
    AdviceKind, AdviceTarget,
    fix::{self, Fix, FixKind},
    snippet,
    words::bytes_in_words,
};
use tilewise::Shape;
use tilewise_oom::{Budget, Framework, Role, Section};

/// What to change of the arrays that are handed over, equal ones together.
pub(super) fn of(explanation: &Explanation, framework: Framework) -> Vec<MessageAdvice> {
    let mut groups: Vec<(&Allocation, &Fix, AdviceKind, u64)> = Vec::new();
    let is_outside = |row: &&Allocation| row.entry.section == Section::ArgumentsAndOutputs;
    // Results that lie in donated arguments change with those.
    let is_shared = explanation.message.budget().output_bytes == Some(0);
    for row in explanation.allocations.iter().filter(is_outside).take(LOOKED_AT) {
        if is_shared && matches!(row.entry.role(), Some(Role::Output(_))) {
            continue;
        }
        let Some((fix, kind)) = row.best_fix().and_then(|fix| Some((fix, kind_of(fix)?))) else { continue };
        let is_argument = matches!(row.entry.role(), Some(Role::Argument(..)));
        let same = groups.iter_mut().find(|(first, ..)| {
            first.shape == row.shape && matches!(first.entry.role(), Some(Role::Argument(..))) == is_argument
        });
        match same {
            Some((.., count)) => *count += 1,
            None => groups.push((row, fix, kind, 1)),
        }
    }
    groups.into_iter().map(|(row, fix, kind, count)| of_group(row, fix, kind, count, framework)).collect()
}

/// What a fix is to a program that stays as it is: it has no use for many arrays in one, or for a part of one.
fn kind_of(fix: &Fix) -> Option<AdviceKind> {
    match fix.kind {
        FixKind::Order => Some(AdviceKind::Order),
        FixKind::Transpose => Some(AdviceKind::Transpose),
        FixKind::Reshape => Some(AdviceKind::Reshape),
        FixKind::Split => Some(AdviceKind::Split),
        FixKind::Narrow => Some(AdviceKind::Narrow),
        FixKind::Batch | FixKind::Resize => None,
    }
}

fn of_group(row: &Allocation, fix: &Fix, kind: AdviceKind, count: u64, framework: Framework) -> MessageAdvice {
    let saved = fix.bytes_saved().saturating_mul(count);
    let others = match count {
        1 => String::new(),
        2 => ", and the other of this shape".to_owned(),
        _ => format!(", and the {} others of this shape", count - 1),
    };
    let shape = row.shape.as_ref().map(ToString::to_string);
    let is_argument = matches!(row.entry.role(), Some(Role::Argument(..)));
    let (what, name) = named(row);
    let target = if is_argument { AdviceTarget::Argument } else { AdviceTarget::Result };
    let mut piece = if kind == AdviceKind::Order {
        let order = row.shape.as_ref().and_then(Shape::layout).map(order_of).unwrap_or_default();
        let sentence = if is_argument {
            format!(
                "an array you hand over: give {what}{others} in the default order of dimensions. Its order, {order}, \
                 is not the default one, so the caller or the program pins it; that a kernel does not need it is \
                 assumed"
            )
        } else {
            format!(
                "an array you get: take {what}{others} in the default order of dimensions. Its order, {order}, is \
                 pinned or follows from the operation that makes it: `Layout.AUTO` leaves it to the compiler"
            )
        };
        let piece = MessageAdvice::new(kind, target, sentence);
        match (framework, is_argument) {
            (Framework::Jax, true) => {
                let to = fix.arrays.first().and_then(|array| array.shape.as_array());
                let order: Vec<usize> = to.map(|array| array.major_to_minor().collect()).unwrap_or_default();
                piece.with_code(snippet::LAYOUT, snippet::put_in_order(&name, &order))
            }
            (Framework::Jax, false) => {
                let code = format!("{}  # f: the function compiled", snippet::results_in_any_order("f"));
                piece.with_code(snippet::LAYOUT, code)
            }
            _ => piece,
        }
    } else {
        let verb = if is_argument { "hand over" } else { "return" };
        let sentence = format!(
            "an array you {verb}: {what}{others}: {}, if what the program does with it works on that",
            fix.sentence
        );
        let piece = MessageAdvice::new(kind, target, sentence);
        if framework == Framework::Jax {
            piece.with_code(snippet::JAX_AND_NUMPY, fix::renamed(&fix.jax, &name))
        } else {
            piece
        }
    };
    piece.shape = shape;
    piece.bytes_saved = Some(saved);
    piece.is_bound = kind != AdviceKind::Order;
    piece
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
pub(super) fn shard(budget: &Budget, framework: Framework) -> MessageAdvice {
    let taken = budget.argument_bytes.unwrap_or_default();
    // Half of the memory is for the program itself.
    let least = |capacity: u64| taken.saturating_mul(2).div_ceil(capacity.max(1)).max(2);
    let devices = budget.capacity_bytes.map_or(2, least);
    let devices = devices.checked_next_power_of_two().unwrap_or(devices);
    let sentence = format!(
        "divide the arguments, {}, between devices: {} on each of {devices} leave room for the program; or keep them \
         in a narrower type (bf16, int8), or optimizer state in the host's memory",
        bytes_in_words(taken),
        bytes_in_words(taken / devices)
    );
    let piece = MessageAdvice::new(AdviceKind::Shard, AdviceTarget::Argument, sentence);
    match framework {
        Framework::Jax => piece.with_code(
            "import jax\nfrom jax.sharding import NamedSharding, PartitionSpec",
            format!(
                "mesh = jax.make_mesh(({devices},), ('x',))\n\
                 params = jax.device_put(params, NamedSharding(mesh, PartitionSpec('x')))"
            ),
        ),
        Framework::TorchXla => piece.with_code(
            "from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel",
            "model = XlaFullyShardedDataParallel(model)",
        ),
        _ => piece,
    }
}
