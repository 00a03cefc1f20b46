//! Axes: the correspondence of dimensions between a module's arrays.

mod relate;

use std::ops::Range;

use tilewise::Shape;

use crate::{Instruction, Module};

use super::{
    AxisId, Table,
    events::EventKind,
    factors::Array,
    reach::{Edges, Reached},
};

/// The dimensions of a module's arrays that are one: [`Factors`](super::factors::Factors) that operations, loops, calls
/// and fusions pass from array to array are one *axis*. If a reshape makes a dimension a product, so are all that are
/// one with it.
///
/// Axes ignore order: after a `sort`, a sorted dimension is still the same axis. The operations along it are its
/// [events](Self::events).
///
/// ```
/// use tilewise_hlo::{Module, dataflow::Dataflow};
///
/// let flow = Dataflow::new(&Module::parse("\
/// ENTRY main {
///   x = f32[8,4,32] parameter(0)
///   w = f32[32,16] parameter(1)
///   flat = f32[32,32] reshape(x)
///   ROOT y = f32[32,16] dot(flat, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
/// }")?);
/// let at = |name: &str| flow.module().instructions().find(|at| at.name() == name).unwrap();
/// let axes = flow.axes();
/// // The rows of the result are those of `x`, two dimensions of which are one of `flat`.
/// let rows = axes.of_dimension(&at("y"), 0, 0);
/// assert_eq!(rows, [axes.of_dimension(&at("x"), 0, 0), axes.of_dimension(&at("x"), 0, 1)].concat());
/// assert_eq!(rows.iter().map(|axis| axes.all()[*axis].size).collect::<Vec<_>>(), [8, 4]);
/// // The features of `x` are summed over with those of `w`, and the result has none.
/// assert_eq!(axes.of_dimension(&at("x"), 0, 2), axes.of_dimension(&at("w"), 0, 0));
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Axes {
    axes: Table<Axis, Axis>,
    /// For each dimension of instructions' arrays, the start of its axes in `parts`.
    slots: Vec<u32>,
    parts: Vec<AxisId>,
    events: Vec<Event>,
    /// For each instruction, its first slot and its form.
    instructions: Vec<(u32, u32)>,
    forms: Vec<Form>,
    edges: Edges,
}

/// An axis.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Axis {
    /// The number of its places, at least 2.
    pub size: u64,
    /// The start and the end of its own among all events.
    events: (u32, u32),
}

/// An instruction's operation along an axis, other than passing it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The axis.
    pub axis: AxisId,
    /// The [index](Instruction::index) of the instruction.
    pub instruction: usize,
    /// The kind of operation.
    pub kind: EventKind,
}

impl Axes {
    /// All axes.
    #[must_use]
    pub fn all(&self) -> &Table<Axis, Axis> {
        &self.axes
    }

    /// The axes whose product a dimension of an instruction's array is, from the major to the minor one: none if it has
    /// size 1, or doesn't exist. An array in a tuple is a leaf, by its number.
    #[must_use]
    pub fn of_dimension(&self, instruction: &Instruction<'_>, leaf: usize, dimension: usize) -> &[AxisId] {
        let slots = self.slots_of(instruction, leaf);
        slots.get(dimension..dimension + 2).map_or(&[], |ends| &self.parts[ends[0] as usize..ends[1] as usize])
    }

    /// The axes of each dimension of an array.
    pub fn of_array(&self, instruction: &Instruction<'_>, leaf: usize) -> impl Iterator<Item = &[AxisId]> {
        let ends = self.slots_of(instruction, leaf).windows(2);
        ends.map(|ends| &self.parts[ends[0] as usize..ends[1] as usize])
    }

    /// The axes of all dimensions of an array, one dimension after the other.
    #[must_use]
    pub fn in_array(&self, instruction: &Instruction<'_>, leaf: usize) -> &[AxisId] {
        match self.slots_of(instruction, leaf) {
            [first, .., last] => &self.parts[*first as usize..*last as usize],
            _ => &[],
        }
    }

    /// The starts in `parts` of the dimensions of an array, and the end of the last.
    fn slots_of(&self, instruction: &Instruction<'_>, leaf: usize) -> &[u32] {
        let form = self.instructions.get(instruction.index()).map(|(first, form)| (first, &self.forms[*form as usize]));
        let array = form.and_then(|(first, form)| Some((first, form, form.leaves.get(leaf)?)));
        array.map_or(&[], |(first, form, array)| {
            let first = *first as usize + form.slots_before[leaf] as usize;
            &self.slots[first..=first + array.bounds.len()]
        })
    }

    /// The number of arrays in an instruction's result.
    #[must_use]
    pub fn leaves(&self, instruction: usize) -> usize {
        self.instructions.get(instruction).map_or(0, |(_, form)| self.forms[*form as usize].leaves.len())
    }

