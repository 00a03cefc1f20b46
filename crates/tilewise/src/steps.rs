//! The layout as the tiled-layout document derives it: one whole-array step after the other.

use crate::{
    Shape, Tile, Tiled,
    tiled::{Axis, Step},
};
use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::fmt;

/// The steps from the logical array to the buffer: the order of the dimensions, each tile, and the flat buffer with its
/// tail.
///
/// A tile is as in the tiled-layout document: reshape if it is longer than the rank or has a `*`, pad, reshape,
/// transpose. Steps that do nothing are left out. Every step takes a row-major array to a row-major array, so pad,
/// reshape and transpose are enough to make the buffer: [`numpy`](Derivation::numpy) and [`einops`](Derivation::einops)
/// write that program. `Display` prints the steps in words, one a line.
///
/// Each step names all its bounds, so the memory this takes grows with tiles × axes.
///
/// ```
/// use tilewise::{Operation, Tiled};
///
/// let derivation = Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?.derivation();
/// assert_eq!(
///     derivation.to_string(),
///     "pad        [3,5] → [4,6]          moves bytes  T(2,2)\n\
///      reshape    [4,6] → [2,2,3,2]      bitcast      T(2,2)\n\
///      transpose  [2,2,3,2] → [2,3,2,2]  moves bytes  T(2,2): axes 0,2,1,3\n\
///      reshape    [2,3,2,2] → [24]       bitcast",
/// );
/// assert_eq!(derivation.steps()[0].operation, Operation::Pad { padding: vec![1, 1] });
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "notations"), expect(dead_code, reason = "notations write steps with the bounds around them"))]
pub struct Derivation {
    pub(crate) shape: Shape,
    pub(crate) logical_dimensions: Vec<u64>,
    pub(crate) physical_elements: u64,
    pub(crate) stored_bits: Option<u64>,
    tail_alignment: u64,
    tiles: Vec<Tile>,
    steps: Vec<DerivationStep>,
}

/// One step of a [`Derivation`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DerivationStep {
    /// The operation, with its parameters.
    pub operation: Operation,
    /// The bounds before, major → minor.
    pub from: Vec<u64>,
    /// The bounds after, major → minor.
    pub to: Vec<u64>,
    /// The tile of the layout that the step belongs to, 0 the first. `None` in front of the tiles, where dimensions are
    /// put into physical order, and behind them, where the buffer is flattened and its tail padded.
    pub level: Option<usize>,
    /// The effect on the bytes of the array.
    pub effect: Effect,
}

/// The operation of a [`DerivationStep`] on a row-major array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Axis i of the result is axis `permutation[i]` of the operand, as in NumPy and XLA.
    Transpose {
        /// For each axis of the result, the axis of the operand.
        permutation: Vec<usize>,
    },
    /// New bounds for the same elements in the same row-major order.
    Reshape {
        /// Counts of neighbouring axes of the operand and of the result that they become, major → minor: (2, 1) merges
        /// two axes, (1, 2) splits one, (0, 1) adds one of bound 1.
        groups: Vec<(usize, usize)>,
    },
    /// Padding behind the last element of each axis.
    Pad {
        /// For each axis, how much its bound grows, in elements.
        padding: Vec<u64>,
    },
}

impl Operation {
    /// `transpose`, `reshape` or `pad`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Transpose { .. } => "transpose",
            Self::Reshape { .. } => "reshape",
            Self::Pad { .. } => "pad",
        }
    }
}

/// The effect of a [`DerivationStep`] on the bytes; exact for an array whose elements are all different.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// No element moves: every reshape, and a transpose that keeps the order of the axes above 1.
    Bitcast,
    /// Every element keeps its offset, and padding follows the last: a pad of no axis more minor than the first above
    /// 1.
    Append,
    /// Elements move.
    Move,
}

impl Effect {
    /// `bitcast`, `append` or `move`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bitcast => "bitcast",
            Self::Append => "append",
            Self::Move => "move",
        }
    }

    fn of(operation: &Operation, from: &[u64], to: &[u64]) -> Self {
        if to.contains(&0) {
            return Self::Bitcast; // there is nothing to move
        }
        match operation {
            Operation::Reshape { .. } => Self::Bitcast,
            Operation::Transpose { permutation } => {
                let in_order = permutation.iter().filter(|&&axis| from[axis] > 1).is_sorted();
                if in_order { Self::Bitcast } else { Self::Move }
            }
            Operation::Pad { padding } => {
                let first = from.iter().position(|&bound| bound > 1).unwrap_or(from.len());
                let behind_all = padding.iter().skip(first + 1).all(|&n| n == 0);
                if behind_all { Self::Append } else { Self::Move }
            }
        }
    }
}

