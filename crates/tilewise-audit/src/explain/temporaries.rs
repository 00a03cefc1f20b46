//! Values inside a program: their layout is the compiler's, so advice is about which arrays exist at all, and what it
//! frees has no more than a bound.

use super::{Allocation, Explanation};
use crate::{
    Recommendation,
    origin::place,
    recommendation::{Change, Saving, Target},
    snippet,
};
use tilewise_oom::{Budget, Framework, Role, Section};

/// Dimensions up to this size are columns: one of 128 lanes for each.
const COLUMNS: u64 = 32;

/// Entries looked at: the compiler lists 20, the largest first.
pub(super) const LOOKED_AT: usize = 256;

/// In how many parts a dimension is worked through.
const PARTS: u64 = 8;

/// Shorter dimensions are not worth taking apart.
const LEAST_LENGTH: u64 = PARTS;

pub(super) fn of(explanation: &Explanation, budget: &Budget, framework: Framework) -> Vec<Recommendation> {
    let rows: Vec<&Allocation> = explanation
        .allocations
        .iter()
        .filter(|row| row.entry.section == Section::Allocations && row.entry.window().is_none())
        .take(LOOKED_AT)
        .collect();
    let mut advice = columns(&rows, budget, framework);
    advice.extend(predicates(&rows));
    advice.extend(unseen(&rows, budget));
    advice.extend(chunks(&rows, budget, framework));
    advice.extend(converted(&rows, budget, framework));
    advice.extend(checkpoint(&rows, framework));
    advice.extend(donate(explanation, budget, framework));
    advice
}

fn op_name(row: &Allocation) -> &str {
    row.entry.operator.as_ref().and_then(|operator| operator.op_name()).unwrap_or_default()
}

/// What framework and compiler call the operation.
fn operation(row: &Allocation) -> String {
    let opcode = row.entry.instruction().map(|(name, opcode)| format!("{name} {opcode}")).unwrap_or_default();
    let kind = row.entry.operator.as_ref().and_then(|operator| operator.get("op_type")).unwrap_or_default();
    format!("{} {kind} {opcode}", op_name(row).rsplit('/').next().unwrap_or_default())
}

fn bounds(row: &Allocation) -> Vec<u64> {
    let array = row.shape.as_ref().and_then(|shape| shape.as_array());
    array.map(|array| array.dimensions().iter().filter_map(|dimension| dimension.bound()).collect()).unwrap_or_default()
}

fn padding(row: &Allocation) -> u64 {
    row.entry.padding_bytes().unwrap_or_default()
}

/// The dimension on the lanes, and its size.
fn lanes(row: &Allocation) -> Option<(usize, u64)> {
    let array = row.shape.as_ref()?.as_array()?;
    let dimension = *array.layout()?.minor_to_major().first()?;
    Some((dimension, array.dimensions().get(dimension)?.bound()?))
}

/// The same share of all as `part` is of what is listed, if a list that is cut off has less than half of all.
fn of_all(part: u64, listed: u64, all: Option<u64>) -> u64 {
    let Some(all) = all.filter(|all| *all / 2 > listed && listed > 0) else { return part };
    u64::try_from(u128::from(part) * u128::from(all) / u128::from(listed)).unwrap_or(part)
}

/// Rows of a few columns: what makes them can make a column each.
fn columns(rows: &[&Allocation], budget: &Budget, framework: Framework) -> Vec<Recommendation> {
    let mut found: Vec<(&Allocation, u64, u64)> = Vec::new();
    for row in rows {
        let Some((_, columns)) = lanes(row).filter(|(_, size)| *size <= COLUMNS) else { continue };
        if padding(row) == 0 || bounds(row).len() < 2 {
            continue;
        }
        match found.iter_mut().find(|(first, same, _)| *same == columns && bounds(first)[0] == bounds(row)[0]) {
            Some((_, _, saved)) => *saved = saved.saturating_add(padding(row)),
            None => found.push((row, columns, padding(row))),
        }
    }
    // A list that is cut off leaves others like these out.
    let listed = rows.iter().map(|row| padding(row)).fold(0, u64::saturating_add);
    let all = budget.padding_bytes.map(|all| all.saturating_sub(budget.argument_padding_bytes.unwrap_or_default()));
    let advice = found.into_iter();
    advice.map(|(row, columns, saved)| separate(row, columns, of_all(saved, listed, all), rows, framework)).collect()
}

