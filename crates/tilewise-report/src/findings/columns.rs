//! Arguments of a few columns, padded in the order that is the default.

use super::{
    Words,
    code::{JAX, NUMPY, Variable, unstack_columns},
    words::{list, named},
};
use tilewise_audit::{
    Recommendation,
    recommendation::{
        Target,
        finding::{ColumnsWay, PaddedColumns},
    },
};

/// A condition on the program behind the interface.
const POSSIBLE: &str = ", if the program can keep them separate";

pub(super) fn words(finding: &PaddedColumns, about: &Recommendation) -> Words {
    let (said, name) = named(&finding.name);
    let others = match finding.others {
        0 => String::new(),
        1 => "; the same for the other array of this shape that crosses the interface".to_owned(),
        count => format!("; the same for the {count} others of this shape that cross the interface"),
    };
    let (pass, inside) = match (about.target, finding.is_known) {
        (Target::Result, _) => ("Return", POSSIBLE),
        (_, false) => ("Pass", POSSIBLE),
        (_, true) => ("Pass", ", and keep them separate inside"),
    };
    match &finding.way {
        ColumnsWay::Flat { elements, element_type } => Words::new(format!(
            "Keep {said} flat, as [{elements}], between calls and inside: only elementwise operations read it{others}"
        ))
        .task(format!("Keep {said} flat, as [{elements}]"))
        .jax(about, JAX, flat(&name, &format!("{element_type}[{elements}]"))),
        ColumnsWay::Apart { columns, rows } => Words::new(format!(
            "{pass} {said} as {columns} arrays of [{}], one for each column{inside}{others}",
            list(rows)
        ))
        .task(format!("{pass} {said} as {columns} arrays, one for each column"))
        .jax(about, NUMPY, unstack_columns(&name, *columns)),
        _ => Words::new(""),
    }
}

fn flat(name: &str, shape: &str) -> String {
    let name = Variable::of(name).name;
    format!("{name} = {name}.reshape(-1)  # {shape}")
}
