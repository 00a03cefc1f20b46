//! Rows of an argument that are converted or scaled before a loop, of which each step looks some up: the step can look up the
//! argument's rows, and convert those.

use crate::{
    advice::{
        call_stacks::calls,
        change::Target,
        evidence::Evidence,
        finding::{Finding, LookedUp, MadeForSteps},
        program::{LiveArray, ProgramModel},
        recommendation::AdvisedArray,
        rule::{Proposal, Rule},
    },
    program::{SourceLine, count, is_elementwise, is_installed, name, passes_on, source_line},
};
use tilewise_hlo::{Instruction, Opcode, dataflow::Use};
use tilewise_memory::Machine;

/// The array matters from this part of the program's bytes on.
const MUCH: u64 = 8;
/// A step reads less than this part of the rows, and they are made of other operands that are as small.
const LITTLE: u64 = 8;
/// Most operations between an argument and the array.
const MOST: usize = 16;

pub(crate) struct RowsMadeBefore;

impl Rule for RowsMadeBefore {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.program().and_then(proposal).into_iter().collect()
    }
}

fn proposal(program: &ProgramModel<'_>) -> Option<Proposal> {
    let mut large: Vec<&LiveArray<'_>> = program.peak_temporaries().collect();
    large.retain(|array| array.bytes >= program.total_bytes / MUCH);
    let (largest, made, lookup) =
        large.into_iter().find_map(|array| Some((array, Made::of(program, array)?, Lookup::of(program, array)?)))?;
    let rows = *largest.bounds.first()?;
    let part = lookup.elements.checked_mul(rows)?.checked_div(largest.elements())?;
    let alike = program.temporaries().filter(|array| {
        array.elements() == largest.elements()
            && Made::of(program, array).is_some_and(|other| other.argument.index() == made.argument.index())
    });
    let alike: Vec<&LiveArray<'_>> = alike.collect();
    let bytes = alike.iter().filter(|array| array.is_at_peak).map(|array| array.bytes).fold(0, u64::saturating_add);
    let of = LookedUp { name: name(&made.argument), rows: (part, rows), source: source_line(&lookup.reader) };
    let source = lookup.around.as_ref().and_then(source_line);
    let finding = MadeForSteps { steps: lookup.steps, bytes, is_drawn: false, of: Some(of), source };
    let line = made.line(&lookup).or_else(|| source_line(&made.maker));
    let about = AdvisedArray { source: line, ..program.advised(largest) };
    let proposal = Proposal::new(Finding::MadeForSteps(finding), Target::Loop, about).bound();
    // A lookup in another order of dimensions is then one of the argument's copy in that order.
    let given = program.arguments().find(|given| given.instruction.index() == made.argument.index())?;
    let after = |array: &LiveArray<'_>| {
        let is_in_order = array.minor_to_major() == given.minor_to_major();
        if is_in_order { array.bytes / rows * part } else { given.bytes }
    };
    Some(proposal.at_most(alike.iter().map(|array| (array.buffer, after(array)))))
}

/// The making of an array from an argument, element by element.
struct Made<'m> {
    argument: Instruction<'m>,
    /// The last operation that makes other values, or another type.
    maker: Instruction<'m>,
}

impl<'m> Made<'m> {
    fn of(program: &ProgramModel<'m>, array: &LiveArray<'m>) -> Option<Self> {
        let (mut at, mut maker) = (array.instruction, None);
        for _ in 0..MOST {
            if at.opcode() == Opcode::Parameter {
                return at.computation().is_entry().then_some(Self { argument: at, maker: maker? });
            }
            let is_made = is_elementwise(&at) && !passes_on(&at);
            if !is_made && !passes_on(&at) {
                return None;
            }
            maker = maker.or(Some(at).filter(|_| is_made));
            let mut operands = at.operands().map(|of| of.instruction()).collect::<Option<Vec<_>>>()?;
            operands.retain(|of| count(of).is_none_or(|elements| elements > array.elements() / LITTLE));
            let [of] = operands[..] else { return None };
            at = program.module.instruction(of.index())?;
        }
        None
    }

    /// The line that makes all rows, of the innermost function that the lookup goes through as well.
    fn line(&self, lookup: &Lookup<'m>) -> Option<SourceLine> {
        let (made, looked_up) = (calls(&self.maker), calls(&lookup.reader));
        let own = made.iter().rev().filter(|frame| !is_installed(&frame.file));
        let mut shared = own.filter(|frame| {
            looked_up.iter().any(|other| (&other.file, &other.function) == (&frame.file, &frame.function))
        });
        shared.next().cloned().map(SourceLine::of)
    }
}

/// The only reader of an array, in a loop.
struct Lookup<'m> {
    /// The gather or slice.
    reader: Instruction<'m>,
    /// Elements that it reads.
    elements: u64,
    /// The loop, if it is known.
    around: Option<Instruction<'m>>,
    /// Number of its steps.
    steps: u64,
}