fn separate(row: &Allocation, columns: u64, saved: u64, rows: &[&Allocation], framework: Framework) -> Recommendation {
    let (place, shape) = (place(row.source.as_ref()), row.shape.as_ref().map(ToString::to_string).unwrap_or_default());
    let is_of = |words: &[&str]| {
        let same = |other: &&&Allocation| bounds(other).first() == bounds(row).first();
        rows.iter().filter(same).any(|other| words.iter().any(|word| operation(other).contains(word)))
    };
    let lanes = "each row takes 128 lanes, whatever it holds";
    let (sentence, code) = if columns == 1 {
        let sentence = format!(
            "Leave the dimension of size 1 out where {shape}{place} is made (no `keepdims`, no `[:, None]`), and add it \
             where it is used: the array has one number a row, and {lanes}"
        );
        (sentence, None)
    } else if is_of(&["gather", "take"]) {
        let sentence = format!(
            "Gather each column separately, and keep the columns separate from there on: {shape}{place} comes from a \
             gather of rows of {columns}, and {lanes}; splitting what was gathered frees nothing"
        );
        (sentence, Some(snippet::gather_columns("table")))
    } else if is_of(&["scatter"]) {
        let sentence = format!(
            "Scatter each column separately: {shape}{place} goes through a scatter of rows of {columns}, and {lanes}"
        );
        (sentence, Some(snippet::SCATTER_COLUMNS.to_owned()))
    } else if is_of(&["conv"]) {
        let sentence = format!(
            "Fold neighbouring positions into the channels before the convolution, or work through it in parts: \
             {shape}{place} is of a convolution over {columns} channels, and {lanes}"
        );
        (sentence, None)
    } else {
        let sentence = format!(
            "Make {columns} arrays, one for each column, where {shape}{place} is made, and keep them separate from there \
             on: it has rows of {columns}, and {lanes}; another layout requested inside the program is undone"
        );
        (sentence, None)
    };
    let piece =
        Recommendation::new(Change::Split, Target::Upstream, sentence).saving(Saving::AtMost(saved)).about(shape);
    match code.filter(|_| framework == Framework::Jax) {
        Some(code) => piece.snippet(snippet::NUMPY, code),
        None => piece,
    }
}

/// Compilers of 2022 and before kept a predicate in a word of 32 bits.
fn predicates(rows: &[&Allocation]) -> Option<Recommendation> {
    let is_wide = |row: &&&Allocation| row.entry.shape.as_ref().is_some_and(|shape| shape.text.contains("E(32)"));
    let saved = rows.iter().filter(is_wide).map(|row| padding(row)).fold(0, u64::saturating_add);
    let first = rows.iter().find(|row| is_wide(row))?;
    let sentence = "Update libtpu, or keep masks as 8-bit integers: this compiler is an old one, and keeps each predicate in \
                    32 bits; masks of dropout need not be kept if their layer is checkpointed";
    let piece = Recommendation::new(Change::Narrow, Target::Compiler, sentence).saving(Saving::AtMost(saved));
    Some(piece.about(&*first.entry.shape.as_ref()?.text))
}

/// Padding that the message counts, though no shape in it is padded: the shapes are cut off.
fn unseen(rows: &[&Allocation], budget: &Budget) -> Option<Recommendation> {
    let listed = rows.iter().map(|row| padding(row)).fold(0, u64::saturating_add);
    let unseen = budget.padding_bytes?.saturating_sub(budget.argument_padding_bytes.unwrap_or_default());
    // Otherwise there is padding, but not much in any one array.
    if listed > unseen / 100 || u128::from(unseen) * 4 < u128::from(budget.used_bytes.unwrap_or_default()) {
        return None;
    }
    let first = rows.first();
    let name = first.map(|row| op_name(row).split(['[', ' ']).next().unwrap_or_default()).unwrap_or_default();
    let name = name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let by = match first {
        Some(row) if !name.is_empty() => format!(", first of all those of `{name}`{}", place(row.source.as_ref())),
        _ => String::new(),
    };
    let then = if name.contains("conv") {
        "Fold neighbouring positions into the channels before a convolution over few of them, or work through the \
         batch in parts"
    } else {
        "Keep few columns or channels as separate arrays, or fold neighbours into them, from the arguments on"
    };
    let sentence = format!(
        "{then}: arrays whose shapes are cut off here are mostly padding{by}, for a short dimension lies on the 128 \
         lanes. The list `Largest program allocations` of the whole message says which arrays"
    );
    Some(Recommendation::new(Change::Split, Target::Value, sentence).saving(Saving::AtMost(unseen)))
}

