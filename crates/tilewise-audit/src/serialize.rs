//! Reports and explanations as JSON has them: the fields that `docs/json.md` lists, in its order.

use crate::{
    advice::{CopyEnd, CopyReason, Recommendation},
    copies::CopyRow,
    dump::{AssignmentReport, AssignmentRow, AssignmentSpace},
    explain::Explanation,
    failure::Failure,
    message::Allocation,
    program::SourceLine,
    report::{
        Agreement, BufferRow, CopyChange, Diff, KernelRow, OwnerChange, Pass, PeakRow, PlanRow, Report, ReportView,
        Resident, SpaceTotal, Timeline, TimelinePiece, Warning,
    },
    table::TableRow,
};
use serde::{Serialize, Serializer, ser::SerializeStruct};
use tilewise_oom::{Budget, Framework, Machine, Message, PrintedSize, Verdict};

/// Serialises a type as these fields, in this order.
macro_rules! fields {
    ($type:ty, $this:ident, { $($name:ident: $value:expr,)+ }) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $this = self;
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
    argument_bytes: view.report.memory_bounds.argument_bytes,
    output_bytes: view.report.memory_bounds.output_bytes,
    alias_bytes: view.report.memory_bounds.alias_bytes,
    constant_bytes: view.report.memory_bounds.constant_bytes,
    // Null for a module without plan.
    temporary_bytes: view.report.memory_bounds.temporary_bytes,
    reported_temporary_bytes: view.report.reported_temporary_bytes(),
    memory_spaces: view.report.memory_spaces,
    advice: view.report.advice(),
    notes: view.report.notes(),
    buffers: view.buffers().collect::<Vec<_>>(),
    copies: explained(view.report),
    kernels: view.report.kernels(),
    at_least_bytes: view.report.memory_bounds.at_least_bytes(),
    at_most_bytes: view.report.memory_bounds.at_most_bytes,
    // Only with every buffer; null for a module without plan.
    plan: view.lists_plan().then(|| view.report.temporary_rows().collect::<Vec<_>>()),
    // Why there is none.
    no_plan: view.report.plan().err().map(ToString::to_string),
    // Where a dump has the compiler's own plan.
    compiler_plan: view.report.compiler_plan,
    hbm_limit_bytes: view.options.hbm_limit,
    // Null where no limit was given, where it depends on how temporaries share memory, and where not all was read or sized.
    fits: view.options.hbm_limit.and_then(|limit| view.report.memory_bounds.fits(limit)),
    // What is left if nothing shares memory; null unless that fits.
    headroom_bytes: view.options.hbm_limit.and_then(|limit| view.report.memory_bounds.headroom(limit)),
    warnings: view.report.warnings,
});

fields!(Diff, diff, {
    before_bytes: diff.before_bytes,
    after_bytes: diff.after_bytes,
    owners: diff.owners,
    copies: diff.copies,
    removed: diff.removed,
    added: diff.added,
});

fields!(OwnerChange, change, {
    owner: change.owner,
    source: change.source,
    before_bytes: change.before_bytes,
    after_bytes: change.after_bytes,
});

fields!(CopyChange, change, {
    owner: change.owner,
    class: change.class.as_str(),
    source: change.source,
    before_bytes: change.before_bytes,
    after_bytes: change.after_bytes,
});

fields!(KernelRow, row, {
    instruction: row.instruction,
    computation: row.computation,
    used_bytes: row.used_bytes,
    limit_bytes: row.limit_bytes,
    cap_bytes: row.cap_bytes,
    op_name: row.op_name,
    source: row.source,
});

fields!(AssignmentReport, report, {
    source: report.source,
    memory_spaces: report.memory_spaces,
    allocations: report.allocations,
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

// As it follows from a program.
fields!(Recommendation, advice, {
    kind: advice.change.as_str(),
    target: advice.target.as_str(),
    instruction: advice.array.as_ref().map(|array| &array.instruction),
    shape: advice.array.as_ref().map(|array| &array.shape_text),
    peak_bytes_saved: advice.saving.bytes(),
    is_bound: advice.saving.is_bound(),
    sentence: advice.sentence,
    code: advice.snippet.as_ref().map(|snippet| &snippet.code),
    imports: advice.snippet.as_ref().map(|snippet| snippet.imports),
    op_name: advice.array.as_ref().map(|array| &array.op_name),
    source: advice.array.as_ref().map(|array| &array.source),
});

/// As it follows from a copy.
struct OfCopy<'a>(&'a Recommendation);

fields!(OfCopy<'_>, fix, {
    sentence: fix.0.sentence,
    shape: fix.0.array.as_ref().and_then(|array| Some(array.requested.as_ref()?.to_string())),
    code: fix.0.snippet.as_ref().map(|snippet| &snippet.code),
    imports: fix.0.snippet.as_ref().map(|snippet| snippet.imports),
});

