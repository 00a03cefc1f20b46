//! From a path to what is in it.

use crate::input::read_bytes;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tilewise_audit::{Content, Failure, dump};
use tilewise_hlo::{BufferAssignment, DECOMPRESSION_LIMIT, Document};

/// A file to audit, and of a dump the file with the compiler's own plan of the same program.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) path: PathBuf,
    pub(super) buffer_assignment: Option<PathBuf>,
}

/// An input, or the source and the reason of one that can't be read.
pub(super) type InputResult = Result<Input, (String, Failure)>;

impl Input {
    /// Bytes of the file.
    pub(super) fn size(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |file| file.len())
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
        let mut document = read(&self.path)?;
        if let Some(path) = &self.buffer_assignment {
            document.buffer_assignment = read_buffer_assignment(path)?;
        }
        Ok(document)
    }
}

pub(super) fn read(path: &Path) -> Result<Document, Failure> {
    let document = Document::decode(read_bytes(path)?, DECOMPRESSION_LIMIT);
    document.map_err(|error| Failure::from(error).in_file(path))
}

/// The buffer assignment in a file, as text or with a program's proto.
pub(super) fn read_buffer_assignment(path: &Path) -> Result<Option<BufferAssignment>, Failure> {
    dump::plan_in(read(path)?).map_err(|failure| failure.in_file(path))
}
