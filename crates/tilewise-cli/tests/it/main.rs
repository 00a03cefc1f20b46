//! The tests of the command line, in one program. Each starts the `tilewise` that cargo has just built.

mod english;
mod exports;
mod folders;
mod hostile;
mod inputs;
mod json;
mod limits;
mod messages;
#[cfg(unix)]
mod python;
mod relayout;
mod tiles;
mod time;
mod transcripts;
