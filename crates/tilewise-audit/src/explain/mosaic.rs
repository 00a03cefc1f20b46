//! Kernels that Mosaic can't compile: blocks, indices, slices, types.

use crate::advice::finding::{MatmulDimension, MosaicFinding, OperandLayout, ShortDimension};
use tilewise_oom::{Facts, Form, Message};

pub(super) fn findings(message: &Message) -> Vec<MosaicFinding> {
    let facts = &message.facts;
    match message.form {
        Form::Block => block(message),
        Form::Index => {
            let multiple = facts.number("multiple").unwrap_or(128);
            let dimension = facts.number("dimension");
            vec![MosaicFinding::Multiple { dimension, multiple }, MosaicFinding::WholeTile { multiple }]
        }
        Form::Slice => {
            let multiple = facts.number("multiple").unwrap_or(128);
            let next = |size: u64| Some([size, size.checked_next_multiple_of(multiple.max(1))?]);
            vec![MosaicFinding::Slice {
                dimension: facts.number("dimension").unwrap_or(0),
                multiple,
                size: facts.number("size").and_then(next),
            }]
        }
        Form::MatmulType => vec![MosaicFinding::Cast],
        Form::OperandLayout => vec![MosaicFinding::OperandLayout(operand_layout(facts))],
        _ if facts.get("partitioned").is_some() => vec![MosaicFinding::Partitioned],
        _ if message.named.no_sparse_core => vec![MosaicFinding::NoSparseCore],
        _ => vec![lowering(facts)],
    }
}

/// The finding on an operation that isn't implemented.
fn lowering(facts: &Facts) -> MosaicFinding {
    let (what, operation) = (facts.text("what").unwrap_or_default(), facts.text("operation"));
    if what.contains("last dim size is not 128") {
        MosaicFinding::StridedLanes { lanes: operation.and_then(lanes) }
    } else if what.contains("Strided load with non 32-bit") || what.contains("Strided store with non 32-bit") {
        MosaicFinding::StridedNarrow
    } else if let Some(name) = unsupported_type(what) {
        MosaicFinding::ElementType { name: name.to_owned() }
    } else if what.contains("only load scalars") {
        MosaicFinding::ScalarLoads
    } else if let Some(name) = facts.text("primitive") {
        MosaicFinding::Primitive { name: name.to_owned() }
    } else if let Some(short) = required(facts, operation.unwrap_or_default()) {
        MosaicFinding::MatmulShape { short }
    } else if operation.and_then(operation_name).as_deref() == Some("tpu.matmul") && what.contains("shape") {
        MosaicFinding::MatmulShape { short: operation.map(short_dimensions).unwrap_or_default() }
    } else if VERSIONS.iter().any(|sign| what.contains(sign)) {
        MosaicFinding::Versions
    } else if what.is_empty()
        || operation.and_then(operation_name).is_some()
        || ARRAYS.iter().any(|sign| what.contains(sign))
    {
        let texts = [what, operation.unwrap_or_default()];
        let vectors: Vec<(usize, &str)> = texts.into_iter().flat_map(vectors).collect();
        let has = |is: fn(&(usize, &str)) -> bool| (!vectors.is_empty()).then(|| vectors.iter().any(is));
        MosaicFinding::Rewrite {
            operation: operation.and_then(operation_name),
            is_of_mask: vectors.iter().any(|(_, element)| *element == "i1"),
            is_flat: has(|(rank, _)| *rank < 2),
            is_narrow: has(|(_, element)| !matches!(*element, "f32" | "i32" | "f64" | "i64" | "i1")),
        }
    } else {
        MosaicFinding::Report
    }
}

/// The ranks and element types of MLIR's vectors in a text: 2 and `bf16` of `vector<8x128xbf16>`.
fn vectors(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split("vector<").skip(1).filter_map(|behind| {
        let parts: Vec<&str> = behind.split_once('>')?.0.split('x').collect();
        let (element, bounds) = parts.split_last()?;
        let is_bound = |bound: &&str| bound.bytes().all(|byte| byte.is_ascii_digit());
        bounds.iter().all(is_bound).then_some((bounds.len(), *element))
    })
}

/// The element type of `Unsupported type 'vector<8x128xf4E2M1FN>'`.
fn unsupported_type(what: &str) -> Option<&str> {
    let (_, behind) = what.split_once("nsupported type")?;
    let end = behind.find('>')?;
    let name = behind[..end].rsplit(['x', '<', '\'']).next()?;
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(name)
}

