//! From a module to its plan.

use std::{collections::BTreeMap, sync::Arc};

use tilewise::{Shape, ShapeKind};
use tilewise_hlo::{
    Computation, InputOutputAlias, Module, Opcode,
    dataflow::{Dataflow, Table, Value, ValueId},
};

use crate::{
    AssignedValue, Error, ErrorKind, LiveBuffer, MemoryPlan, Packing, Peak, PlanOptions, Role, SpacePlan,
    assign::{Allocation, Assignment, Interface, Part},
    buffers::{BufferId, Buffers},
    compiler::{self, Compiler},
    heap::Heap,
    plan::total_bytes,
    rules::Rules,
    size::{self, storages},
    storage::Storages,
    timeline::Timeline,
};

/// Plans a module, optionally with other sizes for some of its buffers.
///
/// The saving of a change of type or layout shows only in the whole plan: memory falls with the peak, which may then
/// lie elsewhere.
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
    compiler: Arc<dyn Compiler>,
    flow: Dataflow,
    storages: Storages,
    timeline: Arc<Timeline>,
    buffers: Arc<Buffers>,
    /// The buffers by whose numbers callers know values: without arguments that are donated beside the text's.
    numbered: Arc<Buffers>,
    /// Constants and values of reducers and the like.
    functions: Functions,
}

/// The layout of the temporaries of a memory space.
struct Layout {
    heap: Heap,
    /// Offsets from the start of the temporaries' memory.
    offsets: Table<Value, Option<u64>>,
    /// Each allocation outside the heap: one of its values, and its bytes.
    separate: Vec<(ValueId, u64)>,
    /// Whether offsets are known.
    has_offsets: bool,
    layout_bytes: u64,
    temporary_bytes: u64,
}

impl Layout {
    /// Whether any temporary needs memory: if the compiler reports none, all of them lie in registers.
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

impl MemoryPlan {
    /// Plans the memory of a scheduled module.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unscheduled`] if the text isn't in the order of execution; the others are about texts that no compiler
    /// printed, or truncated ones.
    pub fn new(module: &Module, options: &PlanOptions) -> Result<Self, Error> {
        Planner::new(module, *options)?.plan()
    }
}

impl Planner {
    /// Reads a scheduled module.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unscheduled`] if the text isn't in the order of execution; the others are about texts that no compiler
    /// printed, or truncated ones.
    pub fn new(module: &Module, options: PlanOptions) -> Result<Self, Error> {
        if module.is_scheduled() {
            Self::of_dataflow(Dataflow::new(module), options)
        } else {
            Err(ErrorKind::Unscheduled.into())
        }
    }

    /// Reads a scheduled module whose dataflow is known already.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn of_dataflow(flow: Dataflow, options: PlanOptions) -> Result<Self, Error> {
        if !flow.module().is_scheduled() {
            return Err(ErrorKind::Unscheduled.into());
        }
        if let Some(gap) = flow.gap() {
            return Err(gap.into());
        }
        let compiler = compiler::of(options.machine, &flow);
        let mut storages = storages(&flow, &*compiler)?;
        let timeline = Timeline::new(&flow);
        let buffers = Buffers::new(&flow, &timeline, compiler.ranks(&flow), &[])?;
        compiler.settle_spaces(&flow, &buffers, &mut storages);
        let functions = Functions::new(flow.module(), &*compiler)?;
        let (timeline, buffers) = (Arc::new(timeline), Arc::new(buffers));
        let numbered = buffers.clone();
        Ok(Self { options, compiler, flow, storages, timeline, buffers, numbered, functions })
    }

