//! Messages from and to the client, one a line. Every line from the client is answered: the protocol's library drops
//! lines that it can't read, so that the client would wait for ever.

use rmcp::{
    ErrorData, RoleServer,
    model::{ErrorCode, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::Value;
use std::{
    borrow::Cow,
    io::{self, BufRead, Read, Write},
    thread,
};
use tilewise_report::to_visible_json;
use tokio::sync::{mpsc, oneshot};

/// Bytes of the longest request that is read: none may fill the memory.
const LONGEST: u64 = 8 << 20;

/// Bytes at each end of a request that is too long, to search for its id.
const LOOKED_AT: usize = 4096;

/// Messages that wait in either direction.
const WAITING: usize = 16;

/// The client, behind standard input and output.
pub(super) struct Client {
    requests: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    sender: mpsc::Sender<Sent>,
}

enum Sent {
    Message(Box<TxJsonRpcMessage<RoleServer>>),
    /// Asks for a signal once all messages before it are written.
    End(oneshot::Sender<()>),
}

impl Client {
    pub(super) fn of_standard_streams() -> Self {
        let (sender, mut sent) = mpsc::channel(WAITING);
        let (asks, requests) = mpsc::channel(WAITING);
        let refuses = sender.clone();
        thread::spawn(move || {
            let mut input = io::stdin().lock();
            while let Ok(Some(line)) = next(&mut input) {
                let is_read = match read(line) {
                    Ok(None) => true,
                    Ok(Some(message)) => asks.blocking_send(message).is_ok(),
                    Err((id, error)) => {
                        refuses.blocking_send(Sent::Message(Box::new(JsonRpcMessage::error(error, id)))).is_ok()
                    }
                };
                if !is_read {
                    break;
                }
            }
        });
        thread::spawn(move || {
            let mut output = io::stdout().lock();
            while let Some(next) = sent.blocking_recv() {
                match next {
                    Sent::Message(message) => {
                        if write(&mut output, &message).is_err() {
                            break;
                        }
                    }
                    Sent::End(told) => _ = told.send(()),
                }
            }
        });
        Self { requests, sender }
    }
}

impl Transport<RoleServer> for Client {
    type Error = io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let sender = self.sender.clone();
        async move { sender.send(Sent::Message(Box::new(message))).await.map_err(|_| io::ErrorKind::BrokenPipe.into()) }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.requests.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        let (told, end) = oneshot::channel();
        if self.sender.send(Sent::End(told)).await.is_ok() {
            _ = end.await;
        }
        Ok(())
    }
}

fn write(output: &mut impl Write, message: &TxJsonRpcMessage<RoleServer>) -> io::Result<()> {
    to_visible_json(output, message)?;
    output.write_all(b"\n")?;
    output.flush()
}

/// A line of input.
#[derive(Debug, PartialEq)]
enum Line {
    Whole(Vec<u8>),
    /// A line over the limit, with the request's id (a number or a name) if found.
    TooLong(Option<Value>),
}

/// The next line; `None` at the end.
fn next(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    input.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.ends_with(b"\n") || (line.len() as u64) < LONGEST {
        return Ok(Some(Line::Whole(line)));
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
    Ok(Some(Line::TooLong(id)))
}

/// A request's id, a number or a name: the value of the last `"id":` outside strings.
fn id_in(text: &str) -> Option<Value> {
    text.rmatch_indices("\"id\"").find_map(|(at, id)| {
        let value = text[at + id.len()..].trim_start().strip_prefix(':')?.trim_start();
        let value = serde_json::Deserializer::from_str(value).into_iter::<Value>().next()?.ok()?;
        (value.is_number() || value.is_string()).then_some(value)
    })
}

type Refused = (Option<RequestId>, ErrorData);

/// The message in a line; `None` for a blank line, and for a notification that the protocol doesn't know.
fn read(line: Line) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Refused> {
    let line = match line {
        Line::Whole(line) => line,
        Line::TooLong(id) => {
            let most = LONGEST >> 20;
            let message =
                format!("the request is longer than {most} MiB: write what it says to a file, and give its `path`");
            return Err((id.and_then(request_id), ErrorData::invalid_request(message, None)));
        }
    };
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line);
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let is_no_json = |why: &dyn std::fmt::Display| {
        (None, ErrorData::new(ErrorCode::PARSE_ERROR, format!("the line isn't JSON: {why}"), None))
    };
    let text = str::from_utf8(line).map_err(|error| is_no_json(&error))?;
    let value: Value = serde_json::from_str(&with_whole_characters(text)).map_err(|error| is_no_json(&error))?;
    let id = value.get("id").cloned();
    match serde_json::from_value(value) {
        Ok(message) => Ok(Some(message)),
        // Unknown notifications, such as another protocol's, get no answer.
        Err(_) if id.is_none() && is_notification(text) => Ok(None),
        Err(error) => {
            let message = format!("no request of the protocol: {error}");
            Err((id.and_then(request_id), ErrorData::invalid_request(message, None)))
        }
    }
}

fn request_id(id: Value) -> Option<RequestId> {
    serde_json::from_value(id).ok()
}

fn is_notification(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value["jsonrpc"] == "2.0" && value["method"].is_string())
}

