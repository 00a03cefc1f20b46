//! `cargo xtask site`: the documents, the web page and the crates' documentation as one site, in `target/site/out`.
//!
//! The site has the pages that `site/mkdocs.yml` names and all files that they link to, with the repository's paths:
//! the same links hold on both.

use crate::{python, tools::target_folder, web};
use anyhow::{Context, bail};
use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};
use xshell::{Shell, cmd};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Leaves the page and the crates' documentation out, which take minutes to build
    #[arg(long)]
    documents: bool,
    /// Tests its search, its links and its width on a phone in Chromium
    #[arg(long)]
    test: bool,
}

/// Builds the site; a link to nowhere is an error.
pub(crate) fn run(shell: &Shell, options: &Options) -> anyhow::Result<()> {
    let site = target_folder(shell).join("site");
    let (pages, out) = (site.join("pages"), site.join("out"));
    if pages.exists() {
        fs::remove_dir_all(&pages)?;
    }
    gather(shell, &pages)?;
    fs::create_dir_all(pages.join("reference"))?;
    fs::write(pages.join("reference/command-line.md"), command_line(shell)?)?;
    fs::write(pages.join("reference/python.md"), "# Python\n\n::: tilewise\n")?;
    for file in ["index.md", "extra.css", "search.js"] {
        fs::copy(shell.current_dir().join("site").join(file), pages.join(file))?;
    }
    let (explorer, api) = (pages.join("explorer"), pages.join("api"));
    if options.documents {
        // The targets of links.
        for index in [explorer.join("index.html"), api.join("tilewise/index.html")] {
            fs::create_dir_all(index.parent().unwrap_or(&pages))?;
            fs::write(index, "Left out of this build.")?;
        }
    } else {
        web::environment(shell)?;
        // The page leads to the documents beside it.
        let _documents = shell.push_env("VITE_DOCUMENTS", "../");
        web::build(shell, web::Size::Small)?;
        copy(&shell.current_dir().join("web/dist"), &explorer)?;
        let target = site.join("target");
        cmd!(shell, "cargo doc --quiet --locked --no-deps --workspace --lib --exclude xtask --target-dir {target}")
            .run()?;
        copy(&target.join("doc"), &api)?;
    }
    let python = python::with_packages(shell, "site", &["site/requirements.txt"])?;
    cmd!(shell, "{python} -m mkdocs build --quiet --config-file site/mkdocs.yml")
        .env("NO_MKDOCS_2_WARNING", "1")
        .env("TILEWISE_SITE_PAGES", &pages)
        .env("TILEWISE_SITE_OUT", &out)
        .run()?;
    println!("{}", out.display());
    if options.test {
        web::environment(shell)?;
        web::chromium(shell)?;
        web::site_tests(shell).env("TILEWISE_SITE_OUT", &out).run()?;
    }
    Ok(())
}

/// Copies the pages of the site, and the files that they link to.
fn gather(shell: &Shell, pages: &Path) -> anyhow::Result<()> {
    let root = shell.current_dir();
    let settings = fs::read_to_string(root.join("site/mkdocs.yml"))?;
    let named = settings.lines().filter_map(|line| line.rsplit_once(": ")).map(|(_, page)| PathBuf::from(page));
    let mut left: Vec<PathBuf> =
        named.filter(|page| page.extension().is_some_and(|extension| extension == "md")).collect();
    let mut seen = BTreeSet::new();
    while let Some(file) = left.pop() {
        if root.join(&file).is_dir() {
            bail!("a link to the folder {}: the site has files alone", file.display());
        }
        if !root.join(&file).is_file() || !seen.insert(file.clone()) {
            continue;
        }
        let to = pages.join(&file);
        fs::create_dir_all(to.parent().unwrap_or(pages))?;
        if file.extension().is_none_or(|extension| extension != "md") {
            fs::copy(root.join(&file), &to)?;
            continue;
        }
        let text = fs::read_to_string(root.join(&file))?;
        left.extend(links(&text).filter_map(|link| beside(&file, link)));
        fs::write(&to, with_explorer(&text, &file))?;
    }
    Ok(())
}

/// The page with the explorer, live, at each comment `<!-- explorer: SHAPE -->`.
fn with_explorer(text: &str, file: &Path) -> String {
    // A page is a folder on the site.
    let up = "../".repeat(file.components().count());
    let line = |line: &str| match line.strip_prefix("<!-- explorer: ").and_then(|line| line.strip_suffix(" -->")) {
        Some(shape) => format!(
            "<iframe title=\"{shape} in the explorer\" src=\"{up}explorer/index.html#shape={shape}\" loading=\"lazy\" \
             style=\"width: 100%; height: 46rem; border: 1px solid #8884; border-radius: 4px\"></iframe>\n"
        ),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// The files that Markdown links to, without the anchors.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(link, _)| link));
    let files = targets.map(|link| link.split_once('#').map_or(link, |(file, _)| file));
    files.filter(|link| !link.is_empty() && !link.contains("://") && !link.contains(char::is_whitespace))
}

/// The file in the repository that a link of another leads to.
fn beside(file: &Path, link: &str) -> Option<PathBuf> {
    let mut path = file.parent()?.to_path_buf();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => path.pop().then_some(())?,
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    Some(path)
}

/// The command line's own help, a section a verb.
fn command_line(shell: &Shell) -> anyhow::Result<String> {
    let help = |verb: &[&str]| {
        let command = cmd!(shell, "cargo run --quiet --package tilewise-cli -- {verb...} --help").quiet();
        command.read().with_context(|| format!("the help of {verb:?}"))
    };
    let all = help(&[])?;
    let Some((_, verbs)) = all.split_once("Commands:\n") else { bail!("the help lists no verbs") };
    // The description of a verb may take several lines.
    let verbs = verbs.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    let verbs = verbs.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split_whitespace().next());
    let mut page = format!("# Command line\n\n```text\n{all}\n```\n");
    // The Python package has the help of these, if it is installed.
    for verb in verbs.filter(|verb| !["help", "fit", "lock"].contains(verb)) {
        page.push_str(&format!("\n## tilewise {verb}\n\n```text\n{}\n```\n", help(&[verb])?));
    }
    Ok(page)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
