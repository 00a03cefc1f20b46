//! The call of `jax.vmap` under which most of the peak is made: `jax.lax.map` takes some of its positions at a time, in that one
//! line, and whatever is around it stays as it is.

mod below;

use self::below::{Below, MAP};
use super::{
    change::Target,
    devices::Devices,
    finding::{Finding, MappedCall},
    parts::{LEAST, bytes_of_part},
    program::{LiveArray, ProgramModel},
    rule::Proposal,
    split::asks_for_any,
};
use crate::program::{is_backward, is_of_directions, op_name, with_fused};
use foldhash::{HashMap, HashSet};
use std::iter::successors;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{AxisId, Event, EventKind, FactorKind},
};

/// Parts, if no more are needed: what remains of a sixteenth is seldom the largest.
const PARTS: u64 = 16;
/// More parts are hardly worth it.
const MOST_PARTS: u64 = 1024;
/// The mapped axis is in this part of what is made below the line: some follows from no mapped argument.
const MOST: (usize, usize) = (9, 10);

/// The call in parts, with the bytes that it frees, if `enough` gives them.
pub(super) fn mapped_call(
    program: &ProgramModel<'_>,
    enough: impl Fn(&Proposal) -> Option<u64>,
) -> Option<(u64, Proposal)> {
    let largest = program.peak_temporaries().max_by_key(|array| (array.bytes, array.bounds.len()))?;
    let call = Call::of(program, largest)?;
    let size = call.size(&call.axes);
    let left = call.below.left(program);
    let proposal = |parts: u64| {
        let at_once = size.div_ceil(parts);
        let buffers = call.buffers(size.div_ceil(at_once), &left);
        let finding = MappedCall { line: call.below.line.clone(), size, at_once, has_gradient: call.has_gradient };
        Proposal::new(Finding::MappedCall(finding), Target::Value, program.advised(largest)).bound().at_most(buffers)
    };
    let whole = call.made_whole(&left).saturating_add(call.held_twice());
    let freed = |proposal: Proposal| Some((enough(&proposal)?.checked_sub(whole)?, proposal));
    let more = successors(Some(PARTS.min(size)), |parts| parts.checked_mul(2));
    let mut all = more.take_while(|parts| *parts <= MOST_PARTS.min(size)).filter_map(|parts| freed(proposal(parts)));
    let first = all.next()?;
    // It fits even if a tenth less is freed.
    if !program.has_limit() || program.fits_without(first.0 / 10 * 9) {
        return Some(first);
    }
    Some(all.find(|(freed, _)| program.fits_without(freed / 10 * 9)).unwrap_or(first))
}

/// A call of `jax.vmap`.
struct Call<'p, 'm> {
    program: &'p ProgramModel<'m>,
    below: Below,
    /// The mapped dimension.
    axes: Vec<AxisId>,
    /// Whether a gradient is taken through it, which would keep the values of all parts.
    has_gradient: bool,
}

impl<'p, 'm> Call<'p, 'm> {
    /// The call that an array is made under; `None` without one, and if its positions meet.
    fn of(program: &'p ProgramModel<'m>, array: &LiveArray<'m>) -> Option<Self> {
        let (at, leaf) = program.flow.told(array.position)?;
        let of_array = with_fused(at).find(|at| op_name(at).is_some_and(|name| name.contains(MAP)))?;
        let name = op_name(&of_array)?;
        let (outside, mapped) = name.split_at(name.find(MAP)?);
        let below = Below::of(program, &of_array)?;
        let mut call = Self { program, below, axes: Vec::new(), has_gradient: outside.contains("jvp(") };
        call.axes = call.mapped(&at, leaf)?;
        // Functions such as `jax.jacfwd` map directions of derivatives; a gradient for each position has both passes below the line.
        let [forward, backward] = ["vmap(jvp(", "vmap(transpose(jvp("];
        let is_there = |pass| call.instructions().any(|at| op_name(&at).is_some_and(|name| name.contains(pass)));
        let is_derivative = mapped.starts_with(forward) || mapped.starts_with(backward);
        let are_directions = is_of_directions(&name) || is_derivative && !(is_there(forward) && is_there(backward));
        (!are_directions && !call.has_meeting() && !call.is_divided()).then_some(call)
    }

