//! What to change so that an array takes less memory: each fix is found by search and priced by the layout it leads to.
//!
//! A TPU pads the two most minor dimensions of an array to the lanes and rows of a tile. How much that costs follows
//! from the bounds, the element type and the order of dimensions, and a program can change all three. [`suggest`] tries
//! what a user can do, asks [`tpu`] what the compiler would make of each, and keeps the best of each kind.
//!
//! ```
//! use tilewise_audit::fix::{self, FixKind};
//!
//! let fixes = fix::suggest(&"s32[32768,8,4]{2,1,0:T(8,128)}".parse()?, None);
//! let kinds: Vec<_> = fixes.list.iter().map(|fix| fix.kind).collect();
//! assert_eq!(kinds, [FixKind::Order, FixKind::Transpose, FixKind::Reshape, FixKind::Narrow]);
//!
//! let reshape = &fixes.list[2];
//! assert_eq!((reshape.bytes_before, reshape.bytes_after), (134_217_728, 4_194_304));
//! assert_eq!(reshape.sentence, "merge dimensions 1 (size 8) and 2 (size 4) into one of 32: reshape to [32768,32]");
//! assert_eq!(reshape.jax, "x = x.reshape(32768, 32)  # s32[32768,32]");
//! # Ok::<(), tilewise::Error>(())
//! ```
//!
//! # What is tried
//!
//! | kind | change | what it costs the user |
//! |---|---|---|
//! | [`Order`](FixKind::Order) | the compiler's own order of dimensions | nothing, unless a kernel needs the other |
//! | [`Transpose`](FixKind::Transpose) | `[N,4]` → `[4,N]` | axis numbers in the program |
//! | [`Reshape`](FixKind::Reshape) | squeeze, `[N,8,4]` → `[N,32]`, `[N,10]` → `[N/64,640]`, flatten | reshapes at each use |
//! | [`Split`](FixKind::Split) | an array for each index along a dimension, or two | several arrays in place of one |
//! | [`Batch`](FixKind::Batch) | 128 small arrays in one | a batched program |
//! | [`Resize`](FixKind::Resize) | 130 → 128, at most an eighth of a dimension | the model changes |
//! | [`Narrow`](FixKind::Narrow) | f32 → bf16, s32 → s16 | precision or range |
//!
//! Padding a dimension by hand to a larger size is not tried: what an array takes never falls when a bound grows
//! (tested for types of 4 bits and more).
//!
//! # How they are ranked
//!
//! By the bytes they free, except that a simpler kind comes first, in the order of the table, if it frees 96 % of what
//! the best does and leaves padding of at most 50 % of the data, or 80 % with padding of at most 10 %. Once a fix that
//! keeps every value leaves padding of at most 10 %, those that change values come after all that don't. Fixes that
//! remove less than 5 % of the padding are left out, and so are splitting and batching where something simpler frees as
//! much; splitting stays where the array's order is not the default one.
//!
//! # Where it stops
//!
//! New orders and reshapes are priced as arrays that the compiler lays out freely, and splits, sizes and types in the
//! order the array has, both as [`tpu::predict`] does, checked with [`tpu::CHECKED_WITH`]. Compiled programs agree for
//! arguments: `s32[524288,8,4]` forced to row-major takes 2 GiB, in its default order, transposed or merged 64 MiB.
//!
//! Only the shape is looked at. Inside a program an operation may insist on an order, and then transposing moves the
//! padding elsewhere. With that compiler for v5e, a step of a graph network that gathers 400,000 rows of
//! `f32[100000,12]`, multiplies and sums them needs 208 MB of temporaries. With the layout constraint on the gathered
//! rows it is the same, gathering from the transposed array it is 205 MB, and gathering each component on its own 17
//! MB: there, [`Split`](FixKind::Split) is the fix.
//!
//! Arrays with dynamic dimensions are not reshaped, split, batched or resized.

mod change;
mod describe;
mod fixes;
mod ranking;
mod search;
mod target;

pub(crate) use fixes::renamed;
pub use fixes::{Basis, Fix, FixKind, Fixes, MAX_FIXES, NewArray, NoFix};

use change::{BATCH, Candidate, Change};
use target::{Baseline, Target};
use tilewise::{
    ArrayShape, Shape,
    tpu::{self, Generation},
};

