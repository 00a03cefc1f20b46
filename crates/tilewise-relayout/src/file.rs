//! Plans run from file to file, through memory maps: the feature `file`.

use crate::{Error, Plan, RunOptions};
use memmap2::{Mmap, MmapMut, MmapOptions};
use std::{
    fs::{File, TryLockError},
    io,
    time::SystemTime,
};

/// A file from an offset on, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    /// The file.
    pub file: &'a File,
    /// Where the buffer starts in it.
    pub offset: u64,
}

/// The two buffers of a plan, mapped from files.
///
/// The maps are the system's cache of the files: arrays larger than memory work, and nothing is read or written twice.
///
/// ```
/// use tilewise_relayout::{Mapped, Plan, Region, RunOptions};
/// # use std::io::{Read, Seek, Write};
///
/// let plan = Plan::new(&"s8[2,3]{1,0}".parse()?, &"s8[2,3]{1,0:T(2,2)}".parse()?)?;
/// # let (mut source, mut destination) = (tempfile::tempfile()?, tempfile::tempfile()?);
/// source.write_all(b"head\x01\x02\x03\x04\x05\x06")?;
/// let source = Region { file: &source, offset: 4 };
/// let mut mapped = Mapped::new(&plan, source, Region { file: &destination, offset: 0 })?;
/// mapped.run(&RunOptions::default())?;
/// mapped.flush()?;
/// # drop(mapped);
/// # let mut bytes = Vec::new();
/// # destination.rewind()?;
/// # destination.read_to_end(&mut bytes)?;
/// assert_eq!(bytes, [1, 2, 4, 5, 3, 0, 6, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Other processes
///
/// While the files are mapped, nothing else should write to either. A source that is locked by a writer is refused, and
/// one whose length or modification time changes is an error afterwards. A process that ignores locks and *shortens*
/// the source takes mapped bytes away: the system then ends this process (`SIGBUS`). The destination gets disk space
/// for every byte before it is mapped, so that a full disk is an error and not such an end.
#[derive(Debug)]
pub struct Mapped<'a> {
    plan: &'a Plan,
    source: Mmap,
    destination: MmapMut,
    files: [&'a File; 2],
    /// The source as it was when it was mapped.
    seen: Version,
}

impl<'a> Mapped<'a> {
    /// Maps the plan's buffers: the source in a file from an offset on, and the destination in another file, opened for
    /// reading and writing, whose length is set to end with it. Bytes before the offsets stay.
    ///
    /// # Errors
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the source ends too early,
    /// [`ResourceBusy`](io::ErrorKind::ResourceBusy) if another process holds a lock on either file,
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if both are the same file,
    /// [`StorageFull`](io::ErrorKind::StorageFull) if the disk has no room, and any other error of the system.
    pub fn new(plan: &'a Plan, source: Region<'a>, destination: Region<'a>) -> io::Result<Self> {
        let files = [source.file, destination.file];
        if is_same_file(files)? {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the source and the destination are one file"));
        }
        locked("source", source.file.try_lock_shared())?;
        locked("destination", destination.file.try_lock())?;
        let seen = Version::of(source.file)?;
        let source_end = end(source.offset, plan.source_bytes())?;
        if seen.length < source_end {
            let message = format!("the source ends after {} of {source_end} bytes", seen.length);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        reserve(destination.file, end(destination.offset, plan.destination_bytes())?)?;
        let options = |at: u64, bytes: u64| {
            let length = usize::try_from(bytes).map_err(|_| {
                io::Error::new(io::ErrorKind::OutOfMemory, format!("{bytes} bytes are more than this machine can map"))
            })?;
            let mut options = MmapOptions::new();
            options.offset(at).len(length);
            Ok::<_, io::Error>(options)
        };
        // SAFETY: Both maps lie inside their files, and the files are different, so no memory is borrowed twice in this process.
        // Another process can still write to a file or shorten it; locks ask it not to, and no system forbids it. If it writes,
        // bytes change under a shared slice. That is outside of what the language defines; what it can lead to here is a wrong byte
        // in the destination or a wrong answer of a comparison, for bytes of elements are only ever moved and compared: no
        // address, length or branch around an access comes from them, and the slices do not leave this module. If it shortens a
        // file, the next access past its end raises SIGBUS, whose default is the end of the process, not access to other memory.
        let (from, to) = unsafe {
            (
                options(source.offset, plan.source_bytes())?.map(source.file)?,
                options(destination.offset, plan.destination_bytes())?.map_mut(destination.file)?,
            )
        };
        Ok(Self { plan, source: from, destination: to, files, seen })
    }

    /// [`Plan::run_with`] from file to file.
    ///
    /// # Errors
    /// [`ResourceBusy`](io::ErrorKind::ResourceBusy) if the source changed meanwhile; the destination then holds a mixture.
    pub fn run(&mut self, options: &RunOptions<'_>) -> io::Result<()> {
        self.plan.run_with(&self.source, &mut self.destination, options).map_err(invalid)?;
        self.unchanged()
    }

    /// [`Plan::find_difference`] between the files.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn find_difference(&self, threads: usize, done: impl Fn(u64) + Sync) -> io::Result<Option<Vec<u64>>> {
        let difference = self.plan.find_difference(&self.source, &self.destination, threads, done).map_err(invalid)?;
        self.unchanged()?;
        Ok(difference)
    }

