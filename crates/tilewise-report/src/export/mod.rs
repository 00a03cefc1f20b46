//! Reports as files of other programs, one module a format.

#[cfg(feature = "csv")]
pub mod csv;
mod events;
#[cfg(feature = "html")]
mod html;
pub mod memory_viz;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod trace;
