//! One allocation, argument or output of a message.

use tilewise::{
    Shape, Sizes,
    tpu::{self, Generation},
};

use crate::text::instruction::{quotation_length, shape_length};
use crate::text::size::PrintedSize;

/// The list that an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Section {
    /// `Largest program allocations in …`; also the one allocation of a message without lists.
    Allocations,
    /// `Largest program arguments and outputs in …`.
    ArgumentsAndOutputs,
}

impl Section {
    /// A stable name in snake case, for machines.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allocations => "allocations",
            Self::ArgumentsAndOutputs => "arguments_and_outputs",
        }
    }
}

/// A shape as printed and as parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenShape {
    /// The shape as printed.
    pub text: String,
    /// The shape as written, without a layout if none is printed; an error if it can't be read. A layout that was cut
    /// is completed if a TPU's tiles begin like it and take the printed size.
    pub parsed: Result<Shape, tilewise::Error>,
}

impl WrittenShape {
    pub(crate) fn new(text: String) -> Self {
        let parsed = Shape::parse_as_written(&text);
        Self { text, parsed }
    }

    /// A shape printed in another notation than XLA's; `hlo` is XLA's.
    pub(crate) fn of(text: String, hlo: &str) -> Self {
        Self { parsed: Shape::parse_as_written(hlo), text }
    }

    /// Bytes of the elements without padding; `None` if unknown.
    pub(crate) fn logical_bytes(&self) -> Option<u64> {
        let array = self.parsed.as_ref().ok()?.as_array()?;
        let mut bounds = array.dimensions().iter().map(|dimension| dimension.bound());
        let elements = bounds.try_fold(1_u64, |all, bound| all.checked_mul(bound?))?;
        Some(elements.checked_mul(u64::from(array.element_type().bits()))?.div_ceil(8))
    }

    /// The most bytes that it takes in tiles, whatever its layout: two dimensions are padded, to 128 and 64 places, or one
    /// to 1024. `None` if unknown.
    pub(crate) fn most_bytes(&self) -> Option<u64> {
        let bytes = self.logical_bytes()?;
        let bounds: Option<Vec<u64>> = self.parsed.as_ref().ok()?.bounds();
        let bounds = bounds?;
        let padded = |all: u128, bound: u64, to: u64| {
            let places = u128::from(bound.checked_next_multiple_of(to)?);
            Some(all.checked_mul(places)? / u128::from(bound.max(1)))
        };
        let of_pair = |minor: usize| {
            let others = bounds.iter().enumerate().filter(move |(at, _)| *at != minor).map(|(_, bound)| *bound);
            let second =
                others.max_by_key(|bound| bound.checked_next_multiple_of(64).map_or(u64::MAX, |to| to / bound.max(&1)));
            let all = padded(u128::from(bytes), bounds[minor], 128)?;
            padded(all, second?, 64)
        };
        let most = match bounds.len() {
            0 | 1 => padded(u128::from(bytes), bounds.first().copied().unwrap_or(1), 1024),
            rank => (0..rank).filter_map(of_pair).max(),
        };
        most.and_then(|most| u64::try_from(most).ok())
    }

    /// Completes a layout that was cut by a TPU's default tiles, if the text begins them and they take `size`.
    pub(crate) fn repair(&mut self, size: &PrintedSize) {
        if self.parsed.is_ok() || self.text.ends_with('}') {
            return;
        }
        let Some((bounds, layout)) = self.text.split_once('{') else { return };
        // A last number may be cut itself, unless something follows it.
        let order: &str = layout.split(':').next().unwrap_or("");
        let candidates = [layout.contains(':').then(|| format!("{bounds}{{{order}}}")), Some(bounds.to_owned())];
        let shapes = candidates.into_iter().flatten().filter_map(|text| Shape::parse_as_written(&text).ok());
        // The rule since v4, and the one before.
        let mut whole = shapes.flat_map(|shape| {
            [Generation::V5e, Generation::V3].map(|generation| Some(tpu::predict(&shape, generation).ok()?.shape))
        });
        let takes = |shape: &Shape| Some(shape.as_array()?.sizes().ok()?.physical_bytes);
        let fits = |shape: &Shape| {
            shape.to_string().starts_with(&self.text) && takes(shape).is_some_and(|bytes| size.agrees_with(bytes))
        };
        if let Some(whole) = whole.find_map(|shape| shape.filter(fits)) {
            self.parsed = Ok(whole);
        }
    }
}

