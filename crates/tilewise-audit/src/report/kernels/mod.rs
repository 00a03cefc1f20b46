//! The kernels of a program: their VMEM as the compiler reports it, and XLA's changes to their operands and results.

mod body;
mod boundary;
mod change;
mod follow;
mod remedy;

use super::sections::Report;
use crate::copies::CopyClass;
use crate::program::{MOSAIC, Sizer, SourceLine, op_name, share, source_line};
pub use boundary::{ForcedBy, KernelArray, KernelSide};
pub use change::BoundaryChange;
use foldhash::{HashMap, HashSet};
use follow::{Follower, User, Way};
pub use remedy::Remedy;
use std::borrow::Cow;
use tilewise::tpu::Generation;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Dataflow, OpId, Position},
    unquote,
};
use tilewise_kernel::Limits;
use tilewise_oom::{BlockSize, block_sizes};

/// The memory space of VMEM, and its number in a `backend_config`.
const VMEM_SPACE: u8 = 1;
const VMEM: &str = "1";

/// A kernel of a program, and its use of VMEM by the compiler's own account: windows, scratch, and the needs of its
/// body.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KernelRow {
    /// The call's name.
    pub instruction: String,
    /// The computation it is in.
    pub computation: String,
    /// Bytes of VMEM that it uses; `None` if the text doesn't have them.
    pub used_bytes: Option<u64>,
    /// The limit in force, in bytes: the requested one, or the generation's default. `None` if unknown.
    pub limit_bytes: Option<u64>,
    /// The largest limit that is honoured, in bytes.
    pub cap_bytes: Option<u64>,
    /// Its operands, with XLA's changes to them before the call.
    pub operands: Vec<KernelArray>,
    /// Its results by reader, with XLA's changes to them before it.
    pub results: Vec<KernelArray>,
    /// The operations that move elements between rows and lanes inside VMEM, such as `tpu.transpose`, in its body as
    /// passed to the compiler, which adds others; `None` if the text lacks the body.
    pub body_moves: Option<Vec<&'static str>>,
    /// The sizes of its blocks, where its library writes them into its metadata or its name.
    pub block_sizes: Vec<BlockSize>,
    /// The framework's name of the operation.
    pub op_name: Option<String>,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
}

impl KernelRow {
    /// Whether it uses nine tenths of its limit or more: a slightly larger block may not compile.
    #[must_use]
    pub fn is_near_limit(&self) -> bool {
        self.share_of_limit().is_some_and(|share| share >= 0.9)
    }

    /// Its use of VMEM as a fraction of its limit; `None` if one of them is unknown.
    #[must_use]
    pub fn share_of_limit(&self) -> Option<f64> {
        Some(share(self.used_bytes?, self.limit_bytes?))
    }

    /// Whether its instruction or its operation has this in its name.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.instruction.contains(name) || self.op_name.as_ref().is_some_and(|op_name| op_name.contains(name))
    }

    /// Its operands, then its results.
    pub fn arrays(&self) -> impl Iterator<Item = &KernelArray> {
        self.operands.iter().chain(&self.results)
    }

    /// Bytes of its operands and results that XLA keeps in VMEM as a whole. These have no windows: it uses less VMEM
    /// than it declares, and they add to it.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        let mut known = HashSet::default();
        // A result has an entry for each reader.
        let arrays = self.arrays().filter(|array| known.insert((array.side, array.index)));
        let held = arrays.filter_map(|array| array.shape.as_array().filter(|array| array.memory_space() == VMEM_SPACE));
        held.filter_map(|array| array.sizes().ok()).map(|sizes| sizes.physical_bytes).fold(0, u64::saturating_add)
    }

    /// Bytes that are read and written to copy its operands and results, in all runs of the program.
    #[must_use]
    pub fn copied_bytes(&self) -> u64 {
        self.arrays().map(KernelArray::copied_bytes).fold(0, u64::saturating_add)
    }

    fn of(call: &Instruction<'_>, generation: Generation) -> Self {
        let config = call.attribute("backend_config").map(unquote).unwrap_or_default();
        let limits = Limits::of(generation);
        let op_name = op_name(call).map(Cow::into_owned);
        let metadata = call.attribute("frontend_attributes").unwrap_or_default();
        let names = [metadata, call.name(), op_name.as_deref().unwrap_or_default()].join(" ");
        let asked = vmem_bytes(&config, "\"scoped_memory_configs\"");
        Self {
            instruction: call.name().to_owned(),
            computation: call.computation().name().to_owned(),
            used_bytes: vmem_bytes(&config, "\"used_scoped_memory_configs\""),
            limit_bytes: asked.or(limits.map(|limits| limits.default_bytes)),
            cap_bytes: limits.map(|limits| limits.cap_bytes),
            operands: Vec::new(),
            results: Vec::new(),
            body_moves: body::moving_operations(&config),
            block_sizes: block_sizes(&names),
            op_name,
            source: source_line(call),
        }
    }
}

