//! Kernels that Mosaic can't compile: blocks, indices, slices, types.

use super::{
    Words,
    code::{JAX_AND_NUMPY, NUMPY, PALLAS},
};
use crate::shape::{in_words, relation};
use tilewise::Shape;
use tilewise_audit::recommendation::finding::{MatmulDimension, MosaicFinding, OperandLayout, ShortDimension};

use tilewise_oom::{Facts, Form, Message, meaning_of_code};

const PALLAS_AND_TPU: &str =
    "from jax.experimental import pallas as pl\nfrom jax.experimental.pallas import tpu as pltpu";
const PALLAS_AND_NUMPY: &str = "import jax.numpy as jnp\nfrom jax.experimental import pallas as pl";

pub(super) fn words(finding: &MosaicFinding) -> Words {
    match finding {
        MosaicFinding::Block { of, tile, legal, is_flat } => block(of, *tile, legal.as_ref(), *is_flat),
        MosaicFinding::OneRow { array, block } => Words::new(format!(
            "Keep one row a step by one dimension more: with the array as {} and the block {}, rows move out of the last two \
             dimensions, so size 1 is allowed",
            tuple(array),
            tuple(block)
        ))
        .code(PALLAS, format!("x = x[..., None, :]\npl.BlockSpec({}, index_map)", tuple(block))),
        MosaicFinding::Multiple { dimension, multiple } => Words::new(format!(
            "Tell the compiler, if the index in {} always is a multiple of {multiple}: `pl.multiple_of`; if it is not, that \
             promise gives wrong results",
            which(*dimension)
        ))
        .task(format!("Promise that the index is a multiple of {multiple}, only if it always is"))
        .code(PALLAS, format!("i = pl.multiple_of(i, {multiple})")),
        MosaicFinding::WholeTile { multiple } => {
            // Tiles lie in the last two dimensions: rows are fewer than lanes.
            let (last, axis) = if *multiple < 128 { (", :", 2) } else { ("", 1) };
            let both = multiple.saturating_mul(2);
            Words::new(format!(
                "If it is not, load both tiles that the piece lies in, and rotate them; or store the array so that each piece begins \
                 at a multiple of {multiple}"
            ))
            .task("Load both tiles that it may lie in, and rotate them")
            .code(
                PALLAS_AND_TPU,
                format!(
                    "start = pl.multiple_of(i // {multiple} * {multiple}, {multiple})  # of an array padded by {multiple}\n\
                     x = pltpu.roll(ref[..., pl.ds(start, {both}){last}], (start + {both} - i) % {both}, axis=ref.ndim - {axis})\
                     [..., :{multiple}{last}]"
                ),
            )
        }
        MosaicFinding::Slice { dimension, multiple, size } => {
            let to = size.map(|[_, up]| format!(" to {up}")).unwrap_or_default();
            let words = Words::new(format!(
                "Pad dimension {dimension}{to}, the next multiple of {multiple}, or take the whole tile and select from it in the \
                 kernel"
            ));
            match size {
                Some([size, up]) => words.code(
                    PALLAS_AND_NUMPY,
                    format!("x = jnp.pad(x, …)  # dimension {dimension}: {size} → {up}\nref.at[…, pl.ds(start, {up})]"),
                ),
                None => words,
            }
        }
        MosaicFinding::Cast => Words::new(
            "Cast both operands to f32, which every generation multiplies, in the kernel, right before the product; bf16 takes less \
             time where it is read (leave `precision` out: HIGHEST is refused); don't set `--xla_mosaic_compat_mode=false`",
        )
        .code(
            NUMPY,
            "acc += jnp.dot(a.astype(jnp.float32), b.astype(jnp.float32), preferred_element_type=jnp.float32)",
        ),
        MosaicFinding::StridedLanes { lanes } => {
            let has = lanes.map(|lanes| format!(", and these have {lanes}")).unwrap_or_default();
            let lanes = lanes.map_or("lanes".to_owned(), |lanes| lanes.to_string());
            Words::new(format!(
                "Load all rows, and select by a reshape: a strided load (`pl.ds(start, size, stride)`) reads rows of at most 128 \
                 numbers{has}; or give the kernel blocks of 128 lanes"
            ))
            .code(
                PALLAS,
                format!(
                    "x = ref[...].reshape(rows // stride, stride, {lanes})[:, 0]  # of `rows` rows each stride-th, from the first\n\
                     # or: spec = pl.BlockSpec((rows, 128), lambda i, j: (i, j)), and a grid of {lanes} // 128 steps along j"
                ),
            )
        }
        MosaicFinding::StridedNarrow => Words::new(
            "Update JAX, or hold the array in 32 bits: rows at a stride (`pl.ds(start, size, stride)`) of narrower types are read \
             from JAX 0.11 on",
        )
        .code(None, "pip install --upgrade 'jax[tpu]'"),
        MosaicFinding::OperandLayout(finding) => operand_layout(finding),
        MosaicFinding::MatmulShape { short } => matmul_shape(short),
        MosaicFinding::ScalarLoads => Words::new(
            "Read SMEM one element at a time (`ref[i]`), or give the array to the kernel in VMEM, which loads vectors",
        )
        .code(PALLAS_AND_TPU, "spec = pl.BlockSpec(block_shape, index_map, memory_space=pltpu.VMEM)"),
        MosaicFinding::Primitive { name } => Words::new(format!(
            "Write `{name}` from primitives that kernels for TPUs have (a loop over rows, `jnp.dot` with a mask, `pltpu.roll`), or \
             compute it outside the kernel; newer versions of JAX have more of them"
        ))
        .code(None, "pip install --upgrade 'jax[tpu]'"),
        MosaicFinding::Rewrite { operation, is_of_mask, is_flat, is_narrow } => {
            let which = operation.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
            let ways = [
                (is_flat.unwrap_or(true), "keep arrays at two dimensions or more"),
                (
                    *is_of_mask,
                    "make masks in 32 bits (`jax.lax.broadcasted_iota` and a comparison in the final shape, no reshape of a mask)",
                ),
                (is_narrow.unwrap_or(true), "cast narrow types to 32 bits before it"),
                (
                    *is_flat == Some(false) && !is_of_mask,
                    "reshape outside of the kernel, or so that the last dimension stays and the second-to-last is a multiple of 8",
                ),
            ];
            let ways: Vec<&str> = ways.into_iter().filter_map(|(applies, way)| applies.then_some(way)).collect();
            let words = Words::new(format!(
                "Write the operation{which} in another way: {}; if the kernel is a library's, update it; report it to JAX, with the \
                 lines below `The MLIR operation involved`",
                ways.join(", ")
            ));
            if *is_of_mask {
                words.code(
                    JAX_AND_NUMPY,
                    "mask = jax.lax.broadcasted_iota(jnp.int32, (32, 128), 0) < n  # in the shape it is used in",
                )
            } else {
                words
            }
        }
        MosaicFinding::ElementType { name } => Words::new(format!(
            "Give the kernel another element type, such as 8 bits, or convert before it: Mosaic has no code for `{name}` here"
        ))
        .task(format!("Give the kernel another element type than `{name}`")),
        MosaicFinding::Versions => Words::new(
            "Install the libtpu that this JAX was released with: JAX wrote the kernel with an operation that the compiler doesn't know",
        )
        .code(None, "pip install --upgrade 'jax[tpu]'"),
        MosaicFinding::NoSparseCore => Words::new(
            "Run the kernel on a TPU with SparseCores (v5p, v6e, v7x), or take its type out, which makes it a kernel of the TensorCore, with blocks that \
             fill tiles: the TPU that the text names has no SparseCore. Its memory has nothing to do with it",
        )
        .task("Take another TPU, or the kernel's type out: this one has no SparseCore")
        .code(None, "pltpu.get_tpu_info().sparse_core  # None without one"),
        MosaicFinding::Report => Words::new(
            "Report it to JAX with the kernel, or write the kernel in smaller steps until one of them is refused: the message tells of no \
             operation, layout or type that could be another",
        ),
        MosaicFinding::Partitioned => Words::new(
            "Wrap the call of the kernel in `jax.shard_map`, whose specs say which part of each array a device has",
        )
        .code(
            "import jax\nfrom jax.sharding import PartitionSpec",
            "f = jax.shard_map(kernel, mesh=mesh, in_specs=PartitionSpec('x'), out_specs=PartitionSpec('x'))",
        ),
        _ => Words::new(""),
    }
}

