//! Every input of the corpora and every regression goes through its target once.

use std::{
    env, fs, panic,
    path::{Path, PathBuf},
};
use tilewise_fuzz_bodies::TARGETS;
use tilewise_testing::{Random, corpus};

/// The entries of a folder beside this crate, sorted.
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
            // If this panics or never ends, the last line names the input.
            println!("{name} {number:04}");
            body(input);
        }
    }
}

/// A fuzzer without feedback, for compilers without one. `CHANGES` is the number of inputs per target, or of `TARGET`.
#[test]
fn changed_inputs_hold() {
    let count = env::var("CHANGES").map_or(100, |count| count.parse().expect("a number"));
    let one = env::var("TARGET").ok();
    let wanted =
        TARGETS.iter().zip(entries("corpus")).filter(|((name, _), _)| one.as_deref().is_none_or(|one| one == *name));
    for ((name, body), pack) in wanted {
        let inputs = corpus::read(&pack).unwrap_or_else(|error| panic!("{}: {error}", pack.display()));
        let mut random = Random::new(count);
        for _ in 0..count {
            let input = changed(&inputs, &mut random);
            let held = panic::catch_unwind(|| body(&input));
            assert!(held.is_ok(), "{name}: b\"{}\"", input.escape_ascii());
        }
    }
}

/// One of the inputs with a few bytes changed, removed, or put in from another.
fn changed(inputs: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = inputs[random.below(inputs.len())].clone();
    for _ in 0..=random.below(3_usize) {
        let other = &inputs[random.below(inputs.len())];
        let [at, from] = [&input, other].map(|bytes| random.below(bytes.len() + 1));
        let length = random.below(9_usize);
        let end = (at + if random.percent(50) { length } else { 0 }).min(input.len());
        let taken = if random.percent(70) { &other[from..(from + length).min(other.len())] } else { &[] };
        input.splice(at..end, taken.iter().copied());
        if let (Some(byte), true) = (input.get_mut(at), random.percent(30)) {
            *byte = byte.wrapping_add(random.below(3_u8)).wrapping_sub(1);
        }
    }
    input
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
