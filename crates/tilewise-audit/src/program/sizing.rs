//! Sizes of arrays, computed once for each distinct one: a program repeats a few hundred.

use super::causes::{Cause, causes};
use foldhash::HashMap;
use std::rc::Rc;
use tilewise::{Shape, ShapeKind, Sizes, Tiled};
use tilewise_hlo::{Instruction, dataflow::NodeId};
use tilewise_memory::AssignedValue;

/// An array, its sizes and the causes of its padding.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) shape: Shape,
    pub(crate) memory_space: u8,
    pub(crate) sizes: Sizes,
    /// Causes of the padding of [`sizes`](Self::sizes).
    pub(crate) causes: Vec<Cause>,
}

/// The index of a distinct array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ArrayId(u32);

/// An array of a result: its path, and its size or the error.
pub(crate) type Leaf = (Vec<usize>, Result<ArrayId, tilewise::Error>);

#[derive(Debug, Default)]
pub(crate) struct Sizer<'m> {
    arrays: Vec<Array>,
    by_shape: HashMap<Shape, Result<ArrayId, tilewise::Error>>,
    by_text: HashMap<&'m str, Option<Rc<[Leaf]>>>,
    by_node: HashMap<NodeId, Option<ArrayId>>,
}

impl<'m> Sizer<'m> {
    pub(crate) fn size(&mut self, shape: &Shape) -> Result<ArrayId, tilewise::Error> {
        if let Some(known) = self.by_shape.get(shape) {
            return known.clone();
        }
        let sized = Tiled::new(shape).map(|tiled| {
            let memory_space = shape.as_array().map_or(0, |array| array.memory_space());
            let (sizes, causes) = (tiled.sizes(), causes(&tiled));
            self.arrays.push(Array { shape: shape.clone(), memory_space, sizes, causes });
            // At most the number of distinct texts of shapes, which fit in less than 4 GiB.
            ArrayId(u32::try_from(self.arrays.len() - 1).unwrap_or(u32::MAX))
        });
        self.by_shape.insert(shape.clone(), sized.clone());
        sized
    }

    /// The arrays of an instruction's result, cached by its text. `None` if the text isn't a shape.
    pub(crate) fn leaves(&mut self, instruction: &Instruction<'m>) -> Option<Rc<[Leaf]>> {
        let text = instruction.shape_text();
        if let Some(known) = self.by_text.get(text) {
            return known.clone();
        }
        let shape = instruction.shape().ok();
        let leaves = shape.map(|shape| {
            let arrays = shape.leaves().filter(|(_, leaf)| matches!(leaf.kind(), ShapeKind::Array(_)));
            arrays.map(|(path, leaf)| (path, self.size(&leaf))).collect::<Rc<[Leaf]>>()
        });
        self.by_text.insert(text, leaves.clone());
        leaves
    }

    /// The array of a plan's value; `None` if it isn't an array, or has no size.
    pub(crate) fn of_value(&mut self, value: &AssignedValue) -> Option<ArrayId> {
        let node = value.node();
        if let Some(known) = self.by_node.get(&node) {
            return *known;
        }
        let array = value.shape().and_then(|shape| self.size(&shape).ok());
        self.by_node.insert(node, array);
        array
    }

    pub(crate) fn array(&self, id: ArrayId) -> &Array {
        &self.arrays[id.0 as usize]
    }

    /// Bytes a shape takes; `None` if it can't be sized.
    pub(crate) fn physical_bytes(&mut self, shape: &Shape) -> Option<u64> {
        self.size(shape).ok().map(|id| self.array(id).sizes.physical_bytes)
    }

    pub(crate) fn arrays(&self) -> &[Array] {
        &self.arrays
    }

    pub(crate) fn into_arrays(self) -> Vec<Array> {
        self.arrays
    }
}

impl ArrayId {
    pub(crate) fn of(self, arrays: &[Array]) -> Option<&Array> {
        arrays.get(self.0 as usize)
    }
}

/// The fraction `part / whole`, 0 … 1; 0 if `whole` is 0.
#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
