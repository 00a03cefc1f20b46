//! The programs in a profile: `XSpace` of tsl/profiler/protobuf/xplane.proto.
//!
//! The plane `/host:metadata` has no events, but describes one for each program: it has the program's name and its
//! `HloProto`.

use prost::Message;
use prost::bytes::Bytes;

use super::{begins_as_module, field};
use crate::error::{Error, ErrorKind};

/// The name of the plane with the programs.
const METADATA: &str = "/host:metadata";

#[derive(Clone, PartialEq, Message)]
struct XSpace {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    planes: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct XPlane {
    #[prost(string, tag = "2")]
    name: String,
    /// The entries of a map.
    #[prost(bytes = "bytes", repeated, tag = "4")]
    event_metadata: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct EventEntry {
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct XEventMetadata {
    #[prost(string, tag = "2")]
    name: String,
    #[prost(bytes = "bytes", repeated, tag = "5")]
    stats: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct XStat {
    #[prost(bytes = "bytes", tag = "6")]
    bytes_value: Bytes,
}

/// Whether the bytes begin with a plane: its number, if that isn't 0, and its name.
pub(crate) fn begins_as_profile(bytes: &[u8]) -> bool {
    let Some((_, mut plane)) = field(bytes, 1) else { return false };
    if let Some((8, mut rest)) = plane.split_first()
        && prost::encoding::decode_varint(&mut rest).is_ok()
    {
        plane = rest;
    }
    let name = field(plane, 2).and_then(|(length, name)| name.get(..length));
    name.is_some_and(|name| name.starts_with(b"/host:") || name.starts_with(b"/device:") || name == b"Task Environment")
}

/// The programs in a profile: their names, and each as an `HloProto`.
pub(crate) fn programs(bytes: Bytes) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut programs = Vec::new();
    for plane in message::<XSpace>(bytes)?.planes {
        let XPlane { name, event_metadata } = message(plane)?;
        if name != METADATA {
            continue;
        }
        for entry in event_metadata {
            let XEventMetadata { name, stats } = message(message::<EventEntry>(entry)?.value)?;
            for stat in stats {
                let XStat { bytes_value: proto } = message(stat)?;
                if begins_as_module(&proto) {
                    programs.push((name.clone(), proto.into()));
                }
            }
        }
    }
    Ok(programs)
}

fn message<M: Message + Default>(bytes: Bytes) -> Result<M, Error> {
    let error = |error| Error::new(ErrorKind::Truncated, None, format!("the profile is damaged or cut off: {error}"));
    M::decode(bytes).map_err(error)
}