    /// The events along an axis, in the order of the text.
    #[must_use]
    pub fn events(&self, axis: AxisId) -> &[Event] {
        let (start, end) = self.axes[axis].events;
        &self.events[start as usize..end as usize]
    }

    /// The arrays that follow from these, given as instructions with numbers of leaves, and these themselves: through
    /// loops, calls and fusions, but not through instructions for which `stops` holds.
    ///
    /// ```
    /// # use tilewise_hlo::{Module, dataflow::Dataflow};
    /// let flow = Dataflow::new(&Module::parse("\
    /// ENTRY main {
    ///   x = f32[8] parameter(0)
    ///   w = f32[8] parameter(1)
    ///   y = f32[8] tanh(x)
    ///   ROOT both = (f32[8], f32[8]) tuple(y, w)
    /// }")?);
    /// let reached = flow.axes().reach([(0, 0)], &|_| false);
    /// assert_eq!(reached.all().collect::<Vec<_>>(), [(0, 0), (2, 0), (3, 0)]);
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn reach(&self, from: impl IntoIterator<Item = (usize, usize)>, stops: &dyn Fn(usize) -> bool) -> Reached {
        self.edges.reach(from, stops, true)
    }

    /// As [`reach`](Self::reach), for the arrays that have their elements or are computed from these, in any order:
    /// each result of a sort follows from one operand.
    ///
    /// ```
    /// # use tilewise_hlo::{Module, dataflow::Dataflow};
    /// let flow = Dataflow::new(&Module::parse("\
    /// less {
    ///   a = f32[] parameter(0)
    ///   b = f32[] parameter(1)
    ///   m = s32[] parameter(2)
    ///   n = s32[] parameter(3)
    ///   ROOT l = pred[] compare(a, b), direction=LT
    /// }
    /// ENTRY main {
    ///   keys = f32[8] parameter(0)
    ///   places = s32[8] iota(), iota_dimension=0
    ///   ROOT sorted = (f32[8], s32[8]) sort(keys, places), dimensions={0}, to_apply=less
    /// }")?);
    /// let (places, sorted) = (6, 7);
    /// let of_elements = flow.axes().reach_elements([(places, 0)], &|_| false);
    /// assert_eq!(of_elements.all().collect::<Vec<_>>(), [(places, 0), (sorted, 1)]);
    /// assert!(flow.axes().reach([(places, 0)], &|_| false).has(sorted, 0));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn reach_elements(
        &self,
        from: impl IntoIterator<Item = (usize, usize)>,
        stops: &dyn Fn(usize) -> bool,
    ) -> Reached {
        self.edges.reach(from, stops, false)
    }

    pub(super) fn of(module: &Module) -> Self {
        relate::axes(module, &|_| false)
    }

    /// The axes of a module in which arrays of instructions that are apart, by their indices, have axes of their own at each reader:
    /// dimensions of other arrays that are one only by way of these are several.
    ///
    /// ```
    /// # use tilewise_hlo::{Module, dataflow::{Axes, Dataflow}};
    /// let module = Module::parse("\
    /// ENTRY main {
    ///   x = f32[8,4] parameter(0)
    ///   ROOT pairs = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    /// }")?;
    /// let of_pairs = |axes: &Axes| {
    ///     let pairs = module.instruction(1).unwrap();
    ///     axes.of_dimension(&pairs, 0, 0) == axes.of_dimension(&pairs, 0, 1)
    /// };
    /// assert!(of_pairs(Dataflow::new(&module).axes()));
    /// assert!(!of_pairs(&Axes::apart(&module, &|at| at == 0)));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn apart(module: &Module, is_apart: &dyn Fn(usize) -> bool) -> Self {
        relate::axes(module, is_apart)
    }
}

/// The arrays of a shape.
#[derive(Debug)]
struct Form {
    leaves: Vec<Array>,
    /// For each leaf, the number of dimensions of those before it.
    slots_before: Vec<u32>,
    /// For each element of a tuple, the first leaf behind it.
    ends: Vec<u32>,
    slots: u32,
}

impl Form {
    fn of(shape: &Shape) -> Self {
        let leaves: Vec<Array> = shape.leaves().map(|(_, leaf)| Array::of(&leaf)).collect();
        let mut slots = 0;
        let slots_before = leaves.iter().map(|leaf| {
            slots += number(leaf.bounds.len());
            slots - number(leaf.bounds.len())
        });
        let slots_before = slots_before.collect();
        let mut end = 0;
        let ends = shape.elements().map(|element| {
            end += number(element.leaves().count());
            end
        });
        Self { ends: ends.collect(), leaves, slots_before, slots }
    }

    /// The leaves of an element.
    fn element(&self, number: usize) -> Option<Range<usize>> {
        let start = number.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        Some(start as usize..*self.ends.get(number)? as usize)
    }
}

/// A module has no more dimensions than bytes of text, which are fewer than 2^32.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
