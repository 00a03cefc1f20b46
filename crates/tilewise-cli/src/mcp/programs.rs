//! Tools about compiled programs.

use super::{
    Access, Answer, next,
    shapes::{generation, json},
};
use crate::{commands::audit::programs_in, values::parse_size};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{cmp::Reverse, path::PathBuf};
use tilewise::tpu::memory_space_name;
use tilewise_audit::{Audit, Content, Failure, Machine, Origins, PlanRow, Report};
use tilewise_report::{Allowed, AsJson, AuditOutput, Comparison, warning};

/// Rows in an answer by default.
const ROWS: usize = 10;

/// A compiled program.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Program {
    /// A file of optimized HLO (text or proto, plain or gzip), the folder of a dump that holds one program, or a profile
    /// (.xplane.pb).
    path: Option<PathBuf>,
    /// The program of a profile, such as jit_step or jit_step(6).
    module: Option<String>,
    /// The optimized HLO itself, where there is no file.
    text: Option<String>,
    /// The TPU generation that it must fit: v2 v3 v4 v5e v5p v6e v7x.
    tpu: Option<String>,
    /// The machine it is compiled for, where its text does not say so: tpu:v5e, gpu:h100, cpu, …
    machine: Option<String>,
    /// The memory that it must fit, such as 16GiB.
    hbm_limit: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Moment {
    #[serde(flatten)]
    program: Program,
    /// The step, from 1; the peak if neither it nor an instruction is given.
    step: Option<usize>,
    /// The instruction that runs then.
    instruction: Option<String>,
    /// Rows at most [default: 10].
    most: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Query {
    #[serde(flatten)]
    program: Program,
    /// A part of the instruction's name, opcode, shape, op_name or source line, in any case.
    query: String,
    /// Rows at most [default: 10].
    most: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Pair {
    /// The program as it was.
    before: Program,
    /// The program as it is.
    after: Program,
}

impl Program {
    /// The program's report, with the memory it must fit.
    fn audited(&self, access: &Access) -> Result<AuditOutput, Failure> {
        let (source, contents) = match (&self.path, &self.text) {
            (Some(path), None) => {
                let found = access.resolve(path)?;
                (path.to_string_lossy().into_owned(), programs_in(&found, self.module.as_deref(), access.limits()))
            }
            (None, Some(text)) => ("text".to_owned(), Content::read(text.clone().into_bytes())),
            _ => return Err(Failure::new("usage", "give either `path` or `text`")),
        };
        let count = contents.len();
        let mut contents = contents.into_iter();
        let program = match (contents.next().transpose()?, count) {
            (Some(Content::Program(program)), 1) => program,
            (Some(_), 1) | (None, _) => {
                let message = "a buffer assignment has no shapes, source lines or padding";
                return Err(Failure::new("no_program", message).with_help("give the program itself"));
            }
            (Some(_), _) => {
                let message = format!("{source} holds {count} programs");
                return Err(Failure::new("usage", message).with_help("name the file of one, or `module`"));
            }
        };
        let tpu = self.tpu.as_deref().map(generation).transpose()?;
        let machine = self.machine.as_deref().map(str::parse::<Machine>).transpose();
        let machine = machine.map_err(|error| Failure::new("unknown_machine", error.to_string()))?;
        let limit = self.hbm_limit.as_deref().map(parse_size).transpose();
        let limit = limit.map_err(|message| Failure::new("usage", message))?;
        match machine {
            Some(machine) => program.for_machine(machine)?,
            None if tpu.is_some() => program.for_tpu()?,
            None => {}
        }
        let asked = Audit::new(&program).machine(machine.or(tpu.map(Machine::Tpu))).source(&source);
        Ok(AuditOutput::new(limit.map_or(asked, |limit| asked.limit(limit)).run()))
    }

    /// Arguments that name the program again, with the memory it must fit: near a limit the compiler packs differently.
    fn again(&self) -> Value {
        let mut arguments = match &self.path {
            Some(path) => json!({ "path": path }),
            None => json!({ "text": "the same" }),
        };
        let Self { module, tpu, machine, hbm_limit, .. } = self;
        for (name, value) in [("module", module), ("tpu", tpu), ("machine", machine), ("hbm_limit", hbm_limit)] {
            if let Some(value) = value {
                arguments[name] = value.as_str().into();
            }
        }
        arguments
    }
}

pub(super) fn audit(program: &Program, access: &Access) -> Answer {
    let audited = program.audited(access)?;
    let (report, summary) = (&audited.report, audited.summary());
    let peak = report.memory_space(0).and_then(|hbm| hbm.peak.as_ref());
    let bounds = &report.memory_bounds;
    let alive: Vec<Value> = peak.iter().flat_map(|peak| &peak.rows).take(ROWS).map(|row| json(&AsJson(row))).collect();
    let mut query = program.again();
    query["query"] =
        peak.and_then(|peak| peak.op_name.clone()).unwrap_or_else(|| "a line or a shape".to_owned()).into();
    Ok(json!({
        "program": summary.title,
        "headline": summary.headline,
        "causes": summary.causes,
        "total_bytes": bounds.at_most_bytes,
        "limit_bytes": report.limit(),
        "fits": report.limit().and_then(|limit| bounds.fits(limit)),
        "parts": summary.parts.iter().map(|part| (part.kind.to_owned(), part.bytes.into())).collect::<serde_json::Map<_, Value>>(),
        "peak": peak.map(|peak| json!({
            "live_bytes": peak.live_bytes,
            "padding_bytes": peak.padding_bytes,
            "step": peak.moment.saturating_add(1),
            "steps": report.order().count(),
            "instruction": peak.instruction,
            "op_name": peak.op_name,
            "source": peak.source.as_ref().map(AsJson),
        })),
        "changes": summary.changes,
        "remedies": summary.remedies,
        "alive": alive,
        "alive_more": peak.map_or(0, |peak| peak.rows.len().saturating_sub(ROWS)),
        "warnings": report.warnings.iter().map(warning).collect::<Vec<_>>(),
        "next": [
            next("what_is_alive", program.again(), "all that the peak holds, or any other step"),
            next("find_buffers", query, "the arrays of a line, an operation or a shape, and when they are alive"),
            next("check_change", json!({ "before": "train.py:make", "after": "changed.py:make", "tpu": "v5e" }), "whether a change lowers the peak, by the compiler"),
        ],
    }))
}

pub(super) fn what_is_alive(moment: &Moment, access: &Access) -> Answer {
    let audited = moment.program.audited(access)?;
    let report = &audited.report;
    let order: Vec<&str> = planned(report)?.order().collect();
    let peak = report.memory_space(0).and_then(|hbm| hbm.peak.as_ref());
    let by_name = |name: &String| {
        let at = order.iter().position(|instruction| instruction == name);
        at.ok_or_else(|| Failure::new("no_such_instruction", format!("no instruction `{name}` runs")))
    };
    let step = match (moment.step, &moment.instruction) {
        (Some(step), _) if (1..=order.len()).contains(&step) => step - 1,
        (Some(step), _) => {
            let message = format!("step {step} is not one of 1 to {}", order.len());
            return Err(Failure::new("no_such_step", message).into());
        }
        (None, Some(name)) => by_name(name)?,
        (None, None) => peak.map_or(0, |peak| peak.moment),
    };
    // Rows of the interface and of constants are alive for the whole run: the peak lists each once, shared or not.
    let resident = peak.iter().flat_map(|peak| &peak.rows).filter(|row| row.role.is_resident());
    let resident = resident.map(|row| (row.bytes, json(&AsJson(row))));
    let pieces = report.pieces(0).into_iter().filter(|piece| (piece.first..=piece.last).contains(&step));
    let mut alive: Vec<(u64, Value)> =
        resident.chain(pieces.map(|piece| (piece.row.value.bytes, described(&piece.row)))).collect();
    let (count, live_bytes) = (alive.len(), alive.iter().map(|(bytes, _)| *bytes).fold(0, u64::saturating_add));
    alive.sort_by_key(|(bytes, _)| Reverse(*bytes));
    alive.truncate(moment.most.unwrap_or(ROWS));
    Ok(json!({
        "program": report.module_name,
        "step": step.saturating_add(1),
        "steps": order.len(),
        "instruction": order.get(step),
        "live_bytes": live_bytes,
        "count": count,
        "alive": alive.into_iter().map(|(_, row)| row).collect::<Vec<_>>(),
    }))
}

pub(super) fn find_buffers(query: &Query, access: &Access) -> Answer {
    let audited = query.program.audited(access)?;
    let report = planned(&audited.report)?;
    let wanted = query.query.to_lowercase();
    let mut origins = Origins::default();
    let is_found = |row: &PlanRow<'_>| {
        let (op_name, source) = &*origins.of(row);
        let line = source.as_ref().map(|source| format!("{}:{}", source.file, source.line));
        let shape = row.shape().map(|shape| shape.to_string());
        let own = [row.instruction.name(), row.instruction.opcode_text()];
        let own = own.into_iter().map(str::to_owned);
        own.chain(op_name.clone()).chain(line).chain(shape).any(|text| text.to_lowercase().contains(&wanted))
    };
    let found: Vec<PlanRow<'_>> = report.plan_rows().filter(is_found).collect();
    Ok(json!({
        "program": report.module_name,
        "count": found.len(),
        "bytes": found.iter().map(|row| row.value.bytes).fold(0, u64::saturating_add),
        "buffers": largest(found, query.most),
        "next": [next("what_is_alive", query.program.again(), "what else is alive at a step")],
    }))
}

pub(super) fn diff(pair: &Pair, access: &Access) -> Answer {
    let (before, after) = (pair.before.audited(access)?, pair.after.audited(access)?);
    let compared = Comparison::of_reports(&before.report, &after.report, Allowed::default()).advised(&after.report);
    let mut answer = json(&compared.shortened(ROWS));
    for side in ["before", "after"] {
        // Different owners are among the changes.
        answer[side].as_object_mut().map(|program| program.remove("owners"));
    }
    answer["next"] = json!([next("audit", pair.after.again(), "what to change further")]);
    Ok(answer)
}

/// The report, if there is a memory plan.
fn planned(report: &Report) -> Result<&Report, Failure> {
    match report.plan() {
        Ok(_) => Ok(report),
        Err(error) => Err(Failure::new("no_plan", format!("no memory plan: {error}"))),
    }
}

/// The `most` largest rows, [`ROWS`] by default.
fn largest(mut rows: Vec<PlanRow<'_>>, most: Option<usize>) -> Vec<Value> {
    rows.sort_by_key(|row| Reverse(row.value.bytes));
    rows.truncate(most.unwrap_or(ROWS));
    rows.iter().map(described).collect()
}

fn described(row: &PlanRow<'_>) -> Value {
    let (op_name, source) = row.origin();
    json!({
        "instruction": row.instruction.name(),
        "opcode": row.instruction.opcode_text(),
        "shape": row.shape().map(|shape| shape.to_string()),
        "memory_space": memory_space_name(row.memory_space),
        "role": row.value.role.as_str(),
        "bytes": row.value.bytes,
        "padding_bytes": row.padding_bytes(),
        "first_step": row.value.first.saturating_add(1),
        "last_step": row.value.last.saturating_add(1),
        "op_name": op_name,
        "source": source.as_ref().map(AsJson),
    })
}
