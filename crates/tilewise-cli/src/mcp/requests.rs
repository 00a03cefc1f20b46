//! What the client sends, a line a request, of which none may be so long that it fills the memory.
//!
//! The protocol's library drops a longer line and doesn't say whose it was, so that the client would wait for ever.

use std::io::{self, BufRead, Read};
use tokio::io::{AsyncWriteExt, DuplexStream};

/// The longest request that is read.
pub(super) const LONGEST: u64 = 8 << 20;

/// Asked in the place of a longer one.
pub(super) const TOO_LONG: &str = "tilewise/too-long";

/// Bytes of a request's start and end that say its number.
const LOOKED_AT: usize = 4096;

/// Standard input, in which requests that are too long ask for an error.
pub(super) fn requests() -> DuplexStream {
    let (mut to, from) = tokio::io::duplex(1 << 16);
    let runtime = tokio::runtime::Handle::current();
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(line)) = next(&mut input) {
            if runtime.block_on(to.write_all(&line)).is_err() {
                break;
            }
        }
    });
    from
}

/// The next line, or what is asked instead; `None` at the end.
fn next(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    input.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.ends_with(b"\n") || (line.len() as u64) < LONGEST {
        return Ok(Some(line));
    }
    let mut tail: Vec<u8> = line[line.len() - LOOKED_AT..].to_vec();
    line.truncate(LOOKED_AT);
    loop {
        let mut piece = Vec::new();
        input.by_ref().take(LONGEST).read_until(b'\n', &mut piece)?;
        tail.extend(&piece);
        tail.drain(..tail.len().saturating_sub(LOOKED_AT));
        if piece.is_empty() || piece.ends_with(b"\n") {
            break;
        }
    }
    let id = id_in(&String::from_utf8_lossy(&tail)).or_else(|| id_in(&String::from_utf8_lossy(&line)));
    let asked = id.map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{TOO_LONG}\"}}\n"));
    Ok(Some(asked.unwrap_or_else(|| "\n".to_owned()).into_bytes()))
}

/// The number of a request, or the name that it has instead, as JSON: behind the last `"id":` that isn't in a string.
fn id_in(text: &str) -> Option<String> {
    text.rmatch_indices("\"id\"").find_map(|(at, id)| {
        let value = text[at + id.len()..].trim_start().strip_prefix(':')?.trim_start();
        let value = serde_json::Deserializer::from_str(value).into_iter::<serde_json::Value>().next()?.ok()?;
        (value.is_number() || value.is_string()).then(|| value.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_asks_for_an_error() {
        let long = "x".repeat(usize::try_from(LONGEST).expect("fits"));
        let text = format!(
            "{{\"id\":1}}\n{{\"params\":\"{long}{long}\\\"id\\\":7\",\"id\":2}}\n{{\"id\": \"a b\",\"params\":\"{long}\"}}\n{{\"id\":4}}"
        );
        let mut input = text.as_bytes();
        let mut lines = Vec::new();
        while let Some(line) = next(&mut input).expect("no error") {
            lines.push(String::from_utf8(line).expect("text"));
        }
        let asked = |id: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{TOO_LONG}\"}}\n");
        assert_eq!(lines, ["{\"id\":1}\n".to_owned(), asked("2"), asked("\"a b\""), "{\"id\":4}".to_owned()]);
    }
}
