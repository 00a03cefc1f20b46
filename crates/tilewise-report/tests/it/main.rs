//! The tests of what is said, in one program.

mod advice;
mod batches;
mod comparison;
mod copies;
mod documents;
mod donation;
mod held;
mod history;
mod host;
mod jobs;
mod joins;
mod kernels;
mod layers;
mod loops;
mod messages;
mod parts;
mod rewrites;
mod screen;
mod tables;
mod torch;
mod unseen;
