//! From a module to its plan.

use std::{collections::BTreeMap, sync::Arc};

use tilewise_hlo::{
    Computation, Module, Opcode,
    dataflow::{Dataflow, Position, Table, Value, ValueId},
};

use crate::{
    AssignedValue, Error, LiveBuffer, MemoryPlan, Packing, Peak, PlanOptions, SpacePlan,
    assign::Assignment,
    buffers::Buffers,
    heap::{Heap, alignment},
    size,
    storage::{Storages, storages},
    timeline::Timeline,
};

/// Host memory: charged to the host.
const HOST: u8 = 5;

/// How close to the limit the compiler begins to try [`Packing::BestFit`]: 2.5 GiB. Observed with
/// `xla_tpu_max_hbm_size_mib`.
const NEAR_LIMIT: u64 = 5 << 29;

/// Plans a module, also as it would be if some of its buffers took less.
///
/// What a change of an array's type or layout brings is seen only in the whole plan: memory falls by as much as the peak
/// does, which may lie elsewhere then.
///
/// ```
/// use tilewise::tpu::Generation;
/// use tilewise_hlo::Module;
/// use tilewise_memory::{PlanOptions, Planner};
///
/// let module = Module::parse("\
/// HloModule m, is_scheduled=true
///
/// ENTRY %main (x: f32[1024,1024]) -> f32[1024,1024] {
///   %x = f32[1024,1024]{1,0:T(8,128)} parameter(0)
///   %a = f32[1024,1024]{1,0:T(8,128)} negate(%x)
///   %b = f32[1024,1024]{1,0:T(8,128)} dot(%a, %a)
///   ROOT %c = f32[1024,1024]{1,0:T(8,128)} dot(%b, %a)
/// }
/// ")?;
/// let planner = Planner::new(&module, PlanOptions::new(Generation::V5e))?;
/// let plan = planner.plan()?;
/// let a = plan.space(0).unwrap().values.iter().find(|value| value.instruction == 1).unwrap();
/// let halved = planner.plan_resized(plan.packing, |buffer, _| (buffer == a.buffer).then_some(a.bytes / 2))?;
/// assert_eq!((plan.temporary_bytes(), halved.temporary_bytes()), (8 << 20, 6 << 20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Planner {
    options: PlanOptions,
    flow: Dataflow,
    storages: Storages,
    timeline: Arc<Timeline>,
    buffers: Arc<Buffers>,
    /// Bytes of the constants that reducers and the like have.
    function_constants: u64,
}

/// Where the temporaries of a memory space lie.
struct Layout {
    heap: Heap,
    /// From the start of the temporaries' memory.
    offsets: Table<Value, Option<u64>>,
    /// Of each allocation outside the heap, a value of it and its bytes.
    separate: Vec<(ValueId, u64)>,
    layout_bytes: u64,
    temporary_bytes: u64,
}

impl Layout {
    /// Whether any of it needs memory: where the compiler reports no temporaries, all of them lie in registers.
    fn takes_memory(&self) -> bool {
        self.temporary_bytes > 0
    }

    /// The most bytes that are live at one time.
    fn peak_live_bytes(&self) -> Option<u64> {
        if !self.takes_memory() {
            return Some(0);
        }
        self.separate.iter().try_fold(self.heap.peak_bytes, |sum, (_, bytes)| sum.checked_add(*bytes))
    }
}

impl Planner {
    /// Reads a scheduled module.
    ///
    /// # Errors
    ///
    /// [`Error::Unscheduled`] if the text isn't in the order of execution; the others are about texts that no compiler
    /// printed, or truncated ones.
    pub fn new(module: &Module, options: PlanOptions) -> Result<Self, Error> {
        if module.is_scheduled() { Self::of_dataflow(Dataflow::new(module), options) } else { Err(Error::Unscheduled) }
    }

    /// The same of a module whose values are followed already.
    ///
    /// # Errors
    ///
    /// As of [`new`](Self::new).
    pub fn of_dataflow(flow: Dataflow, options: PlanOptions) -> Result<Self, Error> {
        if !flow.module().is_scheduled() {
            return Err(Error::Unscheduled);
        }
        if let Some(gap) = flow.gap() {
            return Err(gap.into());
        }
        let storages = storages(&flow, options.generation)?;
        let timeline = Timeline::new(&flow);
        let buffers = Buffers::new(&flow, &timeline)?;
        let function_constants = function_constants(flow.module())?;
        let (timeline, buffers) = (Arc::new(timeline), Arc::new(buffers));
        Ok(Self { options, flow, storages, timeline, buffers, function_constants })
    }

