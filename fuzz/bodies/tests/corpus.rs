//! Every input of the corpora and every regression goes through its target once.

use std::{
    fs,
    path::{Path, PathBuf},
};
use tilewise_fuzz_bodies::TARGETS;
use tilewise_testing::corpus;

/// What a folder beside this crate holds, sorted.
fn entries(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// `cargo xtask fuzz --unpack` writes an input of that number into a file of that name.
#[test]
fn the_corpora_hold() {
    for ((name, body), pack) in TARGETS.iter().zip(entries("corpus")) {
        let inputs = corpus::read(&pack).unwrap_or_else(|error| panic!("{}: {error}", pack.display()));
        assert!(inputs.len() > 10, "{name} has {} inputs", inputs.len());
        for (number, input) in inputs.iter().enumerate() {
            // If this panics or never ends, the last line says where.
            println!("{name} {number:04}");
            body(input);
        }
    }
}

#[test]
fn packs_are_read_as_they_were_written() {
    let pack = Path::new(env!("CARGO_TARGET_TMPDIR")).join("test.pack");
    let inputs = [&b"b"[..], b"", b"\0\0\0\0\0", b"a", b"b"].map(<[u8]>::to_vec);
    corpus::write(&pack, inputs.to_vec()).expect("a folder");
    assert_eq!(corpus::read(&pack).expect("a pack"), [&b""[..], b"a", b"b", b"\0\0\0\0\0"]);
    let bytes = fs::read(&pack).expect("a file");
    fs::write(&pack, &bytes[..bytes.len() / 2]).expect("a folder");
    corpus::read(&pack).expect_err("half a pack");
}

/// Inputs that once failed.
#[test]
fn the_regressions_hold() {
    for folder in entries("regressions") {
        let (_, body) = TARGETS.iter().find(|(name, _)| folder.ends_with(name)).expect("a target's name");
        let name = folder.file_name().expect("a name").display().to_string();
        for regression in entries(&format!("regressions/{name}")) {
            println!("{}", regression.display());
            body(&fs::read(&regression).expect("a file"));
        }
    }
}

#[test]
fn every_target_has_a_program_and_a_corpus() {
    for folder in ["corpus", "fuzz_targets"] {
        let names: Vec<PathBuf> =
            entries(folder).iter().filter_map(|path| path.file_stem()).map(PathBuf::from).collect();
        assert_eq!(names, TARGETS.map(|(name, _)| PathBuf::from(name)), "{folder}");
    }
}
