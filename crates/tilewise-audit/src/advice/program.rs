//! A program as rules see it: its arrays, those live at the peak, and its size after changes.

use super::{finding::Library, recommendation::AdvisedArray};
use crate::{
    copies::{CopyClass, CopyRow, InterfaceArray},
    program::{PlannedProgram, has_gradient, is_name, name, own_loops, root, traced},
};
use foldhash::{HashMap, HashSet};
use std::{cell::RefCell, collections::BTreeMap};
use tilewise::{ElementType, Layout, Shape, tpu};
use tilewise_hlo::{
    InputOutputAlias, Instruction, Module, Opcode,
    dataflow::{Dataflow, OpId, Position},
};
use tilewise_memory::{Machine, MemoryPlan, Planner, Role};

/// An array in the device's default memory.
#[derive(Clone, Debug)]
pub(crate) struct LiveArray<'m> {
    pub(crate) instruction: Instruction<'m>,
    pub(crate) op: OpId,
    pub(crate) position: Position,
    pub(crate) shape: Shape,
    pub(crate) bounds: Vec<u64>,
    pub(crate) bytes: u64,
    pub(crate) role: Role,
    /// Its number among the plan's buffers.
    pub(crate) buffer: usize,
    /// Whether its buffer holds any array at the peak.
    pub(crate) is_at_peak: bool,
    /// Times at which it is made and last read, as of [`MemoryPlan::order`].
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl LiveArray<'_> {
    pub(crate) fn element_type(&self) -> ElementType {
        self.shape.element_type().unwrap_or(ElementType::Pred)
    }

    /// Logical dimensions, the fastest-varying first.
    pub(crate) fn minor_to_major(&self) -> &[usize] {
        self.shape.layout().map_or(&[], |layout| layout.minor_to_major())
    }

    pub(crate) fn elements(&self) -> u64 {
        self.bounds.iter().fold(1, |product, bound| product.saturating_mul(*bound))
    }

    pub(crate) fn logical_bytes(&self) -> u64 {
        self.shape.as_array().and_then(|array| array.sizes().ok()).map_or(self.bytes, |sizes| sizes.logical_bytes)
    }

    pub(crate) fn is_parameter(&self) -> bool {
        self.instruction.opcode() == Opcode::Parameter && self.instruction.computation().is_entry()
    }
}

/// Arguments, by number, in whose memory results lie, by the results' indices.
pub(crate) type Donated = BTreeMap<Vec<usize>, usize>;

/// New buffer sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct BufferChanges {
    /// Upper bounds in bytes, by the buffer's number.
    pub(crate) at_most: BTreeMap<usize, u64>,
    /// Exact sizes in bytes, less or more than now, by the buffer's number.
    pub(crate) exactly: BTreeMap<usize, u64>,
    /// The arguments that are then donated.
    pub(crate) donated: Donated,
}

impl BufferChanges {
    /// New bytes of a value in this buffer; `None` if they stay.
    fn bytes(&self, buffer: usize, bytes: u64) -> Option<u64> {
        let at_most = || self.at_most.get(&buffer).map(|most| bytes.min(*most));
        self.exactly.get(&buffer).copied().or_else(at_most)
    }
}

pub(crate) struct ProgramModel<'m> {
    pub(crate) module: &'m Module,
    /// The generation whose default layouts apply; v5e for machines other than TPUs.
    pub(crate) generation: tpu::Generation,
    pub(crate) machine: Machine,
    /// Devices that run the program together.
    pub(crate) partitions: u64,
    pub(crate) flow: &'m Dataflow,
    /// Arrays that are large enough to matter, in the order of definition.
    pub(crate) arrays: Vec<LiveArray<'m>>,
    pub(crate) total_bytes: u64,
    pub(crate) temporary_bytes: u64,
    /// Memory that it should fit into, in bytes; `None` if unknown.
    limit: Option<u64>,
    /// By instruction, the number of its buffer, or of the first of several.
    pub(crate) buffers: HashMap<usize, usize>,
    /// The loops of the source, by their indices.
    pub(crate) own_loops: HashSet<usize>,
    /// Whether anything is copied into another layout.
    pub(crate) has_relayouts: bool,
    /// Whether the program takes a gradient.
    pub(crate) has_gradient: bool,
    /// The library that jitted the function.
    pub(crate) library: Library,
    pub(crate) plan: &'m MemoryPlan,
    planner: &'m Planner,
    /// The buffers of arguments' real and imaginary parts, or lower and upper words, each with its argument's.
    halves: Vec<[usize; 2]>,
    /// The planner of the program with the donated arguments that were asked for last.
    donating: RefCell<Option<(Donated, Planner)>>,
    /// The program's totals with changes that were priced before: each is a plan of its own.
    totals: RefCell<HashMap<BufferChanges, u64>>,
}

