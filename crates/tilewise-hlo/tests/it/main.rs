//! Programs as compilers print them, and texts that nobody printed.

mod grammar;
mod malformed;
mod protos;
mod real;
