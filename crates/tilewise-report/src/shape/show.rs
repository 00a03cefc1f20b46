//! A shape and its layout in words and numbers.

use super::{
    hex::hex,
    input::{Reader, with_layouts},
    labelled::Labelled,
};
use crate::findings::causes_in_words;
use crate::{
    Terminal, WriteText,
    style::{FAINT, STRONG, bytes_both, percent, product, share, styled, times, waste_style},
};
use serde::Serialize;
use std::{
    borrow::Cow,
    io::{self, Write},
};
use tilewise::{
    ArrayShape, Error, Layout, Shape, ShapeKind, Tile, Tiled,
    tpu::{self, Generation, memory_space_name},
};
use tilewise_audit::Failure;
use tilewise_hlo::OperationLine;

/// The summary of a shape in `tilewise show`. It serialises as the fields of its JSON.
///
/// ```
/// use tilewise_report::{ShapeSummary, WriteText};
///
/// let summary = ShapeSummary::of(&"f32[3,5]{1,0:T(2,2)}".parse()?);
/// assert!(summary.to_text(80).contains("24 elements"));
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct ShapeSummary {
    shape: String,
    kind: &'static str,
    #[serde(flatten)]
    array: Option<ArrayFields>,
    #[serde(flatten)]
    sizes: Sizes,
    #[serde(skip_serializing_if = "Option::is_none")]
    leaves: Option<Vec<Leaf>>,
    /// The operation of a line of HLO text, with this shape as its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<Operation>,
    #[serde(skip)]
    source: Shape,
    /// Whether the layout was not written, and is XLA's default.
    #[serde(skip)]
    is_open: bool,
}

/// The operation of a line of HLO text.
#[derive(Clone, Debug, Serialize)]
struct Operation {
    name: String,
    opcode: String,
    operands: Vec<Operand>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// The called computation.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Operand {
    name: String,
    /// The summary of its shape; null unless the shape stands in front of the name.
    #[serde(rename = "shape")]
    summary: Option<ShapeSummary>,
}

/// The fields of an array that need no sizes.
#[derive(Clone, Debug, Serialize)]
struct ArrayFields {
    element_type: &'static str,
    dimensions: Vec<Option<u64>>,
    dynamic_dimensions: Vec<bool>,
    minor_to_major: Vec<usize>,
    order: Option<&'static str>,
    /// Null is `*`.
    tiles: Vec<Vec<Option<u64>>>,
    tail_padding_alignment: u64,
    /// Null where the layout names none.
    element_size_in_bits: Option<u64>,
    memory_space: u8,
    memory_space_name: Cow<'static, str>,
    true_rank: usize,
}

/// Null where sizes can't be computed; `sizes_unavailable` says why.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Sizes {
    physical_dimensions: Option<Vec<u64>>,
    physical_elements: Option<u64>,
    logical_bytes: Option<u64>,
    pub(super) physical_bytes: Option<u64>,
    padding_bytes: Option<u64>,
    pub(super) expansion: Option<f64>,
    xla_array_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sizes_unavailable: Option<Unavailable>,
}

#[derive(Clone, Debug, Serialize)]
struct Unavailable {
    kind: &'static str,
    message: String,
}

/// One leaf of a tuple.
#[derive(Clone, Debug, Serialize)]
struct Leaf {
    shape_index: Vec<usize>,
    #[serde(flatten)]
    summary: ShapeSummary,
}

impl ShapeSummary {
    /// The shape's canonical text.
    #[must_use]
    pub fn shape(&self) -> &str {
        &self.shape
    }

    pub(super) fn source(&self) -> &Shape {
        &self.source
    }

    pub(super) fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The summary of a shape as a person or a program writes it; of a line of HLO text that of its result, with those of its operands.
    ///
    /// # Errors
    /// Those of parsing, with the span.
    pub fn read(text: &str, reader: &mut Reader) -> Result<Self, Failure> {
        let shape = reader.shape_as_written(text)?;
        let operation = text.parse::<OperationLine>().ok();
        let operation = operation.map(|line| -> Result<Operation, Failure> {
            let operand = |operand: &tilewise_hlo::LineOperand| {
                let summary = operand.shape.clone().map(|shape| Self::of_written(shape, text)).transpose()?;
                Ok(Operand { name: operand.name.clone(), summary })
            };
            let operands = line.operands.iter().map(operand).collect::<Result<_, Failure>>()?;
            let attribute = |name| line.attribute(name).map(|value| value.trim_start_matches('%').to_owned());
            let (kind, calls) = (attribute("kind"), attribute("calls"));
            Ok(Operation { name: line.name, opcode: line.opcode, operands, kind, calls })
        });
        Ok(Self { operation: operation.transpose()?, ..Self::of_written(shape, text)? })
    }