impl<'m> ProgramModel<'m> {
    /// The model of a program; `None` for one without a plan.
    pub(crate) fn new(planned: &'m PlannedProgram, copies: &[CopyRow]) -> Option<Self> {
        /// Arrays up to this part of the program's bytes don't matter.
        const NEGLIGIBLE: u64 = 1000;

        let (plan, module) = (planned.plan.as_ref().ok()?, &planned.module);
        let hbm = plan.space(0)?;
        let total_bytes = plan.total_bytes();
        let at_peak: HashSet<usize> =
            hbm.peak.iter().flat_map(|peak| &peak.live).map(|live| hbm.values[live.value].buffer).collect();
        let mut arrays = Vec::new();
        for value in hbm.values.iter().filter(|value| value.bytes > total_bytes / NEGLIGIBLE) {
            let Some(instruction) = module.instruction(value.instruction) else { continue };
            let (Some(op), Some(shape)) = (planned.flow.op(&instruction), value.shape()) else { continue };
            let Some(array) = shape.as_array() else { continue };
            let bounds: Option<Vec<u64>> = array.bounds();
            let Some(bounds) = bounds else { continue };
            arrays.push(LiveArray {
                instruction,
                op,
                position: value.position,
                bounds,
                bytes: value.bytes,
                role: value.role,
                buffer: value.buffer,
                is_at_peak: at_peak.contains(&value.buffer),
                first: value.first,
                last: value.last,
                shape,
            });
        }
        let mut buffers = HashMap::default();
        for value in plan.spaces.iter().flat_map(|space| &space.values) {
            buffers.entry(value.instruction).or_insert(value.buffer);
        }
        let halves = halves_of_arguments(module);
        let halves = halves.filter_map(|[half, of]| Some([*buffers.get(&half)?, *buffers.get(&of)?])).collect();
        Some(Self {
            module,
            generation: planned.machine.generation().unwrap_or(tpu::Generation::V5e),
            machine: planned.machine,
            partitions: planned.partitions,
            flow: &planned.flow,
            arrays,
            total_bytes,
            temporary_bytes: plan.temporary_bytes(),
            limit: planned.sure_bytes(),
            buffers,
            own_loops: own_loops(module),
            has_relayouts: copies.iter().any(|copy| copy.class == CopyClass::Relayout),
            has_gradient: has_gradient(module),
            library: library(module),
            plan,
            planner: planned.planner.as_ref()?,
            halves,
            totals: RefCell::default(),
            donating: RefCell::default(),
        })
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &LiveArray<'m>> {
        self.arrays.iter().filter(|array| array.role == Role::Argument && array.is_parameter())
    }

