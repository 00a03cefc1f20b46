//! Reports and explanations as JSON has them: the fields that `docs/json.md` lists, in its order.

use super::{Json, all, one};
use crate::{
    QuotedLine, ReportView,
    findings::{RemedyWords, next_step, warning, why, words},
    style::{owner_label, owner_name},
    summary::{Headline, MessageSummary, PeakCause, PlannedChange, causes, changes},
    table::TableRow,
};
use serde::{Serialize, Serializer, ser::SerializeStruct};
use std::collections::BTreeMap;
use tilewise_audit::{
    Agreement, Allocation, AssignmentReport, AssignmentRow, AssignmentSpace, BoundaryChange, BufferRow, CopyEnd,
    CopyReason, CopyRow, Explanation, Failure, ForcedBy, KernelArray, KernelRow, ModuleRow, NamedAxis, Neighbour,
    Neighbours, Pass, PeakRow, PlacedElsewhere, PlanRow, Recommendation, Report, ReportWarning, Resident, SourceLine,
    SpaceTotal, StandingRow, Timeline, TimelinePiece,
    dump::{Selected, Selection},
    recommendation::MadeBatch,
};
use tilewise_oom::{BlockSize, Budget, Frame, Framework, Message, OomVerdict, PrintedSize, UntiledMachine};

/// Serialises a type as these fields, in this order.
macro_rules! fields {
    ($type:ty, $this:ident, { $($name:ident: $value:expr,)+ }) => {
        impl Serialize for Json<'_, $type> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $this = self.0;
                let mut fields = serializer.serialize_struct(stringify!($type), [$(stringify!($name)),+].len())?;
                $(fields.serialize_field(stringify!($name), &$value)?;)+
                fields.end()
            }
        }
    };
}

fields!(ReportView<'_>, view, {
    module: view.report.module_name,
    source: view.source,
    entry: view.report.entry,
    is_scheduled: view.report.is_scheduled,
    machine: view.report.machine.to_string(),
    libtpu: view.report.libtpu.map(|version| version.to_string()),
    partitions: view.report.partitions,
    headline: Headline::of(view.report),
    causes: quoted_causes(view),
    changes: all(&quoted_changes(view)),
    argument_bytes: view.report.memory_bounds.argument_bytes,
    output_bytes: view.report.memory_bounds.output_bytes,
    alias_bytes: view.report.memory_bounds.alias_bytes,
    constant_bytes: view.report.memory_bounds.constant_bytes,
    // Null for a module without plan.
    temporary_bytes: view.report.memory_bounds.temporary_bytes,
    reported_temporary_bytes: view.report.reported_temporary_bytes(),
    memory_spaces: all(&view.report.memory_spaces),
    advice: all(view.report.advice()),
    buffers: all(&view.buffers().collect::<Vec<_>>()),
    copies: all(&explained(view.report)),
    moved_bytes: view.report.moved_bytes(),
    kernels: all(&view.report.kernels()),
    at_least_bytes: view.report.memory_bounds.at_least_bytes(),
    at_most_bytes: view.report.memory_bounds.at_most_bytes,
    // Only with every buffer; null for a module without plan.
    plan: view.lists_plan().then(|| view.report.temporary_rows().collect::<Vec<_>>()).as_deref().map(all),
    // Why the plan is missing.
    no_plan: view.report.plan().err().map(ToString::to_string),
    // Where a dump has the compiler's own plan.
    compiler_plan: one(view.report.compiler_plan.as_ref()),
    hbm_limit_bytes: view.report.limit(),
    // Null where no limit was given, where it depends on how temporaries share memory, and where not all was read or sized.
    fits: view.report.limit().and_then(|limit| view.report.memory_bounds.fits(limit)),
    // The rest of the limit if nothing shares memory; null unless that fits.
    headroom_bytes: view.report.limit().and_then(|limit| view.report.memory_bounds.headroom(limit)),
    peak_modules: all(&view.peak_modules()),
    // Null where the text has no cycle counts.
    time: view.time(),
    // Why it is null.
    no_time: view.report.time().err().map(|none| none.to_string()),
    warnings: all(&view.report.warnings),
});

