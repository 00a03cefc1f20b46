//! The contents of a program's file.

use crate::buffer_assignment::BufferAssignment;
use crate::error::{Error, ErrorKind};
use crate::gzip::decompressed;
use crate::parse::of_dump;
use crate::profile::{Profile, ProfiledProgram, is_profile};

/// The contents of a program's file, recognised by its bytes: a text, or for a proto the text of its module and the
/// compiler's plan of its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Document {
    /// The text, of any content. An `HloProto`, `HloModuleProto` or `HloSnapshot` is printed as HLO text.
    pub text: String,
    /// The buffer assignment that came with the module, as in the `HloProto`s of a dump.
    pub buffer_assignment: Option<BufferAssignment>,
}

impl Document {
    /// Reads bytes: UTF-8, or UTF-16 with its byte order mark, as some shells redirect; a proto; a [profile](Profile) of one
    /// program; any of them gzip or not, with at most `limit` bytes decompressed.
    ///
    /// # Errors
    ///
    /// Those of [`decode`](crate::decode).
    ///
    /// ```
    /// let document = tilewise_hlo::Document::decode(b"HloModule m".to_vec(), 100)?;
    /// assert_eq!((document.text.as_str(), document.buffer_assignment), ("HloModule m", None));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    pub fn decode(bytes: Vec<u8>, limit: u64) -> Result<Self, Error> {
        let bytes = decompressed(bytes, limit)?;
        if is_profile(&bytes) { only(Profile::of(bytes)?)?.document() } else { Self::of(bytes) }
    }

    /// As [`decode`](Self::decode), for every program of a [profile](Profile). At least one document or error.
    #[must_use]
    pub fn decode_all(bytes: Vec<u8>, limit: u64) -> Vec<Result<Self, Error>> {
        let documents = decompressed(bytes, limit).and_then(|bytes| {
            if is_profile(&bytes) {
                Ok(Profile::of(bytes)?.programs.iter().map(ProfiledProgram::document).collect())
            } else {
                Ok(vec![Self::of(bytes)])
            }
        });
        documents.unwrap_or_else(|error| vec![Err(error)])
    }

    /// The document of bytes that are no profile.
    pub(crate) fn of(bytes: Vec<u8>) -> Result<Self, Error> {
        #[cfg(feature = "proto")]
        let bytes = {
            let bytes = prost::bytes::Bytes::from(bytes);
            if let Some(program) = crate::proto::find(&bytes)? {
                let (text, buffer_assignment) = program.into_parts()?;
                return Ok(Self { text, buffer_assignment });
            }
            Vec::from(bytes)
        };
        let text = match bytes.as_slice() {
            [0xff, 0xfe, text @ ..] => utf16(text, u16::from_le_bytes),
            [0xfe, 0xff, text @ ..] => utf16(text, u16::from_be_bytes),
            _ => String::from_utf8(bytes).map_err(|error| not_utf8(error.as_bytes(), error.utf8_error().valid_up_to())),
        };
        Ok(Self { text: text?, buffer_assignment: None })
    }
}

/// Whether bytes begin as an `HloModuleProto`, `HloProto` or `HloSnapshot` does; never without the feature `proto`.
///
/// ```
/// assert!(!tilewise_hlo::is_proto(b"HloModule m"));
/// ```
#[must_use]
pub fn is_proto(head: &[u8]) -> bool {
    #[cfg(feature = "proto")]
    let begins = crate::proto::begins_as_module(head);
    #[cfg(not(feature = "proto"))]
    let begins = {
        let _ = head;
        false
    };
    begins
}

impl ProfiledProgram {
    /// The program, with the compiler's plan.
    ///
    /// # Errors
    ///
    /// Those of [`decode`](crate::decode) for a proto.
    pub fn document(&self) -> Result<Document, Error> {
        Document::of(self.proto.clone())
    }
}

/// The only program of a profile; an error if there are several, or none.
fn only(profile: Profile) -> Result<ProfiledProgram, Error> {
    let count = profile.programs.len();
    let message = format!("a profile of {count} programs, not of one: {}", profile.names());
    let program = profile.programs.into_iter().next().filter(|_| count == 1);
    program.ok_or_else(|| Error::new(ErrorKind::SeveralPrograms, None, message))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, Error> {
    let (units, rest) = bytes.as_chunks();
    let text: Option<String> = char::decode_utf16(units.iter().copied().map(unit)).map(Result::ok).collect();
    let error = || Error::new(ErrorKind::NotUtf8, None, "the UTF-16 text is damaged or cut off");
    text.filter(|_| rest.is_empty()).ok_or_else(error)
}

/// The first bytes of archives and compressed files, which aren't read.
const ARCHIVES: [(&[u8], &str); 6] = [
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x28\xb5\x2f\xfd", "data that zstd compressed"),
    (b"\xfd7zXZ\0", "data that xz compressed"),
    (b"BZh", "data that bzip2 compressed"),
    (b"\x78\x9c", "data that zlib compressed"),
    (b"\x80\x04\x95", "a Python pickle"),
];

fn not_utf8(bytes: &[u8], at: usize) -> Error {
    let span = Some(at..at + 1);
    // A memory-usage report holds tables in text, each with this heading.
    if memchr::memmem::find(bytes, b"used_by_n_values").is_some() {
        return of_dump("the proto of a memory-usage report");
    }
    if let Some((_, what)) = ARCHIVES.iter().find(|(head, _)| bytes.starts_with(head)) {
        return Error::new(ErrorKind::NotUtf8, span, format!("this is {what}, to be unpacked first"));
    }
    let before = bytes.get(..at).unwrap_or_default();
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    if at == 0 || bytes.iter().take(1 << 12).any(is_control) {
        return Error::new(ErrorKind::NotUtf8, span, "neither text nor a proto of an HLO module");
    }
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let message = format!("not UTF-8 text: a byte in line {line} can't be part of it; was the file damaged or cut?");
    Error::new(ErrorKind::NotUtf8, span, message)
}
