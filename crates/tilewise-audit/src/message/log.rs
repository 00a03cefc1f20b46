//! Texts as they come: logs are not always UTF-8.

use crate::failure::Failure;
use std::{
    fs::File,
    io::{self, Cursor, Read, Seek, SeekFrom},
    path::Path,
};
use tilewise_hlo::DECOMPRESSION_LIMIT;
use tilewise_oom::{Error, Message, Scanner};

/// Of longer logs only pieces are in memory.
const LARGE: u64 = 4 << 20;

/// The message in a log file of any size, plain or gzip; of a plain one the end is read first, and the rest only where no
/// error stands there. Of gzip data at most `limit` bytes are decompressed.
///
/// # Errors
/// If the file can't be read, or has no message; those of [`tilewise_hlo::decode`] for gzip and protos.
pub fn read_log(path: &Path, limit: u64) -> Result<Message, Failure> {
    Ok(in_file(path, limit).map_err(|failure| failure.in_file(path))??)
}

/// The message in a log of any size that is read but once, such as standard input.
///
/// # Errors
/// As for [`read_log`].
pub fn read_stream(log: impl Read) -> Result<Message, Failure> {
    Ok(in_stream(log, u64::MAX)??)
}

fn in_file(path: &Path, limit: u64) -> Result<Result<Message, Error>, Failure> {
    let mut file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() || metadata.len() <= LARGE {
        return in_stream(file, limit);
    }
    let mut head = [0; LOOKED_AT];
    file.read_exact(&mut head).map_err(unreadable)?;
    if is_gzip(&head) || wide(&head).is_some() {
        file.rewind().map_err(unreadable)?;
        return in_stream(file, limit);
    }
    let mut scanner = Scanner::new(metadata.len());
    let mut piece = Vec::new();
    while let Some(range) = scanner.wanted() {
        piece.clear();
        file.seek(SeekFrom::Start(range.start)).map_err(unreadable)?;
        file.by_ref().take(range.end - range.start).read_to_end(&mut piece).map_err(unreadable)?;
        scanner.take(&piece);
    }
    Ok(scanner.finish())
}

fn in_stream(mut log: impl Read, limit: u64) -> Result<Result<Message, Error>, Failure> {
    let mut head = Vec::new();
    log.by_ref().take(LOOKED_AT as u64).read_to_end(&mut head).map_err(unreadable)?;
    let is_gzip = is_gzip(&head);
    let log = Cursor::new(head).chain(log);
    if is_gzip { in_plain(tilewise_hlo::decompressing(log, limit)) } else { in_plain(log) }
}

fn in_plain(mut log: impl Read) -> Result<Result<Message, Error>, Failure> {
    let mut piece = Vec::new();
    log.by_ref().take(LARGE + 1).read_to_end(&mut piece).map_err(unreadable)?;
    if piece.len() as u64 <= LARGE || wide(&piece).is_some() {
        log.take(DECOMPRESSION_LIMIT).read_to_end(&mut piece).map_err(unreadable)?;
        return Ok(Message::parse(&decode_log(piece)?));
    }
    let mut scanner = Scanner::stream();
    while let Some(range) = scanner.wanted() {
        let missing = (range.end - range.start).saturating_sub(piece.len() as u64);
        log.by_ref().take(missing).read_to_end(&mut piece).map_err(unreadable)?;
        scanner.take(&piece);
        piece.clear();
    }
    Ok(scanner.finish())
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

/// The text of a log's bytes, plain or gzip, for [`Message::parse`](tilewise_oom::Message::parse). What is not UTF-8 is
/// UTF-16 by its mark or its zeros; else bytes that are no text are replaced.
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

/// Enough to see of what kind a text is.
const LOOKED_AT: usize = 512;

/// A text of UTF-16, where most letters have a zero beside them.
fn wide(bytes: &[u8]) -> Option<String> {
    let head = &bytes[..bytes.len().min(LOOKED_AT)];
    let zeros = |parity: usize| head.iter().skip(parity).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    if even.max(odd) * 4 < head.len().max(4) {
        return None;
    }
    let unit = if odd >= even { u16::from_le_bytes } else { u16::from_be_bytes };
    let units = bytes.chunks_exact(2).filter_map(|pair| pair.try_into().ok()).map(unit);
    Some(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
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
    }
}