    /// The plan of the module as it is.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] if its bytes exceed 64 bits.
    pub fn plan(&self) -> Result<MemoryPlan, Error> {
        let plan = |packing| self.packed(packing).ok_or(Error::Overflow);
        let Some(limit) = self.options.hbm_limit else { return plan(self.options.packing) };
        let mut kept = plan(Packing::FastMerge)?;
        // A text doesn't say whether it is compiled for one core of a chip. Then it fits the core's part.
        let of_core = self.options.generation.core_hbm_bytes().filter(|of_core| *of_core < limit);
        let is_near = |limit: u64| kept.total_bytes() > limit.saturating_sub(NEAR_LIMIT);
        if is_near(limit) || of_core.is_some_and(is_near) {
            let mut other = plan(Packing::BestFit)?;
            if !is_near(limit) && of_core.is_some_and(|of_core| other.total_bytes() > of_core) {
                return Ok(kept);
            }
            let layout = |plan: &MemoryPlan| plan.space(0).map_or(0, |space| space.layout_bytes);
            if layout(&other) < layout(&kept) {
                std::mem::swap(&mut kept, &mut other);
            }
            kept.other_packing = Some((other.packing, other.temporary_bytes()));
        }
        Ok(kept)
    }

    /// The plan in this packing if buffers took other sizes: for the number of a [buffer](AssignedValue::buffer) and the
    /// bytes of one of its values, those it takes instead, or `None` for the same. What shares memory, and when it lives,
    /// stays.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] if the bytes exceed 64 bits.
    pub fn plan_resized(
        &self,
        packing: Packing,
        bytes: impl Fn(usize, u64) -> Option<u64>,
    ) -> Result<MemoryPlan, Error> {
        let mut resized = self.clone();
        for id in self.storages.ids().filter(|id| !self.flow.is_tuple(*id)) {
            let buffer = self.buffers.at(&self.flow, id);
            if let Some(bytes) = buffer.and_then(|buffer| bytes(buffer.index(), self.storages[id].bytes)) {
                resized.storages[id].bytes = bytes;
            }
        }
        resized.packed(packing).ok_or(Error::Overflow)
    }

    fn packed(&self, packing: Packing) -> Option<MemoryPlan> {
        let assignment = Assignment::new(&self.flow, &self.storages, &self.buffers, packing);
        let entry = &self.flow[self.flow.entry()?];
        let arguments = || entry.parameters.iter().flat_map(|op| self.flow.positions(*op));
        let results = || self.flow.positions(entry.root);
        let donated = || self.buffers.donated.iter().copied();
        let spaces = self.spaces(&assignment, packing)?;
        let constants = spaces.iter().find(|space| space.memory_space == 0).map_or(0, SpacePlan::constant_bytes);
        Some(MemoryPlan {
            constant_bytes: constants.checked_add(self.function_constants)?,
            argument_bytes: self.sum(arguments(), false)?,
            output_bytes: self.sum(results(), false)?,
            alias_bytes: self.sum(donated(), false)?,
            host_argument_bytes: self.sum(arguments(), true)?,
            host_output_bytes: self.sum(results(), true)?,
            host_alias_bytes: self.sum(donated(), true)?,
            spaces,
            packing,
            other_packing: None,
            order: self.timeline.order.iter().map(|op| self.flow.instruction_index(*op)).collect(),
        })
    }

    fn sum(&self, positions: impl Iterator<Item = Position>, is_host: bool) -> Option<u64> {
        let storages = positions.map(|position| self.storages[position]);
        let here = storages.filter(|storage| (storage.memory_space == HOST) == is_host);
        here.map(|storage| storage.bytes).try_fold(0, u64::checked_add)
    }

