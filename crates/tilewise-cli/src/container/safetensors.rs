//! `.safetensors`: <https://huggingface.co/docs/safetensors/index#format>.

use super::{Element, Header, Order, Stored, malformed, quoted, read_text, shortened, unfit, unreadable};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, IgnoredAny, MapAccess, Visitor},
};
use std::{collections::BTreeMap, fmt, io::Read};
use tilewise::{
    ElementType::{self, *},
    Tiled,
};
use tilewise_audit::Failure;

const TYPES: [(&str, ElementType); 19] = [
    ("BOOL", Pred),
    ("I8", S8),
    ("I16", S16),
    ("I32", S32),
    ("I64", S64),
    ("U8", U8),
    ("U16", U16),
    ("U32", U32),
    ("U64", U64),
    ("F8_E5M2", F8e5m2),
    ("F8_E4M3", F8e4m3fn),
    ("F8_E5M2FNUZ", F8e5m2fnuz),
    ("F8_E4M3FNUZ", F8e4m3fnuz),
    ("F8_E8M0", F8e8m0fnu),
    ("F16", F16),
    ("BF16", Bf16),
    ("F32", F32),
    ("F64", F64),
    ("C64", C64),
];

/// The format's own limit.
const LONGEST_HEADER: u64 = 100_000_000;

/// The key of the file's metadata, so no tensor can have this name.
pub(crate) const METADATA: &str = "__metadata__";

/// The header: an object of tensors, each key once.
struct Tensors(BTreeMap<String, Tensor>);

impl<'de> Deserialize<'de> for Tensors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TensorsVisitor)
    }
}

struct TensorsVisitor;

impl<'de> Visitor<'de> for TensorsVisitor {
    type Value = Tensors;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tensors, A::Error> {
        let (mut tensors, mut has_metadata) = (BTreeMap::new(), false);
        while let Some(key) = map.next_key::<String>()? {
            let is_double = if key == METADATA {
                map.next_value::<IgnoredAny>()?;
                std::mem::replace(&mut has_metadata, true)
            } else {
                tensors.insert(key.clone(), map.next_value()?).is_some()
            };
            if is_double {
                return Err(A::Error::custom(format_args!("the key {} is there twice", quoted(&key))));
            }
        }
        Ok(Tensors(tensors))
    }
}

#[derive(Deserialize, Serialize)]
struct Tensor {
    dtype: String,
    shape: Vec<u64>,
    /// Start and end, in bytes after the header.
    data_offsets: [u64; 2],
}

pub(super) fn read(mut file: impl Read, length: u64, name: Option<&str>) -> Result<Stored, Failure> {
    let mut size = [0; 8];
    file.read_exact(&mut size).map_err(unreadable)?;
    let size = u64::from_le_bytes(size);
    let text = read_text(file, size, LONGEST_HEADER)?;
    let Tensors(tensors) = serde_json::from_str(&text)
        .map_err(|error| malformed(format!("its header can't be read: {}", shortened(&error.to_string()))))?;
    let Some(name) = name else {
        let message = format!("it holds {} tensors: choose one with --name", tensors.len());
        return Err(Failure::new("missing_name", message).with_help(list(&tensors)));
    };
    let Some(tensor) = tensors.get(name) else {
        let message = format!("it holds no tensor {}", quoted(name));
        return Err(Failure::new("unknown_name", message).with_help(list(&tensors)));
    };
    let Some(&(_, element_type)) = TYPES.iter().find(|(dtype, _)| *dtype == tensor.dtype) else {
        let message = format!("XLA has no type that is stored like the tensor's {}", quoted(&tensor.dtype));
        return Err(Failure::new("unsupported_element_type", message));
    };
    let dimensions = tensor.shape.clone();
    let header = Header { element: Element::Typed(element_type), dimensions, order: Order::RowMajor };
    let [start, end] = tensor.data_offsets;
    let (bytes, held) = (header.bytes()?, end.checked_sub(start));
    if held != Some(bytes) {
        let message = format!("its header describes {bytes} bytes, and places them at {start} to {end}");
        return Err(Failure::new("buffer_length_mismatch", message));
    }
    let data = 8 + size;
    if data.checked_add(end).is_none_or(|end| end > length) {
        let message = format!("the tensor ends {end} bytes after the header, the file {}", length.saturating_sub(data));
        return Err(Failure::new("buffer_length_mismatch", message));
    }
    check_whole(&tensors, length - data)?;
    Ok(Stored { at: data + start, bytes, header: Some(header) })
}

/// Refuses overlaps and holes: each byte behind the header must belong to one tensor.
fn check_whole(tensors: &BTreeMap<String, Tensor>, length: u64) -> Result<(), Failure> {
    let mut places: Vec<_> = tensors.iter().map(|(name, tensor)| (tensor.data_offsets, name)).collect();
    places.sort_unstable();
    let mut ended = 0;
    for ([start, end], name) in places {
        let wrong = match start {
            _ if end < start => "ends before it begins",
            _ if start < ended => "overlaps another",
            _ if start > ended => "has a hole before it",
            _ => {
                ended = end;
                continue;
            }
        };
        let message = format!("the tensor {} at bytes {start} to {end} {wrong}", quoted(name));
        return Err(Failure::new("buffer_length_mismatch", message));
    }
    if ended != length {
        let message = format!("its tensors end {ended} bytes after the header, the file {length}");
        return Err(Failure::new("buffer_length_mismatch", message));
    }
    Ok(())
}

/// The tensors of the file, for an error's help.
fn list(tensors: &BTreeMap<String, Tensor>) -> String {
    const SHOWN: usize = 20;
    let tensor = |(name, tensor): (&String, &Tensor)| {
        let dimensions: Vec<String> = tensor.shape.iter().take(8).map(u64::to_string).collect();
        format!("{} {}[{}]", quoted(name), tensor.dtype.escape_debug(), dimensions.join(","))
    };
    let mut names: Vec<String> = tensors.iter().take(SHOWN).map(tensor).collect();
    if tensors.len() > SHOWN {
        names.push(format!("and {} more", tensors.len() - SHOWN));
    }
    if names.is_empty() { "it is empty".to_owned() } else { format!("there are {}", names.join(", ")) }
}

/// The header of a file with one tensor.
pub(super) fn header(tiled: &Tiled, name: &str) -> Result<Vec<u8>, Failure> {
    let element_type = tiled.array().element_type();
    let Some((dtype, _)) = TYPES.iter().find(|(_, known)| *known == element_type) else {
        return Err(unfit(format!("a .safetensors file can't hold {element_type}")));
    };
    let tensor = Tensor {
        dtype: (*dtype).to_owned(),
        shape: tiled.logical_dimensions().to_vec(),
        data_offsets: [0, tiled.physical_bytes()],
    };
    let tensors = BTreeMap::from([(name, tensor)]);
    let mut text = serde_json::to_string(&tensors).map_err(|error| malformed(error.to_string()))?;
    let size = (8 + text.len()).next_multiple_of(64) - 8;
    text.extend(std::iter::repeat_n(' ', size - text.len()));
    Ok([&(size as u64).to_le_bytes(), text.as_bytes()].concat())
}
