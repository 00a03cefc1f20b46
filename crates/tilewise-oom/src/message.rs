//! What a message says.

use crate::entry::Entry;
use crate::framework::Framework;
use crate::size::PrintedSize;
use crate::tables::{Output, Persistent, Requirement, Usage};

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
    /// What the TensorCore and the SparseCores need together exceeds HBM (E1000, E1002): three figures, no lists.
    Cores,
    /// A SparseCore's memory can't hold what its program allocates (E3000, E3001).
    SparseCore,
    /// Tables or lists without the headline that says what was exceeded.
    Excerpt,
    /// Resources were exhausted, or XLA's error code says what happened, but not in words that tell of memory.
    Other,
    /// A GPU, or the host, ran out of memory: nothing there is tiled.
    NotTpu,
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
            Self::Cores => "cores",
            Self::SparseCore => "sparse_core",
            Self::Excerpt => "excerpt",
            Self::Other => "other",
            Self::NotTpu => "not_tpu",
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
    /// The largest piece of what is free at [`RunTime`](Form::RunTime), where that differs from all of it.
    pub contiguous: Option<PrintedSize>,
    /// What the memory has in all, where a message of [`RunTime`](Form::RunTime) says that.
    pub capacity: Option<PrintedSize>,
    /// The name of the HLO module or program.
    pub module: Option<String>,
    /// What the memory holds.
    pub usage: Option<Usage>,
    /// What stays in memory between runs, at [`RunTime`](Form::RunTime).
    pub persistent: Vec<Persistent>,
    /// What the results take.
    pub output: Option<Output>,
    /// What the program itself takes.
    pub requirement: Option<Requirement>,
    /// The lists' entries, in the message's order.
    pub entries: Vec<Entry>,
    /// Whether parts are missing: the text ends before the message does, or begins after its headline.
    pub truncated: bool,
    /// The framework that compiled the program, where names or wordings tell.
    pub framework: Option<Framework>,
}

impl Message {
    /// A message of which only the form is known.
    pub(crate) fn new(form: Form) -> Self {
        Self {
            form,
            code: None,
            memory_space: None,
            used: None,
            limit: None,
            exceeded: None,
            contiguous: None,
            capacity: None,
            module: None,
            usage: None,
            persistent: Vec::new(),
            output: None,
            requirement: None,
            entries: Vec::new(),
            truncated: true,
            framework: None,
        }
    }

    /// The number of the memory space, as layouts write it in `S(n)`: `hbm` 0, `vmem` 1, `cmem` 3, `smem` 4, `host` 5.
    ///
    /// The numbers are those of [`tilewise::tpu::memory_space_name`].
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
        (0..=5).find(|number| tilewise::tpu::memory_space_name(*number) == name)
    }
}