impl Report {
    /// The kernels of the program, in the order of the text; none for other machines than TPUs.
    #[must_use]
    pub fn kernels(&self) -> Vec<KernelRow> {
        let Some(generation) = self.machine.generation() else { return Vec::new() };
        let instructions = self.planned.module.computations().flat_map(|computation| computation.instructions());
        let calls: Vec<_> = instructions
            .filter(|call| call.opcode() == Opcode::CustomCall && call.custom_call_target() == Some(MOSAIC))
            .filter_map(|call| Some((self.planned.flow.op(&call)?, call)))
            .collect();
        let mut boundaries = Boundaries::new(self, generation, &calls);
        let row = |(op, call): &(OpId, Instruction<'_>)| {
            let mut row = KernelRow::of(call, generation);
            row.operands = boundaries.operands(*op);
            row.results = boundaries.results(*op);
            row
        };
        calls.iter().map(row).collect()
    }
}

impl Report {
    /// Bytes that the program reads and writes to reorder or duplicate arrays, not to move them into another memory
    /// space. Loops of an unknown trip count are counted once.
    #[must_use]
    pub fn copied_bytes(&self) -> u64 {
        let copies = self.copies.iter().filter(|copy| !matches!(copy.class, CopyClass::Transfer));
        copies.map(|copy| copy.moved_bytes).fold(0, u64::saturating_add)
    }

    /// Bytes that are read and written to copy the operands and results of the kernels whose instruction or operation
    /// has this in its name, in all runs; `None` if there is no such kernel.
    #[must_use]
    pub fn copied_into(&self, name: &str) -> Option<u64> {
        let kernels: Vec<KernelRow> = self.kernels().into_iter().filter(|kernel| kernel.is_called(name)).collect();
        (!kernels.is_empty()).then(|| kernels.iter().map(KernelRow::copied_bytes).fold(0, u64::saturating_add))
    }
}

/// Finds the changes of arrays between kernels and the rest of a program.
struct Boundaries<'a> {
    report: &'a Report,
    flow: &'a Dataflow,
    generation: Generation,
    sizer: Sizer<'a>,
    /// Kernels with an unread result that overwrites a value, with that result's number, by the value's origin.
    overwriting: HashMap<Position, (String, usize)>,
    /// Remedies by the changes between: calls repeat a few.
    known: HashMap<String, Option<Remedy>>,
}

