//! The contents of a program's memory at its peak.

use super::purposes::Purposes;
use crate::program::{
    Array, ArrayId, AxisName, Cause, NamedAxis, Names, Purpose, Sizer, SourceLine, Tracer, module_path, op_name, share,
    source_line,
};
use foldhash::HashMap;
use std::borrow::Cow;
use tilewise::Shape;
use tilewise_hlo::dataflow::{Dataflow, Position};
use tilewise_memory::{AssignedValue, LiveBuffer, MemoryPlan, Role, SpacePlan};

/// The peak of one memory space, and its contents at that moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SpacePeak {
    /// Bytes of everything alive: arguments, results, temporaries. Their memory may be larger: see
    /// [`fragmentation_bytes`](Self::fragmentation_bytes).
    pub live_bytes: u64,
    /// Bytes of temporaries; in the default memory space as the compiler reports them (`temp_size`), gaps included.
    pub temporary_bytes: u64,
    /// Bytes of padding in everything alive.
    pub padding_bytes: u64,
    /// Bytes of the temporaries' memory that nothing uses at the peak.
    pub fragmentation_bytes: u64,
    /// The instruction that runs at the peak.
    pub instruction: String,
    /// The moment of the peak: the number of instructions that run before it.
    pub moment: usize,
    /// The framework's name of that operation, else of the one it copies, of its reader or of its caller.
    pub op_name: Option<String>,
    /// The line of the user's program that it comes from.
    pub source: Option<SourceLine>,
    /// The arrays alive then, the largest first.
    pub rows: Vec<PeakRow>,
}

/// Equal arrays of one line that are alive at the peak.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PeakRow {
    /// The instruction that makes the first of them.
    pub instruction: String,
    /// The instruction's computation.
    pub computation: String,
    /// The instruction's opcode.
    pub opcode: String,
    /// The array's index path in the instruction's result; empty if that isn't a tuple.
    pub shape_index: Vec<usize>,
    /// The array; a tuple where it is a tuple's table of pointers.
    pub shape: Shape,
    /// Its role in the plan.
    pub role: Role,
    /// Its purpose.
    pub purpose: Purpose,
    /// Number of arrays.
    pub count: usize,
    /// Bytes they take together. An array in memory that holds a larger one at another time takes all of that memory.
    pub bytes: u64,
    /// Bytes of data in them; of a row that isn't an array, all bytes.
    pub logical_bytes: u64,
    /// Bytes that hold no data: [`bytes`](Self::bytes) − [`logical_bytes`](Self::logical_bytes).
    pub padding_bytes: u64,
    /// The causes of the padding.
    pub causes: Vec<Cause>,
    /// Its named axes; empty in rows that are too small to matter.
    pub axes: Vec<NamedAxis>,
    /// The framework's name of the operation, or of the argument.
    pub op_name: Option<String>,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
    /// The library's routine that works in it, of a [workspace](Purpose::Workspace).
    pub routine: Option<String>,
    /// The network's modules that make them, each with the bytes of an array.
    pub(super) modules: Vec<(String, u64)>,
    /// The instruction's index in the module.
    index: usize,
    /// The position of its value.
    position: Position,
}

impl SpacePeak {
    /// Padding as a share of the bytes alive, 0 … 1.
    #[must_use]
    pub fn padding_share(&self) -> f64 {
        share(self.padding_bytes, self.live_bytes)
    }

    /// Whether anything is alive that isn't live for the whole run.
    #[must_use]
    pub fn has_temporaries(&self) -> bool {
        self.rows.iter().any(|row| !row.role.is_resident())
    }
}

impl PeakRow {
    /// Its dimensions as the program counts them, each with its name if it has one, without those of size 1. A
    /// dimension that merges several axes is listed as these.
    #[must_use]
    pub fn named_dimensions(&self) -> Vec<(Option<&AxisName>, u64)> {
        let mut found = Vec::new();
        for (at, size) in self.shape.dimensions().iter().enumerate().filter_map(|(at, of)| Some((at, of.bound()?))) {
            let axes = || self.axes.iter().filter(move |axis| axis.dimension == at && axis.size > 1);
            if size > 1 && axes().map(|axis| axis.size).fold(1, u64::saturating_mul) == size {
                found.extend(axes().map(|axis| (Some(&axis.name), axis.size)));
            } else if size > 1 {
                found.push((None, size));
            }
        }
        found
    }

    /// Bytes taken for each byte of data.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn expansion(&self) -> f64 {
        if self.logical_bytes == 0 { 1.0 } else { self.bytes as f64 / self.logical_bytes as f64 }
    }
}

/// Number of rows that are traced to their origin; the others are too small to matter.
const TRACED: usize = 32;