    pub(crate) fn results(&self) -> impl Iterator<Item = &LiveArray<'m>> {
        self.arrays.iter().filter(|array| array.role == Role::Output)
    }

    pub(crate) fn temporaries(&self) -> impl Iterator<Item = &LiveArray<'m>> {
        self.arrays.iter().filter(|array| array.role == Role::Temporary)
    }

    pub(crate) fn peak_temporaries(&self) -> impl Iterator<Item = &LiveArray<'m>> {
        let mut seen = HashSet::default();
        self.temporaries().filter(move |array| array.is_at_peak && seen.insert(array.buffer))
    }

    /// Bytes of an array in the machine's default layout, which has tiles on TPUs alone.
    pub(crate) fn default_bytes(&self, element_type: ElementType, bounds: &[u64]) -> Option<u64> {
        let shape = match self.machine.generation() {
            Some(generation) => tpu::default_layout(element_type, bounds, generation).ok()?,
            None => {
                let shape = Shape::array(element_type, bounds.iter().copied()).ok()?;
                shape.with_layout(Layout::row_major(bounds.len())).ok()?
            }
        };
        Some(shape.as_array()?.sizes().ok()?.physical_bytes)
    }

    /// The plan's buffer that an instruction's array lies in.
    pub(crate) fn buffer(&self, instruction: usize) -> Option<usize> {
        self.buffers.get(&instruction).copied()
    }

    /// Whether the program is known not to fit.
    pub(crate) fn is_too_large(&self) -> bool {
        !self.fits_without(0)
    }

    /// Whether arrays are each device's own: under `shard_map`.
    pub(crate) fn is_mapped(&self) -> bool {
        self.module.source().contains("/shard_map/")
    }

    /// Whether the memory's limit is known.
    pub(crate) fn has_limit(&self) -> bool {
        self.limit.is_some()
    }

    /// Whether the program isn't known to fit.
    pub(crate) fn may_be_too_large(&self) -> bool {
        !self.has_limit() || self.is_too_large()
    }

    /// Whether the program fits once `bytes` are freed, or no limit is known.
    pub(crate) fn fits_without(&self, bytes: u64) -> bool {
        self.limit.is_none_or(|limit| self.total_bytes.saturating_sub(bytes) <= limit)
    }

    /// The program's total with all these changes.
    pub(crate) fn total_with<'a>(&self, changes: impl IntoIterator<Item = &'a BufferChanges>) -> u64 {
        let all = self.possible(together(changes));
        if all == BufferChanges::default() {
            return self.total_bytes;
        }
        if let Some(total) = self.totals.borrow().get(&all) {
            return *total;
        }
        let total =
            |planner: &Planner| planner.total_resized(self.plan.packing, |buffer, bytes| all.bytes(buffer, bytes));
        let total = if all.donated.is_empty() { total(self.planner).ok() } else { self.donating(&all.donated, total) };
        let total = total.unwrap_or(self.total_bytes);
        self.totals.borrow_mut().insert(all, total);
        total
    }

    /// The total by a planner of the program with these donated arguments, which most changes are priced with.
    fn donating(
        &self,
        donated: &Donated,
        total: impl FnOnce(&Planner) -> Result<u64, tilewise_memory::Error>,
    ) -> Option<u64> {
        let mut kept = self.donating.borrow_mut();
        if kept.as_ref().is_none_or(|(of, _)| of != donated) {
            let aliases = donated.iter().map(|(index, number)| InputOutputAlias::of_parameter(index.clone(), *number));
            let planner = self.planner.donating(&aliases.collect::<Vec<_>>()).ok()?;
            *kept = Some((donated.clone(), planner));
        }
        total(&kept.as_ref()?.1).ok()
    }

    /// Bytes that all these changes free.
    pub(crate) fn freed_with<'a>(&self, changes: impl IntoIterator<Item = &'a BufferChanges>) -> u64 {
        self.total_bytes.saturating_sub(self.total_with(changes))
    }

    /// Changes without those of arguments' halves: the compiler takes an argument apart as a whole, before what reads it in parts.
    fn possible(&self, mut all: BufferChanges) -> BufferChanges {
        for [half, of] in &self.halves {
            if !all.at_most.contains_key(of) {
                all.at_most.remove(half);
            }
        }
        all
    }

    /// The program's plan with these buffer sizes.
    pub(crate) fn plan_with(&self, all: BufferChanges) -> Option<MemoryPlan> {
        let all = self.possible(all);
        self.planner.plan_resized(self.plan.packing, |buffer, bytes| all.bytes(buffer, bytes)).ok()
    }

    /// An array as a recommendation shows it.
    pub(crate) fn advised(&self, array: &LiveArray<'_>) -> AdvisedArray {
        let (op_name, source) = traced(self.flow, &array.instruction);
        AdvisedArray {
            shape_text: array.shape.to_string(),
            instruction: Some(array.instruction.name().to_owned()),
            requested: None,
            op_name,
            source,
        }
    }

    /// The array of an argument or a result.
    pub(crate) fn live_array(&self, array: &InterfaceArray<'m>) -> Option<LiveArray<'m>> {
        let bounds = array.from.bounds()?;
        Some(LiveArray {
            instruction: array.instruction,
            op: array.op,
            position: self.flow[array.op].position,
            shape: array.from.clone(),
            bounds,
            bytes: array.bytes(),
            role: array.role,
            buffer: self.buffer(array.instruction.index())?,
            is_at_peak: true,
            first: 0,
            last: self.plan.order().len(),
        })
    }
}

