//! Instructions as XLA prints them (`HloInstruction::PrintWithCanonicalNameMap` and the `PrintExtraAttributes` of
//! xla/hlo/ir/hlo_instruction.cc and hlo_instructions.cc), without the attributes that no analysis here needs.

use std::fmt::Write as _;

use super::computation::{Computation, Computations, shape};
use super::messages::{HloInstructionProto, LiteralProto, OpMetadata};
use super::text::{Braced, Quoted, Text};
use super::{dimension_numbers, invalid, is_name};
use crate::error::Error;
use crate::scan::balanced_end;

/// The context of an instruction.
pub(super) struct Scope<'p> {
    computation: &'p Computation,
    computations: &'p Computations,
    /// For each instruction, the computation that it wraps, or for an update or done, that its start wraps.
    wrapped: Vec<Option<&'p Computation>>,
}

impl<'p> Scope<'p> {
    pub(super) fn of(computation: &'p Computation, computations: &'p Computations) -> Result<Self, Error> {
        let mut wrapped: Vec<Option<&Computation>> = vec![None; computation.heads.len()];
        // Operands come before their users.
        for (at, head) in computation.heads.iter().enumerate().filter(|(_, head)| head.opcode.starts_with("async-")) {
            let instruction = computation.instruction(at)?;
            let called = instruction.called_computation_ids.first().and_then(|id| computations.get(*id));
            let earlier = instruction.operand_ids.first().and_then(|id| computation.position(*id));
            let inherited = earlier.filter(|_| head.opcode != "async-start").and_then(|earlier| wrapped[earlier]);
            wrapped[at] = called.or(inherited);
        }
        Ok(Self { computation, computations, wrapped })
    }

    /// The one instruction that an async instruction is printed with.
    fn expanded(&self, instruction: &HloInstructionProto) -> Option<&'p HloInstructionProto> {
        let at = self.computation.position(instruction.id)?;
        self.wrapped.get(at).copied().flatten()?.single_instruction.as_ref()
    }
}

/// Writes `%name = shape opcode(operands), attributes`.
pub(super) fn write(instruction: &HloInstructionProto, scope: &Scope<'_>, out: &mut Text) -> Result<(), Error> {
    write!(out, "%{} = {} ", instruction.name, shape(&instruction.shape)?)?;
    let expanded = scope.expanded(instruction);
    match (expanded, instruction.opcode.strip_prefix("async")) {
        (Some(inner), Some(suffix)) => write!(out, "{}{suffix}(", inner.opcode)?,
        _ => write!(out, "{}(", instruction.opcode)?,
    }
    operands(instruction, scope, out)?;
    out.write_str(")")?;
    // The instruction that a start runs is printed with the start, and not again.
    let own = match (expanded, instruction.opcode.as_str()) {
        (Some(inner), "async-start") => Some(inner),
        (Some(_), _) => None,
        (None, _) => Some(instruction),
    };
    if let Some(own) = own {
        attributes(own, scope, out)?;
        aliasing(own, out)?;
    }
    if instruction.opcode == "async-start" && !matches!(instruction.async_execution_thread.as_str(), "" | "main") {
        write!(out, ", async_execution_thread={}", Quoted(instruction.async_execution_thread.as_bytes()))?;
    }
    if let Some(metadata) = &instruction.metadata {
        self::metadata(metadata, out)?;
    }
    backend_config(&instruction.backend_config, out)
}

fn operands(instruction: &HloInstructionProto, scope: &Scope<'_>, out: &mut Text) -> Result<(), Error> {
    match instruction.opcode.as_str() {
        "parameter" => write!(out, "{}", instruction.parameter_number)?,
        "constant" => match instruction.literal.as_ref().and_then(scalar) {
            Some(number) => out.write_str(&number)?,
            None => out.write_str("{...}")?,
        },
        _ => {
            for (at, id) in instruction.operand_ids.iter().enumerate() {
                let position = scope.computation.position(*id);
                let Some(operand) = position.and_then(|position| scope.computation.heads.get(position)) else {
                    return Err(invalid(format!("`{}` has an operand that doesn't exist", instruction.name)));
                };
                let comma = if at > 0 { ", " } else { "" };
                write!(out, "{comma}%{}", operand.name)?;
            }
        }
    }
    Ok(())
}

/// The number of a literal that is one number.
fn scalar(literal: &LiteralProto) -> Option<String> {
    let LiteralProto { preds, s32s, s64s, u32s, u64s, f32s, u8s, s8s, u16s, s16s } = literal;
    match (preds.as_slice(), s32s.as_slice(), s64s.as_slice(), u32s.as_slice(), u64s.as_slice(), f32s.as_slice()) {
        ([value], ..) => return Some(value.to_string()),
        (_, [value], ..) => return Some(value.to_string()),
        (_, _, [value], ..) => return Some(value.to_string()),
        (_, _, _, [value], ..) => return Some(value.to_string()),
        (_, _, _, _, [value], _) => return Some(value.to_string()),
        (.., [value]) => return Some(value.to_string()),
        _ => {}
    }
    match (&u8s[..], &s8s[..], &u16s[..], &s16s[..]) {
        ([value], ..) => Some(value.to_string()),
        (_, [value], ..) => Some(value.cast_signed().to_string()),
        (_, _, [low, high], _) => Some(u16::from_le_bytes([*low, *high]).to_string()),
        (.., [low, high]) => Some(i16::from_le_bytes([*low, *high]).to_string()),
        _ => None,
    }
}

