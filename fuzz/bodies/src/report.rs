//! Reports of programs, in every format.

use std::hint::black_box;
use tilewise::tpu::Generation;
use tilewise_audit::{Audit, Content, Machine};
use tilewise_report::{
    AuditOutput, Csv, Exporter, Github, Html, Json, Markdown, MemoryViz, ProgramLines, Sarif, Terminal, Text, Trace,
};

/// The limit of the programs: less than most found ones take.
const LIMIT: u64 = 1 << 20;

/// A file of programs: each is reported in every format, and JSON formats give JSON.
pub fn report_formats(data: &[u8]) {
    for content in Content::read(data.to_vec()) {
        let Ok(Content::Program(program)) = content else { continue };
        let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(LIMIT).source("m.hlo").run();
        let bounds = report.memory_bounds;
        for space in &report.memory_spaces {
            let peak = space.peak.as_ref().filter(|_| space.memory_space == 0);
            assert!(peak.is_none_or(|peak| peak.live_bytes <= bounds.at_most_bytes || bounds.fits(u64::MAX).is_none()));
        }
        let output = AuditOutput::new(report);
        let terminal = Terminal::plain(80);
        said(&mut Text(terminal), &output);
        said(&mut ProgramLines::new(&terminal, ["m.hlo"]), &output);
        for json in [said(&mut Json, &output), said(&mut Trace, &output), said(&mut Sarif::default(), &output)] {
            let json = json.unwrap_or_else(|| b"null".to_vec());
            assert!(serde_json::from_slice::<serde_json::Value>(&json).is_ok());
        }
        black_box((said(&mut Csv, &output), said(&mut MemoryViz, &output)));
        for text in [said(&mut Github, &output), said(&mut Markdown, &output), said(&mut Html, &output)] {
            assert!(text.is_none_or(|text| String::from_utf8(text).is_ok()));
        }
    }
}

/// The output of a format for a program, unless the format doesn't accept it.
fn said(format: &mut dyn Exporter, output: &AuditOutput) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    format.accepts(output).ok()?;
    format.begin(&mut out).expect("a vector takes all");
    format.write(output, &mut out).expect("a vector takes all");
    format.end(&mut out).expect("a vector takes all");
    Some(out)
}
