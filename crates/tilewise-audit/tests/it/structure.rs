//! This crate's sources make no sentences, except for errors.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Every source file by its path of modules, such as `advice::rules::chunk`.
fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut waiting = vec![root.clone()];
    let mut sources = BTreeMap::new();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path: PathBuf = entry.path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            let name = path.strip_prefix(&root).expect("within").with_extension("");
            let words: Vec<&str> = name.iter().map(|word| word.to_str().expect("a name")).collect();
            let words = if words.last() == Some(&"mod") { &words[..words.len() - 1] } else { &words[..] };
            sources.insert(words.join("::"), fs::read_to_string(&path).expect("a text"));
        }
    }
    sources
}

/// Texts are made in `tilewise-report`; here are only those of errors and warnings.
#[test]
fn no_sentences_are_made_here() {
    const OF_ERRORS: &[&str] =
        &["failure", "report::audit", "program::content", "program::interface", "message::log", "together::error"];
    for (file, text) in sources().iter().filter(|(file, _)| !OF_ERRORS.contains(&file.as_str())) {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for (at, line) in code.iter().enumerate() {
            for (_, rest) in ["format!(", "write!(", "push_str("].iter().filter_map(|made| line.split_once(made)) {
                let text = [rest, code.get(at + 1).copied().unwrap_or_default()].join(" ");
                let literal = text.split('"').nth(1).unwrap_or_default();
                assert!(literal.split(' ').filter(|word| word.len() > 2).count() < 3, "{file}: {}", line.trim());
            }
        }
    }
}
