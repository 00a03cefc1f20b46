//! A proto's bytes in hexadecimal.

pub(super) fn bytes_of_hex(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        digits.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect::<Option<_>>()?;
    (digits.len().is_multiple_of(2)).then(|| digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
