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
        match select(path) {
            Ok(found) => inputs.extend(found),
            Err(failure) => inputs.push(Err((path.to_string_lossy().into_owned(), failure.in_file(path)))),
        }
    }
    inputs
}

/// The final programs in a folder and the folders in it, and files that can't be read: each may be one. Says on standard
/// error what was taken and what was left.
fn select(folder: &Path) -> Result<Vec<InputResult>, Failure> {
    let (mut files, mut kinds, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    let all = files_in(folder).map_err(|error| Failure::new("io", format!("can't be read: {error}")))?;
    for path in all {
        let name = path.to_string_lossy().into_owned();
        match tilewise_hlo::read_head(&path, HEAD) {
            Ok(head) => {
                kinds.push((name, FileKind::of(&head)));
                files.push(path);
            }
            Err(error) => {
                let failure = Failure::new("io", format!("can't be read: {error}")).in_file(&path);
                unreadable.push(Err((name, failure)));
            }
        }
    }
    let Selection { programs, left, .. } = dump::select(&kinds);
    if programs.is_empty() && unreadable.is_empty() {
        let message = "the folder holds no program: no HLO text, proto or buffer assignment";
        let help = "XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" writes the programs that it compiles to DIR";
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
    let left =
        left.into_iter().chain([("plans of other programs", of_others)]).filter(|(_, count)| *count > 0).collect();
    report(folder, &taken, &left);
    Ok(taken.into_iter().map(Ok).chain(unreadable).collect())
}

/// The first of these files that has the compiler's plan of a program.
fn plan_of<'a>(program: &Path, plans: impl Iterator<Item = &'a PathBuf>) -> Option<&'a PathBuf> {
    let mut plans = plans.peekable();
    plans.peek()?;
    let module = Module::parse(programs::read(program).ok()?.text).ok()?;
    let read = |path: &PathBuf| programs::read_buffer_assignment(path).ok().flatten();
    plans.find(|path| read(path).is_some_and(|plan| dump::is_plan_of(&plan, &module)))
}

/// Says what was taken of a folder, and what was left.
fn report(folder: &Path, taken: &[Input], left: &BTreeMap<&str, usize>) {
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
