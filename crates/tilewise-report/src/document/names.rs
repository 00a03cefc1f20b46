//! The documents' words: fields of the protos, properties with a letter, memory spaces, names of operations and of XLA's functions.

use super::part::{Meaning, space_in_words};

/// The fields of XLA's protos of shapes and layouts, as `xla_data.proto` has them.
const FIELDS: &[(&str, &str)] = &[
    ("element_type", "the element type of a shape, such as F32"),
    ("dimensions", "the size of each dimension of an array, dimension 0 first; in a tile, its sizes, major to minor"),
    ("is_dynamic_dimension", "whether the dimension's size is known only when the program runs: f32[<=8] is at most 8"),
    ("tuple_shapes", "the shapes of a tuple's elements"),
    ("layout", "how the array lies in memory; without one, major to minor"),
    (
        "minor_to_major",
        "the order of the dimensions in memory: the first varies fastest, the last slowest; {1,0} is row-major, {0,1} column-major. \
         It is the one field that a layout must have",
    ),
    ("tiles", "the tiles that cut the most minor dimensions, T(8,128)(2,1): each cuts what the one before left"),
    (
        "tail_padding_alignment_in_elements",
        "L(n): the end of the array is padded to a multiple of n elements, after tiling; 1 adds nothing",
    ),
    ("element_size_in_bits", "E(n): the bits that each element takes; 0 is its type's own size"),
    ("memory_space", "S(n): the memory that holds the array; 0 is a TPU's HBM, 1 its VMEM, 5 the host's memory"),
    ("index_primitive_type", "#(type): the type of a sparse array's indices"),
    ("pointer_primitive_type", "*(type): the type of a sparse array's pointers"),
    ("physical_shape", "P(shape): of a sparse array, the shape of its buffers; XLA refuses it on every other"),
    ("dynamic_shape_metadata_prefix_bytes", "M(n): bytes of run-time dimension sizes in front of the data"),
    ("split_configs", "SC(dimension:indices): where a dimension is split between memories"),
    ("padded_dimensions", "no longer a field: tiles and L(n) pad; a tile as large as the padded array says it"),
    ("padding_value", "no longer a field: what lies in padding means nothing"),
    ("dim_level_types", "D(…): the levels of a sparse array, which XLA drops"),
    ("format", "no longer a field: every layout is dense"),
];

/// The meaning of a proto's field.
pub(super) fn field(name: &str) -> Option<&'static str> {
    FIELDS.iter().find(|(known, _)| *known == name).map(|(_, meaning)| *meaning)
}

/// A field's value in XLA's notation, such as `L(16)`.
pub(super) fn notation(name: &str, value: &str) -> Option<String> {
    let value = value.trim_matches(['[', ']', ' ']);
    let letter = match name {
        "tail_padding_alignment_in_elements" => "L",
        "element_size_in_bits" => "E",
        "memory_space" => "S",
        "dynamic_shape_metadata_prefix_bytes" => "M",
        _ => return None,
    };
    (!value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())).then(|| format!("{letter}({value})"))
}

/// Properties of a layout with a letter for their number.
const PROPERTIES: [(&str, &str); 5] = [
    ("S", "memory_space"),
    ("L", "tail_padding_alignment_in_elements"),
    ("E", "element_size_in_bits"),
    ("M", "dynamic_shape_metadata_prefix_bytes"),
    ("T", "tiles"),
];

