//! Modules and computations as XLA prints them (`HloModule::Print` in xla/hlo/ir/hlo_module.cc).

use std::collections::HashMap;
use std::fmt::Write as _;

use prost::Message;
use prost::bytes::Bytes;
use tilewise::Shape;

use super::instruction::{self, Scope};
use super::messages::{
    AliasEntryProto, HloComputationProto, HloInstructionProto, HloModuleProto, InstructionHead, InstructionSequence,
    ProgramShapeProto, StackFrameIndexProto,
};
use super::text::{Braced, Quoted, Text};
use super::{invalid, is_name, undecodable};
use crate::error::Error;

/// The text of a module that takes so many bytes.
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

/// The shape in a message, as text.
pub(super) fn shape(bytes: &Bytes) -> Result<Shape, Error> {
    Shape::decode_proto(bytes).map_err(|error| invalid(format!("a shape isn't valid: {error}")).caused_by(error))
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

/// A computation, with what others need to know of it.
pub(super) struct Computation {
    pub(super) proto: HloComputationProto,
    pub(super) heads: Vec<InstructionHead>,
    positions: HashMap<i64, usize>,
    /// Where it is only there to be wrapped by an async instruction: the one instruction beside its parameters, which
    /// the text gives to the async instruction (`HloComputation::CanExpandIntoSingleInstruction`).
    pub(super) single_instruction: Option<HloInstructionProto>,
}

impl Computation {
    fn of(bytes: &Bytes) -> Result<Self, Error> {
        let proto = HloComputationProto::decode(bytes.clone()).map_err(|error| undecodable(&error))?;
        check_name(&proto.name)?;
        let head = |bytes: &Bytes| {
            let head = InstructionHead::decode(bytes.clone()).map_err(|error| undecodable(&error))?;
            check_name(&head.name)?;
            check_name(&head.opcode)?;
            Ok(head)
        };
        let heads = proto.instructions.iter().map(head).collect::<Result<Vec<_>, Error>>()?;
        let positions = heads.iter().enumerate().map(|(at, head)| (head.id, at)).collect();
        Ok(Self { proto, heads, positions, single_instruction: None })
    }

    /// Where the instruction of this id stands.
    pub(super) fn position(&self, id: i64) -> Option<usize> {
        self.positions.get(&id).copied()
    }

    pub(super) fn instruction(&self, at: usize) -> Result<HloInstructionProto, Error> {
        let bytes = self.proto.instructions.get(at).cloned().unwrap_or_default();
        HloInstructionProto::decode(bytes).map_err(|error| undecodable(&error))
    }

    /// The root, if all others are parameters.
    fn only_root(&self) -> Option<usize> {
        let root = self.position(self.proto.root_id)?;
        let others = self.heads.iter().enumerate().filter(|(at, _)| *at != root);
        others.into_iter().all(|(_, head)| head.opcode == "parameter").then_some(root)
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    if is_name(name.as_bytes()) {
        return Ok(());
    }
    let start: String = name.chars().take(80).collect();
    Err(invalid(format!("`{}` can't be a name in HLO", start.escape_debug())))
}

/// All computations of a module.
pub(super) struct Computations {
    list: Vec<Computation>,
    positions: HashMap<i64, usize>,
}

impl Computations {
    /// Reads them. If `is_short`, async instructions are to be printed in their short form.
    pub(super) fn of(module: &HloModuleProto, is_short: bool) -> Result<Self, Error> {
        let list = module.computations.iter().map(Computation::of).collect::<Result<Vec<_>, _>>()?;
        let positions = list.iter().enumerate().map(|(at, computation)| (computation.proto.id, at)).collect();
        let mut computations = Self { list, positions };
        let wrapped = if is_short { computations.wrapped()? } else { Vec::new() };
        for position in wrapped {
            let computation = &computations.list[position];
            if let Some(root) = computation.only_root() {
                computations.list[position].single_instruction = Some(computation.instruction(root)?);
            }
        }
        Ok(computations)
    }

    /// The computations that async instructions wrap.
    fn wrapped(&self) -> Result<Vec<usize>, Error> {
        let mut wrapped = Vec::new();
        for computation in &self.list {
            for (at, _) in computation.heads.iter().enumerate().filter(|(_, head)| head.opcode == "async-start") {
                let called = computation.instruction(at)?.called_computation_ids;
                wrapped.extend(called.first().and_then(|id| self.positions.get(id)));
            }
        }
        Ok(wrapped)
    }

    /// The names of all instructions by their ids, which are unique in a module.
    pub(super) fn instruction_names(&self) -> HashMap<i64, &str> {
        let heads = self.list.iter().flat_map(|computation| &computation.heads);
        heads.map(|head| (head.id, head.name.as_str())).collect()
    }

    pub(super) fn get(&self, id: i64) -> Option<&Computation> {
        self.list.get(*self.positions.get(&id)?)
    }
}
