//! Cases: shapes of every kind as texts in every spelling, small variations of them, and invalid texts.

use tilewise::ElementType;
use tilewise_testing::Random;

/// A text, and in two of three cases another with nearly the same meaning.
pub(crate) struct Case {
    pub(crate) text: String,
    pub(crate) other: Option<String>,
}

impl Case {
    /// The case of this number: seven in ten are valid, the others are invalid, or look so.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let random = &mut Random::for_case(seed, number);
        if random.below(3000) == 0 {
            return Self { text: nested(random), other: None };
        }
        let shape = Shape::any(random, 0);
        let mut tokens = shape.spell(random);
        if random.percent(30) {
            for _ in 0..=random.below(3) {
                spoil(&mut tokens, random);
            }
            return Self { text: join(&tokens, random), other: None };
        }
        let mut other = shape;
        if random.percent(75) {
            other.vary(random);
        }
        let other = other.spell(random);
        Self { text: join(&tokens, random), other: Some(join(&other, random)) }
    }
}

#[derive(Clone)]
enum Shape {
    Array(Array),
    Buffer(Array),
    Tuple(Vec<Shape>),
    Token,
    Opaque,
}

#[derive(Clone)]
struct Array {
    element_type: ElementType,
    dimensions: Vec<Dimension>,
    layout: Layout,
}

#[derive(Clone, Copy, PartialEq)]
enum Dimension {
    Static(u64),
    Bounded(u64),
    Unbounded,
}

/// Properties with their default value are written or omitted at random.
#[derive(Clone)]
struct Layout {
    minor_to_major: Vec<usize>,
    /// `None` is `*`.
    tiles: Vec<Vec<Option<u64>>>,
    tail_padding: u64,
    index_type: Option<&'static str>,
    pointer_type: Option<&'static str>,
    element_size: u64,
    memory_space: u64,
    splits: Vec<(usize, Vec<u64>)>,
    metadata_prefix: u64,
}

impl Shape {
    fn any(random: &mut Random, depth: usize) -> Self {
        match random.below(100) {
            0..3 => Self::Token,
            3..6 => Self::Opaque,
            6..12 => Self::Buffer(Array::any(random)),
            // Up to twelve elements: XLA counts every fifth.
            12..24 if depth < 4 => {
                let length = random.below(13) >> random.below(3);
                Self::Tuple((0..length).map(|_| Self::any(random, depth + 1)).collect())
            }
            _ => Self::Array(Array::any(random)),
        }
    }

    /// Changes one random property.
    fn vary(&mut self, random: &mut Random) {
        if random.percent(4) {
            *self = Self::Tuple(vec![self.clone()]);
            return;
        }
        match self {
            Self::Array(array) if random.percent(4) => *self = Self::Buffer(array.clone()),
            Self::Array(array) | Self::Buffer(array) => array.vary(random),
            Self::Tuple(elements) if elements.is_empty() || random.percent(10) => elements.push(Self::Token),
            Self::Tuple(elements) => {
                let at = random.below(elements.len());
                elements[at].vary(random);
            }
            Self::Token => *self = Self::Opaque,
            Self::Opaque => *self = Self::Token,
        }
    }

    fn spell(&self, random: &mut Random) -> Vec<String> {
        let mut tokens = Vec::new();
        self.write(&mut tokens, random);
        tokens
    }

    fn write(&self, out: &mut Vec<String>, random: &mut Random) {
        match self {
            Self::Array(array) => array.write(out, random),
            Self::Buffer(array) => {
                push(out, &["b", "("]);
                array.write(out, random);
                push(out, &[")"]);
            }
            Self::Tuple(elements) => {
                list(out, ["(", ")"], elements, |element, out| element.write(out, random));
            }
            Self::Token => push(out, &["token", "[", "]"]),
            Self::Opaque => push(out, &["opaque", "[", "]"]),
        }
    }
}

