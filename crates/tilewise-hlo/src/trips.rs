//! How often a loop runs.

use crate::attributes::unquote;
use crate::calls::CallRole;
use crate::computation::Computation;
use crate::instruction::Instruction;
use crate::opcode::Opcode;

/// Copies between a value and where it is used; a longer chain is not followed.
const STEPS: usize = 16;

impl<'m> Instruction<'m> {
    /// How often the body of this `while` runs: what the compiler noted (`known_trip_count` in its `backend_config`),
    /// else what counting from a constant to a constant in steps of a constant gives. `None` for other instructions,
    /// and where it depends on values.
    ///
    /// The counter is found as `MatchTrivialLoopTripCount` in xla/service/while_loop_analysis.cc does: the condition is
    /// `counter < bound` or `counter <= bound`, the body adds a constant to it.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let text = "w = (s32[]) while(t), condition=c, body=b, backend_config={\"known_trip_count\":{\"n\":\"12\"}}";
    /// let module = Module::parse(text)?;
    /// assert_eq!(module.instructions().next().unwrap().trip_count(), Some(12));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn trip_count(&self) -> Option<u64> {
        if self.opcode() != Opcode::While {
            return None;
        }
        self.noted_trip_count().or_else(|| Loop::of(self)?.trip_count())
    }

    fn noted_trip_count(&self) -> Option<u64> {
        // Older compilers quote the whole config and escape the quotes in it.
        let config = unquote(self.attribute("backend_config")?);
        let (_, count) = config.split_once("\"known_trip_count\"")?;
        let (_, number) = count.split_once("\"n\"")?;
        let number = number.trim_start_matches([' ', ':', '"']);
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        number[..digits].parse().ok()
    }
}

/// A `while`: what it begins with, and its two computations.
struct Loop<'m> {
    init: Instruction<'m>,
    condition: Computation<'m>,
    body: Computation<'m>,
}

impl<'m> Loop<'m> {
    fn of(instruction: &Instruction<'m>) -> Option<Self> {
        let called = |role| instruction.calls().find(|call| call.role == role)?.computation();
        Some(Self {
            init: instruction.operands().next()?.instruction()?,
            condition: called(CallRole::Condition)?,
            body: called(CallRole::Body)?,
        })
    }

    fn trip_count(&self) -> Option<u64> {
        let compare = self.condition.root().filter(|root| root.opcode() == Opcode::Compare)?;
        let [counter, bound] = two_operands(&compare)?;
        let counter = element_of_parameter(counter)?;
        let bound = constant(bound).or_else(|| self.unchanged(element_of_parameter(bound)?))?;
        let inclusive = match compare.attribute("direction")? {
            "LT" => 0,
            "LE" => 1,
            _ => return None,
        };
        let first = self.initial(counter)?;
        let step = self.step(counter).filter(|step| *step > 0)?;
        let distance = u64::try_from(bound.checked_add(inclusive)?.checked_sub(first)?.max(0)).ok()?;
        Some(distance.div_ceil(u64::try_from(step).ok()?))
    }

    /// What an element of the loop's tuple begins with, if that is a constant.
    fn initial(&self, element: usize) -> Option<i64> {
        constant(element_of_tuple(self.init, element)?)
    }

    /// The constant that an element of the loop's tuple is in every turn.
    fn unchanged(&self, element: usize) -> Option<i64> {
        let next = element_of_tuple(self.body.root()?, element)?;
        let stays = element_of_parameter(next)? == element;
        if stays { self.initial(element) } else { None }
    }

    /// The constant that the body adds to an element of the loop's tuple.
    fn step(&self, element: usize) -> Option<i64> {
        let add = source(element_of_tuple(self.body.root()?, element)?);
        let [left, right] = two_operands(&add).filter(|_| add.opcode() == Opcode::Add)?;
        let [value, step] = if element_of_parameter(left).is_some() { [left, right] } else { [right, left] };
        (element_of_parameter(value)? == element).then_some(())?;
        constant(step).or_else(|| self.unchanged(element_of_parameter(step)?))
    }
}

/// What an instruction copies, through copies of copies.
fn source(instruction: Instruction<'_>) -> Instruction<'_> {
    let mut at = instruction;
    for _ in 0..STEPS {
        if !matches!(at.opcode(), Opcode::Copy | Opcode::CopyStart | Opcode::CopyDone | Opcode::Bitcast) {
            break;
        }
        let Some(operand) = at.operands().next().and_then(|operand| operand.instruction()) else { break };
        at = operand;
    }
    at
}

fn two_operands<'m>(instruction: &Instruction<'m>) -> Option<[Instruction<'m>; 2]> {
    let mut operands = instruction.operands();
    Some([operands.next()?.instruction()?, operands.next()?.instruction()?])
}

