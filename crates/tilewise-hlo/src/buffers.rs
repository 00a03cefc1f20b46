//! Results that are new buffers, and those that only name a buffer that another instruction made.
//!
//! The rules are those of `HloDataflowAnalysis::InitializeInstructionValueSets`
//! (xla/hlo/analysis/hlo_dataflow_analysis.cc).

use std::collections::BTreeSet;

use tilewise::{Shape, ShapeKind};

use crate::calls::CallRole;
use crate::computation::Computation;
use crate::error::{Error, ErrorKind};
use crate::instruction::Instruction;
use crate::module::Module;
use crate::opcode::Opcode;
use crate::record::Data;
use crate::scan::skip_trivia;

/// A buffer: one array in the result of the instruction that makes it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Buffer<'m> {
    /// The instruction that makes it.
    pub instruction: Instruction<'m>,
    /// The path to it within the tuples of the instruction's shape; empty if the result is no tuple.
    pub shape_index: Vec<usize>,
    /// The shape of the array, as written.
    pub shape: Shape,
}

/// The leaves of a result that are new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Definition {
    Nothing,
    Everything,
    /// All leaves but those under this element of the result's tuple.
    Except(usize),
    /// The leaves under this element of the result's tuple, and under the elements after it.
    From(usize),
}

impl Definition {
    fn of(instruction: &Instruction<'_>) -> Self {
        match instruction.opcode() {
            Opcode::Bitcast
            | Opcode::Tuple
            | Opcode::GetTupleElement
            | Opcode::OptimizationBarrier
            | Opcode::AddDependency
            | Opcode::Domain
            | Opcode::While
            | Opcode::Conditional
            | Opcode::Call
            | Opcode::CopyDone
            | Opcode::AllGatherDone
            | Opcode::AllReduceDone
            | Opcode::CollectivePermuteDone
            | Opcode::SendDone
            | Opcode::RecvDone
            | Opcode::AsyncUpdate
            | Opcode::AsyncDone => Self::Nothing,
            Opcode::Parameter if !instruction.computation().is_entry() => Self::Nothing,
            Opcode::CopyStart => Self::Except(1),
            Opcode::AllGatherStart | Opcode::CollectivePermuteStart | Opcode::Send => Self::Except(0),
            // The operands, then the result of the wrapped computation, then contexts. The result is made by the
            // computation's root, unless the text leaves that out.
            Opcode::AsyncStart => match (instruction.wrapped_opcode(), wrapped(instruction)) {
                (None, Some(_)) => Self::From(2),
                (Some(_), _) if !first_is_tuple(instruction.shape_text()) => Self::Everything,
                _ => Self::Except(0),
            },
            _ => Self::Everything,
        }
    }

    fn includes(self, index: &[usize]) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Except(element) => index.first() != Some(&element),
            Self::From(element) => index.first().is_some_and(|first| *first >= element),
        }
    }
}

/// The arrays of an instruction's result that are new buffers, by the rules of [`Instruction::defines`].
#[derive(Clone, Debug)]
pub struct Definitions {
    definition: Definition,
    aliased: BTreeSet<Vec<usize>>,
}

impl Definitions {
    /// Whether the array at this path is a new buffer.
    #[must_use]
    pub fn include(&self, index: &[usize]) -> bool {
        self.definition.includes(index) && !is_aliased(&self.aliased, index)
    }

    /// Whether the opcode makes no buffer at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.definition == Definition::Nothing
    }
}

fn first_is_tuple(shape: &str) -> bool {
    let bytes = shape.as_bytes();
    bytes.first() == Some(&b'(') && bytes.get(skip_trivia(bytes, 1)) == Some(&b'(')
}

/// The computation that an `async-start` wraps, if the text has it.
fn wrapped<'m>(instruction: &Instruction<'m>) -> Option<Computation<'m>> {
    instruction.calls().find(|call| call.role == CallRole::Calls)?.computation()
}

