//! Checks of a release: `cargo xtask deny`, `semver` and `publish`. Each prints one line at its end.

use crate::tools::install;
use std::env;
use xshell::{Shell, cmd};

/// The placeholder in `Cargo.toml`, until the repository has an address.
const PLACEHOLDER: &str = "github.com/OWNER/";

/// `cargo xtask deny`: licenses, bans and sources of all dependencies, by `deny.toml`, and RustSec's advisories.
pub(crate) fn deny(shell: &Shell) -> anyhow::Result<()> {
    install(shell, "deny")?;
    cmd!(shell, "cargo deny --all-features check licenses bans sources").run()?;
    // RustSec's advisories are a Git repository, which no registry carries.
    let fetched = cmd!(shell, "cargo deny fetch db").run();
    match fetched {
        Ok(()) => cmd!(shell, "cargo deny --all-features check --disable-fetch advisories").run()?,
        Err(error) if env::var_os("CI").is_some() => return Err(error.into()),
        Err(_) => eprintln!("RustSec's advisories can't be had here, and were not checked"),
    }
    let packages =
        cmd!(shell, "cargo tree --workspace --all-features --edges normal,build --prefix none --no-dedupe").quiet();
    let packages = packages.read()?;
    let mut packages: Vec<&str> = packages.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    packages.sort_unstable();
    packages.dedup();
    eprintln!("licenses, bans and sources of {} packages are allowed", packages.len());
    Ok(())
}

/// `cargo xtask semver`: compares the public interfaces of all published crates with those of a git revision, or of a
/// folder with an earlier tree.
///
/// The default is the newest tag `v…`.
pub(crate) fn semver(shell: &Shell, baseline: Option<&str>) -> anyhow::Result<()> {
    let baseline = match baseline {
        Some(baseline) => baseline.to_owned(),
        None => {
            let tags = cmd!(shell, "git tag --list v* --sort -version:refname").quiet().read()?;
            let Some(tag) = tags.lines().next() else {
                eprintln!(
                    "there is no earlier release (no tag `v…`) to compare the interfaces with: nothing was checked"
                );
                return Ok(());
            };
            tag.to_owned()
        }
    };
    install(shell, "semver-checks")?;
    let folder = shell.current_dir().join(&baseline);
    let is_folder = folder.is_dir();
    let option = if is_folder { "--baseline-root" } else { "--baseline-rev" };
    let had = |name: &str| {
        let manifest = format!("crates/{name}/Cargo.toml");
        if is_folder {
            return folder.join(manifest).exists();
        }
        cmd!(shell, "git cat-file -e {baseline}:{manifest}").quiet().ignore_stderr().run().is_ok()
    };
    let (earlier, new): (Vec<String>, Vec<String>) = published(shell)?.into_iter().partition(|name| had(name));
    let packages = earlier.iter().flat_map(|name| ["--package", name]);
    cmd!(shell, "cargo semver-checks {packages...} {option} {baseline}").run()?;
    eprintln!("the interfaces of {} crates are compatible with {baseline}; new since: {}", earlier.len(), new.len());
    Ok(())
}

/// `cargo xtask publish`: packages every published crate, and builds each from its package and those of the others, as
/// crates.io would. Uploads nothing.
pub(crate) fn publish(shell: &Shell) -> anyhow::Result<()> {
    cmd!(shell, "cargo publish --workspace --dry-run --allow-dirty").run()?;
    eprintln!("{} crates can be published", published(shell)?.len());
    if shell.read_file("Cargo.toml")?.contains(PLACEHOLDER) {
        eprintln!("before that, write the repository's address into Cargo.toml: `repository` is a placeholder");
    }
    Ok(())
}

/// The crates that crates.io gets.
fn published(shell: &Shell) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for folder in shell.read_dir("crates")? {
        let is_private = shell.read_file(folder.join("Cargo.toml"))?.lines().any(|line| line == "publish = false");
        let name = folder.file_name().and_then(|name| name.to_str());
        names.extend(name.filter(|_| !is_private).map(str::to_owned));
    }
    Ok(names)
}
