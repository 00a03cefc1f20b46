//! From a module to its plan.

use std::collections::BTreeMap;

use tilewise_hlo::Module;

use crate::{
    Allocation, Error, MemoryPlan, Packing, Peak, PeakPiece, PlanOptions, SpacePlan,
    assign::Assignment,
    buffers::Buffers,
    chains::Chains,
    graph::Graph,
    heap::{Heap, alignment},
    index::{Key, PlaceId, Table, ValueId},
    timeline::Timeline,
    values::Values,
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
/// let mut planner = Planner::new(&module, PlanOptions::new(Generation::V5e))?;
/// let plan = planner.plan()?;
/// let a = plan.space(0).unwrap().allocations.iter().find(|allocation| allocation.instruction == 1).unwrap();
/// let halved = planner.plan_resized(|buffer, _| (buffer == a.buffer).then_some(a.bytes / 2))?;
/// assert_eq!((plan.temporary_bytes(), halved.temporary_bytes()), (8 << 20, 6 << 20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Planner<'m> {
    options: PlanOptions,
    graph: Graph<'m>,
    values: Values,
    timeline: Timeline,
    buffers: Buffers,
}

/// Where the temporaries of a memory space lie.
struct Layout {
    heap: Heap,
    /// From the start of the temporaries' memory.
    offsets: Table<ValueId, Option<u64>>,
    /// Of each allocation apart from the heap, a value of it and its bytes.
    apart: Vec<(ValueId, u64)>,
    layout_bytes: u64,
    temporary_bytes: u64,
}

impl<'m> Planner<'m> {
    /// Reads a scheduled module.
    ///
    /// # Errors
    ///
    /// [`Error::Unscheduled`] if the text isn't in the order of execution; the others are about texts that no compiler
    /// printed, or truncated ones.
    pub fn new(module: &'m Module, options: PlanOptions) -> Result<Self, Error> {
        if !module.is_scheduled() {
            return Err(Error::Unscheduled);
        }
        let graph = Graph::new(module, options.generation)?;
        let chains = Chains::new(&graph);
        let values = Values::new(&graph, &chains);
        let timeline = Timeline::new(&graph, &chains);
        let buffers = Buffers::new(&graph, &chains, &values, &timeline)?;
        Ok(Self { options, graph, values, timeline, buffers })
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
        if kept.total_bytes() > limit.saturating_sub(NEAR_LIMIT) {
            let mut other = plan(Packing::BestFit)?;
            let layout = |plan: &MemoryPlan| plan.space(0).map_or(0, |space| space.layout_bytes);
            if layout(&other) < layout(&kept) {
                std::mem::swap(&mut kept, &mut other);
            }
            kept.other_packing = Some((other.packing, other.temporary_bytes()));
        }
        Ok(kept)
    }

    /// The plan if buffers took other sizes: for the number of a [buffer](Allocation::buffer) and the bytes of one of its
    /// values, those it takes instead, or `None` for the same. What shares memory, and when it lives, stays.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] if the bytes exceed 64 bits.
    pub fn plan_resized(&mut self, bytes: impl Fn(usize, u64) -> Option<u64>) -> Result<MemoryPlan, Error> {
        let as_they_are = self.graph.places.clone();
        for id in as_they_are.keys().filter(|id| !as_they_are[*id].is_table) {
            let buffer = self.buffers.at(&self.values, id);
            if let Some(resized) = buffer.and_then(|buffer| bytes(buffer.at(), as_they_are[id].bytes)) {
                self.graph.places[id].bytes = resized;
            }
        }
        let plan = self.plan();
        self.graph.places = as_they_are;
        plan
    }

    fn packed(&self, packing: Packing) -> Option<MemoryPlan> {
        let assignment = Assignment::new(&self.graph, &self.values, &self.buffers, packing);
        let entry = &self.graph.bodies[self.graph.entry];
        let arguments = || entry.parameters.iter().flat_map(|op| self.graph.places_of(*op));
        let results = || self.graph.places_of(entry.root);
        let donated = || self.buffers.donated.iter().copied();
        Some(MemoryPlan {
            argument_bytes: self.sum(arguments(), false)?,
            output_bytes: self.sum(results(), false)?,
            alias_bytes: self.sum(donated(), false)?,
            host_argument_bytes: self.sum(arguments(), true)?,
            host_output_bytes: self.sum(results(), true)?,
            host_alias_bytes: self.sum(donated(), true)?,
            spaces: self.spaces(&assignment, packing)?,
            packing,
            other_packing: None,
            order: self.timeline.order.iter().map(|op| self.graph.ops[*op].source).collect(),
        })
    }

    fn sum(&self, places: impl Iterator<Item = PlaceId>, is_host: bool) -> Option<u64> {
        let places = places.map(|place| self.graph.places[place]);
        let here = places.filter(|place| (place.memory_space == HOST) == is_host);
        here.map(|place| place.bytes).try_fold(0, u64::checked_add)
    }

