//! Changes that avoid a copy at a kernel.

use super::follow::{User, Way, array, rearranged, within_user};
use crate::advice::Recommendation;
use tilewise::{
    BitcastAs, Rearrangement, Shape,
    tpu::{self, Generation},
};
use tilewise_hlo::{
    Opcode,
    dataflow::{Dataflow, OpId, Position},
};
use tilewise_kernel::{View, ViewAccess};

/// A change that avoids the copies of a kernel's operand or result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Remedy {
    /// Pass an argument, or take a result, in another layout: [`CopyReason::fix`](crate::CopyReason::fix) of the copy.
    Layout(Box<Recommendation>),
    /// Let the kernel read or write this view of the same bytes: another block and index map, no copy.
    View(View),
    /// Store the array, which the caller passes, in this shape.
    Stored {
        /// The shape, which has the kernel's order by default.
        view: View,
        /// Bytes that it takes more than its present shape; mostly 0.
        more_bytes: u64,
    },
    /// Donate an argument that the kernel overwrites.
    Donate {
        /// The number of the parameter.
        parameter: usize,
    },
    /// Leave an unread result out of a kernel's `input_output_aliases`: it overwrites a value that is still needed.
    DropAlias {
        /// The call.
        kernel: String,
        /// The number of the result.
        result: usize,
    },
}

impl Remedy {
    /// Its name in snake case.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Layout(_) => "layout",
            Self::View(_) => "view",
            Self::Stored { .. } => "stored",
            Self::Donate { .. } => "donate",
            Self::DropAlias { .. } => "drop_alias",
        }
    }
}

/// The view, or the stored shape, that avoids an operand's copy.
pub(super) fn of_operand(flow: &Dataflow, way: &Way, generation: Generation) -> Option<Remedy> {
    let from = array(flow, way.end)?;
    let steps = way.ops.iter().zip(&way.between).rev();
    let steps = steps.map(|(op, change)| (*op, change.from.clone(), change.to.clone()));
    let rearrangement = rearranged(flow, &from, steps)?;
    let is_only_user = flow.uses(way.end).len() == 1;
    cheapest(&rearrangement, &from, Fixed::by(flow, flow.op_at(way.end)), is_only_user, generation)
}

/// The view, or the stored shape, that avoids a result's copy.
pub(super) fn of_result(
    flow: &Dataflow,
    result: Position,
    (user, way): (User, &Way),
    generation: Generation,
) -> Option<Remedy> {
    let made = array(flow, result)?;
    let steps = way.ops.iter().zip(&way.between);
    let steps = steps.map(|(op, change)| (*op, change.from.clone(), change.to.clone()));
    let rearrangement = rearranged(flow, &made, steps)?;
    let (used, rearrangement) = match user {
        User::Op(op) => within_user(flow, op, way.end, rearrangement)?,
        User::Result(_) => (array(flow, way.end)?, rearrangement),
    };
    let is_only_user = flow.uses(result).len() == 1;
    let fixed = match user {
        User::Result(_) => Fixed::Caller,
        User::Op(op) => Fixed::by(flow, op),
    };
    cheapest(&rearrangement.inverse(), &used, fixed, is_only_user, generation)
}

/// The cause that fixes the layout at the other end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fixed {
    /// The caller, who may pass or take another layout.
    Caller,
    /// A loop or a branch, with everything else that reads and writes the value.
    Carried,
    /// None: the value can be written, or read, in another order.
    No,
}

impl Fixed {
    fn by(flow: &Dataflow, op: OpId) -> Self {
        match flow[op].opcode {
            Opcode::Parameter if flow.caller(op).is_none() => Self::Caller,
            Opcode::Parameter | Opcode::While | Opcode::Conditional => Self::Carried,
            _ => Self::No,
        }
    }
}

/// The cheapest view of an array, or shape to store it in, for a kernel that takes it rearranged.
fn cheapest(
    rearrangement: &Rearrangement,
    array: &Shape,
    fixed: Fixed,
    is_only_user: bool,
    generation: Generation,
) -> Option<Remedy> {
    let own_bounds = rearrangement.bounds();
    let mut views: Vec<View> = View::of(array, rearrangement, generation);
    if fixed == Fixed::No {
        // A computed value can be written in another order: row-major, or with the last two dimensions exchanged.
        let others = other_orders(array, generation);
        views.extend(others.iter().flat_map(|other| View::of(other, rearrangement, generation)));
    }
    // The operand itself is copied: the same array in other tiles, or its bytes in its own order, doesn't avoid the
    // copy.
    let order: Vec<usize> = (0..own_bounds.len()).rev().collect();
    let operand = tpu::layout_for_order(array.element_type()?, &own_bounds, &order, generation).ok()?;
    let is_other = |view: &View| {
        let same = view.shape.bitcast(&operand, BitcastAs::Reshape).is_ok_and(|relation| relation.is_bitcast());
        let is_operand = view.shape.dimensions() == operand.dimensions();
        !(view.keeps_order() && (same || is_operand))
    };
    views.retain(is_other);
    // The sort is stable: of equals, views of the present bytes come first.
    views.sort_by_key(|view| view.access);
    let view = views.into_iter().find(|view| view.access < ViewAccess::Regrouped);
    let may_be_kept = fixed == Fixed::Caller && is_only_user;
    if !may_be_kept || view.as_ref().is_some_and(|view| view.access < ViewAccess::Transposed) {
        return view.map(Remedy::View);
    }
    let own_bytes = array.as_array()?.sizes().ok()?.physical_bytes;
    let stored = View::stored(&operand, rearrangement, own_bytes.saturating_add(own_bytes / 8), generation);
    let least = view.as_ref().map_or(ViewAccess::Regrouped, |view| view.access);
    let stored =
        stored.into_iter().find(|view| view.access < least && view.shape.bounds() != array.bounds()).and_then(|view| {
            let bytes = view.shape.as_array()?.sizes().ok()?.physical_bytes;
            Some(Remedy::Stored { more_bytes: bytes.saturating_sub(own_bytes), view })
        });
    stored.or(view.map(Remedy::View))
}

fn other_orders(array: &Shape, generation: Generation) -> Vec<Shape> {
    let Some((element_type, bounds)) = array.element_type().zip(array.bounds()) else { return Vec::new() };
    let row_major: Vec<usize> = (0..bounds.len()).rev().collect();
    let mut exchanged: Vec<usize> = array.layout().map_or_else(Vec::new, |layout| layout.minor_to_major().to_vec());
    if exchanged.len() > 1 {
        exchanged.swap(0, 1);
    }
    let of = |order: Vec<usize>| tpu::layout_for_order(element_type, &bounds, &order, generation).ok();
    [row_major, exchanged].into_iter().filter_map(of).collect()
}