    /// The plan of the module as it is.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Overflow`] if its bytes exceed 64 bits.
    pub fn plan(&self) -> Result<MemoryPlan, Error> {
        let plan = |packing| self.packed(packing).ok_or_else(|| ErrorKind::Overflow.into());
        let (Some(limit), Some(near)) = (self.options.hbm_limit, self.compiler.near_limit()) else {
            return plan(self.options.packing);
        };
        let mut kept = plan(Packing::FastMerge)?;
        // A text doesn't say whether it is compiled for one core of a chip; if it is, it fits the core's part.
        let of_core = self.compiler.core_memory_bytes().filter(|of_core| *of_core < limit);
        let is_near = |limit: u64| kept.total_bytes() > limit.saturating_sub(near);
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

    /// The plan in this packing with other buffer sizes: `bytes` maps the number of a [buffer](AssignedValue::buffer)
    /// and the bytes of one of its values to new bytes, or to `None` to keep them. Sharing and live ranges stay.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Overflow`] if the bytes exceed 64 bits.
    pub fn plan_resized(
        &self,
        packing: Packing,
        bytes: impl Fn(usize, u64) -> Option<u64>,
    ) -> Result<MemoryPlan, Error> {
        self.resized(bytes).packed(packing).ok_or_else(|| ErrorKind::Overflow.into())
    }

    /// [`MemoryPlan::total_bytes`] of [`plan_resized`](Self::plan_resized), in less time: no value has an offset.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Overflow`] if the bytes exceed 64 bits.
    pub fn total_resized(&self, packing: Packing, bytes: impl Fn(usize, u64) -> Option<u64>) -> Result<u64, Error> {
        self.resized(bytes).total(packing).ok_or_else(|| ErrorKind::Overflow.into())
    }

    /// A planner of the program with further results in donated arguments. Values keep the numbers of their buffers.
    ///
    /// Temporaries that lay in such a result's memory before it was made need memory of their own while the argument is
    /// read.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    ///
    /// ```
    /// use tilewise::tpu::Generation;
    /// use tilewise_hlo::Module;
    /// use tilewise_memory::{Packing, PlanOptions, Planner};
    ///
    /// let text = "\
    /// HloModule m, is_scheduled=true
    ///
    /// ENTRY %main (x: f32[1024,1024]) -> f32[1024,1024] {
    ///   %x = f32[1024,1024]{1,0:T(8,128)} parameter(0)
    ///   %a = f32[1024,1024]{1,0:T(8,128)} negate(%x)
    ///   %b = f32[1024,1024]{1,0:T(8,128)} dot(%a, %a)
    ///   ROOT %c = f32[1024,1024]{1,0:T(8,128)} dot(%b, %x)
    /// }
    /// ";
    /// let options = PlanOptions::new(Generation::V5e).with_packing(Packing::BestFit);
    /// let planner = Planner::new(&Module::parse(text)?, options)?;
    /// let plan = planner.plan()?;
    /// // `a` lies in the result's memory, and `b` in its own.
    /// assert_eq!((plan.total_bytes(), plan.temporary_bytes()), (12 << 20, 4 << 20));
    ///
    /// let donated = text.replace("is_scheduled=true", "input_output_alias={ {}: (0, {}) }, is_scheduled=true");
    /// let aliases = Module::parse(&donated)?.input_output_aliases()?;
    /// let donating = planner.donating(&aliases)?.plan()?;
    /// assert_eq!((donating.total_bytes(), donating.temporary_bytes()), (12 << 20, 8 << 20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn donating(&self, aliases: &[InputOutputAlias]) -> Result<Self, Error> {
        let buffers = Buffers::new(&self.flow, &self.timeline, self.compiler.ranks(&self.flow), aliases)?;
        Ok(Self { buffers: Arc::new(buffers), ..self.clone() })
    }

    fn resized(&self, bytes: impl Fn(usize, u64) -> Option<u64>) -> Self {
        let mut resized = self.clone();
        for id in self.storages.ids().filter(|id| !self.flow.is_tuple(*id)) {
            let buffer = self.numbered.at(&self.flow, id);
            if let Some(bytes) = buffer.and_then(|buffer| bytes(buffer.index(), self.storages[id].bytes)) {
                resized.storages[id].bytes = bytes;
            }
        }
        resized
    }

    fn assignment(&self, packing: Packing) -> Assignment {
        Assignment::new(&self.flow, &*self.compiler, &self.storages, &self.buffers, |assigner| {
            self.compiler.assign(assigner, packing);
        })
    }

    fn total(&self, packing: Packing) -> Option<u64> {
        let assignment = self.assignment(packing);
        let Interface { arguments, outputs, aliases } =
            self.compiler.interface(&self.flow, &self.storages, &self.buffers, &assignment)?;
        let parts = self.compiler.temporaries(&assignment, self.functions.values);
        let spaces = self.values_by_space().into_keys().filter(|space| self.compiler.is_device_memory(*space));
        let layouts = spaces.map(|space| self.lay_out(&assignment, &parts, packing, space));
        let temporary = layouts.map(|layout| Some(layout?.temporary_bytes));
        let temporary_bytes = temporary.reduce(|sum, bytes| sum?.checked_add(bytes?)).unwrap_or(Some(0))?;
        let constant_bytes = self.constant_bytes(&assignment)?;
        Some(total_bytes([arguments[0], outputs[0]], aliases[0], [constant_bytes, temporary_bytes]))
    }