impl ProgramModel<'_> {
    /// The Python function that was compiled: `f` where the module's name has none that code can call.
    pub(crate) fn function(&self) -> &str {
        let name = self.module.name();
        // JAX calls a lambda's program `jit__lambda`.
        let is_own = |name: &&str| is_name(name) && !name.starts_with("_lambda");
        name.strip_prefix("jit_").filter(is_own).unwrap_or("f")
    }

    /// The entry's parameters, by number.
    pub(crate) fn parameters(&self) -> Vec<Instruction<'_>> {
        let Some(entry) = self.module.entry() else { return Vec::new() };
        let mut parameters: Vec<Instruction<'_>> =
            entry.instructions().filter(|at| at.opcode() == Opcode::Parameter).collect();
        parameters.sort_by_cached_key(Instruction::parameter_number);
        parameters
    }

    /// Shapes of the results, without layouts, if the program takes a gradient: weights and states. Otherwise empty.
    pub(crate) fn states(&self) -> HashSet<String> {
        let result = self.module.entry().and_then(|entry| entry.root()?.shape().ok());
        let result = result.filter(|_| self.has_gradient);
        result.iter().flat_map(Shape::leaves).map(|(_, leaf)| leaf.without_layout().to_string()).collect()
    }

    /// Names of entry parameters: the Python function's parameter if all of its arrays are named, or else single
    /// arrays.
    pub(crate) fn in_whole(&self, named: &[String]) -> Vec<String> {
        let count = |names: &[String], of: &str| names.iter().filter(|name| root(name) == of).count();
        let all: Vec<String> = self.parameters().iter().map(name).collect();
        let mut found = Vec::new();
        for name in named {
            let whole = root(name);
            let name = if count(named, whole) == count(&all, whole) { whole } else { name };
            if !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
        }
        found
    }
}

/// The library that jitted the function: Equinox's models have leaves that aren't arrays, which `jax.jit` refuses, and
/// it would lose what a function of NNX writes into its arguments.
fn library(module: &Module) -> Library {
    let text = module.source();
    let libraries = [("equinox/_jit.py", Library::Equinox), ("flax/nnx/transforms/compilation.py", Library::Nnx)];
    libraries.into_iter().find(|(sign, _)| text.contains(sign)).map_or(Library::Jax, |(_, library)| library)
}

/// The instructions that make the real and imaginary parts of complex arguments, or the words of 64-bit ones, each with its
/// argument, by their indices.
fn halves_of_arguments(module: &Module) -> impl Iterator<Item = [usize; 2]> {
    let of_entry = module.entry().into_iter().flat_map(|entry| entry.instructions());
    of_entry.filter_map(|at| {
        let is_half = at.opcode() == Opcode::CustomCall && at.custom_call_target()?.starts_with("X64Split");
        let of = at.operands().next()?.instruction().filter(|of| is_half && of.opcode() == Opcode::Parameter)?;
        Some([at.index(), of.index()])
    })
}

/// Merges changes; the smaller of two upper bounds counts.
fn together<'a>(changes: impl IntoIterator<Item = &'a BufferChanges>) -> BufferChanges {
    let mut all = BufferChanges::default();
    for change in changes {
        for (buffer, bytes) in &change.at_most {
            let least = all.at_most.entry(*buffer).or_insert(*bytes);
            *least = (*least).min(*bytes);
        }
        all.exactly.extend(&change.exactly);
        all.donated.extend(change.donated.clone());
    }
    all
}
