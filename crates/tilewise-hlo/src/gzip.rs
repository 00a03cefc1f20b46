//! Gzip, by its first bytes.

#[cfg(feature = "gzip")]
use std::io::Read as _;

use crate::error::{Error, ErrorKind};

/// Gzip data that takes more than [`SMALL`] may be this many times as long as it is compressed. Programs, dumps and logs
/// shrink to a twentieth of their length, the most repetitive of 200 to a 25th; what repeats one byte, to a thousandth.
#[cfg(feature = "gzip")]
const MOST_EXPANSION: u64 = 100;

/// Bytes that may come of any gzip data, however short.
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
    let (limit, is_bomb) = (limit.min(expansion), expansion < limit);
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
        let message = if is_bomb {
            format!(
                "the gzip data decompresses to more than {MOST_EXPANSION} times its length, as no program does; decompress it yourself"
            )
        } else {
            format!("the gzip data decompresses to more than {limit} bytes; raise the limit or decompress it yourself")
        };
        return Err(Error::new(ErrorKind::GzipTooLarge, None, message));
    }
    Ok(plain)
}

#[cfg(not(feature = "gzip"))]
fn decompress(_: &[u8], _: u64) -> Result<Vec<u8>, Error> {
    let message = "the data is gzip; decompress it first, or build tilewise-hlo with its `gzip` feature";
    Err(Error::new(ErrorKind::GzipUnsupported, None, message))
}