/// Whether one of the aliases has this path, or that of a tuple on it.
fn is_aliased(aliased: &BTreeSet<Vec<usize>>, index: &[usize]) -> bool {
    !aliased.is_empty() && (0..=index.len()).any(|length| aliased.contains(&index[..length]))
}

impl<'m> Instruction<'m> {
    /// Whether its callees run in memory of their own, as a loop's body does and a fusion's doesn't.
    pub(crate) fn runs_callees(&self) -> bool {
        let opcode = self.wrapped_opcode().unwrap_or(self.opcode());
        matches!(opcode, Opcode::While | Opcode::Conditional | Opcode::Call | Opcode::AsyncStart)
    }

    /// Whether the array at this path in its result is a new buffer; else it is one that another instruction made.
    ///
    /// - `bitcast`, `tuple`, `get-tuple-element`, `opt-barrier`, `add-dependency`, `domain`, `while`, `conditional`,
    ///   `call`, all `…-done` and `…-update` make nothing. A `parameter` is a buffer in the entry computation only.
    /// - `copy-start` makes {0} and {2}; {1} is its operand.
    /// - In `all-gather-start`, `collective-permute-start`, `send` and in all `…-start` whose first element is a
    ///   tuple, {0} is the operands. The rest is made.
    /// - An `async-start` whose computation is in the text makes only its contexts, {2} and on: its result {1} is
    ///   made by the root of that computation, or by whatever that root aliases.
    /// - Outputs listed in `output_to_operand_aliasing` are the operand's.
    /// - Everything else is made.
    ///
    /// # Errors
    ///
    /// [`Syntax`](crate::ErrorKind::Syntax) for a malformed `output_to_operand_aliasing`.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let text = "c = (f32[8]{0:S(1)}, f32[8]{0}, u32[]{:S(2)}) copy-start(x)";
    /// let module = Module::parse(text)?;
    /// let start = module.instructions().next().unwrap();
    /// assert!(start.defines(&[0])? && !start.defines(&[1])? && start.defines(&[2])?);
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    pub fn defines(&self, index: &[usize]) -> Result<bool, Error> {
        Ok(self.definitions()?.include(index))
    }

    /// The arrays of its result that are new buffers, for several queries.
    ///
    /// # Errors
    ///
    /// [`Syntax`](crate::ErrorKind::Syntax) for a malformed `output_to_operand_aliasing`.
    pub fn definitions(&self) -> Result<Definitions, Error> {
        let definition = Definition::of(self);
        let aliased = if definition == Definition::Nothing { BTreeSet::new() } else { self.aliased_outputs()? };
        Ok(Definitions { definition, aliased })
    }

    fn aliased_outputs(&self) -> Result<BTreeSet<Vec<usize>>, Error> {
        Ok(self.output_to_operand_aliasing()?.into_iter().map(|alias| alias.output_index).collect())
    }

    /// The buffers it makes, in the order of its shape. Tokens, opaque values and `b(…)` references are no buffers.
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::ErrorKind::Shape) for a shape that `tilewise` rejects, [`Syntax`](crate::ErrorKind::Syntax)
    /// for a malformed `output_to_operand_aliasing`.
    pub fn buffers(&self) -> Result<Vec<Buffer<'m>>, Error> {
        let definitions = self.definitions()?;
        if definitions.is_empty() {
            return Ok(Vec::new());
        }
        let shape = self.shape().map_err(|error| {
            let message = format!("the shape of `{}` isn't valid: {error}", self.name());
            // The text may leave out the shape of an instruction that is an operand.
            let place = Some(self.record().shape.range()).filter(|place| place.end <= self.data.length);
            Error::new(ErrorKind::Shape, place, message).caused_by(error)
        })?;
        let arrays = shape
            .leaves()
            .filter(|(index, leaf)| matches!(leaf.kind(), ShapeKind::Array(_)) && definitions.include(index));
        Ok(arrays.map(|(shape_index, shape)| Buffer { instruction: *self, shape_index, shape }).collect())
    }
}

