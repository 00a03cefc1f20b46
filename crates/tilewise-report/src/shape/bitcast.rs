//! Whether the bytes of one array can be read as another.

use super::{
    input::{Pair, Reader, dimension_numbers, parse_index},
    packing::Reading,
};
use crate::{
    RemedyWords, Terminal, WriteText,
    findings::NO_VIEW,
    style::{FAINT, STRONG, listed, styled},
    text::write_wrapped,
};
use anstyle::Style;
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{
    BitcastAs, ByteSize, Counterexample, Mismatch, Relation, Shape, Tiled,
    tpu::{self, Generation},
};
use tilewise_audit::Failure;

/// The answer of `tilewise bitcast` to two shapes.
#[derive(Clone, Debug, Serialize)]
pub struct BitcastAnswer {
    from: String,
    to: String,
    bitcast: bool,
    relation: &'static str,
    permutation: Option<Vec<usize>>,
    /// The bounds of a reshape behind the permutation, and the permutation behind that.
    #[serde(skip_serializing_if = "Option::is_none")]
    reshape: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    then: Option<Vec<usize>>,
    /// Elements, where padding is exposed.
    #[serde(skip_serializing_if = "Option::is_none")]
    exposed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<u64>,
    reason: Option<String>,
    counterexample: Option<Element>,
    element_type_changed: bool,
    memory_space_changed: bool,
    /// Whether XLA's `==` holds.
    equal: bool,
    #[serde(skip)]
    found: Relation,
    /// A bitcast that holds although it was not asked for.
    #[serde(skip)]
    otherwise: Option<Relation>,
}

#[derive(Clone, Debug, Serialize)]
struct Element {
    index: Vec<u64>,
    to_index: Vec<u64>,
    from_offset: u64,
    to_offset: u64,
}

impl From<&Counterexample> for Element {
    fn from(element: &Counterexample) -> Self {
        Self {
            index: element.index.clone(),
            to_index: element.to_index.clone(),
            from_offset: element.from_offset,
            to_offset: element.to_offset,
        }
    }
}

impl BitcastAnswer {
    /// The relation of two layouts: element by element if they are of one array.
    ///
    /// # Errors
    /// Those of [`Self::of`].
    pub fn side_by_side(pair: &Pair) -> Result<Self, Failure> {
        let [first, second] = &pair.shapes;
        Self::of(pair, reading(first, second))
    }

    /// Whether the bytes of the first can be read as the second.
    ///
    /// # Errors
    /// A shape without sizes, or `undecided`.
    pub fn of(pair: &Pair, reading: BitcastAs) -> Result<Self, Failure> {
        let [from, to] = pair.tiled()?;
        let found = from.bitcast(&to, reading).map_err(|error| Failure::from(error).within(0..pair.length()))?;
        let otherwise = || from.bitcast(&to, BitcastAs::Any).ok().filter(Relation::is_bitcast);
        let (exposed, hidden) = match found {
            Relation::ExposesPadding { exposed, hidden } => (Some(exposed), Some(hidden)),
            _ => (None, None),
        };
        let (reshape, then) = match &found {
            Relation::TransposeReshape { bounds, then, .. } => (Some(bounds.clone()), Some(then.clone())),
            _ => (None, None),
        };
        let reason = match &found {
            Relation::None { reason, .. } => Some(reason.to_string()),
            _ => None,
        };
        let [first, second] = &pair.shapes;
        Ok(Self {
            from: first.to_string(),
            to: second.to_string(),
            bitcast: found.is_bitcast(),
            relation: found.as_str(),
            permutation: found.permutation().map(<[usize]>::to_vec),
            reshape,
            then,
            exposed,
            hidden,
            reason,
            counterexample: found.counterexample().map(Element::from),
            element_type_changed: first.element_type() != second.element_type(),
            memory_space_changed: from.array().memory_space() != to.array().memory_space(),
            equal: first == second,
            otherwise: if found.is_bitcast() { None } else { otherwise() },
            found,
        })
    }

    /// The answer in clauses: the relation's meaning, then details and notes.
    #[must_use]
    pub fn clauses(&self) -> Vec<String> {
        let first = in_words(&self.found);
        std::iter::once(first).chain(self.details()).chain(self.notes().map(str::to_owned)).collect()
    }

    /// An element that lies elsewhere, and the relation that would hold instead.
    fn details(&self) -> impl Iterator<Item = String> {
        let elsewhere = self.counterexample.as_ref().map(|element| {
            let (index, to_index) = (listed(&element.index), listed(&element.to_index));
            let Element { from_offset, to_offset, .. } = element;
            format!("({index}) is at offset {from_offset}; as ({to_index}) it would be at {to_offset}")
        });
        let otherwise = self.otherwise.as_ref();
        let otherwise = otherwise.map(|found| format!("it is a bitcast otherwise: {}", in_words(found)));
        elsewhere.into_iter().chain(otherwise)
    }

