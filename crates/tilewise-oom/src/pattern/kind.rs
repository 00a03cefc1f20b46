//! The kinds of fields in wordings.

use crate::entry::WrittenShape;
use crate::facts::FactValue;
use crate::text::{instruction, size::PrintedSize, word};
use memchr::memmem;

/// The kind of a field, with its name in wordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `size`: a number with a unit, `12.21G`, `19.12 GiB`, `512 bytes`; exact bytes in brackets behind it win.
    Size,
    /// `below_zero`: a size behind a minus.
    BelowZero,
    /// `bytes`: a whole number of bytes, with or without its unit, and not cut off.
    Bytes,
    /// `count`: a whole number of bytes, decimal or hexadecimal, also at the end of the text.
    Count,
    /// `number`: a whole number.
    Number,
    /// `memory`: the name of a memory, in lower case.
    Memory,
    /// `name`: a name of a program, an instruction or an argument, `jit_step`, `args[3]`, up to white space or a quote.
    Name,
    /// `line`: the rest of the line.
    Line,
    /// `instruction`: the text of an instruction, up to the sentence behind it.
    Instruction,
    /// `bounds`: `(8, 128)`, `[8, 128]`, `(Blocked(block_size=8), …)`.
    Bounds,
    /// `braces`: a layout or a sharding, `{1,0:T(8,128)}`, `{devices=[8,1]<=[8]}`.
    Braces,
    /// `shape`: an array's shape, XLA's, JAX's or MLIR's.
    Shape,
    /// `shapes`: shapes, one after the other.
    Shapes,
    /// `colon`: the colon between an error's code and its text; a text may end behind the code.
    Colon,
}

/// Maximum bytes of an instruction: those in messages are shorter, most of them cut by the compiler itself.
const LONGEST_INSTRUCTION: usize = 16 << 10;

const MEMORIES: [&str; 6] = ["hbm", "vmem", "smem", "cmem", "sflag", "host"];

impl Kind {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "size" => Self::Size,
            "below_zero" => Self::BelowZero,
            "bytes" => Self::Bytes,
            "count" => Self::Count,
            "number" => Self::Number,
            "memory" => Self::Memory,
            "name" => Self::Name,
            "instruction" => Self::Instruction,
            "bounds" => Self::Bounds,
            "braces" => Self::Braces,
            "shape" => Self::Shape,
            "shapes" => Self::Shapes,
            "colon" => Self::Colon,
            _ => Self::Line,
        }
    }

    /// The end of the field that begins at or after `at`, and its value.
    pub(super) fn read(self, text: &str, at: usize) -> Option<(usize, FactValue)> {
        let start = word::next(text, at);
        let rest = &text[start..];
        let is_negative = text[..start].ends_with('-') && !text[..start - 1].ends_with(word::is_part);
        let (length, value) = match self {
            Self::Colon => {
                let behind = text[at..].trim_start_matches(|c: char| c.is_whitespace() || "*`'\"".contains(c));
                return (behind.is_empty() || behind.starts_with(':')).then(|| (at, FactValue::Text(":".to_owned())));
            }
            Self::Size if is_negative => return None,
            Self::BelowZero if !is_negative => return None,
            Self::Size | Self::BelowZero => {
                let (size, length) = PrintedSize::figure(rest)?;
                let (size, more) = exact_behind(&rest[length..]).unwrap_or((size, 0));
                (length + more, FactValue::Size(size))
            }
            Self::Bytes => {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                // A number at the end of a text that was cut may be the beginning of a longer one.
                let is_closed =
                    rest.as_bytes().get(digits).is_some_and(|byte| !byte.is_ascii_alphanumeric() && *byte != b'*');
                let (size, _) = PrintedSize::plain_prefix(rest).filter(|_| is_closed)?;
                let after = rest[digits..].trim_start_matches([' ', ')']);
                let unit = &after[..word::length(after)];
                let is_unit = ["b", "byte", "bytes"].iter().any(|name| unit.eq_ignore_ascii_case(name));
                let end = if is_unit { rest.len() - after.len() + unit.len() } else { digits };
                (end, FactValue::Size(size))
            }
            Self::Count => {
                let (size, length) = PrintedSize::count(rest)?;
                (length, FactValue::Size(size))
            }
            Self::Number => {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                (digits, FactValue::Number(rest[..digits].parse().ok()?))
            }
            Self::Memory => {
                let length = word::length(rest);
                let name = rest[..length].to_ascii_lowercase();
                MEMORIES.contains(&name.as_str()).then_some((length, FactValue::Text(name)))?
            }
            Self::Name => {
                let end = rest.find(|c: char| c.is_whitespace() || "'\"`,;()|*".contains(c)).unwrap_or(rest.len());
                let name = rest[..end].trim_end_matches(['.', ':', ']', '…']);
                let name =
                    if name.contains('[') && rest[name.len()..].starts_with(']') { &rest[..=name.len()] } else { name };
                (!name.is_empty()).then(|| (name.len(), FactValue::Text(name.to_owned())))?
            }
            Self::Line => {
                let line = rest.lines().next().unwrap_or("").trim_end();
                (!line.is_empty()).then(|| (line.len(), FactValue::Text(line.to_owned())))?
            }
            Self::Instruction => return instruction_at(text, at),
            Self::Bounds => return bounds(text, at),
            Self::Braces => return braces(text, at),
            Self::Shape => {
                let (shape, length) = shape(rest)?;
                (length, FactValue::Shapes(vec![shape]))
            }
            Self::Shapes => shapes(rest)?,
        };
        Some((start + length, value))
    }
}

