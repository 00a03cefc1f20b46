//! The contents of fusions and of asynchronous operations.

use tilewise_hlo::{Computation, Instruction, Opcode};

use crate::{
    calls::Calls,
    flops::flops,
    kind::Opcodes,
    kind::is_collective,
    traffic::{Arrays, Part, Traffic},
};

/// The contents of an instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    pub(crate) opcodes: Opcodes,
    /// Operations of matrix multiplications and convolutions.
    pub(crate) flops: u64,
    /// The index of a collective in it.
    pub(crate) collective: Option<usize>,
    /// The opcode of the root.
    pub(crate) root: Option<Opcode>,
    /// The part of each parameter that is read, unless all of it is.
    reads: Vec<Option<Part>>,
    /// The part of each element of the result that is written, if the rest stays as it is.
    writes: Vec<Option<Part>>,
}

impl Contents {
    /// The part of a parameter that is read, unless all of it is.
    pub(crate) fn read(&self, parameter: usize) -> Option<Part> {
        self.reads.get(parameter).copied().flatten()
    }

    /// The part of an element of the result that is written, unless all of it is.
    pub(crate) fn written(&self, element: usize) -> Option<Part> {
        self.writes.get(element).copied().flatten()
    }

    /// The contents of a computation; `known` has those of the computations it calls, by index.
    pub(crate) fn of<'m>(
        computation: &Computation<'m>,
        calls: &Calls,
        known: &[Option<Self>],
        arrays: &mut Arrays<'m>,
    ) -> Self {
        let mut contents = Self::default();
        let inner = |instruction: &Instruction<'_>| -> Vec<&Self> {
            let called = calls.of_instruction(instruction).iter();
            called.filter_map(|(_, callee)| known.get(*callee)?.as_ref()).collect()
        };
        for instruction in computation.instructions() {
            let opcode = instruction.opcode();
            // A fusion within a fusion counts as its contents.
            if opcode != Opcode::Fusion {
                contents.opcodes = contents.opcodes.with(Opcodes::of(opcode));
            }
            if is_collective(opcode) {
                contents.collective.get_or_insert(instruction.index());
            }
            contents.flops = contents.flops.saturating_add(flops(&instruction).unwrap_or(0));
            if matches!(opcode, Opcode::Fusion | Opcode::Call | Opcode::CustomCall) {
                for called in inner(&instruction) {
                    contents.opcodes = contents.opcodes.with(called.opcodes);
                    contents.collective = contents.collective.or(called.collective);
                    contents.flops = contents.flops.saturating_add(called.flops);
                }
            }
        }
        contents.root = computation.root().map(|root| root.opcode());
        contents.reads = reads(computation, &inner, arrays);
        contents.writes = writes(computation, &inner, arrays);
        contents
    }
}

impl Traffic {
    /// The traffic of an instruction, with its fusion's contents, if it is one: operands and results in HBM; of
    /// operands that are only sliced or gathered the slice, of results that are updated in place the update.
    pub(crate) fn of<'m>(instruction: &Instruction<'m>, fused: Option<&Contents>, arrays: &mut Arrays<'m>) -> Self {
        let mut traffic = Self::default();
        let opcode = instruction.opcode();
        let update = || instruction.operands().nth(1).and_then(|operand| operand.instruction());
        for (number, operand) in instruction.operands().enumerate() {
            let Some(operand) = operand.instruction() else { continue };
            let part = match opcode {
                Opcode::Fusion => fused.and_then(|fused| fused.read(number)),
                Opcode::Slice | Opcode::DynamicSlice | Opcode::Gather if number == 0 => Some(arrays.part(instruction)),
                Opcode::DynamicUpdateSlice if number == 0 => Some(Part::default()),
                _ => None,
            };
            match part {
                Some(_) => traffic.add(&arrays.result(&operand), |_| part),
                None => traffic.plus(&arrays.whole(&operand)),
            }
        }
        let result = arrays.result(instruction);
        let updated = update().filter(|_| opcode == Opcode::DynamicUpdateSlice).map(|update| arrays.part(&update));
        traffic.add(&result, |element| match opcode {
            Opcode::Fusion => fused.and_then(|fused| fused.written(element)),
            _ => updated,
        });
        traffic
    }
}

