//! One compiler for each machine.

mod cpu;
mod fusion;
mod gpu;
mod tpu;

use std::sync::Arc;

use tilewise_hlo::dataflow::Dataflow;

use crate::{
    Machine, Packing,
    assign::{Assigner, Assignment, Interface, Part},
    buffers::Buffers,
    heap::Heap,
    rules::Rules,
    storage::Storages,
};

/// A machine's compiler, for this program.
pub(crate) fn of(machine: Machine, flow: &Dataflow) -> Arc<dyn Compiler> {
    match machine {
        Machine::Tpu(generation) => Arc::new(tpu::Tpu { generation }),
        Machine::Gpu(_) => Arc::new(gpu::Gpu::new(flow)),
        Machine::Cpu => Arc::new(cpu::Cpu::new(flow)),
    }
}

/// How a compiler lays out memory, by its rules; the default methods are XLA's own, too.
pub(crate) trait Compiler: Rules {
    /// Gives buffers allocations of their own, or leaves them to the heaps.
    fn assign(&self, assigner: &mut Assigner<'_>, _: Packing) {
        assigner.assign_by_size();
    }

    /// The temporaries in memory order: those left after XLA's partition of all allocations by swapping
    /// (`std::partition` in `BufferAssignment::CombineTempAllocations`). The `locals` are allocations of functions,
    /// which take no memory here, but move others.
    fn temporaries(&self, assignment: &Assignment, locals: usize) -> Vec<Part> {
        let allocations = assignment.allocations.iter().enumerate();
        let separate = allocations.map(|(at, allocation)| allocation.is_temporary.then_some(Part::Allocation(at)));
        let heaps = assignment.packed.keys().map(|space| Some(Part::Heap(*space)));
        let mut list: Vec<Option<Part>> = separate.chain(heaps).chain((0..locals).map(|_| None)).collect();
        let (mut front, mut back) = (0, list.len());
        loop {
            while front < back && list[front].is_none() {
                front += 1;
            }
            back = back.saturating_sub(1);
            while front < back && list[back].is_some() {
                back -= 1;
            }
            if front >= back {
                break;
            }
            list.swap(front, back);
            front += 1;
        }
        list.drain(front..).flatten().collect()
    }

    /// Bytes of a memory space's temporaries as the compiler reports them; `layout_bytes` is their extent.
    fn reported_bytes(
        &self,
        _flow: &Dataflow,
        _storages: &Storages,
        _assignment: &Assignment,
        _heap: &Heap,
        _memory_space: u8,
        layout_bytes: u64,
    ) -> Option<u64> {
        Some(layout_bytes)
    }

    /// Bytes of arguments and results: allocations, each counted once.
    fn interface(&self, _: &Dataflow, _: &Storages, _: &Buffers, assignment: &Assignment) -> Option<Interface> {
        Interface::of_allocations(&assignment.allocations)
    }
}
