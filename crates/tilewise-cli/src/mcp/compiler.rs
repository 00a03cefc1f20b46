//! Tools that ask the compiler, through the Python package.

use super::{
    Access, Answer, PRINTED, Refusal, next,
    processes::{Answered, Processes},
};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Search {
    /// The factory of the program, FILE.py:FUNCTION: it takes the sizes and returns the function and its arguments. It is run:
    /// the server must be started with --allow-code, and the file be below its folders.
    program: String,
    /// TPU generations, such as v5e, or v5e,v6e.
    tpu: String,
    /// What to find the largest of: a range for each name, such as {"batch": "1..512"}.
    largest: BTreeMap<String, String>,
    /// Variants to try: values for each name, such as {"remat": "none,full"}.
    #[serde(default)]
    grid: BTreeMap<String, String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Change {
    /// The program as it was: a file of optimized HLO, or FILE.py:FUNCTION, which is run: the server must be started with
    /// --allow-code, and the file be below its folders.
    before: String,
    /// The program as it is, likewise.
    after: String,
    /// The TPU generation to compile for, such as v5e.
    tpu: String,
}

pub(super) async fn fit(search: &Search, access: &Access, processes: &Processes) -> Answer {
    let program = access.program(&search.program)?;
    let named = |option: &'static str, values: &BTreeMap<String, String>| -> Vec<String> {
        values.iter().map(|(name, value)| format!("--{option}={name}={value}")).collect()
    };
    let mut options = vec![format!("--tpu={}", search.tpu)];
    options.extend(named("largest", &search.largest));
    options.extend(named("grid", &search.grid));
    let Answered { values: mut rows, printed } = asked("fit", options, program, access, processes).await?;
    let errors = errors_apart(&mut rows);
    Ok(with_prints(
        json!({
            "rows": rows,
            "errors": errors,
            "next": [next("explain", json!({ "text": "checkpoint" }), "what lets a larger batch fit")],
        }),
        printed,
    ))
}

pub(super) async fn check_change(change: &Change, access: &Access, processes: &Processes) -> Answer {
    let [before, after] = [&change.before, &change.after].map(|program| access.program(program));
    let options = vec![format!("--against={}", before?), format!("--tpu={}", change.tpu)];
    let Answered { values, printed } = asked("audit", options, after?, access, processes).await?;
    Ok(with_prints(json!({ "compared": values }), printed))
}

async fn asked(
    verb: &str,
    options: Vec<String>,
    program: String,
    access: &Access,
    processes: &Processes,
) -> Result<Answered, Refusal> {
    let allowed = access.allowed_modules().iter().map(|module| format!("--allow-module={module}"));
    let format = "--format=json".to_owned();
    // Behind `--` a name that looks like an option isn't one.
    let arguments =
        [verb.to_owned(), format].into_iter().chain(allowed).chain(options).chain(["--".to_owned(), program]);
    processes.answer(&arguments.collect::<Vec<_>>(), access).await
}

/// Adds the program's prints to an answer, in a field of their own.
pub(super) fn with_prints(mut answer: Value, printed: String) -> Value {
    if !printed.is_empty() {
        answer[PRINTED] = printed.into();
    }
    answer
}

/// Moves the rows' errors into a list, and leaves an error's index in its row. Errors of one status whose first lines
/// differ in digits only share an index: many sizes are refused in the same words.
fn errors_apart(rows: &mut [Value]) -> Vec<Value> {
    let mut errors: Vec<(String, Value)> = Vec::new();
    for row in rows {
        let Some(said) = row["error"].as_str() else { continue };
        let first_line = said.trim().lines().next().unwrap_or_default();
        let words: String = first_line.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        let words = format!("{} {words}", row["status"]);
        let known = errors.iter().position(|(other, _)| *other == words);
        let number = known.unwrap_or_else(|| {
            errors.push((words, said.into()));
            errors.len() - 1
        });
        row["error"] = number.into();
    }
    errors.into_iter().map(|(_, said)| said).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_said_once() {
        let row = |status: &str, error: Value| json!({ "status": status, "error": error });
        let refused =
            |used: &str| row("refused", format!("Ran out of memory. Used {used}G of 15G hbm.\n{used}").into());
        let mut rows = [row("fits", Value::Null), refused("16.1"), refused("31.25"), row("crashed", "killed".into())];
        assert_eq!(errors_apart(&mut rows), ["Ran out of memory. Used 16.1G of 15G hbm.\n16.1", "killed"]);
        assert_eq!(rows.map(|row| row["error"].clone()), [Value::Null, 0.into(), 0.into(), 1.into()]);
    }
}
