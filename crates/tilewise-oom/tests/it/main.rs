//! Messages as compilers printed them, as others pasted them, and texts that are none.

mod malformed;
mod printed;
mod public;