impl Derivation {
    /// The steps, in the order in which they make the buffer; empty where the buffer is the array.
    #[must_use]
    pub fn steps(&self) -> &[DerivationStep] {
        &self.steps
    }

    /// The array whose layout is derived.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The part of the layout's text that a step comes from; empty for the reshape that flattens.
    pub(crate) fn cause(&self, step: &DerivationStep) -> String {
        let tile = step.level.and_then(|level| self.tiles.get(level));
        match (tile, &step.operation) {
            (Some(tile), _) if step.level == Some(0) => format!("T{tile}"),
            (Some(tile), _) => tile.to_string(),
            (None, Operation::Pad { .. }) => format!("L({})", self.tail_alignment),
            (None, Operation::Transpose { permutation }) => {
                let order: Vec<String> = permutation.iter().rev().map(usize::to_string).collect();
                format!("{{{}}}", order.join(","))
            }
            (None, Operation::Reshape { .. }) => String::new(),
        }
    }
}

impl Tiled {
    /// The layout as pad, reshape and transpose of the whole array, the way the tiled-layout document defines it.
    ///
    /// ```
    /// use tilewise::{Effect, Tiled};
    ///
    /// let derivation = Tiled::new(&"bf16[16,256]{1,0:T(8,128)(2,1)}".parse()?)?.derivation();
    /// let moving: Vec<_> = derivation.steps().iter().filter(|step| step.effect == Effect::Move).collect();
    /// assert_eq!(moving.len(), 2); // one transpose a tile, and nothing to pad
    /// assert_eq!((moving[1].level, &moving[1].to[..]), (Some(1), &[2, 2, 4, 128, 2, 1][..]));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn derivation(&self) -> Derivation {
        let mut deriving = Deriving {
            tiled: self,
            axes: (0..self.array.rank()).collect(),
            bounds: self.logical_dimensions().to_vec(),
            level: None,
            steps: Vec::new(),
        };
        deriving.transpose(self.array.major_to_minor().collect());
        let mut start = 0;
        for (level, &end) in self.tile_ends.iter().enumerate() {
            deriving.level = Some(level);
            deriving.tile(&self.steps[start..end]);
            start = end;
        }
        deriving.level = None;
        let groups = vec![(deriving.bounds.len(), 1)];
        deriving.push(Operation::Reshape { groups }, vec![self.tiled_elements()]);
        deriving.pad(vec![self.physical_elements()]);

        let layout = self.array.layout();
        Derivation {
            shape: self.array.clone().into(),
            logical_dimensions: self.logical_dimensions().to_vec(),
            physical_elements: self.physical_elements(),
            stored_bits: self.array.element_size_in_bits(),
            tail_alignment: layout.map_or(1, |layout| layout.tail_padding_alignment()),
            tiles: layout.map_or(&[][..], |layout| layout.tiles()).to_vec(),
            steps: deriving.steps,
        }
    }
}

struct Deriving<'a> {
    tiled: &'a Tiled,
    /// The axes so far, major → minor.
    axes: Vec<Axis>,
    /// Their bounds, padding included.
    bounds: Vec<u64>,
    level: Option<usize>,
    steps: Vec<DerivationStep>,
}

