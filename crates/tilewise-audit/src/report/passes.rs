//! The passes of a training step and the layers of its network, by the names of operations.

use super::pieces::{Pass, TimelinePiece};
use crate::program::{is_backward, is_forward, numbered};
use foldhash::HashMap;
use std::{cmp::Reverse, collections::BTreeMap};

/// The forward and the backward pass, split where the fewest operations are on the wrong side: the compiler moves some.
/// Empty unless there are both.
///
/// `order` has each operation's own name: a copy in the backward pass is of that pass, even if it copies a value of the
/// forward pass.
pub(crate) fn of(order: impl Iterator<Item = Option<impl AsRef<str>>>) -> Vec<Pass> {
    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Forward,
        Backward,
    }
    let kind = |name: &str| match (is_forward(name), is_backward(name)) {
        (true, _) => Some(Kind::Forward),
        (_, true) => Some(Kind::Backward),
        _ => None,
    };
    let kinds: Vec<Option<Kind>> = order.map(|name| kind(name?.as_ref())).collect();
    let moments = || kinds.iter().copied().enumerate();
    let first = |kind: Kind| moments().find(|(_, of)| *of == Some(kind)).map(|(moment, _)| moment);
    let last = |kind: Kind| moments().rfind(|(_, of)| *of == Some(kind)).map(|(moment, _)| moment);
    let (Some(start), Some(end)) = (first(Kind::Forward), last(Kind::Backward)) else { return Vec::new() };
    // The lead of forward over backward operations before a moment: it is greatest where the passes part.
    let (mut lead, mut most, mut parted) = (0_i64, i64::MIN, 0);
    for (moment, of) in moments() {
        if lead > most {
            (most, parted) = (lead, moment);
        }
        lead += match of {
            Some(Kind::Forward) => 1,
            Some(Kind::Backward) => -1,
            None => 0,
        };
    }
    if parted <= start || parted > end {
        return Vec::new();
    }
    vec![
        Pass { name: "forward pass", first: start, last: parted - 1 },
        Pass { name: "backward pass", first: parted, last: end },
    ]
}

/// Sets each piece's layer, and returns the layers' names. Of the places in operations' names that have several
/// numbers, that of the layers holds the most bytes over all moments, the largest layer left out; of equals, the
/// outermost.
pub(crate) fn name_layers(paths: &[String], pieces: &mut [TimelinePiece]) -> Vec<String> {
    let mut held = vec![0_u128; paths.len()];
    for piece in &*pieces {
        if let Some(held) = piece.path.and_then(|path| held.get_mut(path)) {
            let moments = piece.last.saturating_sub(piece.first).saturating_add(1);
            *held = held.saturating_add(u128::from(piece.bytes).saturating_mul(moments as u128));
        }
    }
    let mut places: HashMap<String, BTreeMap<u64, u128>> = HashMap::default();
    for (path, held) in paths.iter().zip(&held).filter(|(_, held)| **held > 0) {
        for (place, number) in numbered(path) {
            let layer = places.entry(place).or_default().entry(number).or_default();
            *layer = layer.saturating_add(*held);
        }
    }
    let but_of_one = |layers: &BTreeMap<u64, u128>| {
        layers.values().fold(0, |sum: u128, held| sum.saturating_add(*held)) - layers.values().max().unwrap_or(&0)
    };
    let several = places.into_iter().filter(|(_, layers)| layers.len() > 1);
    let Some((place, layers)) = several.max_by_key(|(place, layers)| (but_of_one(layers), Reverse(place.clone())))
    else {
        return Vec::new();
    };
    let numbers: HashMap<u64, usize> = layers.keys().enumerate().map(|(at, number)| (*number, at)).collect();
    let layer = |path: &String| {
        let number = numbered(path).into_iter().find(|(at, _)| *at == place)?.1;
        numbers.get(&number).copied()
    };
    let of_path: Vec<Option<usize>> = paths.iter().map(layer).collect();
    for piece in pieces {
        piece.layer = piece.path.and_then(|path| of_path.get(path).copied().flatten());
    }
    layers.keys().map(|number| place.replace('*', &number.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names as JAX prints them, and the order in which they run; one backward operation is moved ahead.
    #[test]
    fn passes_part_where_the_fewest_are_on_the_wrong_side() {
        const NAMES: [&str; 4] = ["x", "jit(f)/jvp(Net)/h_0/dot", "jit(f)/transpose(jvp(Net))/h_0/dot", "jit(f)/add"];
        let order = [0, 1, 2, 1, 1, 2, 2, 3].map(Some);
        let named = |order: &[Option<usize>]| of(order.iter().map(|at| at.map(|at| NAMES[at])));
        let passes: Vec<_> = named(&order).iter().map(|pass| (pass.name, pass.first, pass.last)).collect();
        assert_eq!(passes, [("forward pass", 1, 4), ("backward pass", 5, 6)]);
        assert_eq!(named(&[Some(1), Some(3), None]), []);
    }

    #[test]
    fn layers_are_of_both_passes() {
        let paths = ["jit(f)/jvp(Net)/h_0/dot", "jit(f)/transpose(jvp(Net))/h_1/dot", "jit(f)/add"].map(String::from);
        let piece = |path| TimelinePiece {
            owner: 0,
            path: Some(path),
            layer: None,
            shape: None,
            instruction: String::new(),
            offset: None,
            bytes: 8,
            padding_bytes: 0,
            first: 0,
            last: 1,
        };
        let mut pieces = [0, 1, 2].map(piece);
        assert_eq!(name_layers(&paths, &mut pieces), ["Net/h_0", "Net/h_1"]);
        assert_eq!(pieces.map(|piece| piece.layer), [Some(0), Some(1), None]);
    }
}
