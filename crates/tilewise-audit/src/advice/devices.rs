//! Arrays that devices which run a program together hold alike: arguments that nothing divides, and values that follow from no
//! device's own part.

use super::program::{LiveArray, ProgramModel};
use crate::program::{any_fused, bounds, elements, passes_on, with_fused};
use foldhash::{HashMap, HashSet};
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{AxisId, EventKind, FactorKind, Reached},
};

/// Maximum number of instructions between a sum over devices and what it adds up.
const MOST_FOLLOWED: usize = 64;

/// The division of arrays between devices, by the collectives of a program.
pub(crate) struct Devices<'m> {
    /// Axes of which each device has a part, by the collectives along them.
    divided: HashSet<AxisId>,
    /// Axes that are whole again behind collectives of computed values; those of weights are gathered to be used.
    gathered: HashSet<AxisId>,
    /// Whether a collective is of some devices alone: the others along another axis of the mesh divide other dimensions.
    has_groups: bool,
    /// Arrays that differ between devices.
    own: Reached,
    /// Collectives that gather a part of each device.
    gathers: Vec<Instruction<'m>>,
    /// The mesh's axis of collectives of all devices; `None` if the program doesn't name it.
    pub(crate) mesh_axis: Option<&'m str>,
}

impl<'m> Devices<'m> {
    /// Of a program for several devices; `None` if nothing shows what they divide.
    pub(crate) fn of(program: &ProgramModel<'m>) -> Option<Self> {
        if program.partitions <= 1 {
            return None;
        }
        let axes = program.flow.axes();
        let is_of_all = |at: &Instruction<'_>| at.group_size().is_none_or(|devices| devices == program.partitions);
        let mut summed: HashMap<usize, Vec<AxisId>> = HashMap::default();
        for (axis, _) in axes.all().iter() {
            for event in axes.events(axis) {
                if matches!(event.kind, EventKind::Ends(FactorKind::Sum | FactorKind::Reduce)) {
                    summed.entry(event.instruction).or_default().push(axis);
                }
            }
        }
        let (mut divided, mut gathered, mut joins) = (HashSet::default(), HashSet::default(), HashSet::default());
        let (mut own, mut gathers, mut mesh_axis, mut has_groups) = (Vec::new(), Vec::new(), None, false);
        let mut fusions: HashMap<usize, Instruction<'m>> = HashMap::default();
        for at in program.module.instructions().filter(|at| at.opcode() == Opcode::Fusion) {
            fusions.extend(at.calls().filter_map(|call| Some((call.computation()?.index(), at))));
        }
        for at in program.module.instructions() {
            let operands = || at.operand_indices().flatten().filter_map(|operand| program.module.instruction(operand));
            let along = |of: &Instruction<'_>| -> Vec<AxisId> {
                let dimensions = at.dimensions().unwrap_or_default();
                dimensions.iter().flat_map(|dimension| axes.of_dimension(of, 0, *dimension)).copied().collect()
            };
            let is_own = match at.opcode() {
                Opcode::AllGather | Opcode::AllGatherStart => {
                    let parts: Vec<AxisId> = operands().flat_map(|operand| along(&operand)).collect();
                    if operands().all(|operand| is_computed(program, operand, &fusions)) {
                        gathered.extend(along(&at));
                    }
                    divided.extend(parts);
                    gathers.push(at);
                    !is_of_all(&at)
                }
                Opcode::AllReduce | Opcode::AllReduceStart => {
                    operands().for_each(|operand| divided.extend(added_up(program, operand, &summed)));
                    !is_of_all(&at)
                }
                Opcode::ReduceScatter => {
                    divided.extend(along(&at));
                    operands().for_each(|operand| divided.extend(added_up(program, operand, &summed)));
                    true
                }
                Opcode::AllToAll
                | Opcode::RaggedAllToAll
                | Opcode::CollectivePermute
                | Opcode::CollectivePermuteStart => {
                    operands().for_each(|operand| divided.extend(axes.in_array(&operand, 0)));
                    true
                }
                Opcode::PartitionId | Opcode::ReplicaId => true,
                _ => continue,
            };
            has_groups |= !is_of_all(&at);
            if is_own {
                own.extend((0..axes.leaves(at.index())).map(|leaf| (at.index(), leaf)));
            } else {
                joins.insert(at.index());
                // A mesh without names has XLA's.
                let is_own = |name: &&str| !name.starts_with("axis_");
                mesh_axis = mesh_axis.or_else(|| at.mesh_axis().filter(is_own));
            }
        }
        for parameter in program.parameters() {
            let parts = parts(&parameter).into_iter().enumerate().filter(|(_, parts)| *parts > 1);
            divided.extend(parts.flat_map(|(dimension, _)| axes.of_dimension(&parameter, 0, dimension)).copied());
        }
        for parameter in program.parameters() {
            let leaves = (0..axes.leaves(parameter.index())).map(|leaf| (parameter.index(), leaf));
            own.extend(
                leaves.filter(|(_, leaf)| axes.in_array(&parameter, *leaf).iter().any(|of| divided.contains(of))),
            );
        }
        let own = axes.reach(own, &|at| joins.contains(&at));
        (!divided.is_empty()).then_some(Self { divided, gathered, has_groups, own, gathers, mesh_axis })
    }

    /// Whether each device has a part of one of these axes.
    pub(crate) fn divide(&self, axes: &[AxisId]) -> bool {
        axes.iter().any(|axis| self.divided.contains(axis))
    }

    /// Whether each device holds all of an argument.
    pub(crate) fn holds_whole(&self, program: &ProgramModel<'_>, argument: &LiveArray<'_>) -> bool {
        let axes = program.flow.axes();
        let told = program.flow.told(argument.position);
        let is_divided =
            |(at, leaf): (Instruction<'_>, usize)| axes.in_array(&at, leaf).iter().any(|of| self.divided.contains(of));
        !self.has_groups && told.is_some_and(|at| !is_divided(at))
    }

    /// Whether a value is one and the same on all devices.
    pub(crate) fn is_alike(&self, program: &ProgramModel<'_>, array: &LiveArray<'_>) -> bool {
        program.flow.told(array.position).is_some_and(|(at, leaf)| !self.own.has(at.index(), leaf))
    }

    /// The first dimension of an array that was gathered from parts.
    pub(crate) fn gathered_dimension(&self, program: &ProgramModel<'_>, array: &LiveArray<'_>) -> Option<usize> {
        let (at, leaf) = program.flow.told(array.position)?;
        program.flow.axes().of_array(&at, leaf).position(|of| of.iter().any(|axis| self.gathered.contains(axis)))
    }

    /// The collective that gathers a dimension of an array.
    pub(crate) fn gather(
        &self,
        program: &ProgramModel<'_>,
        array: &LiveArray<'_>,
        dimension: usize,
    ) -> Option<Instruction<'m>> {
        let axes = program.flow.axes();
        let (at, leaf) = program.flow.told(array.position)?;
        let own = axes.of_dimension(&at, leaf, dimension);
        let has_it = |gather: &&Instruction<'m>| axes.in_array(gather, 0).iter().any(|axis| own.contains(axis));
        self.gathers.iter().find(has_it).copied()
    }
}