impl Array {
    fn any(random: &mut Random) -> Self {
        let rank = random.below(7);
        let dimensions: Vec<_> = (0..rank).map(|_| Dimension::any(random)).collect();
        let layout = Layout::any(&dimensions, random);
        Self { element_type: random.choose(ElementType::ALL), dimensions, layout }
    }

    fn vary(&mut self, random: &mut Random) {
        let rank = self.dimensions.len();
        match random.below(10) {
            0 => self.element_type = random.choose(ElementType::ALL),
            // Splits may not fit a new bound.
            1..3 if rank > 0 && self.layout.splits.is_empty() => {
                let at = random.below(rank);
                self.dimensions[at] = match self.dimensions[at] {
                    Dimension::Static(n) if random.percent(70) => Dimension::Bounded(n),
                    Dimension::Bounded(n) if random.percent(50) => Dimension::Static(n),
                    Dimension::Bounded(_) => Dimension::Unbounded,
                    Dimension::Static(_) | Dimension::Unbounded => Dimension::any(random),
                };
            }
            3 if rank > 1 && self.layout.splits.is_empty() => random.shuffle(&mut self.layout.minor_to_major),
            _ => {
                let another = Layout::any(&self.dimensions, random);
                let layout = &mut self.layout;
                match random.below(9) {
                    0..2 => layout.tiles = another.tiles,
                    2 => layout.tail_padding = another.tail_padding,
                    3 => layout.index_type = another.index_type,
                    4 => layout.pointer_type = another.pointer_type,
                    5 => layout.element_size = another.element_size,
                    6 => layout.memory_space = another.memory_space,
                    7 => layout.splits.clear(),
                    _ => layout.metadata_prefix = another.metadata_prefix,
                }
            }
        }
    }

    fn write(&self, out: &mut Vec<String>, random: &mut Random) {
        push(out, &[self.element_type.name()]);
        list(out, ["[", "]"], &self.dimensions, |dimension, out| match dimension {
            Dimension::Static(n) => number(out, *n, random),
            Dimension::Bounded(n) => {
                push(out, &["<="]);
                number(out, *n, random);
            }
            Dimension::Unbounded => push(out, &["?"]),
        });
        self.layout.write(out, random);
    }
}

impl Dimension {
    fn any(random: &mut Random) -> Self {
        let bound = match random.below(20) {
            0 => 0,
            1..4 => 1,
            4..12 => 2 + random.below(8),
            12..16 => 1 << random.below(12),
            16..19 => random.below(5000),
            _ => random.below(1 << 40),
        };
        match random.below(20) {
            0..2 => Self::Bounded(bound),
            2 => Self::Unbounded,
            _ => Self::Static(bound),
        }
    }
}

impl Layout {
    fn any(dimensions: &[Dimension], random: &mut Random) -> Self {
        const SPARSE_TYPES: [&str; 4] = ["u8", "u16", "u32", "u64"];
        let mut minor_to_major: Vec<usize> = (0..dimensions.len()).rev().collect();
        if random.percent(50) {
            random.shuffle(&mut minor_to_major);
        }
        let mut splits = Vec::new();
        if random.percent(6) {
            for (physical, &logical) in minor_to_major.iter().rev().enumerate() {
                let (Dimension::Static(bound) | Dimension::Bounded(bound)) = dimensions[logical] else { continue };
                if bound > 1 && random.percent(60) {
                    let step = 1 + random.below(7);
                    let indices = (1..bound).step_by(step).take(random.below(5)).collect();
                    splits.push((physical, indices));
                }
            }
            random.shuffle(&mut splits);
        }
        let tiles = if random.percent(45) { 1 + random.below(3) } else { 0 };
        Self {
            minor_to_major,
            tiles: (0..tiles).map(|_| tile(random)).collect(),
            tail_padding: if random.percent(15) { 1 + random.below(2048) } else { 1 },
            index_type: if random.percent(2) { Some(random.choose(&SPARSE_TYPES)) } else { None },
            pointer_type: if random.percent(2) { Some(random.choose(&SPARSE_TYPES)) } else { None },
            element_size: if random.percent(20) { random.choose(&[1, 2, 4, 5, 8, 16, 32, 64, 128, 4096]) } else { 0 },
            memory_space: if random.percent(20) { random.choose(&[0, 1, 2, 3, 5, 6, 17, 126, 127]) } else { 0 },
            splits,
            metadata_prefix: if random.percent(8) { 8 * random.below(9) } else { 0 },
        }
    }