    /// The summary of a shape whose layout may be missing.
    fn of_written(shape: Shape, text: &str) -> Result<Self, Failure> {
        let is_open = shape.as_array().is_some_and(|array| array.layout().is_none());
        Ok(Self { is_open, ..Self::of(&with_layouts(shape, text)?) })
    }

    /// The summary of a shape.
    #[must_use]
    pub fn of(shape: &Shape) -> Self {
        let leaves = matches!(shape.kind(), ShapeKind::Tuple).then(|| {
            shape.leaves().map(|(shape_index, leaf)| Leaf { shape_index, summary: Self::of(&leaf) }).collect::<Vec<_>>()
        });
        let sizes = match &leaves {
            Some(leaves) => Sizes::total(leaves),
            None => Sizes::of(shape),
        };
        Self {
            shape: shape.to_string(),
            kind: shape.kind().name(),
            array: shape.as_array().map(ArrayFields::of),
            sizes,
            leaves,
            operation: None,
            source: shape.clone(),
            is_open: false,
        }
    }
}

impl ArrayFields {
    fn of(array: &ArrayShape) -> Self {
        let space = array.memory_space();
        Self {
            element_type: array.element_type().name(),
            dimensions: array.dimensions().iter().map(|d| d.bound()).collect(),
            dynamic_dimensions: array.dimensions().iter().map(|d| d.is_dynamic()).collect(),
            minor_to_major: array.layout().map_or(Vec::new(), |layout| layout.minor_to_major().to_vec()),
            order: array.layout().filter(|_| array.rank() > 0).and_then(Layout::order_name),
            tiles: array.layout().map_or(&[][..], Layout::tiles).iter().map(tile_sizes).collect(),
            tail_padding_alignment: array.layout().map_or(1, Layout::tail_padding_alignment),
            element_size_in_bits: array.layout().and_then(Layout::element_size_in_bits),
            memory_space: space,
            memory_space_name: memory_space_name(space),
            true_rank: array.true_rank(),
        }
    }
}

fn tile_sizes(tile: &Tile) -> Vec<Option<u64>> {
    tile.dimensions().iter().map(|dimension| dimension.size()).collect()
}

impl Sizes {
    fn of(shape: &Shape) -> Self {
        let tiled = match Tiled::new(shape) {
            Ok(tiled) => tiled,
            Err(error) => return Self::unavailable(&error, shape.as_array().and_then(ArrayShape::xla_array_size)),
        };
        Self {
            physical_dimensions: Some(tiled.physical_dimensions().to_vec()),
            physical_elements: Some(tiled.physical_elements()),
            logical_bytes: Some(tiled.logical_bytes()),
            physical_bytes: Some(tiled.physical_bytes()),
            padding_bytes: Some(tiled.padding_bytes()),
            expansion: Some(tiled.expansion()),
            xla_array_size: tiled.array().xla_array_size(),
            sizes_unavailable: None,
        }
    }

    fn unavailable(error: &Error, xla_array_size: Option<u64>) -> Self {
        let unavailable = Unavailable { kind: error.kind().as_str(), message: error.to_string() };
        Self { xla_array_size, sizes_unavailable: Some(unavailable), ..Self::default() }
    }

    /// The sum over the arrays of a tuple; tokens and opaque values have no size.
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    fn total(leaves: &[Leaf]) -> Self {
        let mut total = Self { logical_bytes: Some(0), physical_bytes: Some(0), ..Self::default() };
        for leaf in leaves.iter().filter(|leaf| leaf.summary.array.is_some()) {
            let sizes = &leaf.summary.sizes;
            let add =
                |sum: Option<u64>, part: Option<u64>| sum?.checked_add(part?).filter(|&s| s <= tilewise::MAX_SIZE);
            total.logical_bytes = add(total.logical_bytes, sizes.logical_bytes);
            total.physical_bytes = add(total.physical_bytes, sizes.physical_bytes);
            if total.sizes_unavailable.is_none() && total.physical_bytes.is_none() {
                let (kind, message) = match &sizes.sizes_unavailable {
                    Some(why) => (why.kind, format!("element {:?}: {}", leaf.shape_index, why.message)),
                    None => ("overflow", "the elements of the tuple add up to more than 2^63 − 1 bytes".to_owned()),
                };
                total.sizes_unavailable = Some(Unavailable { kind, message });
            }
        }
        if let (Some(logical), Some(physical)) = (total.logical_bytes, total.physical_bytes) {
            total.padding_bytes = Some(physical - logical);
            total.expansion = Some(if logical == 0 { 1.0 } else { physical as f64 / logical as f64 });
        }
        total
    }
}

