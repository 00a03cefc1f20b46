//! The tool about out-of-memory messages.

use super::{
    Access, Answer, next,
    shapes::{generation, json},
};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use tilewise_audit::{Failure, read_log, read_stream};
use tilewise_report::{AsJson, MessageSummary, Page};

#[derive(Deserialize, JsonSchema)]
pub(super) struct MessageArguments {
    /// The message, among other text or alone; or an error code such as E1001, or a kind of advice such as donate.
    text: Option<String>,
    /// A file with the message, such as a log of any length.
    path: Option<PathBuf>,
    /// The TPU generation, where the message does not show it: v2 v3 v4 v5e v5p v6e v7x.
    tpu: Option<String>,
}

pub(super) fn explain(arguments: &MessageArguments, access: &Access) -> Answer {
    let page = arguments.text.as_deref().and_then(|text| Page::named(text.trim()));
    if let Some(page) = page {
        return Ok(json(&page));
    }
    let message = match (&arguments.text, &arguments.path) {
        (Some(text), None) => read_stream(text.as_bytes(), access.limits().file_bytes)?,
        (None, Some(path)) => read_log(&access.resolve(path)?, access.limits().file_bytes)?,
        _ => return Err(Failure::new("usage", "give either `text` or `path`").into()),
    };
    let tpu = arguments.tpu.as_deref().map(generation).transpose()?;
    let explanation = tilewise_audit::explain(message, tpu);
    let summary = MessageSummary::of(&explanation);
    let page = explanation.message.page();
    let mut told = json(&AsJson(&explanation));
    let [headline, causes, advice] = ["headline", "causes", "advice"].map(|field| told[field].take());
    Ok(json!({
        "headline": headline,
        "causes": causes,
        "verdict": explanation.message.verdict().as_str(),
        "cause": summary.verdict,
        "fills": summary.stack,
        "advice": advice,
        "shortfall": summary.shortfall.map(|remark| remark.words),
        "notes": summary.notes.into_iter().map(|remark| remark.words).collect::<Vec<_>>(),
        "page": format!("tilewise://errors/{page}"),
        "next": [
            next("audit", json!({ "path": "the program's optimized HLO" }), "the program tells what a change frees, and whose each array is"),
            next("explain", json!({ "text": page }), "what messages of this kind mean"),
        ],
    }))
}