fn quoted_causes(view: &ReportView<'_>) -> Vec<PeakCause> {
    let causes = causes(view.report);
    match view.quotes {
        Some(quotes) => causes.into_iter().map(|cause| cause.quoting(quotes)).collect(),
        None => causes,
    }
}

fn quoted_changes<'a>(view: &ReportView<'a>) -> Vec<PlannedChange<'a>> {
    let changes = changes(view.report);
    match view.quotes {
        Some(quotes) => changes.into_iter().map(|change| change.quoting(quotes)).collect(),
        None => changes,
    }
}

fields!(PlannedChange<'_>, change, {
    do: change.task,
    kind: change.recommendation.change.as_str(),
    bytes_after: change.bytes_after,
    fits: change.fits,
    seconds_after: change.seconds_after,
    place: change.place,
    code: change.code(),
    caveat: change.caveat,
    lines: all(&change.lines),
    edit: change.edit,
});

fields!(QuotedLine, quoted, {
    file: quoted.file,
    line: quoted.line,
    text: quoted.text,
});

fields!(KernelRow, row, {
    instruction: row.instruction,
    computation: row.computation,
    used_bytes: row.used_bytes,
    limit_bytes: row.limit_bytes,
    cap_bytes: row.cap_bytes,
    held_bytes: row.held_bytes(),
    operands: all(&row.operands.iter().map(KernelOperand).collect::<Vec<_>>()),
    results: all(&row.results.iter().map(KernelResult).collect::<Vec<_>>()),
    copied_bytes: row.copied_bytes(),
    body_moves: row.body_moves,
    block_sizes: all(&row.block_sizes),
    op_name: row.op_name,
    source: one(row.source.as_ref()),
});

fields!(BlockSize, block, {
    name: block.name,
    size: block.size,
});

fields!(KernelOperand<'_>, operand, {
    index: operand.0.index,
    shape: operand.0.shape.to_string(),
    producer: operand.0.other,
    producer_opcode: operand.0.other_opcode.as_str(),
    between: all(&operand.0.between),
    copied_bytes: operand.0.copied_bytes(),
    forced_by: operand.0.forced_by.map(ForcedBy::as_str),
    remedy: RemedyWords::of(operand.0),
});

fields!(KernelResult<'_>, result, {
    index: result.0.index,
    shape: result.0.shape.to_string(),
    user: result.0.other,
    user_opcode: result.0.other_opcode.as_str(),
    between: all(&result.0.between),
    copied_bytes: result.0.copied_bytes(),
    forced_by: result.0.forced_by.map(ForcedBy::as_str),
    remedy: RemedyWords::of(result.0),
});

/// An operand of a kernel.
struct KernelOperand<'a>(&'a KernelArray);

/// A result of a kernel, and its readers.
struct KernelResult<'a>(&'a KernelArray);

fields!(BoundaryChange, change, {
    instruction: change.instruction,
    opcode: change.opcode.as_str(),
    is_relayout: change.is_relayout,
    is_duplicate: change.is_duplicate,
    from: change.from.to_string(),
    to: change.to.to_string(),
    bytes: change.bytes,
    trips: change.trips,
    source: one(change.source.as_ref()),
});

fields!(AssignmentReport, report, {
    source: report.source,
    memory_spaces: all(&report.memory_spaces),
    allocations: all(&report.allocations),
    is_whole: report.is_whole,
});

fields!(AssignmentSpace, space, {
    memory_space: space.memory_space,
    memory_space_name: space.memory_space_name(),
    allocations: space.allocations,
    argument_bytes: space.argument_bytes,
    output_bytes: space.output_bytes,
    constant_bytes: space.constant_bytes,
    temporary_bytes: space.temporary_bytes,
});

fields!(AssignmentRow, row, {
    index: row.index,
    memory_space: row.memory_space,
    kind: row.kind,
    bytes: row.bytes,
    values: row.values,
    largest: row.largest,
    largest_bytes: row.largest_bytes,
});