    fn spaces(&self, assignment: &Assignment, packing: Packing) -> Option<Vec<SpacePlan>> {
        let mut by_space: BTreeMap<u8, Vec<ValueId>> = BTreeMap::from([(0, Vec::new())]);
        for (value, &position) in self.flow.values().iter() {
            let storage = &self.storages[position];
            if self.buffers.of(value).is_some() && storage.bytes > 0 {
                by_space.entry(storage.memory_space).or_default().push(value);
            }
        }
        by_space.into_iter().map(|(space, values)| self.space(assignment, packing, space, values)).collect()
    }

    fn space(
        &self,
        assignment: &Assignment,
        packing: Packing,
        memory_space: u8,
        mut values: Vec<ValueId>,
    ) -> Option<SpacePlan> {
        values.sort_by_cached_key(|value| (self.buffers.ranges[*value].start, value.index(), 0));
        let layout = self.lay_out(assignment, packing, memory_space)?;
        let assigned: Vec<AssignedValue> =
            values.iter().filter_map(|value| self.assigned(assignment, &layout, *value)).collect();
        let mut resident: BTreeMap<usize, LiveBuffer> = BTreeMap::new();
        for (at, value) in assigned.iter().enumerate().filter(|(_, value)| value.role.is_resident()) {
            let buffer = resident.entry(value.buffer).or_insert(LiveBuffer { value: at, bytes: 0 });
            buffer.bytes = buffer.bytes.max(value.bytes);
        }
        let resident: Vec<LiveBuffer> = resident.into_values().collect();
        Some(SpacePlan {
            memory_space,
            resident_bytes: resident.iter().try_fold(0_u64, |sum, buffer| sum.checked_add(buffer.bytes))?,
            temporary_bytes: layout.temporary_bytes,
            layout_bytes: layout.layout_bytes,
            peak_temporary_live_bytes: layout.peak_live_bytes()?,
            peak: self.peak(&layout, &values, resident),
            values: assigned,
        })
    }

    fn assigned(&self, assignment: &Assignment, layout: &Layout, value: ValueId) -> Option<AssignedValue> {
        let position = self.flow.values()[value];
        let op = self.flow.op_at(position);
        let buffer = self.buffers.of(value)?;
        let range = self.buffers.ranges[value];
        Some(AssignedValue {
            instruction: self.flow.instruction_index(op),
            is_hidden: self.flow[op].is_hidden,
            role: assignment.roles[buffer],
            buffer: buffer.index(),
            offset: layout.offsets[value],
            bytes: self.storages[position].bytes,
            first: range.start,
            last: range.end.min(self.timeline.len().saturating_sub(1)),
            flow: self.flow.clone(),
            position,
        })
    }

    fn lay_out(&self, assignment: &Assignment, packing: Packing, memory_space: u8) -> Option<Layout> {
        let packed = assignment.packed.get(&memory_space).map_or(&[][..], Vec::as_slice);
        let mut heap = Heap::new(&self.flow, &self.storages, &self.buffers, packed)?;
        let (mut offsets, mut separate) = (Table::filled(self.flow.values().len(), None), Vec::new());
        let Some(alignment) = alignment(memory_space) else {
            // Where things lie there isn't known, nor how much room is between them.
            let layout_bytes = heap.peak_bytes;
            return Some(Layout { heap, offsets, separate, layout_bytes, temporary_bytes: layout_bytes });
        };
        heap.pack(packing, alignment)?;
        for (_, group) in heap.groups.iter() {
            for member in &group.members {
                offsets[member.value] = Some(group.offset);
            }
        }
        if memory_space != 0 {
            let layout_bytes = heap.height;
            return Some(Layout { heap, offsets, separate, layout_bytes, temporary_bytes: layout_bytes });
        }
        let mut layout_bytes = heap.height;
        for (bytes, buffers) in &assignment.separate {
            let offset = layout_bytes.checked_next_multiple_of(alignment)?;
            let values = || buffers.iter().flat_map(|buffer| &self.buffers.members[*buffer]);
            values().for_each(|value| offsets[*value] = Some(offset));
            separate.extend(values().next().map(|value| (*value, *bytes)));
            layout_bytes = offset.checked_add(*bytes)?;
        }
        let is_used = assignment.has_work_area || self.needs_memory(&heap);
        let temporary_bytes = if is_used { layout_bytes.checked_next_multiple_of(alignment)? } else { 0 };
        Some(Layout { heap, offsets, separate, layout_bytes, temporary_bytes })
    }

