//! The structure of this crate's sources: folders that are seen through their `mod.rs` alone, and no circle of files or of
//! folders that import each other; no words but those of errors.

use std::{
    collections::{BTreeMap, BTreeSet},
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

/// What a file imports of this crate, each as a path of modules and an item.
fn imports(file: &str, text: &str) -> Vec<Vec<String>> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    for statement in text.split("\nuse ").skip(1).filter_map(|rest| rest.split_once(';')).map(|(use_, _)| use_) {
        flatten(&statement.replace(char::is_whitespace, ""), &[], &mut found);
    }
    let own: Vec<String> = file.split("::").map(str::to_owned).collect();
    let resolved = found.into_iter().filter_map(|path| match path.first().map(String::as_str) {
        Some("crate") => Some(path[1..].to_vec()),
        Some("super") => Some([&own[..own.len() - 1], &path[1..]].concat()),
        _ => None,
    });
    resolved.collect()
}

fn flatten(text: &str, prefix: &[String], found: &mut Vec<Vec<String>>) {
    let (path, group) = text.split_once('{').map_or((text, None), |(path, group)| (path, Some(group)));
    let words = path.split("::").filter(|word| !word.is_empty()).map(str::to_owned);
    let prefix: Vec<String> = prefix.iter().cloned().chain(words).collect();
    let Some(group) = group.map(|group| group.strip_suffix('}').unwrap_or(group)) else {
        found.push(prefix);
        return;
    };
    let (mut depth, mut start) = (0_usize, 0);
    for (at, letter) in group.char_indices().chain([(group.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if at > start {
                    flatten(&group[start..at], &prefix, found);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// A circle in a graph, if there is one.
fn circle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn visit(
        at: &str,
        graph: &BTreeMap<String, BTreeSet<String>>,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> bool {
        if let Some(start) = way.iter().position(|step| step == at) {
            way.drain(..start);
            return true;
        }
        if !done.insert(at.to_owned()) {
            return false;
        }
        way.push(at.to_owned());
        if graph.get(at).into_iter().flatten().any(|next| visit(next, graph, way, done)) {
            return true;
        }
        way.pop();
        false
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|start| {
        let mut way = Vec::new();
        visit(start, graph, &mut way, &mut done).then_some(way)
    })
}

#[test]
fn no_files_and_no_folders_import_each_other() {
    let sources = sources();
    let (mut files, mut folders) = (BTreeMap::new(), BTreeMap::new());
    for (file, text) in sources.iter().filter(|(file, _)| *file != "lib") {
        let folder = |path: &str| path.split("::").next().unwrap_or_default().to_owned();
        for import in imports(file, text) {
            let other = folder(&import[0]);
            if other != folder(file) {
                let is_file = (2..import.len()).any(|depth| sources.contains_key(&import[..depth].join("::")));
                let is_public = import[..import.len().min(2)].join("::") == "advice::finding";
                assert!(!is_file || is_public, "{file} looks past the mod.rs of {other}: {}", import.join("::"));
                folders.entry(folder(file)).or_insert_with(BTreeSet::new).insert(other);
                continue;
            }
            let longest = (1..=import.len()).rev().map(|length| import[..length].join("::"));
            let Some(target) = longest.into_iter().find(|path| sources.contains_key(path)) else { continue };
            // A mod.rs names the files beside it, which is no import of theirs.
            if target != *file && !target.starts_with(&format!("{file}::")) {
                files.entry(file.clone()).or_insert_with(BTreeSet::new).insert(target);
            }
        }
    }
    assert_eq!(circle(&folders), None, "folders");
    assert_eq!(circle(&files), None, "files");
    assert!(files.len() > 20 && folders.len() >= 5, "the sources are read");
}

/// Words are `tilewise-report`'s: here are only those of errors and warnings.
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
