//! The structure of the sources: no files of a crate or of the Python package import each other in a circle, nor do the
//! folders of crates that are seen only through their `mod.rs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The imports of each file from the others, both by their module paths, such as `advice::rules::chunk`.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Crates whose folders are seen only through their `mod.rs`, with the files that are exceptions.
const FOLDERS: &[(&str, &[&str])] = &[("crates/tilewise-audit", &["advice::finding"])];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every crate of the workspace.
fn crates() -> Vec<String> {
    let within = fs::read_dir(root().join("crates")).expect("a folder").flatten();
    let mut crates: Vec<String> =
        within.map(|entry| format!("crates/{}", entry.file_name().to_string_lossy())).collect();
    crates.extend(["conformance", "python", "testing", "xtask"].map(str::to_owned));
    crates.sort();
    crates
}

/// The texts of all files with this ending, by their module paths; a folder's own file has the folder's path.
fn sources(root: &Path, ending: &str, own: &[&str]) -> BTreeMap<String, String> {
    let mut waiting = vec![root.to_owned()];
    let mut sources = BTreeMap::new();
    while let Some(folder) = waiting.pop() {
        for path in fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|found| found == ending) {
                let name = path.strip_prefix(root).expect("within").with_extension("");
                let mut words: Vec<&str> = name.iter().map(|word| word.to_str().expect("a name")).collect();
                if words.last().is_some_and(|last| own.contains(last)) {
                    words.pop();
                }
                sources.insert(words.join("::"), fs::read_to_string(&path).expect("a text"));
            }
        }
    }
    sources
}

/// A crate's files, without their tests; those of the root, `lib` and `main`, are one.
struct Crate {
    texts: BTreeMap<String, String>,
    /// The items that each file exports from others, by their names there.
    exports: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl Crate {
    fn read(name: &str) -> Self {
        let texts = sources(&root().join(name).join("src"), "rs", &["mod", "lib", "main"]);
        let texts = texts.into_iter().map(|(file, text)| {
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
            (file, code.join("\n"))
        });
        let mut found = Self { texts: texts.collect(), exports: BTreeMap::new() };
        let exported = found.texts.iter().flat_map(|(file, text)| {
            let public = uses(text).into_iter().filter(|(is_public, _)| *is_public);
            public.filter_map(|(_, path)| Some((file.clone(), found.resolved(file, &path)?)))
        });
        for (file, path) in exported.collect::<Vec<_>>() {
            let Some(name) = path.last().cloned() else { continue };
            found.exports.entry(file).or_default().insert(name, path);
        }
        found
    }

    /// A path from the crate's root; `None` for another crate's.
    fn resolved(&self, file: &str, path: &[String]) -> Option<Vec<String>> {
        let own: Vec<String> = file.split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let ups = path.iter().take_while(|word| *word == "super").count();
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "super" => Some([&own[..own.len().checked_sub(ups)?], &path[ups..]].concat()),
            "self" => Some([&own[..], &path[1..]].concat()),
            _ => {
                let beside = [&own[..], path].concat();
                self.texts.contains_key(&beside[..=own.len()].join("::")).then_some(beside)
            }
        }
    }

    /// The file that defines the item of a path, found through all files that only export it.
    fn file_of(&self, path: &[String], depth: usize) -> String {
        let Some(length) = (0..=path.len()).rev().find(|length| self.texts.contains_key(&path[..*length].join("::")))
        else {
            return String::new();
        };
        let file = path[..length].join("::");
        let exported = path.get(length).and_then(|name| self.exports.get(&file)?.get(name));
        match exported {
            Some(target) if depth < 8 => self.file_of(&[&target[..], &path[length + 1..]].concat(), depth + 1),
            _ => file,
        }
    }

    fn graph(&self) -> Graph {
        let mut graph = Graph::new();
        for (file, text) in self.texts.iter().filter(|(file, _)| !file.is_empty()) {
            let imported = uses(text).into_iter().map(|(_, path)| path).chain(inline(text));
            let files = imported.filter_map(|path| Some(self.file_of(&self.resolved(file, &path)?, 0)));
            // A folder's file names the files in it, which isn't an import; items of the root are everywhere.
            let others = files.filter(|other| {
                !other.is_empty()
                    && !other.starts_with(&format!("{file}::"))
                    && !file.starts_with(&format!("{other}::"))
            });
            graph.insert(file.clone(), others.filter(|other| other != file).collect());
        }
        graph
    }
}

/// The paths of all `use`s, and whether they are exported, too.
fn uses(text: &str) -> Vec<(bool, Vec<String>)> {
    let mut found = Vec::new();
    for (before, path) in text.split(';').filter_map(|statement| statement.rsplit_once("use ")) {
        let line = before.rsplit('\n').next().unwrap_or_default().trim();
        if line.is_empty() || line == "pub" || line.starts_with("pub(") {
            let mut paths = Vec::new();
            flatten(path, &[], &mut paths);
            found.extend(paths.into_iter().map(|path| (!line.is_empty(), path)));
        }
    }
    found
}

