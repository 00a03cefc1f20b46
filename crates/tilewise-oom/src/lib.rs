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

mod clean;
mod entry;
mod error;
mod headline;
mod instruction;
mod list;
mod reader;
mod size;
mod tables;

pub use entry::{Entry, Operator, Role, Section, WrittenShape};
pub use error::Error;
pub use size::{PrintedSize, format_size};
pub use tables::{Output, Requirement, Row, Usage, Utilization};

/// What a message reports, which decides the parts that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// Even the lower bound of what the program needs exceeds HBM (E1000): two figures, no lists.
    Bound,
    /// The final assignment of a memory space does not fit (E1000 for HBM): all tables and lists.
    Assignment,
    /// One instruction needs more scoped VMEM than it may have (E1001): the instruction, three figures.
    Scoped,
    /// One allocation is larger than its memory: one line, sizes in bytes.
    Allocation,
    /// The compiler gave up early: two figures.
    EarlyAbort,
    /// The program compiled, but at run time there was no memory for a buffer or for the program (E0100, E0101).
    RunTime,
    /// Tables or lists without the headline that says what was exceeded.
    Excerpt,
}

impl Form {
    /// A stable name in snake case, for machines.
    ///
    /// ```
    /// assert_eq!(tilewise_oom::Form::EarlyAbort.as_str(), "early_abort");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::Assignment => "assignment",
            Self::Scoped => "scoped",
            Self::Allocation => "allocation",
            Self::EarlyAbort => "early_abort",
            Self::RunTime => "run_time",
            Self::Excerpt => "excerpt",
        }
    }
}

/// A TPU out-of-memory message, read.
///
/// Fields are `None` where the message has no such part, or was cut before it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// What it reports.
    pub form: Form,
    /// XLA's error code, `E1000`; messages of older compilers have none.
    pub code: Option<String>,
    /// The name of the memory that ran out: `hbm`, `vmem`, `smem`, …
    pub memory_space: Option<String>,
    /// What is needed: at [`RunTime`](Form::RunTime), what was asked for.
    pub used: Option<PrintedSize>,
    /// What there is: at [`RunTime`](Form::RunTime), what was free.
    pub limit: Option<PrintedSize>,
    /// The difference, where the message prints it.
    pub exceeded: Option<PrintedSize>,
    /// The name of the HLO module or program.
    pub module: Option<String>,
    /// What the memory holds.
    pub usage: Option<Usage>,
    /// What the results take.
    pub output: Option<Output>,
    /// What the program itself takes.
    pub requirement: Option<Requirement>,
    /// The lists' entries, in the message's order.
    pub entries: Vec<Entry>,
    /// Whether parts are missing: the text ends before the message does, or begins after its headline.
    pub truncated: bool,
}

impl Message {
    /// Reads the message that a text holds.
    ///
    /// # Errors
    ///
    /// [`Error`], if it holds none; its text says what is looked for.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = clean::clean(text);
        let starts = headline::find_all(&text);
        let mut best: Option<(Self, (usize, usize))> = None;
        let mut previous = 0;
        for (number, &start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(text.len());
            let message = Self::of_chunk(&text[previous..start], &text[start..end], true);
            previous = start;
            if message.used.is_none() && !headline::is_telling(&text[start..]) {
                continue;
            }
            let figures = [&message.used, &message.limit, &message.exceeded];
            let score = (message.entries.len(), figures.into_iter().flatten().count());
            if best.as_ref().is_none_or(|(_, least)| score > *least) {
                best = Some((message, score));
            }
        }
        if let Some((message, _)) = best {
            return Ok(message);
        }
        let message = Self::of_chunk("", &text, false);
        let is_list = message.entries.iter().any(|entry| entry.label.is_some() || entry.shape.is_some());
        let is_message = is_list || message.requirement.is_some() || message.usage.is_some();
        if is_message { Ok(message) } else { Err(Error::of(&text)) }
    }

    /// `before` is the text since the previous headline.
    fn of_chunk(before: &str, text: &str, has_headline: bool) -> Self {
        let mut message = Self {
            form: Form::Excerpt,
            code: headline::code(before, text),
            memory_space: None,
            used: None,
            limit: None,
            exceeded: None,
            module: None,
            usage: None,
            output: None,
            requirement: None,
            entries: Vec::new(),
            truncated: true,
        };
        let after = if has_headline { headline::read(text, &mut message) } else { 0 };
        if message.form == Form::RunTime {
            message.module = headline::loaded_program(before);
        }
        let body = text.get(after..).unwrap_or("");
        let list = list::read(body);
        let tables = &body[..list.start];
        message.usage = Usage::read(tables);
        message.output = Output::read(tables);
        message.requirement = Requirement::read(tables);
        let is_closed = list.entries.last().is_some_and(|entry| entry.complete);
        message.entries.extend(list.entries);
        // Newer messages say so at their end; of others, the last entry's last line must do.
        let is_ended = list.ended || (message.code.is_none() && is_closed);
        let needs_end = message.form == Form::Assignment;
        message.truncated = !(headline::is_whole(&message) && (is_ended || !needs_end));
        if message.memory_space.is_none() {
            message.memory_space = list::memory_space(body);
        }
        message
    }

    /// The number of the memory space, as layouts write it in `S(n)`: `hbm` 0, `vmem` 1, `cmem` 3, `smem` 4, `host` 5.
    ///
    /// The numbers are those of [`tilewise::memory_space_name`].
    ///
    /// ```
    /// let text = "Ran out of memory in memory space vmem. Used 32.42M of 16.00M vmem. Exceeded vmem capacity by 16.42M.";
    /// let message = tilewise_oom::Message::parse(text)?;
    /// assert_eq!(message.memory_space_number(), Some(1));
    /// # Ok::<(), tilewise_oom::Error>(())
    /// ```
    #[must_use]
    pub fn memory_space_number(&self) -> Option<u8> {
        let name = self.memory_space.as_deref()?;
        (0..=5).find(|number| tilewise::memory_space_name(*number) == name)
    }
}
