//! The documents' names: fields of the protos, properties with a letter, memory spaces, operations and XLA's functions.

use super::{
    evaluate::Function,
    meaning::{Meaning, of_names, space_in_words},
    terms,
    token::continues_word,
};
use tilewise::{ElementType, Shape};
use tilewise_hlo::Opcode;

/// The fields of XLA's protos of shapes and layouts, as `xla_data.proto` has them.
const FIELDS: &[(&str, &str)] = &[
    ("element_type", "the element type of a shape, such as F32"),
    ("dimensions", "the size of each dimension of an array, dimension 0 first; in a tile, its sizes, major to minor"),
    ("is_dynamic_dimension", "whether the dimension's size is known only when the program runs: f32[<=8] is at most 8"),
    ("tuple_shapes", "the shapes of a tuple's elements"),
    ("layout", "how the array lies in memory; without one, major to minor and without tiles"),
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
    (
        "padded_dimensions",
        "no longer a field: the size to which each dimension was padded, one for each. Tiles and L(n) pad; a tile as large as the padded \
         array says it",
    ),
    ("padding_value", "no longer a field: the value that filled padded_dimensions; what lies in padding means nothing"),
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

/// `линейный_индекс`, a function's name in a translation.
fn translated(text: &str) -> Option<Vec<Meaning>> {
    let is_name = text.contains('_') && text.chars().all(continues_word);
    let meaning = "linear_index under a translated name; of three lists, linear_index_with_tile";
    (is_name && Function::named(text) == Some(Function::Translated)).then(|| vec![Meaning::of("function", meaning)])
}

/// The meaning of a name; `None` of any other word.
pub(super) fn meanings(text: &str) -> Option<Vec<Meaning>> {
    if let Some(meaning) = field(text) {
        return Some(vec![Meaning::of("field", meaning)]);
    }
    if let Some(meanings) = terms::meanings(text) {
        return Some(meanings);
    }
    if let Some(space) = (0..7).find(|space| tilewise::tpu::memory_space_name(*space).eq_ignore_ascii_case(text)) {
        return Some(vec![Meaning::of("memory", format!("S({space}): {}", space_in_words(space)))]);
    }
    property(text)
        .or_else(|| dimension(text))
        .or_else(|| translated(text))
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
    let is_padded = count < all.len();
    let shape_of = |height: usize, order: &str, tile: [usize; 2]| {
        let tile = if is_padded { format!(":T({},{})", tile[0], tile[1]) } else { String::new() };
        format!("f32[{height},{}]{{{order}{tile}}}", count / height)
    };
    let padded = |[rows, columns]: [usize; 2]| match is_padded {
        true => format!("; 0 is padding, to {rows} rows of {columns}"),
        false => String::new(),
    };
    if let [first, _, ..] = &rows[..] {
        let bounds = [rows.len(), first.len()];
        let height = rows.iter().filter(|row| row[0] != "0").count();
        let is_matrix = rows.iter().all(|row| row.len() == bounds[1]) && count.is_multiple_of(height.max(1));
        let shape = shape_of(height.max(1), "1,0", bounds);
        let words = format!("{height} rows of {} elements, {shape}{}", count / height.max(1), padded(bounds));
        return is_matrix.then(|| vec![Meaning::of("array", words)]);
    }
    let is_in_order = |height: usize| {
        let width = count / height;
        (0..count).all(|at| elements[at] == elements[0] + at % height * width + at / height)
    };
    let height = (1..count).filter(|height| count.is_multiple_of(*height)).find(|&height| is_in_order(height))?;
    // The start of the next column, behind the padding of the first.
    let place = |element: usize| all.iter().position(|item| item.bytes().map(usize::from).eq([element]));
    let words = match height {
        1 => "row-major, {1,0}: the elements of a matrix row by row".to_owned(),
        _ => {
            let rows = place(elements[height]).filter(|rows| all.len().is_multiple_of(*rows))?;
            let columns = all.len() / rows;
            let shape = shape_of(height, "0,1", [columns, rows]);
            format!("column-major, {{0,1}}: the elements of {shape} column by column{}", padded([rows, columns]))
        }
    };
    Some(vec![Meaning::of("in memory", words)])
}

/// A line that `tilewise steps` prints, `pad  [3,5] → [4,6]  moves bytes  T(2,2)`.
fn step(text: &str) -> Option<Vec<Meaning>> {
    let (name, rest) = text.split_once(' ')?;
    let meaning = matches!(name, "pad" | "reshape" | "transpose").then(|| terms::definition(name))??;
    let (from, to) = rest.split_once('→').or_else(|| rest.split_once("->"))?;
    let to = &to[..=to.find(']')?];
    let is_bounds = |text: &str| text.trim().starts_with('[') && text.trim().ends_with(']');
    (is_bounds(from) && is_bounds(to))
        .then(|| vec![Meaning::of("step", format!("{meaning}, from {} to {}", from.trim(), to.trim()))])
}

/// `-1`: a dimension from the end.
fn negative(text: &str) -> Option<Vec<Meaning>> {
    let number: u64 = text.strip_prefix('-')?.parse().ok().filter(|number| *number > 0)?;
    let place = match number {
        1 => "the last dimension, N−1".to_owned(),
        2 => "dimension N−2, the last but one".to_owned(),
        _ => format!("dimension N−{number}, counted from the end"),
    };
    Some(vec![Meaning::of("dimension", format!("{place}, of an array with N dimensions"))])
}

/// `dimension 0`, `dimension 1: x`, `dimension -1`; with a letter, or from the end, under a word of another language, too: `0 维: y`.
fn dimension(text: &str) -> Option<Vec<Meaning>> {
    let (place, letter) = match text.split_once(':') {
        Some((place, letter)) => (place, Some(letter.trim_matches([' ', '`']))),
        None => (text, None),
    };
    let (numbers, words): (Vec<&str>, Vec<&str>) =
        place.split_whitespace().partition(|word| word.parse::<i32>().is_ok());
    let &[number] = &numbers[..] else { return None };
    let is_said = matches!(words[..], ["dimension" | "dim"]);
    let is_translated = matches!(words.len(), 1 | 2) && words.iter().all(|word| word.chars().all(|c| !c.is_ascii()));
    if !is_said && !(is_translated && (letter.is_some() || number.starts_with('-'))) {
        return None;
    }
    if number.starts_with('-') && letter.is_none() {
        return negative(number);
    }
    let number: usize = number.parse().ok()?;
    let lettered: Vec<String> = (number + 1..=4)
        .filter_map(|rank| {
            let shape = Shape::array(ElementType::F32, (2..).take(rank)).ok()?;
            let own = shape.as_array()?.dimension_letter(number)?;
            let is_meant = letter.is_none_or(|letter| letter.chars().eq([own]));
            is_meant.then(|| format!("{own} of an array with {rank}"))
        })
        .collect();
    let letters = if lettered.is_empty() { String::new() } else { format!("; {} dimensions", lettered.join(", ")) };
    (letter.is_none() || !lettered.is_empty()).then(|| {
        vec![Meaning::of("dimension", format!("the size number {number}, counted from 0, as written{letters}"))]
    })
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
        // `(F32, {A, B, C, D})`
        let sizes = behind.split_once('{').and_then(|(_, sizes)| Some(sizes.split_once('}')?.0));
        let sizes: Vec<&str> = sizes.map_or(Vec::new(), |sizes| sizes.split(',').map(str::trim).collect());
        if sizes.len() > 1 {
            lines.extend(of_names(&sizes));
            return Some(lines);
        }
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
        return (!value.is_empty())
            .then(|| terms::definition(attribute).map(|meaning| vec![Meaning::of(attribute, meaning)]))?;
    }
    // `exponential.183, broadcast.3115`
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    if names.len() > 1 && names.iter().all(|name| is_name(name.strip_prefix('%').unwrap_or(name))) {
        let count = format!("{} arguments of an operation, by their unique names", names.len());
        return Some(vec![Meaning::of("operation", count)]);
    }
    if Opcode::of(text) != Opcode::Unknown {
        let meaning = format!("{text}, what an operation does: https://openxla.org/xla/operation_semantics defines it");
        return Some(vec![Meaning::of("operation", meaning)]);
    }
    let (opcode, operands) = text.strip_suffix(')')?.split_once('(')?;
    let operands: Vec<&str> = operands.split(',').map(|operand| operand.trim().trim_start_matches('%')).collect();
    let is_opcode = opcode.len() > 1 && opcode.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    (is_opcode && operands.iter().all(|operand| is_name(operand))).then(|| {
        let meaning = format!("{opcode} of {}; its shape stands in front of it", operands.join(" and "));
        vec![Meaning::of("operation", meaning)]
    })
}
