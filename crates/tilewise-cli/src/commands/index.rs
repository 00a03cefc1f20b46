//! `tilewise index`: the offset of an element, or the element at an offset.

use crate::{
    cli::IndexArgs,
    input::{each_item, number, numbers, parse_shape},
    output::{Output, Status},
};
use serde::Serialize;
use std::io::{self, Write};
use tilewise::Tiled;
use tilewise_audit::{Failure, JsonLine};
use tilewise_report::style::{STRONG, listed, styled};

pub(crate) fn run(args: &IndexArgs, output: &mut Output) -> io::Result<()> {
    if args.shape == "-" {
        return each_item(std::slice::from_ref(&args.shape), |input, readable| {
            let result = readable.and_then(|()| batch_line(input));
            output.item(input, result, Located::write)
        });
    }
    let questions = args.indices.iter().cloned().chain(args.offsets.iter().map(|offset| format!("@{offset}")));
    let questions: Vec<String> = questions.collect();
    if questions.is_empty() {
        output.raise(Status::BadInput);
        let missing = Failure::new("malformed_batch_line", "no index and no offset is given")
            .with_help("write `tilewise index SHAPE 2,3` or `tilewise index SHAPE --offset 17`");
        return output.item(&args.shape, Err(missing), |_: &Located, _| Ok(()));
    }
    for question in questions {
        // Answered as a line of the batch form, so that errors point into the same text.
        let input = format!("{}\t{question}", args.shape);
        output.item(&input, batch_line(&input), Located::write)?;
    }
    Ok(())
}

/// The JSON object that `tilewise index -` answers to one line, `SHAPE<TAB>2,3` or `SHAPE<TAB>@17`.
///
/// # Errors
/// None that a line can cause: the object says what is wrong with it.
///
/// ```
/// let answer = tilewise_cli::answer_line("f32[3,5]{1,0:T(2,2)}\t2,3")?;
/// assert!(answer.contains(r#""linear_index":17"#));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn answer_line(line: &str) -> serde_json::Result<String> {
    serde_json::to_string(&JsonLine::of_result(line, &batch_line(line)))
}

/// An answer in either direction.
#[derive(Serialize)]
struct Located {
    shape: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<Vec<u64>>,
    linear_index: u64,
    /// Null in the tail padding, which is outside the physical dimensions.
    physical_index: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    padding: bool,
}

/// `SHAPE<TAB>2,3` or `SHAPE<TAB>@17`.
fn batch_line(line: &str) -> Result<Located, Failure> {
    let Some(tab) = line.find('\t').and_then(|_| line.rfind('\t')) else {
        return Err(Failure::new("malformed_batch_line", "a line must be a shape, a TAB, and an index or @offset")
            .at(0..line.len())
            .with_help("such as `f32[3,5]{1,0:T(2,2)}<TAB>2,3`, or `…<TAB>@17`"));
    };
    let shape = parse_shape(&line[..tab]).map_err(|failure| failure.within(0..tab))?;
    let tiled = Tiled::new(&shape).map_err(|error| Failure::from(error).within(0..tab))?;
    let question = tab + 1..line.len();
    let locate = || -> Result<Located, Failure> {
        let (index, linear_index) = match line[question.clone()].strip_prefix('@') {
            Some(offset) => {
                let offset = number(offset, question.start + 1)?;
                (tiled.index_of(offset)?, offset)
            }
            None => {
                let index = numbers(&line[question.clone()], question.start)?;
                let offset = tiled.offset_of(&index)?;
                (Some(index), offset)
            }
        };
        Ok(Located {
            shape: shape.to_string(),
            padding: index.is_none(),
            index,
            linear_index,
            physical_index: tiled.physical_index_of(linear_index)?,
        })
    };
    // An error without a span gets that of the whole question.
    locate().map_err(|failure| if failure.span.is_some() { failure } else { failure.at(question) })
}

impl Located {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let physical = self.physical_index.as_deref().map_or_else(|| "the tail padding".to_owned(), bracketed);
        let index = match &self.index {
            Some(index) => format!("({})", listed(index)),
            None => "padding".to_owned(),
        };
        writeln!(
            out,
            "{}  {} is at offset {}, in memory {physical}",
            self.shape,
            styled(STRONG, index),
            styled(STRONG, self.linear_index),
        )
    }
}

fn bracketed(numbers: &[u64]) -> String {
    format!("[{}]", listed(numbers))
}
