//! Lines of the user's source, from files below a folder that the user names: a program's text may name any path.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

/// Longer files are not read.
const LONGEST_FILE: u64 = 4 << 20;

/// A folder of source.
#[derive(Clone, Debug)]
pub struct Sources {
    root: PathBuf,
}

impl Sources {
    /// The folder at a path.
    ///
    /// # Errors
    /// The path isn't a folder, or can't be resolved.
    pub fn at(path: &str) -> io::Result<Self> {
        let root = fs::canonicalize(path)?;
        if root.is_dir() { Ok(Self { root }) } else { Err(io::Error::other("not a folder")) }
    }

    /// The text of the file below the folder whose path is the longest suffix of `named`.
    #[must_use]
    pub fn text(&self, named: &str) -> Option<String> {
        let bytes = fs::read(self.file(Path::new(named))?).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn file(&self, named: &Path) -> Option<PathBuf> {
        let parts = named.components().filter(|part| !matches!(part, Component::RootDir | Component::CurDir));
        let parts: Option<Vec<&Path>> = parts
            .map(|part| match part {
                Component::Normal(name) => Some(Path::new(name)),
                _ => None,
            })
            .collect();
        let parts = parts?;
        (0..parts.len()).find_map(|first| {
            // Links may lead out of the folder.
            let found = fs::canonicalize(self.root.join(parts[first..].iter().collect::<PathBuf>())).ok()?;
            let is_source = found.starts_with(&self.root)
                && fs::metadata(&found).is_ok_and(|about| about.is_file() && about.len() <= LONGEST_FILE);
            is_source.then_some(found)
        })
    }
}
