//! Equal numbers, and products of others: union-find with cuts.

use crate::steps;

/// No node.
const NONE: u32 = u32::MAX;

/// Classes of nodes, each of a size. If a node is united with a product of several, its class is cut into theirs.
#[derive(Debug, Default)]
pub(super) struct Classes {
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    size: u64,
    /// The next node on the way to the representative of its class; the node itself where it is the representative.
    parent: u32,
    /// The major part, if its class is cut, else `NONE`; the minor part follows.
    parts: u32,
}

/// The result of uniting two products.
#[derive(Debug)]
pub(super) struct United {
    /// Whether any two classes were made one.
    pub(super) is_new: bool,
    /// The nodes of the first that stay apart.
    pub(super) apart: Vec<u32>,
}

impl Classes {
    /// Adds a node of a class of its own.
    pub(super) fn add(&mut self, size: u64) -> u32 {
        let number = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        self.nodes.push(Node { size, parent: number, parts: NONE });
        number
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn size(&self, node: u32) -> u64 {
        self.nodes[node as usize].size
    }

    /// The node that stands for a class.
    fn find(&mut self, mut node: u32) -> u32 {
        loop {
            steps::take(1);
            let parent = self.nodes[node as usize].parent;
            if parent == node {
                return node;
            }
            let next = self.nodes[parent as usize].parent;
            self.nodes[node as usize].parent = next;
            node = next;
        }
    }

    /// The classes whose product a node is, from the major to the minor one, each by the node that stands for it.
    pub(super) fn parts(&mut self, node: u32, parts: &mut Vec<u32>) {
        let mut waiting = vec![node];
        while let Some(node) = waiting.pop() {
            let root = self.find(node);
            match self.nodes[root as usize].parts {
                NONE => parts.push(root),
                // The major part comes first.
                major => waiting.extend([major + 1, major]),
            }
        }
    }

    /// Unites two products of nodes, from their minor ends on, and cuts the larger of two. If one doesn't divide the
    /// other, the rest stays apart.
    pub(super) fn unite(&mut self, left: &[u32], right: &[u32]) -> United {
        let mut is_new = false;
        let (mut left, mut right) = (left.to_vec(), right.to_vec());
        while let (Some(one), Some(other)) = (left.pop(), right.pop()) {
            let (one, other) = (self.find(one), self.find(other));
            if one == other {
                continue;
            }
            let (of_one, of_other) = (self.nodes[one as usize], self.nodes[other as usize]);
            if of_one.size == of_other.size && (of_one.parts == NONE || of_other.parts == NONE) {
                self.join(one, other);
                is_new = true;
            } else if of_one.parts != NONE {
                left.extend([of_one.parts, of_one.parts + 1]);
                right.push(other);
            } else if of_other.parts != NONE {
                left.push(one);
                right.extend([of_other.parts, of_other.parts + 1]);
            } else {
                let (larger, smaller) = if of_one.size > of_other.size { (one, of_other) } else { (other, of_one) };
                left.push(one);
                right.push(other);
                if !self.cut(larger, smaller.size) {
                    return United { is_new, apart: left };
                }
            }
        }
        United { is_new, apart: Vec::new() }
    }

    /// Unites two classes. The one that is cut stands for both, else the older one.
    fn join(&mut self, one: u32, other: u32) {
        let is_cut = |node: u32| self.nodes[node as usize].parts != NONE;
        let kept = match (is_cut(one), is_cut(other)) {
            (true, false) => one,
            (false, true) => other,
            _ => one.min(other),
        };
        self.nodes[one as usize].parent = kept;
        self.nodes[other as usize].parent = kept;
    }

    /// Cuts a class that isn't cut, so that its minor part has this size; `false` if that doesn't divide it.
    fn cut(&mut self, node: u32, minor: u64) -> bool {
        let size = self.nodes[node as usize].size;
        if minor < 2 || !size.is_multiple_of(minor) {
            return false;
        }
        let major = self.add(size / minor);
        self.add(minor);
        self.nodes[node as usize].parts = major;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(classes: &mut Classes, node: u32) -> Vec<(u32, u64)> {
        let mut parts = Vec::new();
        classes.parts(node, &mut parts);
        parts.into_iter().map(|part| (part, classes.size(part))).collect()
    }

    #[test]
    fn what_is_one_with_a_cut_class_is_cut() {
        let mut classes = Classes::default();
        let [whole, same, major, minor] = [24, 24, 4, 6].map(|size| classes.add(size));
        classes.unite(&[whole], &[major, minor]);
        classes.unite(&[same], &[whole]);
        assert_eq!(parts(&mut classes, same), [(major, 4), (minor, 6)]);
        // 24 is 2 · 2 · 6 from here on, be it asked for by the part or by the whole.
        let [two, twelve] = [2, 12].map(|size| classes.add(size));
        classes.unite(&[two, twelve], &[same]);
        assert_eq!(parts(&mut classes, whole).iter().map(|part| part.1).collect::<Vec<_>>(), [2, 2, 6]);
        assert_eq!(parts(&mut classes, whole)[0].0, parts(&mut classes, two)[0].0);
        assert_eq!(parts(&mut classes, twelve)[1].0, parts(&mut classes, minor)[0].0);
    }

    #[test]
    fn what_does_not_divide_stays_apart() {
        let mut classes = Classes::default();
        let [four, six, five, other] = [4, 6, 5, 5].map(|size| classes.add(size));
        assert_eq!(classes.unite(&[five, four], &[other, six]).apart, [five, four]);
        assert_eq!(parts(&mut classes, four), [(four, 4)]);
        assert_ne!(parts(&mut classes, five), parts(&mut classes, other));
        classes.unite(&[five, six], &[other, six]);
        assert_eq!(parts(&mut classes, five), parts(&mut classes, other));
    }
}
