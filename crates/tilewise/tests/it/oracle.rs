//! Random layouts against the document's definition.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tilewise::{ErrorKind, Shape, Tiled};
use tilewise_testing::{
    cells::{memory, unravel},
    shapes::small_arrays,
};

/// The value of sums of products, in brackets or not.
fn evaluated(text: &str) -> u64 {
    let plain = |text: &str| -> u64 {
        let product =
            |term: &str| term.split('·').map(|factor| factor.trim().parse::<u64>().expect("a number")).product::<u64>();
        text.split(" + ").map(product).sum()
    };
    match text.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((first, rest)) => {
            let (factors, last) = rest.split_once(" + ").map_or((rest, "0"), |(factors, last)| (factors, last));
            plain(first) * plain(factors.trim_start_matches('·'))
                + evaluated(last.trim_start_matches('(').trim_end_matches(')'))
        }
        None => match text.split_once(" + (") {
            Some((first, last)) => plain(first) + plain(last.trim_end_matches(')')),
            None => plain(text),
        },
    }
}

proptest! {
    #![proptest_config(tilewise_testing::cases(3000))]

    #[test]
    fn offsets_inverse_padding_and_sizes_agree(shape in small_arrays()) {
        let tiled = Tiled::new(&shape)?;
        let bounds: Vec<usize> = tiled.logical_dimensions().iter().map(|&b| b as usize).collect();
        let layout = shape.layout().expect("a layout");
        let oracle = memory(&bounds, layout);

        let physical: Vec<usize> = tiled.physical_dimensions().iter().map(|&b| b as usize).collect();
        prop_assert_eq!(&physical, &oracle.bounds);
        prop_assert_eq!(tiled.physical_elements() as usize, oracle.cells.len());
        prop_assert_eq!(tiled.tiled_elements() as usize, oracle.bounds.iter().product::<usize>());

        let mut found = 0;
        for (offset, cell) in oracle.cells.iter().enumerate() {
            let index = cell.map(|position| unravel(position, &bounds).iter().map(|&i| i as u64).collect::<Vec<_>>());
            prop_assert_eq!(&tiled.index_of(offset as u64)?, &index, "offset {}", offset);
            if let Some(index) = index {
                found += 1;
                prop_assert_eq!(tiled.offset_of(&index)?, offset as u64, "index {:?}", index);
            }
        }
        let elements = bounds.iter().product::<usize>();
        prop_assert_eq!(found, elements, "every element lies somewhere");
        prop_assert_eq!(tiled.index_of(oracle.cells.len() as u64).unwrap_err().kind(), ErrorKind::OffsetOutOfRange);

        let natural = u64::from(shape.element_type().expect("an array").natural_bits());
        let stored = layout.element_size_in_bits().unwrap_or(natural);
        prop_assert_eq!(tiled.physical_bytes(), (tiled.physical_elements() * stored).div_ceil(8));
        prop_assert_eq!(tiled.logical_bytes(), (elements as u64 * stored.min(natural)).div_ceil(8));
        prop_assert_eq!(tiled.padding_bytes(), tiled.physical_bytes() - tiled.logical_bytes());
    }

    /// The worked formula is the offset, whatever the tiles: each step's numbers, and their sum as it is printed.
    #[test]
    fn worked_offsets_are_offsets(shape in small_arrays(), position in 0..4000usize) {
        let tiled = Tiled::new(&shape)?;
        let bounds: Vec<usize> = tiled.logical_dimensions().iter().map(|&b| b as usize).collect();
        let elements: usize = bounds.iter().product();
        prop_assume!(elements > 0);
        let index: Vec<u64> = unravel(position % elements, &bounds).into_iter().map(|i| i as u64).collect();
        let worked = tiled.worked_offset(&index)?;
        let combined = worked.tiles.last().map_or_else(|| worked.physical_order.clone(), |last| last.combined());
        let (place, sizes): (Vec<u64>, Vec<u64>) = combined.into_iter().unzip();
        prop_assert_eq!(&sizes, tiled.physical_dimensions());
        prop_assert_eq!(Some(place), tiled.physical_index_of(worked.offset)?);
        let printed = worked.formula();
        let mut parts = printed.split(" = ").skip(1);
        let (sum, offset) = (parts.next().expect("a sum"), parts.next().unwrap_or_default());
        prop_assert_eq!(evaluated(sum), tiled.offset_of(&index)?, "{}: {}", shape, printed);
        prop_assert!(offset.is_empty() || offset == tiled.offset_of(&index)?.to_string());
    }

    #[test]
    fn batches_answer_like_single_questions(shape in small_arrays(), rows in 0..1200usize, seed in 0..1000usize) {
        let tiled = Tiled::new(&shape)?;
        let bounds: Vec<usize> = tiled.logical_dimensions().iter().map(|&b| b as usize).collect();
        let elements: usize = bounds.iter().product();
        prop_assume!(elements > 0);
        let row = |i: usize| unravel((i * 7919 + seed) % elements, &bounds).into_iter().map(|i| i as u64).collect::<Vec<_>>();
        let rows: Vec<Vec<u64>> = (0..rows).map(row).collect();
        let mut offsets = vec![u64::MAX; rows.len()];
        tiled.fill_offsets(&rows.concat(), &mut offsets)?;
        for (index, offset) in rows.iter().zip(&offsets) {
            prop_assert_eq!(tiled.offset_of(index)?, *offset);
        }
        let places: Vec<u64> = (0..rows.len()).map(|i| (i * 7919 + seed) as u64 % tiled.physical_elements()).collect();
        let mut indices = vec![7; places.len() * bounds.len()];
        tiled.fill_indices(&places, &mut indices)?;
        for (number, &place) in places.iter().enumerate() {
            let index = tiled.index_of(place)?.unwrap_or(vec![u64::MAX; bounds.len()]);
            prop_assert_eq!(&index, &indices[number * bounds.len()..][..bounds.len()]);
        }
        // One that is outside, anywhere in the batch, is an error.
        if let (Some(last), false) = (rows.len().checked_sub(1), bounds.is_empty()) {
            let mut flat = rows.concat();
            flat[(seed % (last + 1)) * bounds.len()] = bounds[0] as u64;
            prop_assert_eq!(tiled.fill_offsets(&flat, &mut offsets).unwrap_err().kind(), ErrorKind::IndexOutOfBounds);
            let mut places = places;
            places[seed % (last + 1)] = tiled.physical_elements();
            prop_assert_eq!(tiled.fill_indices(&places, &mut indices).unwrap_err().kind(), ErrorKind::OffsetOutOfRange);
        }
    }

    #[test]
    fn batches_of_large_arrays_answer_like_single_questions(seed in 0..u64::MAX) {
        // Numbers on both sides of 2^32, tiles that are no powers of two, more dimensions than usual.
        for text in [
            "s8[20000,4294967297]{1,0}",
            "s8[8589934592]{0:T(1024)}",
            "s8[4294967296,3]{1,0:T(8,128)}",
            "s8[30000,4294967295]{0,1:T(8,128)(4,1)}",
            "s8[70000,90000]{1,0:T(6,100)}",
            "s8[3,1,70000,5,9000]{0,2,1,4,3:T(8,128)}",
            "s8[100000,100000,7]{2,1,0:T(*,3,2)}",
        ] {
            let tiled = Tiled::new(&text.parse()?)?;
            let row = |i: u64| tiled.logical_dimensions().iter().map(move |bound| seed.wrapping_mul(2 * i + 1) % bound);
            let rows: Vec<Vec<u64>> = (0..20).map(|i| row(i).collect()).collect();
            let mut offsets = vec![0; rows.len()];
            tiled.fill_offsets(&rows.concat(), &mut offsets)?;
            for (index, offset) in rows.iter().zip(&offsets) {
                prop_assert_eq!(tiled.offset_of(index)?, *offset, "{} {:?}", text, index);
                prop_assert_eq!(tiled.index_of(*offset)?, Some(index.clone()), "{} @{}", text, offset);
            }
        }
    }

    /// Tiles of the first level are joined if a block of a later tile has elements of both, or of others that are joined with both.
    #[test]
    fn joined_tiles_are_those_that_share_blocks(shape in small_arrays()) {
        let tiled = Tiled::new(&shape)?;
        let bounds: Vec<usize> = tiled.logical_dimensions().iter().map(|&b| b as usize).collect();
        let levels = tiled.tile_levels();
        let Some((first, later)) = levels.split_first() else { return Ok(()) };
        let elements = bounds.iter().product();
        let index = |position| unravel(position, &bounds).into_iter().map(|i| i as u64).collect::<Vec<_>>();
        let tile_of = |position| first.block_of(&index(position)).expect("inside");
        // The least tile of those joined, found by following what each is joined with.
        let mut joined_with: BTreeMap<u64, u64> = (0..elements).map(|p| (tile_of(p), tile_of(p))).collect();
        let least = |joined_with: &BTreeMap<u64, u64>, mut tile: u64| {
            while joined_with[&tile] != tile {
                tile = joined_with[&tile];
            }
            tile
        };
        for level in later {
            let mut tile_of_block = BTreeMap::new();
            for position in 0..elements {
                let other = *tile_of_block.entry(level.block_of(&index(position))?).or_insert(tile_of(position));
                let mut ends = [tile_of(position), other].map(|tile| least(&joined_with, tile));
                ends.sort_unstable();
                joined_with.insert(ends[1], ends[0]);
            }
        }
        let Some(joined) = tiled.joined_tiles() else {
            let merges = later.iter().any(|level| level.tile().dimensions().iter().any(|size| size.size().is_none()));
            prop_assert!(merges || joined_with.iter().all(|(tile, other)| tile == other), "{}", shape);
            return Ok(());
        };
        let mut numbers = BTreeMap::new();
        for position in 0..elements {
            let (number, group) = (joined.number_of(&index(position))?, least(&joined_with, tile_of(position)));
            prop_assert_eq!(*numbers.entry(number).or_insert(group), group, "{}", shape);
        }
        let different: BTreeSet<_> = numbers.values().collect();
        prop_assert_eq!(different.len(), numbers.len(), "{}", shape);
    }

    #[test]
    fn printed_shapes_parse_back(shape in small_arrays()) {
        let text = shape.to_string();
        let again: Shape = text.parse()?;
        prop_assert!(again.identical(&shape));
        prop_assert!(Shape::parse_as_written(&text)?.identical(&shape));
        prop_assert_eq!(Shape::parse_prefix(&format!("{text} add(a)"))?, (shape, text.len()));
    }

    #[test]
    fn equal_digits_mean_equal_offsets(shape in small_arrays()) {
        // `T(1,…)` and merging a single axis change the text and nothing else.
        let tiled = Tiled::new(&shape)?;
        let layout = shape.layout().expect("a layout").clone();
        let tiles = layout.tiles().iter().cloned().chain([tilewise::Tile::new([1])?]);
        let same = Tiled::new(&shape.with_layout(layout.clone().with_tiles(tiles)?)?)?;
        prop_assert_eq!(tiled.digits(), same.digits());
    }
}
