//! Folders: choosing and reporting the files of a dump.

use super::programs::{self, Input, InputResult, Limits};
use crate::output::say;
use std::{
    collections::BTreeMap,
    fs, io, iter,
    path::{Path, PathBuf},
};
use tilewise_audit::Failure;
use tilewise_audit::dump::{self, FileKind, Selected, Selection};
use tilewise_hlo::Module;

/// Bytes that are read to find a file's kind: a header with the layouts of thousands of arguments may be this long.
const HEAD: u64 = 1 << 20;

/// Bytes that are read to recognise a profile.
const PROFILE_HEAD: u64 = 1 << 10;

/// The programs at `paths`: the final ones of a folder, and all of a profile. Prints the files taken and left of a
/// folder. With the name of a `module`, only profiles' programs of that name.
pub(super) fn inputs(paths: &[PathBuf], module: Option<&str>, limits: &Limits) -> Vec<InputResult> {
    let mut inputs = Vec::new();
    for path in paths {
        let found = if path.is_dir() { in_folder(path, module, limits) } else { in_file(path, module, limits) };
        match found {
            Ok(found) => inputs.extend(found),
            Err(failure) => inputs.push(Err((path.to_string_lossy().into_owned(), failure.in_file(path)))),
        }
    }
    inputs
}

fn in_folder(folder: &Path, module: Option<&str>, limits: &Limits) -> Result<Vec<InputResult>, Failure> {
    let dump = Dump::of(folder, module, limits)?;
    dump.report(folder);
    let unreadable = dump.unreadable.into_iter().map(|(path, failure)| Err((path.display().to_string(), failure)));
    Ok(dump.taken.into_iter().map(Ok).chain(unreadable).collect())
}

/// The file, or the programs in it if it is a profile.
fn in_file(path: &Path, module: Option<&str>, limits: &Limits) -> Result<Vec<InputResult>, Failure> {
    // Bytes of a pipe can be read only once.
    let head = path.is_file().then(|| tilewise_hlo::read_head(path, PROFILE_HEAD).ok()).flatten();
    if head.is_some_and(|head| tilewise_hlo::is_profile(&head)) {
        return Ok(Input::of_profile(path, module, limits)?.into_iter().map(Ok).collect());
    }
    if module.is_some() {
        return Err(Failure::new("usage", "`--module` names a program of a profile, and this is none"));
    }
    Ok(vec![Ok(Input::of_file(path.to_owned(), limits))])
}

/// The audited files of a folder, in their order, except profiles; then the unreadable ones.
pub(crate) fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let Dump { taken, unreadable, .. } = Dump::of(folder, None, &Limits::NONE)?;
    let taken = taken.into_iter().filter(|input| input.profiled.is_none()).map(|input| input.path);
    Ok(taken.chain(unreadable.into_iter().map(|(path, _)| path)).collect())
}

/// The final programs in a folder and its subfolders.
struct Dump {
    taken: Vec<Input>,
    /// Files that can't be read: each may be a program.
    unreadable: Vec<(PathBuf, Failure)>,
    /// The number of other files, by kind.
    left: BTreeMap<&'static str, usize>,
}

