//! Programs as compilers print them, and made-up texts.

mod axes;
mod cases;
mod dataflow;
mod elements;
mod factors;
mod forms;
mod grammar;
mod malformed;
mod mismatch;
#[cfg(all(feature = "gzip", feature = "proto"))]
mod proto;
mod real;
