//! A fix as a sentence and as a line of JAX.

use super::{
    change::{BATCH, Candidate, Change},
    target::Target,
};
use crate::snippet;
use std::fmt::Display;
use tilewise::{ElementKind, ElementType, Shape};

/// What to do, without a full stop.
pub(super) fn sentence(candidate: &Candidate, target: &Target<'_>) -> String {
    let dimension = |number: usize| format!("dimension {number} (size {})", target.bounds[number]);
    let new = || candidate.arrays.first().map(|array| bounds_of(&array.shape)).unwrap_or_default();
    let text = || candidate.arrays.first().map(|array| array.shape.without_layout().to_string()).unwrap_or_default();
    match &candidate.change {
        Change::Order => {
            let mut words = String::from("leave the order of dimensions to the compiler");
            match target.default_layout.layout().map(|layout| layout.minor_to_major()) {
                Some(&[lanes, rows, ..]) => {
                    let (lanes, rows) = (dimension(lanes), dimension(rows));
                    words.push_str(&format!(": it puts {lanes} on the 128 lanes and {rows} on the rows of a tile"));
                }
                Some(&[line]) => words.push_str(&format!(": it cuts {} into tiles", dimension(line))),
                _ => {}
            }
            words
        }
        Change::Transpose { permutation } => match permutation[..] {
            [.., minor] if minor + 1 != permutation.len() => {
                format!("make {} the most minor: store the array transposed, as [{}]", dimension(minor), new())
            }
            [.., second, _] => {
                format!("make {} the second-minor: store the array as [{}]", dimension(second), new())
            }
            _ => format!("store the array transposed, as [{}]", new()),
        },
        Change::Squeeze => {
            let ones: Vec<usize> = (0..target.bounds.len()).filter(|&d| target.bounds[d] == 1).collect();
            let which = match ones[..] {
                [only] => format!("dimension {only}, of size 1"),
                _ => format!("the dimensions of size 1 ({})", list(&ones)),
            };
            format!("drop {which}: reshape to [{}]", new())
        }
        Change::Merge { run } if run.len() == target.bounds.len() => {
            format!("flatten the array to one dimension of {}", new())
        }
        Change::Merge { run } => {
            let merged: u64 = target.bounds[run.clone()].iter().product();
            let named = |number: usize| format!("{number} (size {})", target.bounds[number]);
            let first: Vec<String> = (run.start..run.end - 1).map(named).collect();
            let (first, last) = (first.join(", "), named(run.end - 1));
            format!("merge dimensions {first} and {last} into one of {merged}: reshape to [{}]", new())
        }
        Change::Fold { run, rows } => {
            let before = dimension(run.start - 1);
            let into = match run.len() {
                1 => dimension(run.start),
                _ => format!("dimensions {} to {} ({})", run.start, run.end - 1, times(&target.bounds[run.clone()])),
            };
            format!("move a factor of {rows} from {before} into {into}, to fill the 128 lanes: reshape to [{}]", new())
        }
        Change::Unstack { dimension: number } => {
            let count = target.bounds[*number];
            format!("split dimension {number} into {count} separate arrays: {count} × {}", text())
        }
        Change::Cut { dimension: number, at } => {
            let both: Vec<String> = candidate.arrays.iter().map(|a| a.shape.without_layout().to_string()).collect();
            format!("split {} at {at}, a tile boundary, into two arrays: {}", dimension(*number), both.join(" and "))
        }
        Change::Batch => {
            format!("if there are many such arrays, batch {} of them into one, {}", BATCH, text())
        }
        Change::Resize { dimension: number, to } => {
            format!("reduce dimension {number} from {} to {to}, so that it fills its tiles", target.bounds[*number])
        }
        Change::Narrow { to } => {
            let from = target.array.element_type();
            let halved = candidate.after.checked_mul(2) == Some(target.baseline.sizes.physical_bytes);
            let share = if halved { ": half the bytes, padding included" } else { "" };
            format!("store {to} instead of {from} {}{share}", condition(*to))
        }
        Change::Byte => {
            format!("store the predicates as s8: in this layout each takes {} bits", target.array.stored_bits())
        }
    }
}