    fn write(&self, out: &mut Vec<String>, random: &mut Random) {
        let properties = self.properties(random);
        let by_default = self.minor_to_major.iter().rev().copied().eq(0..self.minor_to_major.len());
        if properties.is_empty() && by_default && (self.minor_to_major.is_empty() || random.percent(40)) {
            return;
        }
        push(out, &["{"]);
        separated(out, &self.minor_to_major, |&dimension, out| number(out, dimension as u64, random));
        // A scalar's layout needs the colon, others may have it.
        if !properties.is_empty() || random.percent(2) {
            push(out, &[":"]);
        }
        out.extend(properties);
        push(out, &["}"]);
    }

    fn properties(&self, random: &mut Random) -> Vec<String> {
        let mut out = Vec::new();
        if !self.tiles.is_empty() {
            push(&mut out, &["T"]);
            for tile in &self.tiles {
                list(&mut out, ["(", ")"], tile, |size, out| match size {
                    Some(size) => number(out, *size, random),
                    None => push(out, &["*"]),
                });
            }
        }
        let mut property = |name: &str, value: u64, default: u64, out: &mut Vec<String>| {
            if value != default || random.percent(2) {
                push(out, &[name, "("]);
                number(out, value, random);
                push(out, &[")"]);
            }
        };
        property("L", self.tail_padding, 1, &mut out);
        for (name, sparse_type) in [("#", self.index_type), ("*", self.pointer_type)] {
            if let Some(sparse_type) = sparse_type {
                push(&mut out, &[name, "(", sparse_type, ")"]);
            }
        }
        property("E", self.element_size, 0, &mut out);
        property("S", self.memory_space, 0, &mut out);
        if !self.splits.is_empty() {
            push(&mut out, &["SC"]);
            for (dimension, indices) in &self.splits {
                let start = format!("({dimension}:");
                list(&mut out, [&start, ")"], indices, |index, out| push(out, &[&index.to_string()]));
            }
        }
        property("M", self.metadata_prefix, 0, &mut out);
        out
    }
}

fn tile(random: &mut Random) -> Vec<Option<u64>> {
    let mut sizes: Vec<_> = (0..random.below(4))
        .map(|_| (!random.percent(15)).then(|| random.choose(&[1, 1, 2, 3, 4, 7, 8, 16, 32, 128])))
        .collect();
    sizes.push(Some(random.choose(&[1, 2, 4, 5, 16, 128, 1024])));
    sizes
}

/// Deeply nested texts: XLA's stack is exhausted at about 7,300 levels.
fn nested(random: &mut Random) -> String {
    let levels = random.choose(&[100, 1000, 1024, 1025, 2000, 7000, 9000]);
    let (open, close) = random.choose(&[("(", ")"), ("b(", ")"), ("(token[],", ")")]);
    let innermost = random.choose(&["", "f32[2]"]);
    open.repeat(levels) + innermost + &close.repeat(levels)
}

fn push(out: &mut Vec<String>, tokens: &[&str]) {
    out.extend(tokens.iter().map(|&token| token.to_owned()));
}

fn number(out: &mut Vec<String>, number: u64, random: &mut Random) {
    let zeros = if random.percent(2) { "00" } else { "" };
    out.push(format!("{zeros}{number}"));
}

fn separated<T>(out: &mut Vec<String>, items: &[T], mut item: impl FnMut(&T, &mut Vec<String>)) {
    for (at, i) in items.iter().enumerate() {
        if at > 0 {
            push(out, &[","]);
        }
        item(i, out);
    }
}

