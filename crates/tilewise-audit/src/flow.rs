//! Where values come from and go to.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};
use tilewise_hlo::{Instruction, Module, Opcode};

/// Longer chains of copies and elementwise operations aren't followed.
const STEPS: usize = 12;
/// Nor are more than so many readers looked at.
pub(crate) const READERS: usize = 256;

/// Who reads what, worked out for a computation when it is first asked about.
pub(crate) struct Flow<'m> {
    module: &'m Module,
    /// By computation, then by instruction.
    users: RefCell<HashMap<usize, HashMap<usize, Vec<usize>>>>,
}

impl<'m> Flow<'m> {
    pub(crate) fn new(module: &'m Module) -> Self {
        Self { module, users: RefCell::default() }
    }

    /// The instructions of its computation that read its result.
    pub(crate) fn users(&self, instruction: &Instruction<'m>) -> Vec<Instruction<'m>> {
        let computation = instruction.computation();
        let mut known = self.users.borrow_mut();
        let users = known.entry(computation.index()).or_insert_with(|| {
            let mut users: HashMap<usize, Vec<usize>> = HashMap::new();
            for user in computation.instructions() {
                for operand in user.operands().filter_map(|operand| operand.instruction()) {
                    users.entry(operand.index()).or_default().push(user.index());
                }
            }
            users
        });
        let of_this = users.get(&instruction.index()).map_or(&[][..], Vec::as_slice);
        of_this.iter().take(READERS).filter_map(|user| self.module.instruction(*user)).collect()
    }

    /// The instructions that read its result, seen through what only passes it on.
    pub(crate) fn readers(&self, instruction: &Instruction<'m>) -> Vec<Instruction<'m>> {
        let (mut readers, mut seen) = (Vec::new(), HashSet::new());
        let mut waiting = vec![*instruction];
        while let Some(at) = waiting.pop() {
            for user in self.users(&at) {
                if readers.len() < READERS && seen.insert(user.index()) {
                    if passes_on(&user) { waiting.push(user) } else { readers.push(user) }
                }
            }
        }
        readers
    }

    /// Whether nothing but elementwise operations lies between this and the program's results.
    pub(crate) fn is_elementwise_to_the_end(&self, from: &Instruction<'m>) -> bool {
        let mut seen = HashSet::new();
        let mut front = vec![*from];
        while let Some(at) = front.pop() {
            for user in self.users(&at) {
                if seen.len() > READERS || !(passes_on(&user) || is_elementwise(&user)) {
                    return false;
                }
                if seen.insert(user.index()) && !user.is_root() {
                    front.push(user);
                }
            }
        }
        !seen.is_empty()
    }

    /// Whether a chain of operations on the same rows leads from here down to such an instruction.
    pub(crate) fn leads_to(&self, from: &Instruction<'m>, is: impl Fn(&Instruction<'m>) -> bool) -> bool {
        self.reached(from, |at| self.readers(at), is).is_some()
    }

    /// Such an instruction, if it makes this, or if a chain of operations on the same rows begins with it.
    pub(crate) fn source(
        &self,
        to: &Instruction<'m>,
        is: impl Fn(&Instruction<'m>) -> bool,
    ) -> Option<Instruction<'m>> {
        if is(to) { Some(*to) } else { self.reached(to, operands, is) }
    }

    /// Whether this is made of another's elements, each of the same, or of it with some of them replaced.
    pub(crate) fn updates(&self, this: &Instruction<'m>, other: &Instruction<'m>) -> bool {
        let keeps = |at: &Instruction<'m>| {
            passes_on(at) || is_elementwise(at) || does(at, Opcode::DynamicUpdateSlice) || does(at, Opcode::Scatter)
        };
        let next = |at: &Instruction<'m>| if keeps(at) { operands(at) } else { Vec::new() };
        self.reached(this, next, |at| at.index() == other.index()).is_some()
    }

    fn reached(
        &self,
        from: &Instruction<'m>,
        next: impl Fn(&Instruction<'m>) -> Vec<Instruction<'m>>,
        is: impl Fn(&Instruction<'m>) -> bool,
    ) -> Option<Instruction<'m>> {
        let bounds = bounds(from)?;
        let mut seen = HashSet::new();
        let mut front = vec![*from];
        for _ in 0..STEPS {
            let mut onward = Vec::new();
            for at in front.iter().flat_map(&next) {
                if seen.len() > READERS || !seen.insert(at.index()) {
                    continue;
                }
                if is(&at) {
                    return Some(at);
                }
                if self::bounds(&at).is_some_and(|at| at == bounds) {
                    onward.push(at);
                }
            }
            front = onward;
        }
        None
    }
}

fn operands<'m>(instruction: &Instruction<'m>) -> Vec<Instruction<'m>> {
    instruction.operands().filter_map(|operand| operand.instruction()).collect()
}

/// The first array of a result.
fn bounds(instruction: &Instruction<'_>) -> Option<Vec<u64>> {
    let shape = instruction.shape().ok()?;
    let (_, first) = shape.leaves().next()?;
    first.dimensions().iter().map(|dimension| dimension.bound()).collect()
}

