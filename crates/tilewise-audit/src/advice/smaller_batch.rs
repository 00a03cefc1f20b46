//! A smaller batch: the change without code for a program that doesn't fit.

use super::{
    finding::SmallerBatch,
    program::{BufferChanges, LiveArray, ProgramModel},
};
use crate::program::{is_input, name, root};
use foldhash::{HashMap, HashSet};
use std::iter::successors;
use tilewise_hlo::dataflow::AxisId;

/// Maximum number of equal parts of a batch of which one is worth naming.
const MOST_PARTS: u64 = 4;

/// No batch has as few samples.
const FEW_ROWS: u64 = 4;

/// The batch that fits of a step whose samples aren't independent, such as where they are mixed or normalized together: parts would
/// compute something else, but a smaller batch is another step of the same kind.
pub(super) fn smaller_batch_of_step(program: &ProgramModel<'_>) -> Option<SmallerBatch> {
    if !program.has_gradient || !program.is_too_large() {
        return None;
    }
    let axes = program.flow.axes();
    // Inputs begin with it, and no weight has it.
    let mut inputs: HashMap<u64, (HashSet<AxisId>, Vec<String>)> = HashMap::default();
    let mut of_weights: HashSet<AxisId> = HashSet::default();
    for parameter in program.parameters() {
        let name = name(&parameter);
        for leaf in 0..axes.leaves(parameter.index()) {
            if !is_input(&name) {
                of_weights.extend(axes.in_array(&parameter, leaf));
                continue;
            }
            let of_rows = axes.of_dimension(&parameter, leaf, 0);
            let rows = of_rows.iter().map(|axis| axes.all()[*axis].size).fold(1, u64::saturating_mul);
            // Keys of random numbers have few.
            if let Some(first) = of_rows.first().filter(|_| rows > FEW_ROWS) {
                let (all, names) = inputs.entry(rows).or_default();
                all.insert(*first);
                names.push(name.clone());
            }
        }
    }
    // Several sizes may be those of a graph's nodes and edges.
    let [(rows, (batch, names))] = <[_; 1]>::try_from(Vec::from_iter(inputs)).ok()?;
    if !batch.is_disjoint(&of_weights) {
        return None;
    }
    // Pairs of samples have it twice.
    let times = |array: &LiveArray<'_>| {
        let (at, leaf) = program.flow.told(array.position)?;
        let dimensions = axes.of_array(&at, leaf).filter(|all| all.iter().any(|axis| batch.contains(axis)));
        u32::try_from(dimensions.count()).ok().filter(|times| *times > 0)
    };
    let with_it: Vec<(&LiveArray<'_>, u32)> =
        program.temporaries().filter_map(|array| Some((array, times(array)?))).collect();
    let at_peak = with_it.iter().filter(|(array, _)| array.is_at_peak).map(|(array, _)| array.bytes);
    if at_peak.fold(0, u64::saturating_add) < program.temporary_bytes / 2 {
        return None;
    }
    let of_part = |(array, times): &(&LiveArray<'_>, u32), parts: u64| {
        (array.buffer, array.bytes / parts.saturating_pow(*times).max(1))
    };
    let part = |parts: u64| with_it.iter().map(|found| of_part(found, parts)).collect();
    smaller_batch(program, rows, &[(0, names)], part).map(|found| SmallerBatch { is_mixed: true, ..found })
}

