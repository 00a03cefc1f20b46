//! Sizes of arrays, each distinct one worked out once: a program repeats a few hundred over and over.

use super::causes::{Cause, causes};
use std::{collections::HashMap, rc::Rc};
use tilewise::{Shape, ShapeKind, Sizes, Tiled};
use tilewise_hlo::{Instruction, dataflow::NodeId};
use tilewise_memory::AssignedValue;

/// An array: what it holds and takes, and why.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) shape: Shape,
    pub(crate) memory_space: u8,
    pub(crate) sizes: Sizes,
    /// What makes the padding of [`sizes`](Self::sizes).
    pub(crate) causes: Vec<Cause>,
}

/// Which of the distinct arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ArrayId(u32);

/// An array of a result: the path to it, and its size or why it has none.
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
            // As many as distinct texts of shapes, which fit in less than 4 GiB.
            ArrayId(u32::try_from(self.arrays.len() - 1).unwrap_or(u32::MAX))
        });
        self.by_shape.insert(shape.clone(), sized.clone());
        sized
    }

    /// The arrays of an instruction's result, by its text: looked up, not read, but for the first of its kind. `None`
    /// if that is no shape.
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

    /// The array that a plan's value is, if it is one.
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

    /// Bytes a shape takes, if that can be told.
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

/// A part of a whole, 0 … 1.
#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
