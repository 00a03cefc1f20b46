//! Reading HLO text, against jaxlib's own parser and a copy of the same bytes.

use crate::{
    measure::{Contender, Effort, median, medians},
    report::Report,
    rivals::Rivals,
};
use anyhow::Context;
use std::{fs, hint::black_box, time::Duration};
use tilewise_hlo::Module;

/// The real TPU program that large inputs are made of.
const PROGRAM: &str = include_str!("../../examples/gnn_large.v5e.hlo");

pub(crate) fn run(effort: &Effort, rivals: &Rivals, report: &mut Report) -> anyhow::Result<()> {
    let (rounds, megabytes) = (effort.rounds, if effort.quick { 4 } else { 100 });
    let mut rows = Vec::new();
    let mut size = 1;
    while size <= megabytes {
        let text = program_of(size * 1_000_000)?;
        let mut copy = vec![0u8; text.len()];
        // A module takes ownership of its text: each round has a copy, made beforehand. One more is for the warm-up.
        let owned = || std::iter::repeat_n(text.clone(), rounds + 1).collect::<Vec<String>>();
        let (mut to_read, mut to_audit) = (owned(), owned());
        let mut contenders: [Contender<'_>; 3] = [
            Box::new(|| _ = black_box(to_read.pop().map(Module::parse))),
            Box::new(|| {
                let module = to_audit.pop().map(Module::parse);
                black_box(module.map(|module| module.map(|module| tilewise_audit::audit(&module))));
            }),
            Box::new(|| black_box(&mut copy).copy_from_slice(black_box(text.as_bytes()))),
        ];
        let times = medians(rounds, &mut contenders);
        drop(contenders);
        let file = std::env::temp_dir().join(format!("tilewise-bench-{}.hlo", std::process::id()));
        fs::write(&file, &text)?;
        let request = format!("hlo\t{}", file.to_str().context("a path that is text")?);
        // XLA takes seconds, not milliseconds: three rounds are enough.
        let jaxlib: Vec<Duration> = (0..3).map(|_| rivals.time(&request)).collect::<Result<_, _>>()?;
        fs::remove_file(&file)?;
        let jaxlib = median(jaxlib);
        let speed = |time: Duration| format!("{:.0} MB/s", text.len() as f64 / 1e6 / time.as_secs_f64());
        rows.push(vec![
            format!("{:.1} MB", text.len() as f64 / 1e6),
            speed(times[0]),
            speed(times[1]),
            speed(jaxlib),
            format!("{:.0}×", jaxlib.as_secs_f64() / times[0].as_secs_f64()),
            speed(times[2]),
        ]);
        size *= 10;
    }
    let header = ["text", "read", "read and audit", "jaxlib's parser", "jaxlib ÷ read", "copy"];
    let words = "A real TPU program, with its computations repeated under new names until the text is this long. Reading \
                 takes ownership of the text; freeing it is included.";
    report.table(words, &header, &rows);
    Ok(())
}

/// The program with its computations repeated under new names, until it is about that long.
fn program_of(bytes: usize) -> anyhow::Result<String> {
    let start = PROGRAM.find("\n\n%").context("the program has computations")?;
    let (header, computations) = PROGRAM.split_at(start);
    let mut text = header.to_owned();
    let mut copy = 0;
    while text.len() + computations.len() < bytes {
        let renamed = computations.replace('%', &format!("%c{copy}."));
        text.push_str(&renamed.replace("ENTRY ", ""));
        copy += 1;
    }
    text.push_str(computations);
    Ok(text)
}
