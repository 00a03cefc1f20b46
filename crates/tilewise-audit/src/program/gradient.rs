//! Whether a program takes a gradient.

use super::{Carry, any_fused, body, does, is_backward, is_recomputed, op_name};
use std::borrow::Cow;
use tilewise_hlo::{Instruction, Module, Opcode};

/// Whether a program takes a gradient: by JAX's names of operations, or without these by a loop that goes backwards through
/// slices that another one stacked. A gradient without loops can't be told from any other function in the graph.
pub(crate) fn has_gradient(module: &Module) -> bool {
    // A smoother goes back through a filter's stacks, too: JAX's names tell of a gradient.
    let is_named = || module.source().contains("op_name=\"jit(");
    module.source().contains("transpose(jvp")
        || !is_named()
            && module.instructions().filter(|at| at.opcode() == Opcode::While).any(|around| goes_back(&around))
}

/// Whether each sample has a gradient of its own, and no gradient goes through all of them: `jax.vmap(jax.grad(f))`, however deep
/// in what is mapped the gradient is taken.
pub(crate) fn has_gradients_of_samples(module: &Module) -> bool {
    /// Bytes of a path: those of deep models have some hundred.
    const LONGEST: usize = 4096;
    let text = module.source();
    let path = |at: usize| text.as_bytes()[at.saturating_sub(LONGEST)..at].rsplit(|byte| *byte == b'"').next();
    // The transformations of an operation stand behind the functions that are compiled.
    let mut taken = text.match_indices("transpose(jvp").map(|(at, _)| path(at).unwrap_or_default());
    let is_mapped = |path: &[u8]| path.windows(5).any(|letters| letters == b"vmap(");
    taken.next().is_some_and(is_mapped) && taken.all(is_mapped)
}

/// The names of all operations under a checkpoint, by JAX.
pub(crate) fn names_under_checkpoints(module: &Module) -> impl Iterator<Item = Cow<'_, str>> {
    let text = module.source();
    let may_have = text.contains("checkpoint") || text.contains("remat");
    let names = module.instructions().take_while(move |_| may_have).filter_map(|at| op_name(&at));
    names.filter(|name| is_recomputed(name))
}

/// Whether an instruction is an operation of the backward pass, or fuses one.
pub(crate) fn runs_backward(at: &Instruction<'_>) -> bool {
    any_fused(at, |at| op_name(at).is_some_and(|name| is_backward(&name)))
}

/// Whether a loop reads slices that an earlier loop stacked, the last first, as the gradient of a scan does.
fn goes_back(around: &Instruction<'_>) -> bool {
    let Some(carry) = Carry::of(around) else { return false };
    let backwards = carry.turn().filter(|at| {
        begins(at, Opcode::DynamicSlice)
            && (any_fused(at, counts_down)
                || at.operands().filter_map(|of| of.instruction()).any(|index| counts_down(&index)))
    });
    let mut read = backwards.flat_map(|at| carry.read_by(&at).collect::<Vec<_>>());
    read.any(|number| carry.start(number).is_some_and(is_stacked))
}

/// Whether it is a scalar difference, such as a loop's last step minus its step.
fn counts_down(at: &Instruction<'_>) -> bool {
    at.opcode() == Opcode::Subtract && at.shape().is_ok_and(|shape| shape.dimensions().is_empty())
}

/// Whether a loop wrote a slice of the array in each step.
fn is_stacked(mut array: Instruction<'_>) -> bool {
    while matches!(array.opcode(), Opcode::Copy | Opcode::Bitcast) {
        let Some(of) = array.operands().next().and_then(|of| of.instruction()) else { return false };
        array = of;
    }
    let around = array.operands().next().and_then(|of| of.instruction()).filter(|of| of.opcode() == Opcode::While);
    let written = around.zip(array.tuple_index()).and_then(|(around, number)| {
        let root = body(&around)?.root().filter(|root| root.opcode() == Opcode::Tuple)?;
        root.operands().nth(number)?.instruction()
    });
    written.is_some_and(|written| {
        let is_done = written.opcode() == Opcode::AsyncDone;
        let begun = written.operands().next().filter(|_| is_done).and_then(|of| of.instruction()).unwrap_or(written);
        begins(&begun, Opcode::DynamicUpdateSlice)
    })
}

