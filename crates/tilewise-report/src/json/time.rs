//! Where the time of a run goes, as JSON has it: `docs/json.md` lists the fields.

use super::{Json, one};
use crate::ReportView;
use serde::{Serialize, Serializer, ser::SerializeStruct};
use tilewise_audit::{
    SourceLine,
    time::{Kind, LoopRow, Rates, Time, TimeGroup, TimeRow, by_kind, by_line, by_module},
};

/// Rows that are listed by default.
const LISTED: usize = 20;

impl<'a> ReportView<'a> {
    /// The time of a run by its parts, as JSON; `None` if the text has no cycle counts.
    #[must_use]
    pub fn time(&self) -> Option<impl Serialize + use<'a>> {
        Some(TimeView { view: *self, time: self.report.time().ok()? })
    }
}

/// The time of a report's program.
struct TimeView<'a> {
    view: ReportView<'a>,
    time: &'a Time,
}

impl Serialize for TimeView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { view, time } = self;
        let most = view.most_buffers.map_or(usize::MAX, |_| LISTED);
        let mut rows = view.report.time_rows();
        let lines = by_line(&rows).iter().take(most).map(line).collect::<Vec<_>>();
        let modules = by_module(&rows).iter().take(most).map(module).collect::<Vec<_>>();
        let kinds = by_kind(&rows).iter().map(kind).collect::<Vec<_>>();
        let mut fields = serializer.serialize_struct("Time", 17)?;
        fields.serialize_field("cycles", &exact(time.cycles()))?;
        fields.serialize_field("cycles_by_kind", &CyclesByKind(time))?;
        fields.serialize_field("estimate_seconds", &time.total.estimate)?;
        fields.serialize_field("floor_seconds", &time.total.floor)?;
        fields.serialize_field("compiler_seconds", &time.total.compiler)?;
        fields.serialize_field("is_at_least", &time.is_at_least)?;
        fields.serialize_field("bound_share", &time.bound_share())?;
        fields.serialize_field("padding_seconds", &time.padding_seconds())?;
        fields.serialize_field("cores", &view.report.machine.generation().and_then(|of| time.cores.of_chip(of)))?;
        fields.serialize_field("conditionals", &time.conditionals)?;
        fields.serialize_field("unpriced", &time.unpriced().iter().map(unpriced).collect::<Vec<_>>())?;
        fields.serialize_field("kinds", &kinds)?;
        fields.serialize_field("lines", &lines)?;
        fields.serialize_field("modules", &modules)?;
        fields.serialize_field("loops", &view.report.loop_rows().iter().map(loop_row).collect::<Vec<_>>())?;
        rows.truncate(most);
        fields.serialize_field("rows", &rows.iter().map(|row| row_of(row, &time.rates)).collect::<Vec<_>>())?;
        fields.end()
    }
}

/// JSON's numbers are exact as far as 2^63 - 1.
fn exact(count: u64) -> u64 {
    count.min(i64::MAX.unsigned_abs())
}

struct CyclesByKind<'a>(&'a Time);

impl Serialize for CyclesByKind<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const NAMED: [Kind; 6] =
            [Kind::Matmul, Kind::Elementwise, Kind::Reduce, Kind::Copy, Kind::SliceUpdate, Kind::GatherScatterSort];
        let mut fields = serializer.serialize_struct("CyclesByKind", NAMED.len() + 1)?;
        for kind in NAMED {
            fields.serialize_field(kind.as_str(), &exact(self.0.cycles_of(kind)))?;
        }
        let others = Kind::ALL.into_iter().filter(|kind| !NAMED.contains(kind)).map(|kind| self.0.cycles_of(kind));
        fields.serialize_field("other", &exact(others.fold(0, u64::saturating_add)))?;
        fields.end()
    }
}

#[derive(Serialize)]
struct Unpriced {
    kind: &'static str,
    operations: usize,
    seconds: f64,
}

fn unpriced(row: &tilewise_audit::time::Unpriced) -> Unpriced {
    Unpriced { kind: row.kind.as_str(), operations: row.operations, seconds: row.seconds }
}

#[derive(Serialize)]
struct KindTime {
    kind: &'static str,
    operations: usize,
    seconds: f64,
    bound_seconds: f64,
}

fn kind(group: &TimeGroup<Kind>) -> KindTime {
    KindTime {
        kind: group.of.as_str(),
        operations: group.operations,
        seconds: group.total.estimate,
        bound_seconds: group.bound_seconds,
    }
}

#[derive(Serialize)]
struct LineTime<'a> {
    source: Option<Json<'a, SourceLine>>,
    operations: usize,
    seconds: f64,
    bound_seconds: f64,
}

fn line<'a>(group: &TimeGroup<Option<&'a SourceLine>>) -> LineTime<'a> {
    LineTime {
        source: one(group.of),
        operations: group.operations,
        seconds: group.total.estimate,
        bound_seconds: group.bound_seconds,
    }
}

#[derive(Serialize)]
struct ModuleTime {
    module: String,
    operations: usize,
    seconds: f64,
    bound_seconds: f64,
}

fn module(group: &TimeGroup<String>) -> ModuleTime {
    ModuleTime {
        module: group.of.clone(),
        operations: group.operations,
        seconds: group.total.estimate,
        bound_seconds: group.bound_seconds,
    }
}

#[derive(Serialize)]
struct LoopTime<'a> {
    instruction: &'a str,
    trips: Option<u64>,
    executions: u64,
    seconds: f64,
}

fn loop_row<'a>((instruction, row): &'a (String, LoopRow)) -> LoopTime<'a> {
    LoopTime {
        instruction,
        trips: row.trips.map(exact),
        executions: exact(row.executions),
        seconds: row.total().estimate,
    }
}

#[derive(Serialize)]
struct RowTime<'a> {
    instruction: &'a str,
    computation: &'a str,
    kind: &'static str,
    basis: &'static str,
    cycles: Option<u64>,
    executions: u64,
    estimate_seconds: f64,
    floor_seconds: f64,
    compiler_seconds: f64,
    bytes: u64,
    padding_bytes: u64,
    flops: u64,
    roof: Option<&'static str>,
    op_name: Option<&'a str>,
    source: Option<Json<'a, SourceLine>>,
}

fn row_of<'a>(timed: &'a TimeRow, rates: &Rates) -> RowTime<'a> {
    let (row, total) = (&timed.row, timed.row.total());
    RowTime {
        instruction: &timed.instruction,
        computation: &timed.computation,
        kind: row.kind.as_str(),
        basis: row.basis.as_str(),
        cycles: row.cycles,
        executions: exact(row.executions),
        estimate_seconds: total.estimate,
        floor_seconds: total.floor,
        compiler_seconds: total.compiler,
        bytes: row.bytes,
        padding_bytes: row.padding_bytes,
        flops: row.flops,
        roof: row.roof(rates).map(|roof| roof.as_str()),
        op_name: timed.op_name.as_deref(),
        source: one(timed.source.as_ref()),
    }
}
