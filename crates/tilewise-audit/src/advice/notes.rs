//! Contents of a program's memory at its peak, by purpose: without savings, which no plan of this program shows.

use super::{
    finding::Checkpointed,
    kept::KeptValue,
    layers::Layers,
    program::{LiveArray, ProgramModel},
    rules::Vocabulary,
};
use crate::program::{
    Purpose, SourceLine, is_backward, is_recomputed, name, numbered, of_argument, op_name, source_line, traced,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use tilewise::ElementType;
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::{AssignedValue, Role};

/// All arrays of one purpose that take much of a program's memory at its peak.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// Their purpose.
    pub purpose: Purpose,
    /// Bytes they take.
    pub bytes: u64,
    /// Percentage of the program's bytes, rounded down.
    pub percent: u64,
    /// Whether they take at least half of the largest kind's bytes: otherwise shrinking them hardly matters.
    pub is_main: bool,
    /// The parts of the program's arguments that they belong to, such as `state.opt_state`; library routines for a
    /// workspace.
    pub names: Vec<String>,
    /// The shape of the largest array, and its line.
    pub largest: Option<(String, Option<SourceLine>)>,
    /// The layers that keep most of them.
    pub layers: Option<Checkpointed>,
    /// Whether the backward pass recomputes these layers already.
    pub is_recomputed: bool,
    /// Whether the program takes a gradient.
    pub has_gradient: bool,
    /// The width of most of their elements.
    pub width: Width,
}

/// The width of the elements in most bytes of some arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 8 bits or fewer.
    Byte,
    /// 16 bits or fewer, such as bfloat16.
    Half,
    /// More than 16 bits.
    Full,
}

/// Kinds that take up to `1 / WORTH_A_NOTE` of the program's bytes are left out.
const WORTH_A_NOTE: u64 = 20;

/// All arrays of one purpose.
#[derive(Default)]
struct Kind<'m> {
    bytes: u64,
    /// Bytes of arrays with elements of 8 bits or fewer, and of 16 or fewer.
    bytes_up_to: [u64; 2],
    /// Names as of [`Note::names`], in their order.
    names: Vec<String>,
    known: HashSet<String>,
    largest: Option<(u64, Instruction<'m>, String)>,
}

/// A note for each kind that takes much, the largest first.
pub(crate) fn notes(program: &ProgramModel<'_>) -> Vec<Note> {
    let kept = program.kept_values();
    let kinds = kinds(program, &kept);
    let mut largest: Vec<(&Purpose, &Kind<'_>)> = kinds.iter().collect();
    // Stable: of equals, arguments come first.
    largest.sort_by_key(|(_, kind)| std::cmp::Reverse(kind.bytes));
    let is_worth_it = |bytes: u64| bytes > program.total_bytes / WORTH_A_NOTE;
    let most = largest.first().map_or(0, |(_, kind)| kind.bytes);
    let worth = largest.iter().filter(|(_, kind)| is_worth_it(kind.bytes));
    worth
        .map(|(purpose, kind)| Note { is_main: kind.bytes >= most / 2, ..note(program, **purpose, kind, &kept) })
        .collect()
}

fn note(program: &ProgramModel<'_>, purpose: Purpose, kind: &Kind<'_>, kept: &[KeptValue<'_, '_>]) -> Note {
    let percent = u128::from(kind.bytes) * 100 / u128::from(program.total_bytes.max(1));
    let layers =
        Some(kept).filter(|_| purpose == Purpose::Kept).and_then(|kept| Some(Layers::of(kept)?.checkpointed()));
    Note {
        purpose,
        bytes: kind.bytes,
        percent: u64::try_from(percent).unwrap_or(u64::MAX),
        is_main: true,
        names: kind.names.clone(),
        largest: kind.largest.as_ref().map(|(_, instruction, shape)| (shape.clone(), source_line(instruction))),
        is_recomputed: layers.as_ref().is_some_and(|layers| are_recomputed(program, layers)),
        layers,
        has_gradient: program.has_gradient,
        width: match kind.bytes_up_to.map(|bytes| bytes > kind.bytes / 2) {
            [true, _] => Width::Byte,
            [_, true] => Width::Half,
            _ => Width::Full,
        },
    }
}

/// Whether layers with that name are under a checkpoint.
fn are_recomputed(program: &ProgramModel<'_>, layers: &Checkpointed) -> bool {
    let Some(last) = layers.path.as_ref().and_then(|path| path.rsplit('/').next()) else { return false };
    let is_last = |path: &str| path.rsplit('/').next() == Some(last);
    let is_of_them = |name: &str| is_recomputed(name) && numbered(name).iter().any(|(path, _)| is_last(path));
    program.module.instructions().any(|at| op_name(&at).is_some_and(|name| is_of_them(&name)))
}

fn kinds<'m>(program: &ProgramModel<'m>, kept: &[KeptValue<'_, 'm>]) -> BTreeMap<Purpose, Kind<'m>> {
    let mut kinds: BTreeMap<Purpose, Kind<'m>> = BTreeMap::new();
    let Some((hbm, peak)) = program.plan.space(0).and_then(|hbm| Some((hbm, hbm.peak.as_ref()?))) else {
        return kinds;
    };
    let at: HashMap<_, &LiveArray<'m>> = program.arrays.iter().map(|array| (array.position, array)).collect();
    let kept: HashSet<_> = kept.iter().map(|value| value.array.position).collect();
    let vocabulary = Vocabulary::of(program);
    for live in &peak.live {
        let value = &hbm.values[live.value];
        let Some(instruction) = program.module.instruction(value.instruction) else { continue };
        let array = at.get(&value.position).copied();
        let purpose = match (value.role, array) {
            (Role::Argument, _) => of_argument(&name(&instruction)).0,
            (Role::Output, _) => Purpose::Result,
            (Role::Temporary, Some(array)) if vocabulary.as_ref().is_some_and(|it| it.has(array)) => Purpose::Logits,
            (Role::Temporary, Some(array)) if kept.contains(&array.position) => Purpose::Kept,
            (Role::Temporary, Some(array)) => of_temporary(program, array),
            _ => Purpose::Intermediate,
        };
        let kind = kinds.entry(purpose).or_default();
        if let (Purpose::Workspace, Some(array)) = (purpose, array) {
            kind.names.extend(routine(program, array, &instruction).filter(|name| kind.known.insert(name.clone())));
        }
        kind.add(value, live.bytes, instruction);
    }
    kinds
}

