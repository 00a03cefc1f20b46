//! A module's message in XLA's notation (`HloModule::Print` in xla/hlo/ir/hlo_module.cc and what it calls).

use super::{
    invalid,
    messages::{
        HloComputationProto, HloInstructionProto, HloModuleProto, LiteralProto, OpMetadata, StackFrameIndexProto,
    },
};
use crate::error::{Error, ErrorKind};
use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};
use tilewise::Shape;

pub(super) fn module(module: &HloModuleProto) -> Result<String, Error> {
    let started = |instruction: &HloInstructionProto| {
        (instruction.opcode == "async-start").then(|| instruction.called_computation_ids.first().copied()).flatten()
    };
    let instructions = module.computations.iter().flat_map(|computation| &computation.instructions);
    let printer = Printer {
        computations: module.computations.iter().map(|computation| (computation.id, computation)).collect(),
        started: instructions.filter_map(started).collect(),
        module,
    };
    let mut out = String::new();
    printer.header(&mut out)?;
    if let Some(index) = &module.stack_frame_index {
        tables(index, &mut out);
    }
    for computation in module.computations.iter().filter(|computation| !printer.is_abbreviated(computation)) {
        printer.computation(computation, &mut out)?;
    }
    Ok(out)
}

struct Printer<'p> {
    module: &'p HloModuleProto,
    computations: HashMap<i64, &'p HloComputationProto>,
    /// The computations that asynchronous pairs run.
    started: HashSet<i64>,
}

impl<'p> Printer<'p> {
    fn header(&self, out: &mut String) -> Result<(), Error> {
        let module = self.module;
        *out += "HloModule ";
        *out += name(&module.name)?;
        if module.schedule.as_ref().is_some_and(|schedule| !schedule.sequences.is_empty()) {
            *out += ", is_scheduled=true";
        }
        if let Some(alias) = module.input_output_alias.as_ref().filter(|alias| !alias.entries.is_empty()) {
            let entries = alias.entries.iter().map(|entry| {
                let kind = if entry.kind == MUST_ALIAS { "must-alias" } else { "may-alias" };
                let (output, parameter) = (path(&entry.output_shape_index), path(&entry.parameter_shape_index));
                format!("{output}: ({}, {parameter}, {kind})", entry.parameter_number)
            });
            *out += &format!(", input_output_alias={{ {} }}", entries.collect::<Vec<_>>().join(", "));
        }
        if let Some(shape) = &module.host_program_shape {
            let parameters = shape.parameters.iter().map(|bytes| self.shape(bytes, "the entry's layout"));
            let parameters = parameters.collect::<Result<Vec<_>, _>>()?.join(", ");
            let result = self.shape(&shape.result, "the entry's layout")?;
            *out += &format!(", entry_computation_layout={{({parameters})->{result}}}");
        }
        if let Some(devices) = &module.device_assignment {
            for (key, count) in
                [("replica_count", devices.replica_count), ("num_partitions", devices.computation_count)]
            {
                if count > 1 {
                    *out += &format!(", {key}={count}");
                }
            }
        }
        *out += "\n\n";
        Ok(())
    }

    fn computation(&self, computation: &'p HloComputationProto, out: &mut String) -> Result<(), Error> {
        let entry = if computation.id == self.module.entry_computation_id { "ENTRY " } else { "" };
        *out += &format!("{entry}%{} {{\n", name(&computation.name)?);
        let by_id: HashMap<i64, &HloInstructionProto> = computation.instructions.iter().map(|i| (i.id, i)).collect();
        let schedule = self.module.schedule.as_ref().and_then(|schedule| schedule.sequences.get(&computation.id));
        // A schedule that leaves something out isn't one.
        let scheduled: Option<Vec<_>> = schedule
            .filter(|schedule| schedule.instruction_ids.len() == computation.instructions.len())
            .and_then(|schedule| schedule.instruction_ids.iter().map(|id| by_id.get(id).copied()).collect());
        for instruction in scheduled.unwrap_or_else(|| computation.instructions.iter().collect()) {
            *out += if instruction.id == computation.root_id { "  ROOT " } else { "  " };
            self.instruction(instruction, &by_id, out)?;
        }
        *out += "}";
        if !matches!(computation.execution_thread.as_str(), "" | "main") {
            *out += &format!(", execution_thread={}", quoted(&computation.execution_thread));
        }
        *out += "\n\n";
        Ok(())
    }

