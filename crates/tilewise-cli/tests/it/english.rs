//! Texts for users are in plain English: subject, verb, the field's word. These phrases are signs of a riddle.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

/// What to write instead is behind each.
const RIDDLES: [(&str, &str); 8] = [
    (" is no ", "isn't a, isn't"),
    (" are no ", "aren't"),
    ("whatever it", "leave it out"),
    ("as if for", "as"),
    ("it is said", "the report says"),
    ("that which", "the noun"),
    ("that isn't there", "none needed"),
    ("foretold", "predicted"),
];

/// Phrases of comments for which the field has a noun, and the most lines that may have them. A ceiling only falls.
const IN_COMMENTS: [(&str, usize); 6] =
    [("What ", 94), ("The same", 15), ("so many", 1), ("so much", 0), ("nobody", 9), ("is none", 7)];

/// Folders whose comments are counted.
const SOURCES: [&str; 7] = ["crates", "testing", "xtask", "bench", "fuzz", "conformance", "python/src"];

/// Files that users read, or whose strings they read.
const TEXTS: [&str; 17] = [
    "README.md",
    "CHANGELOG.md",
    "SKILL.md",
    "llms.txt",
    "docs",
    "site/index.md",
    "web/README.md",
    "python/README.md",
    "python/package",
    "crates/tilewise/src",
    "crates/tilewise-audit/src",
    "crates/tilewise-cli/src",
    "crates/tilewise-kernel/src",
    "crates/tilewise-memory/src",
    "crates/tilewise-oom/src",
    "crates/tilewise-report/src",
    "crates/tilewise-capi/src",
];

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path());
        entries.for_each(|entry| files(&entry, found));
    } else if path.extension().is_some_and(|ending| ["md", "txt", "py", "rs"].iter().any(|known| ending == *known)) {
        found.push(path.to_owned());
    }
}

/// Whether users don't read a line: comments, and documentation of code but that of commands, which is their help.
fn is_for_developers(line: &str, is_help: bool) -> bool {
    let line = line.trim_start();
    line.starts_with("//!")
        || (line.starts_with("//") && !(is_help && line.starts_with("///")))
        || line.starts_with('#')
}

#[test]
fn texts_for_users_have_no_riddles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    TEXTS.iter().for_each(|text| files(&root.join(text), &mut found));
    assert!(found.len() > 100);
    let mut riddles = String::new();
    for path in found {
        // Messages of others, word for word.
        if path.components().any(|part| part.as_os_str() == "texts") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a text");
        let is_code = path.extension().is_some_and(|ending| ending == "rs" || ending == "py");
        let is_help = path.components().any(|part| part.as_os_str() == "commands");
        // What a document shows of an answer is checked where it is written.
        let mut is_shown = false;
        for (number, line) in text.lines().enumerate() {
            is_shown ^= line.starts_with("```");
            if if is_code { is_for_developers(line, is_help) } else { is_shown } {
                continue;
            }
            let fine = ["there is no ", "There is no ", "there are no ", "no longer"];
            let line = fine.iter().fold(line.to_owned(), |line, fine| line.replace(fine, ""));
            for (riddle, instead) in RIDDLES.iter().filter(|(riddle, _)| line.contains(riddle)) {
                riddles += &format!("{}:{}: `{riddle}` → {instead}\n", path.display(), number + 1);
            }
        }
    }
    assert!(riddles.is_empty(), "{riddles}");
}

/// The words of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let words = line.trim_start().strip_prefix("//")?;
    Some(words.trim_start_matches(['/', '!']).trim_start())
}

#[test]
fn comments_name_things() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    SOURCES.iter().for_each(|folder| files(&root.join(folder), &mut found));
    found.retain(|path| path.extension().is_some_and(|ending| ending == "rs"));
    assert!(found.len() > 500, "the sources are read");
    for (phrase, ceiling) in IN_COMMENTS {
        let is_start = phrase.starts_with(char::is_uppercase);
        let mut lines = Vec::new();
        for path in &found {
            let text = fs::read_to_string(path).expect("a source");
            let has = |words: &str| if is_start { words.starts_with(phrase) } else { words.contains(phrase) };
            let of_file = text.lines().zip(1..).filter(|(line, _)| comment(line).is_some_and(has));
            lines.extend(of_file.map(|(line, number)| format!("{}:{number}: {}", path.display(), line.trim())));
        }
        assert_eq!(
            lines.len(),
            ceiling,
            "`{phrase}` in comments; lower the ceiling where there are fewer:\n{}",
            lines.join("\n")
        );
    }
}

/// Folders whose strings are sentences of a report.
const STRINGS: [&str; 4] =
    ["crates/tilewise-audit/src", "crates/tilewise-draw/src", "crates/tilewise-report/src", "python/package"];

/// The strings of a source, each on one line as it is written; of Rust, those before its tests.
fn strings(text: &str, is_rust: bool) -> Vec<String> {
    let text = text.split("#[cfg(test)]").next().filter(|_| is_rust).unwrap_or(text);
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['"', '\n', '\'']) {
        let (at, behind) = (&rest[start..=start], &rest[start + 1..]);
        rest = match at {
            "\n" if ["//", "#"].iter().any(|sign| behind.trim_start().starts_with(sign)) => {
                behind.find('\n').map_or("", |end| &behind[end..])
            }
            // A letter, not a lifetime.
            "'" if behind.starts_with("\"'") => &behind[2..],
            "'" if behind.starts_with("\\\"'") => &behind[3..],
            "\"" => {
                let is_end = |(at, _): &(usize, &str)| {
                    behind[..*at].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 0
                };
                let end = behind.match_indices('"').find(is_end).map_or(behind.len(), |(end, _)| end);
                let pieces = behind[..end].split("\\\n").map(str::trim_start);
                found.push(pieces.collect::<String>());
                behind.get(end + 1..).unwrap_or_default()
            }
            _ => behind,
        };
    }
    found
}

/// A sentence that is written twice is in two wordings as soon as one of them is changed.
#[test]
fn sentences_are_written_once() {
    /// Words of a clause; fewer may be a label.
    const WORDS: usize = 6;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    STRINGS.iter().for_each(|folder| files(&root.join(folder), &mut found));
    let mut places: HashMap<String, Vec<String>> = HashMap::new();
    for path in &found {
        let text = fs::read_to_string(path).expect("a source");
        let is_rust = path.extension().is_some_and(|ending| ending == "rs");
        for sentence in strings(&text, is_rust) {
            // A docstring's quotes open no string.
            if sentence.split_whitespace().count() >= WORDS && !sentence.contains('\n') {
                places.entry(sentence).or_default().push(path.display().to_string());
            }
        }
    }
    assert!(places.len() > 500, "the sources are read: {}", places.len());
    let mut twice: Vec<_> = places.into_iter().filter(|(_, places)| places.len() > 1).collect();
    twice.sort();
    assert!(twice.is_empty(), "{twice:#?}");
}
