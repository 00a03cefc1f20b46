//! Allocations and releases at each moment of a program, for the formats that replay them.

use foldhash::{HashMap, HashSet};
use std::{collections::BTreeMap, rc::Rc};
use tilewise_audit::{Origin, Origins, PlanRow, Report, Role};

/// A value in memory, at an address that no other has while it lives.
pub(super) struct Block<'a> {
    pub(super) row: PlanRow<'a>,
    /// The framework's name of the operation and the line, of all blocks of an instruction.
    pub(super) origin: Rc<Origin>,
    /// Arguments, results and constants lie below, temporaries above them.
    pub(super) address: u64,
}

impl Block<'_> {
    pub(super) fn bytes(&self) -> u64 {
        self.row.value.bytes
    }

    fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes())
    }

    /// Whether its memory is held for the whole run.
    pub(super) fn stands(&self) -> bool {
        stands(&self.row)
    }
}

/// Tuples' tables have memory of their own, which nothing else ever uses.
fn stands(row: &PlanRow<'_>) -> bool {
    let role = row.value.role;
    role.is_resident() || role == Role::Table
}

/// An event of a block, by its number in [`Space::blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Alloc(usize),
    Free(usize),
}

/// One memory space while the program runs.
pub(super) struct Space<'a> {
    pub(super) number: u8,
    pub(super) blocks: Vec<Block<'a>>,
    /// In order, each with its moment. Blocks that stand have none.
    pub(super) events: Vec<(usize, Event)>,
    /// The first address of temporaries.
    pub(super) temporaries: u64,
    /// The end of all addresses.
    pub(super) end: u64,
}

/// The memory spaces of a report's plan, by rising number; none without a plan.
pub(super) fn spaces(report: &Report) -> Vec<Space<'_>> {
    let mut rows: BTreeMap<u8, Vec<PlanRow<'_>>> = BTreeMap::new();
    for row in report.memory_rows().filter(|row| row.value.bytes > 0) {
        rows.entry(row.memory_space).or_default().push(row);
    }
    let mut origins = Origins::default();
    rows.into_iter().map(|(number, rows)| Space::of(number, rows, &mut origins)).collect()
}

impl<'a> Space<'a> {
    fn of(number: u8, rows: Vec<PlanRow<'a>>, origins: &mut Origins) -> Self {
        let mut space = Self { number, blocks: Vec::new(), events: Vec::new(), temporaries: 0, end: 0 };
        // Values of one buffer lie in one place, which is as large as the largest of them.
        let mut places: HashMap<usize, u64> = HashMap::default();
        for row in rows.iter().filter(|row| row.value.offset.is_none()) {
            let place = places.entry(row.value.buffer).or_default();
            *place = row.value.bytes.max(*place);
        }
        let mut laid: HashMap<usize, u64> = HashMap::default();
        for row in rows.iter().filter(|row| row.value.offset.is_none()) {
            laid.entry(row.value.buffer).or_insert_with_key(|buffer| {
                let address = space.temporaries;
                space.temporaries = address.saturating_add(places.get(buffer).copied().unwrap_or(0));
                address
            });
        }
        let mut resident = HashSet::default();
        for row in rows {
            let value = row.value;
            // Of the values in a place that is live for the whole program, the largest stands there.
            let is_largest = places.get(&value.buffer).is_none_or(|largest| *largest == value.bytes);
            if stands(&row) && !(is_largest && resident.insert(value.buffer)) {
                continue;
            }
            let address = match row.value.offset {
                Some(offset) => space.temporaries.saturating_add(offset),
                None => laid.get(&row.value.buffer).copied().unwrap_or(0),
            };
            space.blocks.push(Block { row, origin: origins.of(&row), address });
        }
        space.end = space.blocks.iter().map(Block::end).max().unwrap_or(0).max(space.temporaries);
        space.schedule();
        space
    }

    /// Puts allocations and releases in order: at a moment everything new comes first, since an instruction's operands
    /// are still there while it writes its result; but what takes over a place waits until that is free.
    fn schedule(&mut self) {
        let mut moments: Vec<(usize, bool, usize)> = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            let value = block.row.value;
            if !block.stands() {
                moments.push((value.first, false, number));
                moments.push((value.last, true, number));
            }
        }
        moments.sort_unstable();
        let mut living: BTreeMap<u64, usize> = BTreeMap::new();
        for (number, block) in self.blocks.iter().enumerate().filter(|(_, block)| block.stands()) {
            living.insert(block.address, number);
        }
        for (moment, is_release, number) in moments {
            let Some(block) = self.blocks.get(number) else { continue };
            if is_release {
                if living.get(&block.address) == Some(&number) {
                    living.remove(&block.address);
                    self.events.push((moment, Event::Free(number)));
                }
                continue;
            }
            let end_of = |number: &usize| self.blocks.get(*number).map_or(0, Block::end);
            while let Some((&address, &other)) = living.range(..block.end()).next_back() {
                if end_of(&other) <= block.address {
                    break;
                }
                living.remove(&address);
                self.events.push((moment, Event::Free(other)));
            }
            living.insert(block.address, number);
            self.events.push((moment, Event::Alloc(number)));
        }
    }

    /// The blocks that are there at the end, by address.
    pub(super) fn left(&self) -> Vec<&Block<'a>> {
        let mut alive: Vec<bool> = self.blocks.iter().map(Block::stands).collect();
        for (_, event) in &self.events {
            let (Event::Alloc(number) | Event::Free(number)) = *event;
            if let Some(alive) = alive.get_mut(number) {
                *alive = matches!(event, Event::Alloc(_));
            }
        }
        let mut left: Vec<_> =
            self.blocks.iter().zip(alive).filter(|(_, alive)| *alive).map(|(block, _)| block).collect();
        left.sort_by_key(|block| block.address);
        left
    }
}
