//! From a path to what is in it.

use crate::input::read_bytes;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tilewise_audit::{Content, Failure, dump};
use tilewise_hlo::{BufferAssignment, DECOMPRESSION_LIMIT, Document, Profile, ProfiledProgram};

/// How much is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of a file, decompressed.
    pub(crate) file_bytes: u64,
    /// Files of a folder.
    pub(crate) files: usize,
}

impl Limits {
    /// All that there is.
    pub(crate) const NONE: Self = Self { file_bytes: DECOMPRESSION_LIMIT, files: usize::MAX };
}

/// A file to audit, and of a dump the file with the compiler's own plan of the same program; or a program of a profile.
#[derive(Clone, Debug)]
pub(super) struct Input {
    /// Of a profile's program, as if the profile were a folder.
    pub(super) path: PathBuf,
    pub(super) buffer_assignment: Option<PathBuf>,
    pub(super) profiled: Option<ProfiledProgram>,
    limits: Limits,
}

/// An input, or the source and the reason of one that can't be read.
pub(super) type InputResult = Result<Input, (String, Failure)>;

impl Input {
    pub(super) fn of_file(path: PathBuf, limits: Limits) -> Self {
        Self { path, buffer_assignment: None, profiled: None, limits }
    }

    /// The programs of a profile, or only those that a name means.
    pub(super) fn of_profile(path: &Path, module: Option<&str>, limits: Limits) -> Result<Vec<Self>, Failure> {
        let bytes = fs::read(path).map_err(|error| Failure::new("io", format!("can't be read: {error}")))?;
        let profile = Profile::decode(bytes, limits.file_bytes)?;
        let programs = profile.iter().flat_map(|profile| &profile.programs);
        let is_meant = |program: &&ProfiledProgram| module.is_none_or(|module| program.is_called(module));
        let inputs = programs.filter(is_meant).map(|program| Self {
            path: path.join(program.name()),
            buffer_assignment: None,
            profiled: Some(program.clone()),
            limits,
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

    /// What is in the file: at least one program or plan, or an error, which names the file first.
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
            None => read(&self.path, self.limits)?,
        };
        if let Some(path) = &self.buffer_assignment {
            document.buffer_assignment = read_buffer_assignment(path, self.limits)?;
        }
        Ok(document)
    }
}

pub(super) fn read(path: &Path, limits: Limits) -> Result<Document, Failure> {
    let document = Document::decode(read_bytes(path)?, limits.file_bytes);
    document.map_err(|error| Failure::from(error).in_file(path))
}

/// The buffer assignment in a file, as text or with a program's proto.
pub(super) fn read_buffer_assignment(path: &Path, limits: Limits) -> Result<Option<BufferAssignment>, Failure> {
    dump::plan_in(read(path, limits)?).map_err(|failure| failure.in_file(path))
}
