//! The derivation as NumPy calls, one a step.

use super::{Line, list, pad, python, slice, tuple};
use crate::{Derivation, DerivationStep, Operation};
use alloc::{format, string::String, vec, vec::Vec};
use core::fmt;

/// A Python program that prints as `to_buffer(x)`, logical array → flat buffer, and `from_buffer(x)`, its inverse; made by
/// [`Derivation::numpy`]. NumPy arrays have at most 64 axes, a limit that only contrived layouts reach.
#[derive(Clone, Copy, Debug)]
pub struct NumPy<'a>(&'a Derivation);

impl Derivation {
    /// The derivation as runnable NumPy. Bits are not packed: a buffer item is one stored element.
    ///
    /// ```
    /// let derivation = tilewise::Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?.derivation();
    /// let program = derivation.numpy().to_string();
    /// assert!(program.contains("x = np.pad(x, [(0, 1), (0, 1)])"));
    /// assert!(program.contains("x = x.reshape(2, 2, 3, 2)"));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn numpy(&self) -> NumPy<'_> {
        NumPy(self)
    }
}

impl fmt::Display for NumPy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = |code: fn(&DerivationStep) -> String| {
            self.0.steps().iter().map(move |step| Line { code: code(step), cause: self.0.cause(step) })
        };
        let to_buffer: Vec<Line> = lines(forwards).collect();
        let from_buffer: Vec<Line> = lines(backwards).rev().collect();
        python(f, self.0, "import numpy as np", &to_buffer, &from_buffer)
    }
}

fn forwards(step: &DerivationStep) -> String {
    match &step.operation {
        Operation::Transpose { permutation } => format!("x.transpose({})", list(permutation)),
        Operation::Reshape { .. } => reshape(&step.to),
        Operation::Pad { padding } => pad(padding),
    }
}

fn backwards(step: &DerivationStep) -> String {
    match &step.operation {
        Operation::Transpose { permutation } => {
            let mut inverse = vec![0; permutation.len()];
            for (to, &from) in permutation.iter().enumerate() {
                inverse[from] = to;
            }
            format!("x.transpose({})", list(&inverse))
        }
        Operation::Reshape { .. } => reshape(&step.from),
        Operation::Pad { padding } => slice(&step.from, padding),
    }
}

fn reshape(bounds: &[u64]) -> String {
    if bounds.is_empty() { format!("x.reshape({})", tuple(bounds)) } else { format!("x.reshape({})", list(bounds)) }
}