/// The batch that fits, of these inputs; `part` gives the bytes of each buffer with a part of the batch.
pub(super) fn smaller_batch(
    program: &ProgramModel<'_>,
    size: u64,
    inputs: &[(usize, Vec<String>)],
    part: impl Fn(u64) -> Vec<(usize, u64)>,
) -> Option<SmallerBatch> {
    let names: HashSet<&str> = inputs.iter().flat_map(|(_, names)| names).map(String::as_str).collect();
    let is_input = |name: &str| names.contains(name) || names.contains(root(name));
    let taken = |parts: u64| {
        let passed = program.arguments().filter(|array| is_input(&name(&array.instruction)));
        let passed = passed.map(|array| (array.buffer, array.bytes / parts));
        let changes = BufferChanges { at_most: part(parts).into_iter().chain(passed).collect(), ..Default::default() };
        (size / parts, program.total_with([&changes]))
    };
    // It fits even if a tenth less is freed.
    let fits = |after: u64| program.fits_without(program.total_bytes.saturating_sub(after) / 10 * 9);
    successors(Some(2_u64), |parts| parts.checked_mul(2))
        .take_while(|parts| *parts <= MOST_PARTS && size.is_multiple_of(*parts))
        .map(taken)
        .find(|(_, after)| fits(*after))
        .map(|(to, bytes_after)| SmallerBatch { size, to, bytes_after, is_mixed: false })
}

#[cfg(test)]
mod tests {
    use crate::{Audit, Program};
    use tilewise::tpu::Generation;
    use tilewise_memory::Machine;

    /// A step that normalizes over its batch and its features, of inputs that begin with these sizes.
    fn smaller(others: &str) -> Option<(u64, u64)> {
        let text = format!(
            "HloModule jit_step, is_scheduled=true

add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }}

ENTRY main {{
  x = f32[64,65536]{{1,0:T(8,128)}} parameter(0), metadata={{op_name=\"batch['x']\"}}
  w = f32[65536]{{0:T(1024)}} parameter(1), metadata={{op_name=\"params['w']\"}}
  z = f32[{others},128]{{1,0:T(8,128)}} parameter(2), metadata={{op_name=\"batch['z']\"}}
  zero = f32[] constant(0)
  wide = f32[64,65536]{{1,0:T(8,128)}} broadcast(w), dimensions={{1}}
  y = f32[64,65536]{{1,0:T(8,128)}} multiply(x, wide), metadata={{op_name=\"jit(step)/jvp(f)/mul\"}}
  mean = f32[65536]{{0:T(1024)}} reduce(y, zero), dimensions={{0}}, to_apply=add, metadata={{op_name=\"jit(step)/jvp(f)/reduce_sum\"}}
  means = f32[64,65536]{{1,0:T(8,128)}} broadcast(mean), dimensions={{1}}
  n = f32[64,65536]{{1,0:T(8,128)}} subtract(y, means), metadata={{op_name=\"jit(step)/jvp(f)/sub\"}}
  row = f32[64]{{0:T(128)}} reduce(n, zero), dimensions={{1}}, to_apply=add
  rows = f32[64,65536]{{1,0:T(8,128)}} broadcast(row), dimensions={{0}}
  o = f32[64,65536]{{1,0:T(8,128)}} subtract(n, rows), metadata={{op_name=\"jit(step)/jvp(f)/sub\"}}
  t = f32[64,65536]{{1,0:T(8,128)}} tanh(o), metadata={{op_name=\"jit(step)/jvp(f)/tanh\"}}
  g = f32[64,65536]{{1,0:T(8,128)}} multiply(t, n), metadata={{op_name=\"jit(step)/transpose(jvp(f))/mul\"}}
  h = f32[64,65536]{{1,0:T(8,128)}} multiply(g, x), metadata={{op_name=\"jit(step)/transpose(jvp(f))/mul\"}}
  ROOT dw = f32[65536]{{0:T(1024)}} reduce(h, zero), dimensions={{0}}, to_apply=add, metadata={{op_name=\"jit(step)/transpose(jvp(f))/reduce_sum\"}}
}}"
        );
        let program = Program::parse(&text).expect("a module");
        let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(56 << 20).run();
        report.smaller_batch().map(|batch| (batch.size, batch.to))
    }

    #[test]
    fn samples_that_are_normalized_together() {
        assert_eq!(smaller("64"), Some((64, 32)));
        // Nodes and edges of a graph.
        assert_eq!(smaller("4096"), None);
    }
}
