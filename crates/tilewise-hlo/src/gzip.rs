//! Gzip, by its first bytes.

#[cfg(feature = "gzip")]
use std::io::Read;

use crate::error::{Error, ErrorKind};

/// Most times its compressed length that gzip data of more than [`SMALL`] may take. Programs, dumps and logs shrink to
/// a twentieth of their length, the most repetitive of 200 to a 25th; one byte repeated shrinks to a thousandth.
#[cfg(feature = "gzip")]
const MOST_EXPANSION: u64 = 100;

/// Bytes that any gzip data may take, however short.
#[cfg(feature = "gzip")]
const SMALL: u64 = 16 << 20;

/// Bytes, gzip or not, without their compression: at most `limit`, and of gzip data no more than 16 MiB or a hundred
/// times its length.
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
    let expansion = MOST_EXPANSION.saturating_mul(bytes.len() as u64).max(SMALL);
    decompressing(bytes, limit.min(expansion)).read_to_end(&mut plain).map_err(|error| match Error::within(error) {
        error if error.kind() == ErrorKind::GzipTooLarge && expansion < limit => {
            let message = format!(
                "the gzip data decompresses to more than {MOST_EXPANSION} times its length, as no program does; decompress it yourself"
            );
            Error::new(ErrorKind::GzipTooLarge, None, message)
        }
        error => error,
    })?;
    Ok(plain)
}

/// Decompresses gzip data as it is read, and fails after `limit` bytes. Its errors have an [`Error`] within: those of
/// [`decode`](crate::decode) about gzip.
///
/// ```
/// use std::io::Read;
///
/// let cut_off = [0x1f, 0x8b, 8, 0];
/// let error = tilewise_hlo::decompressing(&cut_off[..], 100).read(&mut [0]).unwrap_err();
/// assert_eq!(error.downcast::<tilewise_hlo::Error>()?.kind().as_str(), "truncated");
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg(feature = "gzip")]
pub fn decompressing(compressed: impl Read, limit: u64) -> impl Read {
    Decompressing { plain: flate2::read::MultiGzDecoder::new(compressed).take(limit.saturating_add(1)), limit }
}

#[cfg(feature = "gzip")]
struct Decompressing<R> {
    plain: std::io::Take<flate2::read::MultiGzDecoder<R>>,
    limit: u64,
}

#[cfg(feature = "gzip")]
impl<R: Read> Read for Decompressing<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        use std::io;

        let read = self.plain.read(into).map_err(|error| {
            let error = if error.kind() == io::ErrorKind::UnexpectedEof {
                let message = "the gzip data ends too early: the file is cut off, or still being written";
                Error::new(ErrorKind::Truncated, None, message).caused_by(error)
            } else {
                Error::new(ErrorKind::Io, None, format!("can't decompress the gzip data: {error}")).caused_by(error)
            };
            io::Error::other(error)
        })?;
        if self.plain.limit() == 0 && self.limit < u64::MAX {
            let message = format!(
                "the gzip data decompresses to more than {} bytes; raise the limit or decompress it yourself",
                self.limit
            );
            return Err(io::Error::other(Error::new(ErrorKind::GzipTooLarge, None, message)));
        }
        Ok(read)
    }
}

#[cfg(feature = "gzip")]
impl Error {
    /// The error within one of [`decompressing`]; any other becomes an `Io` error.
    fn within(error: std::io::Error) -> Self {
        error.downcast().unwrap_or_else(|error| Self::new(ErrorKind::Io, None, error.to_string()).caused_by(error))
    }
}

#[cfg(not(feature = "gzip"))]
fn decompress(_: &[u8], _: u64) -> Result<Vec<u8>, Error> {
    Err(unsupported())
}

#[cfg(not(feature = "gzip"))]
fn unsupported() -> Error {
    let message = "the data is gzip; decompress it first, or build tilewise-hlo with its `gzip` feature";
    Error::new(ErrorKind::GzipUnsupported, None, message)
}

/// Without the feature, every read fails.
#[cfg(not(feature = "gzip"))]
pub fn decompressing(_: impl std::io::Read, _: u64) -> impl std::io::Read {
    struct Unsupported;

    impl std::io::Read for Unsupported {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other(unsupported()))
        }
    }

    Unsupported
}
