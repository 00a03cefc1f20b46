//! Texts for users are in plain English: subject, verb, the field's word. These phrases are signs of a riddle.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

/// Phrases, each with its replacement.
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

/// Phrases of comments for which the field has a noun, and the most lines that may have them: help texts, which tests
/// record. A ceiling only falls.
const IN_COMMENTS: [(&str, usize); 8] = [
    ("What ", 4),
    ("The same", 5),
    ("So many", 0),
    ("Nobody", 0),
    ("so many", 0),
    ("so much", 0),
    ("nobody", 0),
    ("is none", 1),
];

/// Endings of files whose comments, or whose prose, are counted.
const COMMENTED: [&str; 10] = ["rs", "py", "ts", "mjs", "js", "css", "yml", "toml", "sh", "md"];

/// Files that `cargo xtask` writes: their words are strings of the program, and some are of its last run.
const GENERATED: [&str; 4] = ["TABLE.md", "LEDGER.md", "RESULTS.md", "VERSIONS.md"];

/// Folders that tools make or fill; those that begin with a dot are left out, too, but for `.github`.
const MADE: [&str; 7] = ["target", "node_modules", "dist", "build", "pkg", "test-results", "__pycache__"];

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

/// Endings of texts for users.
const READ: [&str; 4] = ["md", "txt", "py", "rs"];

fn files(path: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path());
        let is_ours = |entry: &PathBuf| {
            let name = entry.file_name().unwrap_or_default().to_string_lossy();
            !MADE.contains(&&*name) && (!name.starts_with('.') || name == ".github")
        };
        entries.filter(is_ours).for_each(|entry| files(&entry, endings, found));
    } else if endings.contains(&ending(path)) {
        found.push(path.to_owned());
    }
}

fn ending(path: &Path) -> &str {
    path.extension().and_then(|ending| ending.to_str()).unwrap_or_default()
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
    TEXTS.iter().for_each(|text| files(&root.join(text), &READ, &mut found));
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
        // Answers in a document are checked where they are written.
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

/// The words of each line that is a comment, a docstring or a document's prose.
fn comments<'a>(ending: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    let signs: &[&str] = match ending {
        "rs" => &["//"],
        "ts" | "mjs" | "js" | "css" => &["//", "/*", "*"],
        _ => &["#"],
    };
    // In a document's fence, or in a string of Python; that is a docstring if it begins a line.
    let (mut is_inside, mut is_docstring) = (false, false);
    let mut is_words = |line: &str| match ending {
        "md" => {
            let is_fence = line.starts_with("```");
            is_inside ^= is_fence;
            !is_fence && !is_inside
        }
        "py" => {
            is_docstring = if is_inside { is_docstring } else { line.starts_with("\"\"\"") };
            is_inside ^= line.matches("\"\"\"").count() % 2 == 1;
            is_docstring || line.starts_with('#')
        }
        _ => signs.iter().any(|sign| line.starts_with(sign)),
    };
    let lines = (1..).zip(text.lines().map(str::trim_start));
    let words = lines.filter(|(_, line)| is_words(line));
    words.map(|(number, line)| (number, line.trim_start_matches(|sign| "/!*#\"->| ".contains(sign)))).collect()
}

#[test]
fn comments_name_things() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    files(&root, &COMMENTED, &mut found);
    found.retain(|path| !GENERATED.iter().any(|name| path.ends_with(name)));
    assert!(found.len() > 1000, "the sources are read");
    let texts: Vec<_> = found.iter().map(|path| (path, fs::read_to_string(path).expect("a source"))).collect();
    for (phrase, ceiling) in IN_COMMENTS {
        let is_start = phrase.starts_with(char::is_uppercase);
        let has = |words: &str| {
            // A question may begin so.
            if is_start { words.starts_with(phrase) && !words.contains('?') } else { words.contains(phrase) }
        };
        let mut lines = Vec::new();
        for (path, text) in &texts {
            let of_file = comments(ending(path), text).into_iter().filter(|(_, words)| has(words));
            lines.extend(of_file.map(|(number, words)| format!("{}:{number}: {words}", path.display())));
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
    STRINGS.iter().for_each(|folder| files(&root.join(folder), &READ, &mut found));
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
