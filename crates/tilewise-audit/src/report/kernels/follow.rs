//! Follows a kernel's operands back to their producers, and its results on to their users.

use super::change::{BoundaryChange, copied_bytes};
use crate::{
    copies::CopyClass,
    program::{Sizer, source_line},
};
use tilewise::{BitcastAs, Rearrangement, Shape};
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Dataflow, OpId, Position, REACH, Source, Use},
};

/// A path from one array to another through instructions that only move it.
#[derive(Clone)]
pub(super) struct Way {
    /// Its end: an operand's producer, or a result where it is used.
    pub(super) end: Position,
    /// The changes of the array, from the kernel on.
    pub(super) between: Vec<BoundaryChange>,
    /// The instructions of these changes, in the same order.
    pub(super) ops: Vec<OpId>,
}

/// The reader of a kernel's result at the end of a path.
#[derive(Clone, Copy)]
pub(super) enum User {
    /// An instruction.
    Op(OpId),
    /// The program's caller, at this position of the entry's root.
    Result(Position),
}

/// Follows arrays through a program.
pub(super) struct Follower<'a, 'm> {
    pub(super) flow: &'m Dataflow,
    pub(super) sizer: &'a mut Sizer<'m>,
}

impl Follower<'_, '_> {
    /// From an operand back to its producer: through the start of a loop or the end of a branch, if the array is copied
    /// on its way there.
    pub(super) fn back(&mut self, operand: Position) -> Way {
        let mut way = self.back_from(Way { end: operand, between: Vec::new(), ops: Vec::new() });
        for _ in 0..REACH {
            let length = way.between.len();
            let is_copied = |longer: &Way| longer.between.iter().skip(length).any(BoundaryChange::is_copy);
            let mut starts = self.branch_ends(way.end);
            starts.extend(self.loop_start(way.end));
            let ways = starts.into_iter().map(|start| self.back_from(Way { end: start, ..way.clone() }));
            // Only one branch runs: take the one that copies most.
            let Some(longer) = ways.filter(is_copied).max_by_key(|way| copied_bytes(&way.between)) else { break };
            way = longer;
        }
        way
    }

    /// The positions of a conditional's result in its branches.
    fn branch_ends(&self, result: Position) -> Vec<Position> {
        let op = self.flow.op_at(result);
        if self.flow[op].opcode != Opcode::Conditional {
            return Vec::new();
        }
        let offset = result.since(self.flow[op].position);
        let ends = self.flow.calls(op).iter().take(REACH).map(|(_, branch)| self.flow.result(*branch));
        ends.filter(|end| offset < self.flow.extent(*end)).map(|end| end.plus(offset)).collect()
    }

    /// The initial value of a position that a loop carries; `None` for other positions.
    fn loop_start(&self, carried: Position) -> Option<Position> {
        let parameter = self.flow.op_at(carried);
        let start = self.flow.operand(self.flow.loop_around(parameter)?, 0)?;
        let offset = carried.since(self.flow[parameter].position);
        (offset < self.flow.extent(start)).then(|| start.plus(offset))
    }

    fn back_from(&mut self, mut way: Way) -> Way {
        for _ in 0..REACH {
            let (op, source) = match self.flow.source(way.end) {
                Some(Source::Passed(source)) => {
                    way.end = source;
                    continue;
                }
                Some(Source::Bitcast(source)) => (self.flow.op_at(way.end), source),
                Some(Source::Copied(op, source)) => (op, source),
                _ => match self.moved(self.flow.op_at(way.end)) {
                    Some(source) => (self.flow.op_at(way.end), source),
                    None => break,
                },
            };
            let Some(change) = self.change(op, source, way.end) else { break };
            way.between.push(change);
            way.ops.push(op);
            way.end = source;
        }
        way
    }

