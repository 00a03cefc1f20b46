//! NumPy's `.npy`: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

use super::{Element, Header, Order, Stored, malformed, quoted, read_text, unfit, unreadable};
use std::io::Read;
use tilewise::{
    ElementType::{self, *},
    Tiled,
};
use tilewise_audit::Failure;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// NumPy's own types by name. Types of `ml_dtypes` are stored as bytes: `V2`.
const TYPES: [(&str, ElementType); 14] = [
    ("b1", Pred),
    ("i1", S8),
    ("i2", S16),
    ("i4", S32),
    ("i8", S64),
    ("u1", U8),
    ("u2", U16),
    ("u4", U32),
    ("u8", U64),
    ("f2", F16),
    ("f4", F32),
    ("f8", F64),
    ("c8", C64),
    ("c16", C128),
];

/// Maximum bytes of a header: NumPy's own are far shorter.
const LONGEST_HEADER: u64 = 1 << 20;

pub(super) fn read(mut file: impl Read, length: u64) -> Result<Stored, Failure> {
    let mut start = [0; 8];
    file.read_exact(&mut start).map_err(unreadable)?;
    let Some([version, _]) = start.strip_prefix(MAGIC) else {
        let help = "give a file of raw bytes another extension, such as .bin";
        return Err(malformed("it does not start like a .npy file").with_help(help));
    };
    let mut size = [0; 4];
    let size_bytes = match version {
        1 => 2,
        2 | 3 => 4,
        _ => return Err(malformed(format!("version {version} of .npy is not supported: NumPy writes 1 to 3"))),
    };
    file.read_exact(&mut size[..size_bytes]).map_err(unreadable)?;
    let size = u64::from(u32::from_le_bytes(size));
    let text = read_text(file, size, LONGEST_HEADER)?;
    let header = parse(&text)?;
    let at = (start.len() + size_bytes) as u64 + size;
    let (bytes, held) = (header.bytes()?, length.saturating_sub(at));
    if bytes != held {
        let message = format!("its header describes {bytes} bytes, and {held} follow");
        return Err(Failure::new("buffer_length_mismatch", message));
    }
    Ok(Stored { at, bytes, header: Some(header) })
}

/// `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
fn parse(text: &str) -> Result<Header, Failure> {
    let unread = || malformed(format!("its header can't be read as NumPy's: {}", quoted(text.trim_end())));
    let (mut element, mut order, mut dimensions) = (None, None, None);
    let mut literal = Literal { rest: text };
    literal.expect("{").ok_or_else(unread)?;
    while literal.expect("}").is_none() {
        let key = literal.string().ok_or_else(unread)?;
        literal.expect(":").ok_or_else(unread)?;
        match key {
            "descr" => match literal.string() {
                Some(descr) => element = Some(parse_type(descr)?),
                None => return Err(unsupported("a structured type")),
            },
            "fortran_order" => {
                let is_fortran = literal.expect("True").map(|()| Order::ColumnMajor);
                order =
                    Some(is_fortran.or_else(|| literal.expect("False").map(|()| Order::RowMajor)).ok_or_else(unread)?);
            }
            "shape" => dimensions = Some(literal.tuple().ok_or_else(unread)?),
            _ => return Err(unread()),
        }
        if literal.expect(",").is_none() {
            literal.expect("}").ok_or_else(unread)?;
            break;
        }
    }
    match (element, order, dimensions, literal.rest.trim()) {
        (Some(element), Some(order), Some(dimensions), "") => Ok(Header { element, dimensions, order }),
        _ => Err(unread()),
    }
}

fn parse_type(descr: &str) -> Result<Element, Failure> {
    let name = descr.strip_prefix(['<', '|', '>', '=']).ok_or_else(|| unsupported(&quoted(descr)))?;
    let named = TYPES.iter().find(|(numpy, _)| *numpy == name).map(|&(_, element_type)| element_type);
    if descr.starts_with('>') && named.is_none_or(|element_type| element_type.bits() > 8) {
        let help = "convert it to little-endian, with array.astype(array.dtype.newbyteorder('<'))";
        return Err(unsupported(&format!("the big-endian {}", quoted(descr))).with_help(help));
    }
    let bytes = name.strip_prefix('V').and_then(|bytes| bytes.parse().ok()).filter(|&bytes| bytes > 0);
    match (named, bytes) {
        (Some(element_type), _) => Ok(Element::Typed(element_type)),
        (None, Some(bytes)) => Ok(Element::Bytes(bytes)),
        (None, None) => Err(unsupported(&quoted(descr))),
    }
}

fn unsupported(what: &str) -> Failure {
    Failure::new("unsupported_element_type", format!("its elements are {what}, which XLA has no type for"))
}

/// The unread rest of a Python literal.
struct Literal<'a> {
    rest: &'a str,
}

impl<'a> Literal<'a> {
    fn expect(&mut self, token: &str) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(token)?;
        Some(())
    }

    fn string(&mut self) -> Option<&'a str> {
        let rest = self.rest.trim_start();
        let quote = rest.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
        let (text, rest) = rest[1..].split_once(quote)?;
        self.rest = rest;
        Some(text)
    }

    fn tuple(&mut self) -> Option<Vec<u64>> {
        let mut numbers = Vec::new();
        self.expect("(")?;
        while self.expect(")").is_none() {
            let rest = self.rest.trim_start();
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            numbers.push(rest[..end].parse().ok()?);
            self.rest = &rest[end..];
            // Python 2 wrote long numbers with an `L`.
            let _ = self.expect("L");
            if self.expect(",").is_none() {
                self.expect(")")?;
                break;
            }
        }
        Some(numbers)
    }
}

/// The header as NumPy writes it, also for types of `ml_dtypes`.
pub(super) fn header(tiled: &Tiled, order: Order) -> Result<Vec<u8>, Failure> {
    /// NumPy's limit.
    const HIGHEST_RANK: usize = 64;
    const START: usize = 10;
    let (element_type, dimensions) = (tiled.array().element_type(), tiled.logical_dimensions());
    if dimensions.len() > HIGHEST_RANK {
        return Err(unfit(format!("a .npy file has at most {HIGHEST_RANK} dimensions, not {}", dimensions.len())));
    }
    let bytes = element_type.natural_bytes();
    let descr = match TYPES.iter().find(|(_, known)| *known == element_type) {
        Some((name, _)) if bytes == 1 => format!("|{name}"),
        Some((name, _)) => format!("<{name}"),
        None => format!("<V{bytes}"),
    };
    let fortran_order = if order == Order::ColumnMajor { "True" } else { "False" };
    let shape = match dimensions {
        [only] => format!("({only},)"),
        _ => format!("({})", dimensions.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': {fortran_order}, 'shape': {shape}, }}");
    let size = (START + text.len() + 1).next_multiple_of(64) - START;
    text.extend(std::iter::repeat_n(' ', size - 1 - text.len()));
    text.push('\n');
    let size = u16::try_from(size).map_err(|_| unfit("the header of a .npy file has at most 65535 bytes"))?;
    Ok([&MAGIC[..], &[1, 0], &size.to_le_bytes(), text.as_bytes()].concat())
}
