//! The instructions around one: its operands, its users, and theirs.

use super::sections::Report;
use crate::program::Sizer;
use std::collections::BTreeMap;
use tilewise_hlo::dataflow::OpId;

/// The instructions around one: [`Report::neighbours`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Neighbours {
    /// By depth; within a depth the largest first.
    pub instructions: Vec<Neighbour>,
    /// Edges between `instructions`, by index: from the one that is read to its reader.
    pub edges: Vec<(usize, usize)>,
    /// By depth, the number of instructions that aren't listed.
    pub left_out: BTreeMap<i32, usize>,
}

/// One of the instructions around another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Neighbour {
    /// Its name.
    pub name: String,
    /// Its opcode.
    pub opcode: String,
    /// The shape of its result, as printed.
    pub shape: String,
    /// Bytes of the arrays in its result, without tuples' tables.
    pub bytes: u64,
    /// Below 0 for operands of the one in the middle, above 0 for its users: all that it reads is further left.
    pub depth: i32,
}

/// Maximum number of instructions of one depth that are listed.
const MOST: usize = 6;

impl Report {
    /// The instructions within `steps` of one, along operands and users; `None` for one that the program doesn't run.
    ///
    /// ```
    /// let text = "
    /// HloModule m, is_scheduled=true
    ///
    /// ENTRY main {
    ///   x = f32[8,128]{1,0:T(8,128)} parameter(0)
    ///   y = f32[8,128]{1,0:T(8,128)} negate(x)
    ///   z = f32[8,128]{1,0:T(8,128)} add(x, y)
    ///   ROOT r = f32[8,128]{1,0:T(8,128)} negate(z)
    /// }";
    /// let module = tilewise_hlo::Module::parse(text)?;
    /// let around = tilewise_audit::audit(&module).neighbours("z", 3).expect("it runs");
    /// let depths: Vec<_> = around.instructions.iter().map(|one| (&*one.name, one.depth)).collect();
    /// assert_eq!(depths, [("x", -2), ("y", -1), ("z", 0), ("r", 1)]);
    /// assert_eq!(around.edges, [(0, 1), (0, 2), (1, 2), (2, 3)]);
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn neighbours(&self, instruction: &str, steps: u8) -> Option<Neighbours> {
        let flow = &self.planned.flow;
        let middle = flow.ops().ids().find(|op| flow.instruction(*op).is_some_and(|one| one.name() == instruction))?;
        let mut depths = BTreeMap::from([(middle, 0)]);
        let mut reach = |sign: i32, next: &dyn Fn(OpId) -> Vec<OpId>| {
            let mut edge = vec![middle];
            let mut found = Vec::new();
            for depth in 1..=i32::from(steps) {
                let mut fresh: Vec<OpId> = edge.iter().flat_map(|op| next(*op)).collect();
                fresh.sort_unstable();
                fresh.dedup();
                fresh.retain(|op| !depths.contains_key(op));
                depths.extend(fresh.iter().map(|op| (*op, sign * depth)));
                found.extend(&fresh);
                edge = fresh;
            }
            // An instruction that reads another one is further from it: in a text, operands come first.
            found.sort_unstable();
            if sign < 0 {
                found.reverse();
            }
            for op in found {
                for other in next(op) {
                    let beyond = depths[&op] + sign;
                    if let Some(depth) = depths.get_mut(&other) {
                        *depth = if sign < 0 { beyond.min(*depth) } else { beyond.max(*depth) };
                    }
                }
            }
        };
        reach(-1, &|op| flow.operands(op).to_vec());
        reach(1, &|op| flow.users(op).iter().map(|user| user.op).collect());

        let mut sizer = Sizer::default();
        let mut found: Vec<(OpId, Neighbour)> = Vec::new();
        for (op, depth) in depths {
            let Some(one) = flow.instruction(op) else { continue };
            let leaves = sizer.leaves(&one);
            let arrays = leaves.iter().flat_map(|leaves| leaves.iter()).filter_map(|(_, array)| array.as_ref().ok());
            let bytes = arrays.map(|array| sizer.array(*array).sizes.physical_bytes).fold(0, u64::saturating_add);
            let (name, opcode) = (one.name().to_owned(), one.opcode_text().to_owned());
            found.push((op, Neighbour { name, opcode, shape: one.shape_text().to_owned(), bytes, depth }));
        }
        found.sort_by_key(|(op, one)| (one.depth, std::cmp::Reverse(one.bytes), *op));
        let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
        found.retain(|(_, one)| {
            let count = counts.entry(one.depth).or_default();
            *count += 1;
            *count <= MOST
        });
        let numbers: BTreeMap<OpId, usize> = found.iter().enumerate().map(|(at, (op, _))| (*op, at)).collect();
        let reads = |(at, (op, _)): (usize, &(OpId, Neighbour))| {
            let mut read: Vec<usize> = flow.operands(*op).iter().filter_map(|one| numbers.get(one).copied()).collect();
            read.sort_unstable();
            read.dedup();
            read.into_iter().map(move |one| (one, at)).collect::<Vec<_>>()
        };
        let mut edges: Vec<(usize, usize)> = found.iter().enumerate().flat_map(reads).collect();
        edges.sort_unstable();
        let left_out = counts.into_iter().filter(|(_, count)| *count > MOST);
        Some(Neighbours {
            edges,
            left_out: left_out.map(|(depth, count)| (depth, count - MOST)).collect(),
            instructions: found.into_iter().map(|(_, one)| one).collect(),
        })
    }
}
