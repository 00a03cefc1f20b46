#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - A [`Kernel`] is read from its text, a line for each declaration; [`parts`] divides a text of several.
//! - [`Kernel::budget`] gives its [`Budget`] on a generation: a [`Window`] for each operand, an [`Allocation`] for each
//!   scratch and prefetched array, the totals, and the [`KernelFit`] against the [`Limits`] of that generation.
//! - [`Window::unsupported`] says why the compiler refuses a block, with the nearest one that it takes.
//! - [`PaddedBlock`] is one block with the padding of its tiles.
//! - A [`View`] is an array's bytes as a kernel can read them instead of a copy.
//!
//! Errors are [`tilewise::Error`]s: a kernel's text has shapes in it.
//!
//! # Accuracy
//!
//! 464 kernels were generated and compiled for v4, v5e, v5p, v6e and v7x with libtpu 0.0.42.1, ahead of time. VMEM and SMEM are
//! the compiler's to the byte for 450. In the other 14 XLA kept operands in VMEM, whose windows then are not allocated: for
//! windows of small operands see [`Window::may_be_kept`]. Half of them are in `conformance/facts`. `cargo xtask kernels`
//! compares with kernels that it generates.
//!
//! Not covered: SparseCores, collectives between chips, blocks of single elements (`pl.Element`), v2.
//!
//! The crate is `no_std`, needs only `alloc`, and panics on no input.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

extern crate alloc;

mod block;
mod budget;
mod kernel;
mod limits;
mod notation;
mod rules;
mod view;

pub use block::PaddedBlock;
pub use budget::{Allocation, Budget, BufferCause, KernelFit, Window};
pub use kernel::{Array, Kernel, Memory, Operand, Scratch};
pub use limits::{Limits, vmem_bytes};
pub use notation::parts;
pub use rules::Unsupported;
pub use view::{View, ViewAccess, ViewPart};