    fn instructions(&self) -> impl Iterator<Item = Instruction<'m>> {
        self.program.module.instructions().filter(|at| self.below.has(at.index()) == Some(true))
    }

    /// The axes of an array's dimension that most of what is made below the line has; of several the first, where `jax.vmap` puts it.
    fn mapped(&self, array: &Instruction<'m>, leaf: usize) -> Option<Vec<AxisId>> {
        let axes = self.program.flow.axes();
        let mut made: HashMap<AxisId, usize> = axes.in_array(array, leaf).iter().map(|axis| (*axis, 0)).collect();
        for at in self.instructions() {
            for axis in axes.in_array(&at, 0).iter().collect::<HashSet<_>>() {
                made.entry(*axis).and_modify(|made| *made += 1);
            }
        }
        let most = made.values().copied().max()?;
        let is_most = |axis: &&AxisId| made[axis] >= most / MOST.1 * MOST.0;
        // Of a dimension that joins several, the leading ones are mapped.
        let leading = |of: &'p [AxisId]| &of[..of.iter().take_while(is_most).count()];
        let mut own = axes.of_array(array, leaf).map(leading).filter(|of| self.size(of) >= LEAST);
        own.next().map(<[AxisId]>::to_vec)
    }

    fn size(&self, axes: &[AxisId]) -> u64 {
        axes.iter().map(|axis| self.program.flow.axes().all()[*axis].size).fold(1, u64::saturating_mul)
    }

    fn events<'a>(&self, axes: &'a [AxisId]) -> impl Iterator<Item = &'p Event> + use<'a, 'p, 'm> {
        let all = self.program.flow.axes();
        axes.iter().flat_map(|axis| all.events(*axis))
    }

    /// Whether positions meet below the line, as by a sum over the axis's name.
    fn has_meeting(&self) -> bool {
        let module = self.program.module;
        self.events(&self.axes).any(|event| {
            let at = module.instruction(event.instruction);
            let is_below = |at: Instruction<'_>| {
                op_name(&at).is_some_and(|name| name.contains(MAP) && !is_backward(&name)) && !asks_for_any(&at)
            };
            matches!(event.kind, EventKind::Ends(FactorKind::Sum | FactorKind::Reduce)) && at.is_some_and(is_below)
        })
    }

    /// Whether each device has a part of the dimension: the others would wait for it.
    fn is_divided(&self) -> bool {
        let devices = if self.program.is_mapped() { None } else { Devices::of(self.program) };
        devices.is_some_and(|devices| devices.divide(&self.axes))
    }

    /// The dimension of an array that has the axis: the first one of several.
    fn dimension(&self, at: &Instruction<'m>, leaf: usize) -> Option<usize> {
        self.program.flow.axes().of_array(at, leaf).position(|of| of.contains(&self.axes[0]))
    }

    /// Bytes of the buffers whose arrays are made and read below the line.
    fn buffers(&self, parts: u64, left: &HashSet<usize>) -> Vec<(usize, u64)> {
        let program = self.program;
        let of_part = |array: &LiveArray<'m>| {
            let (at, leaf) = program.flow.told(array.position)?;
            let dimension = self.dimension(&at, leaf).filter(|dimension| *dimension < array.bounds.len())?;
            let is_inner = with_fused(at).any(|at| self.below.has(at.index()) == Some(true));
            let is_left = left.contains(&at.index());
            let bytes = bytes_of_part(program, array, dimension, parts).filter(|_| is_inner && !is_left)?;
            Some((array.buffer, bytes))
        };
        program.temporaries().filter_map(of_part).collect()
    }

    /// Bytes of donated arguments whose rows the loop still reads while it stacks up those of the results, which lie in them
    /// today.
    fn held_twice(&self) -> u64 {
        let aliases = self.program.module.input_output_aliases().unwrap_or_default();
        let donated: HashSet<usize> = aliases.iter().map(|alias| alias.parameter_number).collect();
        let is_donated = |at: &Instruction<'_>| at.parameter_number().is_some_and(|number| donated.contains(&number));
        let bytes = |array: &LiveArray<'m>| {
            let (at, leaf) = self.program.flow.told(array.position)?;
            self.dimension(&at, leaf).filter(|_| is_donated(&array.instruction)).map(|_| array.bytes)
        };
        self.program.arguments().filter_map(bytes).fold(0, u64::saturating_add)
    }

    /// Bytes of the call's results that exist only in pieces today, since what reads them is fused to it.
    fn made_whole(&self, left: &HashSet<usize>) -> u64 {
        let bytes = |at: &usize| {
            let at = self.program.module.instruction(*at)?;
            let is_fused = self.program.buffer(at.index()).is_none() && at.opcode() != Opcode::Parameter;
            let shape = at.shape().ok().filter(|_| is_fused && self.dimension(&at, 0).is_some())?;
            self.program.default_bytes(shape.element_type()?, &shape.bounds()?)
        };
        left.iter().filter_map(bytes).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Audit, Program, recommendation::finding::Finding};

    /// A step of two lines: the first maps a function over 4,096 rows of `x`, each of which makes 64 KiB, and the second divides their
    /// sums.
    const TEXT: &str = r#"HloModule jit_f, is_scheduled=true

