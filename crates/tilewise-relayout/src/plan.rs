//! From two layouts to a nest of loops around one kernel.

use crate::{
    Error, ErrorKind,
    axes::{Axes, Terms},
    moves::Moves,
    nest::Nest,
    pack::Elements,
};
use tilewise::{ArrayShape, ElementKind, Shape, Tiled};

/// What becomes of the destination's padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Zero, whatever the source's padding holds.
    #[default]
    Zero,
    /// As the buffer was: only elements are written.
    Leave,
}

/// How to convert buffers from one layout to another; made once, run any number of times.
///
/// ```
/// use tilewise_relayout::Plan;
///
/// let row_major = "s8[2,3]{1,0}".parse()?;
/// let tiled = "s8[2,3]{1,0:T(2,2)}".parse()?;
/// let plan = Plan::new(&row_major, &tiled)?;
/// assert_eq!((plan.source_bytes(), plan.destination_bytes()), (6, 8));
///
/// let mut destination = [9; 8];
/// plan.run(&[1, 2, 3, 4, 5, 6], &mut destination)?;
/// assert_eq!(destination, [1, 2, 4, 5, 3, 0, 6, 0]); // padding is zero
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A plan holds a handful of loops, whatever the size of the array, and is `Send + Sync`. Its `Display` tells the loops in words.
#[derive(Clone, Debug)]
pub struct Plan {
    from: Shape,
    to: Shape,
    source_bytes: u64,
    destination_bytes: u64,
    padding: Padding,
    pub(crate) work: Work,
}

/// What a plan does, after its padding.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// The loops that both layouts agree on.
    pub(crate) nest: Nest,
    /// What is left over where the nest takes whole units only; done afterwards.
    pub(crate) edges: Vec<Edge>,
    /// The dimensions that have no common loops.
    pub(crate) irregular: Option<Box<Irregular>>,
    /// What becomes zero before anything is written.
    pub(crate) clear: Clear,
    /// The same as all of these, for a few elements.
    pub(crate) moves: Option<Moves>,
}

/// Padding that the nest does not write on its way.
#[derive(Clone, Debug)]
pub(crate) enum Clear {
    /// None.
    Nothing,
    /// What this nest over the destination alone leaves out.
    Around(Box<Nest>),
    /// Some that no loops find: all of the destination.
    Everything,
}

/// A nest that starts at offsets of its own, in what its strides count.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) source: u64,
    pub(crate) destination: u64,
    pub(crate) nest: Nest,
}

/// The dimensions that are walked index by index around the nest.
#[derive(Clone, Debug)]
pub(crate) struct Irregular {
    /// All bounds of the array; 1 for those that the nest covers.
    pub(crate) bounds: Vec<u64>,
    pub(crate) source: Terms,
    pub(crate) destination: Terms,
}

/// Buffers are shorter than this on every machine, so strides in bits stay far inside 64 bits.
const LONGEST_BUFFER: u64 = 1 << 58;

impl Plan {
    /// A plan from one layout to another of the same dimensions and element type; the destination's padding will be zero.
    ///
    /// # Errors
    /// [`ErrorKind::ShapeMismatch`], [`ErrorKind::UnsupportedElementSize`], and [`ErrorKind::Layout`] for whatever
    /// [`Tiled::new`] refuses.
    pub fn new(from: &Shape, to: &Shape) -> Result<Self, Error> {
        Self::with_padding(from, to, Padding::Zero)
    }

    /// [`Plan::new`], with a choice of what becomes of the destination's padding.
    ///
    /// # Errors
    /// As for [`Plan::new`].
    pub fn with_padding(from: &Shape, to: &Shape, padding: Padding) -> Result<Self, Error> {
        let (source, destination) = (Tiled::new(from)?, Tiled::new(to)?);
        let same = source.array().element_type() == destination.array().element_type()
            && source.logical_dimensions() == destination.logical_dimensions();
        if !same {
            let message =
                format!("`{from}` and `{to}` are different arrays: dimensions and element type must be the same");
            return Err(Error::new(ErrorKind::ShapeMismatch, message));
        }
        let (source_bytes, destination_bytes) = (source.physical_bytes(), destination.physical_bytes());
        let elements = elements(&source, &destination)?;
        let empty = source.tiled_elements() == 0 || source_bytes.max(destination_bytes) > LONGEST_BUFFER;
        let work = if empty { Work::nothing() } else { Work::of(&source, &destination, elements, padding) };
        Ok(Self { from: from.clone(), to: to.clone(), source_bytes, destination_bytes, padding, work })
    }

