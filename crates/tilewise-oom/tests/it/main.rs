//! Messages as compilers printed them, as others pasted them, and texts that are none.

mod kinds;
mod malformed;
mod no_alarm;
mod printed;
mod public;
