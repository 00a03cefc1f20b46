//! Out-of-memory messages.

use crate::answer::{Answer, json, thrown};
use serde::Serialize;
use tilewise_audit::{BudgetPart, BudgetStack, Explanation, Failure, JsonLine};
use tilewise_oom::Message;
use wasm_bindgen::prelude::*;

/// Whether a text has an out-of-memory message in it.
#[wasm_bindgen(js_name = isMessage)]
#[must_use]
pub fn is_message(head: &[u8]) -> bool {
    Message::parse(&String::from_utf8_lossy(head)).is_ok()
}

/// What a message says, and what to do: `explanation`, the line that `tilewise explain --format json` prints, and
/// beside it `headline`, `sentence` (the verdict in words) and `stack` (what fills the memory), as it prints them for
/// people.
///
/// # Errors
/// A text that is no message.
#[wasm_bindgen]
pub fn explain(text: &str, tpu: Option<String>) -> Answer {
    #[derive(Serialize)]
    struct Explained<'a> {
        explanation: JsonLine<'a, &'a Explanation>,
        headline: String,
        sentence: String,
        stack: Option<Stack>,
    }
    let message = Message::parse(text).map_err(|error| thrown(&Failure::from(error)))?;
    let explanation = tilewise_audit::explain(message, tpu.and_then(|tpu| tpu.parse().ok()));
    json(&Explained {
        headline: explanation.headline(),
        sentence: explanation.verdict_in_words(),
        stack: explanation.budget_stack().map(Stack::from),
        explanation: JsonLine::of("-", &explanation),
    })
}

#[derive(Serialize)]
struct Stack {
    parts: Vec<Part>,
    total_bytes: u64,
    within: Vec<Part>,
    room: Vec<Part>,
}

type Part = (&'static str, u64);

impl From<BudgetStack> for Stack {
    fn from(stack: BudgetStack) -> Self {
        let list = |parts: Vec<BudgetPart>| parts.into_iter().map(|part| (part.name, part.bytes)).collect();
        Self {
            parts: list(stack.parts),
            total_bytes: stack.total_bytes,
            within: list(stack.within),
            room: list(stack.room),
        }
    }
}
