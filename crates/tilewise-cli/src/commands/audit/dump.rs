//! Folders: which files hold final programs, and which the compiler's plans of them.
//!
//! What a file is, its content says. XLA's dumps hold a program many times over, before and after passes, as text and
//! as proto; which of those belong together, and which is the last, only their names say
//! (`module_0007.jit_f.….after_optimizations.txt`).

use super::programs::{self, Input};
use crate::failure::Failure;
use std::{
    collections::{BTreeMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
};
use tilewise_hlo::{BufferAssignment, Module};

/// Bytes of a file that tell what it is: a header with the layouts of thousands of arguments may be this long.
const HEAD: u64 = 1 << 20;

/// The stages of a dump at which a program is final, the best first.
const FINAL: [&str; 4] = [
    "after_optimizations",
    "after_codegen",
    "after_optimizations_after_buffer_assignment",
    "after_optimizations_before_buffer_assignment",
];

/// What a file holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Program,
    /// A program as a proto; whether it is one to the end, reading it shows.
    Proto,
    Assignment,
    /// Something else of a dump's, by its name for people.
    Other(&'static str),
}

/// A file of a program.
struct Member {
    path: PathBuf,
    stage: String,
    kind: Kind,
}

/// The files of one program: texts and protos of it, and plans.
#[derive(Default)]
struct Family {
    programs: Vec<Member>,
    assignments: Vec<Member>,
}

/// The files in what was asked for: of a folder, its final programs. What was taken and left of it is said.
pub(super) fn inputs(paths: &[PathBuf]) -> Vec<Result<Input, (String, Failure)>> {
    let mut inputs = Vec::new();
    for path in paths {
        if !path.is_dir() {
            inputs.push(Ok(Input { path: path.clone(), buffer_assignment: None }));
            continue;
        }
        match select(path) {
            Ok(found) => inputs.extend(found.into_iter().map(Ok)),
            Err(failure) => inputs.push(Err((path.to_string_lossy().into_owned(), failure.in_file(path)))),
        }
    }
    inputs
}

/// The final programs in a folder and the folders in it. Says on standard error what was taken and what was left.
fn select(folder: &Path) -> Result<Vec<Input>, Failure> {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    let mut leave = |what, count| {
        if count > 0 {
            *left.entry(what).or_default() += count;
        }
    };
    let mut families: BTreeMap<(PathBuf, String), Family> = BTreeMap::new();
    let files = files(folder).map_err(|error| Failure::new("io", format!("can't be read: {error}")))?;
    for path in files {
        let kind = kind(&path).unwrap_or(Kind::Other("unreadable files"));
        let (family, stage) = family_and_stage(&path);
        let key = (path.parent().unwrap_or(folder).to_owned(), family);
        match kind {
            Kind::Program | Kind::Proto => families.entry(key).or_default().programs.push(Member { path, stage, kind }),
            Kind::Assignment => families.entry(key).or_default().assignments.push(Member { path, stage, kind }),
            Kind::Other(what) => leave(what, 1),
        }
    }
    let mut taken = Vec::new();
    for Family { mut programs, mut assignments } in families.into_values() {
        let of_other = "plans of other programs";
        // The best stage first; of one stage the text before its proto, which lacks the number of partitions.
        programs.sort_by_cached_key(|member| (rank(&member.stage), member.kind, member.path.clone()));
        if programs.is_empty() {
            taken.extend(assignments.drain(..).map(|member| Input { path: member.path, buffer_assignment: None }));
            continue;
        }
        let Member { path, stage, .. } = programs.remove(0);
        let (same, earlier): (Vec<_>, Vec<_>) = programs.into_iter().partition(|other| other.stage == stage);
        leave("the same programs again", same.len());
        leave("other stages of programs", earlier.len());
        assignments.sort_by_key(|member| member.stage != stage);
        let plans = assignments.iter().chain(same.iter().filter(|other| other.kind == Kind::Proto));
        let buffer_assignment = plans.map(|member| &member.path).find(|assignment| is_of(assignment, &path)).cloned();
        let unused = assignments.iter().filter(|member| Some(&member.path) != buffer_assignment.as_ref()).count();
        leave(of_other, unused);
        taken.push(Input { path, buffer_assignment });
    }
    if taken.is_empty() {
        let message = "the folder holds no program: no HLO text, proto or buffer assignment";
        let help = "XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" writes the programs that it compiles to DIR";
        return Err(Failure::new("no_program", message).with_help(help));
    }
    report(folder, &taken, &left);
    Ok(taken)
}

/// Says what was taken of a folder, and what was left.
fn report(folder: &Path, taken: &[Input], left: &BTreeMap<&str, usize>) {
    let programs = if taken.len() == 1 { "program" } else { "programs" };
    anstream::eprintln!("{}: {} {programs}", folder.display(), taken.len());
    for Input { path, buffer_assignment } in taken {
        let name = |path: &Path| path.strip_prefix(folder).unwrap_or(path).display().to_string();
        match buffer_assignment {
            Some(assignment) => anstream::eprintln!("  {}, with the plan in {}", name(path), name(assignment)),
            None => anstream::eprintln!("  {}", name(path)),
        }
    }
    if !left.is_empty() {
        let left: Vec<String> = left.iter().map(|(what, count)| format!("{what} ({count})")).collect();
        anstream::eprintln!("  left: {}", left.join(", "));
    }
}

/// The files in a folder and the folders in it, sorted. Links to folders are not followed.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => folders.push(entry.path()),
                _ if entry.path().is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

/// What a file holds, from its first bytes.
fn kind(path: &Path) -> io::Result<Kind> {
    let head = tilewise_hlo::read_head(path, HEAD)?;
    if tilewise_hlo::is_proto(&head) {
        return Ok(Kind::Proto);
    }
    let text = String::from_utf8_lossy(&head);
    Ok(match text.trim_start_matches('\u{feff}').trim_start() {
        text if BufferAssignment::is_text(text) => Kind::Assignment,
        text if text.starts_with("HloLiveRange") => Kind::Other("live ranges"),
        text if text.contains("used_by_n_values") => Kind::Other("memory-usage reports"),
        text if text.starts_with("Total bytes used:") => Kind::Other("values of assignments"),
        text if text.lines().any(|line| line.starts_with("HloModule ")) => Kind::Program,
        _ => Kind::Other("other files"),
    })
}

/// What the files of one program have in common in their names, and the stage that the rest names.
fn family_and_stage(path: &Path) -> (String, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut stem = &*name;
    while let Some(shorter) = [".gz", ".pb", ".hlo", ".txt"].iter().find_map(|end| stem.strip_suffix(end)) {
        stem = shorter;
    }
    let stem = stem.strip_suffix("-buffer-assignment").unwrap_or(stem);
    // XLA's own names: `module_`, a number, the module's name, what compiled it, the stage.
    let parts: Vec<&str> = stem.split('.').collect();
    match (parts.as_slice(), parts.last()) {
        ([module, name, _, ..], Some(stage)) if module.starts_with("module_") => {
            (format!("{module}.{name}"), (*stage).to_owned())
        }
        _ => (stem.to_owned(), String::new()),
    }
}

/// How final a stage is, 0 the most. On a GPU its name says what it was compiled for: `sm_8.0_gpu_after_optimizations`.
fn rank(stage: &str) -> usize {
    let is_stage =
        |last: &str| stage.strip_suffix(last).is_some_and(|before| before.is_empty() || before.ends_with('_'));
    FINAL.iter().position(|last| is_stage(last)).unwrap_or(if stage.starts_with("before") { 9 } else { FINAL.len() })
}

/// Whether a buffer assignment places the values of a program: all it names are in it.
fn is_of(assignment: &Path, program: &Path) -> bool {
    let Ok(Some(assignment)) = programs::read_buffer_assignment(assignment) else { return false };
    let Ok(Ok(module)) = programs::read(program).map(|document| Module::parse(document.text)) else { return false };
    let names: HashSet<&str> = module.instructions().map(|instruction| instruction.name()).collect();
    let mut values = assignment.allocations().iter().flat_map(|allocation| &allocation.values);
    values.all(|value| names.contains(value.instruction.as_str()))
}