/// Bytes of an array's data where no layout is written.
pub(crate) fn open_sizes(shape: &Shape) -> Option<u64> {
    Some(Tiled::new(&with_layouts(shape.clone(), "").ok()?).ok()?.logical_bytes())
}

impl Operation {
    /// `add.936 = add(exponential.183, broadcast.3115)`, and the computation that it calls.
    fn write(&self, out: &mut Labelled<'_>) -> io::Result<()> {
        let operands: Vec<&str> = self.operands.iter().map(|operand| &*operand.name).collect();
        let words = match &*self.opcode {
            "" => self.name.clone(),
            opcode => format!("{} = {opcode}({})", self.name, operands.join(", ")),
        };
        out.line("operation", &words)?;
        for (label, value) in [("kind", &self.kind), ("calls", &self.calls)] {
            if let Some(value) = value {
                out.line(label, value)?;
            }
        }
        Ok(())
    }
}

impl WriteText for ShapeSummary {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let out = &mut Labelled::new(terminal, out);
        self.write(out)?;
        let operands = self.operation.iter().flat_map(|operation| &operation.operands);
        let mut shapes = operands.filter_map(|operand| Some((&operand.name, operand.summary.as_ref()?)));
        shapes.try_for_each(|(name, summary)| {
            write!(out.to, "operand {name}: ")?;
            summary.write(out)
        })
    }
}

impl ShapeSummary {
    fn write(&self, out: &mut Labelled<'_>) -> io::Result<()> {
        writeln!(out.to, "{}", styled(STRONG, &self.shape))?;
        if let Some(operation) = &self.operation {
            operation.write(out)?;
        }
        match self.source.kind() {
            ShapeKind::Array(array) | ShapeKind::Buffer(array) => self.write_array(array, out)?,
            ShapeKind::Token => out.line("token", "orders operations; it holds no data")?,
            ShapeKind::Opaque => out.line("opaque", "a value that only custom calls can read")?,
            _ => self.write_tuple(out)?,
        }
        writeln!(out.to)
    }

    /// The shape's proto, its bytes in hexadecimal.
    #[must_use]
    pub fn proto_hex(&self) -> String {
        hex(&self.source.encode_proto())
    }

    /// The shape's proto in protobuf's text format.
    #[must_use]
    pub fn text_proto(&self) -> String {
        self.source.to_text_proto()
    }

    fn write_array(&self, array: &ArrayShape, out: &mut Labelled<'_>) -> io::Result<()> {
        out.line(self.kind, &array_in_words(array))?;
        for part in array.layout_in_words() {
            out.line(&part.text, &part.meaning)?;
        }
        if array.layout().is_some_and(|layout| layout.memory_space() == 0) {
            out.line("memory", "space 0, S(0): HBM on a TPU")?;
        }
        let sizes = &self.sizes;
        if let Some(why) = &sizes.sizes_unavailable {
            return out.line("size", &why.message);
        }
        if let Some(dimensions) = sizes.physical_dimensions.as_deref().filter(|d| !d.is_empty()) {
            let before = dimensions.iter().copied().fold(1, u64::saturating_mul);
            let all = sizes.physical_elements.unwrap_or_default();
            let padded = if all == before { String::new() } else { format!(", padded to {all}") };
            let elements = if before == 1 { "element" } else { "elements" };
            let counted = if dimensions.len() == 1 { String::new() } else { format!("{} = ", product(dimensions)) };
            out.line("in memory", &format!("{counted}{before} {elements}{padded}"))?;
        }
        self.write_sizes(out)?;
        match (sizes.xla_array_size, sizes.physical_bytes) {
            (Some(xla), Some(physical)) if xla != physical => {
                out.line("XLA's ArraySize", &format!("{} (it counts the first tile only)", bytes_both(xla)))?;
            }
            _ => {}
        }
        // The memories that a compiler gives an array's tiles in: HBM and VMEM.
        if array.layout().is_some_and(|layout| layout.tiles().is_empty() && layout.memory_space() < 2)
            && array.rank() > 0
        {
            self.write_on_tpus(out)?;
        }
        let causes =
            Tiled::of_array(array).map(|tiled| causes_in_words(&tilewise_audit::causes(&tiled))).unwrap_or_default();
        for (position, cause) in causes.iter().enumerate() {
            out.line(if position == 0 { "cause" } else { "" }, cause)?;
        }
        Ok(())
    }

