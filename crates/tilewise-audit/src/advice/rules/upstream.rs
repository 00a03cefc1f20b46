//! Rows of a few columns: a gather makes, and a scatter reads, each row in 128 lanes of its own.

use crate::{
    advice::{
        message::{MessageModel, share_of_all, total},
        program::{BufferChanges, LiveArray, ProgramModel},
        recommendation::{Change, Recommendation, Saving, Target},
        rule::{MessageRule, Proposal, Rule},
        snippet::{NUMPY, SCATTER_COLUMNS, gather_columns},
    },
    message::Allocation,
    program::{at_line, does, name},
};
use std::collections::HashMap;
use tilewise_hlo::{Instruction, Opcode};

/// More columns than this are an embedding, not components, and nobody keeps each as an array.
pub(crate) const FEW: u64 = 16;
/// A message tells less of what an array is: dimensions up to this size are columns, one of 128 lanes for each.
const FEW_IN_MESSAGES: u64 = 32;
/// Fewer rows than this are no table.
const MANY: u64 = 1024;

pub(crate) struct GatheredRows;

impl Rule for GatheredRows {
    fn propose(&self, program: &ProgramModel<'_>) -> Vec<Proposal> {
        let mut done: Vec<&[u64]> = Vec::new();
        let mut proposals = Vec::new();
        for array in program.peak_temporaries() {
            let Some((rows, columns)) = of_few(array).filter(|_| !done.contains(&&array.bounds[..])) else { continue };
            let gather = program.made_by(array.op, is_gather);
            let is_scattered = program.leads_to(array, |user| does(user, Opcode::Scatter));
            if gather.is_none() && !is_scattered {
                continue;
            }
            done.push(&array.bounds);
            let (sentence, code) = in_words(program, array, columns, gather.as_ref(), is_scattered);
            proposals.push(Proposal {
                buffers: split(program, array, &rows, columns),
                snippet: program.snippet(NUMPY, code),
                ..Proposal::new(Change::Split, Target::Upstream, program.advised(array), sentence)
            });
        }
        proposals
    }
}

/// The bounds of an array's rows, and how many columns it has, if those lie along the lanes, padded. What is short beside
/// them is columns, too: of `[N,3,3]` nine.
pub(super) fn of_few(array: &LiveArray<'_>) -> Option<(Vec<u64>, u64)> {
    let minor = *array.minor_to_major().first()?;
    let is_column = |at: usize, bound: u64| at == minor || bound <= FEW && at > 0;
    let bounds = || array.bounds.iter().copied().enumerate();
    let rows: Vec<u64> = bounds().filter(|(at, bound)| !is_column(*at, *bound)).map(|(_, bound)| bound).collect();
    let product = |product: u64, bound: u64| product.saturating_mul(bound);
    let columns = bounds().filter(|(at, bound)| is_column(*at, *bound)).map(|(_, bound)| bound).fold(1, product);
    let count = rows.iter().copied().fold(1, product);
    let is_padded = array.bytes >= array.logical_bytes().saturating_mul(4);
    ((2..=FEW).contains(&columns) && count >= MANY && is_padded).then_some((rows, columns))
}

/// From the gather to the scatter, whatever is made of the rows on the way has as many.
fn split(program: &ProgramModel<'_>, array: &LiveArray<'_>, rows: &[u64], columns: u64) -> BufferChanges {
    let mut buffers = BufferChanges::default();
    for same in program.temporaries().filter(|same| same.bounds == array.bounds && of_few(same).is_some()) {
        let column = program.default_bytes(same.element_type(), rows);
        if let Some(bytes) = column.and_then(|column| column.checked_mul(columns)) {
            buffers.at_most.insert(same.buffer, bytes);
        }
    }
    buffers
}

fn in_words<'m>(
    program: &ProgramModel<'m>,
    array: &LiveArray<'m>,
    columns: u64,
    gather: Option<&Instruction<'m>>,
    is_scattered: bool,
) -> (String, String) {
    const WHY: &str = "a row takes 128 lanes, whatever it holds";
    let place = at_line(&array.instruction);
    let Some(gather) = gather else {
        return (format!("Scatter each of the {columns} columns separately{place}: {WHY}"), SCATTER_COLUMNS.to_owned());
    };
    let then = if is_scattered {
        "and keep them separate until each is scattered"
    } else {
        "before anything joins them into rows"
    };
    let table = table(program, gather).map_or_else(|| "table".to_owned(), |table| name(&table));
    (format!("Gather each of the {columns} columns separately{place}, {then}: {WHY}"), gather_columns(&table))
}