fn list<T>(out: &mut Vec<String>, [open, close]: [&str; 2], items: &[T], item: impl FnMut(&T, &mut Vec<String>)) {
    push(out, &[open]);
    separated(out, items, item);
    push(out, &[close]);
}

/// Joins tokens, mostly without blanks or comments between them.
fn join(tokens: &[String], random: &mut Random) -> String {
    const BLANKS: [&str; 8] = [" ", " ", "  ", "\t", "\n", "\r\n", "/* ) */", "// (\n"];
    let chance = if random.percent(25) { 15 } else { 0 };
    let mut text = String::new();
    for token in tokens {
        if random.percent(chance) {
            text.push_str(random.choose(&BLANKS));
        }
        text.push_str(token);
    }
    if random.percent(chance) {
        text.push_str(random.choose(&BLANKS));
    }
    text
}

/// Makes one random edit, for an invalid, lenient or unusual text.
fn spoil(tokens: &mut Vec<String>, random: &mut Random) {
    #[rustfmt::skip]
    const PIECES: &[&str] = &[
        "(", ")", "[", "]", "{", "}", ",", ":", "*", "#", "?", "<=", "<", "-", "+", "=", "/*", "//", "/**/", "\u{0}",
        "\u{b}", "\u{a0}", "\u{2217}", "é", "_", ".", "b", "f32", "F32", "bool", "tuple", "invalid", "opaque_type",
        "T", "L", "E", "S", "SC", "M", "D", "P", "f32[2]", "token[]", "opaque[]", "b(f32[])", "()", "{}", "{0}",
        "{:}", "{1,0}", ":T(2)", "T(2)", "T()", "T(", "T(2,*)", "(2,2)", "L(2)", "#(u32)", "#(s32)", "#()", "*(f32)",
        "*(u8)", "E(4)", "E(", "S(1)", "SC(0:1)", "SC(0:)", "M(8)", "D(D)", "D(C+~)", "P(f32[])", "P(f32[2]{0})",
    ];
    #[rustfmt::skip]
    const NUMBERS: &[&str] = &[
        "0", "1", "2", "3", "5", "7", "-0", "127", "128", "255", "256", "300", "9223372036854775807",
        "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
        "18446744073709551616", "4611686018427387904", "2147483648", "0x10", "1_000", "2x3", "3.", "3e2", "+3", "-",
        "",
    ];
    const NEGATIVE: &[&str] = &["-1", "-1", "-2", "-7", "-128"];
    if tokens.is_empty() {
        return push(tokens, &["f32"]);
    }
    let at = random.below(tokens.len());
    let numbers = || tokens.iter().enumerate().filter(|(_, t)| t.parse::<u64>().is_ok()).map(|(at, _)| at);
    match random.below(16) {
        0..2 => drop(tokens.remove(at)),
        2 => tokens.insert(at, tokens[at].clone()),
        3 => {
            let with = random.below(tokens.len());
            tokens.swap(at, with);
        }
        4..7 => tokens.insert(at, random.choose(PIECES).to_owned()),
        7 => tokens[at] = random.choose(PIECES).to_owned(),
        8 => tokens.truncate(at),
        9 => push(tokens, &[random.choose(PIECES)]),
        10 => {
            let token = &mut tokens[at];
            *token = match &**token {
                "*" => "\u{2217}".to_owned(),
                word if word.chars().any(char::is_lowercase) => word.to_uppercase(),
                word => word.to_lowercase(),
            };
        }
        11 => drop(tokens[at].pop()),
        // Properties come last in a layout.
        12..14 => {
            let end = tokens.iter().rposition(|token| token == "}").unwrap_or(at);
            tokens.insert(end, random.choose(PIECES).to_owned());
        }
        _ => {
            let count = numbers().count();
            if count > 0 {
                let at = numbers().nth(random.below(count)).unwrap_or(at);
                // Few negative numbers: most crash XLA, and starting it again is slow.
                let from = if random.percent(6) { NEGATIVE } else { NUMBERS };
                tokens[at] = random.choose(from).to_owned();
            }
        }
    }
}
