//! Every buffer of a program, stored in a few bytes and turned into a row on demand.

use super::rows::BufferRow;
use crate::program::{Array, ArrayId, op_name, source_line};
use foldhash::HashMap;
use std::{borrow::Cow, cmp::Reverse};
use tilewise_hlo::{Instruction, Module};

/// A buffer in 12 bytes; a row takes hundreds.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// The instruction's index in the module.
    instruction: u32,
    array: ArrayId,
    path: u32,
}

/// The buffers of a module, in the order of the text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers {
    records: Vec<Record>,
    paths: Vec<Vec<usize>>,
    by_path: HashMap<Vec<usize>, u32>,
    arrays: Vec<Array>,
}

impl Buffers {
    pub(crate) fn push(&mut self, instruction: &Instruction<'_>, path: &[usize], array: ArrayId) {
        // Modules are smaller than 4 GiB.
        let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let path = match self.by_path.get(path) {
            Some(known) => *known,
            None => {
                self.paths.push(path.to_vec());
                self.by_path.insert(path.to_vec(), index(self.paths.len() - 1));
                index(self.paths.len() - 1)
            }
        };
        self.records.push(Record { instruction: index(instruction.index()), array, path });
    }

    /// Stores all arrays, and shrinks the rest.
    pub(crate) fn finish(&mut self, arrays: Vec<Array>) {
        self.arrays = arrays;
        self.by_path = HashMap::default();
        self.records.shrink_to_fit();
    }

    /// The array of each buffer, with the index of its instruction.
    pub(crate) fn arrays<'a>(&'a self, arrays: &'a [Array]) -> impl Iterator<Item = (usize, &'a Array)> {
        self.records.iter().filter_map(|r| Some((r.instruction as usize, r.array.of(arrays)?)))
    }

    fn row(&self, module: &Module, record: &Record) -> Option<BufferRow> {
        let array = record.array.of(&self.arrays)?;
        let instruction = module.instruction(record.instruction as usize)?;
        Some(BufferRow {
            instruction: instruction.name().to_owned(),
            computation: instruction.computation().name().to_owned(),
            opcode: instruction.opcode_text().to_owned(),
            shape: array.shape.clone(),
            shape_index: self.paths.get(record.path as usize).cloned().unwrap_or_default(),
            memory_space: array.memory_space,
            sizes: array.sizes,
            causes: array.causes.clone(),
            op_name: op_name(&instruction).map(Cow::into_owned),
            source: source_line(&instruction),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// All rows, in the order of the text.
    pub(crate) fn rows<'a>(&'a self, module: &'a Module) -> impl Iterator<Item = BufferRow> + use<'a> {
        self.records.iter().filter_map(|record| self.row(module, record))
    }

    /// Rows with padding, the most first.
    pub(crate) fn largest_padding<'a>(&'a self, module: &'a Module) -> impl Iterator<Item = BufferRow> + use<'a> {
        let padding = |record: &Record| record.array.of(&self.arrays).map_or(0, |array| array.sizes.padding_bytes());
        let mut padded: Vec<(u64, Record)> = self.records.iter().map(|r| (padding(r), *r)).collect();
        padded.retain(|(padding, _)| *padding > 0);
        padded.sort_by_cached_key(|(padding, _)| Reverse(*padding));
        padded.into_iter().filter_map(|(_, record)| self.row(module, &record))
    }

    /// The number of buffers with padding, and its bytes together.
    pub(crate) fn padded(&self) -> (usize, u64) {
        let arrays = self.arrays(&self.arrays).map(|(_, array)| array.sizes.padding_bytes());
        arrays
            .filter(|padding| *padding > 0)
            .fold((0, 0), |(count, sum), padding| (count + 1, sum.saturating_add(padding)))
    }
}