/// Whether the program takes a gradient.
fn has_gradient(rows: &[&Allocation]) -> bool {
    rows.iter()
        .any(|row| ["jvp(", "mapped_update", "train_step", "grad"].iter().any(|sign| op_name(row).contains(sign)))
}

/// Most of what is listed has one dimension in common: parts of it, one after the other.
fn chunks(rows: &[&Allocation], budget: &Budget, framework: Framework) -> Option<Recommendation> {
    let rows: Vec<&Allocation> = rows.iter().copied().filter(|row| !is_converted(row)).collect();
    let rows = rows.as_slice();
    let listed = rows.iter().map(|row| row.taken_bytes()).fold(0, u64::saturating_add);
    let with = |size: u64| {
        let have = rows.iter().filter(|row| bounds(row).contains(&size));
        have.map(|row| row.taken_bytes()).fold(0, u64::saturating_add)
    };
    let mut sizes: Vec<u64> = rows.iter().flat_map(|row| bounds(row)).filter(|size| *size >= LEAST_LENGTH).collect();
    sizes.sort_unstable();
    sizes.dedup();
    // Of those that nearly as much has as of any, the leading one, which is the batch; then the longest.
    let most = sizes.iter().map(|size| with(*size)).max()?;
    let is_common = |size: &u64| u128::from(with(*size)) * 10 >= u128::from(most) * 9;
    let largest_with =
        |size: u64| rows.iter().filter(|row| bounds(row).contains(&size)).max_by_key(|row| row.taken_bytes());
    let place_of = |size: u64| bounds(largest_with(size)?).iter().position(|bound| *bound == size);
    let size = sizes.into_iter().filter(is_common).max_by_key(|size| (std::cmp::Reverse(place_of(*size)), *size))?;
    let held = with(size);
    if u128::from(held) * 2 < u128::from(listed) {
        return None;
    }
    let first = rows.iter().filter(|row| bounds(row).contains(&size)).max_by_key(|row| row.taken_bytes())?;
    let shape = first.shape.as_ref().map(|shape| shape.without_layout().to_string()).unwrap_or_default();
    let at = bounds(first).iter().position(|bound| *bound == size).unwrap_or(0);
    let place = place(first.source.as_ref());
    let sentence = format!(
        "Process dimension {at} of {shape}{place}, of size {size}, in parts, one after the other, if it is one of your \
         batch: most of what is listed has it{}; {PARTS} parts free this much at most",
        if has_gradient(rows) { "; take loss and gradient of each part, and add them up" } else { "" }
    );
    let held = of_all(held, listed, budget.temporary_bytes);
    let piece =
        Recommendation::new(Change::Chunk, Target::Value, sentence).saving(Saving::AtMost(held / PARTS * (PARTS - 1)));
    let batch = (size / PARTS).max(1);
    let piece = match framework {
        Framework::Jax if has_gradient(rows) => piece.snippet(
            snippet::JAX,
            "def add(total, part):\n    \
             return jax.tree.map(lambda t, g: t + g, total, jax.grad(loss)(params, part)), None\n\
             total, _ = jax.lax.scan(add, jax.tree.map(lambda p: 0 * p, params), parts)  # parts: the batch, [8, …]",
        ),
        Framework::Jax => {
            piece.snippet(snippet::JAX, format!("ys = jax.lax.map(f, xs, batch_size={batch})  # f: of one of them"))
        }
        Framework::TorchXla => piece.snippet(
            "import torch_xla.core.xla_model as xm",
            format!("for part in batch.chunk({PARTS}):\n    (loss_of(part) / {PARTS}).backward()\n    xm.mark_step()"),
        ),
        Framework::TensorFlow => piece.snippet(
            "import tensorflow as tf",
            format!("y = tf.concat([f(part) for part in tf.split(x, {PARTS}, axis={at})], axis={at})"),
        ),
        _ => piece,
    };
    Some(piece.about(shape))
}

/// Whether it is a copy of another array in another type, such as of weights.
fn is_converted(row: &Allocation) -> bool {
    let opcode = row.entry.instruction().map(|(_, opcode)| opcode);
    opcode == Some("convert")
        || op_name(row).rsplit('/').next().is_some_and(|last| last.starts_with("convert_element_type"))
}