    fn spaces(&self, assignment: &Assignment, packing: Packing) -> Option<Vec<SpacePlan>> {
        let mut by_space: BTreeMap<u8, Vec<ValueId>> = BTreeMap::from([(0, Vec::new())]);
        for (value, data) in self.values.values.iter() {
            let place = &self.graph.places[data.place];
            if self.buffers.of(value).is_some() && place.bytes > 0 {
                by_space.entry(place.memory_space).or_default().push(value);
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
        values.sort_by_cached_key(|value| (self.buffers.ranges[*value].start, value.at(), 0));
        let layout = self.lay_out(assignment, packing, memory_space)?;
        let allocations: Vec<Allocation> =
            values.iter().filter_map(|value| self.allocation(assignment, &layout, *value)).collect();
        let mut standing: BTreeMap<usize, PeakPiece> = BTreeMap::new();
        for (at, allocation) in allocations.iter().enumerate().filter(|(_, a)| a.role.is_standing()) {
            let piece = standing.entry(allocation.buffer).or_insert(PeakPiece { allocation: at, bytes: 0 });
            piece.bytes = piece.bytes.max(allocation.bytes);
        }
        let standing: Vec<PeakPiece> = standing.into_values().collect();
        Some(SpacePlan {
            memory_space,
            standing_bytes: standing.iter().try_fold(0_u64, |sum, piece| sum.checked_add(piece.bytes))?,
            temporary_bytes: layout.temporary_bytes,
            layout_bytes: layout.layout_bytes,
            peak_temporary_live_bytes: layout
                .apart
                .iter()
                .try_fold(layout.heap.peak_bytes, |sum, (_, bytes)| sum.checked_add(*bytes))?,
            peak: self.peak(&layout, &values, standing),
            allocations,
        })
    }

    fn allocation(&self, assignment: &Assignment, layout: &Layout, value: ValueId) -> Option<Allocation> {
        let place = self.values.values[value].place;
        let (op, bytes) = (self.graph.places[place].op, self.graph.places[place].bytes);
        let buffer = self.buffers.of(value)?;
        let range = self.buffers.ranges[value];
        Some(Allocation {
            instruction: self.graph.ops[op].source as usize,
            shape_index: self.path(place),
            is_hidden: self.graph.ops[op].is_hidden,
            role: assignment.roles[buffer],
            buffer: buffer.at(),
            offset: layout.offsets[value],
            bytes,
            first: range.start,
            last: range.end.min(self.timeline.len().saturating_sub(1)),
        })
    }

    /// The path within what the text shows: the result of a hidden instruction is element 1 of its start.
    fn path(&self, place: PlaceId) -> Vec<usize> {
        let path = self.graph.path(place);
        if self.graph.ops[self.graph.places[place].op].is_hidden { [&[1], &path[..]].concat() } else { path }
    }

    fn lay_out(&self, assignment: &Assignment, packing: Packing, memory_space: u8) -> Option<Layout> {
        let packed = assignment.packed.get(&memory_space).map_or(&[][..], Vec::as_slice);
        let mut heap = Heap::new(&self.graph, &self.values, &self.buffers, packed)?;
        let (mut offsets, mut apart) = (Table::filled(self.values.values.len(), None), Vec::new());
        let Some(alignment) = alignment(memory_space) else {
            // Where things lie there isn't known, nor how much room is between them.
            let layout_bytes = heap.peak_bytes;
            return Some(Layout { heap, offsets, apart, layout_bytes, temporary_bytes: layout_bytes });
        };
        heap.pack(packing, alignment)?;
        for (_, group) in heap.groups.iter() {
            for member in &group.members {
                offsets[member.value] = Some(group.offset);
            }
        }
        if memory_space != 0 {
            let layout_bytes = heap.height;
            return Some(Layout { heap, offsets, apart, layout_bytes, temporary_bytes: layout_bytes });
        }
        let mut layout_bytes = heap.height;
        for (bytes, buffers) in &assignment.apart {
            let offset = layout_bytes.checked_next_multiple_of(alignment)?;
            let values = || buffers.iter().flat_map(|buffer| &self.buffers.members[*buffer]);
            values().for_each(|value| offsets[*value] = Some(offset));
            apart.extend(values().next().map(|value| (*value, *bytes)));
            layout_bytes = offset.checked_add(*bytes)?;
        }
        let is_used = assignment.has_work_area || self.needs_memory(&heap);
        let temporary_bytes = if is_used { layout_bytes.checked_next_multiple_of(alignment)? } else { 0 };
        Some(Layout { heap, offsets, apart, layout_bytes, temporary_bytes })
    }

    /// Whether anything in the heap isn't a scalar that lies in a register. The compiler reports no temporaries where
    /// nothing does, although it has laid them out.
    fn needs_memory(&self, heap: &Heap) -> bool {
        let mut members = heap.groups.iter().flat_map(|(_, group)| &group.members);
        members.any(|member| {
            let place = &self.graph.places[self.values.values[member.value].place];
            !(place.fits_register && self.graph.ops[place.op].opcode.makes_scalars_in_registers())
        })
    }

    /// What stands for the whole run, and what else is alive when the heap takes the most.
    fn peak(&self, layout: &Layout, values: &[ValueId], standing: Vec<PeakPiece>) -> Option<Peak> {
        let order = |value: &ValueId| (self.buffers.ranges[*value].start, value.at(), 0);
        let piece = |(value, bytes): (ValueId, u64)| {
            let allocation = values.binary_search_by_key(&order(&value), order).ok()?;
            Some(PeakPiece { allocation, bytes })
        };
        let event = layout.heap.peak_event;
        let alive = event.into_iter().flat_map(|event| layout.heap.alive_at(event));
        let alive = alive.map(|(group, member)| (member.value, group.bytes)).chain(layout.apart.iter().copied());
        let pieces: Vec<PeakPiece> = standing.into_iter().chain(alive.filter_map(piece)).collect();
        let value = event.and_then(|event| layout.heap.value_at(event));
        let op = match value {
            Some(value) => self.graph.places[self.values.values[value].place].op,
            // Without a heap nothing rises or falls: any moment will do.
            None => *self.timeline.order.last()?,
        };
        let moment = value.map_or_else(|| self.timeline.moment(op), |value| Some(self.buffers.ranges[value].start))?;
        let instruction = self.timeline.order.get(moment).map_or(op, |op| *op);
        Some(Peak { moment, instruction: self.graph.ops[instruction].source as usize, pieces })
    }
}