/// `(14583876403 bytes)`, `(33554432B)`, and its length.
fn exact_behind(text: &str) -> Option<(PrintedSize, usize)> {
    let inside = text.trim_start().strip_prefix('(')?;
    let inside = inside.strip_prefix('-').unwrap_or(inside);
    let (size, length) = PrintedSize::plain_prefix(inside)?;
    let after = inside[length..].trim_start();
    let after = after.strip_prefix("bytes").or_else(|| after.strip_prefix('B'))?.strip_prefix(')')?;
    Some((size, text.len() - after.len()))
}

/// Sentences that follow an instruction in a message.
const BEHIND_INSTRUCTION: [&str; 3] =
    [". Scoped allocation with size", ". You probably want to enrich", ". As the last resort"];

/// `%name = shape opcode(…), …`, up to the sentence behind it, or on one line where that is missing.
fn instruction_at(text: &str, at: usize) -> Option<(usize, FactValue)> {
    let rest = text[at..].trim_start_matches(|c: char| c.is_whitespace() || c == ':');
    let near = (0..=LONGEST_INSTRUCTION.min(rest.len())).rev().find_map(|end| rest.get(..end))?;
    let begins = |sentence: &&str, at: usize| {
        let words = sentence.trim_start_matches(['.', ' ']);
        words.split(' ').try_fold(at, |at, word| {
            let at = at + near[at..].len() - near[at..].trim_start().len();
            near[at..].starts_with(word).then_some(at + word.len())
        })
    };
    let is_first = |sentence: &&str| {
        let first = sentence.trim_start_matches(['.', ' ']).split(' ').next().unwrap_or_default();
        memmem::find_iter(near.as_bytes(), first).find(|at| begins(sentence, *at).is_some())
    };
    let behind = BEHIND_INSTRUCTION.iter().filter_map(is_first).min();
    let end = behind.unwrap_or_else(|| rest.find('\n').unwrap_or(rest.len()));
    let start = text.len() - rest.len();
    let words = instruction::fold(rest[..end].trim_end());
    let words = BEHIND_INSTRUCTION
        .iter()
        .fold(&*words, |words, sentence| instruction::without_beginning(words, sentence))
        .trim_end_matches('.');
    (!words.is_empty()).then(|| (start + end, FactValue::Text(words.to_owned())))
}

