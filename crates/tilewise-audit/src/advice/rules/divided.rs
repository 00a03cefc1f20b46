//! Weights and optimizer state that don't fit beside the rest: devices share them.

use crate::advice::{
    change::Target,
    devices::Devices,
    finding::{Finding, MemoryFinding},
    program::{LiveArray, ProgramModel},
    rule::Proposal,
};
use crate::program::{Purpose, is_name, name, root};
use foldhash::HashSet;
use std::cmp::Reverse;
use tilewise::ElementKind;
use tilewise_hlo::Opcode;
use tilewise_memory::Machine;

/// Maximum number of devices to share them: a larger slice is seldom at hand.
const MOST: u64 = 256;

/// The weights and the optimizer's state, divided between the fewest devices with which the program fits, or between those
/// that each hold them whole now, with the bytes freed; `enough` gives those of a proposal that is enough. Values inside the
/// program keep their sizes: a product of a divided weight may be whole.
pub(crate) fn divided(
    program: &ProgramModel<'_>,
    enough: impl Fn(&Proposal) -> Option<u64>,
) -> Option<(u64, Proposal)> {
    let is_of_model = |array: &LiveArray<'_>| {
        let purpose = Purpose::of_argument(&name(&array.instruction));
        matches!(purpose, Purpose::Parameter | Purpose::OptimizerState)
    };
    let (replicated, devices) = (replicated(program), Devices::of(program));
    // Frozen weights, of any name, have no gradient.
    let is_frozen = |array: &LiveArray<'_>| {
        let is_wide = array.bounds.len() > 1 && array.element_type().kind() == ElementKind::Float;
        is_wide && devices.as_ref().is_some_and(|devices| devices.holds_whole(program, array))
    };
    let is_whole = |array: &&LiveArray<'_>| match program.partitions {
        0 | 1 => is_of_model(array),
        _ => is_of_model(array) && replicated.contains(&array.bounds) || is_frozen(array),
    };
    let arrays: Vec<&LiveArray<'_>> = program.arguments().filter(is_whole).collect();
    let mut roots: Vec<String> = Vec::new();
    for array in &arrays {
        let root = root(&name(&array.instruction)).to_owned();
        if is_name(&root) && !roots.contains(&root) {
            roots.push(root);
        }
    }
    let largest = arrays.iter().max_by_key(|array| array.bytes).filter(|_| program.machine != Machine::Cpu)?;
    let bytes = arrays.iter().map(|array| array.bytes).fold(0, u64::saturating_add);
    let mesh_axis = devices.as_ref().and_then(|devices| devices.mesh_axis).map(str::to_owned);
    let of_type = |element| {
        arrays.iter().filter(move |array| array.element_type() == element).map(|array| array.bytes).sum::<u64>()
    };
    let element = arrays.iter().map(|array| array.element_type()).find(|element| of_type(*element) > bytes / 2);
    // An array of its own, rather than a part of a tree.
    let is_only = arrays.len() == 1 && roots.contains(&name(&largest.instruction));
    let only = |devices: u64| {
        let even = largest.bounds.iter().copied().enumerate().filter(|(_, size)| size.is_multiple_of(devices));
        even.max_by_key(|(dimension, size)| (*size, Reverse(*dimension))).filter(|_| is_only)
    };
    let between = |devices: u64| {
        let parts = arrays.iter().map(|array| (array.buffer, array.bytes.div_ceil(devices)));
        let roots = roots.clone();
        let finding = match program.partitions {
            0 | 1 => MemoryFinding::Arguments { bytes, devices, left: None, roots, element },
            _ => MemoryFinding::Replicated {
                bytes,
                devices,
                roots,
                mesh_axis: mesh_axis.clone(),
                dimension: only(devices),
            },
        };
        Proposal::new(Finding::Memory(finding), Target::Argument, program.advised(largest)).at_most(parts).bound()
    };
    let more = std::iter::successors(Some(2), |devices| Some(devices * 2)).take_while(|devices| *devices <= MOST);
    let own = (program.partitions > 1).then_some(program.partitions);
    own.into_iter().chain(more.filter(|_| own.is_none())).find_map(|devices| {
        let proposal = between(devices);
        Some((enough(&proposal)?, proposal))
    })
}