impl<'m> Kind<'m> {
    fn add(&mut self, value: &AssignedValue, bytes: u64, instruction: Instruction<'m>) {
        self.bytes = self.bytes.saturating_add(bytes);
        let bits = value.shape().and_then(|shape| shape.element_type()).map_or(u32::MAX, |of| of.bits());
        for (bytes_up_to, _) in self.bytes_up_to.iter_mut().zip([8, 16]).filter(|(_, most)| bits <= *most) {
            *bytes_up_to = bytes_up_to.saturating_add(bytes);
        }
        if value.role == Role::Argument {
            let name = name(&instruction);
            let part = &name[..of_argument(&name).1];
            if self.known.insert(part.to_owned()) {
                self.names.push(part.to_owned());
            }
        }
        if self.largest.as_ref().is_none_or(|(most, ..)| *most < bytes) {
            let shape = value.shape().map(|shape| shape.without_layout().to_string());
            self.largest = Some((bytes, instruction, shape.unwrap_or_default()));
        }
    }
}

fn of_temporary<'m>(program: &ProgramModel<'m>, array: &LiveArray<'m>) -> Purpose {
    let origin = program.flow.op_at(program.flow.origin(array.position));
    let Some(made) = program.flow.instruction(origin) else { return Purpose::Intermediate };
    let is_argument = |at: &Instruction<'_>| at.opcode() == Opcode::Parameter && at.computation().is_entry();
    let converted = || {
        let operand = program.flow.operands(origin).first()?;
        let from =
            program.flow.instruction(program.flow.op_at(program.flow.origin(program.flow[*operand].position)))?;
        (made.opcode() == Opcode::Convert && is_argument(&from)).then_some(())
    };
    if is_argument(&made) || converted().is_some() {
        return Purpose::CopyOfArgument;
    }
    if matches!(made.opcode(), Opcode::While | Opcode::Parameter) {
        return Purpose::LoopCarry;
    }
    if is_workspace(program, array, &made) {
        return Purpose::Workspace;
    }
    let mut alike = program.arguments().filter(|argument| argument.bounds == array.bounds);
    let is_of_parameter = alike.any(|argument| of_argument(&name(&argument.instruction)).0 == Purpose::Parameter);
    let is_of_backward = traced(program.flow, &array.instruction).0.is_some_and(|name| is_backward(&name));
    if is_of_backward && is_of_parameter { Purpose::Gradient } else { Purpose::Intermediate }
}

/// Whether an array is a library's workspace: flat bytes that only library routines read, and no other operation fills.
fn is_workspace(program: &ProgramModel<'_>, array: &LiveArray<'_>, made: &Instruction<'_>) -> bool {
    let is_bytes =
        array.bounds.len() == 1 && matches!(array.shape.element_type(), Some(ElementType::S8 | ElementType::U8));
    let is_library = |at: &Instruction<'_>| at.opcode() == Opcode::CustomCall;
    let mut readers = program.readers(array.position).filter_map(|op| program.flow.instruction(op));
    let are_libraries = readers.all(|reader| is_library(&reader));
    let is_filled = made.operands().next().is_some() && !is_library(made);
    is_bytes && are_libraries && !is_filled
}

/// The library's routine that works in a buffer: its reader, or else its maker.
fn routine(program: &ProgramModel<'_>, array: &LiveArray<'_>, made: &Instruction<'_>) -> Option<String> {
    let reader = program.readers(array.position).find_map(|op| program.flow.instruction(op));
    let target = reader.as_ref().unwrap_or(made).attribute("custom_call_target")?;
    Some(target.trim_matches('"').to_owned())
}
