//! The tests of the relayout engine, in one program: every plan and kernel against a naive relayout.

mod check;
mod file;
mod kernels;
mod parts;
mod plan;
mod random;
mod reshard;
mod support;
