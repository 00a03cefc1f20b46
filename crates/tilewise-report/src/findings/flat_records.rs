//! Records of a few numbers each, in one flat array.

use super::{
    Words,
    code::{NUMPY, Variable},
};
use tilewise_audit::{Recommendation, recommendation::finding::FlatRecords};

pub(super) fn words(finding: &FlatRecords, about: &Recommendation) -> Words {
    let FlatRecords { argument, records, columns, .. } = finding;
    let sentence = format!(
        "Pass `{argument}` as {columns} arrays of [{records}], one for each column, keep them separate inside, and return such \
         arrays: reshaped to [{records},{columns}], each row takes 128 lanes"
    );
    let name = Variable::of(argument).name;
    let code =
        format!("{name} = [{name}.reshape(-1)[column::{columns}] for column in range({columns})]  # {columns} arrays");
    let task = format!("Pass `{argument}` as {columns} arrays, one for each column");
    Words::new(sentence).task(task).jax(about, NUMPY, code)
}
