//! Kernels that Mosaic can't compile: blocks, indices, slices, types.

use super::answer::Answer;
use crate::advice::{Change, Recommendation, Target, snippet};
use tilewise_oom::{Facts, Form, Message, meaning_of_code};

const PALLAS: &str = "from jax.experimental import pallas as pl";
const PALLAS_AND_TPU: &str =
    "from jax.experimental import pallas as pl\nfrom jax.experimental.pallas import tpu as pltpu";
const PALLAS_AND_NUMPY: &str = "import jax.numpy as jnp\nfrom jax.experimental import pallas as pl";

pub(super) fn answer(message: &Message) -> Answer {
    let facts = &message.facts;
    match message.form {
        Form::Block => block(message),
        Form::Index => index(facts),
        Form::Slice => slice(facts),
        Form::MatmulType => matmul(facts),
        _ => lowering(message),
    }
}

fn kernel(sentence: impl Into<String>) -> Recommendation {
    Recommendation::new(Change::Block, Target::Kernel, sentence)
}

/// What a rule of the last two dimensions asks for: a multiple, or all of the dimension.
fn nearest(size: u64, multiple: u64, whole: Option<u64>) -> u64 {
    if Some(size) == whole {
        return size;
    }
    let up = size.max(1).checked_next_multiple_of(multiple.max(1)).unwrap_or(size);
    whole.filter(|whole| up > *whole).unwrap_or(up)
}

fn tuple(bounds: &[Option<u64>]) -> String {
    let words = bounds.iter().map(|bound| bound.map_or_else(|| "…".to_owned(), |bound| bound.to_string()));
    format!("({})", words.collect::<Vec<_>>().join(", "))
}

fn block(message: &Message) -> Answer {
    let facts = &message.facts;
    let name = match (facts.text("argument"), facts.text("side"), facts.number("operand")) {
        (Some(argument), ..) => format!(" of {argument}"),
        (None, Some(side), Some(number)) => format!(" of {side} {number}"),
        _ => String::new(),
    };
    let in_kernel = facts.text("kernel").map(|kernel| format!(" in {kernel}")).unwrap_or_default();
    let (rows, lanes) = tile(facts);
    let rule =
        format!("each of its last two dimensions has to be a multiple of {rows} and {lanes}, or the whole dimension");
    let cause = "The block doesn't end where tiles of its array end: the compiler copies whole tiles.".to_owned();
    let (Some(block), Some(array)) = (facts.bounds("block"), facts.bounds("array")) else {
        let headline = "A kernel's block does not fit the tiles of its array.".to_owned();
        let words = if facts.number("rank") == Some(1) {
            "Make the block of one dimension the whole dimension, a multiple of 1024, or a power of two of at least 128 × \
             (32 / bits of an element)"
                .to_owned()
        } else {
            format!("Choose another block{name}: {rule}")
        };
        return Answer {
            headline,
            cause,
            advice: vec![kernel(words).snippet(PALLAS, "pl.BlockSpec((8, 128), index_map)")],
        };
    };
    let mut legal = block.to_vec();
    let count = legal.len();
    for (from_end, multiple) in [(1, lanes), (2, rows)] {
        let Some(size) = count.checked_sub(from_end).and_then(|at| legal.get_mut(at)) else { continue };
        let whole = array.len().checked_sub(from_end).and_then(|at| array[at]);
        *size = size.map(|size| nearest(size, multiple, whole));
    }
    let sentence =
        format!("Use the block {} in the BlockSpec{name}: {rule}, and the array is {}", tuple(&legal), tuple(array));
    let mut advice = vec![kernel(sentence).snippet(PALLAS, format!("pl.BlockSpec({}, index_map)", tuple(&legal)))];
    // A row at a time, as kernels of sequences want it.
    let is_row = |at: usize| block[at] == Some(1) && array[at] != Some(1);
    if count >= 2 && count == array.len() && is_row(count - 2) {
        advice.push(one_row(block, array));
    }
    let headline = format!("The block {}{name}{in_kernel} does not fit tiles of ({rows}, {lanes}).", tuple(block));
    Answer { headline, cause, advice }
}

fn tile(facts: &Facts) -> (u64, u64) {
    match facts.bounds("tiling") {
        Some([Some(rows), Some(lanes)]) => (*rows, *lanes),
        _ => (8, 128),
    }
}

fn one_row(block: &[Option<u64>], array: &[Option<u64>]) -> Recommendation {
    let with_one = |bounds: &[Option<u64>]| {
        let mut bounds = bounds.to_vec();
        bounds.insert(bounds.len() - 1, Some(1));
        tuple(&bounds)
    };
    let sentence = format!(
        "Keep one row a step by one dimension more: with the array as {} and the block {}, the rows are none of the last \
         two dimensions, and a dimension of size 1 is whole",
        with_one(array),
        with_one(block)
    );
    kernel(sentence).snippet(PALLAS, format!("x = x[..., None, :]\npl.BlockSpec({}, index_map)", with_one(block)))
}

