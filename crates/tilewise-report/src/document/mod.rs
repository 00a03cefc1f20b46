//! Texts of XLA's documents and of people: equations with numbers, parts of the notation alone, pages of prose.

mod equation;
mod evaluate;
mod expression;
mod general;
mod meaning;
mod names;
mod part;
mod prose;
mod shown;
mod terms;
mod token;
mod wrong;

pub use equation::Equation;
pub(crate) use evaluate::ONCE_EACH;
pub use part::{Part, PartOfShape};
pub use prose::Prose;
pub use shown::{Answer, Shown, answer_line};
