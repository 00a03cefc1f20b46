//! A message as rules look at it: what it lists, what fills the memory, and whose code to answer with.

use super::recommendation::{Recommendation, Target};
use crate::{
    message::{Allocation, Listing},
    program::generation_of_tiles,
};
use tilewise::{ArrayShape, Shape, tpu::Generation};
use tilewise_oom::{Budget, Framework, Role, Section};

/// Entries looked at: the compiler lists 20, the largest first.
const LOOKED_AT: usize = 256;

pub(crate) struct MessageModel<'a> {
    pub(crate) listing: Listing<'a>,
    pub(crate) budget: Budget,
    /// Whose code to answer with: where nothing tells, JAX's.
    pub(crate) framework: Framework,
    /// What the message lists of values inside the program.
    pub(crate) temporaries: Vec<&'a Allocation>,
}

/// Equal arrays that cross the interface.
pub(crate) struct ListedArrays<'a> {
    pub(crate) row: &'a Allocation,
    pub(crate) count: u64,
}

impl<'a> MessageModel<'a> {
    pub(crate) fn new(listing: Listing<'a>) -> Self {
        let is_inside = |row: &&Allocation| row.entry.section == Section::Allocations && row.entry.window().is_none();
        Self {
            listing,
            budget: listing.message.budget(),
            framework: listing.message.framework.unwrap_or(Framework::Jax),
            temporaries: listing.allocations.iter().filter(is_inside).take(LOOKED_AT).collect(),
        }
    }

    /// What crosses the interface, equal arrays together; without results that lie in donated arguments, for those
    /// change with them.
    pub(crate) fn interface(&self) -> Vec<ListedArrays<'a>> {
        let mut groups: Vec<ListedArrays<'a>> = Vec::new();
        let is_shared = self.budget.output_bytes == Some(0);
        let is_outside = |row: &&Allocation| row.entry.section == Section::ArgumentsAndOutputs;
        for row in self.listing.allocations.iter().filter(is_outside).take(LOOKED_AT) {
            if is_shared && matches!(row.entry.role(), Some(Role::Output(_))) {
                continue;
            }
            let is_same =
                |other: &&mut ListedArrays<'a>| other.row.shape == row.shape && other.is_argument() == is_argument(row);
            match groups.iter_mut().find(is_same) {
                Some(group) => group.count += 1,
                None => groups.push(ListedArrays { row, count: 1 }),
            }
        }
        groups
    }

    /// Arguments, or results, the smallest first: the text of their shapes, and what they take.
    pub(crate) fn arrays(&self, is_wanted: fn(&Role) -> bool) -> impl Iterator<Item = (String, u64)> {
        let listed = self.listing.allocations.iter().rev().take(LOOKED_AT);
        let rows = listed.filter(move |row| row.entry.role().as_ref().is_some_and(is_wanted));
        rows.filter_map(|row| Some((row.shape.as_ref()?.to_string(), row.taken_bytes())))
    }

    /// The generation whose layouts are the default ones for an array: as given, or as its tiles tell.
    pub(crate) fn generation_of(&self, array: &ArrayShape) -> Generation {
        self.listing.generation.or_else(|| generation_of_tiles(array)).unwrap_or(Generation::V5e)
    }

    /// Whether the program takes a gradient.
    pub(crate) fn has_gradient(&self) -> bool {
        const SIGNS: [&str; 4] = ["jvp(", "mapped_update", "train_step", "grad"];
        self.temporaries.iter().any(|row| SIGNS.iter().any(|sign| row.op_name().contains(sign)))
    }

    /// Padding that the message counts within the program.
    pub(crate) fn temporary_padding(&self) -> Option<u64> {
        Some(self.budget.padding_bytes?.saturating_sub(self.budget.argument_padding_bytes.unwrap_or_default()))
    }

    /// The code, if it is for this message's framework.
    pub(crate) fn with_jax(
        &self,
        found: Recommendation,
        imports: &'static str,
        code: impl Into<String>,
    ) -> Recommendation {
        if self.framework == Framework::Jax { found.snippet(imports, code) } else { found }
    }
}

/// The same share of all as `part` is of what is listed, if a list that is cut off has less than half of all.
pub(crate) fn share_of_all(part: u64, listed: u64, all: Option<u64>) -> u64 {
    let Some(all) = all.filter(|all| *all / 2 > listed && listed > 0) else { return part };
    u64::try_from(u128::from(part) * u128::from(all) / u128::from(listed)).unwrap_or(part)
}

/// What these take together.
pub(crate) fn total<'a>(rows: impl IntoIterator<Item = &'a Allocation>, bytes: impl Fn(&Allocation) -> u64) -> u64 {
    rows.into_iter().map(bytes).fold(0, u64::saturating_add)
}

fn is_argument(row: &Allocation) -> bool {
    matches!(row.entry.role(), Some(Role::Argument(..)))
}

impl ListedArrays<'_> {
    pub(crate) fn is_argument(&self) -> bool {
        is_argument(self.row)
    }

    pub(crate) fn target(&self) -> Target {
        if self.is_argument() { Target::Argument } else { Target::Result }
    }

    pub(crate) fn shape_text(&self) -> String {
        self.row.shape.as_ref().map(Shape::to_string).unwrap_or_default()
    }

    /// ``Pass `x` and the 2 others of this shape``, and what the first is called in code.
    pub(crate) fn in_words(&self) -> (String, String) {
        let verb = if self.is_argument() { "Pass" } else { "Return" };
        let others = match self.count {
            1 => String::new(),
            2 => " and the other one of this shape".to_owned(),
            count => format!(" and the {} others of this shape", count - 1),
        };
        let (what, name) = self.named();
        (format!("{verb} {what}{others}"), name)
    }

    /// How an argument or result is called in a sentence, and in code.
    fn named(&self) -> (String, String) {
        // The framework's own name of an argument is an expression, such as `params['w']`; paths are of operations.
        let name = self.row.op_name();
        if !name.is_empty() && !name.contains(['/', '(', ' ']) {
            return (format!("`{name}`"), name.to_owned());
        }
        let path = |index: &[u32]| match index {
            [] => String::new(),
            _ => format!(" at {{{}}}", index.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
        };
        match self.row.entry.role() {
            Some(Role::Argument(number, index)) => {
                (format!("argument {number}{}", path(&index)), format!("argument_{number}"))
            }
            Some(Role::Output(index)) => (format!("the result{}", path(&index)), "result".to_owned()),
            _ => ("this array".to_owned(), "array".to_owned()),
        }
    }
}
