#![doc = include_str!("../README.md")]
//!
//! # Formats
//!
//! | format | of programs | of messages | of shapes | feature |
//! |---|---|---|---|---|
//! | text for people | [`Text`], [`ProgramLines`] | [`WriteText`] | [`WriteText`] | |
//! | JSON | [`Json`] | [`JsonLine`] | [`JsonLine`] | |
//! | CSV | [`Csv`] | | | `csv` |
//! | Parquet | `Parquet` | | | `parquet` |
//! | a page in one file | [`Html`] | | | `html` |
//! | a notebook's cell | [`notebook::report`] | [`notebook::explanation`] | [`notebook::shape`] | `html` |
//! | Markdown | [`Markdown`] | | | |
//! | SARIF, for code scanning | [`Sarif`] | | | |
//! | workflow commands of GitHub Actions | [`Github`] | | | |
//! | a trace for <https://ui.perfetto.dev> | [`Trace`] | | | |
//! | a snapshot for <https://pytorch.org/memory_viz> | [`MemoryViz`] | | | |
//! | SVG, PNG | [`Picture`] | | | `png` |
//!
//! A format of programs is an [`Exporter`]: adding one is adding a module. An answer on one or two shapes is a value
//! that serialises as its JSON and writes itself for people, such as [`ShapeSummary`] and [`BitcastAnswer`].

#![forbid(unsafe_code)]

mod axes;
mod comparison;
mod document;
mod export;
mod failure;
mod findings;
mod json;
mod kernel;
mod lock;
#[cfg(feature = "html")]
pub mod notebook;
mod operand_cost;
mod output;
mod pages;
mod plain;
mod program_set;
mod quotes;
#[cfg(feature = "html")]
mod search_page;
mod shape;
pub mod style;
pub mod summary;
mod table;
mod text;
mod verdict;
mod view;

pub use axes::axis;
pub use comparison::{
    Allowed, Amount, Change, ComparedBytes, ComparedProgram, ComparedTime, Comparison, ComparisonPage, Compiler, Count,
    KernelCopy, Outcome, Owner, ShortComparison,
};
pub use document::{Answer, Equation, Part, PartOfShape, Prose, Shown, answer_line};
#[cfg(feature = "csv")]
pub use export::Csv;
#[cfg(feature = "html")]
pub use export::Html;
#[cfg(feature = "parquet")]
pub use export::Parquet;
pub use export::{
    Exporter, Github, Json, Markdown, MemoryViz, Picture, PictureFormat, Sarif, Trace, markdown_table, markdown_text,
};
pub use failure::{excerpt, failure_text};
pub use findings::{RemedyWords, Words, causes_in_words, next_step, warning, why, words};
pub use json::{AsJson, Item, JsonLine, to_visible_json};
pub use kernel::KernelBudget;
pub use lock::Lock;
pub use operand_cost::OperandCost;
pub use output::AuditOutput;
pub use pages::Page;
pub use program_set::ProgramSet;
pub use quotes::{LineEdit, QuotedLine, Quotes};
#[cfg(feature = "html")]
pub use search_page::{SearchCurve, SearchPage, SearchPoint};
pub use shape::{
    BitcastAnswer, Derived, Differences, Edited, FreeLayouts, FreeViews, LayoutSummary, LinesOfItem, Located,
    NotationPart, Pair, Placement, PredictedShape, Reader, Rendered, ShapeSummary, StepLanguage, TileFormatRow,
    notation_parts, parse_index, parse_shape, parse_shape_as_written,
};
pub use summary::{
    CauseAxis, Headline, MessageSummary, PeakCause, PlannedChange, Quote, Remark, Summary, in_span, memory_name,
};
pub use table::{Column, Kind, TableRow, Value};
pub use text::{ProgramLines, Terminal, Text, WriteText};
pub use verdict::{Doubt, Verdict, memory_of};
pub use view::{LISTED, ReportView};
