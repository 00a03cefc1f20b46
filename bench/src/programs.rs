//! Audits of real programs, part by part.

use crate::{
    hlo::memory_of_audit,
    measure::{Contender, Effort, medians},
    report::Report,
};
use anyhow::Context;
use std::{
    cmp::Reverse,
    fs,
    hint::black_box,
    path::{Path, PathBuf},
};
use tilewise_audit::{Audit, Program};
use tilewise_hlo::Module;
use tilewise_memory::{MemoryPlan, PlanOptions};
use tilewise_report::{AuditOutput, WriteText};

/// Number of programs, the largest first.
const MOST: usize = 10;

/// Folders of programs, of the repository.
const FOLDERS: [&str; 4] = ["bench/programs", "examples", "examples/server", "examples/machines"];

pub(crate) fn run(effort: &Effort, report: &mut Report) -> anyhow::Result<()> {
    let most = if effort.quick { 2 } else { MOST };
    let rows: Vec<Vec<String>> =
        largest()?.into_iter().take(most).map(|(file, text)| row(effort, &file, &text)).collect::<Result<_, _>>()?;
    let header = ["program", "text", "read", "… and plan", "… and audit", "… and advice and words", "memory ÷ text"];
    let words = "The largest programs of the repository, each as a compiler printed it. A text is read, its memory planned, \
                 audited (each buffer, its owner and its padding), advised on, and written as `tilewise audit` writes it. \
                 Its memory is the peak of a process that reads and audits it once.";
    report.table(words, &header, &rows);
    Ok(())
}

/// The programs with their texts, the largest first.
fn largest() -> anyhow::Result<Vec<(PathBuf, String)>> {
    let mut all = Vec::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(folder).with_context(|| format!("no folder {folder}"))? {
            let path = entry?.path();
            let name = path.to_string_lossy();
            if name.ends_with(".hlo") || name.ends_with(".hlo.gz") {
                let text = tilewise_hlo::read(&path)?.source().to_owned();
                all.push((path, text));
            }
        }
    }
    all.sort_by_key(|(path, text)| (Reverse(text.len()), path.clone()));
    Ok(all)
}

fn row(effort: &Effort, file: &Path, text: &str) -> anyhow::Result<Vec<String>> {
    let module = Module::parse(text)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let named = tilewise_audit::machine_in_name(&name);
    let machine = named.unwrap_or_else(|| tilewise_audit::audit(&module).machine);
    // A module takes ownership of its text: each round has a copy, made beforehand. One more is for the warm-up.
    let owned = || std::iter::repeat_n(text.to_owned(), effort.rounds + 1).collect::<Vec<String>>();
    let (mut to_read, mut to_plan, mut to_audit, mut to_advise) = (owned(), owned(), owned(), owned());
    let options = PlanOptions::new(machine);
    let mut contenders: [Contender<'_>; 4] = [
        Box::new(|| _ = black_box(to_read.pop().map(Module::parse))),
        Box::new(|| {
            let module = to_plan.pop().and_then(|text| Module::parse(text).ok());
            black_box(module.map(|module| MemoryPlan::new(&module, &options)));
        }),
        Box::new(|| {
            let program = to_audit.pop().and_then(|text| Program::parse(text).ok());
            black_box(program.map(|program| Audit::new(&program).machine(machine).run()));
        }),
        Box::new(|| {
            let program = to_advise.pop().and_then(|text| Program::parse(text).ok());
            black_box(
                program.map(|program| AuditOutput::new(Audit::new(&program).machine(machine).run()).to_text(100)),
            );
        }),
    ];
    let times = medians(effort.rounds, &mut contenders);
    drop(contenders);
    let megabytes = text.len() as f64 / 1e6;
    let mut row = vec![format!("`{}`", name.trim_end_matches(".gz")), format!("{megabytes:.2} MB")];
    row.extend(times.into_iter().map(|time| format!("{:.0} MB/s", megabytes / time.as_secs_f64())));
    row.push(format!("{:.1}×", memory_of_audit(file)? as f64 / text.len() as f64));
    Ok(row)
}
