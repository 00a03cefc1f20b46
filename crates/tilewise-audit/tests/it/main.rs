//! The tests of the audit's public interface, in one program.

mod advice;
mod batches;
mod copies;
mod explain;
mod mutated;
mod sizes;
mod sources;
mod work;
