//! C programs, compiled with AddressSanitizer and UndefinedBehaviorSanitizer, against the library that `cargo test` built.
//!
//! Without a C compiler they are skipped, and say so.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Where cargo puts the library: beside this test.
pub(crate) fn library(name: &str) -> PathBuf {
    let here = env::current_exe().expect("a program");
    here.parent().expect("a folder").join(name)
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compiles a program of `tests/c` with the static library; `None` where there is no C compiler.
fn compiled(name: &str, flags: &[&str]) -> Option<PathBuf> {
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    if Command::new(&compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        eprintln!("skipped: there is no C compiler");
        return None;
    }
    let program = library(&format!("tilewise-{name}-{}", flags.len()));
    let source = folder().join(format!("tests/c/{name}.c"));
    let archive = library("libtilewise_capi.a");
    let mut command = Command::new(compiler);
    command
        .args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(folder().join("include"));
    command.arg(source).arg(archive).args(["-pthread", "-ldl", "-lm", "-o"]).arg(&program).args(flags);
    let done = command.output().expect("a compiler");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{name}.c does not compile: {said}");
    Some(program)
}

const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

#[test]
#[cfg(target_os = "linux")]
fn every_function_under_sanitizers() {
    let Some(program) = compiled("check", &SANITIZERS) else { return };
    let done = Command::new(program).output().expect("a program");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.is_empty(), "{said}");
}

/// `tests/data/rows.tsv`: answers that were worked out by the document's definition, outside of this library.
#[test]
#[cfg(target_os = "linux")]
fn recorded_rows_under_sanitizers() {
    let Some(program) = compiled("rows", &SANITIZERS) else { return };
    let rows = fs::read_to_string(folder().join("tests/data/rows.tsv")).expect("rows");
    let (questions, wanted): (Vec<&str>, Vec<&str>) =
        rows.lines().map(|row| row.rsplit_once('\t').expect("an answer")).unzip();
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a program");
    let mut input = child.stdin.take().expect("a pipe");
    let questions = questions.join("\n") + "\n";
    let asking = std::thread::spawn(move || input.write_all(questions.as_bytes()));
    let done = child.wait_with_output().expect("a program");
    asking.join().expect("a thread").expect("a reader");
    assert!(done.status.success());
    let answers = String::from_utf8(done.stdout).expect("a text");
    assert_eq!(answers.lines().count(), wanted.len());
    for ((answer, wanted), row) in answers.lines().zip(wanted).zip(rows.lines()) {
        assert_eq!(answer, wanted, "{row}");
    }
}
