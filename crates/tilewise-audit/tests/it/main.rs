//! The tests of the audit's public interface, in one program.

mod advice;
mod copies;
mod explain;
mod fix;
mod fix_properties;
mod mutated;
mod sizes;
