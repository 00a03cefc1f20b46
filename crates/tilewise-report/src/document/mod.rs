//! What XLA's documents print and people type: equations with numbers, parts of the notation alone, pages of prose.

mod equation;
mod evaluate;
mod expression;
mod general;
mod names;
mod part;
mod plain;
mod prose;
mod shown;
mod terms;
mod token;

pub use equation::Equation;
pub(crate) use part::bare;
pub use part::{Part, PartOfShape};
pub(crate) use plain::{Plain, is_invisible};
pub use prose::Prose;
pub use shown::{Answer, Shown};