/// An operand in the layout that the kernel reads, or left out where it has no elements.
fn operand_layout(finding: &OperandLayout) -> Words {
    let which = finding.operand.map_or("this operand".to_owned(), |number| format!("operand {number}"));
    if finding.is_empty {
        return Words::new(format!(
            "Leave {which} out, or give the kernel one row of zeros in its place: it has no elements, and XLA gives an empty array \
             another layout than Mosaic does"
        ))
        .code(NUMPY, "x = x if x.size else jnp.zeros((1, *x.shape[1:]), x.dtype)");
    }
    let bytes = finding.layouts.as_deref().and_then(|[kernels, xlas]| relation(xlas, kernels));
    let bytes = bytes.map(|relation| {
        let bitcast = if relation.is_bitcast() { "a bitcast" } else { "no bitcast" };
        format!("; from XLA's layout to the kernel's it is {bitcast}: {}", in_words(&relation))
    });
    let fills = |layout: &Shape| {
        layout.as_array().and_then(|array| array.sizes().ok()).is_some_and(|sizes| sizes.padding_bytes() == 0)
    };
    if finding.layouts.as_deref().is_some_and(|layouts| layouts.iter().all(fills)) {
        return Words::new(format!(
            "Compile the kernel with the JAX and libtpu that it was written for, and report it with both layouts: {which} fills its \
             tiles, so padding changes nothing; PyTorch may bring another libtpu, and lowers no kernel itself{}",
            bytes.unwrap_or_default()
        ))
        .task("Compile the kernel with the JAX and libtpu that it was written for");
    }
    Words::new(format!(
        "Pad {which} to whole tiles, or give it the rank that the kernel was written for, so that both layouts have one tile; a kernel \
         of JAX that PyTorch calls needs the same shapes there{}",
        bytes.unwrap_or_default()
    ))
    .code(NUMPY, "x = jnp.pad(x, ((0, -x.shape[0] % 8), (0, -x.shape[1] % 128)))  # rows and lanes of f32's tile")
}

