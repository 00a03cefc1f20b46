//! Changes that would free memory of programs that are loaded at once.

use tilewise_audit::{Alternative, SetChange, Together};

/// Memory of a call, of several programs.
pub(crate) const OF_LARGEST_CALL: &str = "inputs and new results of the largest call";

/// The change as a sentence without a full stop.
pub(crate) fn set_change(option: &Alternative, together: &Together) -> String {
    let program = option.change.program().and_then(|number| together.programs.get(number));
    let program = program.map_or("", |program| &*program.name);
    match option.change {
        SetChange::Donate(_) => format!(
            "Donate the arrays that `{program}` returns again: its results then take their place (`donate_argnums`)"
        ),
        SetChange::Drop(_) => format!("Load the set without `{program}`"),
        SetChange::Narrow => {
            "Keep pages as int8, packed as the compiler lays them out; scales are not counted".to_owned()
        }
        SetChange::Dense => "Lay pages out without padding: the two minor dimensions a multiple of the tile".to_owned(),
        _ => option.change.as_str().to_owned(),
    }
}
