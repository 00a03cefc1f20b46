//! The parts of a dimension in padding and slices: its first places, or pieces of equal size that it is made of.

use foldhash::{HashMap, HashSet};

use crate::{Instruction, Opcode};

use super::{classes::Classes, events::EventKind, factors::FactorKind};

/// The axes that go on beyond padding and slices.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// Nodes, each with the node of its first places.
    beginnings: Vec<(u32, u32)>,
    pieces: Vec<Piece>,
}

/// A run of a dimension's places.
#[derive(Debug)]
struct Piece {
    whole: u32,
    piece: u32,
    start: u64,
    instruction: usize,
    is_slice: bool,
}

impl Pieces {
    /// Notes the part of a dimension that a `pad` or a `slice` has; the nodes are those before and after it.
    pub(super) fn note(&mut self, at: &Instruction<'_>, dimension: usize, (from, to): (u32, u32), classes: &Classes) {
        let (start, (whole, piece), is_slice) = match at.opcode() {
            Opcode::Pad => {
                let along = at.padding().and_then(|padding| padding.get(dimension).copied());
                let along = along.filter(|along| along.interior == 0 && along.high >= 0);
                (along.and_then(|along| u64::try_from(along.low).ok()), (to, from), false)
            }
            Opcode::Slice => {
                let limits = at.slice_limits().and_then(|limits| limits.get(dimension).copied());
                let limits = limits.filter(|limits| limits.stride == 1);
                (limits.map(|limits| limits.start), (from, to), true)
            }
            _ => return,
        };
        let [of_whole, size] = [whole, piece].map(|node| classes.size(node));
        let Some(start) = start.filter(|_| size < of_whole) else { return };
        if start == 0 {
            self.beginnings.push((whole, piece));
        }
        self.pieces.push(Piece { whole, piece, start, instruction: at.index(), is_slice });
    }

    /// Unites the axes that go on.
    pub(super) fn unite(self, classes: &mut Classes, events: &mut Vec<(u32, usize, EventKind)>) {
        unite_pieces(&self.pieces, classes, events);
        unite_beginnings(&self.beginnings, classes);
    }
}

/// Unites the minor axes of a product and of a piece of it that has all their places at each of its places of the major
/// axes: the last of 21 time steps of 512 games, flattened, has all games.
fn unite_pieces(pieces: &[Piece], classes: &mut Classes, events: &mut Vec<(u32, usize, EventKind)>) {
    let mut known: HashSet<(u32, usize)> = HashSet::default();
    let [mut of_whole, mut of_piece] = [Vec::new(), Vec::new()];
    for Piece { whole, piece, start, instruction, is_slice } in pieces {
        of_whole.clear();
        classes.parts(*whole, &mut of_whole);
        let size = classes.size(*piece);
        // The longest run of minor axes that go on.
        let minor = minor_axes(classes, &of_whole).find(|(_, count)| {
            *count < classes.size(*whole) && size.is_multiple_of(*count) && start.is_multiple_of(*count)
        });
        let Some((first, count)) = minor.filter(|(_, count)| *count > 1) else { continue };
        if !classes.unite(&[*piece], &of_whole[first..]).apart.is_empty() {
            continue;
        }
        known.extend([*whole, *piece].map(|node| (node, *instruction)));
        of_piece.clear();
        classes.parts(*piece, &mut of_piece);
        let rest =
            minor_axes(classes, &of_piece).find(|(_, of_piece)| *of_piece == count).map_or(0, |(first, _)| first);
        let (of_whole, of_piece) = (&of_whole[..first], &of_piece[..rest]);
        let (ends, made) = if *is_slice { (of_whole, of_piece) } else { (of_piece, of_whole) };
        events.extend(ends.iter().map(|axis| (*axis, *instruction, EventKind::Ends(FactorKind::Mix))));
        events.extend(made.iter().map(|axis| (*axis, *instruction, EventKind::Made(FactorKind::Mix))));
    }
    events.retain(|(node, instruction, _)| !known.contains(&(*node, *instruction)));
}

/// The possible starts of a dimension's minor axes, with the number of places that these have together; most first.
fn minor_axes(classes: &Classes, all: &[u32]) -> impl Iterator<Item = (usize, u64)> {
    let mut count = 1_u64;
    let counts = all.iter().enumerate().rev().map(|(first, axis)| {
        count = count.saturating_mul(classes.size(*axis));
        (first, count)
    });
    counts.collect::<Vec<_>>().into_iter().rev()
}

/// Unites nodes with the same number of an axis's first places: a dimension padded at the end is restored once that is
/// cut off.
fn unite_beginnings(beginnings: &[(u32, u32)], classes: &mut Classes) {
    /// Maximum number of rounds: united nodes may unite others, as in padding of padding.
    const ROUNDS: usize = 4;
    for _ in 0..ROUNDS {
        let mut known: HashMap<(Vec<u32>, u64), u32> = HashMap::default();
        let mut is_new = false;
        for (whole, beginning) in beginnings {
            let mut parts = Vec::new();
            classes.parts(*whole, &mut parts);
            let key = (parts, classes.size(*beginning));
            match known.get(&key) {
                Some(other) => is_new |= classes.unite(&[*other], &[*beginning]).is_new,
                None => _ = known.insert(key, *beginning),
            }
        }
        if !is_new {
            return;
        }
    }
}
