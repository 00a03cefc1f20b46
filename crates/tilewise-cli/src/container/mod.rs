//! Files that hold an array: raw bytes, NumPy's `.npy`, `.safetensors`.

mod npy;
mod safetensors;

pub(crate) use safetensors::METADATA;

use std::{
    io::{self, Read},
    path::Path,
};
use tilewise::{ElementType, Layout, Shape, Tiled};
use tilewise_audit::Failure;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Container {
    /// The array's bytes alone.
    Raw,
    Npy,
    Safetensors,
}

/// An array's place in a file.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    pub(crate) header: Option<Header>,
}

/// The array that a file's header describes.
#[derive(Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) element: Element,
    pub(crate) dimensions: Vec<u64>,
    pub(crate) order: Order,
}

/// A type, or its width only: NumPy stores types it does not know as `V2`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Element {
    Typed(ElementType),
    Bytes(u64),
}

/// The orders of dimensions that headers can express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    RowMajor,
    ColumnMajor,
}

impl Container {
    /// The format by the file's extension.
    pub(crate) fn of(path: &Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
        match extension.as_deref() {
            Some("npy") => Self::Npy,
            Some("safetensors") => Self::Safetensors,
            _ => Self::Raw,
        }
    }

    /// Reads the header of a file of `length` bytes; `name` selects a tensor.
    pub(crate) fn find(self, file: impl Read, length: u64, name: Option<&str>) -> Result<Stored, Failure> {
        match self {
            Self::Raw => Ok(Stored { at: 0, bytes: length, header: None }),
            Self::Npy => npy::read(file, length),
            Self::Safetensors => safetensors::read(file, length, name),
        }
    }

    /// The file's header, padded so that the array starts on a cache line; `name` is the only tensor's name.
    pub(crate) fn header_for(self, tiled: &Tiled, name: &str) -> Result<Vec<u8>, Failure> {
        match (self, Order::of(tiled)?) {
            (Self::Raw, _) => Ok(Vec::new()),
            (Self::Npy, Some(order)) => npy::header(tiled, order),
            (Self::Npy, None) => {
                Err(unfit("a .npy file can only hold row-major and column-major arrays, without tiles or padding"))
            }
            (Self::Safetensors, Some(Order::RowMajor)) => safetensors::header(tiled, name),
            (Self::Safetensors, _) => {
                Err(unfit("a .safetensors file can only hold row-major arrays, without tiles or padding"))
            }
        }
    }
}

/// The error for a layout that the format can't express.
fn unfit(message: impl Into<String>) -> Failure {
    Failure::new("unsupported_layout", message).with_help("write raw bytes: give OUT another extension, such as .bin")
}

impl Header {
    /// The array that the header describes; `element_type` is for a header with a width only.
    pub(crate) fn shape(&self, element_type: Option<ElementType>) -> Result<Shape, Failure> {
        let element_type = match (self.element, element_type) {
            (Element::Typed(element_type), _) => element_type,
            (Element::Bytes(bytes), Some(given)) if u64::from(given.natural_bytes()) == bytes => given,
            (Element::Bytes(bytes), Some(given)) => {
                let message = format!("its elements have {bytes} bytes, and {given} has {}", given.natural_bytes());
                return Err(Failure::new("shape_mismatch", message));
            }
            (Element::Bytes(bytes), None) => {
                let message = format!("its elements have {bytes} bytes, of a type that NumPy has no name for");
                return Err(Failure::new("missing_shape", message)
                    .with_help("give the type with --from, such as --from 'bf16[300,500]'"));
            }
        };
        let shape = Shape::array(element_type, self.dimensions.iter().copied())?;
        Ok(shape.with_layout(self.order.layout(self.dimensions.len())?)?)
    }

