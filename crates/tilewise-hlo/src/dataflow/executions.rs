//! The numbers of executions of computations.

use crate::{CallRole, Opcode, attributes::unquote};

use super::{Body, BodyId, Dataflow, OpId, Position, Table};

/// The number of executions of each computation; `None` if a loop around it can't be counted.
#[derive(Debug)]
pub(super) struct Executions(Table<Body, Option<u64>>);

impl Executions {
    pub(super) fn new(flow: &Dataflow) -> Self {
        let mut counts: Table<Body, Option<Option<u64>>> = Table::filled(flow.bodies().len(), None);
        let mut waiting: Vec<(BodyId, Option<u64>)> = flow.entry().map(|entry| (entry, Some(1))).into_iter().collect();
        while let Some((body, count)) = waiting.pop() {
            // A scheduled program calls each computation from one place.
            if counts[body].is_some() {
                continue;
            }
            counts[body] = Some(count);
            for caller in flow[body].ops().filter(|op| flow[*op].opcode != Opcode::Fusion) {
                for &(role, callee) in flow.calls(caller) {
                    let each = match role {
                        CallRole::Body | CallRole::Condition => flow.trip_count(caller),
                        _ => Some(1),
                    };
                    waiting.push((callee, count.zip(each).map(|(count, each)| count.saturating_mul(each))));
                }
            }
        }
        Self(counts.iter().map(|(_, count)| count.flatten()).collect::<Vec<_>>().into())
    }
}

/// Numbers of executions.
impl Dataflow {
    /// The number of executions of a computation: the [trip counts](Self::trip_count) of the loops around it,
    /// multiplied. `None` if one of them is unknown.
    #[must_use]
    pub fn executions(&self, body: BodyId) -> Option<u64> {
        self.all_executions().0[body]
    }

    /// The number of times the body of a `while` runs: as the compiler noted it (`known_trip_count` in its
    /// `backend_config`), else counted from a constant to a constant in steps of a constant. `None` for other
    /// instructions, and if it depends on values.
    ///
    /// The counter is found as `MatchTrivialLoopTripCount` in xla/service/while_loop_analysis.cc does: the condition is
    /// `counter < bound` or `counter <= bound`, the body adds a constant to it.
    ///
    /// ```
    /// use tilewise_hlo::{Module, dataflow::Dataflow};
    ///
    /// let text = "w = (s32[]) while(t), condition=c, body=b, backend_config={\"known_trip_count\":{\"n\":\"12\"}}";
    /// let module = Module::parse(text)?;
    /// let flow = Dataflow::new(&module);
    /// let root = flow.entry().map(|entry| flow[entry].root).expect("a computation around the line");
    /// assert_eq!(flow.trip_count(root), Some(12));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn trip_count(&self, op: OpId) -> Option<u64> {
        if self[op].opcode != Opcode::While {
            return None;
        }
        self.noted_trip_count(op).or_else(|| Loop::of(self, op)?.trip_count())
    }

    fn noted_trip_count(&self, op: OpId) -> Option<u64> {
        // Older compilers quote the whole config and escape the quotes in it.
        let config = unquote(self.instruction(op)?.attribute("backend_config")?);
        let (_, count) = config.split_once("\"known_trip_count\"")?;
        let (_, number) = count.split_once("\"n\"")?;
        let number = number.trim_start_matches([' ', ':', '"']);
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        number[..digits].parse().ok()
    }
}

/// A `while`: its initial value, the parameters of its two computations, and the next turn's value.
struct Loop<'f> {
    flow: &'f Dataflow,
    initial: Position,
    condition: BodyId,
    condition_parameter: Position,
    body_parameter: Position,
    next: Position,
}

impl<'f> Loop<'f> {
    fn of(flow: &'f Dataflow, op: OpId) -> Option<Self> {
        let (condition, body) = (flow.callee(op, CallRole::Condition)?, flow.callee(op, CallRole::Body)?);
        let parameter = |body: BodyId| Some(flow[*flow[body].parameters.first()?].position);
        let this = Self {
            flow,
            initial: flow.operand(op, 0)?,
            condition,
            condition_parameter: parameter(condition)?,
            body_parameter: parameter(body)?,
            next: flow.result(body),
        };
        // XLA checks this of a loop.
        let extent = flow.extent(this.initial);
        let carried = [this.condition_parameter, this.body_parameter, this.next];
        carried.iter().all(|carried| flow.extent(*carried) == extent).then_some(this)
    }

    fn trip_count(&self) -> Option<u64> {
        let flow = self.flow;
        let compare = flow[self.condition].root;
        let [counter, bound] = self.operands(compare, Opcode::Compare)?;
        let counter = self.element(counter, self.condition_parameter)?;
        let inclusive = match flow.instruction(compare)?.attribute("direction")? {
            "LT" => 0,
            "LE" => 1,
            _ => return None,
        };
        let (first, bound) = (self.constant(self.initial.plus(counter))?, self.constant(bound)?);
        let step = self.step(counter).filter(|step| *step > 0)?;
        let distance = u64::try_from(bound.checked_add(inclusive)?.checked_sub(first)?.max(0)).ok()?;
        Some(distance.div_ceil(u64::try_from(step).ok()?))
    }

    /// The constant that the body adds to an element of the loop's carry.
    fn step(&self, element: usize) -> Option<i64> {
        let add = self.flow.op_at(self.flow.origin(self.next.plus(element)));
        let [left, right] = self.operands(add, Opcode::Add)?;
        let (value, step) =
            if self.element(left, self.body_parameter).is_some() { (left, right) } else { (right, left) };
        (self.element(value, self.body_parameter)? == element).then_some(())?;
        self.constant(step)
    }

    /// The two operands of an instruction, if it is one of this opcode.
    fn operands(&self, op: OpId, opcode: Opcode) -> Option<[Position; 2]> {
        let flow = self.flow;
        (flow[op].opcode == opcode).then_some([flow.operand(op, 0)?, flow.operand(op, 1)?])
    }

    /// The element of a parameter that a value is; `None` if every turn has the same value there.
    fn element(&self, position: Position, parameter: Position) -> Option<usize> {
        let origin = self.flow.origin(position);
        (self.flow.op_at(origin) == self.flow.op_at(parameter)).then(|| origin.since(parameter))
    }

    fn constant(&self, position: Position) -> Option<i64> {
        let constant = self.flow.op_at(self.flow.origin(position));
        let text = self.flow.instruction(constant)?.operands_text();
        if self.flow[constant].opcode == Opcode::Constant { text.trim().parse().ok() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Module, dataflow::Dataflow};

    /// The trip count of the entry's root.
    fn trip_count(module: &Module) -> Option<u64> {
        let flow = Dataflow::new(module);
        flow.entry().and_then(|entry| flow.trip_count(flow[entry].root))
    }

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
        trip_count(&module)
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
            trip_count(&module)
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
        let flow = Dataflow::new(&module);
        assert!(flow.ops().ids().all(|op| flow.trip_count(op).is_none()));
    }
}