impl Dump {
    /// With the name of a `module`, only profiles' programs of that name.
    fn of(folder: &Path, module: Option<&str>, limits: &Limits) -> Result<Self, Failure> {
        let (mut files, mut kinds) = (Vec::new(), Vec::new());
        let unreadable_because = |error: io::Error| Failure::new("io", format!("can't be read: {error}"));
        let Listed { files: all, unreadable } = files_in(folder, limits.files).map_err(unreadable_because)?;
        let named = |(path, error): (PathBuf, io::Error)| {
            let failure = unreadable_because(error).in_file(&path);
            (path, failure)
        };
        let mut unreadable: Vec<(PathBuf, Failure)> = unreadable.into_iter().map(named).collect();
        for path in all {
            let path = match limits.resolve(&path) {
                Ok(path) => path,
                Err(failure) => {
                    unreadable.push((path, failure));
                    continue;
                }
            };
            match tilewise_hlo::read_head(&path, HEAD) {
                Ok(_) if fs::metadata(&path).is_ok_and(|file| file.len() > limits.file_bytes) => {
                    let message = format!("has more than {} bytes, the most that are read", limits.file_bytes);
                    let failure = Failure::new("too_large", message).in_file(&path);
                    unreadable.push((path, failure));
                }
                Ok(head) => {
                    kinds.push((path.to_string_lossy().into_owned(), FileKind::of(&head)));
                    files.push(path);
                }
                Err(error) => unreadable.push(named((path, error))),
            }
        }
        let Selection { mut programs, left, .. } = dump::select(&kinds);
        let is_profile = |file: usize| kinds[file].1 == FileKind::Profile;
        programs.retain(|program| module.is_none() || is_profile(program.file));
        if programs.is_empty() && unreadable.is_empty() {
            let message = "the folder holds no program: no HLO text, proto, profile or buffer assignment";
            let help =
                "XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" writes the programs that it compiles to DIR";
            return Err(Failure::new("no_program", message).with_help(help));
        }
        let mut of_others = 0;
        let mut taken = Vec::new();
        for Selected { file, plans, .. } in programs {
            if is_profile(file) {
                match Input::of_profile(&files[file], module, limits) {
                    Ok(inputs) => taken.extend(inputs),
                    Err(failure) => unreadable.push((files[file].clone(), failure.in_file(&files[file]))),
                }
                continue;
            }
            let plan = plan_of(&files[file], plans.iter().map(|&plan| &files[plan]), limits);
            let is_left = |other: usize| kinds[other].1 == FileKind::BufferAssignment && Some(&files[other]) != plan;
            of_others += plans.iter().filter(|&&other| is_left(other)).count();
            let mut input = Input::of_file(files[file].clone(), limits);
            input.buffer_assignment = plan.cloned();
            taken.push(input);
        }
        let left = left.into_iter().chain([("plans of other programs", of_others)]).filter(|(_, count)| *count > 0);
        Ok(Self { taken, unreadable, left: left.collect() })
    }

    /// Lists the files taken and left of the folder on standard error.
    fn report(&self, folder: &Path) {
        let Self { taken, left, .. } = self;
        let programs = if taken.len() == 1 { "program" } else { "programs" };
        say(format!("{}: {} {programs}", folder.display(), taken.len()));
        for Input { path, buffer_assignment, .. } in taken {
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
fn plan_of<'a>(program: &Path, plans: impl Iterator<Item = &'a PathBuf>, limits: &Limits) -> Option<&'a PathBuf> {
    let mut plans = plans.peekable();
    plans.peek()?;
    let module = Module::parse(programs::read(program, limits).ok()?.text).ok()?;
    let read = |path: &PathBuf| programs::read_buffer_assignment(path, limits).ok().flatten();
    plans.find(|path| read(path).is_some_and(|plan| dump::is_plan_of(&plan, &module)))
}

/// The files in a folder and its subfolders.
#[derive(Default)]
struct Listed {
    /// Sorted.
    files: Vec<PathBuf>,
    /// Folders that can't be listed, or not to their end.
    unreadable: Vec<(PathBuf, io::Error)>,
}

/// Lists the files in a folder and its subfolders, at most `most`. Links to folders are not followed.
///
/// # Errors
/// The folder itself can't be listed, or holds more.
fn files_in(folder: &Path, most: usize) -> io::Result<Listed> {
    let (mut listed, mut seen) = (Listed::default(), 0_usize);
    let mut folders = Vec::new();
    let mut next = Some((folder.to_owned(), fs::read_dir(folder)?));
    while let Some((folder, entries)) = next {
        for entry in entries {
            seen += 1;
            if seen > most {
                return Err(io::Error::other(format!("it holds more than {most} files, the most that are looked at")));
            }
            match entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))) {
                Ok((path, kind)) if kind.is_dir() => folders.push(path),
                Ok((path, _)) if path.is_file() => listed.files.push(path),
                Ok(_) => {}
                Err(error) => listed.unreadable.push((folder.clone(), error)),
            }
        }
        // A folder that can't be listed is reported; the others are still read.
        next = iter::from_fn(|| folders.pop()).find_map(|folder| match fs::read_dir(&folder) {
            Ok(entries) => Some((folder, entries)),
            Err(error) => {
                listed.unreadable.push((folder, error));
                None
            }
        });
    }
    listed.files.sort();
    listed.unreadable.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(listed)
}