/// Operands of a matrix product padded to tiles.
fn matmul_shape(short: &[ShortDimension]) -> Words {
    let name = |dimension| match dimension {
        MatmulDimension::Contracted => "the contracted dimension",
        MatmulDimension::Rows => "the rows",
        _ => "the columns",
    };
    let padded: Vec<String> = short
        .iter()
        .map(|ShortDimension { dimension, size, padded, .. }| format!("{} from {size} to {padded}", name(*dimension)))
        .collect();
    let what = if padded.is_empty() {
        "the contracted dimension and the columns to multiples of 128, the rows to 8".to_owned()
    } else {
        padded.join(", ")
    };
    let is_cut = short.iter().any(|short| short.dimension != MatmulDimension::Contracted);
    let then = if is_cut { ", and cut the result to its own size" } else { "" };
    Words::new(format!(
        "Pad {what}, or choose blocks of that size: the matrix unit multiplies whole tiles, of 128 in the contracted dimension. \
         Zeros there add nothing to the product{then}"
    ))
    .code(NUMPY, "x = jnp.pad(x, ((0, 0), (0, -x.shape[1] % 128)))\nw = jnp.pad(w, ((0, -w.shape[0] % 128), (0, 0)))")
}

fn tuple(bounds: &[Option<u64>]) -> String {
    let words = bounds.iter().map(|bound| bound.map_or_else(|| "…".to_owned(), |bound| bound.to_string()));
    format!("({})", words.collect::<Vec<_>>().join(", "))
}

fn which(dimension: Option<u64>) -> String {
    dimension.map_or("a dimension".to_owned(), |at| format!("dimension {at}"))
}

fn block(of: &str, [rows, lanes]: [u64; 2], legal: Option<&[Vec<Option<u64>>; 2]>, is_flat: bool) -> Words {
    let name = if of.is_empty() { String::new() } else { format!(" of {of}") };
    let rule =
        format!("each of its last two dimensions has to be a multiple of {rows} and {lanes}, or the whole dimension");
    match legal {
        Some([legal, array]) => Words::new(format!(
            "Use the block {} in the BlockSpec{name}: {rule}, and the array is {}",
            tuple(legal),
            tuple(array)
        ))
        .code(PALLAS, format!("pl.BlockSpec({}, index_map)", tuple(legal))),
        None => {
            let sentence = if is_flat {
                "Make the block of one dimension the whole dimension, a multiple of 1024, or a power of two of at least 128 × \
                 (32 / bits of an element)"
                    .to_owned()
            } else {
                format!("Choose another block{name}: {rule}")
            };
            Words::new(sentence).code(PALLAS, "pl.BlockSpec((8, 128), index_map)")
        }
    }
}

