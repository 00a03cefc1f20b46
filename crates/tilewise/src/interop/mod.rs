//! Layouts in the notations of other systems, and back.
//!
//! | notation | to it | from it |
//! |---|---|---|
//! | PJRT's C API | [`Tiled::pjrt`](crate::Tiled::pjrt), [`Tiled::byte_strides`](crate::Tiled::byte_strides), text | [`PjrtTiled::layout`], [`Layout::of_text`](crate::Layout::of_text) |
//! | JAX's `Layout` | [`Tiled::jax`](crate::Tiled::jax) | [`JaxLayout::layout`] |
//! | MLIR affine maps | [`Tiled::affine_map`](crate::Tiled::affine_map), [`Tiled::affine_offset_map`](crate::Tiled::affine_offset_map) | [`layout_of_affine_map`] |
//! | MLIR memrefs | [`Tiled::memref`](crate::Tiled::memref) | [`Strides::layout`] |
//! | Mosaic | [`Tiled::mosaic`](crate::Tiled::mosaic), [`TpuTiled::vpad`] | [`TpuTiled::layout`], [`TpuVpad::layout`] |
//! | NumPy, DLPack | [`Tiled::strides`](crate::Tiled::strides), [`Tiled::as_strided`](crate::Tiled::as_strided), [`NumPy`] programs | [`Strides::layout`] |
//! | CuTe | [`Tiled::cute`](crate::Tiled::cute) | [`CuTe::layout`] |
//! | einops | [`Einops`] programs | [`layout_of_rearrange`] |
//!
//! [`Notation`] lists them by name, as text in both directions.
//!
//! Notations of addresses (strides, maps, CuTe, einops) leave out padding behind the last element; a layout read from
//! one puts every element at the same offset, with the fewest tiles. A layout that a notation can't express is an
//! error, [`ErrorKind::NotExpressible`](crate::ErrorKind::NotExpressible), with the reason.

mod cute;
mod einops;
mod jax;
mod mlir;
mod modes;
mod mosaic;
mod notation;
mod numpy;
mod pjrt;
mod strides;

pub use cute::CuTe;
pub use einops::{Einops, layout_of_rearrange};
pub use jax::JaxLayout;
pub use mlir::{AffineMap, layout_of_affine_map};
pub use modes::Mode;
pub use mosaic::{TpuTiled, TpuVpad};
pub use notation::Notation;
pub use numpy::NumPy;
pub use pjrt::PjrtTiled;
pub use strides::Strides;

use crate::{Derivation, steps::widest};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt, str::FromStr};

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
fn tuple<T: ToString>(bounds: &[T]) -> String {
    if let [bound] = bounds { format!("({},)", bound.to_string()) } else { format!("({})", list(bounds)) }
}

/// Comma-separated numbers, as in Python's tuples and C's initialisers.
fn numbers<T: FromStr>(text: &str) -> Option<Vec<T>> {
    text.split(',').map(str::trim).filter(|number| !number.is_empty()).map(|number| number.parse().ok()).collect()
}

fn list<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    items.join(", ")
}
