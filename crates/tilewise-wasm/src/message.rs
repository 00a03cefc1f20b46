//! Out-of-memory messages.

use crate::answer::{Answer, json, thrown};
use serde::Serialize;
use tilewise_audit::{Explanation, Failure, JsonLine};
use tilewise_oom::Message;
use tilewise_report::MessageSummary;
use wasm_bindgen::prelude::*;

/// Whether a text has an out-of-memory message in it.
#[wasm_bindgen(js_name = isMessage)]
#[must_use]
pub fn is_message(head: &[u8]) -> bool {
    Message::parse(&String::from_utf8_lossy(head)).is_ok()
}

/// What a message says, and what to do: `explanation`, the line that `tilewise explain --format json` prints, and
/// beside it its [`summary`](MessageSummary).
///
/// # Errors
/// A text that is no message.
#[wasm_bindgen]
pub fn explain(text: &str, tpu: Option<String>) -> Answer {
    #[derive(Serialize)]
    struct Explained<'a> {
        explanation: JsonLine<'a, &'a Explanation>,
        summary: MessageSummary,
    }
    let message = Message::parse(text).map_err(|error| thrown(&Failure::from(error)))?;
    let explanation = tilewise_audit::explain(message, tpu.and_then(|tpu| tpu.parse().ok()));
    json(&Explained { summary: MessageSummary::of(&explanation), explanation: JsonLine::of("-", &explanation) })
}
