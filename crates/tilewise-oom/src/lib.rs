#![doc = include_str!("../README.md")]
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

mod block_sizes;
mod budget;
mod code;
mod device;
mod drafts;
mod entry;
mod error;
mod facts;
mod form;
mod forms;
mod framework;
mod judge;
mod kernel_name;
mod level;
mod list;
mod memory;
mod message;
mod parse;
mod pattern;
mod prose;
mod scan;
mod server;
mod sharding;
mod tables;
mod text;
mod traceback;
mod verdict;
mod window;

pub use block_sizes::{BlockSize, block_sizes};
pub use budget::Budget;
pub use code::meaning_of_code;
pub use entry::{Entry, Interface, Operator, Section, WrittenShape};
pub use error::Error;
pub use facts::{Fact, FactValue, Facts};
pub use form::Form;
pub use framework::Framework;
pub use level::Level;
pub use message::Message;
pub use scan::Scanner;
pub use server::Server;
pub use sharding::Resharding;
pub use tables::{Output, Persistent, Requirement, Row, Usage, Utilization};
pub use text::size::{PrintedSize, format_size};
pub use traceback::Frame;
pub use verdict::{UntiledMachine, Verdict};
pub use window::{Window, WindowKind};