    /// Waits until the whole destination file is on the disk; only then are errors of the disk known.
    ///
    /// # Errors
    /// Any error of the system.
    pub fn flush(&self) -> io::Result<()> {
        self.destination.flush()?;
        self.files[1].sync_all()
    }

    fn unchanged(&self) -> io::Result<()> {
        if Version::of(self.files[0])? == self.seen {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process changed the source while it was read"))
    }
}

impl Drop for Mapped<'_> {
    fn drop(&mut self) {
        // Closing the file, which is its owner's, would give the lock back too.
        let _ = self.files.map(File::unlock);
    }
}

#[derive(Debug, PartialEq)]
struct Version {
    length: u64,
    modified: Option<SystemTime>,
}

impl Version {
    fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { length: metadata.len(), modified: metadata.modified().ok() })
    }
}

/// Checks an attempt to lock: it fails if another process holds the lock; file systems without locks pass.
fn locked(which: &str, attempt: Result<(), TryLockError>) -> io::Result<()> {
    match attempt {
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::new(io::ErrorKind::ResourceBusy, format!("another process holds a lock on the {which}")))
        }
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

fn end(start: u64, bytes: u64) -> io::Result<u64> {
    let too_large =
        || io::Error::new(io::ErrorKind::FileTooLarge, format!("no file holds {bytes} bytes from {start} on"));
    start.checked_add(bytes).ok_or_else(too_large)
}

fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

#[cfg(unix)]
fn is_same_file(files: [&File; 2]) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let [a, b] = [files[0].metadata()?, files[1].metadata()?];
    Ok((a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// Where files have no numbers, the system enforces locks: one file can't have both.
#[cfg(not(unix))]
fn is_same_file(_: [&File; 2]) -> io::Result<bool> {
    Ok(false)
}

/// Sets a file's length and allocates all of it on the disk: a write to a page without disk space ends the process.
fn reserve(file: &File, length: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if length > 0 {
        use rustix::{fs, io as system};
        use std::os::unix::fs::MetadataExt;
        let held = file.metadata()?.blocks().saturating_mul(512);
        // A failing attempt would take all room on the disk for a moment. If its size is unknown, it is tried.
        if let Ok(disk) = fs::fstatvfs(file)
            && disk.f_blocks > 0
        {
            let room = disk.f_bavail.saturating_mul(disk.f_frsize).saturating_add(held);
            if room < length {
                let message = format!("it takes {length} bytes, the disk has room for {room}");
                return Err(io::Error::new(io::ErrorKind::StorageFull, message));
            }
        }
        match system::retry_on_intr(|| fs::fallocate(file, fs::FallocateFlags::empty(), 0, length)) {
            // This file system can't: the bytes are written instead.
            Err(system::Errno::OPNOTSUPP | system::Errno::NOSYS) => {}
            answer => {
                answer?;
                return file.set_len(length);
            }
        }
    }
    write_zeros(file, length)
}

/// Sets a file's length, with written zeros where it was shorter.
fn write_zeros(mut file: &File, length: u64) -> io::Result<()> {
    use io::{Seek, SeekFrom, Write};
    file.set_len(length.min(file.metadata()?.len()))?;
    let mut rest = length - file.seek(SeekFrom::End(0))?;
    let zeros = vec![0; 1 << 20];
    while rest > 0 {
        let part = usize::try_from(rest).map_or(zeros.len(), |rest| rest.min(zeros.len()));
        file.write_all(&zeros[..part])?;
        rest -= part as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};

    #[test]
    fn zeros_follow_what_is_there() {
        let mut file = tempfile::tempfile().expect("a folder");
        file.write_all(b"head").expect("space");
        for length in [2, (1 << 20) + 3] {
            write_zeros(&file, length).expect("space");
            let mut content = Vec::new();
            file.rewind().expect("a file");
            file.read_to_end(&mut content).expect("a file");
            assert_eq!(content.len() as u64, length);
            assert!(content.starts_with(b"he") && content[2..].iter().all(|&byte| byte == 0));
        }
    }
}