impl<'m> Lookup<'m> {
    fn of(program: &ProgramModel<'m>, array: &LiveArray<'m>) -> Option<Self> {
        let flow = program.flow;
        let mut readers = flow.readers(array.position);
        let (Some(Use::Read(op)), None) = (readers.next(), readers.next()) else { return None };
        let at = program.module.instruction(flow.instruction(op)?.index())?;
        if at.computation() == array.instruction.computation() {
            return None;
        }
        let number = (0..flow.operands(op).len()).find(|number| {
            flow.operand(op, *number).is_some_and(|operand| flow.origin(operand) == flow.origin(array.position))
        })?;
        let reader = if at.opcode() == Opcode::Fusion { fused(&at, number)? } else { at };
        let is_lookup = matches!(reader.opcode(), Opcode::Gather | Opcode::DynamicSlice);
        let elements = count(&reader).filter(|elements| is_lookup && *elements <= array.elements() / LITTLE)?;
        let around = flow.caller(op).and_then(|around| flow.instruction(around));
        let around = around.and_then(|around| program.module.instruction(around.index()));
        let steps = flow.executions(flow[op].body).filter(|steps| *steps > 1)?;
        Some(Self { reader, elements, around, steps })
    }
}

/// The only reader of a fusion's operand inside it.
fn fused<'m>(fusion: &Instruction<'m>, number: usize) -> Option<Instruction<'m>> {
    let inside = fusion.calls().find_map(|call| call.computation())?;
    let mut of = inside.instructions().find(|at| at.parameter_number() == Some(number))?;
    for _ in 0..MOST {
        let mut readers =
            inside.instructions().filter(|at| at.operand_indices().flatten().any(|read| read == of.index()));
        let (Some(reader), None) = (readers.next(), readers.next()) else { return None };
        if !passes_on(&reader) {
            return Some(reader);
        }
        of = reader;
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::{Audit, Program, recommendation::finding::Finding};

    /// 4,096 rows of bytes, made floats before a loop of 512 steps that each read 8 of them.
    #[test]
    fn a_step_converts_the_rows_that_it_looks_up() {
        let text = r#"HloModule jit_f, is_scheduled=true

body {
  c = (s32[], f32[8,1024], FROM) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[8,1024]{1,0:T(8,128)} get-tuple-element(c), index=1
  all = f32[4096,1024]{1,0:T(8,128)} get-tuple-element(c), index=2
  rows = s32[8]{0:T(128)} iota(), iota_dimension=0
  part = READ
  z = f32[8,1024]{1,0:T(8,128)} add(y, part)
  ROOT t = (s32[], f32[8,1024], FROM) tuple(n, z, all)
}
condition {
  d = (s32[], f32[8,1024], FROM) parameter(0)
  j = s32[] get-tuple-element(d), index=0
  k = s32[] constant(512)
  ROOT p = pred[] compare(j, k), direction=LT
}
ENTRY main {
  x.1 = u8[4096,1024]{1,0:T(8,128)(4,1)} parameter(0), metadata={op_name="data['x']"}
  y.1 = f32[8,1024]{1,0:T(8,128)} parameter(1), metadata={op_name="y"}
  all = f32[4096,1024]{1,0:T(8,128)} MADE(x.1)
  n = s32[] constant(0)
  begun = (s32[], f32[8,1024], FROM) tuple(n, y.1, all)
  done = (s32[], f32[8,1024], FROM) while(begun), condition=condition, body=body
  ROOT r = f32[8,1024]{1,0:T(8,128)} get-tuple-element(done), index=1
}"#;
        const LOOKUP: &str = "f32[8,1024]{1,0:T(8,128)} gather(all, rows), offset_dims={1}, collapsed_slice_dims={0}, \
                              start_index_map={0}, index_vector_dim=1, slice_sizes={1,1024}";
        let found = |made: &str, read: &str| {
            let text = text.replace("FROM", "f32[4096,1024]").replace("MADE", made).replace("READ", read);
            let report = Audit::new(&Program::parse(text).expect("a module")).run();
            report.advice().iter().find_map(|one| match &one.finding {
                Finding::MadeForSteps(made) => made.of.clone().map(|of| (of.name, of.rows)),
                _ => None,
            })
        };
        assert_eq!(found("convert", LOOKUP), Some(("data['x']".to_owned(), (8, 4096))));
        // All rows decide each one.
        assert_eq!(found("sort", LOOKUP), None);
        // Without rows there is nothing to divide by.
        let empty =
            text.replace("4096", "0").replace("FROM", "f32[0,1024]").replace("MADE", "convert").replace("READ", LOOKUP);
        let report = Audit::new(&Program::parse(empty).expect("a module")).run();
        assert!(!report.advice().iter().any(|one| matches!(one.finding, Finding::MadeForSteps(_))));
        // A step needs all rows.
        let all = "f32[8,1024]{1,0:T(8,128)} slice(all), slice={[0:8], [0:1024]}";
        assert_eq!(found("convert", all), None);
    }
}