/// The peak of one memory space of a plan.
pub(crate) fn peak<'m>(
    flow: &'m Dataflow,
    plan: &MemoryPlan,
    space: &SpacePlan,
    sizer: &mut Sizer<'m>,
) -> Option<SpacePeak> {
    let module = flow.module();
    let peak = space.peak.as_ref()?;
    let instruction = module.instruction(peak.instruction)?;
    let mut rows: Vec<PeakRow> = Vec::new();
    let mut known: HashMap<Key, usize> = HashMap::default();
    let purposes = Purposes::of(flow, plan);
    for live in &peak.live {
        let Some((key, row)) = row(flow, &space.values, live, &purposes, sizer) else { continue };
        match known.get(&key) {
            Some(&at) => rows[at].join(&row),
            None => {
                known.insert(key, rows.len());
                rows.push(row);
            }
        }
    }
    rows.sort_by_cached_key(|row| std::cmp::Reverse(row.bytes));
    let mut tracer = Tracer::default();
    let is_made = |role: Role| role == Role::Output || !role.is_resident();
    for row in rows.iter_mut().take(TRACED).filter(|row| row.source.is_none() && is_made(row.role)) {
        row.trace(flow, &mut tracer);
    }
    let names = Names::of(flow);
    for row in rows.iter_mut().take(TRACED).filter(|row| row.shape.as_array().is_some()) {
        row.axes = names.at(row.position);
        row.purpose = purposes.of_axes(row.purpose, &row.axes, row.op_name.as_deref());
    }
    let (op_name, source) = tracer.traced(flow, &instruction);
    Some(SpacePeak {
        live_bytes: space.peak_live_bytes(),
        temporary_bytes: space.temporary_bytes,
        padding_bytes: rows.iter().map(|row| row.padding_bytes).fold(0, u64::saturating_add),
        fragmentation_bytes: space.fragmentation_bytes(),
        instruction: instruction.name().to_owned(),
        moment: peak.logical_time,
        op_name,
        source,
        rows,
    })
}

/// The common properties of rows that are merged.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    source: Option<SourceLine>,
    /// The operation or the instruction, if no line is known.
    name: Option<String>,
    /// `None` if it isn't an array; such values are merged by name.
    array: Option<ArrayId>,
    role: Role,
}

fn row<'m>(
    flow: &'m Dataflow,
    values: &[AssignedValue],
    live: &LiveBuffer,
    purposes: &Purposes<'_>,
    sizer: &mut Sizer<'m>,
) -> Option<(Key, PeakRow)> {
    let value = values.get(live.value)?;
    let instruction = flow.module().instruction(value.instruction)?;
    let array = sizer.of_value(value);
    let (shape, logical_bytes, causes) = match array.map(|id| sizer.array(id)) {
        Some(array) => (array.shape.clone(), array.sizes.logical_bytes, causes(array, value.bytes, live.bytes)),
        // A table, or a shape without layout, has no padding.
        None => (value.shape()?, value.bytes, Vec::new()),
    };
    let (op_name, source) = (op_name(&instruction).map(Cow::into_owned), source_line(&instruction));
    let is_unnamed = source.is_none() || array.is_none();
    let name = is_unnamed.then(|| op_name.clone().unwrap_or_else(|| instruction.name().to_owned()));
    let key = Key { source: source.clone(), name, array, role: value.role };
    let purpose = purposes.of_value(value, &instruction);
    let row = PeakRow {
        instruction: instruction.name().to_owned(),
        computation: instruction.computation().name().to_owned(),
        opcode: instruction.opcode_text().to_owned(),
        shape_index: value.shape_index(),
        shape,
        role: value.role,
        purpose,
        count: 1,
        bytes: live.bytes,
        logical_bytes,
        padding_bytes: live.bytes.saturating_sub(logical_bytes),
        causes,
        axes: Vec::new(),
        modules: op_name.iter().map(|name| (module_path(name), live.bytes)).collect(),
        op_name,
        source,
        routine: (purpose == Purpose::Workspace).then(|| purposes.routine(value)).flatten(),
        index: instruction.index(),
        position: value.position,
    };
    Some((key, row))
}

/// The causes of padding in an array for which the compiler sets aside `allocated` bytes, in a buffer of `taken` bytes.
fn causes(array: &Array, allocated: u64, taken: u64) -> Vec<Cause> {
    let layout = array.sizes.physical_bytes;
    // Where tiles are ignored, as in the semaphores' memory, they cause no padding.
    let mut causes = if allocated < layout { Vec::new() } else { array.causes.clone() };
    if allocated > layout {
        causes.push(Cause::Untiled);
    }
    if taken > allocated {
        causes.push(Cause::Shared(taken));
    }
    causes
}

impl PeakRow {
    fn join(&mut self, other: &Self) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.logical_bytes = self.logical_bytes.saturating_add(other.logical_bytes);
        self.padding_bytes = self.padding_bytes.saturating_add(other.padding_bytes);
        self.modules.extend_from_slice(&other.modules);
        for cause in &other.causes {
            if !self.causes.contains(cause) {
                self.causes.push(cause.clone());
            }
        }
    }

    /// Sets a missing name, and the line, to those of its origin.
    fn trace(&mut self, flow: &Dataflow, tracer: &mut Tracer) {
        if let Some(instruction) = flow.module().instruction(self.index) {
            let (name, source) = tracer.traced(flow, &instruction);
            self.op_name = self.op_name.take().or(name);
            self.source = source;
        }
    }
}