impl<'a> Boundaries<'a> {
    fn new(report: &'a Report, generation: Generation, calls: &[(OpId, Instruction<'_>)]) -> Self {
        let flow = &report.planned.flow;
        let mut boundaries = Self {
            report,
            flow,
            generation,
            sizer: Sizer::default(),
            overwriting: HashMap::default(),
            known: HashMap::default(),
        };
        for (op, call) in calls {
            for alias in call.output_to_operand_aliasing().unwrap_or_default() {
                let Some(operand) = flow.operand(*op, alias.operand_number) else { continue };
                let Some(result) = flow.at(flow[*op].position, &alias.output_index) else { continue };
                if boundaries.follower().forward(result).is_empty() {
                    let number = flow.leaves_before(result);
                    boundaries.overwriting.insert(flow.origin(operand), (call.name().to_owned(), number));
                }
            }
        }
        boundaries
    }

    fn follower(&mut self) -> Follower<'_, 'a> {
        Follower { flow: self.flow, sizer: &mut self.sizer }
    }

    /// The operands of a call, without those of unknown shape.
    fn operands(&mut self, call: OpId) -> Vec<KernelArray> {
        let flow = self.flow;
        let operand = |index| {
            let position = flow.operand(call, index)?;
            let shape = follow::array(flow, position)?;
            let way = self.follower().back(position);
            // A value that a loop carries is attributed to the loop.
            let end = flow.op_at(way.end);
            let producer = flow.instruction(flow.loop_around(end).unwrap_or(end))?;
            let forced_by = self.forced(&way).or_else(|| self.fixed_at(position, &way));
            let remedy = forced_by.and_then(|forced_by| self.operand_remedy(&way, forced_by));
            Some(KernelArray {
                side: KernelSide::Operand,
                index,
                shape,
                other: producer.name().to_owned(),
                other_opcode: producer.opcode(),
                forced_by,
                remedy,
                between: way.between,
            })
        };
        (0..flow.operands(call).len()).filter_map(operand).collect()
    }

    /// The results of a call, one for each reader.
    fn results(&mut self, call: OpId) -> Vec<KernelArray> {
        let flow = self.flow;
        let leaves = flow.positions(call).filter(|position| !flow.is_tuple(*position)).enumerate();
        let mut results = Vec::new();
        for (index, position) in leaves {
            let Some(shape) = follow::array(flow, position) else { continue };
            for (user, way) in self.follower().forward(position) {
                let op = match user {
                    User::Op(op) => op,
                    User::Result(position) => flow.op_at(position),
                };
                let Some(instruction) = flow.instruction(op) else { continue };
                let fixed = match user {
                    User::Result(_) => Some(ForcedBy::Interface),
                    User::Op(_) => user_forces(instruction.opcode()),
                };
                let forced_by =
                    self.forced(&way).or_else(|| is_copied(&way).then_some(fixed.unwrap_or(ForcedBy::Kernel)));
                let remedy = forced_by.and_then(|forced_by| self.result_remedy(position, user, &way, forced_by));
                results.push(KernelArray {
                    side: KernelSide::Result,
                    index,
                    shape: shape.clone(),
                    other: instruction.name().to_owned(),
                    other_opcode: instruction.opcode(),
                    between: way.between,
                    forced_by,
                    remedy,
                });
            }
        }
        results
    }

    /// [`ForcedBy::Donation`] if all copies are duplicates: the array is only copied because something overwrites it.
    fn forced(&self, way: &Way) -> Option<ForcedBy> {
        let mut copies = way.between.iter().filter(|change| change.is_copy()).peekable();
        copies.peek()?;
        copies.all(|change| change.is_duplicate).then_some(ForcedBy::Donation)
    }

    /// The cause that fixes an operand's layout at its producer; `None` if it isn't copied.
    fn fixed_at(&self, operand: Position, way: &Way) -> Option<ForcedBy> {
        let (flow, op) = (self.flow, self.flow.op_at(way.end));
        let from_outside = || {
            let [inner, outer] = [flow.op_at(operand), op].map(|op| flow[op].body);
            inner != outer && way.ops.iter().any(|copy| flow[*copy].body == outer)
        };
        let is_in_branch = || {
            let mut inside = way.ops.iter().copied().chain([flow.op_at(operand)]);
            inside.any(|op| flow.caller(op).is_some_and(|caller| flow[caller].opcode == Opcode::Conditional))
        };
        is_copied(way).then(|| match flow[op].opcode {
            Opcode::Parameter if flow.caller(op).is_none() => {
                if is_in_branch() {
                    ForcedBy::Branch
                } else if from_outside() {
                    ForcedBy::Loop
                } else {
                    ForcedBy::Interface
                }
            }
            Opcode::Parameter if flow.loop_around(op).is_some() => ForcedBy::Loop,
            Opcode::While => ForcedBy::Loop,
            Opcode::Parameter | Opcode::Conditional => ForcedBy::Branch,
            _ => ForcedBy::Kernel,
        })
    }

    fn operand_remedy(&mut self, way: &Way, forced_by: ForcedBy) -> Option<Remedy> {
        if forced_by == ForcedBy::Donation {
            let origin = self.flow.origin(way.end);
            if let Some((kernel, result)) = self.overwriting.get(&origin) {
                return Some(Remedy::DropAlias { kernel: kernel.clone(), result: *result });
            }
            let op = self.flow.op_at(origin);
            let parameter = self.flow.instruction(op)?.parameter_number().filter(|_| self.flow.caller(op).is_none())?;
            let aliases = self.report.planned.module.input_output_aliases().unwrap_or_default();
            let is_donated = aliases.iter().any(|alias| alias.parameter_number == parameter);
            return (!is_donated).then_some(Remedy::Donate { parameter });
        }
        if let Some(found) = self.layout(way) {
            return Some(found);
        }
        let (flow, generation) = (self.flow, self.generation);
        let key = format!("{forced_by:?} {} {}", flow.uses(way.end).len() == 1, summary(way));
        self.known.entry(key).or_insert_with(|| remedy::of_operand(flow, way, generation)).clone()
    }

    fn result_remedy(&mut self, result: Position, user: User, way: &Way, forced_by: ForcedBy) -> Option<Remedy> {
        if forced_by == ForcedBy::Donation {
            return None;
        }
        if let Some(found) = self.layout(way) {
            return Some(found);
        }
        remedy::of_result(self.flow, result, (user, way), self.generation)
    }

    /// The layout of an argument or a result that avoids a copy.
    fn layout(&self, way: &Way) -> Option<Remedy> {
        let copies = way.between.iter().filter(|change| change.is_copy());
        let fix = |instruction: &str| {
            let at = self.report.copies.iter().position(|copy| copy.instruction == instruction)?;
            self.report.copy_reasons().get(at)?.fix.clone()
        };
        copies.filter_map(|change| fix(&change.instruction)).next().map(|fix| Remedy::Layout(Box::new(fix)))
    }
}