    /// From a result on to all its users, on each path the nearest first.
    pub(super) fn forward(&mut self, result: Position) -> Vec<(User, Way)> {
        let mut waiting = vec![Way { end: result, between: Vec::new(), ops: Vec::new() }];
        let (mut found, mut looked_at) = (Vec::new(), 0);
        while let Some(way) = waiting.pop() {
            looked_at += 1;
            if looked_at > REACH {
                break;
            }
            for step in self.flow.uses(way.end) {
                let (op, next) = match step {
                    Use::Passed(next) => {
                        waiting.push(Way { end: next, ..way.clone() });
                        continue;
                    }
                    Use::Result(position) => {
                        found.push((User::Result(position), way.clone()));
                        continue;
                    }
                    Use::Bitcast(next) => (self.flow.op_at(next), next),
                    Use::Copied(op, next) => (op, next),
                    Use::Read(op) => match self.moved(op) {
                        Some(source) if source == way.end => (op, self.flow[op].position),
                        _ => {
                            found.push((User::Op(op), way.clone()));
                            continue;
                        }
                    },
                    _ => continue,
                };
                let Some(change) = self.change(op, way.end, next) else { continue };
                let mut longer = way.clone();
                longer.between.push(change);
                longer.ops.push(op);
                waiting.push(Way { end: next, ..longer });
            }
        }
        found
    }

    /// The operand that an instruction moves; `None` if it computes anything.
    fn moved(&self, op: OpId) -> Option<Position> {
        let instruction = self.flow.instruction(op)?;
        let operand = match instruction.opcode() {
            Opcode::Fusion => Chain::of(&instruction)?.parameter,
            opcode if moves(opcode) => 0,
            _ => return None,
        };
        self.flow.operand(op, operand)
    }

    fn change(&mut self, op: OpId, from: Position, to: Position) -> Option<BoundaryChange> {
        let instruction = self.flow.instruction(op)?;
        let (from, to) = (array(self.flow, from)?, array(self.flow, to)?);
        let class = CopyClass::of(&from, &to);
        let opcode = instruction.opcode();
        let (is_relayout, is_duplicate) = match opcode {
            Opcode::Bitcast | Opcode::BitcastConvert | Opcode::Convert => (false, false),
            _ if from.dimensions() == to.dimensions() => {
                (class? == CopyClass::Relayout, matches!(class?, CopyClass::Duplicate | CopyClass::Bitcast))
            }
            _ => (true, false),
        };
        let bytes = match opcode {
            Opcode::Bitcast => 0,
            _ => self.sizer.physical_bytes(&from)?.saturating_add(self.sizer.physical_bytes(&to)?),
        };
        Some(BoundaryChange {
            instruction: instruction.name().to_owned(),
            opcode,
            is_relayout,
            is_duplicate,
            from,
            to,
            bytes,
            trips: self.flow.executions(self.flow[op].body),
            source: source_line(&instruction),
        })
    }
}

/// The array at a position; `None` if it isn't one.
pub(super) fn array(flow: &Dataflow, position: Position) -> Option<Shape> {
    flow.shape(position).filter(|shape| shape.as_array().is_some())
}

/// The rearrangement of elements by a chain of instructions; `None` where padding, or a reshape that cuts across a
/// transpose, hides it.
pub(super) fn rearranged(
    flow: &Dataflow,
    first: &Shape,
    steps: impl Iterator<Item = (OpId, Shape, Shape)>,
) -> Option<Rearrangement> {
    let mut found = Rearrangement::identity(&first.bounds()?);
    for (op, from, to) in steps {
        found = step(found, &flow.instruction(op)?, &from, &to)?;
    }
    Some(found)
}

fn step(before: Rearrangement, instruction: &Instruction<'_>, from: &Shape, to: &Shape) -> Option<Rearrangement> {
    match instruction.opcode() {
        // Padding moves no element into another dimension.
        Opcode::Copy | Opcode::CopyStart | Opcode::Convert | Opcode::Pad => Some(before),
        Opcode::BitcastConvert if from.dimensions() == to.dimensions() => Some(before),
        Opcode::Bitcast => before.bitcast(&from.bitcast(to, BitcastAs::Any).ok()?, &to.bounds()?),
        Opcode::Reshape => before.reshape(&to.bounds()?),
        Opcode::Transpose => before.transpose(&instruction.dimensions()?),
        Opcode::Fusion => {
            let chain = Chain::of(instruction)?;
            let mut found = before;
            let mut from = from.clone();
            for inner in chain.instructions {
                let to = inner.shape().ok()?;
                found = step(found, &inner, &from, &to)?;
                from = to;
            }
            Some(found)
        }
        _ => None,
    }
}