/// The line of JAX that does it to an array `x`, and in a comment what comes out.
pub(super) fn jax(candidate: &Candidate, target: &Target<'_>) -> String {
    let new = || candidate.arrays.first().map(|array| bounds_of(&array.shape)).unwrap_or_default();
    let code = match &candidate.change {
        Change::Order => {
            let order: Vec<usize> =
                target.default_layout.as_array().map(|a| a.major_to_minor().collect()).unwrap_or_default();
            snippet::put_in_order("x", &order)
        }
        Change::Transpose { permutation } => format!("x = {}", transposed(permutation)),
        Change::Merge { run } if run.len() == target.bounds.len() => "x = x.reshape(-1)".into(),
        Change::Squeeze | Change::Merge { .. } | Change::Fold { .. } => {
            format!("x = x.reshape({})", new().replace(',', ", "))
        }
        Change::Unstack { dimension } => format!("xs = jnp.unstack(x, axis={dimension})"),
        Change::Cut { dimension, at } => format!("a, b = jnp.split(x, [{at}], axis={dimension})"),
        Change::Batch => "x = jnp.stack(xs, axis=-1)".into(),
        Change::Resize { dimension, to } => format!("x = jax.lax.slice_in_dim(x, 0, {to}, axis={dimension})"),
        Change::Narrow { to } => format!("x = x.astype(jnp.{})", jax_name(*to)),
        Change::Byte => "x = x.astype(jnp.int8)".into(),
    };
    let arrays: Vec<String> = candidate
        .arrays
        .iter()
        .map(|array| match (&candidate.change, array.count) {
            (Change::Order, _) => array.shape.to_string(),
            (_, 1) => array.shape.without_layout().to_string(),
            (_, count) => format!("{count} × {}", array.shape.without_layout()),
        })
        .collect();
    format!("{code}  # {}", arrays.join(" and "))
}

/// The shortest call that permutes the dimensions so.
fn transposed(permutation: &[usize]) -> String {
    let rank = permutation.len();
    let moved: Vec<usize> = (0..rank).filter(|&at| permutation[at] != at).collect();
    if rank == 2 {
        return "x.T".into();
    }
    if let [a, b] = moved[..] {
        return format!("jnp.swapaxes(x, {a}, {b})");
    }
    match permutation.last() {
        // All others keep their order.
        Some(&last) if permutation[..rank - 1].is_sorted() => format!("jnp.moveaxis(x, {last}, -1)"),
        _ => format!("jnp.transpose(x, ({}))", list(permutation)),
    }
}

/// When the narrower type serves as well.
fn condition(to: ElementType) -> String {
    let bits = to.bits();
    match to.kind() {
        ElementKind::Signed => {
            let half = 1i64 << (bits.min(63) - 1);
            format!("if every value lies in {} … {}", -half, half - 1)
        }
        ElementKind::Unsigned => format!("if every value lies in 0 … {}", (1u64 << bits.min(63)) - 1),
        _ if to == ElementType::Bf16 => "if 8 bits of precision suffice".into(),
        _ => "if its precision suffices".into(),
    }
}

/// `jax.numpy`'s name of a type that others are narrowed to.
fn jax_name(element_type: ElementType) -> String {
    match element_type.kind() {
        ElementKind::Signed => format!("int{}", element_type.bits()),
        ElementKind::Unsigned => format!("uint{}", element_type.bits()),
        ElementKind::Complex => format!("complex{}", element_type.bits()),
        _ if element_type == ElementType::Bf16 => "bfloat16".into(),
        _ => format!("float{}", element_type.bits()),
    }
}

/// The bounds as they stand between brackets.
fn bounds_of(shape: &Shape) -> String {
    let bounds: Vec<String> = shape.dimensions().iter().map(ToString::to_string).collect();
    bounds.join(",")
}

fn list(items: &[impl Display]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn times(items: &[u64]) -> String {
    items.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ")
}