fn is_copied(way: &Way) -> bool {
    way.between.iter().any(BoundaryChange::is_copy)
}

/// The cause that fixes the layout of an instruction's operands, if any.
fn user_forces(opcode: Opcode) -> Option<ForcedBy> {
    match opcode {
        Opcode::While => Some(ForcedBy::Loop),
        Opcode::Conditional => Some(ForcedBy::Branch),
        _ => None,
    }
}

/// A key of the changes between; fusions and transposes differ by their names.
fn summary(way: &Way) -> String {
    let change = |change: &BoundaryChange| {
        let name = if matches!(change.opcode, Opcode::Fusion | Opcode::Transpose) { &change.instruction } else { "" };
        format!("{} {name} {} {};", change.opcode, change.from, change.to)
    };
    way.between.iter().map(change).collect()
}

/// The bytes of VMEM in a list of the config: `"name":[{"memory_space":"1","offset":"0","size":"7430144"}]`.
fn vmem_bytes(config: &str, name: &str) -> Option<u64> {
    let (_, list) = config.split_once(name)?;
    let list = list.trim_start_matches([' ', ':']).strip_prefix('[')?;
    let (list, _) = list.split_once(']')?;
    let field = |object: &str, name: &str| {
        let (_, value) = object.split_once(name)?;
        let value = value.trim_start_matches([' ', ':', '"']);
        Some(value[..value.bytes().take_while(u8::is_ascii_digit).count()].to_owned())
    };
    let mut objects = list.split('}').filter(|object| field(object, "\"memory_space\"").as_deref() == Some(VMEM));
    field(objects.next()?, "\"size\"")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_lists_are_read() {
        let config = r#"{"scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"67108864"}],"custom_call_config":{"body":"TUzvUgFN"},"used_scoped_memory_configs":[{"memory_space":"4","size":"12"},{"size":"7430144", "memory_space": "1"}]}"#;
        assert_eq!(vmem_bytes(config, "\"scoped_memory_configs\""), Some(67_108_864));
        assert_eq!(vmem_bytes(config, "\"used_scoped_memory_configs\""), Some(7_430_144));
        for none in [
            "",
            "{}",
            r#"{"scoped_memory_configs":[]}"#,
            r#"{"scoped_memory_configs":["#,
            "\"scoped_memory_configs\":[{\"memory_space\":\"1\",\"size\":\"99999999999999999999\"}]",
        ] {
            assert_eq!(vmem_bytes(none, "\"scoped_memory_configs\""), None, "{none}");
        }
    }
}
