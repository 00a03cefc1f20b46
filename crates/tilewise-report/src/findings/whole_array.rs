//! One array that is made whole, and too large by itself.

use super::{
    Words,
    code::{JAX, MAP},
};
use crate::style::grouped;
use tilewise::visible;
use tilewise_audit::{Recommendation, recommendation::finding::WholeArray};
use tilewise_oom::{Framework, Product};

pub(super) fn words(array: &WholeArray, about: &Recommendation) -> Words {
    match array {
        WholeArray::Scores => Words::new(
            "Let attention keep no scores: its line asks for more than a quarter of the device at once, as where none of the fused kernels takes \
             its mask, type or device, or `flex_attention` isn't compiled",
        )
        .task("Let attention keep no scores: take a fused kernel")
        .code(
            None,
            "attn_implementation='flash_attention_2'  # in from_pretrained; or 'sdpa', which needs no other package\n\
             # or flex_attention = torch.compile(flex_attention)",
        ),
        WholeArray::Logits => Words::new(
            "Never make all logits at once: each token has one for each word of the vocabulary, and a copy in f32 takes twice as much as they \
             do. A fused cross entropy takes the hidden states and makes none of them; else work through the tokens in parts, or take fewer",
        )
        .task("Never make all logits at once: fuse the loss, or take tokens in parts")
        .code(
            "from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss",
            "args = TrainingArguments(…, use_liger_kernel=True)  # SFTConfig, GRPOConfig; LLaMA-Factory: enable_liger_kernel: true\n\
             # in a loop of your own:\n\
             loss = LigerFusedLinearCrossEntropyLoss()(lm_head.weight, hidden.flatten(0, 1), labels.flatten())",
        ),
        WholeArray::Parameters(parameters) => {
            #[expect(clippy::cast_precision_loss, reason = "a number for people")]
            let billions = *parameters as f64 / 1e9;
            Words::new(format!(
                "Gather a layer at a time: one request is for all {billions:.2} billion parameters, or their gradient, as where a model is \
                 sharded (FSDP, ZeRO) as a single unit"
            ))
            .task("Gather the parameters a layer at a time, not the whole model")
            .code(
                "from torch.distributed.fsdp import fully_shard",
                "for layer in model.layers:  # FSDP1: FSDP(model, auto_wrap_policy=…)\n    fully_shard(layer)\nfully_shard(model)",
            )
        }
        WholeArray::Factored { size, is_tall } => factored(*size, *is_tall, about),
        WholeArray::Product(product) if product.is_square() => {
            let size = grouped(product.factors[0]);
            Words::new(format!(
                "Never make the matrix whole: it has one value for each pair of {size}. A library that makes it, as for neighbours, distances or \
                 kernels, has options for less: a smaller cutoff, so that cells are used, or blocks. Where shapes ({size}, 1) and ({size},) meet by \
                 mistake, give both the same shape. A diagonal one is a vector to multiply by, one of low rank its factors; of others work through \
                 the rows in parts, or divide them between devices"
            ))
            .task(format!("Find what makes a value for each pair of {size}, and make fewer at once"))
            .caveat(format!("often shapes ({size}, 1) and ({size},) that meet by mistake, or a library's distances of all pairs"))
        }
        WholeArray::Product(product) if product.is_of_records() => {
            let (count, size) = (grouped(product.factors[0]), grouped(product.element_bytes));
            let named = product.names.iter().flatten().next().map(|name| format!(" (`{name}`)")).unwrap_or_default();
            Words::new(format!(
                "Keep fewer than {count} on the device at once: the request is that number of the text times {size} bytes, as of a buffer of samples \
                 or of a table, whatever the batch. For as many, run in pieces, and move each piece's to the host before the next"
            ))
            .task(format!("Keep fewer than {count}{named} on the device, in pieces: each takes {size} bytes"))
        }
        WholeArray::Product(product) if named(product).is_some() => {
            let (name, size) = named(product).unwrap_or_default();
            Words::new(format!(
                "Lower {name}, {size} now, or another of the sizes of the text that make up the request: {}; or never make the array whole",
                shape_of(product)
            ))
            .task(format!("Lower {name} from {size}, or another of these sizes"))
        }
        WholeArray::Product(product) => Words::new(format!(
            "Never make the array whole: its {} are sizes that the text names, so work through one of them in parts, keep only what a later \
             step reads, or make it smaller",
            shape_of(product)
        ))
        .task("Never make the array whole: take one of its sizes in parts")
        .jax(about, JAX, MAP),
        _ => Words::new(
            "Never make the array whole: one request is for more than a quarter of the device, so work through it in parts (samples, rows, \
             pixels, heads, classes), leave it on the host, or take a fused operation that keeps none of it",
        )
        .task("Never make the array whole: work through it in parts"),
    }
}

/// A factorization that makes a square matrix, or needs one whole.
fn factored(size: u64, is_tall: bool, about: &Recommendation) -> Words {
    let size = grouped(size);
    let library = if about.framework == Some(Framework::Torch) { "torch" } else { "jnp" };
    if !is_tall {
        return Words::new(format!(
            "Solve without the matrix of {size} × {size}: conjugate gradients, or Lanczos for a few eigenvalues, take a function that multiplies by it. \
             One that has to be factored whole belongs on the host, or on several devices"
        ))
        .task("Solve by products with the matrix, or factor it on the host")
        .jax(about, "from jax.scipy.sparse.linalg import cg", "x, _ = cg(product, b)  # product(v): yours, the matrix times v");
    }
    Words::new(format!(
        "Make no square factor: a matrix with {size} rows has one of {size} × {size}, of which only its first columns count. \
         `full_matrices=False` asks for these alone, but older versions on a GPU make it whole all the same: update, or take a QR \
         factorization or the normal equations, which are as small as the matrix. A wide matrix is transposed first"
    ))
    .task(format!("Make no factor of {size} × {size}: reduce the matrix by QR first"))
    .code(
        None,
        format!(
            "q, r = {library}.linalg.qr(x)  # x: the tall matrix; then u, s, vh = {library}.linalg.svd(r, full_matrices=False); u = q @ u\n\
             b = {library}.linalg.solve(x.T @ x, x.T @ y)  # least squares"
        ),
    )
}

/// The largest number that the text names, with its names.
fn named(product: &Product) -> Option<(String, u64)> {
    let names = product.names.iter().zip(&product.factors).filter(|(names, _)| !names.is_empty());
    names.max_by_key(|(_, factor)| **factor).map(|(names, factor)| (either(names), *factor))
}

/// `` `number_warmup` or `number_samples` ``
fn either(names: &[String]) -> String {
    names.iter().map(|name| format!("`{}`", visible(name))).collect::<Vec<_>>().join(" or ")
}

/// The sizes of an array: `5,200 × 96 × 96 × 96 elements of 4 bytes`.
pub(super) fn shape_of(product: &Product) -> String {
    let named = |(at, size): (usize, &u64)| match product.names.get(at).filter(|names| !names.is_empty()) {
        Some(names) => format!("{} ({})", grouped(*size), either(names)),
        None => grouped(*size),
    };
    let sizes: Vec<String> = product.factors.iter().enumerate().map(named).collect();
    let vocabulary = product.family.map(|family| format!(", the first a vocabulary of {family}")).unwrap_or_default();
    format!("{} elements of {} bytes{vocabulary}", sizes.join(" × "), product.element_bytes)
}
