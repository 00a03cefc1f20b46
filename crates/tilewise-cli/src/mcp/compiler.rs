//! Tools that ask the compiler, through the Python package.

use super::{Access, Answer, next};
use crate::commands::python;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, io::ErrorKind, process::Stdio};
use tilewise_audit::Failure;
use tokio::process::Command;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Search {
    /// The factory of the program, FILE.py:FUNCTION: it takes the sizes and returns the function and its arguments.
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
    /// The program as it was: FILE.py:FUNCTION, or a file of optimized HLO.
    before: String,
    /// The program as it is.
    after: String,
    /// The TPU generation to compile for, such as v5e.
    tpu: String,
}

pub(super) async fn fit(search: &Search, access: &Access) -> Answer {
    access.check_program(&search.program)?;
    let mut arguments = vec!["fit".to_owned(), format!("--tpu={}", search.tpu)];
    let named = |option: &'static str, values: &BTreeMap<String, String>| -> Vec<String> {
        values.iter().map(|(name, value)| format!("--{option}={name}={value}")).collect()
    };
    arguments.extend(named("largest", &search.largest));
    arguments.extend(named("grid", &search.grid));
    // A name that looks like an option is none.
    arguments.extend(["--".to_owned(), search.program.clone()]);
    let mut rows = lines(&arguments, access).await?;
    let errors = errors_apart(&mut rows);
    Ok(json!({
        "rows": rows,
        "errors": errors,
        "next": [next("explain", json!({ "text": "checkpoint" }), "what lets a larger batch fit")],
    }))
}

pub(super) async fn check_change(change: &Change, access: &Access) -> Answer {
    let Change { before, after, tpu } = change;
    access.check_program(before)?;
    access.check_program(after)?;
    let arguments = ["audit", &format!("--against={before}"), &format!("--tpu={tpu}"), "--", after];
    let compared = lines(&arguments.map(str::to_owned), access).await?;
    Ok(json!({ "compared": compared }))
}

/// Takes what the compiler said out of rows, and leaves the number of its first such words there: many sizes are refused in
/// the same words, but for the numbers in them.
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

/// What the package prints as JSON, a value a line. The program that it runs may have no end: it is killed when its time is
/// up, and when the client asks no longer.
async fn lines(arguments: &[String], access: &Access) -> Result<Vec<Value>, Failure> {
    let mut command = Command::from(python::command());
    let (verb, others) = arguments.split_first().map_or((None, &[][..]), |(verb, others)| (Some(verb), others));
    command.args(verb).arg("--format=json").args(others).stdin(Stdio::null()).kill_on_drop(true);
    let limit = access.compile_limit();
    let output = tokio::time::timeout(limit, command.output()).await.map_err(|_| {
        let help = "start it with a larger `--compile-limit`, or run `tilewise` on the program";
        Failure::new("too_long", format!("not done after {} seconds", limit.as_secs())).with_help(help)
    })?;
    let output = output.map_err(|error| match error.kind() {
        ErrorKind::NotFound => python::missing(&arguments[0]),
        _ => Failure::new("io", format!("can't run Python: {error}")),
    })?;
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if errors.contains("No module named tilewise") {
        return Err(python::missing(&arguments[0]));
    }
    let values: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    match values {
        Ok(values) if !values.is_empty() => Ok(values),
        _ => {
            let said = errors.trim().trim_start_matches("error: ");
            Err(Failure::new("compiler", if said.is_empty() { text.trim() } else { said }))
        }
    }
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