fn attributes(instruction: &HloInstructionProto, scope: &Scope<'_>, out: &mut Text) -> Result<(), Error> {
    let opcode = instruction.opcode.as_str();
    match opcode {
        "get-tuple-element" => write!(out, ", index={}", instruction.tuple_index)?,
        "iota" => {
            if let Some(dimension) = instruction.dimensions.first() {
                write!(out, ", iota_dimension={dimension}")?;
            }
        }
        "slice" => slice(instruction, out)?,
        "dynamic-slice" => write!(out, ", dynamic_slice_sizes={}", Braced(&instruction.dynamic_slice_sizes))?,
        "compare" if is_name(instruction.comparison_direction.as_bytes()) => {
            write!(out, ", direction={}", instruction.comparison_direction)?;
        }
        "fusion" if is_name(instruction.fusion_kind.as_bytes()) => write!(out, ", kind={}", instruction.fusion_kind)?,
        "convolution" => dimension_numbers::convolution(instruction, out)?,
        "dot" => dimension_numbers::dot(instruction, out)?,
        "gather" => dimension_numbers::gather(instruction, out)?,
        "scatter" => dimension_numbers::scatter(instruction, out)?,
        "pad" => dimension_numbers::padding(instruction, out)?,
        "reduce-window" | "select-and-scatter" => dimension_numbers::sliding(instruction, out)?,
        "fft" => write!(out, ", fft_length={}", Braced(&instruction.fft_length))?,
        "custom-call" => {
            write!(out, ", custom_call_target={}", Quoted(instruction.custom_call_target.as_bytes()))?;
        }
        _ if !instruction.dimensions.is_empty() || opcode == "broadcast" => {
            write!(out, ", dimensions={}", Braced(&instruction.dimensions))?;
        }
        _ => {}
    }
    if instruction.channel_id > 0 {
        write!(out, ", channel_id={}", instruction.channel_id)?;
    }
    if instruction.is_host_transfer {
        write!(out, ", is_host_transfer=true")?;
    }
    if let Some(index) = instruction.cross_program_prefetch_index {
        write!(out, ", cross_program_prefetch_index={index}")?;
    }
    called(instruction, scope, out)
}

fn slice(instruction: &HloInstructionProto, out: &mut Text) -> Result<(), Error> {
    write!(out, ", slice={{")?;
    for (at, slice) in instruction.slice_dimensions.iter().enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        write!(out, "{comma}[{}:{}", slice.start, slice.limit)?;
        if slice.stride != 1 {
            write!(out, ":{}", slice.stride)?;
        }
        out.write_str("]")?;
    }
    Ok(out.write_str("}")?)
}

/// The computations an instruction calls, each under the name of its role.
fn called(instruction: &HloInstructionProto, scope: &Scope<'_>, out: &mut Text) -> Result<(), Error> {
    let name = |id: &i64| match scope.computations.get(*id) {
        Some(computation) => Ok(format!("%{}", computation.proto.name)),
        None => Err(invalid(format!("`{}` calls a computation that doesn't exist", instruction.name))),
    };
    let names = instruction.called_computation_ids.iter().map(name).collect::<Result<Vec<_>, _>>()?;
    match (instruction.opcode.as_str(), names.as_slice()) {
        (_, []) | ("async-update" | "async-done", _) => {}
        ("while", [body, condition]) => write!(out, ", condition={condition}, body={body}")?,
        ("select-and-scatter", [select, scatter]) => write!(out, ", select={select}, scatter={scatter}")?,
        ("conditional", names) => write!(out, ", branch_computations={{{}}}", names.join(", "))?,
        ("custom-call", names) => write!(out, ", called_computations={{{}}}", names.join(", "))?,
        ("fusion" | "async-start", [callee]) => write!(out, ", calls={callee}")?,
        (_, [callee]) => write!(out, ", to_apply={callee}")?,
        (_, names) => write!(out, ", calls={{{}}}", names.join(", "))?,
    }
    Ok(())
}

fn aliasing(instruction: &HloInstructionProto, out: &mut Text) -> Result<(), Error> {
    for (at, alias) in instruction.output_operand_aliasing.iter().enumerate() {
        out.write_str(if at == 0 { ", output_to_operand_aliasing={" } else { ", " })?;
        let (output, operand) = (Braced(&alias.output_shape_index), Braced(&alias.operand_shape_index));
        write!(out, "{output}: ({}, {operand})", alias.operand_index)?;
    }
    if !instruction.output_operand_aliasing.is_empty() {
        out.write_str("}")?;
    }
    Ok(())
}

fn metadata(metadata: &OpMetadata, out: &mut Text) -> Result<(), Error> {
    let OpMetadata { op_type, op_name, source_file, source_line, stack_frame_id } = metadata;
    let mut blank = "";
    out.write_str(", metadata={")?;
    for (name, value) in [("op_type", op_type), ("op_name", op_name), ("source_file", source_file)] {
        if !value.is_empty() {
            write!(out, "{blank}{name}={}", Quoted(value.as_bytes()))?;
            blank = " ";
        }
    }
    for (name, value) in [("source_line", source_line), ("stack_frame_id", stack_frame_id)] {
        if *value != 0 {
            write!(out, "{blank}{name}={value}")?;
            blank = " ";
        }
    }
    Ok(out.write_str("}")?)
}

/// JSON as it is, anything else in quotes. JSON's strings hold no line feeds, so those between them become blanks.
fn backend_config(config: &[u8], out: &mut Text) -> Result<(), Error> {
    if config.is_empty() {
        return Ok(());
    }
    let is_object = config.starts_with(b"{") && balanced_end(config, 0, false) == Ok(config.len());
    match std::str::from_utf8(config) {
        Ok(json) if is_object => write!(out, ", backend_config={}", json.replace(['\n', '\r'], " "))?,
        _ => write!(out, ", backend_config={}", Quoted(config))?,
    }
    Ok(())
}
