//! Programs that are loaded at once, as text, picture and page.

use crate::{WriteText, findings::OF_LARGEST_CALL, style::bytes, summary::memory_name};
use std::borrow::Cow;
use tilewise::visible;
use tilewise_audit::{LoadedProgram, Together};
use tilewise_draw::{BudgetPart, BudgetPicture, BudgetRow, Options};

/// Programs that are loaded at once: the output of `tilewise audit --together`.
#[derive(Clone, Debug)]
pub struct ProgramSet(pub Together);

/// Columns of the text on a page.
const COLUMNS: usize = 110;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}\
                     svg{max-width:100%;height:auto}pre{overflow:auto;font:13px/1.45 ui-monospace,monospace}";

impl ProgramSet {
    /// The verdict on the set, and how much is left or missing.
    #[must_use]
    pub fn verdict_in_words(&self) -> String {
        let together = &self.0;
        let at_least = if together.code_bytes.is_none() { "at least " } else { "" };
        let programs = match &together.programs[..] {
            [one] => format!("`{}` holds", visible(&one.name)),
            several => format!("{} programs together hold", several.len()),
        };
        let held = format!("{programs} {at_least}{}", bytes(together.total_bytes));
        let memory = memory_name(together.machine);
        let verdict = match (together.limit, together.fits()) {
            (None, _) => String::new(),
            (Some(limit), Some(false)) => {
                let missing = bytes(together.total_bytes.saturating_sub(limit));
                format!(", more than the {} of {memory} by {missing}", bytes(limit))
            }
            (Some(limit), is_known) => {
                let left = bytes(limit.saturating_sub(together.total_bytes));
                let code = if is_known.is_none() { " without their code" } else { "" };
                format!(" of {} of {memory}: {left} are left{code}", bytes(limit))
            }
        };
        held + &verdict
    }

    /// The picture of the whole: arrays held once, pages apart, the largest program's temporaries, the largest call,
    /// constants and code; below, the part that each program adds.
    #[must_use]
    pub fn picture(&self) -> BudgetPicture {
        let together = &self.0;
        let pages = together.residents.iter().filter(|array| array.is_pages);
        let sum = |of: fn(&tilewise_audit::ResidentArray) -> u64, only_pages: bool| {
            let arrays = together.residents.iter().filter(|array| array.is_pages || !only_pages);
            arrays.map(of).fold(0, u64::saturating_add)
        };
        let [page_bytes, page_padding] = [sum(|array| array.bytes, true), sum(|array| array.padding_bytes, true)];
        let padding = sum(|array| array.padding_bytes, false).saturating_sub(page_padding);
        let part = |label: Cow<'static, str>, bytes, padding_bytes| BudgetPart {
            label: label.into(),
            bytes,
            padding_bytes,
            buffers: 1,
        };
        let cache = match (&together.pages, pages.count()) {
            (Some(pages), count) => format!("cache: {} pages in {count} arrays", pages.count),
            (None, _) => "cache".to_owned(),
        };
        let parts = vec![
            part("other arrays, each once".into(), together.resident_bytes.saturating_sub(page_bytes), padding),
            part(cache.into(), page_bytes, page_padding),
            part("temporaries of the largest program".into(), together.largest_temporaries, 0),
            part(OF_LARGEST_CALL.into(), together.call_bytes, 0),
            part("constants of all programs".into(), together.constant_bytes, 0),
            part("code of all programs".into(), together.code_bytes.unwrap_or(0), 0),
        ];
        let row = |program: &LoadedProgram| BudgetRow {
            label: program.name.clone(),
            bytes: vec![
                (2, program.temporary_bytes),
                (3, program.call_bytes),
                (4, program.constant_bytes),
                (5, program.code_bytes.unwrap_or(0)),
            ],
        };
        let fitting = together.pages.as_ref().and_then(|pages| pages.fitting);
        let fitting = fitting.map_or_else(String::new, |count| format!(" {count} pages fit."));
        BudgetPicture {
            title: format!("Programs together in {}", memory_name(together.machine)),
            summary: format!("{}.{fitting}", self.verdict_in_words()),
            parts,
            limit: together.limit,
            rows_heading: "What each program adds, to a scale of their own".to_owned(),
            rows: together.programs.iter().map(row).collect(),
        }
    }

    /// A page in one file: the picture, and the whole text.
    #[must_use]
    pub fn to_html(&self) -> String {
        let text = self.to_text(COLUMNS).replace('&', "&amp;").replace('<', "&lt;");
        let svg = self.picture().to_svg(&Options::new());
        format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
             <title>Programs together</title><style>{STYLE}</style><body>{svg}<pre>{text}</pre></body></html>\n"
        )
    }
}
