//! Modules and computations as XLA prints them (`HloModule::Print` in xla/hlo/ir/hlo_module.cc).

use std::fmt::Write as _;

use prost::Message;

use super::computation::{Computation, Computations, shape};
use super::instruction::{self, Scope};
use super::messages::{AliasEntryProto, HloModuleProto, InstructionSequence, ProgramShapeProto, StackFrameIndexProto};
use super::text::{Braced, Quoted, Text};
use super::{invalid, undecodable};
use crate::error::Error;

/// The text of a module whose proto has `bytes` bytes.
pub(super) fn module(module: &HloModuleProto, computations: &Computations, bytes: usize) -> Result<String, Error> {
    let mut out = Text::new(bytes);
    header(module, &mut out)?;
    if let Some(index) = &module.stack_frame_index {
        tables(index, &mut out)?;
    }
    for computation in computations.list.iter().filter(|computation| computation.single_instruction.is_none()) {
        out.write_str("\n")?;
        let proto = &computation.proto;
        let is_entry = match module.entry_computation_id {
            0 => proto.name == module.entry_computation_name,
            id => proto.id == id,
        };
        let mark = if is_entry { "ENTRY " } else { "" };
        writeln!(out, "{mark}%{} {{", proto.name)?;
        let scope = Scope::of(computation, computations)?;
        for at in order(module, computation)? {
            let instruction = computation.instruction(at)?;
            let root = if instruction.id == proto.root_id { "ROOT " } else { "" };
            write!(out, "  {root}")?;
            instruction::write(&instruction, &scope, &mut out)?;
            out.write_str("\n")?;
        }
        match proto.execution_thread.as_str() {
            "" | "main" => writeln!(out, "}}")?,
            thread => writeln!(out, "}}, execution_thread={}", Quoted(thread.as_bytes()))?,
        }
    }
    Ok(out.finish())
}

fn header(module: &HloModuleProto, out: &mut Text) -> Result<(), Error> {
    let blank = |c: char| c.is_whitespace() || c == ',' || c.is_control();
    write!(out, "HloModule {}", module.name.replace(blank, "_"))?;
    if module.schedule.is_some() {
        write!(out, ", is_scheduled=true")?;
    }
    if let Some(alias) = module.input_output_alias.as_ref().filter(|alias| !alias.entries.is_empty()) {
        write!(out, ", input_output_alias={{ ")?;
        for (at, entry) in alias.entries.iter().enumerate() {
            let AliasEntryProto { output_shape_index: output, parameter_number: number, .. } = entry;
            let comma = if at > 0 { ", " } else { "" };
            let index = Braced(&entry.parameter_shape_index);
            let kind = if entry.kind == 2 { "must-alias" } else { "may-alias" };
            write!(out, "{comma}{}: ({number}, {index}, {kind})", Braced(output))?;
        }
        write!(out, " }}")?;
    }
    if let Some(ProgramShapeProto { parameters, result }) = &module.host_program_shape {
        write!(out, ", entry_computation_layout={{(")?;
        for (at, parameter) in parameters.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(out, "{comma}{}", shape(parameter)?)?;
        }
        write!(out, ")->{}}}", shape(result)?)?;
    }
    if let Some(devices) = &module.device_assignment {
        for (name, count) in [("replica_count", devices.replica_count), ("num_partitions", devices.computation_count)] {
            if count > 1 {
                write!(out, ", {name}={count}")?;
            }
        }
    }
    Ok(writeln!(out)?)
}

/// The tables of source lines. A text counts parents from one more than a proto does.
fn tables(index: &StackFrameIndexProto, out: &mut Text) -> Result<(), Error> {
    for (title, names) in [("FileNames", &index.file_names), ("FunctionNames", &index.function_names)] {
        writeln!(out, "\n{title}")?;
        for (at, name) in (1..).zip(names) {
            writeln!(out, "{at} {}", Quoted(name.as_bytes()))?;
        }
    }
    writeln!(out, "\nFileLocations")?;
    for (at, location) in (1..).zip(&index.file_locations) {
        let (file, function, line) = (location.file_name_id, location.function_name_id, location.line);
        writeln!(out, "{at} {{file_name_id={file} function_name_id={function} line={line}}}")?;
    }
    writeln!(out, "\nStackFrames")?;
    for (at, frame) in (1..).zip(&index.stack_frames) {
        let (location, parent) = (frame.file_location_id, frame.parent_frame_id.saturating_add(1));
        writeln!(out, "{at} {{file_location_id={location} parent_frame_id={parent}}}")?;
    }
    Ok(writeln!(out)?)
}

/// The instructions in the order of the text: the schedule's, where there is one.
fn order(module: &HloModuleProto, computation: &Computation) -> Result<Vec<usize>, Error> {
    let sequences = module.schedule.as_ref().map(|schedule| &schedule.sequences);
    let count = computation.proto.instructions.len();
    let Some(sequence) = sequences.and_then(|sequences| sequences.get(&computation.proto.id)) else {
        return Ok((0..count).collect());
    };
    let sequence = InstructionSequence::decode(sequence.as_slice()).map_err(|error| undecodable(&error))?;
    let order: Option<Vec<usize>> = sequence.instruction_ids.iter().map(|id| computation.position(*id)).collect();
    let mut seen = vec![false; count];
    let is_new = |at: &usize| !std::mem::replace(&mut seen[*at], true);
    match order {
        Some(order) if order.len() == count && order.iter().all(is_new) => Ok(order),
        _ => Err(invalid(format!("the schedule of `{}` doesn't name each instruction once", computation.proto.name))),
    }
}