    /// The array's size in bytes.
    fn bytes(&self) -> Result<u64, Failure> {
        let width = match self.element {
            Element::Typed(element_type) => element_type.natural_bytes().into(),
            Element::Bytes(bytes) => bytes,
        };
        if self.dimensions.contains(&0) {
            return Ok(0);
        }
        let bytes = self.dimensions.iter().try_fold(width, |product, &bound| product.checked_mul(bound));
        bytes.ok_or_else(|| Failure::new("overflow", "its header describes more than 2^64 bytes"))
    }
}

impl Order {
    /// The order of the array's bytes; `None` if they have another order or gaps.
    fn of(tiled: &Tiled) -> Result<Option<Self>, Failure> {
        let shape = Shape::from(tiled.array().clone());
        for order in [Self::RowMajor, Self::ColumnMajor] {
            let plain = shape.with_layout(order.layout(shape.dimensions().len())?)?;
            if Tiled::new(&plain)?.has_bytes_of(tiled) {
                return Ok(Some(order));
            }
        }
        Ok(None)
    }

    fn layout(self, rank: usize) -> Result<Layout, Failure> {
        match self {
            Self::RowMajor => Ok(Layout::row_major(rank)),
            Self::ColumnMajor => Ok(Layout::new(0..rank)?),
        }
    }
}

/// Whether two layouts of one array put every byte at the same offset.
pub(crate) trait SameBytes {
    fn has_bytes_of(&self, other: &Self) -> bool;
}

impl SameBytes for Tiled {
    fn has_bytes_of(&self, other: &Self) -> bool {
        self.array().element_type() == other.array().element_type()
            && self.logical_dimensions() == other.logical_dimensions()
            && self.physical_bytes() == other.physical_bytes()
            && self.physical_elements() == other.physical_elements()
            && self.digits() == other.digits()
            && self.nested_axes().is_empty()
            && other.nested_axes().is_empty()
    }
}

/// The error for a header that breaks the rules of its format.
fn malformed(message: impl Into<String>) -> Failure {
    Failure::new("malformed_header", message)
}

fn unreadable(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => malformed("the file ends within its header"),
        _ => Failure::new("io", error.to_string()),
    }
}

/// The header's text, of the length that the file gives.
fn read_text(mut file: impl Read, bytes: u64, at_most: u64) -> Result<String, Failure> {
    if bytes > at_most {
        return Err(malformed(format!("its header has {bytes} bytes, more than the limit of {at_most}")));
    }
    let mut text = Vec::new();
    file.by_ref().take(bytes).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 != bytes {
        return Err(unreadable(io::ErrorKind::UnexpectedEof.into()));
    }
    String::from_utf8(text).map_err(|_| malformed("its header is not UTF-8 text"))
}