/// Words of the documents.
const WORDS: &[(&str, &str)] = &[
    ("row-major", "dim 0 is major: the last dimension varies fastest, {N−1,…,0}, such as f32[2,3]{1,0}"),
    ("major-to-minor", "the default order, {N−1,…,0}: the last dimension varies fastest, such as f32[2,3]{1,0}"),
    ("column-major", "dim 0 is minor: dimension 0 varies fastest, {0,…,N−1}, such as f32[2,3]{0,1}"),
    ("minor-to-major", "the order in which a layout lists the dimensions: the first varies fastest"),
    ("dim-0-is-major", "row-major: the last dimension varies fastest, {N−1,…,0}, such as f32[2,3]{1,0}"),
    ("dim-0-is-minor", "column-major: dimension 0 varies fastest, {0,…,N−1}, such as f32[2,3]{0,1}"),
    (
        "true-dimensions",
        "the dimensions of another size than 1; the page says greater than 1, and XLA's code counts size 0, too",
    ),
    ("true-number-of-dimensions", "how many dimensions have another size than 1: `tilewise show` of an array says it"),
    ("true-rank", "an old word for the true number of dimensions: of how many the size is another than 1"),
    ("rank", "an old word for the number of an array's dimensions, N"),
    ("untiled", "without tiles: linear in the order of minor_to_major, as arrays of C++ are"),
    ("linear", "without tiles: one element behind the other in the order of minor_to_major, as arrays of C++ are"),
    ("padding", "what a tile has beyond the array; its content means nothing"),
    (
        "linear_index",
        "of an element e in bounds d: each index times all more minor bounds, added; `tilewise index 'linear_index((2,3), (3,5))'`",
    ),
    (
        "linear_index_with_tile",
        "of an element e in bounds d with a tile t: linear_index((⌊e/t⌋, e mod t), (⌈d/t⌉, t)); \
         `tilewise index 'linear_index_with_tile((2,3), (3,5), (2,2))'`",
    ),
    ("N-1", "the number of an array's last dimension; −1 is the same"),
    ("kCombineDimension", "`*` in a tile: the dimension is merged into the next more minor one, then cut"),
    ("*", "in a tile, a dimension that is merged into the next more minor one, then cut"),
    ("e", "in the document's formulas, an element's index, major to minor"),
    ("d", "in the document's formulas, the bounds of an array, major to minor: d1 is the most minor"),
    ("t", "in the document's formulas, a tile's sizes, major to minor"),
    (
        "ShapeProto",
        "XLA's message of a shape: element_type, dimensions, layout; `show --format text-proto f32[2,3]` prints one",
    ),
    ("LayoutProto", "XLA's message of a layout: minor_to_major, tiles, memory_space and others"),
    ("xla_data.proto", "the file of XLA's messages, ShapeProto and LayoutProto among them"),
    (
        "initializer_list",
        "of C++, the sizes of a shape in the order of the dimensions' numbers: ShapeUtil::MakeShape(F32, {3, 5})",
    ),
    (
        "index_util.h",
        "the file of IndexUtil, XLA's conversions between an element's index and its offset: `tilewise index`",
    ),
    (
        "shape_util.h",
        "the file of ShapeUtil, XLA's functions about shapes; docs/documents.md lists what does the same here",
    ),
    (
        "layout_util.h",
        "the file of LayoutUtil, XLA's functions about layouts; docs/documents.md lists what does the same here",
    ),
    ("Figure-1", "of the tiled-layout page: `tilewise draw 'f32[3,5]{1,0:T(2,2)}'` draws it"),
    ("Figure-2", "of the tiled-layout page, tiles in tiles: `tilewise draw 'f32[4,8]{1,0:T(2,4)(2,1)}'` draws it"),
    ("ShapeUtil", "XLA's functions about shapes; docs/documents.md lists what does the same here"),
    ("LayoutUtil", "XLA's functions about layouts; docs/documents.md lists what does the same here"),
    ("IndexUtil", "XLA's conversions between an element's index and its offset: `tilewise index`, both ways"),
    ("x", "the letter of the last dimension of arrays with 2, 3 and 4 dimensions"),
    ("y", "the letter of the last dimension but one of arrays with 2, 3 and 4 dimensions"),
    ("z", "the letter of the last dimension but two of arrays with 3 and 4 dimensions"),
    ("p", "the letter of dimension 0 of arrays with 4 dimensions"),
];

/// The meaning of a name; `None` of any other word.
pub(super) fn meanings(text: &str) -> Option<Vec<Meaning>> {
    if let Some(meaning) = field(text) {
        return Some(vec![Meaning::of("field", meaning)]);
    }
    if let Some((_, meaning)) =
        WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(&text.replace(' ', "-")) || *word == text)
    {
        return Some(vec![Meaning::of("meaning", *meaning)]);
    }
    if let Some(space) = (0..7).find(|space| tilewise::tpu::memory_space_name(*space).eq_ignore_ascii_case(text)) {
        return Some(vec![Meaning::of("memory", format!("S({space}): {}", space_in_words(space)))]);
    }
    property(text)
        .or_else(|| letters(text))
        .or_else(|| step(text))
        .or_else(|| negative(text))
        .or_else(|| function(text))
        .or_else(|| operation(text))
}

/// `S(n)`, `L(n)`: a property with a letter in place of its number.
fn property(text: &str) -> Option<Vec<Meaning>> {
    let (letter, inside) = text.strip_suffix(')')?.split_once('(')?;
    let is_symbol =
        !inside.is_empty() && inside.chars().all(|c| c.is_alphabetic() || matches!(c, ',' | '_' | '…' | '.' | ' '));
    let (_, name) = PROPERTIES.iter().find(|(known, _)| *known == letter).filter(|_| is_symbol)?;
    let mut lines = vec![Meaning::of("field", format!("{name}: {}", field(name)?))];
    if letter == "S" {
        lines.extend((0..7).map(|space| Meaning::of(&format!("S({space})"), space_in_words(space))));
    }
    Some(lines)
}

