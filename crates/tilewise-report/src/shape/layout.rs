//! A layout without its array, in words.

use super::{
    hex::{bytes_of_hex, hex},
    labelled::Labelled,
};
use crate::{
    Terminal, WriteText,
    style::{STRONG, styled},
};
use serde::Serialize;
use std::io::{self, Write};
use tilewise::{ElementType, Layout, Shape};

/// The summary of a layout alone, such as `{3,2,0,1:T(8,128)(2,1)}`, in `tilewise show`.
#[derive(Clone, Debug, Serialize)]
pub struct LayoutSummary {
    layout: String,
    #[serde(skip)]
    source: Layout,
}

impl LayoutSummary {
    /// The summary of a layout as XLA prints it, with braces or without; or as a `LayoutProto`, in protobuf's text format or as `proto:` and
    /// its bytes in hex; `None` of any other text.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let source = parse_layout(text)?;
        Some(Self { layout: format!("{source}"), source })
    }

    /// The number of dimensions that it orders.
    pub(crate) fn rank(&self) -> usize {
        self.source.minor_to_major().len()
    }

    /// The layout's proto, its bytes in hexadecimal.
    #[must_use]
    pub fn proto_hex(&self) -> String {
        hex(&self.source.encode_proto())
    }

    /// The layout's proto in protobuf's text format.
    #[must_use]
    pub fn text_proto(&self) -> String {
        self.source.to_text_proto()
    }
}

pub(super) fn parse_layout(text: &str) -> Option<Layout> {
    // A message of a shape has no field 1, one of a layout begins with it.
    let is_named = text.starts_with("proto:");
    if is_named || text.starts_with("0a") {
        let digits = text.strip_prefix("proto:").unwrap_or(text);
        return Layout::decode_proto(&bytes_of_hex(digits).filter(|bytes| bytes.first() == Some(&0x0a))?).ok();
    }
    let is_message = text.trim_start().starts_with(|first: char| first.is_ascii_lowercase());
    text.parse().ok().or_else(|| is_message.then(|| Layout::from_text_proto(text).ok())?)
}

/// An example of an array with a layout; `None` if the text of the example can't be read again.
pub(crate) fn example(layout: &Layout) -> Option<Shape> {
    let rank = layout.minor_to_major().len();
    // Small sizes that differ; large ones for a layout that splits a dimension far behind.
    let [small, large] = [(2..).take(rank).collect::<Vec<u64>>(), vec![1 << 10; rank]];
    [small, large].into_iter().find_map(|sizes| {
        let shape = Shape::array(ElementType::F32, sizes).ok()?.with_layout(layout.clone()).ok()?;
        shape.to_string().parse().ok()
    })
}

impl WriteText for LayoutSummary {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let out = &mut Labelled::new(terminal, out);
        writeln!(out.to, "{}", styled(STRONG, &self.layout))?;
        let rank = self.source.minor_to_major().len();
        let s = if rank == 1 { "" } else { "s" };
        out.line("layout", &format!("of an array with {rank} dimension{s}"))?;
        for part in self.source.in_words() {
            out.line(&part.text, &part.meaning)?;
        }
        let such_as = example(&self.source).map_or_else(String::new, |shape| format!(", such as {shape}"));
        out.line("size", &format!("needs the element type and the dimensions{such_as}"))?;
        writeln!(out.to)
    }
}
