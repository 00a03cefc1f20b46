//! Walks and edits of trees that no function of jaxlib answers for, against the same written naively from XLA's definition.

use proptest::prelude::*;
use std::ops::ControlFlow;
use tilewise::{Layout, Shape, Tile, TileDimension, Tiled};
use tilewise_testing::shapes::{cases, small_arrays};

/// `ShapeUtil::ForEachState`: indexes count up from `base` in steps of `incr` below `base + count`, by `minor_to_major`.
fn for_each_state(order: &[usize], base: &[u64], count: &[u64], incr: &[u64]) -> Vec<Vec<u64>> {
    let mut visited = vec![base.to_vec()];
    let mut indexes = base.to_vec();
    'count: loop {
        for &dimension in order {
            indexes[dimension] += incr[dimension];
            if indexes[dimension] < base[dimension] + count[dimension] {
                visited.push(indexes.clone());
                continue 'count;
            }
            indexes[dimension] = base[dimension];
        }
        return visited;
    }
}

fn walked(shape: &Shape, base: &[u64], count: &[u64], incr: &[u64]) -> Vec<Vec<u64>> {
    let mut visited = Vec::new();
    let done = shape.as_array().expect("an array").for_each_index_in(base, count, incr, |index| {
        visited.push(index.to_vec());
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(done, Ok(ControlFlow::Continue(())));
    visited
}

fn array() -> impl Strategy<Value = (Vec<u64>, Vec<usize>)> {
    prop::collection::vec(1_u64..5, 0..4).prop_flat_map(|bounds| {
        let order: Vec<usize> = (0..bounds.len()).collect();
        (Just(bounds), Just(order).prop_shuffle())
    })
}

fn range() -> impl Strategy<Value = (Vec<u64>, Vec<usize>, Vec<[u64; 3]>)> {
    array().prop_flat_map(|(bounds, order)| {
        let part = |&bound: &u64| {
            (0..bound)
                .prop_flat_map(move |base| (Just(base), 0..=bound - base, 1_u64..4))
                .prop_map(|(a, b, c)| [a, b, c])
        };
        let parts: Vec<_> = bounds.iter().map(part).collect();
        (Just(bounds), Just(order), parts)
    })
}

fn shape_of(bounds: &[u64], order: &[usize]) -> Shape {
    let array = Shape::array(tilewise::ElementType::F32, bounds.iter().copied()).expect("an array");
    array.with_layout(Layout::new(order.iter().copied()).expect("an order")).expect("a layout")
}

proptest! {
    #![proptest_config(cases(256))]

    /// Against `ForEachState` as XLA defines it.
    #[test]
    fn indices_are_visited_as_xla_does((bounds, order, parts) in range()) {
        let shape = shape_of(&bounds, &order);
        let column = |at: usize| parts.iter().map(|part| part[at]).collect::<Vec<u64>>();
        let (base, count, incr) = (column(0), column(1), column(2));
        prop_assert_eq!(walked(&shape, &base, &count, &incr), for_each_state(&order, &base, &count, &incr));
    }

    /// Against `IndexUtil::BumpIndices`: counting up in the logical order meets every element once, in the order of its row-major position.
    #[test]
    fn bumping_counts_up((bounds, order) in array()) {
        let shape = shape_of(&bounds, &order);
        let array = shape.as_array().expect("an array");
        let mut index = vec![0; bounds.len()];
        for position in 0..bounds.iter().product::<u64>() {
            let mut rest = position;
            let mut expected = vec![0; bounds.len()];
            for (dimension, bound) in bounds.iter().enumerate().rev() {
                expected[dimension] = rest % bound;
                rest /= bound;
            }
            prop_assert_eq!(&index, &expected);
            let goes_on = array.bump_indices(&mut index).expect("inside");
            prop_assert_eq!(goes_on, position + 1 < bounds.iter().product::<u64>());
        }
    }

    /// Memory is walked as each of its places is asked for.
    #[test]
    fn memory_is_walked_place_by_place(shape in small_arrays()) {
        let tiled = Tiled::new(&shape).expect("small");
        let mut next = 0;
        let done = tiled.for_each_in_memory(|offset, index| {
            assert_eq!((offset, index.map(<[u64]>::to_vec)), (next, tiled.index_of(next).expect("inside")));
            next += 1;
            ControlFlow::<()>::Continue(())
        });
        prop_assert_eq!((done, next), (ControlFlow::Continue(()), tiled.physical_elements()));
    }

    /// A replaced part is at its path, every other part is where it was, and replacing it back gives the shape.
    #[test]
    fn a_part_is_replaced_alone(tree in tree(), part in tree(), choice in any::<prop::sample::Index>()) {
        let paths: Vec<Vec<usize>> = tree.subshapes().map(|(path, _)| path).collect();
        let path = choice.get(&paths);
        let old = tree.subshape(path).expect("there");
        let replaced = tree.replace_subshape(path, &part).expect("there");
        prop_assert_eq!(replaced.subshape(path), Some(part));
        for other in paths.iter().filter(|other| !other.starts_with(path) && !path.starts_with(other)) {
            prop_assert_eq!(replaced.subshape(other), tree.subshape(other));
        }
        prop_assert_eq!(replaced.replace_subshape(path, &old), Ok(tree));
    }

    /// Mapping leaves to themselves is nothing; every leaf is met in order, with its path.
    #[test]
    fn leaves_are_mapped_in_order(tree in tree()) {
        let mut met = Vec::new();
        let mapped = tree.map_leaves(|path, leaf| {
            met.push((path.to_vec(), leaf.clone()));
            Ok::<_, tilewise::Error>(Shape::tuple([leaf.clone(), Shape::token()]))
        }).expect("no error");
        prop_assert_eq!(&met, &tree.leaves().collect::<Vec<_>>());
        for (path, leaf) in &met {
            prop_assert_eq!(mapped.subshape(&[&path[..], &[0]].concat()), Some(leaf.clone()));
        }
        prop_assert_eq!(mapped.leaves().count(), 2 * met.len());
        prop_assert_eq!(tree.map_leaves(|_, leaf| Ok::<_, tilewise::Error>(leaf.clone())), Ok(tree));
    }
}

fn tree() -> impl Strategy<Value = Shape> {
    let leaf = prop::sample::select(vec!["f32[2,3]{0,1}", "s8[]", "token[]", "opaque[]", "b(u8[4])"]);
    leaf.prop_map(|text| text.parse::<Shape>().expect(text))
        .prop_recursive(3, 12, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Shape::tuple))
}

#[test]
fn tiles_from_texts_and_numbers() {
    assert_eq!("(8,128)".parse(), Tile::new([8, 128]));
    assert_eq!(TileDimension::try_from(-1_i64), Ok(TileDimension::Combined));
    assert_eq!(TileDimension::try_from(i64::MIN), Ok(TileDimension::Combined));
    assert_eq!(TileDimension::try_from(8_i64), TileDimension::try_from(8_u64));
    assert!(TileDimension::try_from(0_u64).is_err() && TileDimension::try_from(-2_i64).is_err());
    for wrong in ["", "8,128", "(8,128)(2,1)", "(8,128)S(1)", "(8,", "(8)}", "T(8)", "(8) {"] {
        assert!(wrong.parse::<Tile>().is_err(), "{wrong}");
    }
}

#[test]
fn shapes_of_programs_are_read_to_their_end() {
    use tilewise::ProgramShape;
    for text in ["() -> ()", "(f32[2]) -> f32[3]", "(x: f32[2], y.1: (s32[], token[])) -> (f32[3], s8[])"] {
        assert_eq!(text.parse::<ProgramShape>().expect(text).to_string(), text);
    }
    for text in [
        "",
        "(f32[2])",
        "(f32[2]) -> ",
        "(f32[2] s8[]) -> f32[3]",
        "(f32[2],) -> f32[3]",
        "() -> f32[3] {",
        "(x:) -> s8[]",
        "(é",
    ] {
        let error = text.parse::<ProgramShape>().expect_err(text);
        assert!(error.span().is_some_and(|span| text.get(span).is_some()), "{text}: {error:?}");
    }
}