/// Whether an instruction is an operation, fuses it, or starts it.
fn begins(at: &Instruction<'_>, opcode: Opcode) -> bool {
    does(at, opcode) || at.wrapped_opcode() == Some(opcode)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop that stacks its carry, and one that reads slices of `read` at `index`.
    fn two_loops(read: &str, index: &str) -> String {
        format!(
            "HloModule m, is_scheduled=true

fused {{
  p = f32[8,4]{{1,0}} parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  ROOT s = f32[1,4]{{1,0}} dynamic-slice(p, i, z), dynamic_slice_sizes={{1,4}}
}}

first {{
  c = (s32[], f32[1,4]{{1,0}}, f32[8,4]{{1,0}}) parameter(0)
  n = s32[] get-tuple-element(c), index=0
  x = f32[1,4]{{1,0}} get-tuple-element(c), index=1
  stack = f32[8,4]{{1,0}} get-tuple-element(c), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  next = s32[] add(n, one)
  y = f32[1,4]{{1,0}} negate(x)
  kept = f32[8,4]{{1,0}} dynamic-update-slice(stack, x, n, zero)
  ROOT t = (s32[], f32[1,4]{{1,0}}, f32[8,4]{{1,0}}) tuple(next, y, kept)
}}

second {{
  c2 = (s32[], f32[1,4]{{1,0}}, f32[8,4]{{1,0}}) parameter(0)
  n2 = s32[] get-tuple-element(c2), index=0
  x2 = f32[1,4]{{1,0}} get-tuple-element(c2), index=1
  stack2 = f32[8,4]{{1,0}} get-tuple-element(c2), index=2
  one2 = s32[] constant(1)
  seven = s32[] constant(7)
  back = s32[] subtract(seven, n2)
  next2 = s32[] add(n2, one2)
  slice = f32[1,4]{{1,0}} fusion(stack2, {index}), kind=kLoop, calls=fused
  y2 = f32[1,4]{{1,0}} multiply(x2, slice)
  ROOT t2 = (s32[], f32[1,4]{{1,0}}, f32[8,4]{{1,0}}) tuple(next2, y2, stack2)
}}

condition {{
  c3 = (s32[], f32[1,4]{{1,0}}, f32[8,4]{{1,0}}) parameter(0)
  n3 = s32[] get-tuple-element(c3), index=0
  eight = s32[] constant(8)
  ROOT less = pred[] compare(n3, eight), direction=LT
}}

ENTRY e {{
  a = f32[1,4]{{1,0}} parameter(0)
  b = f32[8,4]{{1,0}} parameter(1)
  k = s32[] constant(0)
  start = (s32[], f32[1,4]{{1,0}}, f32[8,4]{{1,0}}) tuple(k, a, b)
  w = (s32[], f32[1,4]{{1,0}}, f32[8,4]{{1,0}}) while(start), condition=condition, body=first
  kept_all = f32[8,4]{{1,0}} get-tuple-element(w), index=2
  moved = f32[8,4]{{1,0}} copy({read})
  start2 = (s32[], f32[1,4]{{1,0}}, f32[8,4]{{1,0}}) tuple(k, a, moved)
  ROOT w2 = (s32[], f32[1,4]{{1,0}}, f32[8,4]{{1,0}}) while(start2), condition=condition, body=second
}}
"
        )
    }

    #[test]
    fn a_loop_that_goes_back_is_a_gradient() {
        let has = |read, index| has_gradient(&Module::parse(two_loops(read, index)).expect("a program"));
        assert!(has("kept_all", "back"));
        // Reading the stacked slices in order, or slices of an argument, isn't a gradient.
        assert!(!has("kept_all", "n2") && !has("b", "back") && !has("b", "n2"));
        // JAX's names would tell of it: a smoother behind a filter goes back, too.
        let named = two_loops("kept_all", "back")
            .replace("negate(x)", r#"negate(x), metadata={op_name="jit(f)/while/body/neg"}"#);
        assert!(!has_gradient(&Module::parse(named).expect("a program")));
    }

    #[test]
    fn samples_may_have_gradients_of_their_own() {
        let has = |name: &str| {
            let text = format!("y = f32[] negate(x), metadata={{op_name=\"jit(f)/{name}/neg\"}}");
            has_gradients_of_samples(&Module::parse(text).expect("a program"))
        };
        assert!(has("vmap(transpose(jvp()))"));
        assert!(!has("transpose(jvp(vmap()))") && !has("vmap(jvp())"));
    }

    #[test]
    fn names_tell_of_it_too() {
        let text = "y = f32[] negate(x), metadata={op_name=\"jit(f)/transpose(jvp())/neg\"}";
        assert!(has_gradient(&Module::parse(text).expect("a program")));
    }
}
