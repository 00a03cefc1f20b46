//! Kernels: memory of one instruction (VMEM, SMEM, a SparseCore's), and operations that Mosaic can't compile.

use super::{Judged, Rule};
use crate::facts::{Fact, FactValue};
use crate::form::Form;
use crate::level::Level::Error;
use crate::message::Message;
use crate::text::reader::Reader;
use crate::text::size::PrintedSize;
use crate::verdict::OomVerdict;

/// The ending of most of Mosaic's messages.
const OPERATION: &[&str] = &["MLIR operation involved {operation:line}"];

const MOSAIC: Judged = Judged::As(OomVerdict::Mosaic);

pub(super) const RULES: &[Rule] = &[
    Rule {
        memory: Some("vmem"),
        codes: &["E1001"],
        opens: &[
            "Ran out of memory in memory space {space:memory} while allocating on stack for [{instruction:instruction}]",
            "Scoped allocation with size {used:size} [and limit {limit:size} [exceeded scoped [{space:memory}] [limit] [by {exceeded:size}]]]",
            "~Scoped allocation (with size|of size|of|size) {used:size} [(exceeds|exceeded|exceeding|over|against|vs) [the] [scoped] [{space:memory}] [limit] [of] [{limit:bytes}]]",
            "~Insufficient scoped {space:memory} {used:size} {limit:size}",
            "~CompileTimeScopedVmemOom [needs|used|required|requested|requires] {used:size} [of|vs|against|exceeds|available] {limit:size}",
        ],
        adds: &[
            "~scoped {space:memory} [is|needs|used|required|requested|requires] {used:size} [of|vs|against|exceeds] [the] [limit] [of] {limit:size}",
            "~(exceeded|exceeds|exceeding) [the] scoped {space:memory} limit [by {exceeded:size}|of {limit:size}]",
            "+(limit|default) [of|is] {limit:size}",
            "+(requested|needs|requires|wants) {used:size} (against|over|of) [a|an|the] {limit:size}",
        ],
        suffices: &["used", "limit"],
        ..Rule::new(Form::Scoped, Error, Judged::Kernel, "E1001")
    },
    Rule {
        codes: &["E3000", "E3001"],
        opens: &[
            "current allocation offset upper bound {used_words:bytes} words[ exceeds … {limit_words:bytes} words[ in memory space {space_number:number}]]",
            "No viable logical replica count[ for the embedding {embedding:name}]",
        ],
        adds: &[
            "fixed_size_allocation_bytes {fixed:bytes}",
            "row_dependent_size_allocation_bytes {rows:bytes}",
            "total_spmem_size_bytes {limit:bytes}",
            "Hlo Op {program:name}",
        ],
        then: Some(sparse_core),
        ..Rule::new(Form::SparseCore, Error, Judged::Kernel, "E3000")
    },
    Rule {
        codes: &["E2001"],
        opens: &[
            "Unsupported matmul (RHS|LHS|acc|result|output) type on target [{type:shape}]",
            "Bad lhs type",
            "Bad rhs type",
            "Bad acc type",
            "Unsupported input data type in matrix multiplication",
        ],
        adds: OPERATION,
        ..Rule::new(Form::MatmulType, Error, MOSAIC, "E2001")
    },
    Rule {
        codes: &["E2002"],
        opens: &[
            "Failed to set window params for {side:name} {operand:number}",
            "Operand of shape {array:bounds} has tiling {tiling:bounds}, but its block shape {block:bounds}",
            "Pallas TPU lowering currently requires that",
        ],
        adds: &[
            "Block spec for {argument:name} in pallas_call {kernel:name} … has block shape {block:bounds}[, array shape {array:bounds}]",
            "Block spec for {argument:name} in pallas_call … block shape {block:bounds}[, array shape {array:bounds}]",
            "block spec {block:bounds} for array shape {array:bounds}",
            "rank {rank:number} block shapes",
            "multiple of the tiling size {multiple:number}",
        ],
        ..Rule::new(Form::Block, Error, MOSAIC, "E2002")
    },
    Rule {
        codes: &["E2003"],
        opens: &["statically prove that index in dimension {dimension:number} is a multiple of {multiple:number}"],
        adds: OPERATION,
        ..Rule::new(Form::Index, Error, MOSAIC, "E2003")
    },
    Rule {
        opens: &[
            "Slice shape along dimension {dimension:number} must be aligned to tiling {multiple:number}[, but is {size:number}]",
            "Slice sizes along tiled dimensions must be aligned to tiles[ Failed to verify that the size at dimension {dimension:number} is divisible by the tile dimension {multiple:number}]",
        ],
        adds: OPERATION,
        ..Rule::new(Form::Slice, Error, MOSAIC, "mosaic")
    },
    Rule {
        opens: &[
            "verify layout for Mosaic kernel operand {operand:number}[ XLA layout {actual:braces} does not match (Mosaic|MLIR) layout {expected:braces}][ XLA layout does not match (Mosaic|MLIR) layout][ for an operand of shape {shape:shape}][ expected {expected:braces} got {actual:braces}]",
            "Missing layout for Mosaic kernel operand {operand:number}",
        ],
        ..Rule::new(Form::OperandLayout, Error, MOSAIC, "mosaic")
    },
    Rule {
        opens: &[
            "Mosaic failed to compile TPU kernel",
            "Internal TPU kernel compiler error",
            "infer vector layout",
            "apply vector layout",
            "failed to legalize operation {operation:name}",
            "Mosaic kernels cannot be automatically {partitioned:name}",
            "Invalid input layout",
            "unsupported shape cast",
            "Matmul operand {side:name} must have a shape divisible by {multiple:bounds}[, but got {size:bounds}]",
            "Unimplemented primitive in Pallas TPU lowering[ for KernelType {:name} {primitive:name}][ {primitive:name}]",
            "can only load scalars from SMEM",
            "Loads are only allowed on VMEM and SMEM references",
            "*MosaicError",
        ],
        adds: OPERATION,
        then: Some(lowering),
        ..Rule::new(Form::Lowering, Error, MOSAIC, "mosaic")
    },
];

