//! The documents' terms, each with its definition.

use super::meaning::{Meaning, format_in_words};
use tilewise::TileFormat;

/// A term by all of its names, in lower case with blanks between words, and its meaning.
type Term = (&'static [&'static str], &'static str);

/// Terms of "Shapes and layout" and "Tiled layout", in the order of the pages; last, those of older editions.
const TERMS: &[Term] = &[
    (
        &["op", "operation", "hlo", "hlo op", "instruction", "opcode"],
        "an instruction of a program: its name, its result's shape and layout, what it does, its arguments, its attributes; \
         `tilewise show 'add.936 = bf16[8,128] add(x, y)'`",
    ),
    (
        &["op name", "operation name"],
        "in front of `=`: the name of an operation, unique in its program, such as add.936",
    ),
    (
        &["argument", "operand", "input", "input argument"],
        "in an operation's brackets: the values it takes, by their unique names",
    ),
    (&["attribute"], "behind an operation's arguments: more about what it does, such as kind and calls of a fusion"),
    (&["kind"], "an attribute, the kind of a fusion: kLoop, kInput, kOutput or kCustom"),
    (&["kloop", "kinput", "koutput", "kcustom"], "a kind of fusion, as in kind=kCustom"),
    (&["calls"], "an attribute, the computation that the operation calls"),
    (
        &["memory space", "memory space identifier", "memory location"],
        "where an array is stored, written S(n): S(0), often left out, is a TPU's HBM, S(1) its VMEM, S(5) the host's memory, others are the \
         device's own",
    ),
    (&["high bandwidth memory", "device high bandwidth memory"], "HBM, memory space S(0), which is often left out"),
    (&["virtual memory", "device virtual memory", "vector memory"], "VMEM, memory space S(1), on a TPU"),
    (&["host memory"], "the host's, memory space S(5)"),
    (
        &["shapeproto", "shape", "shape proto"],
        "the number of dimensions, their sizes and the element type of an array, with its layout: f32[2,3]{1,0}; as a message of XLA \
         `show --format text-proto f32[2,3]` prints one",
    ),
    (&["xla_data.proto"], "the file of XLA's messages, ShapeProto and LayoutProto among them"),
    (
        &["array", "n dimensional array"],
        "elements of one type in N dimensions, each with a size and a number from 0 to N−1: f32[2,3]",
    ),
    (
        &["dtype", "data type", "element type"],
        "the type of an array's elements, in front of its sizes: bf16, f32, s32, pred",
    ),
    (
        &["rank", "number of dimensions"],
        "the number of an array's dimensions, N; XLA no longer says rank, which means something else of a matrix",
    ),
    (
        &["true dimension", "true number of dimensions", "true rank"],
        "of how many dimensions the size is another than 1; the page says greater than 1, and XLA's code counts size 0, too; \
         `tilewise show` of an array says it",
    ),
    (
        &["dimension", "dimension number"],
        "numbered from 0 to N−1 in the order of the sizes; the size may be 0. The numbers imply no order in memory: that is the layout's",
    ),
    (&["n 1"], "the number of an array's last dimension; −1 is the same"),
    (&["negative index", "negative indexing"], "dimension −1 is the last, N−1, −2 the one before it"),
    (&["x"], "the letter of the last dimension of arrays with 2, 3 and 4 dimensions"),
    (&["y"], "the letter of the last dimension but one of arrays with 2, 3 and 4 dimensions"),
    (&["z"], "the letter of the last dimension but two of arrays with 3 and 4 dimensions"),
    (&["p"], "the letter of dimension 0 of arrays with 4 dimensions"),
    (
        &["initializer_list"],
        "of C++, the sizes of a shape in the order of the dimensions' numbers: ShapeUtil::MakeShape(F32, {3, 5})",
    ),
    (
        &["layoutproto", "layout proto"],
        "how an array is represented in memory: minor_to_major, tiles, tail_padding_alignment_in_elements, memory_space and others; \
         `show --format text-proto '{1,0}'` prints one",
    ),
    (
        &["minor to major", "minor to major ordering", "minor to major dimension ordering"],
        "the order in which a layout lists the dimensions: the first varies fastest",
    ),
    (
        &["most minor", "most minor dimension", "minor dimension", "minormost dimension"],
        "the first of minor_to_major: it changes fastest from one element in memory to the next",
    ),
    (
        &["second minor", "second most minor", "second most minor dimension", "second minor dimension"],
        "the second of minor_to_major, the rows of two-dimensional tiles",
    ),
    (
        &["most major", "most major dimension", "major dimension"],
        "the last of minor_to_major: it changes slowest from one element in memory to the next",
    ),
    (
        &["column major", "column major order"],
        "dim 0 is minor: dimension 0 varies fastest, {0,…,N−1}, such as f32[2,3]{0,1}",
    ),
    (&["dim 0 is minor"], "column-major: dimension 0 varies fastest, {0,…,N−1}, such as f32[2,3]{0,1}"),
    (
        &["row major", "row major order", "row major layout"],
        "dim 0 is major: the last dimension varies fastest, {N−1,…,0}, such as f32[2,3]{1,0}",
    ),
    (&["dim 0 is major"], "row-major: the last dimension varies fastest, {N−1,…,0}, such as f32[2,3]{1,0}"),
    (
        &["monotonic", "monotonic order", "monotonic ordering"],
        "an order that only rises or falls: {0,…,N−1}, dim 0 is minor, or {N−1,…,0}, dim 0 is major",
    ),
    (
        &["major to minor", "dimension order is major to minor", "default layout", "default minor to major ordering"],
        "the default order, {N−1,…,0}: the last dimension varies fastest, such as f32[2,3]{1,0}",
    ),
    (
        &["tail padding"],
        "L(n): elements at the end of the tiled array, up to a multiple of tail_padding_alignment_in_elements",
    ),
    (&["indexutil"], "XLA's conversions between an element's index and its offset: `tilewise index`, both ways"),
    (
        &["index_util.h"],
        "the file of IndexUtil, XLA's conversions between an element's index and its offset: `tilewise index`",
    ),
    (
        &["multidimensional index"],
        "of an element: a 64-bit number for each dimension; `tilewise index 'f32[2,3]' 1,2` gives its linear index",
    ),
    (
        &["linear index", "offset"],
        "of an element: one 64-bit number, its place in the buffer; `tilewise index 'f32[2,3]' --offset 5` gives its multidimensional index",
    ),
    (
        &["shape_util.h"],
        "the file of ShapeUtil, XLA's functions about shapes; docs/documents.md lists what does the same here",
    ),
    (
        &["layout_util.h"],
        "the file of LayoutUtil, XLA's functions about layouts; docs/documents.md lists what does the same here",
    ),
    (&["shapeutil"], "XLA's functions about shapes; docs/documents.md lists what does the same here"),
    (&["layoututil"], "XLA's functions about layouts; docs/documents.md lists what does the same here"),
    (
        &["tile", "tiling", "tiled format", "tiled layout", "tile format"],
        "a block of the most minor dimensions. Tiles cover the array and lie row-major in memory, as elements inside each do; what is \
         beyond the array is padding: F32[3,5]{1,0:T(2,2)}",
    ),
    (
        &["vector register", "8x128 vector register"],
        "a TPU's has two dimensions, 8 × 128 words of 32 bits: most operations work on tiles of 8 × 128, T(8,128), and operands in \
         another format are converted as they are read from memory",
    ),
    (&["figure 1"], "of the tiled-layout page: `tilewise draw 'f32[3,5]{1,0:T(2,2)}'` draws it"),
    (&["figure 2"], "of the tiled-layout page, tiles in tiles: `tilewise draw 'f32[4,8]{1,0:T(2,4)(2,1)}'` draws it"),
    (
        &["figure 3"],
        "of the tiled-layout page, two tiles in one word: `tilewise draw 'bf16[32,256]{1,0:T(8,128)(2,1,1,1)}'` draws it",
    ),
    (
        &["figure 4"],
        "of the tiled-layout page, joined tiles: `tilewise draw 'f32[8,8]{1,0:T(2,4)(2,1,1,1)}' --highlight 6,5` draws it",
    ),
    (
        &["physical dimension", "physical order"],
        "the dimensions as they lie in memory, major to minor: tiles cut the last of them",
    ),
    (&["logical shape"], "the array's own sizes, without tiles and padding"),
    (&["padding", "padding element"], "what a tile has beyond the array; its content means nothing"),
    (&["e"], "in the document's formulas, an element's index, major to minor"),
    (
        &["d", "array bounds", "bounds"],
        "in the document's formulas, d, the bounds of an array, its sizes major to minor: d1 is the most minor",
    ),
    (&["t"], "in the document's formulas, a tile's sizes, major to minor"),
    (
        &["linear_index"],
        "of an element e in bounds d: each index times all more minor bounds, added; `tilewise index 'linear_index((2,3), (3,5))'`",
    ),
    (
        &["linear_index_with_tile"],
        "of an element e in bounds d with a tile t: linear_index((⌊e/t⌋, e mod t), (⌈d/t⌉, t)), \
         elementwise, a list in a list put behind the one before it; \
         `tilewise index 'linear_index_with_tile((2,3), (3,5), (2,2))'`",
    ),
    (&["tile index"], "the tile index, e/t rounded down: which tile an element is in, of ⌈d/t⌉ in each dimension"),
    (&["within tile index"], "the within-tile index, e mod t: what is left of e behind whole tiles"),
    (
        &["combined coordinate", "combined coordinate vector", "combined vector"],
        "an element's index in memory: the tile index, and behind it the within-tile index",
    ),
    (
        &["pad reshape transpose"],
        "tiling as three steps: padding to whole tiles, a reshape that cuts each dimension in two and is a bitcast, and a transpose that makes \
         the tile's dimensions the most minor; `tilewise steps 'F32[3,5]{1,0:T(2,2)}'`",
    ),
    (
        &["pad"],
        "a step of tiling: adds padding behind the last element of each dimension, to a multiple of the tile's size",
    ),
    (
        &["reshape"],
        "the same elements in the same order with other bounds; as a step of tiling, each dimension is cut in two",
    ),
    (
        &["transpose"],
        "reorders the dimensions; as a step of tiling, the tile's dimensions become the most minor, in their order",
    ),
    (&["bitcast"], "a reshape or a transpose that moves no bytes: `tilewise bitcast A B` says whether one is"),
    (
        &["repeated tiling", "second tile", "second level of tiling"],
        "a tile behind a tile, (2,4)(2,1): it cuts what the first one made, inside its tiles, or, where it has more sizes, across tiles",
    ),
    (
        &["*", "asterisk", "combining dimensions", "kcombinedimension"],
        "in a tile, a dimension that is merged into the next more minor one before the array is cut; the page's −1, which no size is",
    ),
    (
        &["untiled", "linear", "untiled format", "linear format", "untiled linear format"],
        "without tiles: linear in the order of minor_to_major, one element behind the other, as arrays of C++ are",
    ),
    (
        &["bf16 packing", "packing"],
        "two rows of a column in one 32-bit word, the even one below: the second tile of (8,128)(2,1). TPUs work with 32-bit values, \
         and move data along the second-minor dimension with less effort than along the most minor",
    ),
    (&["pufferfish"], "the tiled-layout page's name of a TPU, v4, the first with 8-bit arrays: T(8,128)(4,1)"),
];