/// Replaces each escape of an unpaired surrogate by U+FFFD: clients write such escapes for file names that aren't
/// Unicode.
fn with_whole_characters(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return json.into();
    }
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut whole, mut from, mut at) = (String::with_capacity(json.len()), 0, 0);
    while let Some(found) = json[at..].find('\\') {
        at += found;
        let length = match (unit(at), unit(at + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                whole.push_str(&json[from..at]);
                whole.push_str("\\ufffd");
                from = at + 6;
                6
            }
            // The escaped character may be longer than a byte; the JSON parser refuses it.
            _ => 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
        at += length;
    }
    whole.push_str(&json[from..]);
    whole.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_refused_by_its_number() {
        let long = "x".repeat(usize::try_from(LONGEST).expect("fits"));
        let text = format!(
            "{{\"id\":1}}\n{{\"params\":\"{long}{long}\\\"id\\\":7\",\"id\":2}}\n{{\"id\": \"a b\",\"params\":\"{long}\"}}\n{{\"id\":4}}"
        );
        let mut input = text.as_bytes();
        let lines: Vec<Line> = std::iter::from_fn(|| next(&mut input).expect("no error")).collect();
        let whole = |text: &str| Line::Whole(text.into());
        let too_long = |id: Value| Line::TooLong(Some(id));
        assert_eq!(lines, [whole("{\"id\":1}\n"), too_long(2.into()), too_long("a b".into()), whole("{\"id\":4}")]);
    }

    /// The error's code, and the request's id.
    fn refused(line: &[u8]) -> Option<(i32, Option<String>)> {
        let (id, error) = read(Line::Whole(line.to_vec())).err()?;
        Some((error.code.0, id.map(|id| id.to_string())))
    }

    #[test]
    fn every_line_has_an_answer() {
        // JSON-RPC 2.0, section 5.1.
        for line in [&b"{"[..], b"nonsense", b"{\"id\":1,}", b"\xFF", b"{\"id\":\"\xED\xA0\x80\"}", b"[1,2"] {
            assert_eq!(refused(line), Some((-32700, None)), "{}", line.escape_ascii());
        }
        for line in ["[]", "1", "null", "\"x\"", "{}", "{\"jsonrpc\":\"1.0\",\"method\":\"ping\"}"] {
            assert_eq!(refused(line.as_bytes()), Some((-32600, None)), "{line}");
        }
        assert_eq!(refused(b"{\"id\":7,\"method\":\"ping\"}"), Some((-32600, Some("7".to_owned()))));
        for line in ["", " \r\n", "\u{FEFF}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"] {
            assert_eq!(refused(line.as_bytes()), None, "{line:?}");
        }
        assert_eq!(refused(b"{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":1}}"), None);
    }

    #[test]
    fn a_half_character_is_replaced() {
        for (json, whole) in [
            (r#""\ud83d\ude00""#, "😀"),
            (r#""\ud83d""#, "\u{FFFD}"),
            (r#""a\uDE00b\n""#, "a\u{FFFD}b\n"),
            (r#""\ude00\ud83d\ude00\ud83d\ud83d""#, "\u{FFFD}😀\u{FFFD}\u{FFFD}"),
            (r#""\\ud83d""#, r"\ud83d"),
            (r#""\\\ud83dx""#, "\\\u{FFFD}x"),
        ] {
            assert_eq!(serde_json::from_str::<String>(&with_whole_characters(json)).expect(json), whole);
        }
        // Invalid JSON stays invalid.
        for json in [r#""\ud8"#, r#""\ud83d\"#, r#""\é\ud83d""#, r#""\ud83"#] {
            assert!(serde_json::from_str::<String>(&with_whole_characters(json)).is_err(), "{json}");
        }
    }
}
