//! The tests of the core's public interface, in one program: against the documents, recorded answers and a naive oracle.

mod api;
mod documents;
mod edits;
mod equivalence;
mod golden;
#[cfg(feature = "notations")]
mod interop;
#[cfg(feature = "notations")]
mod notations;
mod oracle;
mod proto;
mod runs;
mod serde;
mod sharding;
mod steps;
#[cfg(feature = "notations")]
mod tile_formats;
mod tpu;
mod vectors;
mod walks;
