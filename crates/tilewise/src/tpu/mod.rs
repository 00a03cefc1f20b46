//! A TPU's choices: default layouts, tiles for a given order, memories, and the bytes allocated for an array.
//!
//! On a TPU tiles aren't written by hand. The compiler picks them from the element type, the bounds and the generation,
//! and where the order of dimensions is left open it picks that too. The rule lives in libtpu, not in XLA's sources.
//! The one here was inferred from libtpu's answers and checked against them, without a TPU: PJRT's `get_default_layout`
//! for defaults, the entry layouts of compiled programs for fixed orders. All figures are of [`CHECKED_WITH`]; another
//! compiler may choose differently.
//!
//! ```
//! use tilewise::{ElementType, Tiled, tpu::{self, Generation}};
//!
//! let shape = tpu::default_layout(ElementType::F32, &[1_000_000, 12], Generation::V5e)?;
//! assert_eq!(shape.to_string(), "f32[1000000,12]{0,1:T(8,128)}"); // the long dimension on the 128 lanes
//! assert_eq!(Tiled::new(&shape)?.physical_bytes(), 64_004_096);   // row-major, it would be 512,000,000
//! # Ok::<(), tilewise::Error>(())
//! ```
//!
//! # Accuracy
//!
//! When the rule was found, it gave libtpu's answer for
//! - 9,097,200 of 9,097,200 default layouts: random shapes of rank 0 to 8, 30 element types, 7 generations, fewer than 2^44 elements;
//! - 5,301 of 5,301 entry layouts of compiled identity programs, which are the default: types of 4 bits and more;
//! - 950 of 950 compiled programs that fix the order: 13 element types, random orders.
//!
//! This code is tested against the rows kept in `conformance/facts`: 41,650 defaults, 2,615 entry layouts, 481 fixed orders, all equal.
//!
//! # Limits
//!
//! - **Huge arrays.** From 2^63 bits with padding on, libtpu's costs wrap and its choice becomes arbitrary, as for
//!   `c128[127,63,1,2887,847,1023,32,1]`. Here costs are exact, so the answers differ. Nothing smaller ever disagreed.
//! - **Element counts of 2^63 and more** abort libtpu's process; here they are [`Overflow`](crate::ErrorKind::Overflow).
//! - **`f6e2m3fn` and `f6e3m2fn`** are known of JAX 0.12 with libtpu 0.0.52 alone: older ones refuse the types.
//! - **1- and 2-bit types** were only asked for their defaults: identity programs on them abort the compiler. On v2 and v3 they are
//!   stored as bytes, yet keep the tile heights of their own size.
//! - **Not observed**, and answered by extension: an array without elements in a fixed order (no tiles, as by default), a dynamic
//!   dimension (counts with its bound), a memory space other than HBM (kept; the tiles are HBM's).
//! - Inside a program the compiler may use layouts that are no default: `T(16,128)(2,1)` on v7x, `T(1)L(128)S(4)` on SparseCores.

mod allocated;
mod default_layout;
mod generation;
mod libtpu;
mod memory_space;
mod reshapes;
mod slice_orders;

pub use allocated::{UNTILED_BLOCK_BYTES, allocated_bytes};
pub use default_layout::{Policy, Prediction, default_layout, layout_for_order, predict};
pub use generation::Generation;
pub use libtpu::Libtpu;
pub use memory_space::memory_space_name;
pub use reshapes::{TpuReshape, free_reshapes};
pub use slice_orders::{SliceOrder, slice_orders};

/// The compiler whose answers the rule reproduces, the only version it was checked with.
pub const CHECKED_WITH: &str = "libtpu 0.0.51";
/// A register's lanes: the extent of every tile along the most minor dimension, in elements.
pub const LANES: u64 = 128;
/// A register's sublanes: the most rows of 32-bit words in a block's tile.
pub const SUBLANES: u64 = 8;