/// Reads Mosaic's failure, the rest of the sentence. JAX 0.11 and later name the kernel first: ``with MLIR module name
/// `k` HLO name `k.1`:``.
fn lowering(reader: &mut Reader<'_>, message: &mut Message) {
    let is_mark = |c: char| c.is_whitespace() || ":'\"`*".contains(c);
    // Some wordings are themselves the failure.
    let before = reader.text.get(..reader.at).unwrap_or("");
    let own = ["unsupported shape cast", "Invalid input layout"].into_iter().find(|own| before.ends_with(own));
    reader.at -= own.map_or(0, str::len);
    let mut rest = reader.rest().lines().next().unwrap_or("").trim_matches(is_mark);
    for opening in ["INTERNAL:", "UNIMPLEMENTED:", "Mosaic failed to compile TPU kernel"] {
        rest = rest.strip_prefix(opening).unwrap_or(rest).trim_start_matches(is_mark);
    }
    let named = rest.strip_prefix("with MLIR module name").and_then(|names| names.split_once("HLO name"));
    if let Some((module, (hlo, what))) = named.and_then(|(module, rest)| Some((module, rest.split_once(": ")?))) {
        let names = [module, hlo].map(|name| name.trim_matches(is_mark));
        let kernel = names.into_iter().find(|name| !name.is_empty() && *name != "<no name>");
        message.facts.0.extend(kernel.map(|name| Fact { name: "kernel", value: FactValue::Text(name.to_owned()) }));
        rest = what.trim_start_matches(is_mark);
    }
    // Behind the operation, a sentence about the failure may go on.
    let refused = message.facts.text("operation").map(|name| format!("failed to legalize operation `{name}`"));
    let what = refused
        .filter(|_| before.lines().next_back().is_some_and(|line| line.contains(" legalize ")))
        .unwrap_or_else(|| rest.to_owned());
    if !what.is_empty() && !message.facts.has("primitive") {
        message.facts.0.push(Fact { name: "what", value: FactValue::Text(what) });
    }
}

/// Bytes of a SparseCore's word.
const WORD: u64 = 4;

fn sparse_core(_: &mut Reader<'_>, message: &mut Message) {
    let facts = &mut message.facts;
    let mut words = |name| {
        let words = facts.take_size(name)?;
        Some(PrintedSize::exact(words.bytes().checked_mul(WORD)?))
    };
    if let Some(used) = words("used_words") {
        (message.used, message.limit) = (Some(used), words("limit_words"));
    }
    if let (Some(fixed), Some(rows)) = (facts.size("fixed").map(PrintedSize::bytes), facts.take_size("rows")) {
        message.used = Some(PrintedSize::exact(fixed.saturating_add(rows.bytes())));
    }
    let space = match facts.number("space_number") {
        Some(0) => Some("smem"),
        Some(202) => Some("spmem"),
        Some(203) => Some("hbm"),
        Some(204) => Some("sflag"),
        Some(201) => Some("tile_spmem"),
        _ => (message.code.as_deref() == Some("E3001") || message.limit.is_some()).then_some("tile_spmem"),
    };
    message.memory_space = space.map(str::to_owned);
}
