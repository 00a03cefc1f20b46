//! Out-of-memory messages.

use crate::answer::{Answer, json, thrown};
use tilewise_audit::{Failure, JsonLine};
use tilewise_oom::Message;
use wasm_bindgen::prelude::*;

/// What `tilewise explain --format json` prints.
///
/// # Errors
/// A text that is no message.
#[wasm_bindgen]
pub fn explain(text: &str, tpu: Option<String>) -> Answer {
    let message = Message::parse(text).map_err(|error| thrown(&Failure::from(error)))?;
    json(&JsonLine::of("message", tilewise_audit::explain(message, tpu.and_then(|tpu| tpu.parse().ok()))))
}