/// A buffer's origin in the program: the text after `Operator:`, attributes such as
/// `op_name="jit(f)/gather" source_file="model.py" source_line=12`.
///
/// ```
/// let text = "1. Size: 4.0K
///      Operator: op_name=\"jit(f)/gather\" source_file=\"model.py\" source_line=12
///      XLA label: gather = gather(x, y)";
/// let message = tilewise_oom::Message::parse(text)?;
/// let operator = message.entries[0].operator.as_ref().unwrap();
/// assert_eq!((operator.source_file(), operator.source_line()), (Some("model.py"), Some(12)));
/// assert_eq!(operator.get("op_name"), operator.op_name());
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operator {
    /// All attributes, as printed.
    pub text: String,
    /// Names and values in order, the values without their quotes.
    pub attributes: Vec<(String, String)>,
}

impl Operator {
    pub(crate) fn new(text: String) -> Self {
        let mut attributes = Vec::new();
        let mut rest = text.as_str();
        while let Some((name, value)) = rest.split_once('=') {
            let (value, after) = if let Some(quoted) = value.strip_prefix('"') {
                let end = quotation_length(quoted);
                (&quoted[..end], quoted.get(end + 1..).unwrap_or(""))
            } else {
                value.split_at(value.find(char::is_whitespace).unwrap_or(value.len()))
            };
            let name = name.rsplit(|c: char| c.is_whitespace() || c == ',').next().unwrap_or("");
            attributes.push((name.to_owned(), value.to_owned()));
            rest = after;
        }
        Self { text, attributes }
    }

    /// The value of an attribute, without its quotes.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The path of the operation in the traced program, `jit(gnn)/gather`.
    #[must_use]
    pub fn op_name(&self) -> Option<&str> {
        self.get("op_name")
    }

    /// The source file, where the message names one.
    #[must_use]
    pub fn source_file(&self) -> Option<&str> {
        self.get("source_file")
    }

    /// The line in the source file, from 1.
    #[must_use]
    pub fn source_line(&self) -> Option<u32> {
        self.get("source_line")?.parse().ok()
    }
}

/// The role of an entry of [`ArgumentsAndOutputs`](Section::ArgumentsAndOutputs) in the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interface {
    /// `Argument 2 index {0}`: the argument's number, and the place inside it if it is a tuple.
    Argument(u32, Vec<u32>),
    /// `Output index {1}`: the place inside the result.
    Output(Vec<u32>),
}

/// One allocation, argument or output.
///
/// Fields are `None` where the message leaves them out; [which lines are optional](crate#the-lists) depends on the
/// allocation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The list that holds the entry.
    pub section: Section,
    /// The number in front of it, from 1 in each list.
    pub number: Option<u32>,
    /// `Size:` the allocation's size, padding included.
    pub size: Option<PrintedSize>,
    /// `Operator:` its origin in the program.
    pub operator: Option<Operator>,
    /// `Shape:` its contents; absent for code (`overlays`).
    pub shape: Option<WrittenShape>,
    /// `Unpadded size:` the size of the elements alone.
    pub unpadded: Option<PrintedSize>,
    /// `Extra memory due to padding:` the difference of the two.
    pub padding: Option<PrintedSize>,
    /// The quotient of the two, to one decimal: `(10.7x expansion)`.
    pub expansion: Option<f64>,
    /// `XLA label:` an instruction, `Argument 0 index {}`, `overlays`, `constant literal`.
    pub label: Option<String>,
    /// `Allocation type:` `HLO temp`, `overlays`, `global`, `scoped`.
    pub allocation_type: Option<String>,
    /// `Tag:` a kernel's purpose for it.
    pub tag: Option<String>,
    /// Whether the entry is whole; `false` if the text was cut inside it.
    pub complete: bool,
}

