//! Layouts in other systems' words: the buffer as a [`NumPy`] or an [`Einops`] program, the index arithmetic as MLIR's
//! [`AffineMap`]. Each is a type to print.

mod einops;
mod mlir;
mod numpy;

pub use einops::Einops;
pub use mlir::AffineMap;
pub use numpy::NumPy;

use crate::{Derivation, steps::widest};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

/// A line of a program, and the part of the layout it is for.
struct Line {
    /// An expression of `x`.
    code: String,
    cause: String,
}

/// Prints the two functions around their lines: logical array → buffer, and back.
fn python(
    f: &mut fmt::Formatter<'_>,
    derivation: &Derivation,
    imports: &str,
    to_buffer: &[Line],
    from_buffer: &[Line],
) -> fmt::Result {
    writeln!(f, "# {}\n{imports}\n\n", derivation.shape())?;
    let logical = tuple(&derivation.logical_dimensions);
    let physical = tuple(&[derivation.physical_elements]);
    function(
        f,
        "to_buffer(x)",
        "The stored elements in the order of memory, padding filled with zeros.",
        &logical,
        to_buffer,
    )?;
    if let Some(bits) = derivation.stored_bits {
        writeln!(
            f,
            "    # A further step: E({bits}) stores element k in bits {bits}*k to {bits}*(k+1)-1 of the buffer."
        )?;
    }
    f.write_str("    return x\n\n\n")?;
    function(f, "from_buffer(x)", "The logical array, padding dropped.", &physical, from_buffer)?;
    f.write_str("    return x\n")
}

fn function(f: &mut fmt::Formatter<'_>, signature: &str, doc: &str, shape: &str, lines: &[Line]) -> fmt::Result {
    writeln!(f, "def {signature}:\n    \"\"\"{doc}\"\"\"")?;
    writeln!(f, "    x = np.asarray(x)\n    assert x.shape == {shape}")?;
    let width = widest(lines.iter().map(|line| line.code.len()));
    for Line { code, cause } in lines {
        if cause.is_empty() {
            writeln!(f, "    x = {code}")?;
        } else {
            writeln!(f, "    x = {code:<width$}  # {cause}")?;
        }
    }
    Ok(())
}

/// `np.pad`, which fills with zeros.
fn pad(padding: &[u64]) -> String {
    let widths: Vec<String> = padding.iter().map(|n| format!("(0, {n})")).collect();
    format!("np.pad(x, [{}])", widths.join(", "))
}

/// The inverse of a pad: the first elements of each axis.
fn slice(from: &[u64], padding: &[u64]) -> String {
    let ranges: Vec<String> =
        from.iter().zip(padding).map(|(bound, n)| if *n == 0 { ":".into() } else { format!(":{bound}") }).collect();
    format!("x[{}]", ranges.join(", "))
}

/// A Python tuple.
fn tuple(bounds: &[u64]) -> String {
    if let [bound] = bounds { format!("({bound},)") } else { format!("({})", list(bounds)) }
}

fn list<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    items.join(", ")
}
