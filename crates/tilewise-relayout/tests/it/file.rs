//! Plans between files: what is written, and what is refused before anything is.

#![cfg(feature = "file")]

use std::{
    fs::{self, File},
    io::{ErrorKind, Read, Seek, Write},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};
use tilewise_relayout::{Mapped, Plan, Region, RunOptions};

fn plan(from: &str, to: &str) -> Plan {
    Plan::new(&from.parse().expect("a shape"), &to.parse().expect("a shape")).expect("a plan")
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a folder");
    file.write_all(bytes).expect("space");
    file
}

fn region(file: &File, offset: u64) -> Region<'_> {
    Region { file, offset }
}

fn content(mut file: &File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().expect("a file");
    file.read_to_end(&mut bytes).expect("a file");
    bytes
}

#[test]
fn buffers_may_start_anywhere() {
    let plan = plan("u16[300,50]", "u16[300,50]{1,0:T(8,128)(2,1)}");
    let array: Vec<u8> = (0..30_000_u32).map(|i| u8::try_from(i % 251).expect("small")).collect();
    let mut wanted = vec![0; usize::try_from(plan.destination_bytes()).expect("small")];
    plan.run(&array, &mut wanted).expect("lengths are right");
    for (source_at, destination_at, threads) in [(0, 0, 1), (1, 128, 2), (4096, 5000, 0), (70_001, 3, 3)] {
        let source = file(&[vec![1; source_at], array.clone(), vec![2; 5]].concat());
        let destination = file(&vec![3; destination_at]);
        let mut mapped =
            Mapped::new(&plan, region(&source, source_at as u64), region(&destination, destination_at as u64))
                .expect("two files");
        mapped.run(&RunOptions { threads, progress: None }).expect("lengths are right");
        drop(mapped);
        assert_eq!(content(&destination), [vec![3; destination_at], wanted.clone()].concat());

        let destination = file(&vec![3; destination_at]);
        let mut mapped =
            Mapped::new(&plan, region(&source, source_at as u64), region(&destination, destination_at as u64))
                .expect("two files");
        let written = AtomicU64::new(0);
        let count = |bytes| {
            written.fetch_add(bytes, Relaxed);
        };
        mapped.run(&RunOptions { threads, progress: Some(&count) }).expect("lengths are right");
        assert_eq!(written.into_inner(), plan.destination_bytes());
        assert_eq!(mapped.find_difference(threads, |_| ()).expect("nobody writes"), None);
        mapped.flush().expect("a disk");
        drop(mapped);
        assert_eq!(content(&destination), [vec![3; destination_at], wanted.clone()].concat());
    }
}

#[test]
fn empty_arrays_make_empty_files() {
    let (plan, source, destination) = (plan("f32[0,5]", "f32[0,5]{0,1:T(8,128)}"), file(b""), file(b"long"));
    let mut mapped = Mapped::new(&plan, region(&source, 0), region(&destination, 0)).expect("two files");
    mapped.run(&RunOptions::default()).expect("lengths are right");
    mapped.flush().expect("a disk");
    assert_eq!(content(&destination), b"");
}

#[test]
fn one_file_is_not_both() {
    let folder = tempfile::tempdir().expect("a folder");
    let [path, link] = ["a", "b"].map(|name| folder.path().join(name));
    fs::write(&path, [1; 6]).expect("a folder");
    fs::hard_link(&path, &link).expect("a link");
    let plan = plan("s8[2,3]", "s8[2,3]{1,0:T(2,2)}");
    let source = File::open(&path).expect("a file");
    let again = File::options().read(true).write(true).open(&link).expect("a file");
    for destination in [&source, &source.try_clone().expect("a handle"), &again] {
        let error = Mapped::new(&plan, region(&source, 0), region(destination, 0)).expect_err("one file");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert_eq!(fs::read(&path).expect("a file"), [1; 6]);
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let plan = plan("s8[2,3]", "s8[2,3]{1,0:T(2,2)}");
    let (source, destination) = (file(&[1; 6]), file(b"old"));
    let kind = |source: Region<'_>, destination: Region<'_>| {
        Mapped::new(&plan, source, destination).expect_err("it does not fit").kind()
    };
    assert_eq!(kind(region(&source, 1), region(&destination, 0)), ErrorKind::UnexpectedEof);
    assert_eq!(kind(region(&source, u64::MAX), region(&destination, 0)), ErrorKind::FileTooLarge);
    assert_eq!(kind(region(&source, 0), region(&destination, u64::MAX)), ErrorKind::FileTooLarge);
    assert_eq!(content(&destination), b"old");
}

/// Far more than any disk has: an error, and no page that has no place.
#[test]
#[cfg(target_os = "linux")]
fn full_disks_are_errors() {
    let plan = plan("u8[4]", "u8[4]{0:T(4611686018427387904)}");
    let (source, destination) = (file(&[1; 4]), file(b"old"));
    let error = Mapped::new(&plan, region(&source, 0), region(&destination, 0)).expect_err("no such disk");
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(error.to_string().contains("4611686018427387904"), "{error}");
    assert_eq!(content(&destination), b"old");
}

#[test]
fn sources_that_others_write_are_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a");
    fs::write(&path, [1; 6]).expect("a folder");
    let (source, destination) = (File::open(&path).expect("a file"), file(b""));
    let plan = plan("s8[2,3]", "s8[2,3]{1,0:T(2,2)}");

    let mut writer = File::options().append(true).open(&path).expect("a file");
    writer.lock().expect("a lock");
    let error = Mapped::new(&plan, region(&source, 0), region(&destination, 0)).expect_err("it is locked");
    assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    writer.unlock().expect("a lock");

    let mut mapped = Mapped::new(&plan, region(&source, 0), region(&destination, 0)).expect("nobody writes");
    writer.write_all(b"more").expect("space");
    assert_eq!(mapped.run(&RunOptions::default()).expect_err("it grew").kind(), ErrorKind::ResourceBusy);
    assert_eq!(mapped.find_difference(1, |_| ()).expect_err("it grew").kind(), ErrorKind::ResourceBusy);
    drop(mapped);
    writer.lock().expect("the lock was given back");
}