// Of any origin: a program, one of its copies, or a message.
fields!(Recommendation, advice, {
    kind: advice.change.as_str(),
    target: advice.target.as_str(),
    instruction: advice.array.as_ref().and_then(|array| array.instruction.as_ref()),
    shape: advice.array.as_ref().map(|array| &array.shape_text),
    // The layout to pass or take the array in, where it follows from a copy.
    requested: advice.array.as_ref().and_then(|array| array.requested.as_ref()).map(ToString::to_string),
    peak_bytes_saved: advice.saving.bytes(),
    is_bound: advice.saving.is_bound(),
    is_estimate: advice.saving.is_estimate(),
    parts: advice.parts,
    inputs: advice.inputs().collect::<BTreeMap<_, _>>(),
    made: one(advice.made().as_ref()),
    donate: advice.donate(),
    sentence: words(advice).sentence,
    code: words(advice).code,
    imports: words(advice).imports,
    op_name: advice.array.as_ref().and_then(|array| array.op_name.as_ref()),
    source: one(advice.array.as_ref().and_then(|array| array.source.as_ref())),
});

fields!(MadeBatch<'_>, made, {
    made_at: made.made_at,
    size: made.size,
    axis: made.axis,
    parts: made.parts,
});

fields!(SpaceTotal, total, {
    memory_space: total.memory_space,
    memory_space_name: total.memory_space_name(),
    buffers: total.buffers,
    logical_bytes: total.logical_bytes,
    physical_bytes: total.physical_bytes,
    padding_bytes: total.padding_bytes(),
    // Null for a module without plan.
    peak_live_bytes: total.peak.as_ref().map(|peak| peak.live_bytes),
    peak_temporary_bytes: total.peak.as_ref().map(|peak| peak.temporary_bytes),
    peak_padding_bytes: total.peak.as_ref().map(|peak| peak.padding_bytes),
    peak_fragmentation_bytes: total.peak.as_ref().map(|peak| peak.fragmentation_bytes),
    peak_instruction: total.peak.as_ref().map(|peak| &peak.instruction),
    peak_source: one(total.peak.as_ref().and_then(|peak| peak.source.as_ref())),
    peak_buffers: total.peak.as_ref().map(|peak| all(&peak.rows)),
});

fields!(PeakRow, row, {
    instruction: row.instruction,
    computation: row.computation,
    opcode: row.opcode,
    shape_index: row.shape_index,
    shape: row.shape.to_string(),
    role: row.role.as_str(),
    count: row.count,
    bytes: row.bytes,
    logical_bytes: row.logical_bytes,
    padding_bytes: row.padding_bytes,
    axes: all(&row.axes),
    op_name: row.op_name,
    source: one(row.source.as_ref()),
});

fields!(NamedAxis, axis, {
    dimension: axis.dimension,
    size: axis.size,
    name: crate::axis(&axis.name),
});

fields!(Agreement, agreement, {
    values: agreement.values,
    differences: agreement.differences.iter().map(placed_elsewhere).collect::<Vec<_>>(),
    temporary_bytes: agreement.temporary_bytes,
    planned_bytes: agreement.planned_bytes,
    is_whole: agreement.is_whole,
});

fields!(PlanRow<'_>, row, {
    instruction: row.instruction.name(),
    shape_index: row.value.shape_index(),
    memory_space: row.memory_space,
    offset: row.value.offset,
    bytes: row.value.bytes,
    first: row.value.first,
    last: row.value.last,
    buffer: row.value.buffer,
    is_hidden: row.value.is_hidden,
});

fields!(Timeline, timeline, {
    memory_space: timeline.memory_space,
    memory_space_name: timeline.memory_space_name,
    resident_bytes: timeline.resident_bytes,
    residents: all(&timeline.residents),
    peak_moment: timeline.peak_moment,
    order: timeline.order,
    order_owners: timeline.order_owners,
    owners: timeline.owners.iter().map(owner_label).collect::<Vec<_>>(),
    owner_names: timeline.owners.iter().map(owner_name).collect::<Vec<_>>(),
    paths: timeline.paths,
    modules: timeline.modules,
    order_paths: timeline.order_paths,
    layers: timeline.layers,
    passes: all(&timeline.passes),
    shapes: timeline.shapes,
    pieces: Json(&Columns(&timeline.pieces)),
    standing: all(&timeline.standing),
    families: timeline.families,
    // Empty where the text has no cycle counts.
    seconds: timeline.times.iter().map(|time| time.seconds).collect::<Vec<_>>(),
    bound_moments: timeline.times.iter().enumerate().filter(|(_, time)| time.is_bound).map(|(at, _)| at).collect::<Vec<_>>(),
});