    fn instruction(
        &self,
        instruction: &'p HloInstructionProto,
        by_id: &HashMap<i64, &'p HloInstructionProto>,
        out: &mut String,
    ) -> Result<(), Error> {
        let shape = self.shape(&instruction.shape, &instruction.name)?;
        // An asynchronous pair around one instruction is written as that instruction's.
        let wrapped = self.wrapped(instruction, by_id);
        let opcode = match (wrapped, instruction.opcode.strip_prefix("async")) {
            (Some(wrapped), Some(suffix)) => format!("{}{suffix}", name(&wrapped.opcode)?),
            _ => name(&instruction.opcode)?.to_owned(),
        };
        *out += &format!("%{} = {shape} {opcode}(", name(&instruction.name)?);
        match instruction.opcode.as_str() {
            "parameter" => *out += &instruction.parameter_number.to_string(),
            "constant" => *out += &instruction.literal.as_ref().and_then(scalar).unwrap_or_else(|| "{...}".to_owned()),
            _ => {
                for (k, id) in instruction.operand_ids.iter().enumerate() {
                    let operand = by_id.get(id).ok_or_else(|| {
                        invalid(format!(
                            "`{}` reads an instruction that its computation doesn't have",
                            instruction.name
                        ))
                    })?;
                    *out += if k == 0 { "%" } else { ", %" };
                    *out += name(&operand.name)?;
                }
            }
        }
        *out += ")";
        let attributes_of = wrapped.filter(|_| opcode.ends_with("-start")).unwrap_or(instruction);
        self.attributes(attributes_of, out)?;
        if !matches!(instruction.async_execution_thread.as_str(), "" | "main") && opcode.ends_with("-start") {
            *out += &format!(", async_execution_thread={}", quoted(&instruction.async_execution_thread));
        }
        if let Some(metadata) = instruction.metadata.as_ref().or_else(|| wrapped?.metadata.as_ref()) {
            print_metadata(metadata, out);
        }
        let config = [Some(instruction), wrapped].into_iter().flatten().find(|i| !i.backend_config.is_empty());
        if let Some(config) = config.and_then(|instruction| std::str::from_utf8(&instruction.backend_config).ok()) {
            let config = if config.starts_with('{') { config.replace('\n', " ") } else { quoted(config) };
            *out += &format!(", backend_config={config}");
        }
        *out += "\n";
        Ok(())
    }

    fn attributes(&self, instruction: &HloInstructionProto, out: &mut String) -> Result<(), Error> {
        if !instruction.dimensions.is_empty() {
            *out += &format!(", dimensions={}", path(&instruction.dimensions));
        }
        match instruction.opcode.as_str() {
            "get-tuple-element" => *out += &format!(", index={}", instruction.tuple_index),
            "fusion" if !instruction.fusion_kind.is_empty() => {
                *out += &format!(", kind={}", name(&instruction.fusion_kind)?);
            }
            "compare" if !instruction.comparison_direction.is_empty() => {
                *out += &format!(", direction={}", name(&instruction.comparison_direction)?);
            }
            "custom-call" => *out += &format!(", custom_call_target={}", quoted(&instruction.custom_call_target)),
            _ => {}
        }
        if instruction.channel_id > 0 {
            *out += &format!(", channel_id={}", instruction.channel_id);
        }
        let aliases: Vec<String> = instruction
            .output_operand_aliasing
            .iter()
            .map(|alias| {
                let (output, operand) = (path(&alias.output_shape_index), path(&alias.operand_shape_index));
                format!("{output}: ({}, {operand})", alias.operand_index)
            })
            .collect();
        if !aliases.is_empty() {
            *out += &format!(", output_to_operand_aliasing={{{}}}", aliases.join(", "));
        }
        self.calls(instruction, out)
    }

    fn calls(&self, instruction: &HloInstructionProto, out: &mut String) -> Result<(), Error> {
        let called = instruction.called_computation_ids.iter().filter_map(|id| self.computations.get(id));
        let called = called.map(|computation| name(&computation.name)).collect::<Result<Vec<_>, _>>()?;
        match (instruction.opcode.as_str(), called.as_slice()) {
            (_, []) => {}
            ("while", [body, condition, ..]) => *out += &format!(", condition=%{condition}, body=%{body}"),
            ("select-and-scatter", [select, scatter, ..]) => *out += &format!(", select=%{select}, scatter=%{scatter}"),
            ("conditional", branches) => *out += &format!(", branch_computations={{%{}}}", branches.join(", %")),
            ("fusion" | "async-start", [body, ..]) => *out += &format!(", calls=%{body}"),
            ("async-update" | "async-done", _) => {}
            ("custom-call", all) => *out += &format!(", called_computations={{%{}}}", all.join(", %")),
            (_, [applied, ..]) => *out += &format!(", to_apply=%{applied}"),
        }
        Ok(())
    }

