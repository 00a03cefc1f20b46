//! Folders with parts that can't be listed: those are named, what else there is is audited, and the status is that of an error.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use serde_json::Value;
use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Output},
};
use tilewise_testing::programs;

fn program_in(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    fs::copy(programs::path("sampler_loop.v6e.hlo"), folder.join("step.hlo")).unwrap();
}

/// The errors of an audit as (kind, message), and how many programs it reports.
fn told(output: &Output) -> (Vec<(String, String)>, usize) {
    let lines = output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let objects: Vec<Value> = lines.map(|line| serde_json::from_slice(line).expect("a JSON object")).collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let errors = objects.iter().filter(|object| object.get("error").is_some());
    let errors: Vec<_> =
        errors.map(|object| (text(&object["error"]["kind"]), text(&object["error"]["message"]))).collect();
    let programs = objects.len() - errors.len();
    (errors, programs)
}

fn audit(folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilewise")).args(["audit", "--format", "json"]).arg(folder).output().unwrap()
}

#[track_caller]
fn one_is_left_out(output: &Output, left_out: &str) {
    let (errors, programs) = told(output);
    assert_eq!((output.status.code(), programs, errors.len()), (Some(2), 1, 1), "{output:?}");
    let (kind, message) = &errors[0];
    assert!(kind == "io" && message.contains(left_out) && message.contains("can't be read: "), "{message}");
}

/// No path to it is short enough for the system: 5,000 bytes, made of two halves.
#[test]
fn a_folder_too_deep_is_left_out() {
    let root = tempfile::tempdir().unwrap();
    program_in(root.path());
    let half = |name: &str| {
        let top = root.path().join(name);
        let deepest = (0..25).fold(top.clone(), |folder, _| folder.join("d".repeat(99)));
        fs::create_dir_all(&deepest).unwrap();
        (top, deepest)
    };
    let ((_, upper), (lower, _)) = (half("upper"), half("lower"));
    fs::rename(lower, upper.join("lower")).unwrap();
    one_is_left_out(&audit(root.path()), &"d".repeat(99));
}

#[test]
fn links_in_a_circle_are_not_followed() {
    let root = tempfile::tempdir().unwrap();
    program_in(root.path());
    symlink(root.path(), root.path().join("again")).unwrap();
    symlink(root.path().join("one"), root.path().join("other")).unwrap();
    symlink(root.path().join("other"), root.path().join("one")).unwrap();
    let output = audit(root.path());
    assert_eq!((output.status.code(), told(&output)), (Some(0), (Vec::new(), 1)), "{output:?}");
}

/// Whoever may read everything asks as somebody who may not.
#[test]
fn a_folder_that_may_not_be_read_is_left_out() {
    let root = tempfile::tempdir().unwrap();
    fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
    program_in(root.path());
    let secret = root.path().join("secret");
    program_in(&secret);
    fs::set_permissions(&secret, Permissions::from_mode(0o000)).unwrap();
    let output = if fs::read_dir(&secret).is_ok() {
        let program = root.path().join("tilewise");
        fs::copy(env!("CARGO_BIN_EXE_tilewise"), &program).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        let output = command.args(["audit", "--format", "json"]).arg(root.path()).output();
        // Without such a tool there is no other user to ask as.
        output.ok().filter(|output| !output.stderr.starts_with(b"setpriv: "))
    } else {
        Some(audit(root.path()))
    };
    fs::set_permissions(&secret, Permissions::from_mode(0o755)).unwrap();
    if let Some(output) = output {
        one_is_left_out(&output, "secret");
    }
}
