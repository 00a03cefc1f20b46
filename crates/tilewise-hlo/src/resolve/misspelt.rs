//! Names of attributes: given twice, or nearly a known one.

use foldhash::HashSet;

/// The names of attributes that were given.
#[derive(Default)]
pub(super) struct Seen<'t> {
    few: Vec<&'t str>,
    others: HashSet<&'t str>,
}

impl<'t> Seen<'t> {
    /// Whether the name is new. Instructions have few attributes; texts that no compiler printed may have any number.
    pub(super) fn add(&mut self, name: &'t str) -> bool {
        const FEW: usize = 16;
        if self.few.contains(&name) {
            return false;
        }
        if self.few.len() < FEW {
            self.few.push(name);
            return true;
        }
        self.others.insert(name)
    }
}

/// Whether a name isn't one of these, but differs from one by a letter or two: then it is damaged, not unknown.
pub(super) fn is_nearly_any(name: &str, known: &[&str]) -> bool {
    let is_near = |known: &&str| {
        let far = if known.len() < 8 { 1 } else { 2 };
        // A name that was cut is near, too.
        let is_cut = name.len() >= 4 && (known.ends_with(name) || known.starts_with(name));
        is_cut || known.len().abs_diff(name.len()) <= far && distance(name.as_bytes(), known.as_bytes()) <= far
    };
    // Most names that are known to others differ at both ends.
    let may_be = |known: &&str| {
        name.as_bytes().first() == known.as_bytes().first() || name.as_bytes().last() == known.as_bytes().last()
    };
    !known.contains(&name) && known.iter().filter(|known| may_be(known)).any(is_near)
}

/// The number of letters that must be put in, left out or changed to get from one name to the other.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut diagonal = at;
        row[0] = at + 1;
        for (column, known) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != known);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