impl Deriving<'_> {
    /// Adds the whole-array steps of one tile.
    fn tile(&mut self, steps: &[Step]) {
        let bound = |axis: Axis| self.tiled.bounds[axis];
        // Each axis, with the number of this tile's operand axes that it is made of.
        let prepended =
            steps.iter().filter_map(|step| if let Step::Prepend { axis } = step { Some((*axis, 0)) } else { None });
        let mut uncombined = prepended.chain(self.axes.iter().map(|&axis| (axis, 1)));
        // The merges come in the order of the axes.
        let merges = steps
            .iter()
            .filter_map(|step| if let Step::Merge { parts, merged } = step { Some((parts, *merged)) } else { None });
        let mut merges = merges.peekable();
        let mut combined: Vec<(Axis, usize)> = Vec::new();
        while let Some((axis, operands)) = uncombined.next() {
            combined.push(match merges.next_if(|(parts, _)| parts.first() == Some(&axis)) {
                None => (axis, operands),
                Some((parts, merged)) => {
                    let others = uncombined.by_ref().take(parts.len() - 1).map(|(_, operands)| operands);
                    (merged, operands + others.sum::<usize>())
                }
            });
        }
        let groups = combined.iter().map(|&(_, operands)| (operands, 1)).collect();
        let bounds = combined.iter().map(|&(axis, _)| bound(axis)).collect();

        // The splits come in the order of the axes.
        let mut splits = steps.iter().filter_map(|step| match *step {
            Step::Split { axis, tile, outer, inner } => Some((axis, tile, outer, inner)),
            _ => None,
        });
        let mut next = splits.next();
        let (mut padded, mut split_groups, mut split) = (Vec::new(), Vec::new(), Vec::new());
        let (mut order, mut inner_order) = (Vec::new(), Vec::new());
        for &(axis, _) in &combined {
            order.push(split.len());
            match next {
                Some((cut, tile, outer, inner)) if cut == axis => {
                    padded.push(bound(outer).saturating_mul(tile));
                    split_groups.push((1, 2));
                    inner_order.push(split.len() + 1);
                    split.extend([outer, inner]);
                    next = splits.next();
                }
                _ => {
                    padded.push(bound(axis));
                    split_groups.push((1, 1));
                    split.push(axis);
                }
            }
        }
        order.append(&mut inner_order);
        let split_bounds = split.iter().map(|&axis| bound(axis)).collect();

        self.push(Operation::Reshape { groups }, bounds);
        self.pad(padded);
        self.push(Operation::Reshape { groups: split_groups }, split_bounds);
        self.axes = split;
        self.transpose(order);
    }

    fn transpose(&mut self, permutation: Vec<usize>) {
        let to = permutation.iter().map(|&axis| self.bounds[axis]).collect();
        self.axes = permutation.iter().map(|&axis| self.axes[axis]).collect();
        self.push(Operation::Transpose { permutation }, to);
    }

    fn pad(&mut self, to: Vec<u64>) {
        let padding = to.iter().zip(&self.bounds).map(|(to, from)| to - from).collect();
        self.push(Operation::Pad { padding }, to);
    }

    fn push(&mut self, operation: Operation, to: Vec<u64>) {
        let nothing = match &operation {
            Operation::Transpose { permutation } => permutation.is_sorted(),
            Operation::Reshape { .. } | Operation::Pad { .. } => to == self.bounds,
        };
        if nothing {
            return;
        }
        let from = core::mem::replace(&mut self.bounds, to.clone());
        let effect = Effect::of(&operation, &from, &to);
        self.steps.push(DerivationStep { operation, from, to, level: self.level, effect });
    }
}

/// The width of a column for these, at most 200: longer ones stand out of it, and formatting has a limit.
pub(crate) fn widest(widths: impl Iterator<Item = usize>) -> usize {
    widths.max().unwrap_or(0).min(200)
}

impl fmt::Display for Derivation {
    /// One line a step: the operation, the bounds before and after, the effect on the bytes, and the part of the
    /// layout.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str("nothing to do: the buffer is the array in row-major order");
        }
        let bounds: Vec<String> = self.steps.iter().map(DerivationStep::bounds).collect();
        let width = widest(bounds.iter().map(|bounds| bounds.chars().count()));
        for (line, (step, bounds)) in self.steps.iter().zip(&bounds).enumerate() {
            if line > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{:<9}  {bounds:<width$}  ", step.operation.name())?;
            let effect = match step.effect {
                Effect::Bitcast => "bitcast",
                Effect::Append => "appends",
                Effect::Move => "moves bytes",
            };
            let cause = self.cause(step);
            match &step.operation {
                _ if cause.is_empty() => f.write_str(effect)?,
                Operation::Transpose { permutation } => {
                    write!(f, "{effect:<11}  {cause}: axes ")?;
                    crate::text::join(f, permutation)?;
                }
                _ => write!(f, "{effect:<11}  {cause}")?,
            }
        }
        Ok(())
    }
}

impl DerivationStep {
    fn bounds(&self) -> String {
        format!("{} → {}", bracketed(&self.from), bracketed(&self.to))
    }
}

impl fmt::Display for DerivationStep {
    /// `pad [3,5] → [4,6]`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation.name(), self.bounds())
    }
}

fn bracketed(bounds: &[u64]) -> String {
    let bounds: Vec<String> = bounds.iter().map(u64::to_string).collect();
    format!("[{}]", bounds.join(","))
}