impl Computation<'_> {
    /// Whether its instructions have buffers of their own.
    ///
    /// They do in the entry computation and in those it runs: bodies and conditions of `while`, branches of
    /// `conditional`, callees of `call`, and computations wrapped in an `async-start`, at any depth. They don't in the
    /// bodies of fusions, in reducers, comparators and other `to_apply`, nor in callees of a `custom-call`: those work
    /// within their caller's buffers.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("\
    /// body { x = f32[] parameter(0)
    ///   ROOT y = f32[] add(x, x)
    /// }
    /// ENTRY main { p = f32[8] parameter(0)
    ///   ROOT f = f32[8] fusion(p), kind=kLoop, calls=body
    /// }
    /// ")?;
    /// assert!(!module.computation("body").unwrap().owns_buffers());
    /// assert!(module.computation("main").unwrap().owns_buffers());
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn owns_buffers(&self) -> bool {
        let owning = self.data.owning.get_or_init(|| owning(self.data));
        owning.get(self.index).copied().unwrap_or_default()
    }
}

/// For each computation, whether it owns buffers: those that the entry reaches.
fn owning(data: &Data) -> Vec<bool> {
    let mut owning = vec![false; data.computations.len()];
    let mut waiting: Vec<_> = data.entry.map(|index| Computation { data, index }).into_iter().collect();
    while let Some(computation) = waiting.pop() {
        if std::mem::replace(&mut owning[computation.index()], true) {
            continue;
        }
        for instruction in computation.instructions() {
            if instruction.runs_callees() {
                waiting.extend(instruction.calls().filter_map(|call| call.computation()));
            }
        }
    }
    owning
}

