#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - [`Message::parse`] reads a text, [`Form`] says which of the compiler's messages it is.
//! - A [`Message`] has the headline's figures, as [`PrintedSize`]s; the tables [`Usage`], [`Output`] and
//!   [`Requirement`];
//!   and an [`Entry`] for each allocation, argument and output.
//! - [`Message::budget`] adds up the memory's contents, padding included, [`Message::verdict`] names the cause, and
//!   [`Entry::window`] a kernel's purpose for an allocation.
//!
//! # Text around a message
//!
//! Tracebacks, log prefixes on each line (learnt from the message's own lines, so of any kind), quotation marks of
//! mail and Markdown, code fences, boxes, terminal colours, HTML entities, escapes (`\n`) of a `repr` or of JSON, and
//! line ends anywhere or nowhere may surround a message. It may be cut off anywhere; [`Message::truncated`] tells if
//! that shows. Of several messages in a text, the most important one has the [others](Message::others).
//!
//! # The lists
//!
//! Only `Size:` is in every entry. `Operator:` is absent for arrays that the compiler made itself; `Shape:` and
//! `Unpadded size:` for code (`overlays`); `Extra memory due to padding:` without padding; `Tag:` outside kernels.
//! Arguments and outputs have their shape only: [`Entry::computed_unpadded_bytes`] gives the size of their elements. A
//! tuple's entry is only the table of its pointers. The compiler lists at most 20 allocations.
//!
//! # Sources of the rules
//!
//! The rules come from messages of libtpu 0.0.51, of older compilers in public issue threads, and from
//! <https://openxla.org/xla/errors_overview>. Reading takes time linear in the text and never recurses.

#![forbid(unsafe_code)]

mod block_sizes;
mod budget;
mod candidates;
mod code;
mod complaint;
mod device;
mod entry;
mod error;
mod facts;
mod form;
mod forms;
mod framework;
mod job;
mod judge;
mod kernel_library;
mod kernel_name;
mod killed;
mod level;
mod list;
mod loose_arrays;
mod memory;
mod message;
mod occasion;
mod parse;
mod pattern;
mod pool;
mod product;
mod prose;
mod reach;
mod reason;
mod scan;
mod server;
mod sharding;
mod software;
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
pub use job::{
    Core, Derivatives, Devices, Done, Gpu, Host, InputKind, InputOption, Job, Kept, ListedProcess, Model, Names,
    Optimizers, PerUnit, PoolSettings, Rise, Run, Serving, Setting, Switch, SwitchKind, Told, Way, Worked,
};
pub use kernel_library::{KernelBlocks, KernelOption, OptionChange};
pub use level::Level;
pub use message::Message;
pub use occasion::Occasion;
pub use pool::Chunks;
pub use product::Product;
pub use reason::{Reason, Resource};
pub use scan::Scanner;
pub use server::Server;
pub use sharding::Resharding;
pub use software::SoftwareOption;
pub use tables::{Output, Persistent, Requirement, Row, Usage, Utilization};
pub use text::size::{PrintedSize, format_size};
pub use traceback::Frame;
pub use verdict::{OomVerdict, UntiledMachine};
pub use window::{Window, WindowKind};
