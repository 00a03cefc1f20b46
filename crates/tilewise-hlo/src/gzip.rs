//! Gzip, by its first bytes.

#[cfg(feature = "gzip")]
use std::io::Read as _;

use crate::error::{Error, ErrorKind};

/// Bytes, gzip or not, without their compression.
///
/// # Errors
///
/// Those of [`decode`](crate::decode) about gzip.
///
/// ```
/// assert_eq!(tilewise_hlo::decompressed(b"plain".to_vec(), 100)?, b"plain");
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
pub fn decompressed(bytes: Vec<u8>, limit: u64) -> Result<Vec<u8>, Error> {
    if bytes.starts_with(&[0x1f, 0x8b]) { decompress(&bytes, limit) } else { Ok(bytes) }
}

#[cfg(feature = "gzip")]
fn decompress(bytes: &[u8], limit: u64) -> Result<Vec<u8>, Error> {
    let mut plain = Vec::new();
    let read = flate2::read::MultiGzDecoder::new(bytes).take(limit.saturating_add(1)).read_to_end(&mut plain);
    read.map_err(|error| {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            let message = "the gzip data ends too early: the file is cut off, or still being written";
            return Error::new(ErrorKind::Truncated, None, message).caused_by(error);
        }
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
