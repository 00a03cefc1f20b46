//! Files that are replaced atomically.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};
use tempfile::{Builder, NamedTempFile};

/// Writes a file atomically: a reader sees either the old bytes or all of the new ones.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut draft = Draft::of(path)?;
    draft.file_mut().write_all(bytes)?;
    draft.finish()
}

/// A file that gets its name when it is finished. Dropped before that, it leaves nothing behind.
pub(crate) struct Draft {
    unfinished: Unfinished,
    path: PathBuf,
}

enum Unfinished {
    /// Has no name yet, so it disappears however the process ends.
    #[cfg(target_os = "linux")]
    Nameless(File),
    /// Has a temporary name in the same folder.
    Named(NamedTempFile),
}

impl Draft {
    /// An empty file to read and write, in the folder of `path`. If `path` is a symbolic link, its target is replaced.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| target_of(path));
        let existing = match fs::metadata(&path) {
            Ok(existing) if !existing.is_file() => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
            }
            existing => existing.ok(),
        };
        let folder = folder_of(&path);
        if !folder.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("the folder {} does not exist", folder.display()),
            ));
        }
        #[cfg(target_os = "linux")]
        let unfinished = nameless(folder).map(Unfinished::Nameless);
        #[cfg(not(target_os = "linux"))]
        let unfinished = None;
        let unfinished = match unfinished {
            Some(unfinished) => unfinished,
            None => Unfinished::Named(named(folder)?),
        };
        let draft = Self { unfinished, path };
        if let Some(existing) = existing {
            keep_owner(draft.file(), &existing);
            draft.file().set_permissions(existing.permissions())?;
        }
        Ok(draft)
    }

    pub(crate) fn file(&self) -> &File {
        match &self.unfinished {
            #[cfg(target_os = "linux")]
            Unfinished::Nameless(file) => file,
            Unfinished::Named(file) => file.as_file(),
        }
    }

    pub(crate) fn file_mut(&mut self) -> &mut File {
        match &mut self.unfinished {
            #[cfg(target_os = "linux")]
            Unfinished::Nameless(file) => file,
            Unfinished::Named(file) => file.as_file_mut(),
        }
    }

    /// Gives the file its name, in one step.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self.unfinished {
            #[cfg(target_os = "linux")]
            Unfinished::Nameless(file) => {
                // Only a rename replaces a file atomically, so the file gets a temporary name first.
                Builder::new().make_in(folder_of(&self.path), |name| link(&file, name))?.persist(&self.path)?;
            }
            Unfinished::Named(file) => {
                file.persist(&self.path)?;
            }
        }
        Ok(())
    }
}

/// The target of a dangling symbolic link, otherwise the path itself.
fn target_of(path: &Path) -> PathBuf {
    let target = fs::read_link(path).map(|target| folder_of(path).join(target));
    target.unwrap_or_else(|_| path.to_owned())
}

/// Gives a file the owner and the group of the file that it replaces, as far as this process may.
#[cfg(unix)]
fn keep_owner(file: &File, existing: &fs::Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    if file.metadata().is_ok_and(|own| (own.uid(), own.gid()) != (existing.uid(), existing.gid())) {
        // A process that can't change the owner may still write the file, as any editor does.
        let _ = fchown(file, Some(existing.uid()), Some(existing.gid()));
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &fs::Metadata) {}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn named(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Temporary files are private to their owner; a result has the permissions of the umask.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// A file without a name, where the file system supports that and it can be linked later.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(folder, flags, Mode::from_raw_mode(0o666)).ok()?);
    fs::metadata(descriptor(&file)).is_ok().then_some(file)
}

#[cfg(target_os = "linux")]
fn link(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD};
    Ok(rustix::fs::linkat(CWD, descriptor(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// The path under which an open file without a name can be linked.
#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A named draft, as on systems without nameless files.
    fn named_draft(path: &Path) -> Draft {
        Draft { unfinished: Unfinished::Named(named(folder_of(path)).expect("a folder")), path: path.to_owned() }
    }

    #[test]
    fn drafts_appear_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        for draft in [|path: &Path| Draft::of(path).expect("a folder"), named_draft] {
            let names = || fs::read_dir(folder.path()).expect("a folder").count();
            fs::write(&path, "old").expect("a folder");
            let mut dropped = draft(&path);
            dropped.file_mut().write_all(b"half").expect("space");
            drop(dropped);
            assert_eq!((fs::read(&path).expect("a file"), names()), (b"old".to_vec(), 1));

            let mut finished = draft(&path);
            finished.file_mut().write_all(b"new").expect("space");
            finished.finish().expect("a name");
            assert_eq!((fs::read(&path).expect("a file"), names()), (b"new".to_vec(), 1));
            fs::remove_file(&path).expect("a file");
        }
    }

    #[test]
    #[cfg(unix)]
    fn drafts_keep_what_stands_around_them() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().expect("a folder");
        let [path, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&path, "old").expect("a folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("a file");
        symlink(&path, &link).expect("a link");
        write(&link, b"new").expect("space");
        assert!(link.is_symlink());
        assert_eq!(fs::read(&path).expect("a file"), b"new");
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o640);
        fs::remove_file(&path).expect("a file");
        write(&link, b"again").expect("space");
        assert!(link.is_symlink() && fs::read(&path).expect("a file") == b"again");
        for unfit in [folder.path(), Path::new("/dev/null"), &folder.path().join("none/file")] {
            assert!(write(unfit, b"new").is_err(), "{}", unfit.display());
        }
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }
}