/// The next pair of braces and its contents.
fn braces(text: &str, at: usize) -> Option<(usize, FactValue)> {
    let rest = text.get(at..)?;
    let open = rest.find('{').filter(|open| rest[..*open].chars().all(|c| !word::is_part(c)))?;
    let end = instruction::brackets_end(rest, open)?;
    Some((at + end, FactValue::Text(rest[open..end].to_owned())))
}

/// The items in the next pair of brackets, divided by commas. `Blocked(block_size=8)` counts as its number.
fn bounds(text: &str, at: usize) -> Option<(usize, FactValue)> {
    let rest = text.get(at..)?;
    let open = rest.find(['(', '[']).filter(|open| rest[..*open].chars().all(|c| !word::is_part(c)))?;
    let flat: String = rest[open..].chars().take(1024).map(|c| if c == '\n' { ' ' } else { c }).collect();
    let end = instruction::brackets_end(&flat, 0)?;
    let (mut bounds, mut depth, mut item) = (Vec::new(), 0, String::new());
    for c in flat[1..end - 1].chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => bounds.push(bound(&std::mem::take(&mut item))),
            _ => {}
        }
        if c != ',' || depth > 0 {
            item.push(c);
        }
    }
    if !item.trim().is_empty() {
        bounds.push(bound(&item));
    }
    (!bounds.is_empty()).then(|| (at + open + end, FactValue::Bounds(bounds)))
}

fn bound(item: &str) -> Option<u64> {
    let digits = item.trim().trim_start_matches(|c: char| !c.is_ascii_digit());
    digits[..digits.bytes().take_while(u8::is_ascii_digit).count()].parse().ok()
}

