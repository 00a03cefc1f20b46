//! Dump folders, and what is in them.

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use std::{fs, process::Command};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dumps/mlp_train.v5e");

/// The exit status, what was printed, and what was said beside it.
fn audit(path: &str) -> (Option<i32>, String, String) {
    let command =
        Command::new(env!("CARGO_BIN_EXE_tilewise")).args(["audit", "--format", "json", path]).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (command.status.code(), text(command.stdout), text(command.stderr))
}

#[test]
fn a_dump_is_one_report_that_the_compilers_plan_confirms() {
    let (status, reports, said) = audit(FOLDER);
    assert_eq!((status, reports.lines().count()), (Some(0), 1), "{said}");
    assert!(said.contains("1 compiled program; left 2 other files"), "{said}");
    assert!(reports.contains("\"compiler_plan\":{\"values\":2,\"differences\":[]}"), "{reports}");
    // The compiler's own figures for this program: 22 allocations of 512 bytes, each at a multiple of 16384.
    assert!(reports.contains("\"temporary_bytes\":360448"), "{reports}");
}

#[test]
fn a_buffer_assignment_alone_says_what_lies_where() {
    let (status, report, _) =
        audit(&format!("{FOLDER}/module_0034.jit_step.after_optimizations-buffer-assignment.txt"));
    assert_eq!(status, Some(0));
    assert!(report.contains("\"memory_space\":1,\"memory_space_name\":\"vmem\""), "{report}");
    assert!(report.contains("\"temporary_bytes\":344576"), "{report}");
}

#[test]
fn a_folder_without_programs_and_a_list_are_named() {
    let empty = concat!(env!("CARGO_TARGET_TMPDIR"), "/dump-empty");
    fs::create_dir_all(empty).unwrap();
    for (path, words) in [
        (empty.to_owned(), "the folder has no compiled program"),
        (format!("{FOLDER}/module_0034.jit_step.after_optimizations-live-range.txt"), "live ranges"),
    ] {
        let (status, printed, said) = audit(&path);
        assert_eq!(status, Some(2));
        assert!(printed.contains(words) && printed.contains(&path), "{printed} {said}");
    }
}