/// Follows an operand into a fusion as long as its only reader moves it: the array there, which a reshape inside may
/// hide, and its rearrangement from the first array.
pub(super) fn within_user(
    flow: &Dataflow,
    user: OpId,
    operand: Position,
    before: Rearrangement,
) -> Option<(Shape, Rearrangement)> {
    let mut found = (array(flow, operand)?, before);
    let instruction = flow.instruction(user)?;
    let number = flow.operands(user).iter().position(|at| flow[*at].position == operand);
    let body = instruction.calls().next().and_then(|call| call.computation());
    let (Opcode::Fusion, Some(body), Some(number)) = (instruction.opcode(), body, number) else { return Some(found) };
    let mut at = body.instructions().find(|inner| inner.parameter_number() == Some(number))?;
    loop {
        let reads = |inner: &Instruction<'_>| {
            inner.operands().any(|operand| operand.instruction().is_some_and(|read| read.index() == at.index()))
        };
        let mut readers = body.instructions().filter(reads);
        let (Some(reader), None) = (readers.next(), readers.next()) else { return Some(found) };
        let next = reader.shape().ok().and_then(|to| {
            let rearrangement = step(found.1.clone(), &reader, &found.0, &to)?;
            Some((to, rearrangement))
        });
        match next.filter(|_| moves(reader.opcode())) {
            Some(next) => (found, at) = (next, reader),
            None => return Some(found),
        }
    }
}

/// The instructions of a fusion that only moves one of its operands.
struct Chain<'m> {
    /// The number of the operand.
    parameter: usize,
    /// The instructions that move it, in order.
    instructions: Vec<Instruction<'m>>,
}

impl<'m> Chain<'m> {
    fn of(fusion: &Instruction<'m>) -> Option<Self> {
        let body = fusion.calls().next()?.computation()?;
        let mut at = body.root()?;
        let mut instructions = Vec::new();
        while at.opcode() != Opcode::Parameter {
            // Each is an operand of the previous one, so none comes twice.
            if !moves(at.opcode()) {
                return None;
            }
            let operand = at.operands().next()?.instruction()?;
            instructions.push(std::mem::replace(&mut at, operand));
        }
        instructions.reverse();
        Some(Self { parameter: at.parameter_number()?, instructions })
    }
}

/// Whether an opcode changes the form of an array, without computing anything.
fn moves(opcode: Opcode) -> bool {
    use Opcode::{Bitcast, BitcastConvert, Convert, Copy, Pad, Reshape, Transpose};
    matches!(opcode, Bitcast | BitcastConvert | Convert | Copy | Pad | Reshape | Transpose)
}

#[cfg(test)]
mod tests {
    use crate::{Audit, KernelArray, Machine, Program};
    use tilewise::tpu::Generation;

    /// An instruction, whether elements move, and bytes.
    type Change = (String, bool, u64);