impl Entry {
    pub(crate) fn new(section: Section, number: Option<u32>) -> Self {
        Self {
            section,
            number,
            size: None,
            operator: None,
            shape: None,
            unpadded: None,
            padding: None,
            expansion: None,
            label: None,
            allocation_type: None,
            tag: None,
            complete: false,
        }
    }

    /// Whether its size and its shape are of two allocations, because the lines between were lost: an allocation that
    /// is larger than its elements has a line for its padding.
    pub(crate) fn is_joined(&self) -> bool {
        let (Some(size), Some(unpadded), None) = (&self.size, &self.unpadded, &self.padding) else { return false };
        let is_its_own =
            || self.computed_unpadded_bytes().and_then(Result::ok).is_some_and(|own| unpadded.agrees_with(own));
        // Without tiles a shape's padding is unknown.
        let has_tiles = self.shape.as_ref().is_some_and(|shape| shape.text.contains(":T("));
        let disagrees = size.bytes() / 2 > unpadded.bytes() && self.agrees() == Some(false);
        self.complete && has_tiles && disagrees && is_its_own()
    }

    /// The two allocations that were joined, without the operator, whose owner is unknown.
    pub(crate) fn parted(self) -> [Self; 2] {
        let first = Self { size: self.size, ..Self::new(self.section, self.number) };
        [first, Self { size: None, operator: None, number: None, ..self }]
    }

    /// Whether larger entries came before it: lists are numbered from the largest on.
    pub(crate) fn is_of_the_tail(&self) -> bool {
        self.number.is_some_and(|number| number > 1)
    }

    pub(crate) fn is_scoped(&self) -> bool {
        self.allocation_type.as_deref() == Some("scoped")
    }

    /// Whether it is a Pallas kernel's own memory; its operands and results in HBM have another operator or another
    /// allocation type.
    pub(crate) fn is_of_kernel(&self) -> bool {
        let name = self.operator.as_ref().and_then(|operator| operator.get("op_name"));
        let is_called =
            || self.label.as_deref().is_some_and(|label| label.contains("custom_call_target=\"tpu_custom_call\""));
        (name.is_some_and(|name| name.ends_with("/pallas_call")) || is_called())
            && (self.is_scoped() || self.allocation_type.is_none() && !self.complete)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.size.is_none() && self.shape.is_none() && self.label.is_none()
    }