    /// Bytes of constants in the default memory space, each an allocation of its own.
    fn constant_bytes(&self, assignment: &Assignment) -> Option<u64> {
        let mut largest: BTreeMap<usize, u64> = BTreeMap::new();
        for (value, &position) in self.flow.values().iter() {
            let (Some(buffer), storage) = (self.buffers.of(value), &self.storages[position]) else { continue };
            if storage.memory_space == 0 && storage.bytes > 0 && assignment.roles[buffer] == Role::Constant {
                let bytes = largest.entry(buffer.index()).or_default();
                *bytes = storage.bytes.max(*bytes);
            }
        }
        largest.into_values().fold(0, u64::saturating_add).checked_add(self.functions.constant_bytes)
    }

    fn packed(&self, packing: Packing) -> Option<MemoryPlan> {
        let assignment = self.assignment(packing);
        let Interface { arguments, outputs, aliases } =
            self.compiler.interface(&self.flow, &self.storages, &self.buffers, &assignment)?;
        let spaces = self.spaces(&assignment, packing)?;
        let device = spaces.iter().filter(|space| self.compiler.is_device_memory(space.memory_space));
        Some(MemoryPlan {
            constant_bytes: self.constant_bytes(&assignment)?,
            argument_bytes: arguments[0],
            output_bytes: outputs[0],
            alias_bytes: aliases[0],
            host_argument_bytes: arguments[1],
            host_output_bytes: outputs[1],
            host_alias_bytes: aliases[1],
            temporary_bytes: device.map(|space| space.temporary_bytes).try_fold(0, u64::checked_add)?,
            spaces,
            packing,
            other_packing: None,
            order: self.timeline.order.iter().map(|op| self.flow.instruction_index(*op)).collect(),
        })
    }

    fn values_by_space(&self) -> BTreeMap<u8, Vec<ValueId>> {
        let mut by_space: BTreeMap<u8, Vec<ValueId>> = BTreeMap::from([(0, Vec::new())]);
        for (value, &position) in self.flow.values().iter() {
            let storage = &self.storages[position];
            if self.buffers.of(value).is_some() && storage.bytes > 0 {
                by_space.entry(storage.memory_space).or_default().push(value);
            }
        }
        by_space
    }

    fn spaces(&self, assignment: &Assignment, packing: Packing) -> Option<Vec<SpacePlan>> {
        let by_space = self.values_by_space();
        let parts = self.compiler.temporaries(assignment, self.functions.values);
        by_space.into_iter().map(|(space, values)| self.space(assignment, &parts, packing, space, values)).collect()
    }

