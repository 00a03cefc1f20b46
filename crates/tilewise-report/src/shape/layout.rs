//! A layout without its array, in words.

use super::show::line;
use crate::{
    Terminal, WriteText,
    style::{STRONG, styled},
};
use serde::Serialize;
use std::io::{self, Write};
use tilewise::Layout;

/// What `tilewise show` says of a layout alone, such as `{3,2,0,1:T(8,128)(2,1)}`.
#[derive(Clone, Debug, Serialize)]
pub struct LayoutSummary {
    layout: String,
    #[serde(skip)]
    source: Layout,
}

impl LayoutSummary {
    /// The summary of a layout as XLA prints it, with braces or without, or as a `LayoutProto` in protobuf's text format; `None` of any other
    /// text.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let source = text.parse().or_else(|_| Layout::from_text_proto(text)).ok()?;
        Some(Self { layout: format!("{source}"), source })
    }
}

impl WriteText for LayoutSummary {
    fn write_text(&self, _: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", styled(STRONG, &self.layout))?;
        let rank = self.source.minor_to_major().len();
        let s = if rank == 1 { "" } else { "s" };
        line(out, "layout", &format!("of an array with {rank} dimension{s}"))?;
        for part in self.source.in_words() {
            line(out, &part.text, &part.meaning)?;
        }
        let sizes = vec!["…"; rank].join(",");
        let whole = format!("needs the element type and the dimensions, such as f32[{sizes}]{}", self.layout);
        line(out, "size", &whole)?;
        writeln!(out)
    }
}