/// Prefixes of type names in JAX and NumPy, and in XLA.
const NUMPY: [(&str, &str); 6] =
    [("bool", "pred"), ("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "s"), ("complex", "c")];

/// A shape that `text` begins with, and its length: `f32[2,3]{1,0}`, `float32[2,3]`, `ShapedArray(float32[2,3])`,
/// `vector<2x3xf32>`.
pub(crate) fn shape(text: &str) -> Option<(WrittenShape, usize)> {
    for wrapper in ["ShapedArray(", "ShapeDtypeStruct("] {
        if let Some(inside) = text.strip_prefix(wrapper) {
            let (shape, length) = shape(inside)?;
            let close = inside[length..].find(')').map_or(0, |close| close + 1);
            return Some((shape, wrapper.len() + length + close));
        }
    }
    for wrapper in ["vector<", "memref<", "tensor<"] {
        if let Some(inside) = text.strip_prefix(wrapper) {
            let end = inside.find(['>', ',']).filter(|end| *end < 256)?;
            let close = inside[end..].find('>')?;
            let (bounds, element) = inside[..end].rsplit_once('x').unwrap_or(("", &inside[..end]));
            let element = if element == "i1" { "pred" } else { &element.replacen('i', "s", 1) };
            let hlo = format!("{element}[{}]", bounds.replace('x', ","));
            let length = wrapper.len() + end + close + 1;
            return Some((WrittenShape::of(text[..length].to_owned(), &hlo), length));
        }
    }
    let element = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    if text.as_bytes().get(element) != Some(&b'[') || element == 0 {
        return None;
    }
    let length = instruction::shape_length(text);
    let printed = text.get(..length).filter(|printed| !printed.is_empty())?;
    let bounds = &printed[element + 1..printed.find(']')?];
    if !bounds.bytes().all(|byte| byte.is_ascii_digit() || b", <=?".contains(&byte)) {
        return None;
    }
    let name = NUMPY.iter().find_map(|(numpy, xla)| Some((text[..element].strip_prefix(numpy)?, *xla)));
    let hlo = name.map_or_else(|| printed.to_owned(), |(bits, xla)| format!("{xla}{bits}{}", &printed[element..]));
    let shape = WrittenShape::of(printed.to_owned(), &hlo);
    shape.parsed.is_ok().then_some((shape, length))
}

/// Shapes divided by commas; more may have been left out at the end.
fn shapes(text: &str) -> Option<(usize, FactValue)> {
    let mut found = Vec::new();
    let mut end = 0;
    let mut at = 0;
    while let Some((shape, length)) = text.get(at..).and_then(shape) {
        found.push(shape);
        end = at + length;
        let after = &text[end..];
        let gap = after.len() - after.trim_start_matches([',', ' ', '\n', '\r', '\t', '`', ')']).len();
        if gap == 0 || gap > 64 {
            break;
        }
        at = end + gap;
    }
    (!found.is_empty()).then_some((end, FactValue::Shapes(found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, text: &str) -> String {
        let found = Kind::of(kind).read(text, 0);
        found.map_or_else(|| "none".to_owned(), |(end, value)| format!("{value}|{}", &text[end..]))
    }

    #[test]
    fn figures() {
        assert_eq!(read("size", " **19.12 GiB** x"), "19.12 GiB|** x");
        assert_eq!(read("size", "13.58GiB (14583876403 bytes) by"), "14583876403| by");
        assert_eq!(read("size", "154.06GiB (165425291480B) on"), "165425291480| on");
        assert_eq!(read("size", "73.30GiB (rounded to 7)"), "73.30GiB| (rounded to 7)");
        assert_eq!(read("size", "-25.62GiB"), "none");
        assert_eq!(read("size", "- 25.62GiB"), "25.62GiB|");
        assert_eq!(read("below_zero", "-25.62GiB (-27506732520 bytes) by"), "27506732520| by");
        assert_eq!(read("bytes", "=10485760 bytes in"), "10485760| in");
        assert_eq!(read("bytes", "(size=171"), "none");
        assert_eq!(read("bytes", "171"), "none");
        assert_eq!(read("bytes", "171)"), "171|)");
        assert_eq!(read("count", ": 101376"), "101376|");
        assert_eq!(read("count", "=0xc600 bytes,"), "50688| bytes,");
        assert_eq!(read("count", "0x"), "none");
    }

    #[test]
    fn shapes_of_all_dialects() {
        assert_eq!(read("shapes", "bfloat16[4,2737], int32[7].\nSee"), "bfloat16[4,2737], int32[7]|.\nSee");
        assert_eq!(
            read("shapes", "ShapedArray(float32[784,50]), f32[2,3]{1,0} x"),
            "float32[784,50], f32[2,3]{1,0}| x"
        );
        assert_eq!(read("shape", "'vector<256x256xi8>'"), "vector<256x256xi8>|'");
        for (text, xla) in
            [("bool[8]", "pred[8]"), ("float8_e4m3fn[2]", ""), ("uint8[2]", "u8[2]"), ("vector<2xi1>", "pred[2]")]
        {
            let found = shape(text).and_then(|(shape, _)| Some(shape.parsed.ok()?.to_string()));
            assert_eq!(found.unwrap_or_default(), xla, "{text}");
        }
        assert_eq!(read("shape", "args[3]"), "none");
    }

    #[test]
    fn bounds_of_blocks() {
        assert_eq!(read("bounds", " (Blocked(block_size=1), Blocked(block_size=512)), x"), "(1, 512)|, x");
        assert_eq!(read("bounds", "(..., 8, 8192)\n"), "(?, 8, 8192)|\n");
        assert_eq!(read("bounds", "(None, 128)"), "(?, 128)|");
        assert_eq!(read("bounds", "word (1, 2)"), "none");
        assert_eq!(read("braces", " ({1,0:T(8,128)(2,1)}) does"), "{1,0:T(8,128)(2,1)}|) does");
        assert_eq!(read("braces", "to {devices=[8,1]<=[8]} x"), "none");
        assert_eq!(read("name", "'jit_step.1': x"), "jit_step.1|': x");
        assert_eq!(read("name", "args[3] in"), "args[3]| in");
    }
}