/// The number of parts of each dimension of an argument, where its sharding is told: `{devices=[8,1]<=[8]}`.
fn parts(parameter: &Instruction<'_>) -> Vec<u64> {
    let told =
        parameter.attribute("sharding").and_then(|sharding| sharding.strip_prefix("{devices=[")?.split_once(']'));
    let parts = told.map(|(parts, _)| parts.split(',').filter_map(|part| part.trim().parse().ok()).collect());
    parts.unwrap_or_default()
}

/// Whether a value is more than an argument, or a part of one, in another type or layout; one that a loop is given counts as
/// an argument.
fn is_computed<'m>(
    program: &ProgramModel<'m>,
    value: Instruction<'m>,
    fusions: &HashMap<usize, Instruction<'m>>,
) -> bool {
    let passes = |at: &Instruction<'_>| {
        passes_on(at)
            || matches!(
                at.opcode(),
                Opcode::Parameter
                    | Opcode::Constant
                    | Opcode::Convert
                    | Opcode::Reshape
                    | Opcode::Transpose
                    | Opcode::Slice
                    | Opcode::DynamicSlice
            )
    };
    let mut at = value;
    for _ in 0..MOST_FOLLOWED {
        if at.opcode() == Opcode::Parameter {
            // The parameter of a fusion is an operand of that.
            let caller = at
                .parameter_number()
                .and_then(|number| fusions.get(&at.computation().index())?.operand_indices().nth(number)?);
            match caller.and_then(|operand| program.module.instruction(operand)) {
                Some(operand) => at = operand,
                None => return false,
            }
            continue;
        }
        // Numbers of slices are counted on the way.
        let makes = |inner: &Instruction<'_>| {
            let is_scalar = || bounds(inner).is_some_and(|bounds| elements(&bounds) == 1);
            inner.opcode() != Opcode::Fusion && !passes(inner) && !is_scalar()
        };
        let is_plain = if at.opcode() == Opcode::Fusion { !any_fused(&at, makes) } else { passes(&at) };
        if !is_plain {
            return true;
        }
        let Some(operand) =
            at.operand_indices().next().flatten().and_then(|operand| program.module.instruction(operand))
        else {
            return true;
        };
        at = operand;
    }
    true
}

/// The axes of the sums that a value is made of.
fn added_up(program: &ProgramModel<'_>, value: Instruction<'_>, summed: &HashMap<usize, Vec<AxisId>>) -> Vec<AxisId> {
    let (mut waiting, mut seen, mut found) = (vec![value], HashSet::default(), Vec::new());
    while let Some(at) = waiting.pop() {
        if !seen.insert(at.index()) || seen.len() > MOST_FOLLOWED {
            continue;
        }
        let own: Vec<AxisId> = with_fused(at).filter_map(|at| summed.get(&at.index())).flatten().copied().collect();
        if own.is_empty() {
            waiting.extend(at.operand_indices().flatten().filter_map(|operand| program.module.instruction(operand)));
        }
        found.extend(own);
    }
    found
}
