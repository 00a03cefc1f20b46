//! Nothing of a text is obeyed: what a terminal, a browser or a spreadsheet would act on is shown instead.

use std::{fs, path::Path, process::Command};

/// Texts that act, and how they are shown.
const ACTS: [(&str, &str); 10] = [
    // A colour is taken off.
    ("\u{1b}[31m", ""),
    ("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}"),
    ("\u{9b}2J", r"\u{9b}2J"),
    ("\rFits", r"\rFits"),
    ("\u{7f}", r"\u{7f}"),
    ("\u{202e}", r"\u{202e}"),
    ("\u{200b}", r"\u{200b}"),
    ("\u{2066}", r"\u{2066}"),
    // As XLA escapes them.
    (r"\033[2J", r"\u{1b}[2J"),
    (r"\nFits_1_TiB", r"\nFits_1_TiB"),
];

/// A program that has a text wherever XLA takes any.
fn program(text: &str) -> String {
    let metadata =
        |line: u32| format!("metadata={{op_name=\"jit(f)/{text}\" source_file=\"/tmp/{text}.py\" source_line={line}}}");
    // A carriage return ends a name that stands in no quotes.
    let name = text.replace('\r', "");
    format!(
        "HloModule m{name}, is_scheduled=true

ENTRY e {{
  a = f32[300,500]{{1,0:T(8,128)}} parameter(0), {}
  b = f32[300,500]{{0,1:T(8,128)}} copy(a), {}
  ROOT c = f32[300,500]{{1,0:T(8,128)}} copy(b), {}
}}
",
        metadata(1),
        metadata(2),
        metadata(3)
    )
}

/// Standard output and standard error, in colours.
fn printed(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewise"));
    let output = command.env("CLICOLOR_FORCE", "1").args(arguments).output().expect("the program runs");
    String::from_utf8([output.stdout, output.stderr].concat()).expect("text")
}

/// The text without the styles that the program itself prints.
fn unstyled(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| {
        let style = part.split_inclusive('m').next().filter(|style| style.ends_with('m'));
        let style = style.filter(|style| style.trim_end_matches('m').bytes().all(|b| b.is_ascii_digit() || b == b';'));
        plain + style.map_or("\u{1b}", |_| "") + &part[style.map_or(0, str::len)..]
    })
}

fn check(text: &str, what: &str) {
    let acts = |c: &char| c.is_control() && !matches!(c, '\n' | '\t') || tilewise::visible(&c.to_string()).len() > 4;
    let text = unstyled(text);
    let lines = text.lines().filter(|line| line.starts_with("Fits"));
    assert_eq!(lines.count(), 0, "{what}");
    if let Some(at) = text.find(|c| acts(&c)) {
        panic!("{what}: {:?}", text[at..].chars().take(60).collect::<String>());
    }
}

#[test]
fn what_acts_is_shown() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile");
    fs::create_dir_all(&folder).expect("a folder");
    for (number, (acts, shown)) in ACTS.into_iter().enumerate() {
        let path = folder.join(format!("{number}.hlo"));
        fs::write(&path, program(acts)).expect("a file");
        let path = path.to_str().expect("text");
        for format in ["human", "csv", "html", "trace"] {
            let text = printed(&["audit", "--all", "--format", format, path]);
            check(&text, &format!("{acts:?} as {format}"));
            let is_json = matches!(format, "html" | "trace");
            let shown = if is_json { shown.replace('\\', "\\\\") } else { shown.to_owned() };
            assert!(text.contains(&shown), "{acts:?} as {format}: {text}");
            // A style is ours or is shown.
            assert!(is_json || !text.contains("\u{1b}[31mp"), "{text}");
        }
        let message = format!(
            "Ran out of memory in memory space hbm. Used 294.50M of 250.00M hbm. Exceeded hbm capacity by 44.50M.
  Largest program allocations in hbm:
  1. Size: 195.31M
     Operator: op_name=\"jit(f)/{acts}\" source_file=\"/tmp/{acts}.py\" source_line=3
     Shape: f32[400000,12]{{1,0:T(8,128)}}
     ==========================
"
        );
        let log = folder.join(format!("{number}.log"));
        fs::write(&log, message).expect("a file");
        check(&printed(&["explain", log.to_str().expect("text")]), &format!("{acts:?} explained"));
    }
}

#[cfg(unix)]
#[test]
fn names_of_files_are_shown() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile_names\u{202e}");
    fs::create_dir_all(&folder).expect("a folder");
    let names = ["a\u{1b}]0;title\u{7}.hlo", "b\u{9b}2J\nFits.hlo"].map(|name| folder.join(name));
    names.iter().for_each(|name| fs::write(name, program("")).expect("a file"));
    let names = names.each_ref().map(|name| name.to_str().expect("text"));
    for format in ["human", "csv", "html"] {
        check(&printed(&["audit", "--format", format, names[0]]), format);
    }
    check(&printed(&["audit", "--tpu", "v5e", "--hbm-limit", "1KiB", names[0], names[1]]), "two");
    check(&printed(&["audit", folder.to_str().expect("text")]), "a folder");
    fs::write(names[1], "HloModule m\nENTRY e {").expect("a file");
    check(&printed(&["audit", names[1]]), "a failure");
    check(&printed(&["show", "f32[3,5]{1,0:T(2,2)}\u{202e}x\u{9b}2J"]), "a shape");
}