    /// The bytes that the shape takes by its own layout ([`Sizes::physical_bytes`]); `None` without a shape and for
    /// a tuple, whose entry is the table of its pointers alone.
    ///
    /// # Errors
    ///
    /// [`tilewise`]'s, where the shape can't be read or has no layout.
    ///
    /// ```
    /// let text = "Largest program allocations in hbm:
    ///   1. Size: 195.31M
    ///      Shape: f32[400000,12]{1,0:T(8,128)}
    ///      ==========================";
    /// let message = tilewise_oom::Message::parse(text)?;
    /// let entry = &message.entries[0];
    /// assert_eq!(entry.computed_bytes(), Some(Ok(204_800_000)));
    /// assert_eq!(entry.agrees(), Some(true));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn computed_bytes(&self) -> Option<Result<u64, tilewise::Error>> {
        Some(self.computed_sizes()?.map(|sizes| sizes.physical_bytes))
    }

    /// The bytes that the shape's elements take without padding; `None` and errors as for
    /// [`computed_bytes`](Entry::computed_bytes).
    ///
    /// # Errors
    ///
    /// [`tilewise`]'s, where the shape can't be read or has no layout.
    #[must_use]
    pub fn computed_unpadded_bytes(&self) -> Option<Result<u64, tilewise::Error>> {
        Some(self.computed_sizes()?.map(|sizes| sizes.logical_bytes))
    }

    fn computed_sizes(&self) -> Option<Result<Sizes, tilewise::Error>> {
        match &self.shape.as_ref()?.parsed {
            Ok(shape) => Some(shape.as_array()?.sizes()),
            Err(error) => Some(Err(error.clone())),
        }
    }

    /// Whether the printed size is, digit for digit, that of [`computed_bytes`](Entry::computed_bytes); `None` where
    /// there is nothing to compare.
    ///
    /// It differs for old compilers, which printed layouts without tiles, and may differ if several values share an
    /// allocation.
    #[must_use]
    pub fn agrees(&self) -> Option<bool> {
        let bytes = self.computed_bytes()?.ok()?;
        Some(self.size.as_ref()?.agrees_with(bytes))
    }

    /// The allocation's padding in bytes: by its shape if that takes the printed size, otherwise as printed; `None` if
    /// the shape can't be read and no padding is printed. Code and tables of pointers have 0.
    ///
    /// ```
    /// let text = "1. Size: 64.0K\n Shape: f32[128,3]{1,0\n Unpadded size: 1.5K\n ====";
    /// let entry = &tilewise_oom::Message::parse(text)?.entries[0];
    /// assert_eq!(entry.padding_bytes(), Some(62 * 1024 + 512));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn padding_bytes(&self) -> Option<u64> {
        let sizes = self.computed_sizes().and_then(Result::ok);
        let sizes = sizes.filter(|sizes| self.size.as_ref().is_none_or(|size| size.agrees_with(sizes.physical_bytes)));
        if let Some(sizes) = sizes {
            return Some(sizes.padding_bytes());
        }
        // A printed difference is rounded once more.
        let difference = || Some(self.size.as_ref()?.bytes().saturating_sub(self.unpadded.as_ref()?.bytes()));
        difference().or_else(|| Some(self.padding.as_ref()?.bytes())).or_else(|| {
            let is_array = self.shape.as_ref().is_some_and(|shape| !shape.text.starts_with('('));
            let is_cut = self.shape.is_none() && !self.complete && self.window().is_none();
            (!is_array && !is_cut).then_some(0)
        })
    }

    /// Whether it is an array with unknown padding, because its shape is cut off or can't be read.
    pub(crate) fn is_unread(&self) -> bool {
        let is_told = self.shape.is_some() || self.size.is_some();
        is_told && self.shape.as_ref().is_none_or(|shape| shape.parsed.is_err()) && self.padding_bytes().is_none()
    }

    /// The role of an argument or output in the program, from its label.
    ///
    /// ```
    /// use tilewise_oom::{Message, Interface};
    ///
    /// let message = Message::parse("1. Size: 4.0K\n XLA label: Argument 2 index {0,1}\n ====")?;
    /// assert_eq!(message.entries[0].interface(), Some(Interface::Argument(2, vec![0, 1])));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn interface(&self) -> Option<Interface> {
        let label = self.label.as_deref()?;
        let (what, index) = label.split_once("index {")?;
        let index = index.strip_suffix('}')?.split(',').map(str::trim).filter(|part| !part.is_empty());
        let index = index.map(str::parse).collect::<Result<_, _>>().ok()?;
        let mut words = what.split_whitespace();
        match (words.next(), words.next().map(str::parse)) {
            (Some("Argument"), Some(Ok(number))) => Some(Interface::Argument(number, index)),
            (Some("Output"), None) => Some(Interface::Output(index)),
            _ => None,
        }
    }

    /// The name and the opcode of the instruction that the label shows, without `%`.
    ///
    /// ```
    /// let text = "1. Size: 512B\n XLA label: copy-start.1 = copy-start(x.1)\n Allocation type: HLO temp\n ====";
    /// let message = tilewise_oom::Message::parse(text)?;
    /// assert_eq!(message.entries[0].instruction(), Some(("copy-start.1", "copy-start")));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn instruction(&self) -> Option<(&str, &str)> {
        let (name, definition) = self.label.as_deref()?.split_once(" = ")?;
        let (opcode, _) = definition[shape_length(definition)..].trim_start().split_once('(')?;
        let is_opcode = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let found = !opcode.is_empty() && opcode.bytes().all(is_opcode);
        found.then(|| (name.strip_prefix('%').unwrap_or(name), opcode))
    }
}