fn index(facts: &Facts) -> Answer {
    let dimension = facts.number("dimension").map_or("a dimension".to_owned(), |at| format!("dimension {at}"));
    let multiple = facts.number("multiple").unwrap_or(128);
    let advice = vec![
        kernel(format!(
            "Tell the compiler, if the index in {dimension} always is a multiple of {multiple}: `pl.multiple_of`; if it is \
             not, that promise gives wrong results"
        ))
        .snippet(PALLAS, format!("i = pl.multiple_of(i, {multiple})")),
        kernel(format!(
            "If it is not, load the whole tile that the index lies in, and rotate it; or store the array so that each \
             piece begins at a multiple of {multiple}"
        ))
        .snippet(
            PALLAS_AND_TPU,
            format!(
                "start = pl.multiple_of(i // {multiple} * {multiple}, {multiple})\n\
                 x = pltpu.roll(ref[pl.ds(start, {multiple})], -i % {multiple}, axis=0)  # axis: that of the index"
            ),
        ),
    ];
    Answer {
        headline: format!("A kernel's index in {dimension} can't be proved to be a multiple of {multiple}."),
        cause: format!("A load or store begins at a whole tile, of {multiple} in this dimension; no memory ran out."),
        advice,
    }
}

fn slice(facts: &Facts) -> Answer {
    let number = |name| facts.number(name);
    let dimension = number("dimension").unwrap_or(0);
    let multiple = number("multiple").unwrap_or(128);
    let size = number("size");
    let up = size.and_then(|size| size.checked_next_multiple_of(multiple.max(1)));
    let is = size.map(|size| format!(" of {size}")).unwrap_or_default();
    let to = up.map(|up| format!(" to {up}")).unwrap_or_default();
    let sentence = format!(
        "Pad dimension {dimension}{to}, the next multiple of {multiple}, or take the whole tile and select from it in the \
         kernel"
    );
    let mut advice = kernel(sentence);
    if let (Some(size), Some(up)) = (size, up) {
        let code = format!("x = jnp.pad(x, …)  # dimension {dimension}: {size} → {up}\nref.at[…, pl.ds(start, {up})]");
        advice = advice.snippet(PALLAS_AND_NUMPY, code);
    }
    Answer {
        headline: format!("A kernel's slice{is} in dimension {dimension} is no whole number of tiles of {multiple}."),
        cause: "A copy moves whole tiles; no memory ran out.".to_owned(),
        advice: vec![advice],
    }
}

fn matmul(facts: &Facts) -> Answer {
    let operand = facts.shapes("type").first().map(|shape| format!(", {},", shape.text)).unwrap_or_default();
    let sentence = "Cast both operands to one type that the matrix unit reads, bf16 or f32, in the kernel, right before the \
                    product; leave `precision` out with bf16 (HIGHEST is refused), and don't set \
                    `--xla_mosaic_compat_mode=false`";
    let code = "acc += jnp.dot(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), preferred_element_type=jnp.float32)";
    Answer {
        headline: format!("A kernel multiplies matrices of types{operand} that this TPU's matrix unit can't read."),
        cause: "Each generation reads a few types, and both operands in the same one; no memory ran out.".to_owned(),
        advice: vec![kernel(sentence).snippet(snippet::NUMPY, code)],
    }
}

fn lowering(message: &Message) -> Answer {
    let facts = &message.facts;
    if facts.get("partitioned").is_some() {
        return partitioned();
    }
    let operation = facts.text("operation").and_then(operation_name);
    let what = facts.text("what").map(|what| what.trim_end_matches('.').to_owned());
    let headline = match (&what, message.code.as_deref().and_then(meaning_of_code)) {
        (Some(what), _) => format!("Mosaic can't compile a kernel: {what}."),
        (None, Some(meaning)) => format!("Mosaic can't compile a kernel: {meaning}."),
        (None, None) => "Mosaic can't compile a kernel.".to_owned(),
    };
    let which = operation.map(|name| format!(" `{name}`")).unwrap_or_default();
    let sentence = format!(
        "Write the operation{which} in another way: keep arrays at two dimensions or more, masks in 32 bits \
         (`jax.lax.broadcasted_iota` and a comparison in the final shape, no reshape of a mask), and cast narrow types to \
         32 bits before a change of shape; report it to JAX, with the lines below `The MLIR operation involved`"
    );
    Answer {
        headline,
        cause: "An operation, a layout or a type is not implemented for this TPU; no memory ran out.".to_owned(),
        advice: vec![kernel(sentence).snippet(
            "import jax\nimport jax.numpy as jnp",
            "mask = jax.lax.broadcasted_iota(jnp.int32, (32, 128), 0) < n  # in the shape it is used in",
        )],
    }
}

/// A kernel in a program that is divided between devices.
fn partitioned() -> Answer {
    let code = "f = jax.shard_map(kernel, mesh=mesh, in_specs=PartitionSpec('x'), out_specs=PartitionSpec('x'))";
    let sentence =
        "Wrap the call of the kernel in `jax.shard_map`, whose specs say which part of each array a device has";
    Answer {
        headline: "A kernel's arrays are divided between devices, and the compiler can't divide a kernel.".to_owned(),
        cause: "The compiler divides the operations that it knows; a kernel has to be called with one device's part; no memory \
                ran out."
            .to_owned(),
        advice: vec![kernel(sentence).snippet("import jax\nfrom jax.sharding import PartitionSpec", code)],
    }
}

/// The name in `%14372 = "vector.load"(…)`.
fn operation_name(line: &str) -> Option<String> {
    let name = match line.split_once('"') {
        Some((_, rest)) => rest.split('"').next()?,
        None => line.split_once(" = ").map_or(line, |(_, rest)| rest).split(['(', ' ']).next()?,
    };
    (!name.is_empty() && name.contains('.')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_block() {
        assert_eq!(nearest(8, 16, Some(256)), 16);
        assert_eq!(nearest(1, 8, Some(2)), 2);
        assert_eq!(nearest(100, 128, Some(100)), 100);
        assert_eq!(nearest(512, 128, Some(8192)), 512);
        assert_eq!(nearest(0, 8, None), 8);
    }
}