    fn space(
        &self,
        assignment: &Assignment,
        parts: &[Part],
        packing: Packing,
        memory_space: u8,
        mut values: Vec<ValueId>,
    ) -> Option<SpacePlan> {
        values.sort_by_cached_key(|value| (self.buffers.ranges[*value].start, value.index()));
        let layout = self.lay_out(assignment, parts, packing, memory_space)?;
        let assigned: Vec<AssignedValue> =
            values.iter().filter_map(|value| self.assigned(assignment, &layout, *value)).collect();
        let mut resident: BTreeMap<usize, LiveBuffer> = BTreeMap::new();
        for (at, value) in assigned.iter().enumerate().filter(|(_, value)| value.role.is_resident()) {
            let of = self.buffers.of(values[at]).map_or(value.buffer, BufferId::index);
            let buffer = resident.entry(of).or_insert(LiveBuffer { value: at, bytes: 0 });
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
        let (role, offset) = (assignment.roles[buffer], layout.offsets[value]);
        Some(AssignedValue {
            instruction: self.flow.instruction_index(op),
            is_hidden: self.flow[op].is_hidden,
            role,
            buffer: self.numbered.of(value)?.index(),
            offset,
            // A value outside the temporaries' memory has an allocation that is live anyway.
            is_in_resident: layout.has_offsets && offset.is_none() && !role.is_resident(),
            bytes: self.storages[position].bytes,
            first: range.start,
            last: range.end.min(self.timeline.len().saturating_sub(1)),
            flow: self.flow.clone(),
            position,
        })
    }

    fn lay_out(&self, assignment: &Assignment, parts: &[Part], packing: Packing, memory_space: u8) -> Option<Layout> {
        let packed = assignment.packed.get(&memory_space).map_or(&[][..], Vec::as_slice);
        let mut heap = Heap::new(&self.flow, &*self.compiler, &self.storages, &self.buffers, packed)?;
        let (mut offsets, mut separate) = (Table::filled(self.flow.values().len(), None), Vec::new());
        let Some(alignment) = self.compiler.alignment(memory_space) else {
            // Neither offsets nor gaps are known in this memory space.
            let layout_bytes = heap.peak_bytes;
            return Some(Layout {
                heap,
                offsets,
                separate,
                has_offsets: false,
                layout_bytes,
                temporary_bytes: layout_bytes,
            });
        };
        heap.pack(packing, alignment)?;
        let mut layout_bytes = 0_u64;
        for part in parts {
            let offset = layout_bytes.checked_next_multiple_of(alignment)?;
            match *part {
                Part::Heap(space) if space == memory_space => {
                    for (_, group) in heap.groups.iter() {
                        for member in &group.members {
                            offsets[member.value] = Some(offset.checked_add(group.offset)?);
                        }
                    }
                    layout_bytes = offset.checked_add(heap.height)?;
                }
                Part::Allocation(at) if assignment.allocations[at].memory_space == memory_space => {
                    let Allocation { bytes, buffers, .. } = &assignment.allocations[at];
                    let values = || buffers.iter().flat_map(|buffer| &self.buffers.members[*buffer]);
                    values().for_each(|value| offsets[*value] = Some(offset));
                    separate.extend(values().next().map(|value| (*value, *bytes)));
                    layout_bytes = offset.checked_add(*bytes)?;
                }
                _ => {}
            }
        }
        let temporary_bytes =
            self.compiler.reported_bytes(&self.flow, &self.storages, assignment, &heap, memory_space, layout_bytes)?;
        Some(Layout { heap, offsets, separate, has_offsets: true, layout_bytes, temporary_bytes })
    }

    /// The peak: its time, the resident buffers, and the others alive then.
    fn peak(&self, layout: &Layout, values: &[ValueId], resident: Vec<LiveBuffer>) -> Option<Peak> {
        let order = |value: &ValueId| (self.buffers.ranges[*value].start, value.index());
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

/// Totals of a module's functions, whose values each have an allocation of their own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Functions {
    /// Bytes of their constants in the default memory space.
    pub(crate) constant_bytes: u64,
    /// The number of their values.
    values: usize,
}

impl Functions {
    pub(crate) fn new(module: &Module, rules: &dyn Rules) -> Result<Self, Error> {
        let functions = module.computations().filter(Computation::is_function);
        let mut this = Self::default();
        for instruction in functions.flat_map(|function| function.instructions()) {
            this.values += match instruction.opcode() {
                Opcode::Bitcast | Opcode::GetTupleElement => 0,
                // A tuple makes its table.
                Opcode::Tuple => 1,
                _ if !instruction.shape_text().starts_with('(') => 1,
                _ => instruction.shape().map_or(1, |shape| nodes(&shape)),
            };
            if instruction.opcode() == Opcode::Constant {
                let shape = instruction.shape().map_err(|_| Error::invalid_shape(instruction.name()))?;
                let in_default = |leaf: &Shape| leaf.as_array().is_some_and(|array| array.memory_space() == 0);
                for (_, leaf) in shape.leaves().filter(|(_, leaf)| in_default(leaf)) {
                    let bytes = size::leaf(&leaf, rules)?;
                    this.constant_bytes = this.constant_bytes.checked_add(bytes).ok_or(ErrorKind::Overflow)?;
                }
            }
        }
        Ok(this)
    }
}

/// The number of tuples and leaves in a shape.
fn nodes(shape: &Shape) -> usize {
    let (mut waiting, mut count) = (vec![shape.clone()], 0);
    while let Some(shape) = waiting.pop() {
        count += 1;
        if matches!(shape.kind(), ShapeKind::Tuple) {
            waiting.extend(shape.elements());
        }
    }
    count
}