    /// Changes of the element type and the memory space.
    fn notes(&self) -> impl Iterator<Item = &'static str> {
        let element_type = self.element_type_changed.then_some("the bits are read as another element type");
        let memory_space =
            self.memory_space_changed.then_some("the memory spaces differ, so the bytes are copied anyway");
        element_type.into_iter().chain(memory_space).filter(|_| self.bitcast)
    }

    /// Whether the bytes can be read as the second.
    #[must_use]
    pub fn is_bitcast(&self) -> bool {
        self.bitcast
    }
}

impl WriteText for BitcastAnswer {
    fn write_text(&self, _: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} → {}", self.from, self.to)?;
        let verdict = if self.bitcast { "bitcast" } else { "no bitcast" };
        writeln!(out, "  {}: {}", styled(STRONG, verdict), in_words(&self.found))?;
        for words in self.details() {
            writeln!(out, "  {words}")?;
        }
        self.notes().try_for_each(|note| writeln!(out, "  {}", styled(FAINT, note)))
    }
}

/// The answer of `tilewise bitcast --views`: row-major views of the bytes of one array that a kernel can read instead
/// of the other, its operand.
#[derive(Clone, Debug, Serialize)]
pub struct FreeViews {
    from: String,
    to: String,
    /// The views, those that change the least of the kernel first.
    views: Vec<RemedyWords>,
}

impl FreeViews {
    /// The views of a pair of shapes: the first as its producer lays it out, the second as the kernel takes it.
    ///
    /// # Errors
    /// Shapes with other numbers of elements, or with bounds that aren't known.
    pub fn of(pair: &Pair, generation: Generation) -> Result<Self, Failure> {
        let [from, to] = &pair.shapes;
        let bounds: Option<Vec<u64>> = to.bounds();
        let wanted = to.element_type().zip(bounds);
        let found = wanted.and_then(|(element_type, bounds)| Reading::likeliest(from, element_type, &bounds));
        let Some(found) = found else {
            let failure = Failure::new("elements", "no transposes and reshapes make the one array of the other");
            return Err(failure.within(0..pair.length()));
        };
        Ok(Self { from: from.to_string(), to: to.to_string(), views: found.views(from, generation) })
    }

    /// Whether there are no views.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }
}

impl WriteText for FreeViews {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} → {}", self.from, self.to)?;
        if self.views.is_empty() {
            writeln!(out, "  {}", styled(STRONG, NO_VIEW))?;
        }
        for view in &self.views {
            write_wrapped(&view.sentence, Style::new(), ["  ", "    "], terminal.width, out)?;
            for line in view.code.iter().flat_map(|code| code.lines()) {
                writeln!(out, "      {}", styled(FAINT, line))?;
            }
        }
        Ok(())
    }
}

/// The layouts in which a reshape or a transpose is free.
#[derive(Clone, Debug, Serialize)]
pub struct FreeLayouts {
    from: String,
    /// The array in each layout that is free, the one with its own tiles first.
    layouts: Vec<String>,
    /// The reasons why no layout is free.
    obstacles: Vec<String>,
    /// The orders of the array with a free layout on a TPU, if its own order has no free layout.
    orders: Vec<FreeOrder>,
}

/// An array in another order, for which a reshape is free on a TPU.
#[derive(Clone, Debug, Serialize)]
struct FreeOrder {
    from: String,
    to: String,
    physical_bytes: u64,
}

/// Orders that the text names.
const SHOWN_ORDERS: usize = 4;

/// Layouts that the text names: there are more where a tile may have more rows or fewer.
const SHOWN_LAYOUTS: usize = 3;

impl FreeLayouts {
    /// The layouts in which a reshape of a shape to these dimensions is free, both as they are written; without one,
    /// the orders of the array that have one on this TPU.
    ///
    /// # Errors
    /// Those of parsing, and of dimensions with another number of elements.
    pub fn of_reshape(
        input: &str,
        dimensions: &str,
        generation: Generation,
        reader: &mut Reader,
    ) -> Result<Self, Failure> {
        let shape = reader.shape(input)?;
        let wanted = parse_index(dimensions)?;
        let found = shape.free_reshape(&wanted).map_err(|error| Failure::from(error).within(0..input.len()))?;
        let orders = match found.layouts.is_empty() {
            // A type that the TPU lacks has no free layout; with more dimensions than are tried, no free layout is
            // known.
            true => tpu::free_reshapes(&shape, &wanted, generation).unwrap_or_default(),
            false => Vec::new(),
        };
        let order = |found: tpu::TpuReshape| FreeOrder {
            from: found.from.to_string(),
            to: found.to.to_string(),
            physical_bytes: found.physical_bytes,
        };
        Ok(Self {
            orders: orders.into_iter().map(order).collect(),
            from: shape.to_string(),
            layouts: found.layouts.iter().map(Shape::to_string).collect(),
            obstacles: found.obstacles.iter().map(ToString::to_string).collect(),
        })
    }

