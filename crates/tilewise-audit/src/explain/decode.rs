//! Texts as they come: logs are not always UTF-8.

use crate::Failure;
use tilewise_hlo::DECOMPRESSION_LIMIT;

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

/// A text of UTF-16, where most letters have a zero beside them.
fn wide(bytes: &[u8]) -> Option<String> {
    const LOOKED_AT: usize = 512;
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