/// Bounds of weights that each device holds whole: their gradients are added up over all devices, and whole on each then.
fn replicated(program: &ProgramModel<'_>) -> HashSet<Vec<u64>> {
    let sums = program.module.instructions().filter(|at| {
        let is_sum = matches!(at.opcode(), Opcode::AllReduce | Opcode::AllReduceStart);
        is_sum && at.group_size().is_none_or(|devices| devices == program.partitions)
    });
    let shapes = sums.filter_map(|sum| sum.shape().ok());
    shapes.flat_map(|shape| shape.leaves().filter_map(|(_, leaf)| leaf.bounds()).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use crate::{
        Audit, Machine, Program,
        recommendation::{
            Recommendation,
            finding::{Finding, MemoryFinding},
        },
    };
    use tilewise::tpu::Generation;

    /// A step on four devices whose gradient is added up over `groups`, for a memory of 84 MiB: weights, momentum and gradient of 32 each.
    fn advice(groups: &str) -> Vec<Recommendation> {
        let text = format!(
            r#"HloModule jit_step, is_scheduled=true, input_output_alias={{ {{0}}: (0, {{}}, may-alias), {{1}}: (1, {{}}, may-alias) }}, num_partitions=4

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

ENTRY main (w.1: f32[2048,4096], m.1: f32[2048,4096], x.1: f32[64,2048]) -> (f32[2048,4096], f32[2048,4096]) {{
  w.1 = f32[2048,4096]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="params['w']"}}
  m.1 = f32[2048,4096]{{1,0:T(8,128)}} parameter(1), metadata={{op_name="opt_state['mu']"}}
  x.1 = f32[64,2048]{{1,0:T(8,128)}} parameter(2), metadata={{op_name="x"}}
  y = f32[64,4096]{{1,0:T(8,128)}} dot(x.1, w.1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, metadata={{op_name="jit(step)/jvp()/dot_general"}}
  g = f32[2048,4096]{{1,0:T(8,128)}} dot(x.1, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}, metadata={{op_name="jit(step)/transpose(jvp())/dot_general"}}
  sum = f32[2048,4096]{{1,0:T(8,128)}} all-reduce(g), replica_groups={groups}, to_apply=add
  m.2 = f32[2048,4096]{{1,0:T(8,128)}} add(m.1, sum)
  w.2 = f32[2048,4096]{{1,0:T(8,128)}} subtract(w.1, m.2)
  ROOT r = (f32[2048,4096]{{1,0:T(8,128)}}, f32[2048,4096]{{1,0:T(8,128)}}) tuple(w.2, m.2)
}}"#
        );
        let program = Program::parse(text).expect("a module");
        Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(Some(84 << 20)).run().advice().to_vec()
    }

    #[test]
    fn what_all_devices_add_up_is_divided_between_them() {
        let found = |groups: &str| {
            let advice = advice(groups);
            advice.into_iter().find_map(|one| match one.finding {
                Finding::Memory(MemoryFinding::Replicated { bytes, devices, roots, .. }) => {
                    Some((bytes, devices, roots))
                }
                _ => None,
            })
        };
        let roots = || vec!["params".to_owned(), "opt_state".to_owned()];
        assert_eq!(found("{{0,1,2,3}}"), Some((64 << 20, 4, roots())));
        // Weights that two devices add up are divided between the others already.
        assert_eq!(found("{{0,1},{2,3}}"), None);
    }

    /// A frozen model beside a divided batch, on four devices; `y` is what follows from both.
    fn frozen(y: &str) -> Option<Vec<String>> {
        let text = format!(
            r#"HloModule jit_step, is_scheduled=true, num_partitions=4

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

ENTRY main (w.1: bf16[4096,4096], x.1: bf16[64,4096]) -> f32[] {{
  w.1 = bf16[4096,4096]{{1,0:T(8,128)(2,1)}} parameter(0), metadata={{op_name="teacher['w']"}}
  x.1 = bf16[64,4096]{{1,0:T(8,128)(2,1)}} parameter(1), metadata={{op_name="x"}}
  zero = f32[]{{:T(128)}} constant(0)
{y}
  r = f32[]{{:T(128)}} reduce(y, zero), dimensions={{0,1}}, to_apply=add
  ROOT all = f32[]{{:T(128)}} all-reduce(r), replica_groups={{{{0,1,2,3}}}}, to_apply=add
}}"#
        );
        let report = Audit::new(&Program::parse(text).expect("a module")).run();
        report.advice().iter().find_map(|one| match &one.finding {
            Finding::Memory(MemoryFinding::Replicated { roots, .. }) => Some(roots.clone()),
            _ => None,
        })
    }

    #[test]
    fn a_frozen_model_that_nothing_divides() {
        let product = "f32[64,4096]{1,0:T(8,128)} dot(x.1, w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
        // Sums of the batch: its rows are divided, and the columns may be.
        let gathered =
            "  g = bf16[256,4096]{1,0:T(8,128)(2,1)} all-gather(x.1), replica_groups={{0,1,2,3}}, dimensions={0}
  s = bf16[64,4096]{1,0:T(8,128)(2,1)} slice(g), slice={[0:64], [0:4096]}";
        let rows = product.replace("x.1, w.1", "s, w.1");
        let whole = format!(
            "{gathered}\n  z = {rows}\n  y = f32[64,4096]{{1,0:T(8,128)}} custom-call(z), custom_call_target=\"own\""
        );
        assert_eq!(frozen(&whole), Some(vec!["teacher".to_owned()]));
        // Each device has a part of the contracted features: its products are added up over all.
        let parts = format!(
            "  z = {product}\n  y = f32[64,4096]{{1,0:T(8,128)}} all-reduce(z), replica_groups={{{{0,1,2,3}}}}, to_apply=add"
        );
        assert_eq!(frozen(&parts), None);
    }
}