fn flatten(text: &str, prefix: &[String], found: &mut Vec<Vec<String>>) {
    let (path, group) = text.split_once('{').map_or((text, None), |(path, group)| (path, Some(group)));
    let path = path.split(" as ").next().unwrap_or_default();
    let words = path.split("::").map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned);
    let prefix: Vec<String> = prefix.iter().cloned().chain(words).collect();
    let Some(group) = group.map(|group| group.trim_end().strip_suffix('}').unwrap_or(group)) else {
        found.push(prefix);
        return;
    };
    let (mut depth, mut start) = (0_usize, 0);
    for (at, letter) in group.char_indices().chain([(group.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                if !group[start..at].trim().is_empty() {
                    flatten(&group[start..at], &prefix, found);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Paths of this crate outside of `use`s, such as `crate::heap::Heap`.
fn inline(text: &str) -> Vec<Vec<String>> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let starts = ["crate::", "super::"].into_iter().flat_map(|start| text.match_indices(start));
    let whole = starts.filter(|(at, _)| !text[..*at].ends_with(|letter| is_word(letter) || letter == ':'));
    let paths = whole.map(|(at, _)| {
        let end = text[at..].find(|letter| !is_word(letter) && letter != ':').map_or(text.len(), |length| at + length);
        text[at..end].split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect()
    });
    paths.collect()
}

/// The imports between files of the Python package: when loaded, when called, and for types.
fn of_package() -> Graph {
    let texts = sources(&root().join("python/package"), "py", &["__init__"]);
    let mut graph = Graph::new();
    for (file, text) in &texts {
        let mut others = BTreeSet::new();
        for line in text.replace("(\n", "(").lines() {
            let Some((from, names)) =
                line.trim_start().strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
            else {
                continue;
            };
            let from = from.replace('.', "::");
            for name in names.trim_start_matches('(').split([',', ')']).map(str::trim) {
                let whole = format!("{from}::{name}");
                others.insert(if texts.contains_key(&whole) { whole } else { from.clone() });
            }
        }
        others.retain(|other| texts.contains_key(other) && other != file && !file.starts_with(&format!("{other}::")));
        graph.insert(file.clone(), others);
    }
    graph
}

/// The files of each circle: those that reach each other.
fn circles(graph: &Graph) -> Vec<Vec<&str>> {
    let reached = |start: &str| {
        let mut found = BTreeSet::new();
        let mut waiting: Vec<&str> = graph.get(start).into_iter().flatten().map(String::as_str).collect();
        while let Some(file) = waiting.pop() {
            if found.insert(file) {
                waiting.extend(graph.get(file).into_iter().flatten().map(String::as_str));
            }
        }
        found
    };
    let all: BTreeMap<&str, BTreeSet<&str>> = graph.keys().map(|file| (file.as_str(), reached(file))).collect();
    let mut circles = BTreeSet::new();
    for (file, others) in all.iter().filter(|(file, others)| others.contains(*file)) {
        let within = others.iter().copied().filter(|other| all.get(other).is_some_and(|back| back.contains(file)));
        circles.insert(within.collect::<Vec<_>>());
    }
    circles.into_iter().collect()
}

#[test]
fn no_files_import_each_other() {
    let mut files = 0;
    for name in crates() {
        let graph = Crate::read(&name).graph();
        files += graph.len();
        assert_eq!(circles(&graph), Vec::<Vec<&str>>::new(), "{name}");
    }
    assert!(files > 500, "the sources are read");
}

#[test]
fn no_modules_of_the_package_import_each_other() {
    let graph = of_package();
    assert_eq!(circles(&graph), Vec::<Vec<&str>>::new());
    assert!(graph.values().map(BTreeSet::len).sum::<usize>() > 100, "the imports are read");
}

#[test]
fn folders_are_seen_through_their_own_files() {
    for (name, seen) in FOLDERS {
        let folder = |path: &str| path.split("::").next().unwrap_or_default().to_owned();
        let sources = Crate::read(name);
        let mut folders = Graph::new();
        for (file, text) in sources.texts.iter().filter(|(file, _)| !file.is_empty()) {
            for path in uses(text).into_iter().filter_map(|(_, path)| sources.resolved(file, &path)) {
                let Some(other) = path.first().filter(|other| **other != folder(file)) else { continue };
                let is_file = (2..path.len()).any(|depth| sources.texts.contains_key(&path[..depth].join("::")));
                let is_seen = seen.contains(&path[..path.len().min(2)].join("::").as_str());
                assert!(!is_file || is_seen, "{name}: {file} looks past the mod.rs of {other}: {}", path.join("::"));
                folders.entry(folder(file)).or_default().insert(other.clone());
            }
        }
        assert_eq!(circles(&folders), Vec::<Vec<&str>>::new(), "{name}");
        assert!(folders.len() >= 5, "the sources are read");
    }
}
