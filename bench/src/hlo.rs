//! Reading HLO text, against jaxlib's own parser and a copy of the same bytes.

use crate::{
    measure::{Contender, Effort, median, medians},
    report::Report,
    rivals::Rivals,
};
use anyhow::Context;
use std::{fs, hint::black_box, path::Path, process::Command, time::Duration};
use tilewise::tpu::Generation;
use tilewise_hlo::{Module, Opcode};
use tilewise_memory::{MemoryPlan, PlanOptions};

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
        let (mut to_read, mut to_plan, mut to_audit) = (owned(), owned(), owned());
        let options = PlanOptions::new(Generation::V5e);
        let mut contenders: [Contender<'_>; 4] = [
            Box::new(|| _ = black_box(to_read.pop().map(Module::parse))),
            Box::new(|| {
                let module = to_plan.pop().map(Module::parse);
                black_box(module.map(|module| module.map(|module| MemoryPlan::new(&module, &options))));
            }),
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
        let memory = memory_of_audit(&file)?;
        fs::remove_file(&file)?;
        let jaxlib = median(jaxlib);
        let speed = |time: Duration| format!("{:.0} MB/s", text.len() as f64 / 1e6 / time.as_secs_f64());
        rows.push(vec![
            format!("{:.1} MB", text.len() as f64 / 1e6),
            speed(times[0]),
            speed(times[1]),
            speed(times[2]),
            format!("{:.1}×", memory as f64 / text.len() as f64),
            speed(jaxlib),
            format!("{:.0}×", jaxlib.as_secs_f64() / times[0].as_secs_f64()),
            speed(times[3]),
        ]);
        size *= 10;
    }
    let header =
        ["text", "read", "… and plan", "… and audit", "memory ÷ text", "jaxlib's parser", "jaxlib ÷ read", "copy"];
    let words = "A real TPU program, with all that it runs repeated under new names until the text is this long. Reading \
                 takes ownership of the text; freeing it is included. An audit has the plan, every buffer and every \
                 copy; its memory is the peak of a process that reads and audits the text once.";
    report.table(words, &header, &rows);
    Ok(())
}

/// Reads and audits a file, and prints the most memory that this process ever held, in bytes.
pub(crate) fn audit_once(file: &Path) -> anyhow::Result<()> {
    let report = tilewise_audit::audit(&tilewise_hlo::read(file)?);
    let status = fs::read_to_string("/proc/self/status")?;
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("a line of VmHWM")?;
    let kibibytes: u64 = most.trim().trim_end_matches("kB").trim().parse()?;
    black_box(report);
    println!("{}", kibibytes * 1024);
    Ok(())
}

/// [`audit_once`] in a process of its own.
pub(crate) fn memory_of_audit(file: &Path) -> anyhow::Result<u64> {
    let done = Command::new(std::env::current_exe()?).arg("--audit-once").arg(file).output()?;
    anyhow::ensure!(done.status.success(), "auditing once failed: {}", String::from_utf8_lossy(&done.stderr));
    Ok(String::from_utf8(done.stdout)?.trim().parse()?)
}

/// The program with everything that it runs repeated under new names, until the text is about that long.
///
/// The copies read the same arguments, one after the other, and only the last makes the result.
fn program_of(bytes: usize) -> anyhow::Result<String> {
    let module = Module::parse(PROGRAM)?;
    let entry = module.entry().context("the program has an entry")?;
    let entry_at = PROGRAM.find("\nENTRY ").context("the program has an entry")? + 1;
    let start = PROGRAM.find("\n\n%").context("the program has computations")?;
    let (header, called, ran) = (&PROGRAM[..start], &PROGRAM[start..entry_at], &PROGRAM[entry_at..]);
    let (signature, body) = ran.split_once('\n').context("the entry has instructions")?;
    let arguments: Vec<&str> =
        entry.instructions().filter(|i| i.opcode() == Opcode::Parameter).map(|argument| argument.name()).collect();
    let is_argument = |line: &&str| line.contains(" parameter(");
    let mut calls = String::new();
    let mut steps: String = body.lines().filter(is_argument).map(|line| format!("{line}\n")).collect();
    let once: String = body.lines().filter(|line| !is_argument(line) && line.starts_with(' ')).fold(
        String::new(),
        |mut once, line| {
            once.push_str(line);
            once.push('\n');
            once
        },
    );
    let mut copy = 0;
    while header.len() + calls.len() + steps.len() < bytes {
        calls.push_str(&renamed(called, copy, &[]));
        steps.push_str(&renamed(&once, copy, &arguments).replace("  ROOT ", "  "));
        copy += 1;
    }
    Ok(format!("{header}{calls}{called}{signature}\n{steps}{once}}}\n"))
}

/// The text with a number in front of every name but these.
fn renamed(text: &str, copy: usize, kept: &[&str]) -> String {
    let mut parts = text.split('%');
    let mut renamed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !(c.is_ascii_alphanumeric() || ".-_".contains(c))).unwrap_or(part.len());
        renamed.push('%');
        if !kept.contains(&&part[..end]) {
            renamed.push_str(&format!("c{copy}."));
        }
        renamed.push_str(part);
    }
    renamed
}
