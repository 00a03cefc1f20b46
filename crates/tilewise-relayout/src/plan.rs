//! From two layouts to a nest of loops around one kernel.

use crate::{
    Error, ErrorKind,
    cpu::Cpu,
    joint_digits::{JointDigits, Terms},
    nest::Nest,
    scalar::Elements,
    small::SmallArray,
    tuning::{Mechanism, Tuning},
};
use tilewise::{ElementKind, Shape, Tiled};

/// The treatment of the destination's padding.
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
/// A plan holds a handful of loops, whatever the size of the array, and is `Send + Sync`. Its `Display` lists them.
#[derive(Clone, Debug)]
pub struct Plan {
    shapes: [Shape; 2],
    /// Both layouts, computed.
    pub(crate) tiled: [Tiled; 2],
    pub(crate) elements: Elements,
    padding: Padding,
    pub(crate) cpu: Cpu,
    pub(crate) work: Work,
}

/// The work of a plan, for its padding.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// The loops that both layouts agree on.
    pub(crate) nest: Nest,
    /// The rest that a nest of whole units leaves over; done afterwards.
    pub(crate) edges: Vec<Edge>,
    /// The dimensions that have no common loops.
    pub(crate) irregular: Option<Box<Irregular>>,
    /// The padding to clear before anything is written.
    pub(crate) clear: Clear,
    /// Replaces all of these if there are few elements.
    pub(crate) small: Option<SmallArray>,
}

/// Padding that the nest does not write on its way.
#[derive(Clone, Debug)]
pub(crate) enum Clear {
    /// None.
    Nothing,
    /// The bytes that this nest over the destination alone leaves out.
    Around(Box<Nest>),
    /// Padding that no loops find: all of the destination is cleared.
    Everything,
}

/// A nest with start offsets of its own, in the unit of its strides.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) source_offset: u64,
    pub(crate) destination_offset: u64,
    pub(crate) nest: Nest,
}

/// The dimensions that are walked index by index around the nest.
#[derive(Clone, Debug)]
pub(crate) struct Irregular {
    /// All bounds of the array; 1 for those that the nest covers.
    pub(crate) bounds: Vec<u64>,
    pub(crate) source_terms: Terms,
    pub(crate) destination_terms: Terms,
}

/// Buffers are shorter than this on every machine, so strides in bits stay far inside 64 bits.
const LONGEST_BUFFER: u64 = 1 << 58;

impl Plan {
    /// A plan from one layout to another of the same dimensions and element type; the destination's padding will be zero.
    ///
    /// # Errors
    /// [`ErrorKind::ShapeMismatch`], [`ErrorKind::UnsupportedElementSize`], and [`ErrorKind::Layout`] for all shapes
    /// that [`Tiled::new`] refuses.
    pub fn new(from: &Shape, to: &Shape) -> Result<Self, Error> {
        Self::of_shapes([from.clone(), to.clone()], [Tiled::new(from)?, Tiled::new(to)?])
    }

    /// [`Plan::new`] for computed layouts.
    ///
    /// # Errors
    /// As for [`Plan::new`], except [`ErrorKind::Layout`].
    pub fn of_tiled(from: Tiled, to: Tiled) -> Result<Self, Error> {
        Self::of_shapes([&from, &to].map(|tiled| Shape::from(tiled.array().clone())), [from, to])
    }

    fn of_shapes(shapes: [Shape; 2], tiled: [Tiled; 2]) -> Result<Self, Error> {
        let [source, destination] = &tiled;
        let same = source.array().element_type() == destination.array().element_type()
            && source.logical_dimensions() == destination.logical_dimensions();
        if !same {
            let [from, to] = &shapes;
            let message =
                format!("`{from}` and `{to}` are different arrays: dimensions and element type must be the same");
            return Err(Error::new(ErrorKind::ShapeMismatch, message));
        }
        let elements = elements(source, destination)?;
        let plan = Self { shapes, tiled, elements, padding: Padding::Zero, cpu: Cpu::detect(), work: Work::nothing() };
        Ok(plan.with_work())
    }

    /// Sets the treatment of the destination's padding.
    #[must_use]
    pub fn with_padding(self, padding: Padding) -> Self {
        Self { padding, ..self }.with_work()
    }

    /// Sets the CPU.
    ///
    /// # Panics
    /// If this machine does not have the CPU's instructions.
    #[cfg(feature = "unstable-testing")]
    #[must_use]
    pub fn with_cpu(self, cpu: Cpu) -> Self {
        assert!(cpu.level.is_available(), "this CPU has no {:?}", cpu.level);
        Self { cpu, ..self }.with_work()
    }