    /// Whether anything in the heap isn't a scalar that lies in a register. The compiler reports no temporaries where
    /// nothing does, although it has laid them out.
    fn needs_memory(&self, heap: &Heap) -> bool {
        let mut members = heap.groups.iter().flat_map(|(_, group)| &group.members);
        members.any(|member| {
            let position = self.flow.values()[member.value];
            let opcode = self.flow[self.flow.op_at(position)].opcode;
            !(self.storages[position].fits_register && makes_scalars_in_registers(opcode))
        })
    }

    /// What is live for the whole run, and what else is alive when the heap takes the most.
    fn peak(&self, layout: &Layout, values: &[ValueId], resident: Vec<LiveBuffer>) -> Option<Peak> {
        let order = |value: &ValueId| (self.buffers.ranges[*value].start, value.index(), 0);
        let buffer = |(value, bytes): (ValueId, u64)| {
            let value = values.binary_search_by_key(&order(&value), order).ok()?;
            Some(LiveBuffer { value, bytes })
        };
        let event = layout.heap.peak_event.filter(|_| layout.takes_memory());
        let separate = layout.separate.iter().filter(|_| layout.takes_memory());
        let alive = event.into_iter().flat_map(|event| layout.heap.alive_at(event));
        let alive = alive.map(|(group, member)| (member.value, group.bytes)).chain(separate.copied());
        let live: Vec<LiveBuffer> = resident.into_iter().chain(alive.filter_map(buffer)).collect();
        let value = event.and_then(|event| layout.heap.value_at(event));
        let op = match value {
            Some(value) => self.flow.op_at(self.flow.values()[value]),
            // Without a heap nothing rises or falls: any time will do.
            None => *self.timeline.order.last()?,
        };
        let start = |value| Some(self.buffers.ranges[value].start);
        let logical_time = value.map_or_else(|| self.timeline.logical_time(op), start)?;
        let op = self.timeline.order.get(logical_time).map_or(op, |op| *op);
        Some(Peak { logical_time, instruction: self.flow.instruction_index(op), live })
    }
}

/// Bytes of the constants in HBM that the functions of a module have, each an allocation of its own.
fn function_constants(module: &Module) -> Result<u64, Error> {
    let functions = module.computations().filter(Computation::is_function);
    let mut constants =
        functions.flat_map(|function| function.instructions()).filter(|i| i.opcode() == Opcode::Constant);
    constants.try_fold(0_u64, |sum, constant| {
        let shape = constant.shape().map_err(|_| Error::InvalidShape(constant.name().to_owned()))?;
        let leaves = shape.leaves().filter(|(_, leaf)| leaf.as_array().is_some_and(|array| array.memory_space() == 0));
        leaves
            .map(|(_, leaf)| size::leaf(&leaf))
            .try_fold(sum, |sum, bytes| sum.checked_add(bytes?).ok_or(Error::Overflow))
    })
}

/// Whether an array of one element that this makes lies in a register rather than in memory. Seen alone in programs that
/// report no temporaries: copy, abs, add, subtract, multiply, compare, select, and, xor, convert, log, tanh, parameter,
/// while, conditional; the others are inferred.
fn makes_scalars_in_registers(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Copy
            | Opcode::Parameter
            | Opcode::While
            | Opcode::Conditional
            | Opcode::Add
            | Opcode::Subtract
            | Opcode::Multiply
            | Opcode::Compare
            | Opcode::Select
            | Opcode::And
            | Opcode::Or
            | Opcode::Not
            | Opcode::Xor
            | Opcode::Minimum
            | Opcode::Maximum
            | Opcode::Clamp
            | Opcode::Convert
            | Opcode::Negate
            | Opcode::Abs
            | Opcode::Divide
            | Opcode::Exponential
            | Opcode::IsFinite
            | Opcode::Log
            | Opcode::Power
            | Opcode::Remainder
            | Opcode::Rsqrt
            | Opcode::Sign
            | Opcode::Sqrt
            | Opcode::Tanh
            | Opcode::ShiftLeft
            | Opcode::ShiftRightLogical
            | Opcode::ShiftRightArithmetic
    )
}
