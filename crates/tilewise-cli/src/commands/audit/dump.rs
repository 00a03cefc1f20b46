//! Folders: the files of a dump that are taken, and what is said of it.

use super::programs::{self, Input, InputResult};
use crate::output::say;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};
use tilewise_audit::Failure;
use tilewise_audit::dump::{self, FileKind, Selected, Selection};
use tilewise_hlo::Module;

/// Bytes of a file that tell what it is: a header with the layouts of thousands of arguments may be this long.
const HEAD: u64 = 1 << 20;

/// The files in what was asked for: of a folder, its final programs. What was taken and left of it is said.
pub(super) fn inputs(paths: &[PathBuf]) -> Vec<InputResult> {
    let mut inputs = Vec::new();
    for path in paths {
        if !path.is_dir() {
            inputs.push(Ok(Input { path: path.clone(), buffer_assignment: None }));
            continue;
        }
        match Dump::of(path) {
            Ok(dump) => {
                dump.report(path);
                inputs.extend(dump.taken.into_iter().map(Ok));
                inputs.extend(
                    dump.unreadable.into_iter().map(|(path, failure)| Err((path.display().to_string(), failure))),
                );
            }
            Err(failure) => inputs.push(Err((path.to_string_lossy().into_owned(), failure.in_file(path)))),
        }
    }
    inputs
}

/// The files of a folder that are audited, in their order.
pub(crate) fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let Dump { taken, unreadable, .. } = Dump::of(folder)?;
    let taken = taken.into_iter().map(|input| input.path);
    Ok(taken.chain(unreadable.into_iter().map(|(path, _)| path)).collect())
}

/// The final programs in a folder and the folders in it.
struct Dump {
    taken: Vec<Input>,
    /// Files that can't be read: each may be a program.
    unreadable: Vec<(PathBuf, Failure)>,
    /// How many files of which kind are none.
    left: BTreeMap<&'static str, usize>,
}

impl Dump {
    fn of(folder: &Path) -> Result<Self, Failure> {
        let (mut files, mut kinds, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
        let all = files_in(folder).map_err(|error| Failure::new("io", format!("can't be read: {error}")))?;
        for path in all {
            match tilewise_hlo::read_head(&path, HEAD) {
                Ok(head) => {
                    kinds.push((path.to_string_lossy().into_owned(), FileKind::of(&head)));
                    files.push(path);
                }
                Err(error) => {
                    let failure = Failure::new("io", format!("can't be read: {error}")).in_file(&path);
                    unreadable.push((path, failure));
                }
            }
        }
        let Selection { programs, left, .. } = dump::select(&kinds);
        if programs.is_empty() && unreadable.is_empty() {
            let message = "the folder holds no program: no HLO text, proto or buffer assignment";
            let help =
                "XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" writes the programs that it compiles to DIR";
            return Err(Failure::new("no_program", message).with_help(help));
        }
        let mut of_others = 0;
        let mut taken = Vec::new();
        for Selected { file, plans, .. } in programs {
            let plan = plan_of(&files[file], plans.iter().map(|&plan| &files[plan]));
            let is_left = |other: usize| kinds[other].1 == FileKind::BufferAssignment && Some(&files[other]) != plan;
            of_others += plans.iter().filter(|&&other| is_left(other)).count();
            taken.push(Input { path: files[file].clone(), buffer_assignment: plan.cloned() });
        }
        let left = left.into_iter().chain([("plans of other programs", of_others)]).filter(|(_, count)| *count > 0);
        Ok(Self { taken, unreadable, left: left.collect() })
    }

    /// Says on standard error what was taken of the folder, and what was left.
    fn report(&self, folder: &Path) {
        let Self { taken, left, .. } = self;
        let programs = if taken.len() == 1 { "program" } else { "programs" };
        say(format!("{}: {} {programs}", folder.display(), taken.len()));
        for Input { path, buffer_assignment } in taken {
            let name = |path: &Path| path.strip_prefix(folder).unwrap_or(path).display().to_string();
            match buffer_assignment {
                Some(assignment) => say(format!("  {}, with the plan in {}", name(path), name(assignment))),
                None => say(format!("  {}", name(path))),
            }
        }
        if !left.is_empty() {
            let left: Vec<String> = left.iter().map(|(what, count)| format!("{what} ({count})")).collect();
            say(format!("  left: {}", left.join(", ")));
        }
    }
}

/// The first of these files that has the compiler's plan of a program.
fn plan_of<'a>(program: &Path, plans: impl Iterator<Item = &'a PathBuf>) -> Option<&'a PathBuf> {
    let mut plans = plans.peekable();
    plans.peek()?;
    let module = Module::parse(programs::read(program).ok()?.text).ok()?;
    let read = |path: &PathBuf| programs::read_buffer_assignment(path).ok().flatten();
    plans.find(|path| read(path).is_some_and(|plan| dump::is_plan_of(&plan, &module)))
}

/// The files in a folder and the folders in it, sorted. Links to folders are not followed.
fn files_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
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