/// A gather, but not the one that brings a scatter's updates into order.
pub(super) fn is_gather(instruction: &Instruction<'_>) -> bool {
    does(instruction, Opcode::Gather) && !does(instruction, Opcode::Scatter)
}

/// The argument that a gather's rows come from, if it does nothing but take them.
pub(super) fn table<'m>(program: &ProgramModel<'m>, gather: &Instruction<'m>) -> Option<Instruction<'m>> {
    let table = *program.flow.operands(program.flow.op(gather)?).first()?;
    program.made_by(table, |at| at.opcode() == Opcode::Parameter && at.computation().is_entry())
}

impl MessageRule for GatheredRows {
    /// Columns of arrays with as many rows go together.
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation> {
        let mut found: Vec<(&Allocation, u64, u64)> = Vec::new();
        let mut known: HashMap<(u64, u64), usize> = HashMap::new();
        for row in &message.temporaries {
            let (Some(columns), padding) = (columns_of(row), row.told_padding()) else { continue };
            let &[rows, _, ..] = &row.bounds()[..] else { continue };
            if columns > FEW_IN_MESSAGES || padding == 0 {
                continue;
            }
            let at = *known.entry((columns, rows)).or_insert(found.len());
            match found.get_mut(at) {
                Some((_, _, saved)) => *saved = saved.saturating_add(padding),
                None => found.push((row, columns, padding)),
            }
        }
        // A list that is cut off leaves others like these out.
        let listed = total(message.temporaries.iter().copied(), Allocation::told_padding);
        let all = message.temporary_padding();
        let found = found.into_iter();
        found.map(|(row, columns, saved)| separate(message, row, columns, share_of_all(saved, listed, all))).collect()
    }
}

/// The size of the dimension on the lanes.
fn columns_of(row: &Allocation) -> Option<u64> {
    let array = row.shape.as_ref()?.as_array()?;
    let minor = *array.layout()?.minor_to_major().first()?;
    array.dimensions().get(minor)?.bound()
}

fn separate(message: &MessageModel<'_>, row: &Allocation, columns: u64, saved: u64) -> Recommendation {
    const LANES: &str = "each row takes 128 lanes, whatever it holds";
    let shape = row.shape.as_ref().map(ToString::to_string).unwrap_or_default();
    let place = row.at_line();
    let is_of = |words: &[&str]| {
        let same = |other: &&&Allocation| other.bounds().first() == row.bounds().first();
        let mut operations = message.temporaries.iter().filter(same).map(|other| other.operation());
        operations.any(|operation| words.iter().any(|word| operation.contains(word)))
    };
    let (sentence, code) = if columns == 1 {
        let sentence = format!(
            "Leave the dimension of size 1 out where {shape}{place} is made (no `keepdims`, no `[:, None]`), and add it \
             where it is used: the array has one number a row, and {LANES}"
        );
        (sentence, None)
    } else if is_of(&["one_hot", "OneHot", "iota"]) {
        let sentence = format!(
            "Leave the one-hot array out (`one_hot`, a comparison with `iota`): {shape}{place} has {columns} numbers a row, and \
             {LANES}; pick with `jnp.take_along_axis`, or compare where the result is used"
        );
        (sentence, Some("picked = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]".to_owned()))
    } else if is_of(&["gather", "take"]) {
        let sentence = format!(
            "Gather each column separately, and keep the columns separate from there on: {shape}{place} comes from a \
             gather of rows of {columns}, and {LANES}; splitting what was gathered frees nothing"
        );
        (sentence, Some(gather_columns("table")))
    } else if is_of(&["scatter"]) {
        let sentence = format!(
            "Scatter each column separately: {shape}{place} goes through a scatter of rows of {columns}, and {LANES}"
        );
        (sentence, Some(SCATTER_COLUMNS.to_owned()))
    } else if is_of(&["conv"]) {
        let sentence = format!(
            "Fold neighbouring positions into the channels before the convolution, or work through it in parts: \
             {shape}{place} is of a convolution over {columns} channels, and {LANES}"
        );
        (sentence, None)
    } else {
        let sentence = format!(
            "Make {columns} arrays, one for each column, where {shape}{place} is made, and keep them separate from there \
             on: it has rows of {columns}, and {LANES}; another layout requested inside the program is undone"
        );
        (sentence, None)
    };
    let found =
        Recommendation::new(Change::Split, Target::Upstream, sentence).saving(Saving::AtMost(saved)).about(shape);
    match code {
        Some(code) => message.with_jax(found, NUMPY, code),
        None => found,
    }
}