    /// The one instruction of the computation that an asynchronous instruction runs, if it is one.
    fn wrapped(
        &self,
        instruction: &'p HloInstructionProto,
        by_id: &HashMap<i64, &'p HloInstructionProto>,
    ) -> Option<&'p HloInstructionProto> {
        let mut start = instruction;
        let mut left = by_id.len();
        while matches!(start.opcode.as_str(), "async-update" | "async-done") && start.called_computation_ids.is_empty()
        {
            start = by_id.get(start.operand_ids.first()?)?;
            left = left.checked_sub(1)?;
        }
        if !start.opcode.starts_with("async-") {
            return None;
        }
        let computation = self.computations.get(start.called_computation_ids.first()?)?;
        root_of_one(computation)
    }

    /// Whether the text leaves a computation out: an asynchronous pair's, of one instruction.
    fn is_abbreviated(&self, computation: &HloComputationProto) -> bool {
        self.started.contains(&computation.id) && root_of_one(computation).is_some()
    }

    fn shape(&self, bytes: &[u8], of: &str) -> Result<String, Error> {
        let shape = Shape::decode_proto(bytes).map_err(|error| {
            let message = format!("the shape of `{of}` isn't valid: {error}");
            Error::new(ErrorKind::Shape, None, message).caused_by(error)
        })?;
        Ok(shape.to_string())
    }
}

/// `Kind` of hlo.proto.
const MUST_ALIAS: i32 = 2;

/// The root, if everything else is a parameter.
fn root_of_one(computation: &HloComputationProto) -> Option<&HloInstructionProto> {
    let mut root = None;
    for instruction in &computation.instructions {
        if instruction.id == computation.root_id {
            root = Some(instruction);
        } else if instruction.opcode != "parameter" {
            return None;
        }
    }
    root
}

/// A name as texts have them: one that could be taken for something else is refused.
fn name(name: &str) -> Result<&str, Error> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() || !name.chars().all(fits) {
        return Err(invalid(format!("`{}` can't be a name in HLO text", name.escape_debug())));
    }
    Ok(name)
}

fn path(index: &[i64]) -> String {
    format!("{{{}}}", index.iter().map(i64::to_string).collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out += "\\n",
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The text of a literal of one integer or truth value.
fn scalar(literal: &LiteralProto) -> Option<String> {
    let LiteralProto { preds, s32s, s64s, u32s, u64s } = literal;
    match (preds.as_slice(), s32s.as_slice(), s64s.as_slice(), u32s.as_slice(), u64s.as_slice()) {
        ([value], [], [], [], []) => Some(value.to_string()),
        ([], [value], [], [], []) => Some(value.to_string()),
        ([], [], [value], [], []) => Some(value.to_string()),
        ([], [], [], [value], []) => Some(value.to_string()),
        ([], [], [], [], [value]) => Some(value.to_string()),
        _ => None,
    }
}

fn print_metadata(metadata: &OpMetadata, out: &mut String) {
    let mut parts = Vec::new();
    if !metadata.op_name.is_empty() {
        parts.push(format!("op_name={}", quoted(&metadata.op_name)));
    }
    if !metadata.source_file.is_empty() {
        parts.push(format!("source_file={}", quoted(&metadata.source_file)));
    }
    if metadata.source_line > 0 {
        parts.push(format!("source_line={}", metadata.source_line));
    }
    if metadata.stack_frame_id > 0 {
        parts.push(format!("stack_frame_id={}", metadata.stack_frame_id));
    }
    if !parts.is_empty() {
        *out += &format!(", metadata={{{}}}", parts.join(" "));
    }
}

fn tables(index: &StackFrameIndexProto, out: &mut String) {
    let mut table = |title: &str, rows: &mut dyn Iterator<Item = String>| {
        *out += &format!("{title}\n");
        for (number, row) in rows.enumerate() {
            // Writing to a string can't fail.
            let _ = writeln!(out, "{} {row}", number + 1);
        }
        *out += "\n";
    };
    table("FileNames", &mut index.file_names.iter().map(|file| quoted(file)));
    table("FunctionNames", &mut index.function_names.iter().map(|function| quoted(function)));
    let location = |location: &super::messages::FileLocation| {
        format!(
            "{{file_name_id={} function_name_id={} line={} column={}}}",
            location.file_name_id, location.function_name_id, location.line, location.column
        )
    };
    table("FileLocations", &mut index.file_locations.iter().map(location));
    let frame = |frame: &super::messages::StackFrame| {
        // XLA prints the parent one higher than it is in the message.
        let parent = i64::from(frame.parent_frame_id) + 1;
        format!("{{file_location_id={} parent_frame_id={parent}}}", frame.file_location_id)
    };
    table("StackFrames", &mut index.stack_frames.iter().map(frame));
}