    /// The exact length of the buffer to read, in bytes.
    #[must_use]
    pub fn source_bytes(&self) -> u64 {
        self.source_bytes
    }

    /// The exact length of the buffer to write, in bytes.
    #[must_use]
    pub fn destination_bytes(&self) -> u64 {
        self.destination_bytes
    }

    /// The shape and layout of the buffer to read.
    #[must_use]
    pub fn from(&self) -> &Shape {
        &self.from
    }

    /// The shape and layout of the buffer to write.
    #[must_use]
    pub fn to(&self) -> &Shape {
        &self.to
    }

    /// What becomes of the destination's padding.
    #[must_use]
    pub fn padding(&self) -> Padding {
        self.padding
    }
}

/// The stored widths of both sides, checked against the type.
fn elements(source: &Tiled, destination: &Tiled) -> Result<Elements, Error> {
    let element_type = source.array().element_type();
    let bits = u64::from(element_type.bits());
    let width = |array: &ArrayShape| {
        let given = array.layout().and_then(|layout| layout.element_size_in_bits());
        match given {
            Some(given) if given < bits => Err(Error::new(
                ErrorKind::UnsupportedElementSize,
                format!("`E({given})` can't hold {element_type}, which has {bits} bits"),
            )),
            _ => Ok(given.unwrap_or(u64::from(element_type.natural_bits()))),
        }
    };
    let signed = element_type.kind() == ElementKind::Signed;
    Ok(Elements { bits, source: width(source.array())?, destination: width(destination.array())?, signed })
}

impl Work {
    fn nothing() -> Self {
        Self { nest: Nest::nothing(), edges: Vec::new(), irregular: None, clear: Clear::Nothing, moves: None }
    }

    fn of(source: &Tiled, destination: &Tiled, elements: Elements, padding: Padding) -> Self {
        let mut axes = Axes::of(source, destination);
        let count: u64 = source.logical_dimensions().iter().product();
        let padded = padding == Padding::Zero
            && (destination.physical_elements() != count
                || destination.physical_bytes() * 8 != count * elements.destination);
        let whole = axes.irregular.is_empty();
        let irregular = (!whole).then(|| {
            let mut bounds = vec![1; source.logical_dimensions().len()];
            for &dimension in &axes.irregular {
                bounds[dimension] = source.logical_dimensions()[dimension];
            }
            Box::new(Irregular {
                bounds,
                source: Terms::of(source, &axes.irregular),
                destination: Terms::of(destination, &axes.irregular),
            })
        });
        let mut edges = Vec::new();
        if let (true, Some((number, grain))) = (whole, Nest::ragged_grain(&axes, elements)) {
            let at = axes.bounds[number] / grain * grain;
            let (rest, source, destination) = axes.cut(number, at);
            let nest = Nest::of(&rest, elements, false);
            edges.push(Edge { source: source * nest.scale, destination: destination * nest.scale, nest });
        }
        let nest = Nest::of(&axes, elements, padded && whole);
        let clear = if !padded || nest.fills {
            Clear::Nothing
        } else {
            let alone = Axes::of(destination, destination);
            let around = Nest::of(&alone, Elements { source: elements.destination, ..elements }, true);
            let finds_all = alone.irregular.is_empty() && around.fills;
            if finds_all { Clear::Around(Box::new(around)) } else { Clear::Everything }
        };
        let moves = Moves::of(source, destination, elements, padded);
        Self { nest, edges, irregular, clear, moves }
    }
}

pub(crate) fn length_mismatch(which: &str, given: usize, wanted: u64) -> Error {
    let message = format!("the {which} has {given} bytes, its layout takes {wanted}");
    Error::new(ErrorKind::BufferLengthMismatch, message)
}