/// Untrusted text as part of a message: cut and escaped.
fn quoted(text: &str) -> String {
    format!("`{}`", shortened(text))
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files that NumPy and safetensors wrote, and where their arrays are.
    const FILES: [(Container, &[u8], u64, u64); 4] = [
        (Container::Npy, include_bytes!("../../tests/cmd/relayout.in/rows.npy"), 128, 60),
        (Container::Npy, include_bytes!("../../tests/cmd/relayout.in/columns.npy"), 128, 60),
        (Container::Npy, include_bytes!("../../tests/cmd/relayout.in/weight.npy"), 128, 48),
        (Container::Safetensors, include_bytes!("../../tests/cmd/relayout.in/model.safetensors"), 196, 48),
    ];

    fn find(container: Container, bytes: &[u8]) -> Result<Stored, String> {
        let found = container.find(bytes, bytes.len() as u64, Some("weight"));
        // The array found lies within the file.
        if let Ok(stored) = &found {
            assert!(stored.at.checked_add(stored.bytes).is_some_and(|end| end <= bytes.len() as u64), "{stored:?}");
            let shape = stored.header.as_ref().map(|header| header.shape(Some(ElementType::Bf16)));
            let _ = shape.and_then(Result::ok).map(|shape| Tiled::new(&shape));
        }
        found.map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn files_written_by_numpy_and_safetensors_are_read() {
        for (container, bytes, at, length) in FILES {
            let stored = find(container, bytes).expect("a header");
            assert_eq!((stored.at, stored.bytes), (at, length));
            let header = stored.header.expect("a header");
            let shape = header.shape(Some(ElementType::Bf16)).expect("a shape").to_string();
            let expected = match (container, header.order) {
                (Container::Npy, Order::ColumnMajor) => "f32[3,5]{0,1}",
                (Container::Npy, _) if header.element == Element::Typed(ElementType::F32) => "f32[3,5]{1,0}",
                _ => "bf16[4,6]{1,0}",
            };
            assert_eq!(shape, expected);
        }
    }

    #[test]
    fn truncated_and_corrupted_headers_are_errors() {
        for (container, bytes, at, _) in FILES {
            for end in 0..bytes.len() {
                assert!(find(container, &bytes[..end]).is_err(), "{end}");
            }
            let mut changed = bytes.to_vec();
            for place in 0..usize::try_from(at).expect("small") {
                for value in [0, b' ', b'"', b'\'', b'9', b'{', b'(', b',', b'[', 0x7F, 0x80, 0xFF] {
                    changed[place] = value;
                    let _ = find(container, &changed);
                }
                changed[place] = bytes[place];
            }
        }
    }

    fn npy(version: u8, size: u64, text: &str) -> Vec<u8> {
        let size = size.to_le_bytes();
        [b"\x93NUMPY", &[version, 0][..], &size[..if version == 1 { 2 } else { 4 }], text.as_bytes()].concat()
    }

    fn safetensors(size: u64, text: &str) -> Vec<u8> {
        [&size.to_le_bytes()[..], text.as_bytes()].concat()
    }

    #[test]
    fn malformed_headers_are_named_errors() {
        let dictionary = |descr: &str, order: &str, shape: &str| {
            let text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n");
            npy(1, text.len() as u64, &text)
        };
        let tensor = |text: &str| safetensors(text.len() as u64, text);
        let weight = |dtype: &str, shape: &str, offsets: &str| {
            tensor(&format!(r#"{{"weight":{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}}}}}"#))
        };
        let nested = format!(r#"{{"weight":{}"#, "[".repeat(1 << 20));
        for (container, bytes, kind) in [
            (Container::Npy, npy(2, u32::MAX.into(), ""), "malformed_header"),
            (Container::Npy, npy(1, 65535, "{}"), "malformed_header"),
            (Container::Npy, npy(4, 2, "{}"), "malformed_header"),
            (Container::Npy, npy(3, 2, "{}"), "malformed_header"),
            (Container::Npy, npy(3, 2, "é"), "malformed_header"),
            (Container::Npy, b"PK\x03\x04 a .npz".to_vec(), "malformed_header"),
            (Container::Npy, dictionary("'<f4'", "False", "(18446744073709551615, 5)"), "overflow"),
            (Container::Npy, dictionary("'<f4'", "False", "(18446744073709551616,)"), "malformed_header"),
            (Container::Npy, dictionary("'<f4'", "False", "(-1,)"), "malformed_header"),
            (Container::Npy, dictionary("'<f4'", "Maybe", "()"), "malformed_header"),
            (Container::Npy, dictionary("'<f4", "False", "()"), "unsupported_element_type"),
            (Container::Npy, dictionary("'|O'", "False", "()"), "unsupported_element_type"),
            (Container::Npy, dictionary("'<f16'", "False", "()"), "unsupported_element_type"),
            (Container::Npy, dictionary("'|V0'", "False", "()"), "unsupported_element_type"),
            (Container::Npy, dictionary("''", "False", "()"), "unsupported_element_type"),
            (Container::Npy, dictionary("'é'", "False", "()"), "unsupported_element_type"),
            (Container::Npy, dictionary("'>V2'", "False", "()"), "unsupported_element_type"),
            (Container::Npy, dictionary("'|V18446744073709551615'", "False", "(2,)"), "overflow"),
            (Container::Npy, dictionary("'|V18446744073709551615'", "False", "(1,)"), "buffer_length_mismatch"),
            (Container::Npy, dictionary("[('a', '<f4')]", "False", "()"), "unsupported_element_type"),
            (Container::Safetensors, safetensors(u64::MAX, "{}"), "malformed_header"),
            (Container::Safetensors, safetensors(100_000_000, "{}"), "malformed_header"),
            (Container::Safetensors, safetensors(2, "\u{ff}"), "malformed_header"),
            (Container::Safetensors, tensor("{}"), "unknown_name"),
            (Container::Safetensors, tensor("[]"), "malformed_header"),
            (Container::Safetensors, tensor(&nested), "malformed_header"),
            (Container::Safetensors, tensor(r#"{"weight":"\u001b[31mred"}"#), "malformed_header"),
            (Container::Safetensors, weight("\"F32\"", "[]", "[4,0]"), "buffer_length_mismatch"),
            (Container::Safetensors, weight("\"F32\"", "[]", "[0,4]"), "buffer_length_mismatch"),
            (
                Container::Safetensors,
                weight("\"F32\"", "[]", "[18446744073709551611,18446744073709551615]"),
                "buffer_length_mismatch",
            ),
            (Container::Safetensors, weight("\"F32\"", "[4294967296,4294967296]", "[0,0]"), "overflow"),
            (Container::Safetensors, weight("\"F32\"", "[-1]", "[0,4]"), "malformed_header"),
            (Container::Safetensors, weight("\"F4\"", "[2]", "[0,1]"), "unsupported_element_type"),
            (Container::Safetensors, weight("7", "[2]", "[0,1]"), "malformed_header"),
        ] {
            let error = find(container, &bytes).expect_err(kind);
            assert!(error.contains(&format!("kind: {kind:?}")), "{kind}: {error}");
            assert!(error.len() < 1000 && !error.contains('\u{1b}'), "{error}");
        }
    }

    /// The safetensors library refuses these files, too: <https://huggingface.co/docs/safetensors/index#format>
    /// requires that each byte belongs to one tensor, and that keys are unique.
    #[test]
    fn tensors_fill_the_file_once() {
        let file = |others: &str, held: usize| {
            let text = format!(r#"{{"weight":{{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}{others}}}"#);
            [safetensors(text.len() as u64, &text), vec![0; held]].concat()
        };
        let before = r#","a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}"#;
        assert!(find(Container::Safetensors, &file(before, 8)).is_ok());
        let metadata = r#","__metadata__":{"a":"b"}"#;
        assert!(find(Container::Safetensors, &file(&format!("{before}{metadata}"), 8)).is_ok());
        for (others, held, wrong) in [
            (before, 9, "end 8 bytes after the header, the file 9"),
            ("", 8, "`weight` at bytes 4 to 8 has a hole before it"),
            (r#","a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}"#, 8, "`weight` at bytes 4 to 8 overlaps another"),
            (r#","a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}"#, 8, "`a` at bytes 4 to 0 ends before it begins"),
            (&format!("{before}{before}"), 8, "the key `a` is there twice"),
            (&format!("{before}{metadata}{metadata}"), 8, "the key `__metadata__` is there twice"),
            (r#","a":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}"#, 8, "duplicate field"),
        ] {
            let error = find(Container::Safetensors, &file(others, held)).expect_err(wrong);
            assert!(error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn other_spellings_of_one_header() {
        for text in [
            "{'shape': (3L, 5L), 'fortran_order': False, 'descr': '<f4'}",
            "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(3,5)}",
            "  { 'descr' : '=f4' , 'fortran_order' : False , 'shape' : ( 3 , 5 , ) , }  \n",
        ] {
            let bytes = [npy(3, text.len() as u64, text), vec![0; 60]].concat();
            let header = find(Container::Npy, &bytes).expect("a header").header.expect("a header");
            assert_eq!(header.shape(None).expect("a shape").to_string(), "f32[3,5]{1,0}");
        }
    }
}