/// The used part of a value.
#[derive(Clone, Copy)]
enum Used {
    Whole,
    Part(Part),
}

/// The part of each parameter that is read: users come after the values they use, so one pass from the end finds it.
fn reads<'m, 'c>(
    computation: &Computation<'m>,
    inner: &impl Fn(&Instruction<'_>) -> Vec<&'c Contents>,
    arrays: &mut Arrays<'m>,
) -> Vec<Option<Part>> {
    let Some(first) = computation.instructions().next().map(|first| first.index()) else { return Vec::new() };
    let nothing = Used::Part(Part::default());
    let mut used = vec![nothing; computation.instructions().len()];
    let root = computation.root();
    let mut reads = Vec::new();
    for instruction in computation.instructions().rev() {
        let own = used[instruction.index() - first];
        let is_root = root == Some(instruction);
        if let Some(number) = instruction.parameter_number().filter(|number| *number < used.len()) {
            if reads.len() <= number {
                reads.resize(number + 1, None);
            }
            reads[number] = match own {
                Used::Part(part) if !is_root => Some(part),
                _ => None,
            };
        }
        for (number, operand) in instruction.operands().enumerate() {
            let Some(operand) = operand.instruction() else { continue };
            let Some(at) = operand.index().checked_sub(first) else { continue };
            let here = match instruction.opcode() {
                Opcode::Bitcast | Opcode::Copy | Opcode::Convert | Opcode::Reshape if !is_root => own,
                Opcode::Slice | Opcode::DynamicSlice | Opcode::Gather if number == 0 => {
                    Used::Part(arrays.part(&instruction))
                }
                Opcode::DynamicUpdateSlice if number == 0 => nothing,
                Opcode::Fusion => match inner(&instruction).first().and_then(|fused| fused.read(number)) {
                    Some(part) => Used::Part(part),
                    None => Used::Whole,
                },
                _ => Used::Whole,
            };
            let Some(all) = used.get_mut(at) else { continue };
            *all = match (*all, here) {
                (Used::Part(all), Used::Part(here)) => Used::Part(all.plus(here)),
                _ => Used::Whole,
            };
        }
    }
    reads
}

/// The part of each element of the result that is written.
fn writes<'m, 'c>(
    computation: &Computation<'m>,
    inner: &impl Fn(&Instruction<'_>) -> Vec<&'c Contents>,
    arrays: &mut Arrays<'m>,
) -> Vec<Option<Part>> {
    let Some(first) = computation.instructions().next().map(|first| first.index()) else { return Vec::new() };
    let mut written: Vec<Option<Part>> = Vec::with_capacity(computation.instructions().len());
    for instruction in computation.instructions() {
        let operand = |number: usize| instruction.operands().nth(number).and_then(|operand| operand.instruction());
        let part = match instruction.opcode() {
            Opcode::DynamicUpdateSlice => operand(1).map(|update| arrays.part(&update)),
            Opcode::Bitcast | Opcode::Copy | Opcode::Reshape => {
                let at = operand(0).and_then(|operand| operand.index().checked_sub(first));
                at.and_then(|at| written.get(at).copied().flatten())
            }
            Opcode::Fusion => inner(&instruction).first().and_then(|fused| fused.written(0)),
            _ => None,
        };
        written.push(part);
    }
    let at = |instruction: &Instruction<'_>| written.get(instruction.index().checked_sub(first)?).copied().flatten();
    match computation.root() {
        Some(root) if root.opcode() == Opcode::Tuple => {
            root.operands().map(|operand| operand.instruction().and_then(|operand| at(&operand))).collect()
        }
        Some(root) => vec![at(&root)],
        None => Vec::new(),
    }
}
