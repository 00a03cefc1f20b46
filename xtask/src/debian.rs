//! Debian's packages, where the system or rustup lacks what a verb needs.

use anyhow::Context;
use std::path::Path;
use xshell::{Shell, cmd};

/// Installs packages, after renewing the package lists.
pub(crate) fn install(shell: &Shell, packages: &[&str]) -> anyhow::Result<()> {
    cmd!(shell, "apt-get update").quiet().ignore_stdout().run()?;
    Ok(cmd!(shell, "apt-get install --yes --no-install-recommends {packages...}").run()?)
}

/// Unpacks packages into a folder, without installing them.
///
/// They are the system's own, or those of the suites named: then apt works in a separate folder, with the system's
/// mirror and keys.
pub(crate) fn unpack(shell: &Shell, packages: &[&str], suites: &[&str], folder: &Path) -> anyhow::Result<()> {
    let apt = folder.join("apt");
    for part in ["lists/partial", "cache/archives/partial", "packages"] {
        shell.create_dir(apt.join(part))?;
    }
    let options = if suites.is_empty() { Vec::new() } else { separate(shell, suites, &apt)? };
    {
        let _here = shell.push_dir(apt.join("packages"));
        cmd!(shell, "apt-get").args(&options).arg("download").args(packages).run()?;
    }
    for package in shell.read_dir(apt.join("packages"))? {
        cmd!(shell, "dpkg --extract {package} {folder}").run()?;
    }
    Ok(shell.remove_path(apt)?)
}

/// Options with which apt reads only these suites, and keeps its lists in that folder. Also reads the suites.
fn separate(shell: &Shell, suites: &[&str], apt: &Path) -> anyhow::Result<Vec<String>> {
    let mirrors = cmd!(shell, "apt-get indextargets --format $(REPO_URI)").quiet().read()?;
    let mirror =
        mirrors.lines().find(|line| line.trim_end_matches('/').ends_with("/debian")).context("no mirror of Debian")?;
    let list: String = suites.iter().map(|suite| format!("deb {mirror} {suite} main\n")).collect();
    shell.write_file(apt.join("sources.list"), list)?;
    let apt = apt.display();
    let options = vec![
        format!("-oDir::Etc::sourcelist={apt}/sources.list"),
        "-oDir::Etc::sourceparts=/dev/null".to_owned(),
        format!("-oDir::State::lists={apt}/lists"),
        format!("-oDir::Cache={apt}/cache"),
        "-oAcquire::Languages=none".to_owned(),
        "-oAPT::Sandbox::User=root".to_owned(),
    ];
    // A mirror need not have every suite.
    _ = cmd!(shell, "apt-get").args(&options).arg("update").run();
    Ok(options)
}