    /// The only kernel of a program.
    fn kernel(text: &str) -> crate::KernelRow {
        let program = Program::parse(text).expect("a program");
        let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).run();
        report.kernels().into_iter().next().expect("a kernel")
    }

    /// The producer or user of each array, and the changes between.
    fn ways(arrays: &[KernelArray]) -> Vec<(String, Vec<Change>)> {
        let way = |array: &KernelArray| {
            let changes = array.between.iter().map(|at| (at.instruction.clone(), at.is_relayout, at.bytes));
            (array.other.clone(), changes.collect())
        };
        arrays.iter().map(way).collect()
    }

    /// An expected producer or user, and the changes between.
    type Written<'a> = (&'a str, &'a [(&'a str, bool, u64)]);

    fn expected(rows: &[Written<'_>]) -> Vec<(String, Vec<Change>)> {
        let change = |(name, is_relayout, bytes): &(&str, bool, u64)| ((*name).to_owned(), *is_relayout, *bytes);
        rows.iter().map(|(other, changes)| ((*other).to_owned(), changes.iter().map(change).collect())).collect()
    }

    #[test]
    fn what_moves_elements_is_told_from_what_does_not() {
        let text = "HloModule m, is_scheduled=true
moved {
  unused = f32[] constant(0)
  p = f32[256,512]{0,1:T(8,128)} parameter(1)
  q = f32[256,512]{0,1:T(8,128)} parameter(0)
  ROOT c = f32[256,512]{1,0:T(8,128)} copy(p)
}
doubled {
  p = f32[256,512]{1,0:T(8,128)} parameter(0)
  ROOT c = f32[256,512]{1,0:T(8,128)} add(p, p)
}
ENTRY e {
  a = f32[256,512]{1,0:T(8,128)} parameter(0)
  b = f32[256,512]{0,1:T(8,128)} parameter(1)
  copied = f32[256,512]{1,0:T(8,128)} copy(b)
  view = f32[1,256,512]{2,1,0:T(8,128)} bitcast(copied)
  start = (f32[256,512]{1,0:T(8,128)S(1)}, f32[256,512]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(a)
  done = f32[256,512]{1,0:T(8,128)S(1)} copy-done(start)
  fused = f32[256,512]{1,0:T(8,128)} fusion(a, b), kind=kLoop, calls=moved
  computed = f32[256,512]{1,0:T(8,128)} fusion(a), kind=kLoop, calls=doubled
  ROOT k = f32[256,512]{1,0:T(8,128)} custom-call(a, copied, view, done, fused, computed), custom_call_target=\"tpu_custom_call\"
}
";
        let moved = 2 * 256 * 512 * 4;
        let found = kernel(text);
        let wanted = expected(&[
            ("a", &[]),
            ("b", &[("copied", true, moved)]),
            ("b", &[("view", false, 0), ("copied", true, moved)]),
            ("a", &[("start", false, moved)]),
            ("b", &[("fused", true, moved)]),
            ("computed", &[]),
        ]);
        assert_eq!(ways(&found.operands), wanted);
        assert_eq!(found.copied_bytes(), 3 * moved);
    }

    #[test]
    fn a_result_is_followed_to_each_of_its_users() {
        let text = "HloModule m, is_scheduled=true
ENTRY e {
  a = f32[256,512]{1,0:T(8,128)} parameter(0)
  k = (f32[256,512]{1,0:T(8,128)}, f32[256,512]{1,0:T(8,128)}) custom-call(a), custom_call_target=\"tpu_custom_call\"
  first = f32[256,512]{1,0:T(8,128)} get-tuple-element(k), index=0
  second = f32[256,512]{1,0:T(8,128)} get-tuple-element(k), index=1
  copied = f32[256,512]{0,1:T(8,128)} copy(first)
  read = f32[256]{0:T(256)} custom-call(second), custom_call_target=\"sum\"
  ROOT r = (f32[256,512]{0,1:T(8,128)}, f32[256]{0:T(256)}) tuple(copied, read)
}
";
        let found = kernel(text);
        let wanted = expected(&[("r", &[("copied", true, 2 * 256 * 512 * 4)]), ("read", &[])]);
        assert_eq!(ways(&found.results), wanted);
        assert_eq!(found.results[0].forced_by, Some(crate::ForcedBy::Interface));
    }

    #[test]
    fn a_copy_into_a_loop_is_counted_once_and_one_inside_for_each_turn() {
        let text = "HloModule m, is_scheduled=true
body {
  carry = (s32[], f32[256,512]{1,0:T(8,128)}) parameter(0)
  i = s32[] get-tuple-element(carry), index=0
  x = f32[256,512]{1,0:T(8,128)} get-tuple-element(carry), index=1
  again = f32[256,512]{1,0:T(8,128)} copy(x)
  k = f32[256,512]{1,0:T(8,128)} custom-call(again), custom_call_target=\"tpu_custom_call\"
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], f32[256,512]{1,0:T(8,128)}) tuple(next, k)
}
condition {
  carry = (s32[], f32[256,512]{1,0:T(8,128)}) parameter(0)
  i = s32[] get-tuple-element(carry), index=0
  n = s32[] constant(5)
  ROOT less = pred[] compare(i, n), direction=LT
}
ENTRY e {
  a = f32[256,512]{0,1:T(8,128)} parameter(0)
  copied = f32[256,512]{1,0:T(8,128)} copy(a)
  zero = s32[] constant(0)
  start = (s32[], f32[256,512]{1,0:T(8,128)}) tuple(zero, copied)
  loop = (s32[], f32[256,512]{1,0:T(8,128)}) while(start), condition=condition, body=body
  ROOT r = f32[256,512]{1,0:T(8,128)} get-tuple-element(loop), index=1
}
";
        let once = 2 * 256 * 512 * 4;
        let operand = &kernel(text).operands[0];
        assert_eq!((operand.other.as_str(), operand.copied_bytes()), ("a", 6 * once));
        assert_eq!(operand.forced_by, Some(crate::ForcedBy::Loop));
    }

    /// A pool that one branch of a `cond` updates, and that a kernel takes in another order after it.
    fn behind_a_branch(updated_rows: u64, alias: &str) -> KernelArray {
        let text = "HloModule m, is_scheduled=trueALIAS
kept {
  ROOT p = f32[256,512]{0,1:T(8,128)} parameter(0)
}
updated {
  both = (f32[256,512]{0,1:T(8,128)}, f32[ROWS,512]{0,1:T(8,128)}) parameter(0)
  x = f32[256,512]{0,1:T(8,128)} get-tuple-element(both), index=0
  new = f32[ROWS,512]{0,1:T(8,128)} get-tuple-element(both), index=1
  zero = s32[] constant(0)
  ROOT y = f32[256,512]{0,1:T(8,128)} dynamic-update-slice(x, new, zero, zero)
}
ENTRY e {
  pool = f32[256,512]{0,1:T(8,128)} parameter(0), metadata={op_name=\"pool\"}
  new = f32[ROWS,512]{0,1:T(8,128)} parameter(1), metadata={op_name=\"new\"}
  is_new = s32[] parameter(2), metadata={op_name=\"is_new\"}
  both = (f32[256,512]{0,1:T(8,128)}, f32[ROWS,512]{0,1:T(8,128)}) tuple(pool, new)
  after = f32[256,512]{0,1:T(8,128)} conditional(is_new, pool, both), branch_computations={kept, updated}
  copied = f32[256,512]{1,0:T(8,128)} copy(after)
  k = f32[256,512]{1,0:T(8,128)} custom-call(copied), custom_call_target=\"tpu_custom_call\"
  ROOT r = (f32[256,512]{0,1:T(8,128)}, f32[256,512]{1,0:T(8,128)}) tuple(after, k)
}
";
        let found = kernel(&text.replace("ROWS", &updated_rows.to_string()).replace("ALIAS", alias));
        found.operands.into_iter().next().expect("an operand")
    }

    #[test]
    fn a_donated_argument_that_a_branch_updates_is_handed_over_in_the_order_behind_it() {
        let donated = ", input_output_alias={ {0}: (0, {}, may-alias) }";
        let operand = behind_a_branch(8, donated);
        assert_eq!(operand.forced_by, Some(crate::ForcedBy::Branch));
        let Some(crate::Remedy::Layout(fix)) = &operand.remedy else { panic!("{:?}", operand.remedy) };
        let requested = fix.array.as_ref().and_then(|array| array.requested.as_ref()).map(ToString::to_string);
        assert_eq!(requested.as_deref(), Some("f32[256,512]{1,0:T(8,128)}"));
        // The update is half of it; the result is in other memory.
        for other in [behind_a_branch(128, donated), behind_a_branch(8, "")] {
            assert!(matches!(other.remedy, Some(crate::Remedy::View(_))), "{:?}", other.remedy);
        }
    }

    #[test]
    fn a_copy_in_a_branch_is_one_for_the_kernel_behind_it() {
        let text = "HloModule m, is_scheduled=true
kept {
  p = f32[256,512]{0,1:T(8,128)} parameter(0)
  ROOT copied = f32[256,512]{1,0:T(8,128)} copy(p)
}
updated {
  p = f32[256,512]{0,1:T(8,128)} parameter(0)
  first = f32[256,512]{1,0:T(8,128)} copy(p)
  ROOT y = f32[256,512]{1,0:T(8,128)} negate(first)
}
ENTRY e {
  pool = f32[256,512]{0,1:T(8,128)} parameter(0)
  is_new = s32[] parameter(1)
  after = f32[256,512]{1,0:T(8,128)} conditional(is_new, pool, pool), branch_computations={kept, updated}
  ROOT k = f32[256,512]{1,0:T(8,128)} custom-call(after), custom_call_target=\"tpu_custom_call\"
}
";
        let operand = &kernel(text).operands[0];
        assert_eq!(ways(std::slice::from_ref(operand)), expected(&[("pool", &[("copied", true, 2 * 256 * 512 * 4)])]));
        assert_eq!(operand.forced_by, Some(crate::ForcedBy::Branch));
    }
}
