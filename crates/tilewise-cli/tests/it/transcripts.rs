//! What the command line prints, word for word: the transcripts in `tests/cmd` and in the README. `TRYCMD=overwrite`
//! renews them.

use std::{env, path::Path};

#[test]
fn transcripts_hold() {
    // Transcripts name files as a reader of the README does: from the root.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    env::set_current_dir(root).expect("the workspace");
    // Pictures keep to ASCII where the locale does not promise more.
    trycmd::TestCases::new()
        .env("LC_ALL", "C.UTF-8")
        .case("README.md")
        .case("docs/*.md")
        .case("crates/tilewise-cli/tests/cmd/*.trycmd");
}