/// Words of MLIR's errors if a kernel was written by another version than reads it.
const VERSIONS: [&str; 4] =
    ["unregistered operation", "unknown operations", "unregistered dialect", "Unsupported version"];

/// Words of messages about an operation on arrays, their layouts or their types.
const ARRAYS: [&str; 14] = [
    "layout",
    "shape",
    "vector",
    "type",
    "legalize",
    "dim",
    "rank",
    "lane",
    "bit",
    "pack",
    "mask",
    "slice",
    "not implemented",
    "Not implemented",
];

fn operand_layout(facts: &Facts) -> OperandLayout {
    let shape = facts.shapes("shape").first().and_then(|shape| shape.parsed.as_ref().ok());
    let is_empty = shape.is_some_and(|shape| shape.dimensions().iter().any(|size| size.bound() == Some(0)));
    let in_layout = |field| format!("{}{}", shape?.without_layout(), facts.text(field)?).parse().ok();
    let layouts = in_layout("expected").zip(in_layout("actual")).map(|(kernels, xlas)| Box::new([kernels, xlas]));
    OperandLayout { operand: facts.number("operand"), layouts, is_empty }
}

/// Rows and lanes of the matrix unit's operands.
const ROWS: u64 = 8;
const LANES: u64 = 128;

/// The dimensions of an operand that are not the multiples that the message names.
fn required(facts: &Facts, line: &str) -> Option<Vec<ShortDimension>> {
    let [Some(multiples), Some(sizes)] = ["multiple", "size"].map(|name| facts.bounds(name)) else { return None };
    let (mut dimensions, transposed) = match facts.text("side") {
        Some("rhs") => ([MatmulDimension::Contracted, MatmulDimension::Columns], "transpose_rhs = true"),
        _ => ([MatmulDimension::Rows, MatmulDimension::Contracted], "transpose_lhs = true"),
    };
    if line.contains(transposed) {
        dimensions.reverse();
    }
    let all = dimensions.into_iter().zip(sizes.iter().zip(multiples));
    let short = all.filter_map(|(dimension, (size, multiple))| {
        let (size, multiple) = ((*size)?, (*multiple)?);
        let padded = size.checked_next_multiple_of(multiple.max(1))?;
        (padded != size).then_some(ShortDimension { dimension, size, padded })
    });
    Some(short.collect())
}

/// The dimensions of a product that fill no tile (rows, columns, contracted), from an operation's line:
/// `(vector<256x32xf32>, vector<32x256xf32>, …)`.
fn short_dimensions(line: &str) -> Vec<ShortDimension> {
    let mut vectors = line.split("vector<").skip(1).filter_map(bounds);
    let (Some([mut rows, mut contracted]), Some([inner, mut columns])) = (vectors.next(), vectors.next()) else {
        return Vec::new();
    };
    if line.contains("transpose_lhs = true") {
        std::mem::swap(&mut rows, &mut contracted);
    }
    if line.contains("transpose_rhs = true") {
        columns = inner;
    }
    let all = [
        (MatmulDimension::Contracted, contracted, LANES),
        (MatmulDimension::Rows, rows, ROWS),
        (MatmulDimension::Columns, columns, LANES),
    ];
    let short = all.into_iter().filter(|(_, size, multiple)| !size.is_multiple_of(*multiple));
    short
        .filter_map(|(dimension, size, multiple)| {
            Some(ShortDimension { dimension, size, padded: size.checked_next_multiple_of(multiple)? })
        })
        .collect()
}

/// The last two bounds of `256x32xf32>`.
fn bounds(vector: &str) -> Option<[u64; 2]> {
    let mut bounds = vector.split(['>', ',']).next()?.rsplit('x').skip(1);
    let (last, before) = (bounds.next()?, bounds.next()?);
    Some([before.parse().ok()?, last.parse().ok()?])
}

/// The last dimension of the array in an operation's line: 256 of `memref<16x256xf32, …>`.
fn lanes(line: &str) -> Option<u64> {
    let (_, array) = line.split_once("memref<")?;
    let mut bounds = array.split([',', '>']).next()?.rsplit('x');
    bounds.nth(1)?.parse().ok()
}

/// The nearest legal size of one of the last two dimensions of a block: a multiple, or the whole dimension.
fn nearest(size: u64, multiple: u64, whole: Option<u64>) -> u64 {
    if Some(size) == whole {
        return size;
    }
    let up = size.max(1).checked_next_multiple_of(multiple.max(1)).unwrap_or(size);
    whole.filter(|whole| up > *whole).unwrap_or(up)
}