/// The meanings of a term; case, plural, quotes and hyphens are ignored.
pub(super) fn meanings(text: &str) -> Option<Vec<Meaning>> {
    let name = normalized(text);
    if let Some(meaning) = definition(&name) {
        return Some(vec![Meaning::of("meaning", meaning)]);
    }
    // The documents' names of formats, "TPU 16 bit tile format"; another name of one, "Compact 2nd Minor Layout", stands in its description.
    let is_named = |format: &TileFormat| {
        let (source, used_by) = (format.source().to_lowercase(), format.used_by().to_lowercase());
        source.ends_with(&format!("\"{name}\"")) || name.matches(' ').count() > 1 && used_by.contains(&name)
    };
    let formats = TileFormat::all().filter(is_named).map(|format| Meaning::of("format", format_in_words(&format)));
    Some(formats.collect()).filter(|formats: &Vec<_>| !formats.is_empty())
}

/// The definition of a term by one of its names.
pub(super) fn definition(name: &str) -> Option<&'static str> {
    let singular = name.strip_suffix('s').unwrap_or(name);
    let has = |(names, _): &&Term| names.iter().any(|known| *known == name || *known == singular);
    TERMS.iter().find(has).map(|(_, meaning)| *meaning)
}

/// In lower case, with one blank in place of hyphens and blanks, and without an article.
fn normalized(text: &str) -> String {
    let words = text.to_lowercase().replace(['-', '−'], " ");
    let words: Vec<&str> = words.split_whitespace().filter(|word| !matches!(*word, "the" | "a" | "an")).collect();
    words.join(" ")
}
