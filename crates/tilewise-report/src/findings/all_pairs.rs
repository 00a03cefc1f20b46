//! A matrix that has a number for each two rows of the input.

use super::{
    Words,
    parted::either,
    words::{at_line, bounds_of},
};
use tilewise_audit::{Recommendation, recommendation::finding::AllPairs};

pub(super) fn words(finding: &AllPairs, about: &Recommendation) -> Words {
    let AllPairs { rows, blocks, has_gradient, is_read_in_loop, .. } = finding;
    let (behind, [open, close]) =
        if *has_gradient { (", each behind `jax.checkpoint`", ["jax.checkpoint(", ")"]) } else { ("", [""; 2]) };
    let mut or_samples = String::new();
    let (row, why, code) = if about.scores.is_some() {
        or_samples = format!(
            "\n# or a sample at a time, by the function that you have: y = jax.lax.map({open}lambda x: attention(x[None])[0]{close}, xs)"
        );
        let code = format!(
            "# of_query(q): the attention of one query to all keys and values, with its mask
y = jax.lax.map({open}of_query{close}, queries"
        );
        ("queries", "it has a score for each two positions, and a query's softmax needs no other query's", code)
    } else {
        let why = "it has a number for each two rows of the input, and what is made of its rows, such as their sums, needs \
                   one block at a time";
        let lines = match &about.edited {
            Some(lines) if !lines.more.is_empty() => "what these lines".to_owned(),
            _ => "what your lines".to_owned(),
        };
        let code = if *is_read_in_loop {
            format!(
                "# row(x): the matrix's row of one x; in the loop, in place of matrix @ v:
product = lambda v: jax.lax.map({open}lambda x: row(x) @ v{close}, xs"
            )
        } else {
            format!(
                "# of_row(x): {lines} make of the row of one x, such as its sum
sums = jax.lax.map({open}of_row{close}, xs"
            )
        };
        ("rows", why, code)
    };
    let words = Words::new(format!(
        "Compute [{}]{} in blocks of {row}{behind}: {why}; {blocks} blocks free this much",
        bounds_of(about),
        at_line(about),
    ))
    .task(format!("Compute it in {blocks} blocks of {row}, one after another"));
    let sketch = format!("{code}, batch_size={}){or_samples}", rows.div_ceil(*blocks));
    let words = either(words, about, None, Some(sketch));
    // A solver's product with it, for example.
    match is_read_in_loop {
        true => words
            .caveat("a loop reads it: each turn then makes all blocks again, which takes as long as making the matrix"),
        false => words,
    }
}