pub(super) fn answer(message: &Message) -> [String; 2] {
    let facts = &message.facts;
    match message.form {
        Form::Block => of_block(message),
        Form::Index => {
            let multiple = facts.number("multiple").unwrap_or(128);
            [
                format!(
                    "A kernel's index in {} can't be proved to be a multiple of {multiple}.",
                    which(facts.number("dimension"))
                ),
                format!("A load or store begins at a whole tile, of {multiple} in this dimension."),
            ]
        }
        Form::Slice => {
            let multiple = facts.number("multiple").unwrap_or(128);
            let is = facts.number("size").map(|size| format!(" of {size}")).unwrap_or_default();
            let dimension = facts.number("dimension").unwrap_or(0);
            [
                format!("A kernel's slice{is} in dimension {dimension} isn't a multiple of the tile size {multiple}."),
                "A copy moves whole tiles.".to_owned(),
            ]
        }
        Form::MatmulType => {
            let operand = facts.shapes("type").first().map(|shape| format!(", {},", shape.text)).unwrap_or_default();
            [
                format!("A kernel multiplies matrices of types{operand} that this TPU's matrix unit can't read."),
                "Each generation reads a few types, and both operands in the same one.".to_owned(),
            ]
        }
        Form::OperandLayout => {
            let which = facts.number("operand").map(|number| format!(" {number}")).unwrap_or_default();
            let shape = facts.shapes("shape").first().map(|shape| format!(", {},", shape.text)).unwrap_or_default();
            let layouts = match (facts.text("actual"), facts.text("expected")) {
                (Some(actual), Some(expected)) => format!(": XLA lays it out as {actual}, the kernel reads {expected}"),
                _ => String::new(),
            };
            [
                format!(
                    "A kernel's operand{which}{shape} has another layout than the kernel was compiled for{layouts}."
                ),
                "A kernel reads arrays in the layout that it was compiled for, and no relayout is put in front of it."
                    .to_owned(),
            ]
        }
        _ if facts.get("partitioned").is_some() => [
            "A kernel's arrays are divided between devices, and the compiler can't divide a kernel.".to_owned(),
            "The compiler divides the operations that it knows; a kernel has to be called with one device's part."
                .to_owned(),
        ],
        _ => lowering(message),
    }
}

fn of_block(message: &Message) -> [String; 2] {
    let facts = &message.facts;
    let cause = "The block isn't tile-aligned: the compiler copies whole tiles.".to_owned();
    let (Some(block), Some(_)) = (facts.bounds("block"), facts.bounds("array")) else {
        return ["A kernel's block does not fit the tiles of its array.".to_owned(), cause];
    };
    let name = match (facts.text("argument"), facts.text("side"), facts.number("operand")) {
        (Some(argument), ..) => format!(" of {argument}"),
        (None, Some(side), Some(number)) => format!(" of {side} {number}"),
        _ => String::new(),
    };
    let kernel = facts.text("kernel").map(|kernel| format!(" in {kernel}")).unwrap_or_default();
    let (rows, lanes) = tile(facts);
    [format!("The block {}{name}{kernel} does not fit tiles of ({rows}, {lanes}).", tuple(block)), cause]
}

fn tile(facts: &Facts) -> (u64, u64) {
    match facts.bounds("tiling") {
        Some([Some(rows), Some(lanes)]) => (*rows, *lanes),
        _ => (8, 128),
    }
}

fn lowering(message: &Message) -> [String; 2] {
    let primitive = message.facts.text("primitive").map(|name| format!("the primitive `{name}` is not implemented"));
    let what = message.facts.text("what").map(|what| what.trim_end_matches('.').to_owned());
    let what = primitive.or(what);
    let kernel = message.facts.text("kernel").map_or("a kernel".to_owned(), |name| format!("the kernel {name}"));
    let headline = match (&what, message.code.as_deref().and_then(meaning_of_code)) {
        (Some(what), _) => format!("Mosaic can't compile {kernel}: {what}."),
        (None, Some(meaning)) => format!("Mosaic can't compile {kernel}: {meaning}."),
        (None, None) => format!("Mosaic can't compile {kernel}."),
    };
    let is_internal = message.quote.as_ref().is_some_and(|quote| quote.contains("INTERNAL"));
    let why = if message.named.no_sparse_core {
        "The kernel is written for a SparseCore, which the TPU that the text names doesn't have."
    } else if is_internal {
        "Most likely a defect of the compiler: its own word is INTERNAL."
    } else {
        "The compiler has no code for what the kernel does, or a defect there."
    };
    [headline, why.to_owned()]
}
