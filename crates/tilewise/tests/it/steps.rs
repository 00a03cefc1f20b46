//! The derivation's steps, executed on cells, against the document's definition.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use proptest::prelude::*;
use tilewise::{DerivationStep, Effect, Operation, Tiled};
use tilewise_testing::{
    cells::{Cells, memory},
    shapes::small_arrays,
};

fn sizes(bounds: &[u64]) -> Vec<usize> {
    bounds.iter().map(|&bound| bound as usize).collect()
}

/// A row-major array whose cells are all different.
fn numbered(bounds: &[u64]) -> Cells {
    let bounds = sizes(bounds);
    let cells = (0..bounds.iter().product()).map(Some).collect();
    Cells { bounds, cells }
}

fn execute(step: &DerivationStep, cells: Cells) -> Cells {
    assert_eq!(cells.bounds, sizes(&step.from));
    let result = match &step.operation {
        Operation::Transpose { permutation } => cells.transpose(permutation),
        Operation::Reshape { .. } => cells.reshape(sizes(&step.to)),
        Operation::Pad { padding } => cells.pad(step.from.iter().zip(padding).map(|(a, b)| (a + b) as usize).collect()),
        other => panic!("{other:?}"),
    };
    assert_eq!(result.bounds, sizes(&step.to));
    result
}

proptest! {
    #![proptest_config(tilewise_testing::cases(1000))]

    #[test]
    fn steps_make_the_buffer(shape in small_arrays()) {
        let tiled = Tiled::new(&shape)?;
        let derivation = tiled.derivation();
        let oracle = memory(&sizes(tiled.logical_dimensions()), shape.layout().expect("a layout"));
        let logical = numbered(tiled.logical_dimensions());
        let buffer = derivation.steps().iter().fold(logical, |cells, step| execute(step, cells));
        prop_assert_eq!(&buffer.cells, &oracle.cells);
        prop_assert_eq!(buffer.bounds, vec![oracle.cells.len()]);
    }

    #[test]
    fn effects_are_exact_and_every_step_does_something(shape in small_arrays()) {
        for step in Tiled::new(&shape)?.derivation().steps() {
            let before = numbered(&step.from).cells;
            let after = execute(step, numbered(&step.from)).cells;
            let kept = after.starts_with(&before);
            let effect = match after.len() == before.len() {
                true if kept => Effect::Bitcast,
                false if kept => Effect::Append,
                _ => Effect::Move,
            };
            prop_assert_eq!(step.effect, effect, "{}", step);
            let something = step.from != step.to || matches!(&step.operation, Operation::Transpose { permutation } if !permutation.is_sorted());
            prop_assert!(something, "{}", step);
        }
    }

    #[test]
    fn groups_tell_which_axes_become_which(shape in small_arrays()) {
        for step in Tiled::new(&shape)?.derivation().steps() {
            let Operation::Reshape { groups } = &step.operation else { continue };
            let (mut from, mut to) = (step.from.iter(), step.to.iter());
            for &(operands, results) in groups {
                let before: u64 = from.by_ref().take(operands).product();
                prop_assert_eq!(before, to.by_ref().take(results).product::<u64>(), "{}", step);
            }
            prop_assert_eq!((from.next(), to.next()), (None, None), "{}", step);
        }
    }
}

#[test]
fn in_words() {
    let words = |text: &str| Tiled::new(&text.parse().expect(text)).expect(text).derivation().to_string();
    assert_eq!(words("f32[7]{0}"), "nothing to do: the buffer is the array in row-major order");
    assert_eq!(
        words("bf16[300,500]{0,1:T(8,128)(2,1)}"),
        "transpose  [300,500] → [500,300]                moves bytes  {0,1}: axes 1,0\n\
         pad        [500,300] → [504,384]                moves bytes  T(8,128)\n\
         reshape    [504,384] → [63,8,3,128]             bitcast      T(8,128)\n\
         transpose  [63,8,3,128] → [63,3,8,128]          moves bytes  T(8,128): axes 0,2,1,3\n\
         reshape    [63,3,8,128] → [63,3,4,2,128,1]      bitcast      (2,1)\n\
         transpose  [63,3,4,2,128,1] → [63,3,4,128,2,1]  moves bytes  (2,1): axes 0,1,2,4,3,5\n\
         reshape    [63,3,4,128,2,1] → [193536]          bitcast"
    );
    assert_eq!(
        words("f32[5,6]{1,0:T(8,*,128)L(3)}"),
        "reshape    [5,6] → [1,30]             bitcast      T(8,*,128)\n\
         pad        [1,30] → [8,128]           appends      T(8,*,128)\n\
         reshape    [8,128] → [1,8,1,128]      bitcast      T(8,*,128)\n\
         transpose  [1,8,1,128] → [1,1,8,128]  bitcast      T(8,*,128): axes 0,2,1,3\n\
         reshape    [1,1,8,128] → [1024]       bitcast\n\
         pad        [1024] → [1026]            appends      L(3)"
    );
}