fn constant(instruction: Instruction<'_>) -> Option<i64> {
    let constant = source(instruction);
    if constant.opcode() == Opcode::Constant { constant.operands_text().trim().parse().ok() } else { None }
}

/// Which element of its computation's parameter this is.
fn element_of_parameter(instruction: Instruction<'_>) -> Option<usize> {
    let element = source(instruction);
    if element.opcode() != Opcode::GetTupleElement {
        return None;
    }
    let tuple = element.operands().next()?.instruction()?;
    (tuple.opcode() == Opcode::Parameter).then_some(())?;
    element.attribute("index")?.parse().ok()
}

fn element_of_tuple(instruction: Instruction<'_>, element: usize) -> Option<Instruction<'_>> {
    let tuple = source(instruction);
    if tuple.opcode() == Opcode::Tuple { tuple.operands().nth(element)?.instruction() } else { None }
}

#[cfg(test)]
mod tests {
    use crate::Module;

    /// A loop that counts from 0, copied as the TPU compiler does, in steps of `step` while `condition` holds.
    fn counted(step: &str, condition: &str) -> Option<u64> {
        let text = format!(
            "
body {{ p = (s32[], s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  x = f32[8] get-tuple-element(p), index=2
  step = s32[] {step}
  held = s32[] copy(i)
  next = s32[] add(held, step)
  ROOT t = (s32[], s32[], f32[8]) tuple(next, n, x)
}}
condition {{ p = (s32[], s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  x = s32[] get-tuple-element(p), index=2
  six = s32[] constant(6)
  ROOT c = pred[] compare({condition}
}}
ENTRY main {{ x = f32[8] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], s32[], u32[]) copy-start(zero)
  first = s32[] copy-done(start)
  n = s32[] constant(12)
  init = (s32[], s32[], f32[8]) tuple(first, n, x)
  ROOT w = (s32[], s32[], f32[8]) while(init), condition=%condition, body=%body
}}"
        );
        let module = Module::parse(text).unwrap();
        module.entry().unwrap().root().unwrap().trip_count()
    }

    #[test]
    fn loops_from_a_constant_to_a_constant_are_counted() {
        assert_eq!(counted("constant(1)", "i, six), direction=LT"), Some(6));
        assert_eq!(counted("constant(1)", "i, six), direction=LE"), Some(7));
        assert_eq!(counted("constant(4)", "i, six), direction=LT"), Some(2));
        // The bound is carried through the loop.
        assert_eq!(counted("constant(1)", "i, n), direction=LT"), Some(12));
        assert_eq!(counted("constant(9223372036854775807)", "i, n), direction=LT"), Some(1));
    }

    #[test]
    fn other_loops_are_not() {
        assert_eq!(counted("constant(0)", "i, six), direction=LT"), None);
        assert_eq!(counted("constant(-1)", "i, six), direction=LT"), None);
        assert_eq!(counted("constant(1)", "i, six), direction=NE"), None);
        assert_eq!(counted("constant(1)", "six, i), direction=LT"), None);
        assert_eq!(counted("constant(1)", "i, x), direction=LT"), None);
        assert_eq!(counted("constant(1)", "n, six), direction=LT"), None);
        assert_eq!(counted("negate(i)", "i, six), direction=LT"), None);
        assert_eq!(counted("constant({1})", "i, six), direction=LT"), None);
    }

    #[test]
    fn what_the_compiler_noted_counts() {
        let noted = |config: &str| {
            let module = Module::parse(format!("w = f32[] while(t), body=b, backend_config={config}")).unwrap();
            module.instructions().next().unwrap().trip_count()
        };
        assert_eq!(noted(r#"{"known_trip_count":{"n":"12"},"known_init_step":{"init":"0","step":"1"}}"#), Some(12));
        assert_eq!(noted(r#""{\"known_trip_count\":{\"n\":\"7\"}}""#), Some(7));
        assert_eq!(noted(r#"{"known_trip_count":{"n":"99999999999999999999"}}"#), None);
        assert_eq!(noted(r#"{"known_trip_count":{}}"#), None);
    }

    #[test]
    fn circles_end() {
        let text = "w = (s32[]) while(w), condition=c, body=b\na = s32[] copy(b)\nb = s32[] copy(a)";
        let module = Module::parse(text).unwrap();
        assert!(module.instructions().all(|instruction| instruction.trip_count().is_none()));
    }
}
