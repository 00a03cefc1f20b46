//! Findings on values that are held several times: on all devices, or as copies.

use crate::program::SourceLine;

/// Values that all devices compute alike.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Alike {
    /// The number of devices.
    pub devices: u64,
    /// The dimension number, in the largest array, of positions that devices could divide.
    pub dimension: usize,
    /// Its size.
    pub size: u64,
    /// Number of arrays.
    pub arrays: usize,
    /// The line that gathers it from parts of each device; `None` if unknown.
    pub gather: Option<SourceLine>,
    /// The mesh's axis along which the devices lie; `None` if unknown.
    pub mesh_axis: Option<String>,
    /// Whether the program is each device's own, under `shard_map`.
    pub is_mapped: bool,
}

/// Arrays that are repeated for a product, which could share what they repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repeated {
    /// How often each element stands in them.
    pub times: u64,
    /// Number of arrays.
    pub arrays: usize,
    /// Bytes that they take.
    pub bytes: u64,
    /// The argument that is repeated; `None` if the program makes it.
    pub of: Option<String>,
    /// Whether parts of them are read, such as those of one step of a loop.
    pub is_sliced: bool,
    /// The line that repeats it.
    pub source: Option<SourceLine>,
}