impl Module {
    /// Every buffer of the module: each array that an instruction [makes](Instruction::defines) in a computation that
    /// [owns buffers](Computation::owns_buffers), in the order of the text.
    ///
    /// Buffers may share memory: by `input_output_alias`, by the loop of a `while`, or because one is dead before the
    /// other lives. An instruction whose shape or aliases can't be read is an error in its place; the iteration goes
    /// on.
    ///
    /// ```
    /// # use tilewise_hlo::Module;
    /// let module = Module::parse("\
    /// ENTRY main {
    ///   p = f32[8]{0} parameter(0)
    ///   c = (f32[8]{0:S(1)}, f32[8]{0}, u32[]{:S(2)}) copy-start(p)
    ///   ROOT d = f32[8]{0:S(1)} copy-done(c)
    /// }
    /// ")?;
    /// let buffers = module.buffers().collect::<Result<Vec<_>, _>>()?;
    /// let rows: Vec<_> = buffers.iter().map(|b| (b.instruction.name(), &b.shape_index[..], b.shape.to_string())).collect();
    /// assert_eq!(rows[0], ("p", &[][..], "f32[8]{0}".to_owned()));
    /// assert_eq!(rows[1], ("c", &[0][..], "f32[8]{0:S(1)}".to_owned()));
    /// assert_eq!(rows[2], ("c", &[2][..], "u32[]{:S(2)}".to_owned()));
    /// assert_eq!(rows.len(), 3);
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    pub fn buffers(&self) -> impl Iterator<Item = Result<Buffer<'_>, Error>> {
        let owning = self.computations().filter(Computation::owns_buffers);
        owning.flat_map(|computation| computation.instructions()).flat_map(|instruction| {
            let (buffers, error) = match instruction.buffers() {
                Ok(buffers) => (buffers, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            buffers.into_iter().map(Ok).chain(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths that the one instruction of a text makes.
    fn made(text: &str) -> Vec<Vec<usize>> {
        let module = Module::parse(text).unwrap();
        let instruction = module.instructions().next_back().unwrap();
        instruction.buffers().unwrap().into_iter().map(|buffer| buffer.shape_index).collect()
    }

    #[test]
    fn rules_by_opcode() {
        let nothing = [
            "bitcast",
            "get-tuple-element",
            "tuple",
            "while",
            "call",
            "slice-done",
            "all-gather-done",
            "async-update",
            "domain",
        ];
        for opcode in nothing {
            assert!(made(&format!("x = (f32[2], f32[3]) {opcode}(a)")).is_empty(), "{opcode}");
        }
        assert_eq!(made("x = f32[2] fusion(a), kind=kLoop, calls=f"), [[]; 1]);
        assert_eq!(made("x = (f32[2], (s8[], token[])) custom-call(a)"), [vec![0], vec![1, 0]]);
        assert_eq!(made("x = (f32[2], f32[2], u32[]) copy-start(a)"), [[0], [2]]);
        assert_eq!(made("x = ((f32[8]), f32[2], s32[]) slice-start(a)"), [[1], [2]]);
        assert_eq!(made("x = (f32[2], f32[4]) all-gather-start(a)"), [[1]]);
        assert_eq!(made("x = ((f32[2], f32[3]), (f32[4], f32[6])) all-gather-start(a, b)"), [[1, 0], [1, 1]]);
        assert_eq!(made("x = (f32[2], f32[2], u32[], u32[]) collective-permute-start(a)"), [[1], [2], [3]]);
        assert_eq!(made("x = (f32[2], f32[3]) all-reduce-start(a, b)"), [[0], [1]]);
        assert_eq!(made("x = (f32[2], u32[], token[]) send(a, t)"), [[1]]);
        assert_eq!(made("x = (f32[2], u32[], token[]) recv(t)"), [[0], [1]]);
        assert_eq!(made("x = ((f32[2]), f32[2], u32[]) async-start(a), calls=elsewhere"), [[1], [2]]);
        assert!(made("x = token[] after-all()").is_empty());
        assert!(made("x = b(f32[2]{0}) custom-call()").is_empty());
    }

    #[test]
    fn aliased_outputs_are_not_made() {
        assert!(made("x = f32[2] fusion(a), output_to_operand_aliasing={{}: (0, {})}").is_empty());
        assert_eq!(
            made("x = (f32[2], (f32[3], f32[4]), f32[5]) custom-call(a), output_to_operand_aliasing={{1}: (0, {})}"),
            [[0], [2]]
        );
        let module = Module::parse("x = f32[2] fusion(a), output_to_operand_aliasing={{}}").unwrap();
        let x = module.instructions().next().unwrap();
        assert_eq!(x.defines(&[]).unwrap_err().kind(), ErrorKind::Syntax);
        assert_eq!(module.buffers().next().unwrap().unwrap_err().kind(), ErrorKind::Syntax);
    }

    #[test]
    fn what_an_async_start_wraps_makes_its_result() {
        let text = "
wrapped { p = f32[8] parameter(0)
  ROOT s = f32[2] slice(p)
}
ENTRY main { a = f32[8] parameter(0)
  start = ((f32[8]), f32[2], u32[]) async-start(a), calls=%wrapped
  ROOT done = f32[2] async-done(start)
}";
        let module = Module::parse(text).unwrap();
        let names: Vec<_> = module.buffers().map(|buffer| buffer.unwrap().instruction.name()).collect();
        assert_eq!(names, ["s", "a", "start"]);
    }

    #[test]
    fn circles_of_calls_end() {
        let text = "ENTRY f { a = f32[] call(), to_apply=g\n}\ng { b = f32[] call(), to_apply=f\n c = f32[] while(b), body=g\n}";
        let module = Module::parse(text).unwrap();
        assert!(module.computations().all(|computation| computation.owns_buffers()));
    }

    #[test]
    fn a_bad_shape_is_an_error_in_its_place() {
        let module = Module::parse("x = f33[2] add(a)\ny = f32[2] add(a)").unwrap();
        let rows: Vec<_> = module.buffers().collect();
        let error = rows[0].as_ref().unwrap_err();
        assert_eq!((error.kind(), error.span()), (ErrorKind::Shape, Some(4..10)));
        assert!(rows[1].is_ok());
    }
}
