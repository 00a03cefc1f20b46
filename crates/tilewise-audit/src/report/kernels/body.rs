//! Data movement in a kernel's body inside VMEM, as far as the module in its call shows it.

/// Operations of a body that move elements between rows and lanes. Reshapes aren't among them: most only drop
/// dimensions of size 1, and Mosaic decides later which of them move elements.
const MOVING: [&str; 3] = ["tpu.relayout", "tpu.transpose", "vector.transpose"];

/// The first bytes of MLIR's bytecode.
const MAGIC: &[u8] = b"ML\xefR";

/// The operations of a body that move elements between rows and lanes; `None` if the text lacks the body.
///
/// The bytecode lists the names of its operations, each followed by a NUL.
pub(super) fn moving_operations(config: &str) -> Option<Vec<&'static str>> {
    let (_, body) = config.split_once("\"body\"")?;
    let body = body.trim_start_matches([' ', ':']).strip_prefix('"')?;
    let module = from_base64(body.split('"').next()?)?;
    if !module.starts_with(MAGIC) {
        return None;
    }
    let has = |name: &&str| {
        let name = name.as_bytes();
        module.windows(name.len() + 1).any(|at| at.split_last() == Some((&0, name)))
    };
    Some(MOVING.into_iter().filter(has).collect())
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let digit = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, count) = (bits << 6 | u32::from(digit), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
        bits &= (1 << count) - 1;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        assert_eq!(from_base64("TUzvUgFN").as_deref(), Some(&b"ML\xefR\x01M"[..]));
        assert_eq!(from_base64("YQ==").as_deref(), Some(&b"a"[..]));
        assert_eq!(from_base64("a-b"), None);
    }

    #[test]
    fn what_is_no_module_says_nothing() {
        for config in ["", "{}", r#"{"body":""}"#, r#"{"body":"YQ=="}"#, r#"{"body":"#] {
            assert_eq!(moving_operations(config), None, "{config}");
        }
        // MLïR, then a string.
        let module = r#"{"custom_call_config":{"body":"TUzvUnRwdS50cmFuc3Bvc2UA"}}"#;
        assert_eq!(moving_operations(module), Some(vec!["tpu.transpose"]));
    }
}