/// As it follows from a message, which tells nothing of a peak.
struct OfMessage<'a>(&'a Recommendation);

fields!(OfMessage<'_>, advice, {
    kind: advice.0.change.as_str(),
    target: advice.0.target.as_str(),
    shape: advice.0.array.as_ref().map(|array| &array.shape_text),
    bytes_saved: advice.0.saving.bytes(),
    is_bound: advice.0.saving.is_bound(),
    sentence: advice.0.sentence,
    code: advice.0.snippet.as_ref().map(|snippet| &snippet.code),
    imports: advice.0.snippet.as_ref().map(|snippet| snippet.imports),
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
    peak_source: total.peak.as_ref().and_then(|peak| peak.source.as_ref()),
    peak_buffers: total.peak.as_ref().map(|peak| &peak.rows),
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
    op_name: row.op_name,
    source: row.source,
});

fields!(Agreement, agreement, {
    values: agreement.values,
    differences: agreement.differences,
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
    residents: timeline.residents,
    peak_moment: timeline.peak_moment,
    order: timeline.order,
    order_owners: timeline.order_owners,
    owners: timeline.owners,
    paths: timeline.paths,
    order_paths: timeline.order_paths,
    layers: timeline.layers,
    passes: timeline.passes,
    shapes: timeline.shapes,
    pieces: Columns(&timeline.pieces),
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

/// A copy, and why it is there.
struct ExplainedCopy<'a> {
    row: &'a CopyRow,
    reason: &'a CopyReason,
}

fn explained(report: &Report) -> Vec<ExplainedCopy<'_>> {
    let reasons = report.copy_reasons();
    report.copies.iter().zip(reasons).map(|(row, reason)| ExplainedCopy { row, reason }).collect()
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
    origin: copy.reason.origin,
    reader: copy.reason.reader,
    why: copy.reason.why,
    cancels: copy.reason.cancels,
    fix: copy.reason.fix.as_ref().map(OfCopy),
    op_name: copy.row.op_name,
    source: copy.row.source,
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
    library: source.library,
});

fields!(Warning, warning, {
    kind: warning.kind,
    message: warning.message,
    span: warning.span.as_ref().map(|span| [span.start, span.end]),
});

fields!(Explanation, explanation, {
    verdict: explanation.message.verdict().as_str(),
    level: explanation.message.form.level().as_str(),
    message_machine: explanation.message.machine().map(Machine::as_str),
    cause: explanation.message.cause().map(Verdict::as_str),
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
    next: explanation.next_step(),
    page: explanation.message.page(),
    budget: BudgetFields(explanation.message.budget()),
    advice: explanation.advice.iter().map(OfMessage).collect::<Vec<_>>(),
    truncated: explanation.message.truncated,
    others: explanation.message.others.iter().map(OtherFields).collect::<Vec<_>>(),
    allocations: explanation.allocations,
});

/// Another message of the same text.
struct OtherFields<'a>(&'a Message);

fields!(OtherFields<'_>, fields, {
    verdict: fields.0.verdict().as_str(),
    level: fields.0.form.level().as_str(),
    form: fields.0.form.as_str(),
    code: fields.0.code,
    memory_space_name: fields.0.memory_space,
    used_bytes: fields.0.used.as_ref().map(PrintedSize::bytes),
    limit_bytes: fields.0.limit.as_ref().map(PrintedSize::bytes),
});

/// Of the other crate's type, which does not serialise itself.
struct BudgetFields(Budget);

fields!(BudgetFields, fields, {
    capacity_bytes: fields.0.capacity_bytes,
    reserved_bytes: fields.0.reserved_bytes,
    others_bytes: fields.0.others_bytes,
    argument_bytes: fields.0.argument_bytes,
    output_bytes: fields.0.output_bytes,
    temporary_bytes: fields.0.temporary_bytes,
    program_bytes: fields.0.program_bytes,
    padding_bytes: fields.0.padding_bytes,
    fragmentation_bytes: fields.0.fragmentation_bytes,
    missing_bytes: fields.0.missing_bytes,
    unread_shapes: fields.0.unread,
});

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Failure", 3 + usize::from(self.help.is_some()))?;
        fields.serialize_field("kind", self.kind)?;
        fields.serialize_field("message", &self.message)?;
        fields.serialize_field("span", &self.span.as_ref().map(|span| [span.start, span.end]))?;
        match &self.help {
            Some(help) => fields.serialize_field("help", help)?,
            None => fields.skip_field("help")?,
        }
        fields.end()
    }
}

impl Serialize for BufferRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_row(self, serializer)
    }
}

impl Serialize for Allocation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_row(self, serializer)
    }
}

fn serialize_row<S: Serializer>(row: &impl TableRow, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(row.fields())
}
