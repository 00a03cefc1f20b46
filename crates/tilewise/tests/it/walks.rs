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

/// An array's text in front of its tiles, the tiles, and what is behind them.
type LayoutText = (String, String, String);

fn layout_text() -> impl Strategy<Value = LayoutText> {
    let types = prop::sample::select(vec!["f32", "bf16", "s4", "pred", "c64"]);
    let tiles = prop::sample::select(vec!["", "T(2,2)", "T(8,128)(2,1)", "T(*,3)", "T(2,4)(2,*,2,1)", "T(1)(4)(2)"]);
    let behind = prop::sample::subsequence(vec!["L(8)", "E(16)", "S(5)", "M(64)"], 0..=4);
    let array = array().prop_filter("of a scalar, XLA doesn't print {}", |(bounds, _)| !bounds.is_empty());
    (array, types, tiles, behind, any::<bool>()).prop_map(|((bounds, order), named, tiles, behind, is_buffer)| {
        let comma = |numbers: Vec<String>| numbers.join(",");
        let bounds = comma(bounds.iter().map(u64::to_string).collect());
        let order = comma(order.iter().map(usize::to_string).collect());
        let opened = if is_buffer { "b(" } else { "" };
        let closed = if is_buffer { "})" } else { "}" };
        (format!("{opened}{named}[{bounds}]{{{order}"), tiles.to_owned(), format!("{}{closed}", behind.concat()))
    })
}

/// A tuple in a tuple of these arrays, with the tiles or without.
fn text_of(arrays: &[LayoutText], with_tiles: bool) -> String {
    let texts: Vec<String> = arrays
        .iter()
        .map(|(front, tiles, behind)| {
            let properties = format!("{}{behind}", if with_tiles { tiles.as_str() } else { "" });
            let colon = if properties.trim_end_matches([')', '}']).is_empty() { "" } else { ":" };
            format!("{front}{colon}{properties}")
        })
        .collect();
    format!("(token[], ({}), opaque[])", texts.join(", "))
}

proptest! {
    #![proptest_config(cases(256))]

    /// `LayoutUtil::ClearTiles`: "clears the tiling fields from the shape and/or all of its subshapes", and nothing else, as the texts say.
    #[test]
    fn clearing_tiles_leaves_the_rest(arrays in prop::collection::vec(layout_text(), 0..4)) {
        let [tiled, cleared] = [true, false].map(|with_tiles| text_of(&arrays, with_tiles));
        let shape: Shape = tiled.parse().expect(&tiled);
        prop_assert_eq!(&shape.to_string(), &tiled);
        prop_assert_eq!(shape.clear_tiles().to_string(), cleared);
    }

    /// `LayoutUtil::MakeAscendingLayout` and `MakeDescendingLayout`: of the first, dimension 0 is minor and each next one steps over all before
    /// it; of the second, the last one.
    #[test]
    fn ascending_and_descending((bounds, _) in array()) {
        let offset = |layout: Layout, index: &[u64]| {
            let shape = Shape::array(tilewise::ElementType::F32, bounds.iter().copied()).expect("an array");
            Tiled::new(&shape.with_layout(layout).expect("a layout")).expect("small").offset_of(index).expect("inside")
        };
        for dimension in 0..bounds.len() {
            let mut index = vec![0; bounds.len()];
            index[dimension] = bounds[dimension] - 1;
            let before: u64 = bounds[..dimension].iter().product();
            let behind: u64 = bounds[dimension + 1..].iter().product();
            prop_assert_eq!(offset(Layout::ascending(bounds.len()), &index), index[dimension] * before);
            prop_assert_eq!(offset(Layout::descending(bounds.len()), &index), index[dimension] * behind);
        }
    }

    /// `LayoutUtil::MakeLayoutFromMajorToMinor` adds the numbers from the last to the first; what is no permutation is refused, where XLA
    /// makes a layout that is not valid.
    #[test]
    fn from_major_to_minor_is_the_other_way_round(numbers in prop::collection::vec(0_usize..6, 0..6), (_, order) in array()) {
        for major_to_minor in [numbers, order] {
            let mut minor_to_major = Vec::new();
            for &number in &major_to_minor {
                minor_to_major.insert(0, number);
            }
            let is_permutation = (0..major_to_minor.len()).all(|number| major_to_minor.contains(&number));
            match Layout::from_major_to_minor(major_to_minor) {
                Ok(layout) => prop_assert!(is_permutation && layout.minor_to_major() == minor_to_major),
                Err(_) => prop_assert!(!is_permutation),
            }
        }
    }

    /// `LayoutUtil::AreDimensionsConsecutive`: "consecutive in the given layout, not necessarily in the order given". Some run of the order
    /// holds them and no other; one that is named twice is not next to itself.
    #[test]
    fn consecutive_dimensions_are_a_run_of_the_order(
        order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(),
        dimensions in prop::collection::vec(0_usize..6, 0..5),
    ) {
        let layout = Layout::new(order.iter().copied()).expect("an order");
        let mut sorted = dimensions.clone();
        sorted.sort_unstable();
        let is_run = |run: &[usize]| {
            let mut run = run.to_vec();
            run.sort_unstable();
            run == sorted
        };
        let expected = dimensions.is_empty() || order.windows(dimensions.len()).any(is_run);
        prop_assert_eq!(layout.are_dimensions_consecutive(&dimensions), expected);
    }

    /// `LayoutUtil::MoveDimToMajor` and `MoveDimToMinor`: the order without the dimension, then it behind all others, or in front; the rest of
    /// the layout stays.
    #[test]
    fn a_dimension_is_moved_to_either_end(
        order in Just((0..5).collect::<Vec<usize>>()).prop_shuffle(),
        dimension in 0_usize..5,
    ) {
        let layout = Layout::new(order.iter().copied()).expect("an order");
        let layout = layout.with_tiles([[2, 2]]).and_then(|layout| layout.with_memory_space(1)).expect("a layout");
        let mut others = order;
        others.retain(|&other| other != dimension);
        let text = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let (major, minor) = ([&others[..], &[dimension]].concat(), [&[dimension], &others[..]].concat());
        prop_assert_eq!(layout.move_dim_to_major(dimension).expect("there").to_string(), format!("{{{}:T(2,2)S(1)}}", text(&major)));
        prop_assert_eq!(layout.move_dim_to_minor(dimension).expect("there").to_string(), format!("{{{}:T(2,2)S(1)}}", text(&minor)));
    }
}

#[test]
fn what_is_no_dimension_is_refused() {
    let layout = Layout::row_major(2);
    assert!(layout.move_dim_to_major(2).is_err() && layout.move_dim_to_minor(2).is_err());
    assert!(!layout.are_dimensions_consecutive(&[0, 2]) && !layout.are_dimensions_consecutive(&[2]));
    assert_eq!(Layout::ascending(0), Layout::descending(0));
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
    for (wrong, message) in [("(8,", "text ends"), ("(8,128", "text ends"), ("(8)}", "more text follows")] {
        let error = wrong.parse::<Tile>().expect_err(wrong);
        assert!(error.to_string().contains(message), "{wrong}: {error}");
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
