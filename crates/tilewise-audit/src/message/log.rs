//! Reads logs, which are not always UTF-8.

use crate::failure::Failure;
use std::{
    fs::File,
    io::{self, Cursor, Read, Seek, SeekFrom},
    path::Path,
};
use tilewise_hlo::DECOMPRESSION_LIMIT;
use tilewise_oom::{Message, Scanner};

/// Maximum bytes of a log that is read whole; longer ones are read piece by piece.
const LARGE: u64 = 4 << 20;

/// The message in a log file of any size, plain or gzip. Of a plain file the last `limit` bytes are read, from the end,
/// and only as far as needed to find an error; of gzip, UTF-16 and anything but a regular file, the first `limit`
/// bytes.
///
/// # Errors
/// If the file can't be read, or has no message; those of [`tilewise_hlo::decode`] for gzip and protos.
pub fn read_log(path: &Path, limit: u64) -> Result<Message, Failure> {
    in_file(path, limit).map_err(|failure| failure.in_file(path))
}

/// The message in the first `limit` bytes of a stream of any size, such as standard input.
///
/// # Errors
/// As for [`read_log`].
///
/// ```
/// let log = "step 1\n".repeat(1 << 20) + "Attempting to reserve 9.62G at the bottom of memory. That was not possible. \
///            There are 7.14G free.\n";
/// assert!(tilewise_audit::read_stream(log.as_bytes(), u64::MAX).is_ok());
/// assert!(tilewise_audit::read_stream(std::io::repeat(0), 1 << 30).is_err());
/// ```
pub fn read_stream(log: impl Read, limit: u64) -> Result<Message, Failure> {
    in_stream(log, limit)
}

fn in_file(path: &Path, limit: u64) -> Result<Message, Failure> {
    let mut file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() || metadata.len() <= LARGE {
        return in_stream(file, limit);
    }
    let mut head = [0; LOOKED_AT];
    file.read_exact(&mut head).map_err(unreadable)?;
    if is_gzip(&head) || wide_unit(&head).is_some() {
        file.rewind().map_err(unreadable)?;
        return in_stream(file, limit);
    }
    let left_out = metadata.len().saturating_sub(limit);
    let mut scanner = Scanner::new(metadata.len() - left_out);
    let mut piece = Vec::new();
    while let Some(range) = scanner.wanted() {
        piece.clear();
        file.seek(SeekFrom::Start(left_out + range.start)).map_err(unreadable)?;
        file.by_ref().take(range.end - range.start).read_to_end(&mut piece).map_err(unreadable)?;
        scanner.take(&piece);
    }
    Ok(scanner.finish()?)
}

fn in_stream(mut log: impl Read, limit: u64) -> Result<Message, Failure> {
    let mut head = Vec::new();
    log.by_ref().take(LOOKED_AT as u64).read_to_end(&mut head).map_err(unreadable)?;
    let is_gzip = is_gzip(&head);
    let log = Cursor::new(head).chain(log);
    if is_gzip { in_plain(tilewise_hlo::decompressing(log, limit), limit) } else { in_plain(log, limit) }
}

fn in_plain(mut log: impl Read, limit: u64) -> Result<Message, Failure> {
    let mut head = Vec::new();
    log.by_ref().take((LARGE + 1).min(limit)).read_to_end(&mut head).map_err(unreadable)?;
    if head.len() as u64 <= LARGE {
        return Ok(Message::parse(&decode_log(head)?)?);
    }
    let limit = if is_noise(&head) { limit.min(NOISE) } else { limit };
    let unit = wide_unit(&head);
    let mut log = Cursor::new(head).chain(log).take(limit);
    let found = match unit {
        Some(unit) => scanned(Narrowed { wide: &mut log, unit, undecoded: Vec::new(), text: Cursor::default() }),
        None => scanned(&mut log),
    };
    found.map_err(|failure| match log.limit() {
        0 => failure.with_help(format!("the first {limit} bytes were read; `--max-input SIZE` reads more")),
        _ => failure,
    })
}

/// The message in a stream, read piece by piece.
fn scanned(mut log: impl Read) -> Result<Message, Failure> {
    let (mut scanner, mut piece) = (Scanner::stream(), Vec::new());
    while let Some(range) = scanner.wanted() {
        piece.clear();
        log.by_ref().take(range.end - range.start).read_to_end(&mut piece).map_err(unreadable)?;
        scanner.take(&piece);
    }
    Ok(scanner.finish()?)
}

fn unreadable(error: io::Error) -> Failure {
    match error.downcast::<tilewise_hlo::Error>() {
        Ok(error) => error.into(),
        Err(error) => Failure::new("io", format!("can't be read: {error}")),
    }
}

fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(b"\x1f\x8b")
}

