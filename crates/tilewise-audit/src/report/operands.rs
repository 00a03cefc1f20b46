//! What XLA does to a kernel's operands on their way to the call.

use crate::{
    copies::CopyClass,
    program::{Sizer, SourceLine, source_line},
};
use tilewise::Shape;
use tilewise_hlo::{Instruction, Opcode};

/// Changes that are followed, which no program reaches.
const MOST_CHANGES: usize = 64;

/// An operand of a kernel: where it comes from, and what XLA does to it before the call. A kernel takes its operands in
/// row-major order, so XLA copies those that lie otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelOperand {
    /// Its number, from 0.
    pub index: usize,
    /// The array as the kernel takes it.
    pub shape: Shape,
    /// The instruction that makes it, or the parameter that it is.
    pub producer: String,
    /// What that is.
    pub producer_opcode: Opcode,
    /// What lies between the two, from the kernel backwards.
    pub between: Vec<OperandChange>,
}

impl KernelOperand {
    /// Bytes that are read and written to bring its elements into another order, in one call.
    #[must_use]
    pub fn copied_bytes(&self) -> u64 {
        let relayouts = self.between.iter().filter(|change| change.is_relayout);
        relayouts.map(|change| change.bytes).fold(0, u64::saturating_add)
    }
}

/// One instruction that changes the layout, shape, type or memory space of an operand, and computes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperandChange {
    /// The instruction, without `%`.
    pub instruction: String,
    /// What it is.
    pub opcode: Opcode,
    /// Whether elements move: not in a transfer between memory spaces, nor in a bitcast.
    pub is_relayout: bool,
    /// The array that it reads.
    pub from: Shape,
    /// The array that it writes.
    pub to: Shape,
    /// Bytes that it reads and writes; 0 for a bitcast.
    pub bytes: u64,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
}

/// The operands of a call, without those whose shape can't be told.
pub(super) fn operands(call: &Instruction<'_>, sizer: &mut Sizer<'_>) -> Vec<KernelOperand> {
    let operands = call.operands().enumerate();
    operands.filter_map(|(index, operand)| followed(index, operand.instruction()?, sizer)).collect()
}

fn followed(index: usize, operand: Instruction<'_>, sizer: &mut Sizer<'_>) -> Option<KernelOperand> {
    let shape = operand.shape().ok()?;
    let (mut producer, mut between) = (operand, Vec::new());
    while between.len() < MOST_CHANGES {
        let Some((change, source)) = change(&producer, sizer) else { break };
        between.push(change);
        producer = source;
    }
    let producer_opcode = producer.opcode();
    Some(KernelOperand { index, shape, producer: producer.name().to_owned(), producer_opcode, between })
}

/// What an instruction changes, and of which; `None` if it computes something, or several arrays go in.
fn change<'m>(instruction: &Instruction<'m>, sizer: &mut Sizer<'_>) -> Option<(OperandChange, Instruction<'m>)> {
    let first = |instruction: &Instruction<'m>| instruction.operands().next().and_then(|operand| operand.instruction());
    let changing = match instruction.opcode() {
        Opcode::CopyDone => first(instruction).filter(|start| start.opcode() == Opcode::CopyStart)?,
        Opcode::Fusion => *instruction,
        opcode if moves(opcode) => *instruction,
        _ => return None,
    };
    if changing.opcode() == Opcode::Fusion && !only_moves(&changing) {
        return None;
    }
    let source = first(&changing)?;
    let (from, to) = (source.shape().ok()?, instruction.shape().ok()?);
    from.as_array()?;
    let is_relayout = match changing.opcode() {
        Opcode::Bitcast | Opcode::BitcastConvert | Opcode::Convert => false,
        _ if from.dimensions() == to.dimensions() => CopyClass::of(&from, &to)? == CopyClass::Relayout,
        _ => true,
    };
    let bytes = match changing.opcode() {
        Opcode::Bitcast => 0,
        _ => sizer.physical_bytes(&from)?.saturating_add(sizer.physical_bytes(&to)?),
    };
    let change = OperandChange {
        instruction: changing.name().to_owned(),
        opcode: changing.opcode(),
        is_relayout,
        from,
        to,
        bytes,
        source: source_line(&changing),
    };
    Some((change, source))
}

/// Whether it changes how an array is held, and no value.
fn moves(opcode: Opcode) -> bool {
    use Opcode::{Bitcast, BitcastConvert, Convert, Copy, Pad, Reshape, Transpose};
    matches!(opcode, Bitcast | BitcastConvert | Convert | Copy | Pad | Reshape | Transpose)
}

/// Whether a fusion of one array only moves its elements.
fn only_moves(fusion: &Instruction<'_>) -> bool {
    let body = fusion.calls().next().and_then(|call| call.computation());
    fusion.operands().count() == 1
        && body.is_some_and(|body| {
            let mut within = body.instructions();
            within.all(|instruction| {
                moves(instruction.opcode()) || matches!(instruction.opcode(), Opcode::Parameter | Opcode::Constant)
            })
        })
}

#[cfg(test)]
mod tests {
    use crate::Audit;
    use tilewise::tpu::Generation;

    /// An instruction, whether elements move, and bytes.
    type Change = (String, bool, u64);

    /// Each operand of the kernel in a program: what makes it, and what lies between, with whether elements move.
    fn operands(text: &str) -> Vec<(String, Vec<Change>)> {
        let program = crate::Program::parse(text).expect("a program");
        let report = Audit::new(&program).machine(crate::Machine::Tpu(Generation::V5e)).run();
        let [kernel] = &report.kernels()[..] else { panic!("one kernel") };
        let change = |change: &super::OperandChange| (change.instruction.clone(), change.is_relayout, change.bytes);
        let row = |operand: &super::KernelOperand| {
            (operand.producer.clone(), operand.between.iter().map(change).collect::<Vec<_>>())
        };
        kernel.operands.iter().map(row).collect()
    }

    #[test]
    fn what_moves_elements_is_told_from_what_does_not() {
        let text = "HloModule m, is_scheduled=true
moved {
  p = f32[256,512]{0,1:T(8,128)} parameter(0)
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
  fused = f32[256,512]{1,0:T(8,128)} fusion(b), kind=kLoop, calls=moved
  computed = f32[256,512]{1,0:T(8,128)} fusion(a), kind=kLoop, calls=doubled
  ROOT k = f32[256,512]{1,0:T(8,128)} custom-call(a, copied, view, done, fused, computed), custom_call_target=\"tpu_custom_call\"
}
";
        let moved = 2 * 256 * 512 * 4;
        let change = |name: &str, is_relayout, bytes| (name.to_owned(), is_relayout, bytes);
        let expected = [
            ("a", vec![]),
            ("b", vec![change("copied", true, moved)]),
            ("b", vec![change("view", false, 0), change("copied", true, moved)]),
            ("a", vec![change("start", false, moved)]),
            ("b", vec![change("fused", true, moved)]),
            ("computed", vec![]),
        ];
        assert_eq!(operands(text), expected.map(|(producer, changes)| (producer.to_owned(), changes)));
    }
}
