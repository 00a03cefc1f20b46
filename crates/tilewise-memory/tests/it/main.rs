//! Plans against what the compiler said of the same programs, and against small programs worked out by hand.

mod by_hand;
mod compiler;
mod elements;
mod hostile;
mod machines;