/// Elements by letter, as the shapes page writes arrays: a matrix, `a b c` above `d e f`, or in the order of memory, `a d b e c f`; 0 is
/// padding.
fn letters(text: &str) -> Option<Vec<Meaning>> {
    let rows: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).filter(|row: &Vec<_>| !row.is_empty()).collect();
    let all: Vec<&str> = rows.concat();
    let is_letter = |item: &&str| matches!(item.as_bytes(), [b'a'..=b'z' | b'0']);
    let elements: Vec<usize> =
        all.iter().flat_map(|item| item.bytes()).filter(|&byte| byte != b'0').map(usize::from).collect();
    let count = elements.len();
    if !(4..=26).contains(&count) || !all.iter().all(is_letter) {
        return None;
    }
    let padding = if count < all.len() { "; 0 is padding" } else { "" };
    if let [first, _, ..] = &rows[..] {
        let (height, width) = (rows.len(), first.len());
        let is_matrix = rows.iter().all(|row| row.len() == width);
        let words = format!("{height} rows of {width} elements, f32[{height},{width}]{padding}");
        return is_matrix.then(|| vec![Meaning::of("array", words)]);
    }
    let is_in_order = |height: usize| {
        let width = count / height;
        (0..count).all(|at| elements[at] == elements[0] + at % height * width + at / height)
    };
    let height = (1..count).filter(|height| count.is_multiple_of(*height)).find(|&height| is_in_order(height))?;
    let words = match height {
        1 => format!("row-major, {{1,0}}: the elements of a matrix row by row{padding}"),
        _ => {
            let shape = format!("f32[{height},{}]{{0,1}}", count / height);
            format!("column-major, {{0,1}}: the elements of {shape} column by column{padding}")
        }
    };
    Some(vec![Meaning::of("in memory", words)])
}

/// A line that `tilewise steps` prints, `pad  [3,5] → [4,6]  moves bytes  T(2,2)`.
fn step(text: &str) -> Option<Vec<Meaning>> {
    let (name, rest) = text.split_once(' ')?;
    let meaning = match name {
        "pad" => "adds padding behind the last element of each dimension",
        "reshape" => "the same elements in the same order with other bounds",
        "transpose" => "reorders the dimensions",
        _ => return None,
    };
    let (from, to) = rest.split_once('→').or_else(|| rest.split_once("->"))?;
    let to = &to[..=to.find(']')?];
    let is_bounds = |text: &str| text.trim().starts_with('[') && text.trim().ends_with(']');
    (is_bounds(from) && is_bounds(to))
        .then(|| vec![Meaning::of("step", format!("{meaning}, from {} to {}", from.trim(), to.trim()))])
}

/// `-1`: a dimension from the end.
fn negative(text: &str) -> Option<Vec<Meaning>> {
    let number: u64 = text.strip_prefix('-')?.parse().ok().filter(|number| *number > 0)?;
    let place = if number == 1 {
        "the last dimension".to_owned()
    } else {
        format!("dimension N−{number}, counted from the end")
    };
    Some(vec![Meaning::of("dimension", format!("{place} of an array with N dimensions"))])
}

/// `ShapeUtil::MakeShape`, with letters for its sizes or without arguments.
fn function(text: &str) -> Option<Vec<Meaning>> {
    let (class, rest) = text.strip_prefix("xla::").unwrap_or(text).split_once("::")?;
    let is_class = matches!(class, "ShapeUtil" | "LayoutUtil" | "IndexUtil" | "Shape" | "Layout");
    let name = &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len())];
    let behind = rest[name.len()..].trim();
    if !is_class || name.is_empty() || !(behind.is_empty() || behind.starts_with('(')) {
        return None;
    }
    let mut lines = vec![Meaning::of(
        "function",
        format!("{class}::{name} of XLA; docs/documents.md lists what does the same here"),
    )];
    if name.starts_with("MakeShape") {
        lines.push(Meaning::of(
            "shape",
            "makes a shape of an element type and sizes, dimension 0 first, such as f32[2,3,4,5]",
        ));
        lines.push(Meaning::of("with numbers", "ShapeUtil::MakeShape(F32, {2, 3, 4, 5})"));
    }
    Some(lines)
}

/// `add.936`, `%fusion.32`, `add(exponential.183, broadcast.3115)`, `kind=kCustom`
fn operation(text: &str) -> Option<Vec<Meaning>> {
    let is_name = |name: &str| {
        let (stem, number) = name.rsplit_once('.').unwrap_or((name, ""));
        let is_stem = stem.starts_with(|first: char| first.is_ascii_lowercase())
            && stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        is_stem && number.bytes().all(|byte| byte.is_ascii_digit()) && (name.contains('.') || text.starts_with('%'))
    };
    let name = text.strip_prefix('%').unwrap_or(text);
    if is_name(name) {
        let stem = name.split('.').next().unwrap_or(name);
        let meaning =
            format!("the name of an operation, unique in its program; XLA names it after what it does, {stem}");
        return Some(vec![Meaning::of("operation", meaning)]);
    }
    if let Some((attribute, value)) = text.split_once('=').filter(|(name, _)| matches!(*name, "kind" | "calls")) {
        let meaning = match attribute {
            "kind" => "the kind of a fusion: kLoop, kInput, kOutput or kCustom",
            _ => "the computation that the operation calls",
        };
        return (!value.is_empty()).then(|| vec![Meaning::of(attribute, meaning)]);
    }
    let (opcode, operands) = text.strip_suffix(')')?.split_once('(')?;
    let operands: Vec<&str> = operands.split(',').map(|operand| operand.trim().trim_start_matches('%')).collect();
    let is_opcode = opcode.len() > 1 && opcode.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    (is_opcode && operands.iter().all(|operand| is_name(operand))).then(|| {
        let meaning = format!("{opcode} of {}; its shape stands in front of it", operands.join(" and "));
        vec![Meaning::of("operation", meaning)]
    })
}
