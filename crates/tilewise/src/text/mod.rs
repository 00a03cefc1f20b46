//! XLA's text of shapes and layouts: [`parse`] reads it, [`print`] writes it.
//!
//! The grammar is XLA's `HloParser` (`ParseShape`, `ParseLayout`) with every silent acceptance turned into a named error, plus the
//! documents' spellings that XLA refuses: upper-case type names, tiles without `T`, `∗` and `-1` for `*`.

mod lexer;
mod parse;
mod print;
mod suggest;

pub use print::WithoutLayout;
#[cfg(feature = "notations")]
pub(crate) use suggest::distance;
pub(crate) use suggest::unknown_element_type;

use core::fmt;

/// The items, comma-separated.
pub(crate) fn join<T: fmt::Display>(out: &mut impl fmt::Write, items: &[T]) -> fmt::Result {
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            out.write_char(',')?;
        }
        write!(out, "{item}")?;
    }
    Ok(())
}
