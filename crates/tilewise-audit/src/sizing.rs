//! Sizes of shapes, each distinct one worked out once: a program repeats a few hundred over and over.

use crate::causes;
use std::collections::HashMap;
use tilewise::{Shape, Sizes, Tiled};

/// What an array holds and takes, and why.
#[derive(Clone, Debug)]
pub(crate) struct Sizing {
    pub(crate) sizes: Sizes,
    pub(crate) causes: Vec<String>,
}

#[derive(Default)]
pub(crate) struct Sizer {
    known: HashMap<Shape, Sizing>,
}

impl Sizer {
    pub(crate) fn size(&mut self, shape: &Shape) -> Result<&Sizing, tilewise::Error> {
        if !self.known.contains_key(shape) {
            let tiled = Tiled::new(shape)?;
            self.known.insert(shape.clone(), Sizing { sizes: tiled.sizes(), causes: causes(&tiled) });
        }
        Ok(&self.known[shape])
    }

    /// Bytes a shape takes, if that can be told.
    pub(crate) fn physical_bytes(&mut self, shape: &Shape) -> Option<u64> {
        self.size(shape).ok().map(|sizing| sizing.sizes.physical_bytes)
    }
}
