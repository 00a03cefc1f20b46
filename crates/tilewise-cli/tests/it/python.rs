//! Verbs of the Python package are handed to it, with all their arguments and its exit status.

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

fn run(path: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_tilewise")).args(arguments).env("PATH", path).output().unwrap();
    (done.status.code(), String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn help_needs_no_package() {
    let empty = tempfile::tempdir().unwrap();
    let served = if cfg!(feature = "mcp") { "--root" } else { "pip install" };
    for (verb, option) in
        [(&["fit", "--help"][..], "--largest"), (&["lock", "-h"], "--update"), (&["mcp", "--help"], served)]
    {
        let (status, words, _) = run(empty.path(), verb);
        assert_eq!(status, Some(0));
        assert!(words.contains("Usage: tilewise") && words.contains(option) && !words.contains("\\n"), "{words}");
    }
}

#[test]
fn without_the_package_a_hint() {
    let empty = tempfile::tempdir().unwrap();
    for verb in [&["fit"][..], &["lock"], &["audit", "train.py:make", "--against=plan.lock"]] {
        let (status, _, words) = run(empty.path(), verb);
        assert_eq!(status, Some(2));
        assert!(words.contains("pip install 'tilewise[tpu]'"), "{words}");
    }
    // A file needs no compiler.
    let (status, _, words) = run(empty.path(), &["audit", "x.hlo", "--against=plan.lock"]);
    assert_eq!(status, Some(2));
    assert!(!words.contains("pip install"), "{words}");
}

#[test]
fn arguments_and_status_are_handed_on() {
    let folder = tempfile::tempdir().unwrap();
    let python = folder.path().join("python3");
    fs::write(&python, "#!/bin/sh\n[ \"$1\" = -c ] && exit 0\nprintf '%s|' \"$@\"\nexit 3\n").unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let (status, said, _) = run(folder.path(), &["fit", "a.py:make", "--tpu", "v5e", "--strict"]);
    assert_eq!((status, said.as_str()), (Some(3), "-m|tilewise|fit|a.py:make|--tpu|v5e|--strict|"));
    let (status, said, _) = run(folder.path(), &["audit", "--against", "plan.lock", "a.py:make"]);
    assert_eq!((status, said.as_str()), (Some(3), "-m|tilewise|audit|--against|plan.lock|a.py:make|"));
}
