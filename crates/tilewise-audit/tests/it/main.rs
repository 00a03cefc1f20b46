//! The tests of the audit's public interface, in one program.

mod evidence;
mod explain;
mod mutated;
mod sizes;
mod sources;
mod structure;
mod together;
mod work;
