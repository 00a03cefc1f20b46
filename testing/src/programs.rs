//! The programs that the tests of all crates read: `testing/programs`, whose README describes each, and the `examples`,
//! which users see.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A file of `testing/programs`.
#[must_use]
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name)
}

/// A file of `examples`.
#[must_use]
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

/// The bytes of a file of `testing/programs`.
///
/// # Panics
/// If the file doesn't exist.
#[must_use]
pub fn bytes(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap_or_else(|error| panic!("testing/programs/{name}: {error}"))
}

/// The text of a file of `testing/programs`.
///
/// # Panics
/// If the file doesn't exist, or isn't text.
#[must_use]
pub fn text(name: &str) -> String {
    String::from_utf8(bytes(name)).unwrap_or_else(|error| panic!("testing/programs/{name}: {error}"))
}

/// The rows of a table of `testing/programs`, without its header. No cell has a comma.
///
/// # Panics
/// If the file doesn't exist.
#[must_use]
pub fn table(name: &str) -> Vec<Vec<String>> {
    text(name).lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Every file with programs in it, text and proto, plain and gzip, the examples among them; in the order of their paths.
///
/// # Panics
/// If the folders can't be read.
#[must_use]
pub fn all() -> Vec<PathBuf> {
    let folders = [path("."), path("cases"), example(".")];
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("a folder"));
    let files = files.map(|file| file.expect("an entry").path());
    let has_programs =
        |file: &PathBuf| [".hlo", ".hlo.gz", ".hlo.pb"].iter().any(|end| file.to_string_lossy().ends_with(end));
    let mut files: Vec<PathBuf> = files.filter(has_programs).collect();
    files.sort();
    files
}
