//! Errors of sets of programs.

use crate::failure::Failure;
use tilewise_memory::{Error, Machine};

pub(super) fn no_program() -> Failure {
    Failure::new("usage", "a set of programs has at least one")
}

pub(super) fn no_plan(name: &str, error: &Error) -> Failure {
    Failure::new("no_plan", format!("`{name}` has no memory plan: {error}"))
        .with_help("give final programs: the compiler's `after_optimizations` texts")
}

pub(super) fn incomplete(name: &str) -> Failure {
    let message = format!("what `{name}` holds can't be known: not all of it could be read or sized");
    Failure::new("incomplete", message)
}

pub(super) fn other_machine(name: &str, machine: Machine, others: Machine) -> Failure {
    Failure::new("other_machine", format!("`{name}` is compiled for {machine}, and others for {others}"))
        .with_help("one device runs programs of one machine")
}

pub(super) fn not_pages(text: &str) -> Failure {
    Failure::new("usage", format!("`{text}` isn't an argument's name, or NAME:DIMENSION"))
}

pub(super) fn no_pages(name: &str) -> Failure {
    Failure::new("no_pages", format!("no array that is held all the time is called `{name}`"))
        .with_help("inputs of a call, whose sizes differ, aren't a cache")
}

pub(super) fn several_counts(name: &str, dimension: usize) -> Failure {
    Failure::new("no_pages", format!("dimension {dimension} of `{name}` isn't of one size in all arrays"))
        .with_help("NAME:DIMENSION says which dimension counts pages")
}
