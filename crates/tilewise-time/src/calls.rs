//! Computations that run as sequences, and those within one instruction.

use foldhash::HashMap;

use tilewise_hlo::{CallRole, Computation, Instruction, Opcode};

/// Computations, callees before their callers, each once.
pub(crate) struct Calls {
    /// Those that run as a sequence of instructions, by index; the entry is the last.
    pub(crate) sequences: Vec<usize>,
    /// Those within one instruction: bodies of fusions, and computations of asynchronous instructions and custom calls.
    pub(crate) inner: Vec<usize>,
    /// The computations that each instruction calls, with their roles, by the instruction's index.
    called: HashMap<usize, Vec<(CallRole, usize)>>,
}

impl Calls {
    /// `None` if computations call each other in a circle, as no compiler prints.
    pub(crate) fn of(computations: &[Computation<'_>], entry: usize) -> Option<Self> {
        let mut called = HashMap::default();
        let mut callees = |computation: usize, is_caller: fn(Opcode) -> bool| {
            let callers = computations[computation].instructions().filter(|at| is_caller(at.opcode()));
            let mut all = Vec::new();
            for instruction in callers {
                let found = called.entry(instruction.index()).or_insert_with(|| called_by(&instruction));
                all.extend(found.iter().map(|(_, callee)| *callee));
            }
            all
        };
        let sequences =
            callees_first(computations.len(), vec![entry], |computation| callees(computation, is_sequence))?;
        let wrapped = sequences.iter().flat_map(|computation| callees(*computation, is_inner)).collect();
        let calls_inside = |opcode: Opcode| matches!(opcode, Opcode::Fusion | Opcode::Call | Opcode::CustomCall);
        let inner = callees_first(computations.len(), wrapped, |computation| callees(computation, calls_inside))?;
        Some(Self { sequences, inner, called })
    }

    /// The computations that an instruction calls, by index, with their roles.
    pub(crate) fn of_instruction(&self, instruction: &Instruction<'_>) -> &[(CallRole, usize)] {
        self.called.get(&instruction.index()).map_or(&[], Vec::as_slice)
    }
}

/// Whether its computations run as sequences of instructions.
fn is_sequence(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::While | Opcode::Conditional | Opcode::Call)
}

fn is_inner(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Fusion | Opcode::AsyncStart | Opcode::CustomCall)
}

fn called_by(instruction: &Instruction<'_>) -> Vec<(CallRole, usize)> {
    instruction.calls().filter_map(|call| Some((call.role, call.computation()?.index()))).collect()
}

/// All computations that the roots lead to, callees first; `None` if one leads to itself.
fn callees_first(count: usize, roots: Vec<usize>, mut callees: impl FnMut(usize) -> Vec<usize>) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; count];
    let (mut order, mut open) = (Vec::new(), vec![(None, roots)]);
    while let Some((computation, waiting)) = open.last_mut() {
        if let Some(next) = waiting.pop() {
            match states[next] {
                State::New => {
                    states[next] = State::Open;
                    open.push((Some(next), callees(next)));
                }
                State::Open => return None,
                State::Done => {}
            }
        } else {
            if let Some(done) = *computation {
                states[done] = State::Done;
                order.push(done);
            }
            open.pop();
        }
    }
    Some(order)
}
