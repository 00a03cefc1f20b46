//! The line of JSON that an input gets.

use super::AsJson;
use serde::Serialize;
use tilewise_audit::Failure;

/// The JSON object of one input: `schema`, the echoed `input`, and the fields of its result or its `error`. Every
/// verb of the command line prints such lines with `--format json`; `docs/json.md` lists the fields.
///
/// ```
/// use tilewise_audit::{Audit, Program};
/// use tilewise_report::{AsJson, AuditOutput, JsonLine};
///
/// let program = Program::parse("x = f32[256]{0:T(256)} parameter(0)")?;
/// let output = AuditOutput::new(Audit::new(&program).source("add.hlo").run());
/// let view = output.view();
/// let line = JsonLine::of("add.hlo", AsJson(&view));
/// assert!(serde_json::to_string(&line)?.starts_with(r#"{"schema":1,"input":"add.hlo","module":"","#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct JsonLine<'a, T> {
    schema: u8,
    input: &'a str,
    #[serde(flatten)]
    body: Body<'a, T>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Body<'a, T> {
    Done(T),
    Failed { error: AsJson<'a, Failure> },
    Refused { error: AsJson<'a, Failure>, part: T },
}

impl<'a, T> JsonLine<'a, T> {
    /// The line of an input with this result.
    #[must_use]
    pub fn of(input: &'a str, body: T) -> Self {
        Self { schema: 1, input, body: Body::Done(body) }
    }
}

impl<'a, T> JsonLine<'a, &'a T> {
    /// The line of an input and its result.
    #[must_use]
    pub fn of_result(input: &'a str, result: &'a Result<T, Failure>) -> Self {
        let body = match result {
            Ok(body) => Body::Done(body),
            Err(error) => Body::Failed { error: AsJson(error) },
        };
        Self { schema: 1, input, body }
    }

    /// The line of an input that isn't of the kind that a program wants, with its meaning for people.
    #[must_use]
    pub fn refused(input: &'a str, error: &'a Failure, part: &'a T) -> Self {
        Self { schema: 1, input, body: Body::Refused { error: AsJson(error), part } }
    }
}
