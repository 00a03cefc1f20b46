//! Files, compressed or not.

use std::fs;
use std::path::Path;

use crate::error::{Error, ErrorKind};
use crate::module::Module;

/// The most bytes that [`read`] and [`read_text`] decompress a file to: what [`Module::parse`] can hold, 4 GiB − 1.
pub const DECOMPRESSION_LIMIT: u64 = u32::MAX as u64;

/// Reads a file of HLO text. Gzip is recognised by its first bytes, not by its name.
///
/// # Errors
///
/// Those of [`read_text`] and [`Module::parse`].
///
/// ```
/// let path = std::env::temp_dir().join("tilewise-hlo-read.hlo");
/// std::fs::write(&path, "x = f32[2] parameter(0)").unwrap();
/// assert_eq!(tilewise_hlo::read(&path)?.instructions().len(), 1);
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
pub fn read(path: impl AsRef<Path>) -> Result<Module, Error> {
    Module::parse(read_text(path)?)
}

/// Reads a file as text, whatever the text. Gzip and serialised modules are recognised by what is in them, not by their
/// names.
///
/// # Errors
///
/// [`Io`](ErrorKind::Io), [`NotUtf8`](ErrorKind::NotUtf8), [`GzipTooLarge`](ErrorKind::GzipTooLarge) for more than
/// [`DECOMPRESSION_LIMIT`] bytes, [`GzipUnsupported`](ErrorKind::GzipUnsupported) without the `gzip` feature.
pub fn read_text(path: impl AsRef<Path>) -> Result<String, Error> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(|error| {
        let message = format!("can't read {}: {error}", path.display());
        Error::new(ErrorKind::Io, None, message).caused_by(error)
    })?;
    decode(bytes, DECOMPRESSION_LIMIT)
}

/// Bytes, gzip or not, as text; of gzip at most `limit` bytes are decompressed.
///
/// # Errors
///
/// Those of [`read_text`].
///
/// ```
/// assert_eq!(tilewise_hlo::decode(b"HloModule m".to_vec(), 100)?, "HloModule m");
/// let error = tilewise_hlo::decode(b"\x0a\xff\x00".to_vec(), 100).unwrap_err();
/// assert_eq!(error.kind(), tilewise_hlo::ErrorKind::NotUtf8);
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
pub fn decode(bytes: Vec<u8>, limit: u64) -> Result<String, Error> {
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) { decompress(&bytes, limit)? } else { bytes };
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        let message = "this is UTF-16; convert it to UTF-8, with `iconv -f utf-16 -t utf-8`";
        return Err(Error::new(ErrorKind::NotUtf8, Some(0..2), message));
    }
    let text = if is_binary(&bytes) { from_proto(&bytes)? } else { None };
    if let Some(text) = text {
        return Ok(text);
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = "neither UTF-8 text nor a serialised HloProto, HloModuleProto or HloSnapshot; write HLO text with \
                       XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" or `compiled.as_text()` in jax";
        Error::new(ErrorKind::NotUtf8, Some(at..at + 1), message)
    })
}

/// Whether bytes can't be a text: messages begin with a field's number and length, and shapes among them hold bytes that
/// no text does.
fn is_binary(bytes: &[u8]) -> bool {
    let start = bytes.get(..4096).unwrap_or(bytes);
    start.iter().any(|byte| *byte < b' ' && !byte.is_ascii_whitespace()) || memchr::memchr(0, start).is_some()
}

#[cfg(feature = "proto")]
fn from_proto(bytes: &[u8]) -> Result<Option<String>, Error> {
    crate::proto::text(bytes)
}

#[cfg(not(feature = "proto"))]
fn from_proto(_: &[u8]) -> Result<Option<String>, Error> {
    Ok(None)
}

#[cfg(feature = "gzip")]
fn decompress(bytes: &[u8], limit: u64) -> Result<Vec<u8>, Error> {
    use std::io::Read as _;

    let mut plain = Vec::new();
    let read = flate2::read::MultiGzDecoder::new(bytes).take(limit.saturating_add(1)).read_to_end(&mut plain);
    read.map_err(|error| {
        let message = format!("can't decompress the gzip data: {error}");
        Error::new(ErrorKind::Io, None, message).caused_by(error)
    })?;
    if plain.len() as u64 > limit {
        let message =
            format!("the gzip data decompresses to more than {limit} bytes; raise the limit or decompress it yourself");
        return Err(Error::new(ErrorKind::GzipTooLarge, None, message));
    }
    Ok(plain)
}

#[cfg(not(feature = "gzip"))]
fn decompress(_: &[u8], _: u64) -> Result<Vec<u8>, Error> {
    let message = "the data is gzip; decompress it first, or build tilewise-hlo with its `gzip` feature";
    Err(Error::new(ErrorKind::GzipUnsupported, None, message))
}

#[cfg(test)]
#[cfg(feature = "gzip")]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn gzip_is_known_by_its_bytes_and_limited() {
        let bytes = gzip(&[b'a'; 1000]);
        assert_eq!(decode(bytes.clone(), 1000).unwrap().len(), 1000);
        assert_eq!(decode(bytes.clone(), 999).unwrap_err().kind(), ErrorKind::GzipTooLarge);
        let two = [bytes.clone(), bytes.clone()].concat();
        assert_eq!(decode(two, u64::MAX).unwrap().len(), 2000, "members are concatenated");
        assert_eq!(decode(bytes[..bytes.len() / 2].to_vec(), 1000).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(decode(gzip(b"\xff"), 10).unwrap_err().kind(), ErrorKind::NotUtf8);
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read("no/such/file.hlo").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("no/such/file.hlo"));
        assert!(std::error::Error::source(&error).is_some());
    }
}