    /// The layout in which a transpose of a shape to this order of dimensions is free, both as they are written; negative numbers count from
    /// the last dimension.
    ///
    /// # Errors
    /// Those of parsing, and of an invalid order of the dimensions.
    pub fn of_transpose(input: &str, order: &str, reader: &mut Reader) -> Result<Self, Failure> {
        let shape = reader.shape(input)?;
        let order = match shape.as_array() {
            Some(array) => dimension_numbers(order, array)?,
            None => Vec::new(),
        };
        let free = shape.free_transpose(&order).map_err(|error| Failure::from(error).within(0..input.len()))?;
        Ok(Self { from: shape.to_string(), layouts: vec![free.to_string()], obstacles: Vec::new(), orders: Vec::new() })
    }

    /// Whether there are no layouts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layouts.is_empty()
    }
}

impl WriteText for FreeLayouts {
    fn write_text(&self, _: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.from)?;
        if self.layouts.is_empty() {
            writeln!(out, "  {}", styled(STRONG, "no layout of the result makes this free"))?;
        }
        for layout in self.layouts.iter().take(SHOWN_LAYOUTS) {
            writeln!(out, "  free as {}", styled(STRONG, layout))?;
        }
        if let more @ 1.. = self.layouts.len().saturating_sub(SHOWN_LAYOUTS) {
            writeln!(out, "  and {more} more, with other tiles")?;
        }
        for obstacle in &self.obstacles {
            writeln!(out, "  {obstacle}")?;
        }
        for FreeOrder { from, to, physical_bytes } in self.orders.iter().take(SHOWN_ORDERS) {
            writeln!(out, "  free from {} as {to}, {}", styled(STRONG, from), ByteSize(*physical_bytes))?;
        }
        if let more @ 1.. = self.orders.len().saturating_sub(SHOWN_ORDERS) {
            writeln!(out, "  and from {more} more orders")?;
        }
        Ok(())
    }
}

/// The meaning of a relation, in a clause.
pub(crate) fn in_words(relation: &Relation) -> String {
    match relation {
        Relation::Identical => "every element is where it was".to_owned(),
        Relation::Reshape => "a reshape; the elements in row-major order are where they were".to_owned(),
        Relation::Transpose { permutation } => {
            format!("only if you wanted the transpose ({})", listed(permutation))
        }
        Relation::TransposeReshape { permutation, bounds, then } => {
            let transpose =
                |order: &[usize]| (!order.is_sorted()).then(|| format!("the transpose ({})", listed(order)));
            let reshape = Some(format!("the reshape to [{}]", listed(bounds)));
            let steps: Vec<String> = [transpose(permutation), reshape, transpose(then)].into_iter().flatten().collect();
            format!("only if you wanted {}", steps.join(", then "))
        }
        Relation::ExposesPadding { exposed, hidden } => match (exposed, hidden) {
            (0, 0) => "the same buffer, read as bytes".to_owned(),
            (exposed, 0) => padding_of(*exposed, ["second", "first"]),
            (0, hidden) => padding_of(*hidden, ["first", "second"]),
            (exposed, hidden) => {
                let are = if *hidden == 1 { "is" } else { "are" };
                format!("{}, and {hidden} of the first {are} of the second", padding_of(*exposed, ["second", "first"]))
            }
        },
        Relation::None { reason, counterexample } => match (reason, counterexample) {
            (Mismatch::PhysicalBytes { .. }, None) => format!("all elements lie alike, but {reason}"),
            _ => reason.to_string(),
        },
        _ => relation.as_str().to_owned(),
    }
}

fn padding_of(count: u64, [one, other]: [&str; 2]) -> String {
    let (elements, are) = if count == 1 { ("element", "is") } else { ("elements", "are") };
    format!("{count} {elements} of the {one} array {are} padding of the {other}")
}

/// The relation of the bytes of two shapes; `None` if a shape has no bytes, or the relation isn't known.
pub(crate) fn relation(first: &Shape, second: &Shape) -> Option<Relation> {
    Tiled::new(first).ok()?.bitcast(&Tiled::new(second).ok()?, reading(first, second)).ok()
}

/// The question about two layouts: of one array, whether each element is where it was; of two, whether the bytes can be
/// read as the other in any way.
fn reading(first: &Shape, second: &Shape) -> BitcastAs {
    if first.dimensions() == second.dimensions() { BitcastAs::Reshape } else { BitcastAs::Any }
}
