//! The causes of an array's padding.

use tilewise::{PaddedAxis, Tiled};

/// Least part of the expansion, on a logarithmic scale, that a cause must explain to be named.
const WORTH_NAMING: f64 = 0.05;

/// A cause of padding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// A tile pads an axis.
    Axis(PaddedAxis),
    /// Elements are stored in more bits than they have.
    WideElements {
        /// Bits that each takes.
        stored: u64,
        /// Bits of its type.
        natural: u64,
    },
    /// The end is padded to a multiple of this many elements.
    Tail(u64),
    /// An array without tiles fills whole blocks.
    Untiled,
    /// It shares a buffer that holds this many bytes at another time.
    Shared(u64),
}

/// The causes of the array's padding, the largest first; empty without padding.
///
/// The causes multiply. Those that explain less than 5 % of the expansion, on a logarithmic scale, are left out.
///
/// ```
/// use tilewise_audit::{Cause, causes};
///
/// let tiled = tilewise::Tiled::new(&"s32[32768,8,4]{2,1,0:T(8,128)}".parse()?)?;
/// let [Cause::Axis(axis)] = &causes(&tiled)[..] else { panic!("one axis") };
/// assert_eq!((&axis.dimensions[..], axis.bound, axis.padded), (&[2][..], 4, 128));
/// # Ok::<(), tilewise::Error>(())
/// ```
#[must_use]
pub fn causes(tiled: &Tiled) -> Vec<Cause> {
    if tiled.padding_bytes() == 0 {
        return Vec::new();
    }
    let array = tiled.array();
    let axes = tiled.padded_axes().into_iter();
    let mut causes: Vec<(f64, Cause)> = axes.map(|axis| (axis.expansion(), Cause::Axis(axis))).collect();
    let natural = u64::from(array.element_type().natural_bits());
    let stored = array.stored_bits();
    if stored > natural {
        causes.push((ratio(stored, natural), Cause::WideElements { stored, natural }));
    }
    if tiled.physical_elements() != tiled.tiled_elements() {
        let alignment = array.layout().map_or(1, |layout| layout.tail_padding_alignment());
        causes.push((ratio(tiled.physical_elements(), tiled.tiled_elements()), Cause::Tail(alignment)));
    }
    causes.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let whole: f64 = causes.iter().map(|(expansion, _)| expansion.ln()).sum();
    causes.into_iter().filter(|(expansion, _)| expansion.ln() >= WORTH_NAMING * whole).map(|(_, cause)| cause).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}
