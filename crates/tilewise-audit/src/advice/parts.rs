//! Parts of a batch: sizes of arrays in one part, and the leading sizes of arguments.

use super::program::{LiveArray, ProgramModel};
use foldhash::{HashMap, HashSet};
use tilewise::{Shape, tpu};

/// Smallest batch: shorter dimensions are more often components, channels or heads.
pub(crate) const LEAST: u64 = 8;
/// Rows of a tile.
pub(crate) const ROWS: u64 = 8;
/// Rank of a batch of pictures: batch, height, width, channels.
const PICTURE: usize = 4;

/// Bytes of one of `parts` parts along dimension `at`, at least an equal share; `None` if its size is unknown. The
/// layout is the smaller of the present order and the one that the compiler prefers; for pictures with the batch along
/// the lanes, the latter has the channels there. A few pictures on the rows of a tile take the bytes of all.
pub(crate) fn bytes_of_part(program: &ProgramModel<'_>, array: &LiveArray<'_>, at: usize, parts: u64) -> Option<u64> {
    let mut bounds = array.bounds.clone();
    bounds[at] = bounds[at].div_ceil(parts);
    if program.machine.generation().is_none() {
        // Without tiles a part takes its share.
        return program.default_bytes(array.element_type(), &bounds);
    }
    let in_order = |order: &[usize]| {
        let part = tpu::layout_for_order(array.element_type(), &bounds, order, program.generation).ok()?;
        Some(part.as_array()?.sizes().ok()?.physical_bytes)
    };
    let order = array.minor_to_major();
    let last = bounds.len() - 1;
    // A few pictures on the rows of a tile: the compiler fills the rows with pieces of each, and keeps copies of them.
    // A decoder of 8 pictures that held 4723 MiB held 3816 with 4 at a time, and 680 with one.
    if bounds.len() >= PICTURE
        && order[..2] == [last, at]
        && (2..ROWS).contains(&bounds[at])
        && array.bounds[at] >= ROWS
    {
        return Some(array.bytes);
    }
    let is_of_pictures = bounds.len() >= PICTURE && order.first() == Some(&at) && at < last;
    let other = if is_of_pictures {
        let spatial = order.iter().copied().filter(|dimension| ![at, last].contains(dimension));
        in_order(&[last, at].into_iter().chain(spatial).collect::<Vec<_>>())?
    } else {
        program.default_bytes(array.element_type(), &bounds)?
    };
    Some(in_order(order)?.min(other).max(array.bytes / parts))
}

/// First dimensions of arguments, each with the bounds of the arguments that begin with it.
pub(crate) fn leading_sizes(program: &ProgramModel<'_>) -> HashMap<u64, HashSet<Vec<u64>>> {
    let mut leading: HashMap<u64, HashSet<Vec<u64>>> = HashMap::default();
    for bounds in arguments(program) {
        if let Some(first) = bounds.first() {
            leading.entry(*first).or_default().insert(bounds);
        }
    }
    leading
}

/// The bounds of the program's arguments.
fn arguments(program: &ProgramModel<'_>) -> Vec<Vec<u64>> {
    let shapes = program.parameters().into_iter().filter_map(|parameter| parameter.shape().ok());
    let bounds = |leaf: &Shape| leaf.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
    shapes.flat_map(|shape| shape.leaves().map(|(_, leaf)| bounds(&leaf)).collect::<Vec<_>>()).collect()
}