/// Arguments that are converted inside are held twice.
fn converted(rows: &[&Allocation], budget: &Budget, framework: Framework) -> Option<Recommendation> {
    let listed = rows.iter().map(|row| row.taken_bytes()).fold(0, u64::saturating_add);
    let of_rows = rows.iter().filter(|row| is_converted(row));
    let held = of_rows.map(|row| row.taken_bytes()).fold(0, u64::saturating_add);
    let first = rows.iter().find(|row| is_converted(row))?;
    let element = first.shape.as_ref()?.as_array()?.element_type();
    let sentence = format!(
        "Convert arguments, such as weights, to {element} once, before the program: it holds copies in {element} of \
         arrays in another type{}, if those are arguments",
        place(first.source.as_ref())
    );
    let piece = Recommendation::new(Change::Narrow, Target::Argument, sentence).saving(Saving::AtMost(of_all(
        held,
        listed,
        budget.temporary_bytes,
    )));
    Some(match framework {
        Framework::Jax if element == tilewise::ElementType::Bf16 => piece.snippet(
            snippet::JAX_AND_NUMPY,
            "params = jax.jit(lambda p: jax.tree.map(lambda w: w.astype(jnp.bfloat16), p), donate_argnums=0)(params)",
        ),
        Framework::TorchXla if element == tilewise::ElementType::Bf16 => {
            piece.snippet("import torch", "model = model.to(torch.bfloat16)")
        }
        _ => piece,
    })
}

/// What is kept for the gradient could be worked out again.
fn checkpoint(rows: &[&Allocation], framework: Framework) -> Option<Recommendation> {
    let is_kept = |row: &&&Allocation| {
        let (name, operation) = (op_name(row), operation(row));
        name.contains("transpose(jvp") || name.contains("/while/body") && operation.contains("dynamic_update_slice")
    };
    let kept = rows.iter().filter(is_kept).map(|row| row.taken_bytes()).fold(0, u64::saturating_add);
    let first = rows.iter().find(|row| is_kept(row))?;
    let sentence = format!(
        "Put a checkpoint around the layer or the loop's step that makes what is kept for the gradient{}: those values \
         are then recomputed",
        place(first.source.as_ref())
    );
    let piece = Recommendation::new(Change::Checkpoint, Target::Value, sentence).saving(Saving::AtMost(kept));
    Some(match framework {
        Framework::Jax => piece.snippet(snippet::JAX, "layer = jax.checkpoint(layer)  # or the step of a jax.lax.scan"),
        Framework::TorchXla => {
            piece.snippet("from torch_xla.utils.checkpoint import checkpoint", "y = checkpoint(layer, x)")
        }
        Framework::TensorFlow => piece.snippet("import tensorflow as tf", "layer = tf.recompute_grad(layer)"),
        _ => piece,
    })
}

/// Results that could take the place of an argument of their shape.
fn donate(explanation: &Explanation, budget: &Budget, framework: Framework) -> Option<Recommendation> {
    let own = budget.output_bytes?.min(budget.argument_bytes?);
    let of = |is_wanted: fn(&Role) -> bool| {
        let listed = explanation.allocations.iter().rev().take(LOOKED_AT);
        let rows = listed.filter(move |row| row.entry.role().as_ref().is_some_and(is_wanted));
        rows.filter_map(|row| Some((row.shape.as_ref()?.to_string(), row.taken_bytes())))
    };
    let mut results: Vec<(String, u64)> = of(|role| matches!(role, Role::Output(_))).collect();
    let is_listed = !results.is_empty();
    let mut matched = 0_u64;
    for argument in of(|role| matches!(role, Role::Argument(..))) {
        if let Some(at) = results.iter().position(|result| *result == argument) {
            matched = matched.saturating_add(results.swap_remove(at).1);
        }
    }
    let saved = if is_listed { own.min(matched) } else { own };
    let sentence = "Donate arguments that the caller no longer needs, such as the state before a step: results of the same \
                    shape take their place";
    let piece = Recommendation::new(Change::Donate, Target::Argument, sentence).saving(Saving::AtMost(saved));
    let piece = match framework {
        Framework::Jax => {
            piece.snippet(snippet::JAX, "step = jax.jit(step, donate_argnums=(0,))  # 0: the argument's number")
        }
        _ => piece,
    };
    (saved > 0).then_some(piece)
}