/// Whether an instruction hands its operand on as it is.
pub(crate) fn passes_on(instruction: &Instruction<'_>) -> bool {
    matches!(
        instruction.opcode(),
        Opcode::Copy | Opcode::CopyStart | Opcode::CopyDone | Opcode::Bitcast | Opcode::GetTupleElement
    ) || instruction.wrapped_opcode() == Some(Opcode::Slice)
        || is_concatenation(instruction)
}

/// Whether an instruction puts slices of an array together again.
pub(crate) fn is_concatenation(instruction: &Instruction<'_>) -> bool {
    instruction.opcode() == Opcode::CustomCall && target(instruction).is_some_and(|target| target.contains("Concat"))
}

/// What a `custom-call` calls.
pub(crate) fn target<'m>(instruction: &Instruction<'m>) -> Option<&'m str> {
    Some(instruction.attribute("custom_call_target")?.trim_matches('"'))
}

/// Whether an instruction, or what it fuses, is one with this opcode.
pub(crate) fn does(instruction: &Instruction<'_>, opcode: Opcode) -> bool {
    /// Fusions in fusions: a scatter's are three deep.
    const DEPTH: usize = 4;
    let mut front = vec![*instruction];
    for _ in 0..DEPTH {
        let mut inner = Vec::new();
        for at in &front {
            if at.opcode() == opcode {
                return true;
            }
            if at.opcode() == Opcode::Fusion {
                let called = at.calls().filter_map(|call| call.computation());
                inner.extend(called.flat_map(|computation| computation.instructions().collect::<Vec<_>>()));
            }
        }
        front = inner;
    }
    false
}

/// Whether each element of the result depends on the same elements of the operands only.
pub(crate) fn is_elementwise(instruction: &Instruction<'_>) -> bool {
    if instruction.opcode() != Opcode::Fusion {
        return is_elementwise_opcode(instruction.opcode());
    }
    let mut called = instruction.calls().filter_map(|call| call.computation()).peekable();
    called.peek().is_some()
        && called.all(|computation| computation.instructions().all(|inner| is_elementwise_opcode(inner.opcode())))
}

/// Whether an instruction does nothing but add its operands' elements up, or the like, to few: in whatever order they lie.
pub(crate) fn is_reduction(instruction: &Instruction<'_>) -> bool {
    let mut elements = instruction.operands().filter_map(|operand| count(&operand.instruction()?));
    let (mut largest, mut second) = (0, 0);
    for elements in elements.by_ref() {
        second = second.max(elements.min(largest));
        largest = largest.max(elements);
    }
    let is_small = |elements: u64| elements <= largest / 8;
    let is_reduced =
        |inner: &Instruction<'_>| inner.opcode() == Opcode::Reduce || is_elementwise_opcode(inner.opcode());
    is_small(second)
        && count(instruction).is_some_and(is_small)
        && match instruction.opcode() {
            Opcode::Reduce => true,
            Opcode::Fusion => {
                let mut called = instruction.calls().filter_map(|call| call.computation()).peekable();
                called.peek().is_some()
                    && called.all(|computation| computation.instructions().all(|inner| is_reduced(&inner)))
            }
            _ => false,
        }
}

/// The elements of all arrays of a result.
fn count(instruction: &Instruction<'_>) -> Option<u64> {
    let shape = instruction.shape().ok()?;
    let elements = |leaf: tilewise::Shape| {
        leaf.dimensions().iter().try_fold(1_u64, |product, dimension| product.checked_mul(dimension.bound()?))
    };
    shape.leaves().map(|(_, leaf)| elements(leaf)).try_fold(0_u64, |sum, elements| sum.checked_add(elements?))
}

fn is_elementwise_opcode(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Abs
            | Opcode::Add
            | Opcode::And
            | Opcode::Atan2
            | Opcode::Bitcast
            | Opcode::BitcastConvert
            | Opcode::Broadcast
            | Opcode::Cbrt
            | Opcode::Ceil
            | Opcode::Clamp
            | Opcode::Compare
            | Opcode::Constant
            | Opcode::Convert
            | Opcode::Copy
            | Opcode::Cosine
            | Opcode::Divide
            | Opcode::Erf
            | Opcode::Exponential
            | Opcode::ExponentialMinusOne
            | Opcode::Floor
            | Opcode::IsFinite
            | Opcode::Log
            | Opcode::LogPlusOne
            | Opcode::Logistic
            | Opcode::Maximum
            | Opcode::Minimum
            | Opcode::Multiply
            | Opcode::Negate
            | Opcode::Not
            | Opcode::Or
            | Opcode::Parameter
            | Opcode::Popcnt
            | Opcode::Power
            | Opcode::Remainder
            | Opcode::RoundNearestAfz
            | Opcode::RoundNearestEven
            | Opcode::Rsqrt
            | Opcode::Select
            | Opcode::ShiftLeft
            | Opcode::ShiftRightArithmetic
            | Opcode::ShiftRightLogical
            | Opcode::Sign
            | Opcode::Sine
            | Opcode::Sqrt
            | Opcode::Subtract
            | Opcode::Tan
            | Opcode::Tanh
            | Opcode::Tuple
            | Opcode::Xor
    )
}