    fn with_work(self) -> Self {
        let [source, destination] = &self.tiled;
        let longest = source.physical_bytes().max(destination.physical_bytes());
        let work = if source.tiled_elements() == 0 || longest > LONGEST_BUFFER {
            Work::nothing()
        } else {
            Work::of(source, destination, self.elements, self.padding, &self.cpu.tuning)
        };
        Self { work, ..self }
    }

    /// The exact length of the buffer to read, in bytes.
    #[must_use]
    pub fn source_bytes(&self) -> u64 {
        self.tiled[0].physical_bytes()
    }

    /// The exact length of the buffer to write, in bytes.
    #[must_use]
    pub fn destination_bytes(&self) -> u64 {
        self.tiled[1].physical_bytes()
    }

    /// The shape and layout of the buffer to read.
    #[must_use]
    pub fn from(&self) -> &Shape {
        &self.shapes[0]
    }

    /// The shape and layout of the buffer to write.
    #[must_use]
    pub fn to(&self) -> &Shape {
        &self.shapes[1]
    }

    /// The computed layout of the buffer to read.
    #[must_use]
    pub fn source_layout(&self) -> &Tiled {
        &self.tiled[0]
    }

    /// The computed layout of the buffer to write.
    #[must_use]
    pub fn destination_layout(&self) -> &Tiled {
        &self.tiled[1]
    }

    /// The treatment of the destination's padding.
    #[must_use]
    pub fn padding(&self) -> Padding {
        self.padding
    }
}

/// The stored widths of both sides, checked against the type.
fn elements(source: &Tiled, destination: &Tiled) -> Result<Elements, Error> {
    let element_type = source.array().element_type();
    let bits = u64::from(element_type.bits());
    for tiled in [source, destination] {
        let stored = tiled.stored_bits();
        if stored < bits {
            let message = format!("`E({stored})` can't hold {element_type}, which has {bits} bits");
            return Err(Error::new(ErrorKind::UnsupportedElementSize, message));
        }
    }
    let signed = element_type.kind() == ElementKind::Signed;
    Ok(Elements { bits, source_bits: source.stored_bits(), destination_bits: destination.stored_bits(), signed })
}

impl Work {
    fn nothing() -> Self {
        Self { nest: Nest::nothing(), edges: Vec::new(), irregular: None, clear: Clear::Nothing, small: None }
    }

    fn of(source: &Tiled, destination: &Tiled, elements: Elements, padding: Padding, tuning: &Tuning) -> Self {
        let mut joint = JointDigits::of(source, destination);
        let count: u64 = source.logical_dimensions().iter().product();
        let padded = padding == Padding::Zero
            && (destination.physical_elements() != count
                || destination.physical_bytes() * 8 != count * elements.destination_bits);
        let whole = joint.irregular.is_empty();
        let irregular = (!whole).then(|| {
            let mut bounds = vec![1; source.logical_dimensions().len()];
            for &dimension in &joint.irregular {
                bounds[dimension] = source.logical_dimensions()[dimension];
            }
            Box::new(Irregular {
                bounds,
                source_terms: Terms::of(source, &joint.irregular),
                destination_terms: Terms::of(destination, &joint.irregular),
            })
        });
        let mut edges = Vec::new();
        if let (true, Some((number, grain))) = (whole, Nest::ragged_grain(&joint, elements)) {
            let at = joint.bounds[number] / grain * grain;
            let (rest, source_offset, destination_offset) = joint.cut(number, at);
            let nest = Nest::of(&rest, elements, false, tuning);
            let (source_offset, destination_offset) = (source_offset * nest.scale, destination_offset * nest.scale);
            edges.push(Edge { source_offset, destination_offset, nest });
        }
        let nest = Nest::of(&joint, elements, padded && whole, tuning);
        let clear = if !padded || nest.fills {
            Clear::Nothing
        } else {
            let alone = JointDigits::of(destination, destination);
            let elements = Elements { source_bits: elements.destination_bits, ..elements };
            let around = Nest::of(&alone, elements, true, tuning);
            let finds_all = alone.irregular.is_empty() && around.fills;
            if finds_all { Clear::Around(Box::new(around)) } else { Clear::Everything }
        };
        let small =
            SmallArray::of(source, destination, elements, padded).filter(|_| tuning.has(Mechanism::SmallArrays));
        Self { nest, edges, irregular, clear, small }
    }
}

pub(crate) fn length_mismatch(which: &str, given: usize, wanted: u64) -> Error {
    let message = format!("the {which} has {given} bytes, its layout takes {wanted}");
    Error::new(ErrorKind::BufferLengthMismatch, message)
}
