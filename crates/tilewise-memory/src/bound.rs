//! Upper bound of a program's memory under any schedule.

use foldhash::HashSet;

use tilewise_hlo::{Opcode, dataflow::Dataflow};

use crate::{Error, ErrorKind, Machine, buffers::donations, compiler, planner::Functions, rules::HOST, size::storages};

/// The most bytes of the device's default memory that a program needs under any schedule: no two values share memory
/// except donated arguments and their results.
///
/// No plan of the same instructions is larger. A heap puts each buffer at its start or at the end of another buffer,
/// which makes it no higher than all buffers stacked at the [machine](Machine)'s alignment. Arguments, results,
/// constants and tables are counted as in a plan.
///
/// # Errors
///
/// Those of [`MemoryPlan::new`](crate::MemoryPlan::new), except [`ErrorKind::Unscheduled`].
///
/// ```
/// use tilewise::tpu::Generation;
/// use tilewise_hlo::{Module, dataflow::Dataflow};
///
/// let text = "\
/// HloModule m, input_output_alias={}
///
/// ENTRY %main (x: f32[8,128]) -> f32[8,128] {
///   %x = f32[8,128]{1,0:T(8,128)} parameter(0)
///   %a = f32[8,128]{1,0:T(8,128)} negate(%x)
///   ROOT %b = f32[8,128]{1,0:T(8,128)} dot(%a, %a)
/// }
/// ";
/// let most = |text: &str| {
///     let flow = Dataflow::new(&Module::parse(text)?);
///     tilewise_memory::unshared_bytes(&flow, Generation::V5e.into())
/// };
/// // An argument and a result of 4 KiB; a temporary takes a multiple of 16 KiB.
/// assert_eq!(most(text)?, (4 + 4 + 16) << 10);
/// assert_eq!(most(&text.replace("alias={}", "alias={ {}: (0, {}) }"))?, (4 + 16) << 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn unshared_bytes(flow: &Dataflow, machine: Machine) -> Result<u64, Error> {
    if let Some(gap) = flow.gap() {
        return Err(gap.into());
    }
    let entry = flow.entry().ok_or(ErrorKind::NoEntry)?;
    let rules = compiler::of(machine, flow);
    let storages = storages(flow, &*rules)?;
    let mut total = Functions::new(flow.module(), &*rules)?.constant_bytes;
    let mut add = |bytes: Option<u64>| {
        total = bytes.and_then(|bytes| total.checked_add(bytes)).ok_or(ErrorKind::Overflow)?;
        Ok::<(), Error>(())
    };
    // A result in a donated argument is counted as the argument.
    let given: HashSet<_> = donations(flow)?.into_iter().map(|(_, result)| result).collect();
    let arguments = flow[entry].parameters.iter().flat_map(|op| flow.positions(*op));
    let results = flow.positions(flow[entry].root).filter(|position| !given.contains(position));
    for position in arguments.chain(results).filter(|position| storages[*position].memory_space != HOST) {
        add(Some(storages[position].bytes))?;
    }
    let results: HashSet<_> = flow.positions(flow[entry].root).filter_map(|position| flow.value_at(position)).collect();
    for (value, &position) in flow.values().iter() {
        let (op, storage) = (&flow[flow.op_at(position)], &storages[position]);
        let is_argument = op.opcode == Opcode::Parameter && op.body == entry;
        if is_argument || results.contains(&value) || !rules.is_device_memory(storage.memory_space) {
            continue;
        }
        let is_constant = op.opcode == Opcode::Constant;
        let alignment = rules.alignment(storage.memory_space).filter(|_| !is_constant).unwrap_or(1);
        add(storage.bytes.checked_next_multiple_of(alignment))?;
    }
    Ok(total)
}
