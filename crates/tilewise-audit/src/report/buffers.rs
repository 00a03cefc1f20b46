//! Every buffer of a program, kept in a few bytes and shown as a row on demand.

use super::sections::{BufferRow, Report};
use crate::program::{Array, ArrayId, op_name, source_line};
use std::{cmp::Reverse, collections::HashMap};
use tilewise_hlo::{Instruction, Module};

/// 12 bytes a buffer, where a row takes hundreds.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// The instruction's place in the module.
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

    /// With all arrays that there are.
    pub(crate) fn finish(&mut self, arrays: Vec<Array>) {
        self.arrays = arrays;
        self.by_path = HashMap::new();
        self.records.shrink_to_fit();
    }

    /// The array of each.
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
            op_name: op_name(&instruction),
            source: source_line(&instruction),
        })
    }
}

impl Report {
    /// How many buffers the module defines.
    #[must_use]
    pub fn buffer_count(&self) -> usize {
        self.buffers.records.len()
    }

    /// Every buffer the module defines, in the order of the text: one row a leaf of each instruction's result, none for
    /// an alias.
    pub fn buffers(&self) -> impl Iterator<Item = BufferRow> {
        self.buffers.records.iter().filter_map(|record| self.buffers.row(&self.planned.module, record))
    }

    /// The buffers with padding, those with the most of it first.
    pub fn largest_padding(&self) -> impl Iterator<Item = BufferRow> {
        let padding =
            |record: &Record| record.array.of(&self.buffers.arrays).map_or(0, |array| array.sizes.padding_bytes());
        let mut padded: Vec<(u64, Record)> = self.buffers.records.iter().map(|r| (padding(r), *r)).collect();
        padded.retain(|(padding, _)| *padding > 0);
        padded.sort_by_cached_key(|(padding, _)| Reverse(*padding));
        padded.into_iter().filter_map(|(_, record)| self.buffers.row(&self.planned.module, &record))
    }

    /// How many buffers have padding, and how many bytes of it together.
    #[must_use]
    pub fn padded(&self) -> (usize, u64) {
        let arrays = self.buffers.arrays(&self.buffers.arrays).map(|(_, array)| array.sizes.padding_bytes());
        arrays
            .filter(|padding| *padding > 0)
            .fold((0, 0), |(count, sum), padding| (count + 1, sum.saturating_add(padding)))
    }
}
