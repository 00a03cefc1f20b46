//! Arguments of a few columns, padded in the order that is the default: kept flat where all that reads them is
//! elementwise, as an optimizer's state; else an array for each column.

use super::upstream::FEW;
use crate::{
    advice::{
        message::{ListedArrays, MessageModel},
        program::{BufferChanges, LiveArray, ProgramModel},
        recommendation::{Change, Recommendation, Saving, Target},
        rule::{MessageRule, Proposal, Rule},
        snippet::{JAX, NUMPY, unstack_columns},
        words::bounds_text,
    },
    program::name,
};
use tilewise::{
    ArrayShape,
    tpu::{self, Generation},
};

/// A last dimension of this size fills the lanes.
const LANES: u64 = 128;

pub(crate) struct PaddedColumns;

impl Rule for PaddedColumns {
    fn propose(&self, program: &ProgramModel<'_>) -> Vec<Proposal> {
        let mut groups: Vec<Vec<&LiveArray<'_>>> = Vec::new();
        for array in program.arguments().chain(program.results()).filter(|array| is_padded(program, array)) {
            let is_alike = |group: &&mut Vec<&LiveArray<'_>>| group.iter().any(|other| other.bounds == array.bounds);
            match groups.iter_mut().find(is_alike) {
                Some(group) => group.push(array),
                None => groups.push(vec![array]),
            }
        }
        groups.iter().filter_map(|group| proposal(program, group)).collect()
    }
}

fn proposal<'m>(program: &ProgramModel<'m>, group: &[&LiveArray<'m>]) -> Option<Proposal> {
    let largest = *group.iter().filter(|array| array.is_parameter()).max_by_key(|array| array.bytes)?;
    let (columns, rows) = largest.bounds.split_last()?;
    let is_read_elementwise =
        |array: &&LiveArray<'m>| !array.is_parameter() || program.is_elementwise_to_the_end(array);
    let (name, element_type) = (name(&largest.instruction), largest.element_type());
    let others = match group.iter().filter(|array| array.buffer != largest.buffer).count() {
        0 => String::new(),
        1 => "; the same for the other array of this shape that crosses the interface".to_owned(),
        count => format!("; the same for the {count} others of this shape that cross the interface"),
    };
    // How many arrays of how many elements take the place of one.
    let (change, arrays, elements) = if group.iter().all(is_read_elementwise) {
        (Change::Reshape, 1, largest.elements())
    } else if *columns <= FEW && rows.len() == 1 {
        (Change::Split, *columns, rows[0])
    } else {
        return None;
    };
    let after = |array: &LiveArray<'m>| program.default_bytes(array.element_type(), &[elements])?.checked_mul(arrays);
    let at_most = group.iter().filter_map(|array| Some((array.buffer, after(array)?))).collect();
    let (sentence, snippet) = if change == Change::Reshape {
        let sentence = format!(
            "Keep `{name}` flat, as [{elements}], between calls and inside: only elementwise operations read it{others}"
        );
        (sentence, program.snippet(JAX, format!("{name} = {name}.reshape(-1)  # {element_type}[{elements}]")))
    } else {
        let sentence = format!(
            "Pass `{name}` as {columns} arrays of [{}], one for each column, and keep them separate inside{others}",
            bounds_text(rows)
        );
        (sentence, program.snippet(NUMPY, unstack_columns(&name, *columns)))
    };
    Some(Proposal {
        buffers: BufferChanges { at_most, ..BufferChanges::default() },
        snippet,
        ..Proposal::new(change, Target::Argument, program.advised(largest), sentence)
    })
}

fn is_padded(program: &ProgramModel<'_>, array: &LiveArray<'_>) -> bool {
    let is_padded = array.bytes.saturating_sub(array.logical_bytes()) > array.bytes / 16;
    is_padded && array.shape.as_array().is_some_and(|array| has_short_rows(array, program.generation))
}

/// Whether an array is in the default order, and its last dimension too short for the lanes.
fn has_short_rows(array: &ArrayShape, generation: Generation) -> bool {
    let bounds: Option<Vec<u64>> = array.dimensions().iter().map(|dimension| dimension.bound()).collect();
    let Some(bounds) = bounds.filter(|bounds| bounds.len() >= 2) else { return false };
    let is_short = bounds.last().is_some_and(|columns| (2..LANES).contains(columns));
    let default = tpu::default_layout(array.element_type(), &bounds, generation).ok();
    is_short && default.is_some_and(|default| default.layout() == array.layout())
}

impl MessageRule for PaddedColumns {
    /// Nobody knows what reads an array, so none is kept flat.
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation> {
        message.interface().iter().filter_map(|arrays| of_listed(message, arrays)).collect()
    }
}

fn of_listed(message: &MessageModel<'_>, arrays: &ListedArrays<'_>) -> Option<Recommendation> {
    let (array, sizes) = (arrays.row.shape.as_ref()?.as_array()?, arrays.row.sizes?);
    let generation = message.generation_of(array);
    let &[rows, columns] = &arrays.row.bounds()[..] else { return None };
    let is_padded = sizes.padding_bytes() > sizes.physical_bytes / 16;
    if !is_padded || columns > FEW || !has_short_rows(array, generation) {
        return None;
    }
    let column = tpu::default_layout(array.element_type(), &[rows], generation).ok()?;
    let after = column.as_array()?.sizes().ok()?.physical_bytes.checked_mul(columns)?;
    let saved = sizes.physical_bytes.checked_sub(after).filter(|saved| *saved > 0)?;
    let (pass, name) = arrays.in_words();
    let sentence =
        format!("{pass} as {columns} arrays of [{rows}], one for each column, if the program can keep them separate");
    let found = Recommendation::new(Change::Split, arrays.target(), sentence)
        .about(arrays.shape_text())
        .saving(Saving::AtMost(saved.saturating_mul(arrays.count)));
    Some(message.with_jax(found, NUMPY, unstack_columns(&name, columns)))
}