FileNames
1 "f.py"

FunctionNames
1 "step"
2 "one"

FileLocations
1 {file_name_id=1 function_name_id=1 line=6 end_line=6 column=1 end_column=2}
2 {file_name_id=1 function_name_id=2 line=2 end_line=2 column=1 end_column=2}
3 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=2}
4 {file_name_id=1 function_name_id=1 line=9 end_line=9 column=1 end_column=2}

StackFrames
1 {file_location_id=4 parent_frame_id=1}
2 {file_location_id=1 parent_frame_id=2}
3 {file_location_id=2 parent_frame_id=3}
4 {file_location_id=3 parent_frame_id=2}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x.1 = f32[4096,16]{1,0:T(8,128)} parameter(0), metadata={op_name="x"}
  w.1 = f32[16,16384]{1,0:T(8,128)} parameter(1), metadata={op_name="w"}
  zero = f32[] constant(0)
  p = f32[4096,16384]{1,0:T(8,128)} dot(x.1, w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/vmap()/dot_general" stack_frame_id=3}
  e = f32[4096,16384]{1,0:T(8,128)} exponential(p), metadata={op_name="jit(f)/vmap()/exp" stack_frame_id=3}
  q = f32[4096,16]{1,0:T(8,128)} dot(e, w.1), lhs_contracting_dims={1}, rhs_contracting_dims={1}, metadata={op_name="jit(f)/vmap()/dot_general" stack_frame_id=3}
  s = f32[16]{0:T(128)} reduce(q, zero), dimensions={0}, to_apply=add, metadata={op_name="jit(f)/reduce_sum" stack_frame_id=4}
  ROOT r = (f32[4096,16]{1,0:T(8,128)}, f32[16]{0:T(128)}) tuple(q, s)
}"#;

    /// The line of the call, its positions, and those to take at a time.
    fn found(text: &str) -> Option<(u32, u64, u64)> {
        let program = Program::parse(text.to_owned()).expect("a module");
        Audit::new(&program).run().advice().iter().find_map(|one| match &one.finding {
            Finding::MappedCall(call) => Some((call.line.line, call.size, call.at_once)),
            _ => None,
        })
    }

    /// The bytes that the call in parts frees.
    fn freed(text: &str) -> Option<u64> {
        let program = Program::parse(text.to_owned()).expect("a module");
        let is_it = |finding: &Finding| matches!(finding, Finding::MappedCall(_));
        Audit::new(&program).run().advice().iter().find(|one| is_it(&one.finding))?.saving.bytes()
    }

    #[test]
    fn donated_rows_are_held_twice() {
        let donated =
            TEXT.replace("is_scheduled=true", "is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }");
        // 4,096 rows of 128 lanes.
        assert_eq!(freed(TEXT).zip(freed(&donated)).map(|(apart, donated)| apart - donated), Some(2 << 20));
    }

    #[test]
    fn a_call_makes_most_of_the_peak() {
        assert_eq!(found(TEXT), Some((6, 4096, 256)));
        // A function that takes derivatives along 16,384 directions has no line with `jax.vmap`.
        assert_eq!(found(&TEXT.replace("vmap()", "vmap(jvp())")), None);
        // All of the program is mapped: its caller takes fewer rows.
        assert_eq!(found(&TEXT.replace("jit(f)/reduce_sum", "jit(f)/vmap()/reduce_sum")), None);
        // Positions meet under the call, by the name of its axis.
        let meets = r#"  t = f32[16384]{0:T(1024)} reduce(e, zero), dimensions={0}, to_apply=add, metadata={op_name="jit(f)/vmap()/psum" stack_frame_id=3}
  all = f32[4096,16384]{1,0:T(8,128)} broadcast(t), dimensions={1}, metadata={op_name="jit(f)/vmap()/psum" stack_frame_id=3}
  d = f32[4096,16384]{1,0:T(8,128)} divide(e, all), metadata={op_name="jit(f)/vmap()/div" stack_frame_id=3}
  q = f32[4096,16]{1,0:T(8,128)} dot(d, w.1)"#;
        assert_eq!(found(&TEXT.replace("  q = f32[4096,16]{1,0:T(8,128)} dot(e, w.1)", meets)), None);
        // The call returns what it makes: only a sum outside is small.
        let returned = TEXT.replace("reduce(q, zero), dimensions={0}", "reduce(e, zero), dimensions={0}");
        assert_eq!(found(&returned.replace("f32[16]{0:T(128)}", "f32[16384]{0:T(1024)}")), None);
    }
}
