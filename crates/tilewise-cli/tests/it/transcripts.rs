//! The output of the command line, word for word: the transcripts in `tests/cmd` and in the README. `TRYCMD=overwrite`
//! renews them.

use std::{env, path::Path};

#[test]
fn transcripts_hold() {
    // Paths in transcripts are relative to the root of the repository, as in the README.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    env::set_current_dir(root).expect("the workspace");
    // Pictures are drawn in ASCII unless the locale is UTF-8.
    trycmd::TestCases::new()
        .env("LC_ALL", "C.UTF-8")
        .case("README.md")
        .case("docs/*.md")
        .case("docs/errors/*.md")
        .case("crates/tilewise-cli/tests/cmd/*.trycmd");
}