fields!(Neighbours, around, {
    instructions: all(&around.instructions),
    edges: around.edges,
    left_out: around.left_out.iter().collect::<Vec<_>>(),
});

fields!(Neighbour, one, {
    name: one.name,
    opcode: one.opcode,
    shape: one.shape,
    bytes: one.bytes,
    depth: one.depth,
});

fields!(StandingRow, row, {
    owner: row.owner,
    path: row.path,
    shape: row.shape,
    family: row.family,
    role: row.role.as_str(),
    instruction: row.instruction,
    count: row.count,
    bytes: row.bytes,
    padding_bytes: row.padding_bytes,
});

fields!(ModuleRow, row, {
    module: row.module,
    count: row.count,
    bytes: row.bytes,
    padding_bytes: row.padding_bytes,
});

fields!(Resident, resident, {
    name: resident.name,
    count: resident.count,
    bytes: resident.bytes,
    padding_bytes: resident.padding_bytes,
});

fields!(Pass, pass, {
    name: pass.name,
    first: pass.first,
    last: pass.last,
});

/// A list for each field: there may be hundreds of thousands of pieces.
struct Columns<'a>(&'a [TimelinePiece]);

impl<'a> Columns<'a> {
    fn of<T>(&self, field: impl Fn(&'a TimelinePiece) -> T) -> Vec<T> {
        self.0.iter().map(field).collect()
    }
}

fields!(Columns<'_>, pieces, {
    owner: pieces.of(|piece| piece.owner),
    path: pieces.of(|piece| piece.path),
    layer: pieces.of(|piece| piece.layer),
    shape: pieces.of(|piece| piece.shape),
    instruction: pieces.of(|piece| &*piece.instruction),
    offset: pieces.of(|piece| piece.offset),
    bytes: pieces.of(|piece| piece.bytes),
    padding_bytes: pieces.of(|piece| piece.padding_bytes),
    first: pieces.of(|piece| piece.first),
    last: pieces.of(|piece| piece.last),
});

/// A copy and its reason.
struct ExplainedCopy<'a> {
    row: &'a CopyRow,
    reason: &'a CopyReason,
    seconds: Option<f64>,
}

fn explained(report: &Report) -> Vec<ExplainedCopy<'_>> {
    let reasons = report.copy_reasons();
    report
        .copies
        .iter()
        .zip(reasons)
        .map(|(row, reason)| ExplainedCopy { row, reason, seconds: report.copy_seconds(row) })
        .collect()
}

fields!(ExplainedCopy<'_>, copy, {
    instruction: copy.row.instruction,
    computation: copy.row.computation,
    from: copy.row.from.to_string(),
    to: copy.row.to.to_string(),
    class: copy.row.class.as_str(),
    // Null where a loop around it runs an unknown number of times.
    trips: copy.row.trips,
    read_bytes: copy.row.read_bytes,
    written_bytes: copy.row.written_bytes,
    moved_bytes: copy.row.moved_bytes,
    seconds: copy.seconds,
    origin: Json(&copy.reason.origin),
    reader: one(copy.reason.reader.as_ref()),
    why: why(copy.row, copy.reason),
    cancels: copy.reason.cancels,
    fix: one(copy.reason.fix.as_ref()),
    op_name: copy.row.op_name,
    source: one(copy.row.source.as_ref()),
});

fields!(CopyEnd, end, {
    kind: end.kind.as_str(),
    number: end.number,
    instruction: end.instruction,
    op_name: end.op_name,
});

fields!(SourceLine, source, {
    file: source.file,
    line: source.line,
    function: source.function,
    library: one(source.library.as_deref()),
});