fn block(message: &Message) -> Vec<MosaicFinding> {
    let facts = &message.facts;
    let of = match (facts.text("argument"), facts.text("side"), facts.number("operand")) {
        (Some(argument), ..) => argument.to_owned(),
        (None, Some(side), Some(number)) => [side, &number.to_string()].join(" "),
        _ => String::new(),
    };
    let tile = tile(facts);
    let is_flat = facts.number("rank") == Some(1);
    let (Some(block), Some(array)) = (facts.bounds("block"), facts.bounds("array")) else {
        return vec![MosaicFinding::Block { of, tile, legal: None, is_flat }];
    };
    let mut legal = block.to_vec();
    let count = legal.len();
    for (from_end, multiple) in [(1, tile[1]), (2, tile[0])] {
        let Some(size) = count.checked_sub(from_end).and_then(|at| legal.get_mut(at)) else { continue };
        let whole = array.len().checked_sub(from_end).and_then(|at| array[at]);
        *size = size.map(|size| nearest(size, multiple, whole));
    }
    let mut findings = vec![MosaicFinding::Block { of, tile, legal: Some([legal, array.to_vec()]), is_flat }];
    // Blocks of one row, as in kernels of sequences.
    let is_row = |at: usize| block[at] == Some(1) && array[at] != Some(1);
    if count >= 2 && count == array.len() && is_row(count - 2) {
        findings.push(MosaicFinding::OneRow { array: with_one(array), block: with_one(block) });
    }
    findings
}

fn with_one(bounds: &[Option<u64>]) -> Vec<Option<u64>> {
    let mut bounds = bounds.to_vec();
    bounds.insert(bounds.len() - 1, Some(1));
    bounds
}

fn tile(facts: &Facts) -> [u64; 2] {
    match facts.bounds("tiling") {
        Some([Some(rows), Some(lanes)]) => [*rows, *lanes],
        _ => [8, 128],
    }
}

/// The name in `%14372 = "vector.load"(…)`; `None` for a kernel's own signature, which is no operation of it.
fn operation_name(line: &str) -> Option<String> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.';
    let name = line.split(|letter| !is_of_name(letter)).find(|word| word.contains('.'))?;
    (!name.starts_with("func.")).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{lanes, nearest, operation_name, short_dimensions};

    #[test]
    fn names_of_operations() {
        assert_eq!(operation_name("%14372 = \"vector.load\"(%1, %2)").as_deref(), Some("vector.load"));
        assert_eq!(operation_name("tpu.matmul %1, %2").as_deref(), Some("tpu.matmul"));
        assert_eq!(operation_name("func.func\"() <{arg_attrs = [{llo.type = i32}, \"x\"]}>"), None);
    }

    #[test]
    fn the_nearest_block() {
        assert_eq!(nearest(8, 16, Some(256)), 16);
        assert_eq!(nearest(1, 8, Some(2)), 2);
        assert_eq!(nearest(100, 128, Some(100)), 100);
        assert_eq!(nearest(512, 128, Some(8192)), 512);
        assert_eq!(nearest(0, 8, None), 8);
    }

    /// The second line is from jax-ml/jax#18388.
    #[test]
    fn dimensions_that_fill_no_tile() {
        let short = |line: &str| {
            let all = short_dimensions(line).into_iter();
            all.map(|it| format!("{:?} {} {}", it.dimension, it.size, it.padded)).collect::<Vec<_>>()
        };
        let line = "%9 = \"tpu.matmul\"(%1, %2, %3) : (vector<256x32xf32>, vector<32x256xf32>, vector<256x256xf32>)";
        assert_eq!(short(line), ["Contracted 32 128"]);
        let line = "%26 = \"tpu.matmul\"(%23, %25, %17) {transpose_lhs = false, transpose_rhs = true} : \
                    (vector<250x128xf32>, vector<16x128xf32>, vector<250x16xf32>) -> vector<250x16xf32>";
        assert_eq!(short(line), ["Rows 250 256", "Columns 16 128"]);
        for other in ["", "vector<", "vector<8xf32>", "(vector<axbxf32>, vector<8x8xf32>)"] {
            assert!(short(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn the_last_dimension_of_an_operation() {
        assert_eq!(
            lanes("%1 = \"xir.strided_load\"(%arg0) : (memref<16x256xf32, #xir.tiled<(8,128),[2,1]>>, index)"),
            Some(256)
        );
        for other in ["", "memref<", "memref<f32>", "memref<?xf32>", "vector<8x256xf32>"] {
            assert_eq!(lanes(other), None, "{other}");
        }
    }
}