/// Decodes the bytes of a log, plain or gzip, for [`Message::parse`](tilewise_oom::Message::parse). UTF-16 is detected
/// by its mark or its zeros; else invalid bytes are replaced.
///
/// # Errors
/// Those of [`tilewise_hlo::decode`] for gzip and protos.
///
/// ```
/// let log: Vec<u8> = "Ran out of memory".encode_utf16().flat_map(u16::to_be_bytes).collect();
/// assert_eq!(tilewise_audit::decode_log(log)?, "Ran out of memory");
/// assert_eq!(tilewise_audit::decode_log(b"a\xffb".to_vec())?, "a\u{fffd}b");
/// # Ok::<(), tilewise_audit::Failure>(())
/// ```
pub fn decode_log(bytes: Vec<u8>) -> Result<String, Failure> {
    match tilewise_hlo::decode(bytes.clone(), DECOMPRESSION_LIMIT) {
        Ok(text) => Ok(wide(text.as_bytes()).unwrap_or(text)),
        Err(error) => match tilewise_hlo::decompressed(bytes, DECOMPRESSION_LIMIT) {
            Ok(bytes) => Ok(wide(&bytes).unwrap_or_else(|| String::from_utf8_lossy(&bytes).into_owned())),
            Err(_) => Err(error.into()),
        },
    }
}

/// Bytes needed to detect the encoding of a text.
const LOOKED_AT: usize = 512;

/// Makes a unit of UTF-16 from two bytes.
type Unit = fn([u8; 2]) -> u16;

/// Decodes UTF-16; `None` for other bytes.
fn wide(bytes: &[u8]) -> Option<String> {
    let unit = wide_unit(bytes)?;
    let units = bytes.as_chunks().0.iter().copied().map(unit);
    Some(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

/// The byte order of UTF-16, where most characters have a zero byte on one side; `None` for other bytes. Zeros on both
/// sides are of a log that was truncated while it was written.
fn wide_unit(bytes: &[u8]) -> Option<Unit> {
    let head = &bytes[..bytes.len().min(LOOKED_AT)];
    let zeros = |parity: usize| head.iter().skip(parity).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    if even.max(odd) * 4 < head.len().max(4) || even.min(odd) * 4 > even.max(odd) {
        return None;
    }
    Some(if odd >= even { u16::from_le_bytes } else { u16::from_be_bytes })
}

/// Maximum bytes read of a stream that isn't text, which may be endless.
const NOISE: u64 = 64 << 20;

/// Whether the first bytes aren't text. A log may begin with zeros, or hold some control or invalid bytes.
fn is_noise(head: &[u8]) -> bool {
    let sample = String::from_utf8_lossy(&head[..head.len().min(1 << 16)]);
    let is_letter = |letter: &char| *letter == '\0' || (*letter != char::REPLACEMENT_CHARACTER && !letter.is_control());
    let (letters, all) = (sample.chars().filter(is_letter).count(), sample.chars().count());
    wide_unit(head).is_none() && letters * 2 < all
}

/// Reads UTF-16 as UTF-8.
struct Narrowed<R> {
    wide: R,
    unit: Unit,
    /// The first bytes of an incomplete character.
    undecoded: Vec<u8>,
    text: Cursor<Vec<u8>>,
}

impl<R: Read> Read for Narrowed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.text.read(into)?;
            if length > 0 || into.is_empty() {
                return Ok(length);
            }
            let begun = self.undecoded.len();
            if self.wide.by_ref().take(1 << 16).read_to_end(&mut self.undecoded)? == 0 && begun == 0 {
                return Ok(0);
            }
            let is_last = self.undecoded.len() == begun;
            let (pairs, rest) = self.undecoded.as_chunks();
            let mut units: Vec<u16> = pairs.iter().copied().map(self.unit).collect();
            let mut kept = rest.len();
            // The second unit of a surrogate pair may follow.
            if !is_last && units.pop_if(|unit| (0xD800..0xDC00).contains(unit)).is_some() {
                kept += 2;
            }
            let letters = char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER));
            self.text = Cursor::new(letters.collect::<String>().into_bytes());
            let decoded = if is_last { self.undecoded.len() } else { self.undecoded.len() - kept };
            self.undecoded.drain(..decoded);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_16_without_a_mark() {
        let text = "Ran out of memory in memory space hbm.";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(wide(&little).as_deref(), Some(text));
        assert_eq!(wide(&big).as_deref(), Some(text));
        assert_eq!(wide(text.as_bytes()), None);
        assert_eq!(wide(b""), None);
        // `copytruncate` of a file that is still written at its old offset.
        let truncated = [&[0; 256][..], text.as_bytes()].concat();
        assert_eq!(wide(&truncated), None);
        assert_eq!(decode_log(truncated).expect("text").trim_start_matches('\0'), text);
    }

    #[test]
    fn utf_16_in_pieces() {
        let text = "Größe 😀 16.00G\n".repeat(9_000);
        for unit in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(unit).collect();
            let from = wide_unit(&bytes).expect("UTF-16");
            for cut in [0, 1] {
                let wide = &bytes[..bytes.len() - cut];
                let mut narrowed = Narrowed { wide, unit: from, undecoded: Vec::new(), text: Cursor::default() };
                let mut read = String::new();
                narrowed.read_to_string(&mut read).expect("no error");
                assert_eq!(read.trim_end(), text.trim_end());
            }
        }
    }

    #[test]
    fn noise_is_no_log() {
        let noise: Vec<u8> = (0..100_000_u32).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect();
        assert!(is_noise(&noise));
        assert!(!is_noise("Größe 12\x1b[0m\r\n".repeat(999).as_bytes()));
        assert!(!is_noise(&[0; 999]));
    }
}