    fn write_tuple(&self, out: &mut Labelled<'_>) -> io::Result<()> {
        let leaves = self.leaves.as_deref().unwrap_or_default();
        out.line("tuple", &format!("{} leaves", leaves.len()))?;
        for leaf in leaves {
            let path: Vec<String> = leaf.shape_index.iter().map(usize::to_string).collect();
            let size = leaf.summary.sizes.physical_bytes.map_or_else(|| "-".to_owned(), bytes_both);
            out.line(&format!("{{{}}}", path.join(",")), &format!("{}  {}", leaf.summary.shape, styled(FAINT, size)))?;
        }
        match &self.sizes.sizes_unavailable {
            Some(why) => out.line("size", &why.message),
            None => self.write_sizes(out),
        }
    }

    fn write_sizes(&self, out: &mut Labelled<'_>) -> io::Result<()> {
        let Sizes { logical_bytes: Some(logical), physical_bytes: Some(physical), .. } = self.sizes else {
            return Ok(());
        };
        let padding = physical - logical;
        let expansion = self.sizes.expansion.unwrap_or(1.0);
        out.line("logical size", &bytes_both(logical))?;
        out.line("physical size", &bytes_both(physical))?;
        if padding == 0 {
            return out.line("padding", "none");
        }
        let of_it = percent(share(padding, physical));
        let words = format!("{}, {of_it} of it, {} the data", bytes_both(padding), times(expansion));
        out.line("padding", &styled(waste_style(expansion), words))
    }

    /// The layouts that TPUs would give a shape without tiles, in the order that was written or in the one that their
    /// compiler picks: by the rule since v4, and by that of v2 and v3 where it differs.
    fn write_on_tpus(&self, out: &mut Labelled<'_>) -> io::Result<()> {
        let written = if self.is_open { self.source.without_layout().to_string() } else { self.source.to_string() };
        let Ok(written) = Shape::parse_as_written(&written) else { return Ok(()) };
        let mut shown = None;
        for (name, generation) in [("on a v5e", Generation::V5e), ("on a v3", Generation::V3)] {
            let Ok(predicted) = tpu::predict(&written, generation).map(|prediction| prediction.shape) else { continue };
            let Some(Ok(sizes)) = predicted.as_array().map(ArrayShape::sizes) else { continue };
            if shown.as_ref() == Some(&predicted) {
                continue;
            }
            let expansion = sizes.expansion();
            let times = match sizes.padding_bytes() {
                0 => "no padding".to_owned(),
                _ => styled(waste_style(expansion), format!("{} the data", times(expansion))),
            };
            out.line(name, &format!("{predicted}, {}, {times}", bytes_both(sizes.physical_bytes)))?;
            shown = Some(predicted);
        }
        Ok(())
    }
}

/// `bf16, 16 bits, 300 (y) × 500 (x)`, and how many of the dimensions count where some have size 1.
fn array_in_words(array: &ArrayShape) -> String {
    let element_type = array.element_type();
    let (bits, stored) = (u64::from(element_type.bits()), array.stored_bits());
    let mut in_words = if bits == 1 { "1 bit".to_owned() } else { format!("{bits} bits") };
    if stored != bits {
        in_words += &format!(", stored in {stored} bits");
    }
    let dimensions: Vec<String> = array
        .dimensions()
        .iter()
        .enumerate()
        .map(|(number, dimension)| match array.dimension_letter(number) {
            Some(letter) => format!("{dimension} ({letter})"),
            None => dimension.to_string(),
        })
        .collect();
    let (rank, true_rank) = (array.rank(), array.true_rank());
    let counted = match true_rank {
        _ if true_rank == rank => String::new(),
        1 => "; 1 true dimension, of a size that is not 1".to_owned(),
        _ => format!("; {true_rank} true dimensions, of sizes that are not 1"),
    };
    match &dimensions[..] {
        [] => format!("one {element_type}, {in_words}"),
        _ => format!("{element_type}, {in_words}, {}{counted}", dimensions.join(" × ")),
    }
}
