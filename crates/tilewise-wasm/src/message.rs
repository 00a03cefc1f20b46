//! Out-of-memory messages.

use crate::answer::{Answer, json, thrown};
use serde::Serialize;
use tilewise_audit::{Explanation, Failure};
use tilewise_oom::{Message, Scanner};
use tilewise_report::{AsJson, JsonLine, MessageSummary};
use wasm_bindgen::prelude::*;

/// Whether a text has an out-of-memory message in it.
#[wasm_bindgen(js_name = isMessage)]
#[must_use]
pub fn is_message(head: &[u8]) -> bool {
    Message::parse(&String::from_utf8_lossy(head)).is_ok()
}

/// Explains a message: `explanation`, the line that `tilewise explain --format json` prints, and its
/// [`summary`](MessageSummary).
///
/// # Errors
/// A text that isn't a message.
#[wasm_bindgen]
pub fn explain(text: &str, tpu: Option<String>) -> Answer {
    explained(Message::parse(text), tpu)
}

/// Finds the message in a file of any size, given one wanted piece after the other, the end first.
///
/// ```js
/// const scanner = new LogScanner(file.size);
/// for (let range; (range = scanner.wanted()); )
///   scanner.take(new Uint8Array(await file.slice(range[0], range[1]).arrayBuffer()));
/// const answer = scanner.explain();
/// ```
#[wasm_bindgen]
#[derive(Debug)]
pub struct LogScanner(Scanner);

#[wasm_bindgen]
impl LogScanner {
    /// A scanner for a file of `size` bytes.
    #[wasm_bindgen(constructor)]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a file's size is a whole number")]
    pub fn new(size: f64) -> Self {
        Self(Scanner::new(size as u64))
    }

    /// The bytes wanted next, from the first to behind the last; `None` if no more are.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "JavaScript's files are shorter than 2^53 bytes")]
    pub fn wanted(&self) -> Option<Vec<f64>> {
        self.0.wanted().map(|range| vec![range.start as f64, range.end as f64])
    }

    /// Takes these bytes.
    pub fn take(&mut self, bytes: &[u8]) {
        self.0.take(bytes);
    }

    /// As [`explain`].
    ///
    /// # Errors
    /// A file without a message.
    pub fn explain(self, tpu: Option<String>) -> Answer {
        explained(self.0.finish(), tpu)
    }
}

fn explained(message: Result<Message, tilewise_oom::Error>, tpu: Option<String>) -> Answer {
    #[derive(Serialize)]
    struct Explained<'a> {
        explanation: JsonLine<'a, AsJson<'a, Explanation>>,
        summary: MessageSummary<'a>,
    }
    let message = message.map_err(|error| thrown(&Failure::from(error)))?;
    let explanation = tilewise_audit::explain(message, tpu.and_then(|tpu| tpu.parse().ok()));
    json(&Explained { summary: MessageSummary::of(&explanation), explanation: JsonLine::of("-", AsJson(&explanation)) })
}
