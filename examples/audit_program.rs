//! Reads an HLO program and sums its padding by source line: which lines waste the most memory.
//!
//! `cargo run -p tilewise-audit --example audit_program -- examples/gnn_large.v5e.hlo`

use std::collections::BTreeMap;
use tilewise_hlo::Error;

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "examples/gnn_large.v5e.hlo".to_owned());
    let module = tilewise_hlo::read(path)?;
    let report = tilewise_audit::audit(&module);

    let mut by_line = BTreeMap::<String, u64>::new();
    for buffer in report.buffers().filter(|buffer| buffer.memory_space == 0) {
        let line = buffer.source.as_ref().map_or("no source line".to_owned(), |s| format!("{}:{}", s.file, s.line));
        *by_line.entry(line).or_default() += buffer.sizes.padding_bytes();
    }
    let mut lines: Vec<_> = by_line.into_iter().collect();
    lines.sort_by_key(|(_, padding)| std::cmp::Reverse(*padding));
    for (line, padding) in lines {
        println!("{padding:>12} bytes of padding  {line}");
    }
    Ok(())
}
