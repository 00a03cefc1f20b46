//! Every file of the corpora goes through its target once.

use std::{
    fs,
    path::{Path, PathBuf},
};
use tilewise_fuzz_bodies::TARGETS;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

#[test]
fn the_corpora_hold() {
    for (name, body) in TARGETS {
        let seeds = files(&format!("corpus/{name}"));
        assert!(seeds.len() > 10, "{name} has {} seeds", seeds.len());
        for seed in seeds {
            // If this panics or never ends, the last line says where.
            println!("{}", seed.display());
            body(&fs::read(&seed).expect("a file"));
        }
    }
}

#[test]
fn every_target_has_a_program_and_a_corpus() {
    for folder in ["corpus", "fuzz_targets"] {
        let names: Vec<PathBuf> = files(folder).iter().filter_map(|path| path.file_stem()).map(PathBuf::from).collect();
        assert_eq!(names, TARGETS.map(|(name, _)| PathBuf::from(name)), "{folder}");
    }
}
