//! A computation and its instructions.

use std::fmt;
use std::ptr;
use std::sync::OnceLock;

use crate::attributes::Attributes;
use crate::instruction::Instruction;
use crate::name_index::NameIndex;
use crate::record::{ComputationRecord, Data};

/// A computation of a [`Module`](crate::Module).
#[derive(Clone, Copy)]
pub struct Computation<'m> {
    pub(crate) data: &'m Data,
    pub(crate) index: usize,
}

impl<'m> Computation<'m> {
    /// The computation of this name; the first if several share it.
    pub(crate) fn named(data: &'m Data, name: &str) -> Option<Self> {
        let name_of = |index: usize| data.text(data.computations[index].name);
        let names = || NameIndex::new(0..data.computations.len(), name_of);
        let index = data.computations_by_name.get_or_init(names).find(name, name_of)?;
        Some(Self { data, index })
    }

    fn record(&self) -> &'m ComputationRecord {
        &self.data.computations[self.index]
    }

    /// Its name, without `%`; empty for instructions that stand outside any computation.
    #[must_use]
    pub fn name(&self) -> &'m str {
        self.data.text(self.record().name)
    }

    /// Its place among the module's computations, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Whether this is the module's [`entry`](crate::Module::entry).
    #[must_use]
    pub fn is_entry(&self) -> bool {
        self.data.entry == Some(self.index)
    }

    /// `(name: shape, …) -> shape`, which carries no layouts; empty in the short form.
    #[must_use]
    pub fn signature(&self) -> &'m str {
        self.data.text(self.record().signature).trim()
    }

    /// The thread it runs on if not the main one: `sparsecore`.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("f {\n x = f32[] parameter(0)\n}, execution_thread=\"sparsecore\"")?;
    /// assert_eq!(module.computation("f").unwrap().execution_thread(), Some("sparsecore"));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn execution_thread(&self) -> Option<&'m str> {
        let text = Attributes::new(self.data.text(self.record().attributes)).get("execution_thread")?;
        Some(text.trim_matches('"'))
    }

    /// Whether it is a function of scalars, or the callee of a `custom-call`: called, but neither [run with buffers of
    /// its own](Self::owns_buffers) nor the body of a fusion. Its values take no memory of the program's, but its
    /// constants do: XLA gives each an allocation (`BufferAssigner::AssignBuffersForComputations` in
    /// xla/service/buffer_assignment.cc).
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("\
    /// HloModule m
    /// sum { a = f32[] parameter(0)
    ///   b = f32[] parameter(1)
    ///   ROOT c = f32[] add(a, b)
    /// }
    /// ENTRY e { x = f32[8] parameter(0)
    ///   zero = f32[] constant(0)
    ///   ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=sum
    /// }
    /// ")?;
    /// assert!(module.computation("sum").unwrap().is_function());
    /// assert!(!module.computation("e").unwrap().is_function());
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn is_function(&self) -> bool {
        let uses = self.data.uses.get(self.index).copied().unwrap_or_default();
        uses.otherwise && !uses.by_fusion && !self.owns_buffers()
    }

    /// Its instructions, in the order of the text.
    pub fn instructions(
        &self,
    ) -> impl DoubleEndedIterator<Item = Instruction<'m>> + ExactSizeIterator + Clone + use<'m> {
        let (data, record) = (self.data, self.record());
        (record.first..record.end).map(move |index| Instruction { data, index })
    }

    /// The instruction of this name (without `%`); the first if several share it.
    #[must_use]
    pub fn instruction(&self, name: &str) -> Option<Instruction<'m>> {
        let data = self.data;
        let name_of = |index: usize| data.text(data.instructions[index].name);
        let all = data.instructions_by_name.get_or_init(|| vec![OnceLock::new(); data.computations.len()]);
        let names = || NameIndex::new(self.record().first..self.record().end, name_of);
        let index = all.get(self.index)?.get_or_init(names).find(name, name_of)?;
        Some(Instruction { data, index })
    }

    /// The instruction marked `ROOT`, else the last one, as in XLA.
    #[must_use]
    pub fn root(&self) -> Option<Instruction<'m>> {
        self.instructions().rev().find(Instruction::is_root).or_else(|| self.instructions().next_back())
    }
}

impl fmt::Debug for Computation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Computation").field(&self.name()).finish()
    }
}

impl PartialEq for Computation<'_> {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.data, other.data) && self.index == other.index
    }
}

impl Eq for Computation<'_> {}

impl<'m> Instruction<'m> {
    /// The computation it is in.
    #[must_use]
    pub fn computation(&self) -> Computation<'m> {
        // The computations' ranges of instructions follow one another.
        let index = self.data.computations.partition_point(|computation| computation.end <= self.index);
        Computation { data: self.data, index }
    }
}
