//! Traversal orders of compilers: callees before callers, operands before users.

use tilewise_hlo::dataflow::{Body, BodyId, Dataflow, Op, OpId, Table};

#[derive(Clone, Copy, PartialEq)]
enum Visit {
    Not,
    Begun,
    Done,
}

/// The index within its computation of each instruction that runs: operands before users, depth first from the
/// instructions without users. `before` returns more predecessors of an instruction.
pub(crate) fn post_order(flow: &Dataflow, before: impl Fn(OpId) -> Vec<OpId>) -> Table<Op, usize> {
    let mut order = Table::filled(flow.ops().len(), 0);
    let mut visits = Table::filled(flow.ops().len(), Visit::Not);
    let mut has_user = Table::filled(flow.ops().len(), false);
    for op in flow.ops().ids() {
        for operand in flow.operands(op) {
            has_user[*operand] = true;
        }
    }
    for (_, body) in flow.bodies().iter().filter(|(_, body)| body.runs) {
        let mut place = 0;
        for last in body.ops().filter(|op| !has_user[*op]) {
            let mut waiting = vec![last];
            while let Some(&op) = waiting.last() {
                match visits[op] {
                    Visit::Not => {
                        visits[op] = Visit::Begun;
                        let operands = flow.operands(op).iter().rev().copied();
                        waiting.extend(operands.filter(|operand| visits[*operand] == Visit::Not));
                        waiting.extend(before(op).into_iter().filter(|other| visits[*other] == Visit::Not));
                    }
                    Visit::Begun => {
                        waiting.pop();
                        visits[op] = Visit::Done;
                        order[op] = place;
                        place += 1;
                    }
                    Visit::Done => {
                        waiting.pop();
                    }
                }
            }
        }
    }
    order
}

/// The index of each computation in reverse post-order from the entry: callers before callees.
pub(crate) fn callers_first(flow: &Dataflow) -> Table<Body, usize> {
    let mut place = Table::filled(flow.bodies().len(), 0);
    let mut is_entered = Table::filled(flow.bodies().len(), false);
    let mut done: Vec<BodyId> = Vec::with_capacity(flow.bodies().len());
    let mut stack: Vec<(BodyId, usize, usize)> = Vec::new();
    if let Some(entry) = flow.entry() {
        is_entered[entry] = true;
        stack.push((entry, 0, 0));
    }
    while let Some((body, k, call)) = stack.pop() {
        let Some(op) = flow[body].op(k) else {
            done.push(body);
            continue;
        };
        match flow.calls(op).get(call) {
            None => stack.push((body, k + 1, 0)),
            Some(&(_, callee)) => {
                stack.push((body, k, call + 1));
                if !is_entered[callee] {
                    is_entered[callee] = true;
                    stack.push((callee, 0, 0));
                }
            }
        }
    }
    for (at, body) in done.into_iter().rev().enumerate() {
        place[body] = at;
    }
    place
}

/// The control predecessors of an instruction in its computation (`control-predecessors`).
pub(crate) fn control_predecessors(flow: &Dataflow, op: OpId) -> Vec<OpId> {
    let Some(instruction) = flow.instruction(op).filter(|_| !flow[op].is_hidden) else { return Vec::new() };
    let Some(names) = instruction.attribute("control-predecessors") else { return Vec::new() };
    let computation = instruction.computation();
    let names = names.trim_matches(['{', '}']).split(',').map(|name| name.trim().trim_start_matches('%'));
    names.filter_map(|name| flow.op(&computation.instruction(name)?)).collect()
}
