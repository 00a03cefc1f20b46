//! Reads the messages of TPU programs that run out of memory.
//!
//! A [`Message`] has the headline's figures, the tables and the lists of allocations, and says for each entry what its
//! shape takes by its own layout, which shows the buffers that are mostly padding.
//!
//! ```
//! use tilewise_oom::{Form, Message};
//!
//! let message = Message::parse(r#"
//! > jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in
//! > memory space hbm. Used 314.47M of 314.00M hbm. Exceeded hbm capacity by 477.5K.
//! >
//! >   Largest program allocations in hbm:
//! >
//! >   1. Size: 195.31M
//! >      Operator: op_name="jit(gnn)/dot_general"
//! >      Shape: f32[400000,12]{1,0:T(8,128)}
//! >      Unpadded size: 18.31M
//! >      Extra memory due to padding: 177.00M (10.7x expansion)
//! >      XLA label: fusion.6 = fusion(gather_fusion, copy-done), kind=kOutput, calls=fused_computation.12
//! >      Allocation type: HLO temp
//! >      ==========================
//! "#)?;
//!
//! assert_eq!(message.form, Form::Assignment);
//! assert_eq!(message.exceeded.unwrap().text(), "477.5K");
//! let entry = &message.entries[0];
//! assert_eq!(entry.operator.as_ref().unwrap().op_name(), Some("jit(gnn)/dot_general"));
//! assert_eq!(entry.computed_bytes(), Some(Ok(204_800_000)));
//! assert_eq!(entry.agrees(), Some(true));
//! # Ok::<(), tilewise_oom::Error>(())
//! ```
//!
//! # What is where
//!
//! - [`Message::parse`] reads a text, [`Form`] says which of the compiler's messages it is.
//! - A [`Message`] has the headline's figures, as [`PrintedSize`]s; the tables [`Usage`], [`Output`] and
//!   [`Requirement`];
//!   and an [`Entry`] for each allocation, argument and output.
//! - [`Message::budget`] adds up what the memory holds, padding included, [`Message::verdict`] says in a word what is
//!   the matter, and [`Entry::window`] what a kernel needs an allocation for.
//!
//! # What may surround a message
//!
//! Tracebacks, log prefixes on each line (learnt from the message's own lines, so of any kind), quotation marks of
//! mail and Markdown, code fences, boxes, terminal colours, HTML entities, escapes (`\n`) of a `repr` or of JSON, and
//! line ends anywhere or nowhere. A message may be cut off anywhere; [`Message::truncated`] says when that shows. Of
//! several messages in a text, the one with most in it is read.
//!
//! # The lists
//!
//! Only `Size:` is in every entry. `Operator:` is absent for what the compiler made itself; `Shape:` and
//! `Unpadded size:` for code (`overlays`); `Extra memory due to padding:` where there is none; `Tag:` for all but
//! kernels. Arguments and outputs have their shape alone: [`Entry::computed_unpadded_bytes`] says what they hold. A
//! tuple's entry is the table of its pointers alone. The compiler lists 20 allocations at most.
//!
//! # Where the rules come from
//!
//! From messages of libtpu 0.0.51, of older compilers in public issue threads, and from
//! <https://openxla.org/xla/errors_overview>. Reading takes time linear in the text and never recurses.

#![forbid(unsafe_code)]

mod budget;
mod clean;
mod code;
mod entry;
mod error;
mod framework;
mod headline;
mod instruction;
mod json_lines;
mod list;
mod message;
mod other;
mod parse;
mod reader;
mod size;
mod tables;
mod verdict;
mod window;

pub use budget::Budget;
pub use code::meaning_of_code;
pub use entry::{Entry, Operator, Role, Section, WrittenShape};
pub use error::Error;
pub use framework::Framework;
pub use message::{Form, Message};
pub use size::{PrintedSize, format_size};
pub use tables::{Output, Persistent, Requirement, Row, Usage, Utilization};
pub use verdict::Verdict;
pub use window::{Window, WindowKind};
