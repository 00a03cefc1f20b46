//! Relations between layouts of small arrays against the tiled-layout document's definition.

use crate::index::{array, naive_offset, unravel};
use tilewise::{BitcastAs, Relation, Shape, Tiled};

/// The largest buffer that is compared.
const LARGEST: u64 = 1024;

/// Two small arrays with any layouts, made from the bytes: whether one's bytes can be read as the other, in which order of the
/// dimensions, and the first element that lies elsewhere are as the definition has it.
pub fn bitcast_vs_naive(data: &[u8]) {
    let mut bytes = data.iter().copied();
    let relaid = bytes.next().is_some_and(|byte| byte % 2 == 0);
    let (Some(first), Some(second)) = (array(&mut bytes), array(&mut bytes)) else { return };
    // Two arrays from nowhere have hardly ever as many elements: every other time it is the same array in another layout.
    let layout = second.layout().expect("an array that was built has a layout").clone();
    let second = if relaid { first.with_layout(layout).unwrap_or(second) } else { second };
    let (Ok(from), Ok(to)) = (Tiled::new(&first), Tiled::new(&second)) else { return };
    if from.physical_elements().max(to.physical_elements()) > LARGEST {
        return;
    }
    let same_size = from.physical_elements() == to.physical_elements();
    let rank = from.logical_dimensions().len();
    let [row_major, wanted] = [(&from, rank), (&to, to.logical_dimensions().len())]
        .map(|(tiled, rank)| offsets(tiled, &(0..rank).collect::<Vec<_>>()));
    let free = |order: &[usize]| same_size && offsets(&from, order) == wanted;

    let reshape = from.bitcast(&to, BitcastAs::Reshape).expect("few elements");
    assert_eq!(reshape.is_bitcast(), same_size && row_major == wanted, "{first} {second}");
    assert_eq!(reshape == Relation::Identical, first.same_bytes(&second).expect("few elements"));
    if row_major.len() == wanted.len() {
        let position = (0..wanted.len()).find(|&at| row_major[at] != wanted[at]);
        let found = reshape.counterexample().map(|found| (found.index.clone(), found.from_offset, found.to_offset));
        let expected = position.map(|at| (unravel(at as u64, from.logical_dimensions()), row_major[at], wanted[at]));
        assert_eq!(found, expected, "{first} {second}");
    }
    let any = from.bitcast(&to, BitcastAs::Any).expect("few elements");
    match &any {
        Relation::TransposeReshape { permutation, then, .. } => {
            let order: Vec<usize> =
                (0..then.len()).filter_map(|place| then.iter().position(|&from| from == place)).collect();
            assert!(same_size && offsets(&from, permutation) == offsets(&to, &order), "{first} {second}: {any:?}");
        }
        Relation::Transpose { permutation } => assert!(free(permutation), "{first} {second}: {any:?}"),
        _ if reshape.is_bitcast() => assert_eq!(any, reshape),
        _ => {
            let mut order: Vec<usize> = (0..rank).collect();
            permutations(&mut order, 0, &mut |order| assert!(!free(order), "{first} {second}: {any:?}, not {order:?}"));
        }
    }
    // The other way round.
    assert_eq!(to.bitcast(&from, BitcastAs::Reshape).expect("few elements").is_bitcast(), reshape.is_bitcast());
    round_trips(&first, &second);
}

/// Checks that layouts reported as free are free.
fn round_trips(first: &Shape, second: &Shape) {
    let bounds: Vec<u64> = second.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
    if let Ok(found) = first.free_reshape(&bounds) {
        for free in found.layouts {
            assert!(first.bitcast(&free, BitcastAs::Reshape).expect("few elements").is_bitcast(), "{first} {free}");
        }
    }
    let reversed: Vec<usize> = (0..first.dimensions().len()).rev().collect();
    let free = first.free_transpose(&reversed).expect("a permutation");
    assert!(first.bitcast(&free, BitcastAs::Transpose).expect("few elements").is_bitcast(), "{first} {free}");
}

/// The offsets row by row, with the dimensions in that order.
fn offsets(tiled: &Tiled, order: &[usize]) -> Vec<u64> {
    let bounds = tiled.logical_dimensions();
    let layout = tiled.array().layout().expect("an array that was built has a layout");
    let ordered: Vec<u64> = order.iter().map(|&dimension| bounds[dimension]).collect();
    let offset = |position| {
        let mut index = vec![0; bounds.len()];
        order.iter().zip(unravel(position, &ordered)).for_each(|(&dimension, i)| index[dimension] = i);
        naive_offset(bounds, layout, &index)
    };
    (0..bounds.iter().product()).map(offset).collect()
}

/// Every order of five items at most.
fn permutations(items: &mut Vec<usize>, fixed: usize, each: &mut impl FnMut(&[usize])) {
    if fixed == items.len() {
        each(items);
    }
    for next in fixed..items.len() {
        items.swap(fixed, next);
        permutations(items, fixed + 1, each);
        items.swap(fixed, next);
    }
}
