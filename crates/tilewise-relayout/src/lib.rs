#![doc = include_str!("../README.md")]
//!
//! [`tile`] and [`untile`] do the same for a row-major array in one call, with a new vector for the result.
//!
//! [`Plan::find_difference`] checks whether one buffer holds another, without the engine. [`Plan::run_with`] runs on
//! several threads and reports progress. With the feature `file`, `Mapped` runs plans from file to file.
//!
//! # Speed
//!
//! Writing into memory that is touched for the first time costs several times the conversion: keep the destination
//! and run plans into it. Large buffers gain from huge pages (`madvise` on Linux), and most from starting on a cache line.
//! Several threads ([`RunOptions::threads`]) help transposes; otherwise one thread nearly saturates memory on most machines.
//!
//! # Values
//!
//! Elements move as bits. Between different element sizes, as in `s4[8]{0}` and `s4[8]{0:E(4)}`, packing drops a value's upper
//! bits, and widening repeats the sign of signed integers and fills with zeros otherwise. The destination's padding is zero unless
//! the plan was made to [leave](Padding::Leave) it; the source's padding is never looked at.

#![deny(unsafe_op_in_unsafe_fn)]

mod check;
mod cpu;
mod display;
mod error;
mod exec;
#[cfg(feature = "file")]
mod file;
mod joint_digits;
mod kernels;
mod leaf;
mod nest;
mod part;
mod plan;
mod prefetch;
mod reshard;
mod scalar;
mod size;
mod small;
mod stages;
mod tuning;
mod walk;

#[cfg(feature = "unstable-testing")]
pub use cpu::Cpu;
pub use error::{Error, ErrorKind};
pub use exec::{Progress, RunOptions};
#[cfg(feature = "file")]
pub use file::{Mapped, Region};
pub use plan::{Padding, Plan};
pub use reshard::Reshard;
pub use stages::Cost;
use tilewise::Shape;
#[cfg(feature = "unstable-testing")]
pub use tuning::Mechanism;

/// A row-major array's bytes in the layout of `shape`.
///
/// The array has `shape`'s dimensions and element type in XLA's default layout, without an element size.
///
/// # Errors
/// As for [`Plan::new`] and [`Plan::run`].
///
/// ```
/// let shape = "f32[3,5]{1,0:T(2,2)}".parse()?;
/// let tiled = tilewise_relayout::tile(&[0; 60], &shape)?;
/// assert_eq!(tiled.len(), 96);
/// assert_eq!(tilewise_relayout::untile(&tiled, &shape)?, [0; 60]);
/// # Ok::<(), tilewise_relayout::Error>(())
/// ```
pub fn tile(array: &[u8], shape: &Shape) -> Result<Vec<u8>, Error> {
    run_into_new(&Plan::new(&row_major(shape)?, shape)?, array)
}

/// The row-major array in a buffer that has the layout of `shape`; the inverse of [`tile`].
///
/// # Errors
/// As for [`Plan::new`] and [`Plan::run`].
pub fn untile(buffer: &[u8], shape: &Shape) -> Result<Vec<u8>, Error> {
    run_into_new(&Plan::new(shape, &row_major(shape)?)?, buffer)
}

fn row_major(shape: &Shape) -> Result<Shape, Error> {
    Ok(shape.with_layout(tilewise::Layout::row_major(shape.dimensions().len()))?)
}

fn run_into_new(plan: &Plan, source: &[u8]) -> Result<Vec<u8>, Error> {
    plan.check_source(source)?;
    let bytes = usize::try_from(plan.destination_bytes()).map_err(|_| {
        let message = format!("{} bytes are more than this machine can address", plan.destination_bytes());
        Error::new(ErrorKind::BufferLengthMismatch, message)
    })?;
    let mut destination = vec![0; bytes];
    plan.run(source, &mut destination)?;
    Ok(destination)
}
