//! Arguments and results: what the caller hands over and gets, whose layout and shape are the caller's.

use super::{hint::Hint, temporaries::LOOKED_AT};
use crate::output::human::bytes;
use tilewise::{ArrayShape, Shape};
use tilewise_audit::{
    Allocation, Explanation,
    fix::{Fix, FixKind},
};
use tilewise_oom::{Budget, Framework, Role, Section};

const LAYOUT: &str = "import jax\nfrom jax.experimental.layout import Format, Layout";
const JAX: &str = "import jax\nimport jax.numpy as jnp";

/// What to change of the arrays that are handed over, equal ones together.
pub(super) fn of(explanation: &Explanation, framework: Framework) -> Vec<Hint> {
    let mut groups: Vec<(&Allocation, &Fix, u64)> = Vec::new();
    let is_outside = |row: &&Allocation| row.entry.section == Section::ArgumentsAndOutputs;
    // Results that lie in donated arguments change with those.
    let is_shared = explanation.message.budget().output_bytes == Some(0);
    for row in explanation.allocations.iter().filter(is_outside).take(LOOKED_AT) {
        if is_shared && matches!(row.entry.role(), Some(Role::Output(_))) {
            continue;
        }
        let Some(fix) = row.best_fix().filter(|fix| fix.replaced == 1 && fix.kind != FixKind::Resize) else { continue };
        let is_argument = matches!(row.entry.role(), Some(Role::Argument(..)));
        let same = groups.iter_mut().find(|(first, _, _)| {
            first.shape == row.shape && matches!(first.entry.role(), Some(Role::Argument(..))) == is_argument
        });
        match same {
            Some((_, _, count)) => *count += 1,
            None => groups.push((row, fix, 1)),
        }
    }
    groups.into_iter().map(|(row, fix, count)| hint(row, fix, count, framework)).collect()
}

fn hint(row: &Allocation, fix: &Fix, count: u64, framework: Framework) -> Hint {
    let saved = fix.bytes_saved().saturating_mul(count);
    let others = match count {
        1 => String::new(),
        2 => ", and the other of this shape".to_owned(),
        _ => format!(", and the {} others of this shape", count - 1),
    };
    let shape = row.shape.as_ref().map(ToString::to_string);
    let is_argument = matches!(row.entry.role(), Some(Role::Argument(..)));
    let (what, name) = named(row);
    let target = if is_argument { "argument" } else { "result" };
    let mut hint = if fix.kind == FixKind::Order {
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
        let hint = Hint::new("order", target, sentence);
        match (framework, is_argument) {
            (Framework::Jax, true) => {
                let to = fix.arrays.first().and_then(|array| array.shape.as_array()).map(major_to_minor);
                let to = to.unwrap_or_default();
                let code =
                    format!("{name} = jax.device_put({name}, Format(Layout(major_to_minor=({to})), {name}.sharding))");
                hint.with_code(LAYOUT, code)
            }
            (Framework::Jax, false) => {
                hint.with_code(LAYOUT, "f = jax.jit(f, out_shardings=Format(Layout.AUTO))  # f: the function compiled")
            }
            _ => hint,
        }
    } else {
        let verb = if is_argument { "hand over" } else { "return" };
        let sentence = format!(
            "an array you {verb}: {what}{others}: {}, if what the program does with it works on that",
            fix.sentence
        );
        let hint = Hint::new(fix.kind.as_str(), target, sentence);
        if framework == Framework::Jax { hint.with_code(JAX, renamed(&fix.jax, &name)) } else { hint }
    };
    hint.shape = shape;
    hint.bytes_saved = Some(saved);
    hint.is_bound = fix.kind != FixKind::Order;
    hint
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

/// The code of a fix, which is about an `x`, for an array of this name.
fn renamed(code: &str, name: &str) -> String {
    let (code, comment) = code.split_once("  # ").unwrap_or((code, ""));
    let mut out = String::with_capacity(code.len() + name.len());
    let mut rest = code;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    while let Some(at) = rest.find('x') {
        let stands_alone =
            !rest[..at].ends_with(|c: char| is_part(c) || c == '.') && !rest[at + 1..].starts_with(is_part);
        // `axis=` and the like are not alone.
        out.push_str(&rest[..at]);
        out.push_str(if stands_alone { name } else { "x" });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    if comment.is_empty() { out } else { format!("{out}  # {comment}") }
}

fn order_of(layout: &tilewise::Layout) -> String {
    let order: Vec<String> = layout.minor_to_major().iter().map(usize::to_string).collect();
    format!("{{{}}}", order.join(","))
}

fn major_to_minor(array: &ArrayShape) -> String {
    let order: Vec<String> = array.major_to_minor().map(|dimension| dimension.to_string()).collect();
    if order.len() == 1 { format!("{},", order[0]) } else { order.join(", ") }
}

/// Where the arguments alone do not fit.
pub(super) fn shard(budget: &Budget, framework: Framework) -> Hint {
    let taken = budget.argument_bytes.unwrap_or_default();
    // Half of the memory is for the program itself.
    let least = |capacity: u64| taken.saturating_mul(2).div_ceil(capacity.max(1)).max(2);
    let devices = budget.capacity_bytes.map_or(2, least);
    let devices = devices.checked_next_power_of_two().unwrap_or(devices);
    let sentence = format!(
        "divide the arguments, {}, between devices: {} on each of {devices} leave room for the program; or keep them \
         in a narrower type (bf16, int8), or optimizer state in the host's memory",
        bytes(taken),
        bytes(taken / devices)
    );
    let hint = Hint::new("shard", "argument", sentence);
    match framework {
        Framework::Jax => hint.with_code(
            "import jax\nfrom jax.sharding import NamedSharding, PartitionSpec",
            format!(
                "mesh = jax.make_mesh(({devices},), ('x',))\n\
                 params = jax.device_put(params, NamedSharding(mesh, PartitionSpec('x')))"
            ),
        ),
        Framework::TorchXla => hint.with_code(
            "from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel",
            "model = XlaFullyShardedDataParallel(model)",
        ),
        _ => hint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_about_the_array_by_its_name() {
        let name = "params['w']";
        assert_eq!(
            renamed("x = x.reshape(3, 4)  # f32[3,4]", name),
            "params['w'] = params['w'].reshape(3, 4)  # f32[3,4]"
        );
        assert_eq!(renamed("xs = jnp.unstack(x, axis=1)", name), "xs = jnp.unstack(params['w'], axis=1)");
        assert_eq!(renamed("x = jax.lax.slice_in_dim(x, 0, 2)", "y"), "y = jax.lax.slice_in_dim(y, 0, 2)");
    }
}
