//! Reads the programs and plans at a path.

use crate::input::read_bytes;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tilewise_audit::{Content, Failure, dump};
use tilewise_hlo::{BufferAssignment, DECOMPRESSION_LIMIT, Document, Profile, ProfiledProgram};
use tilewise_report::style::bytes;

/// Limits on the files that are read.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Bytes of a file, decompressed.
    pub(crate) file_bytes: u64,
    /// Files of a folder.
    pub(crate) files: usize,
    /// The folders below which files are read: absolute, without links. `None` allows any folder.
    pub(crate) roots: Option<Arc<[PathBuf]>>,
}

impl Limits {
    /// No limit but that on decompression.
    pub(crate) const NONE: Self = Self { file_bytes: DECOMPRESSION_LIMIT, files: usize::MAX, roots: None };

    /// The file or folder that a path leads to, absolute and without links where only some folders are read.
    ///
    /// # Errors
    /// It isn't below these folders (`outside_root`), isn't a regular file or a folder (`not_a_file`), or is too large.
    pub(crate) fn resolve(&self, path: &Path) -> Result<PathBuf, Failure> {
        let Some(roots) = &self.roots else { return Ok(path.to_owned()) };
        let unreadable = |error: io::Error| Failure::new("io", format!("can't be read: {error}")).in_file(path);
        let found = fs::canonicalize(path);
        // For a missing file, its nearest existing folder counts: files outside the roots aren't revealed.
        let place = match &found {
            Ok(found) => Some(found.clone()),
            Err(_) => {
                std::path::absolute(path).map_err(unreadable)?.ancestors().find_map(|part| part.canonicalize().ok())
            }
        };
        if !roots.iter().any(|root| place.as_ref().is_some_and(|place| place.starts_with(root))) {
            let roots: Vec<String> = roots.iter().map(|root| format!("`{}`", root.display())).collect();
            let message = format!("outside of what this server reads, which is {}", roots.join(" and "));
            let help = "start it in the folder, or with `tilewise mcp --root FOLDER`";
            return Err(Failure::new("outside_root", message).in_file(path).with_help(help));
        }
        let found = found.map_err(unreadable)?;
        let metadata = fs::metadata(&found).map_err(unreadable)?;
        if !metadata.is_dir() && !metadata.is_file() {
            let message = "neither a file nor a folder, but a device, pipe or socket";
            return Err(Failure::new("not_a_file", message).in_file(path));
        }
        if metadata.is_file() && metadata.len() > self.file_bytes {
            let (length, limit) = (bytes(metadata.len()), bytes(self.file_bytes));
            let message = format!("the file has {length}, and this server reads up to {limit}");
            let help = "start it with a larger `--file-limit`, or run `tilewise` on the file";
            return Err(Failure::new("too_large", message).in_file(path).with_help(help));
        }
        Ok(found)
    }
}

/// A file to audit, and in a dump the file with the compiler's own plan of the same program; or a program of a profile.
#[derive(Clone, Debug)]
pub(super) struct Input {
    /// The file; for a profile's program, a path as if the profile were a folder.
    pub(super) path: PathBuf,
    pub(super) buffer_assignment: Option<PathBuf>,
    pub(super) profiled: Option<ProfiledProgram>,
    limits: Limits,
}

/// An input, or the source and the failure of an unreadable one.
pub(super) type InputResult = Result<Input, (String, Failure)>;

impl Input {
    pub(super) fn of_file(path: PathBuf, limits: &Limits) -> Self {
        Self { path, buffer_assignment: None, profiled: None, limits: limits.clone() }
    }

    /// The programs of a profile, or only those with the name `module`.
    pub(super) fn of_profile(path: &Path, module: Option<&str>, limits: &Limits) -> Result<Vec<Self>, Failure> {
        let profile = Profile::decode(read_bytes(path, limits.file_bytes)?, limits.file_bytes)?;
        let programs = profile.iter().flat_map(|profile| &profile.programs);
        let is_meant = |program: &&ProfiledProgram| module.is_none_or(|module| program.is_called(module));
        let inputs = programs.filter(is_meant).map(|program| Self {
            path: path.join(program.name()),
            buffer_assignment: None,
            profiled: Some(program.clone()),
            limits: limits.clone(),
        });
        let inputs: Vec<Self> = inputs.collect();
        match (module, profile) {
            (Some(module), Some(profile)) if inputs.is_empty() => {
                let message = format!("the profile has no program `{module}`, but {}", profile.names());
                Err(Failure::new("no_such_module", message))
            }
            _ => Ok(inputs),
        }
    }

    /// Bytes of the file or proto.
    pub(super) fn size(&self) -> u64 {
        let of_file = || fs::metadata(&self.path).map_or(0, |file| file.len());
        self.profiled.as_ref().map_or_else(of_file, |program| program.size() as u64)
    }

    /// The contents of the file: at least one program or plan, or an error that begins with the file's name.
    pub(super) fn contents(&self) -> Vec<Result<Content, Failure>> {
        match self.document() {
            Ok(document) => {
                let contents = Content::of(document).into_iter();
                contents.map(|content| content.map_err(|failure| failure.in_file(&self.path))).collect()
            }
            Err(failure) => vec![Err(failure)],
        }
    }

    fn document(&self) -> Result<Document, Failure> {
        let mut document = match &self.profiled {
            Some(program) => program.document().map_err(|error| Failure::from(error).in_file(&self.path))?,
            None => read(&self.path, &self.limits)?,
        };
        if let Some(path) = &self.buffer_assignment {
            document.buffer_assignment = read_buffer_assignment(path, &self.limits)?;
        }
        Ok(document)
    }
}

pub(super) fn read(path: &Path, limits: &Limits) -> Result<Document, Failure> {
    let document = Document::decode(read_bytes(path, limits.file_bytes)?, limits.file_bytes);
    document.map_err(|error| Failure::from(error).in_file(path))
}

/// The buffer assignment in a file, as text or with a program's proto.
pub(super) fn read_buffer_assignment(path: &Path, limits: &Limits) -> Result<Option<BufferAssignment>, Failure> {
    dump::plan_in(read(path, limits)?).map_err(|failure| failure.in_file(path))
}