fields!(ReportWarning, doubt, {
    kind: doubt.as_str(),
    message: warning(doubt),
    span: doubt.span().map(|span| [span.start, span.end]),
});

fields!(Explanation, explanation, {
    headline: MessageSummary::of(explanation).headline,
    raised_at: one(explanation.message.raised_at.as_ref()),
    causes: MessageSummary::of(explanation).causes,
    changes: all(&MessageSummary::of(explanation).changes),
    verdict: explanation.message.verdict().as_str(),
    level: explanation.message.form.level().as_str(),
    message_machine: explanation.message.machine().map(UntiledMachine::as_str),
    cause: explanation.message.cause().map(OomVerdict::as_str),
    retold: explanation.message.is_retold,
    form: explanation.message.form.as_str(),
    code: explanation.message.code,
    module: explanation.message.module,
    framework: explanation.message.framework.map(Framework::as_str),
    memory_space: explanation.message.memory_space_number(),
    memory_space_name: explanation.message.memory_space,
    used_bytes: explanation.message.used.as_ref().map(PrintedSize::bytes),
    limit_bytes: explanation.message.limit.as_ref().map(PrintedSize::bytes),
    exceeded_bytes: explanation.message.exceeded.as_ref().map(PrintedSize::bytes),
    padding_bytes: explanation.padding_bytes(),
    owner: explanation.owner(),
    next: next_step(explanation),
    page: explanation.message.page(),
    budget: Json(&explanation.message.budget()),
    advice: all(&explanation.advice),
    truncated: explanation.message.truncated,
    others: all(&explanation.message.others.iter().map(Other).collect::<Vec<_>>()),
    allocations: all(&explanation.allocations),
});

fields!(Frame, frame, {
    file: frame.file,
    line: frame.line,
    function: frame.function,
    code: frame.code,
});

/// Another message of the same text.
struct Other<'a>(&'a Message);

fields!(Other<'_>, fields, {
    verdict: fields.0.verdict().as_str(),
    level: fields.0.form.level().as_str(),
    form: fields.0.form.as_str(),
    code: fields.0.code,
    memory_space_name: fields.0.memory_space,
    used_bytes: fields.0.used.as_ref().map(PrintedSize::bytes),
    limit_bytes: fields.0.limit.as_ref().map(PrintedSize::bytes),
});

fields!(Budget, fields, {
    capacity_bytes: fields.capacity_bytes,
    reserved_bytes: fields.reserved_bytes,
    others_bytes: fields.others_bytes,
    argument_bytes: fields.argument_bytes,
    output_bytes: fields.output_bytes,
    temporary_bytes: fields.temporary_bytes,
    program_bytes: fields.program_bytes,
    padding_bytes: fields.padding_bytes,
    fragmentation_bytes: fields.fragmentation_bytes,
    missing_bytes: fields.missing_bytes,
    unread_shapes: fields.unread,
});

impl Serialize for Json<'_, Failure> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let failure = self.0;
        let mut fields = serializer.serialize_struct("Failure", 3 + usize::from(failure.help.is_some()))?;
        fields.serialize_field("kind", failure.kind)?;
        fields.serialize_field("message", &failure.message)?;
        fields.serialize_field("span", &failure.span.as_ref().map(|span| [span.start, span.end]))?;
        match &failure.help {
            Some(help) => fields.serialize_field("help", help)?,
            None => fields.skip_field("help")?,
        }
        fields.end()
    }
}

impl Serialize for Json<'_, BufferRow> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_row(self.0, serializer)
    }
}

impl Serialize for Json<'_, Allocation> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_row(self.0, serializer)
    }
}

fn serialize_row<S: Serializer>(row: &impl TableRow, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(row.fields())
}

// The selection from a dump's files: the final programs, with their possible plans, and the rest.
fields!(Selection, selection, {
    programs: all(&selection.programs),
    left: selection.left,
});

fields!(Selected, selected, {
    file: selected.file,
    plans: selected.plans,
});

/// The offset of a value in a plan, and in the compiler's.
pub(crate) fn placed_elsewhere(value: &PlacedElsewhere) -> String {
    format!("{} is at {}, the compiler's at {}", value.instruction, value.offset, value.compilers)
}