/// The changes that would free the most of what this array takes, and the reason if there are none.
///
/// The shape is one found in a compiled program or a message, with its tiles; without a layout it is taken to have the
/// default one. Without a generation, the array's tiles may tell on which side of the divide between v3 and v4 it was
/// compiled; else the rule since v4 prices the fixes. [`Fixes::basis`] says which of these it was.
///
/// ```
/// use tilewise_audit::fix::{self, Basis, NoFix};
/// use tilewise::tpu::Generation;
///
/// // A bf16 tile of four rows for a dimension of size 1: only v2 and v3 do that.
/// let fixes = fix::suggest(&"bf16[2048,1,2048,128]{0,1,3,2:T(4,128)(2,1)}".parse()?, None);
/// assert_eq!((fixes.generation, fixes.basis), (Generation::V3, Basis::Inferred));
/// let best = fixes.best().expect("a fix");
/// assert_eq!((best.bytes_before, best.bytes_after), (4 << 30, 1 << 30));
///
/// let tight = fix::suggest(&"f32[1024,1024]{1,0:T(8,128)}".parse()?, Some(Generation::V5e));
/// assert_eq!(tight.no_fix, Some(NoFix::NoPadding));
/// # Ok::<(), tilewise::Error>(())
/// ```
#[must_use]
pub fn suggest(shape: &Shape, generation: Option<Generation>) -> Fixes {
    let mut fixes = Fixes { list: Vec::new(), no_fix: None, generation: Generation::V5e, basis: Basis::Assumed };
    if let Some(given) = generation {
        (fixes.generation, fixes.basis) = (given, Basis::Given);
    }
    if let Err(reason) = find(shape, &mut fixes) {
        fixes.no_fix = Some(reason);
    }
    fixes
}

fn find(shape: &Shape, found: &mut Fixes) -> Result<(), NoFix> {
    let array = shape.as_array().ok_or(NoFix::NotAnArray)?;
    let bounds: Vec<u64> = array.dimensions().iter().map(|d| d.bound()).collect::<Option<_>>().ok_or(NoFix::Unsized)?;
    if found.basis != Basis::Given
        && let Some(generation) = inferred(array, &bounds)
    {
        (found.generation, found.basis) = (generation, Basis::Inferred);
    }
    let default_layout = tpu::default_layout(array.element_type(), &bounds, found.generation);
    let default_layout = default_layout.map_err(|error| match error.kind() {
        tilewise::ErrorKind::UnsupportedElementType => NoFix::UnknownElementType,
        _ => NoFix::Unsized,
    })?;
    let array = if array.layout().is_some() { array } else { default_layout.as_array().ok_or(NoFix::NotAnArray)? };
    let sizes = array.sizes().map_err(|_| NoFix::Unsized)?;
    let order = |array: &ArrayShape| array.layout().map(|layout| layout.minor_to_major().to_vec());
    let has_default_order = order(array) == default_layout.as_array().and_then(order);
    let baseline = Baseline { sizes, has_default_order };
    match array.memory_space() {
        _ if sizes.padding_bytes() == 0 => return Err(NoFix::NoPadding),
        _ if bounds.is_empty() => return Err(NoFix::Scalar),
        _ if sizes.padding_bytes() <= sizes.logical_bytes / 50 => return Err(NoFix::LittlePadding),
        // HBM, VMEM, v4's CMEM and host memory use the same tiles; the others have tiles of their own.
        0 | 1 | 3 | 5 => {}
        other => return Err(NoFix::MemorySpace(other)),
    }
    let target =
        Target { array, bounds: &bounds, generation: found.generation, baseline, default_layout: &default_layout };
    let ranked = ranking::rank(target.candidates(), baseline);
    found.list = ranked.into_iter().take(MAX_FIXES).map(|candidate| fix(candidate, &target)).collect();
    if found.list.is_empty() { Err(NoFix::NothingHelps) } else { Ok(()) }
}

/// The only side of the divide whose tiles these are, if there is just one: v3 or v5e.
fn inferred(array: &ArrayShape, bounds: &[u64]) -> Option<Generation> {
    let layout = array.layout().filter(|layout| !layout.tiles().is_empty())?;
    let fits = |generation| {
        let predicted =
            tpu::layout_for_order(array.element_type(), bounds, layout.minor_to_major(), generation).ok()?;
        let predicted = predicted.layout()?;
        let same =
            predicted.tiles() == layout.tiles() && predicted.element_size_in_bits() == layout.element_size_in_bits();
        same.then_some(generation)
    };
    match (fits(Generation::V3), fits(Generation::V5e)) {
        (Some(only), None) | (None, Some(only)) => Some(only),
        _ => None,
    }
}

fn fix(candidate: Candidate, target: &Target<'_>) -> Fix {
    Fix {
        kind: candidate.kind(),
        replaced: if matches!(candidate.change, Change::Batch) { BATCH } else { 1 },
        bytes_before: target.baseline.sizes.physical_bytes,
        bytes_after: candidate.after,
        logical_bytes_after: candidate.logical,
        changes_values: candidate.changes_values(),
        sentence: describe::sentence(&candidate, target),
        jax: describe::jax(&candidate, target),
        arrays: candidate.arrays,
    }
}
