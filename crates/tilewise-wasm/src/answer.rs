//! Results as JSON texts.

use serde::Serialize;
use tilewise_audit::Failure;
use tilewise_report::AsJson;
use wasm_bindgen::JsValue;

/// A JSON text, or the JSON text of a failure.
pub type Answer = Result<String, JsValue>;

/// A value as JSON.
pub(crate) fn json(value: &impl Serialize) -> Answer {
    serde_json::to_string(value).map_err(|error| thrown(&Failure::new("json", error.to_string())))
}

/// A failure as it is thrown.
pub(crate) fn thrown(failure: &Failure) -> JsValue {
    JsValue::from_str(&serde_json::to_string(&AsJson(failure)).unwrap_or_default())
}

/// The error of a text, its span in UTF-16 units.
#[cfg(any(feature = "programs", feature = "shapes"))]
pub(crate) fn in_text(mut failure: Failure, text: &str) -> JsValue {
    let units = |at: usize| text.get(..at).map_or(0, |before| before.encode_utf16().count());
    failure.span = failure.span.map(|span| units(span.start)..units(span.end));
    thrown(&failure)
}

/// The error of an index or a number.
#[cfg(feature = "shapes")]
pub(crate) fn plain(error: tilewise::Error) -> JsValue {
    let mut failure = Failure::from(error);
    failure.span = None;
    thrown(&failure)
}
