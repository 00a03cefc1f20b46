//! What fills a program's memory at its peak, by kind, and what can be done about each: without prices, which no plan of
//! this program tells.

use super::{
    kept::KeptValue,
    layers::layers_in_words,
    program::{LiveArray, ProgramModel},
    purpose::{Purpose, of_argument},
    rules::Vocabulary,
    words::listed,
};
use crate::program::{at_line, bytes_in_words, is_backward, name, traced};
use std::collections::{BTreeMap, HashMap, HashSet};
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::{AssignedValue, Machine, Role};

/// Kinds that take less than this part of what the program holds are left out.
const WORTH_A_NOTE: u64 = 20;

/// All arrays of one purpose.
#[derive(Default)]
struct Kind<'m> {
    bytes: u64,
    /// What the arguments among them are part of.
    names: Vec<String>,
    largest: Option<(u64, Instruction<'m>, String)>,
}

/// A sentence for each kind that takes much, the largest first, without a full stop.
pub(crate) fn notes(program: &ProgramModel<'_>) -> Vec<String> {
    let kept = program.kept_values();
    let kinds = kinds(program, &kept);
    let mut largest: Vec<(&Purpose, &Kind<'_>)> = kinds.iter().collect();
    // Stable: of equals, arguments come first.
    largest.sort_by_key(|(_, kind)| std::cmp::Reverse(kind.bytes));
    let is_worth_it = |bytes: u64| bytes > program.total_bytes / WORTH_A_NOTE;
    let said = largest.iter().filter(|(_, kind)| is_worth_it(kind.bytes));
    let mut notes: Vec<String> = said.map(|(purpose, kind)| note(program, **purpose, kind, &kept)).collect();
    notes.extend(batch(program, is_worth_it));
    notes
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
        kinds.entry(purpose).or_default().add(value, live.bytes, instruction);
    }
    kinds
}

impl<'m> Kind<'m> {
    fn add(&mut self, value: &AssignedValue, bytes: u64, instruction: Instruction<'m>) {
        self.bytes = self.bytes.saturating_add(bytes);
        if value.role == Role::Argument {
            let name = name(&instruction);
            let part = &name[..of_argument(&name).1];
            if !self.names.iter().any(|known| known == part) {
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
    let mut alike = program.arguments().filter(|argument| argument.bounds == array.bounds);
    let is_of_parameter = alike.any(|argument| of_argument(&name(&argument.instruction)).0 == Purpose::Parameter);
    let is_of_backward = traced(program.flow, &array.instruction).0.is_some_and(|name| is_backward(&name));
    if is_of_backward && is_of_parameter { Purpose::Gradient } else { Purpose::Intermediate }
}

fn note(program: &ProgramModel<'_>, purpose: Purpose, kind: &Kind<'_>, kept: &[KeptValue<'_, '_>]) -> String {
    let quoted: Vec<String> = kind.names.iter().map(|name| format!("`{name}`")).collect();
    let names = if quoted.is_empty() { String::new() } else { format!(", {}", listed(&quoted)) };
    let largest = kind.largest.as_ref();
    let largest = largest
        .map(|(_, instruction, shape)| format!(", the largest {shape}{}", at_line(instruction)))
        .unwrap_or_default();
    let (what, more, then) = match purpose {
        Purpose::Parameter if program.has_gradient() => {
            ("Parameters", names, "shard them over more devices, or hold them in bfloat16")
        }
        Purpose::Parameter => ("Parameters", names, "hold them in bfloat16 or int8, or shard them over more devices"),
        Purpose::OptimizerState => (
            "State of the optimizer",
            names,
            "shard it over the devices that have the same parameters (ZeRO, FSDP), hold it in bfloat16, use an optimizer \
             that keeps less (Adafactor, Lion), or keep it in the host's memory between updates",
        ),
        Purpose::Cache => (
            "Cache",
            names,
            "hold it in int8 or float8, let queries share heads, bound its length, or shard it over heads or sequences",
        ),
        Purpose::OtherArgument => ("Arguments", names, "pass them in a smaller type or in parts, or shard them"),
        Purpose::Result => {
            ("Results that lie in no donated argument", largest, "return less, or return them in a smaller type")
        }
        Purpose::Logits => {
            ("Logits and what a softmax makes of them", largest, "compute the cross entropy in chunks of tokens")
        }
        Purpose::Kept => (
            "Values that the forward pass keeps for the backward pass",
            format!("{}{largest}", layers_in_words(kept)),
            if program.machine == Machine::Cpu {
                "take fewer samples at a time and add up the gradients, compute them in bfloat16, or run the layers in a loop \
                 (`jax.lax.scan`) with `jax.checkpoint` around its step: XLA for CPUs recomputes nothing outside of loops"
            } else {
                "recompute them (`jax.checkpoint`, `nn.remat` or `hk.remat` around each layer), compute them in bfloat16, or \
                 take fewer samples at a time and add up the gradients"
            },
        ),
        Purpose::Gradient => {
            ("Gradients of parameters", largest, "shard them as the parameters, or add them up in bfloat16")
        }
        Purpose::CopyOfArgument => (
            "Copies of arguments in another type, layout or memory",
            largest,
            "pass the arguments as their readers want them",
        ),
        Purpose::LoopCarry => ("What loops carry", largest, "carry less, or carry it in a smaller type"),
        Purpose::Intermediate => {
            ("Intermediate values", largest, "work through the input in parts, or compute in a smaller type")
        }
    };
    let share = u128::from(kind.bytes) * 100 / u128::from(program.total_bytes.max(1));
    format!("{what}: {}, {share} %{more}. To hold less, {then}", bytes_in_words(kind.bytes))
}

/// How much of the temporaries has a dimension that arguments begin with: it falls with the size of the batch.
fn batch(program: &ProgramModel<'_>, is_worth_it: impl Fn(u64) -> bool) -> Option<String> {
    let mut leading: HashMap<u64, String> = HashMap::new();
    for argument in program.parameters() {
        let first = argument.shape().ok().and_then(|shape| shape.dimensions().first()?.bound());
        let name = name(&argument);
        if let (Some(size), (Purpose::OtherArgument, _)) = (first.filter(|size| *size > 1), of_argument(&name)) {
            leading.entry(size).or_insert(name);
        }
    }
    let mut held: HashMap<u64, u64> = HashMap::new();
    for array in program.peak_temporaries() {
        let sizes: HashSet<u64> = array.bounds.iter().copied().filter(|size| leading.contains_key(size)).collect();
        for size in sizes {
            let bytes = held.entry(size).or_default();
            *bytes = bytes.saturating_add(array.bytes);
        }
    }
    let (size, bytes) = held.into_iter().max_by_key(|(size, bytes)| (*bytes, *size))?;
    let name = leading.get(&size)?;
    is_worth_it(bytes).then(|| {
        format!(
            "Of the temporaries, {} have a dimension of size {size}, with which `{name}` begins: with half of that, they \
             take about half",
            bytes_in_words(bytes)
        )
    })
}
