//! The promised exports: `symbols.txt`, held against the header, the sources and, on Linux, the library itself.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

/// The functions of `symbols.txt`, each behind the version that it came with.
fn promised() -> BTreeSet<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("symbols.txt")).expect("symbols.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').expect("a version and a name").1.to_owned()).collect()
}

/// The names that stand in front of a bracket where a line begins with that word.
fn functions(text: &str, word: &str) -> BTreeSet<String> {
    let declared = text.lines().filter_map(|line| line.split_once(word).map(|(_, rest)| rest));
    let names = declared.filter_map(|rest| rest.split_once('(').map(|(name, _)| format!("tw_{name}")));
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')).collect()
}

#[test]
fn the_header_declares_what_is_promised() {
    let header =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("include/tilewise.h")).expect("a header");
    let code: String =
        header.lines().filter(|line| !line.trim_start().starts_with('*')).map(|line| format!("{line}\n")).collect();
    let declared = functions(&code, " tw_").union(&functions(&code, "*tw_")).cloned().collect::<BTreeSet<_>>();
    assert_eq!(declared, promised());
}

#[test]
#[cfg(target_os = "linux")]
fn the_library_exports_what_is_promised_and_nothing_else() {
    let library = crate::c::library("libtilewise_capi.so");
    let Ok(listed) = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output() else {
        eprintln!("skipped: there is no nm");
        return;
    };
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).expect("names");
    let exported: BTreeSet<String> =
        listed.lines().filter_map(|line| Some(line.split(' ').nth(2)?.to_owned())).collect();
    assert_eq!(exported, promised());
}
