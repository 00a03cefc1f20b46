#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - [`read`] a file, text or proto, compressed or not; [`Module::parse`] a text, [`Module::parse_all`] several modules
//!   in one. ([`read_text`] and [`decode`] stop at the text.)
//! - A [`Document`] has the contents of a file, with the compiler's own [`BufferAssignment`] if the file has one.
//! - A [`Profile`] has several programs, each a [`Document`].
//! - A [`Module`] has [`Computation`]s, those have [`Instruction`]s, and these have [`Operand`]s, [`Attributes`],
//!   [`Metadata`], [`Call`]s and [source lines](Instruction::source).
//! - An [`OperationLine`] is one line as documents and logs print it: wrapped, cut off, without its module.
//! - [`Module::buffers`] lists the arrays that instructions make, by XLA's dataflow rules.
//! - An [`Error`] means that the text couldn't be read; a [`Warning`] is about a part that was skipped, or contradicts
//!   another.
//!
//! # How it reads
//!
//! A module owns its text and keeps ranges into it. One pass finds, for each instruction, its name, shape, opcode and
//! operands; the rest of the line, mostly `backend_config`, is only checked to be whole. Shapes and attributes are read
//! from their ranges on demand; those of attributes are found together, when one is first asked for, and take 16 bytes
//! each. So reading is fast, a module takes 44 bytes an instruction and 4 for each of its operands beside the text, and
//! it can be shared between threads.
//!
//! A line as compilers print it takes a fast path; any other is read by the grammar of XLA's own parser: several
//! instructions on a line, operands and computations within instructions, shapes that are left out. A second pass
//! resolves names, which must be defined above their uses, and once. [`Module::warnings`] lists the parts that were not
//! understood, [`Module::check`] refuses texts that XLA's parser refuses.
//!
//! Reading is linear in the length of the text, whatever the text, and never recurses.
//!
//! # Features
//!
//! | feature | default | what |
//! |---|---|---|
//! | `gzip` | yes | [`read`], [`read_text`] and [`decode`] decompress gzip |
//! | `proto` | yes | they take a serialised `HloProto`, `HloModuleProto` or `HloSnapshot` for its text |

#![forbid(unsafe_code)]

mod alias;
mod arity;
mod attributes;
mod buffer_assignment;
mod buffers;
mod calls;
mod computation;
pub mod dataflow;
mod dimension_numbers;
mod document;
mod elements;
mod error;
mod gzip;
mod infer;
mod instruction;
mod module;
mod name_index;
mod opcode;
mod operands;
mod operation_line;
mod pairs;
mod parse;
mod profile;
#[cfg(feature = "proto")]
mod proto;
mod read;
mod record;
mod resolve;
mod scan;
mod source_table;
mod span;
mod steps;

pub use alias::{AliasKind, InputOutputAlias, OperandAlias};
pub use attributes::{Attribute, Attributes, Metadata, unquote};
pub use buffer_assignment::{
    AllocationParameter, AssignedBuffer, BufferAllocation, BufferAssignment, HeapEvent, HeapTrace,
};
pub use buffers::{Buffer, Definitions};
pub use calls::{Call, CallRole};
pub use computation::Computation;
pub use dimension_numbers::{
    ConvolutionArray, ConvolutionDimensions, DotDimensions, IndexedDimensions, Padding, SliceLimits, WindowDimension,
};
pub use document::{Document, is_proto};
pub use error::{Error, ErrorKind, Warning, WarningKind};
pub use gzip::{decompressed, decompressing};
pub use instruction::{Frames, Instruction, SourceLocation};
pub use module::Module;
pub use opcode::Opcode;
pub use operands::{Operand, Operands};
pub use operation_line::{LineOperand, OperationLine};
pub use profile::{Profile, ProfiledProgram, is_profile};
pub use read::{DECOMPRESSION_LIMIT, decode, read, read_bytes, read_head, read_text};
#[cfg(feature = "unstable-testing")]
#[doc(hidden)]
pub use steps::steps;
