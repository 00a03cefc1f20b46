//! Malicious inputs to the program: an exit status, a named error, bounded memory.
//!
//! On Linux the program runs under `ulimit -v`, and is killed if it allocates more.

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use serde_json::Value;
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    thread,
};

const MEGABYTE: usize = 1 << 20;

/// The program with a limit of `megabytes` of address space, its code, stacks and libraries included.
fn tilewise(megabytes: usize) -> Command {
    let program = env!("CARGO_BIN_EXE_tilewise");
    if !cfg!(target_os = "linux") {
        return Command::new(program);
    }
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v \"$0\" && exec \"$@\"", &(megabytes * 1024).to_string(), program]);
    command
}

/// Runs the program on the input that `write` writes; returns its JSON objects.
fn run(
    mut command: Command,
    arguments: &[&str],
    write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
) -> (ExitStatus, Vec<Value>) {
    command.args(arguments).args(["--format", "json"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().unwrap();
    // Writing fails if the program has ended; its status is checked below.
    let writer = thread::spawn(move || drop(write(&mut stdin)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let lines = output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    (output.status, lines.map(|line| serde_json::from_slice(line).expect("a JSON object")).collect())
}

/// The names of the errors of each line of `text`, empty without one.
fn kinds(verb: &str, text: impl Into<Vec<u8>>) -> Vec<String> {
    let text = text.into();
    let (status, objects) = run(tilewise(256), &[verb, "-"], move |stdin| stdin.write_all(&text));
    let kinds: Vec<String> = objects.iter().map(kind).collect();
    let expected = if kinds.iter().all(String::is_empty) { 0 } else { 2 };
    assert_eq!(status.code(), Some(expected), "{verb}: {kinds:?}");
    kinds
}

fn kind(object: &Value) -> String {
    object["error"]["kind"].as_str().unwrap_or_default().to_owned()
}

/// A file for one test, in cargo's folder for temporary files.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// The audit of a file: its exit status and the name of its error.
fn audit(path: &Path, megabytes: usize) -> (Option<i32>, String) {
    let (status, objects) = run(tilewise(megabytes), &["audit", path.to_str().unwrap()], |_| Ok(()));
    (status.code(), objects.first().map_or("nothing was written".to_owned(), kind))
}

#[test]
fn lines_of_shapes() {
    let lines: [(&[u8], &str); 14] = [
        (b"f32[2]", ""),
        (b"f32[2]\r", ""),
        (b"", "empty_input"),
        (b"\xff\xfe", "not_utf8"),
        (b"f32[2\xc3", "not_utf8"),
        (b"\xef\xbb\xbff32[2]", "syntax"),
        (b"f32[2]\0", "trailing_input"),
        (b"\0", "syntax"),
        (b"proto:", "invalid_proto"),
        (b"proto:1", "invalid_proto"),
        (b"proto:ffffffffffffffff7f", "invalid_proto"),
        (b"proto:100b1affffffff07", "invalid_proto"),
        ("ｆ32[2]".as_bytes(), "syntax"),
        (b"f32[2]", ""),
    ];
    let text: Vec<u8> = lines.iter().flat_map(|(line, _)| [line, &b"\n"[..]].concat()).collect();
    for verb in ["show", "steps"] {
        assert_eq!(kinds(verb, text.clone()), lines.map(|(_, kind)| kind), "{verb}");
    }
}

#[test]
fn deep_and_wide_shapes() {
    for (text, expected) in [
        ("(".repeat(20_000), "nesting_too_deep"),
        ("b(".repeat(20_000), "nesting_too_deep"),
        ("(".repeat(1024) + &")".repeat(1024), ""),
        (format!("f32[{}]", vec!["1"; 100_000].join(",")), ""),
        (format!("f32[{}]", "9".repeat(MEGABYTE)), "overflow"),
        (format!("f32[2]{{0:T({})}}", vec!["1"; 20_000].join(",")), ""),
        (format!("f32[2]{{0:T{}}}", "(1)".repeat(20_000)), ""),
    ] {
        assert_eq!(kinds("show", text), [expected]);
    }
}

#[test]
fn batch_lines() {
    let lines = [
        ("f32[3,5]{1,0:T(2,2)}\t2,3", ""),
        ("f32[3,5]{1,0:T(2,2)}\t@17", ""),
        ("f32[]\t", ""),
        ("f32[2]\t1\r", ""),
        ("f32[/*\t*/2]\t1", ""),
        ("", "malformed_batch_line"),
        ("f32[2]", "malformed_batch_line"),
        ("\t", "empty_input"),
        ("\t0", "empty_input"),
        ("f32[2]\t", "index_rank_mismatch"),
        ("f32[2]\t0,0", "index_rank_mismatch"),
        ("f32[2]\t0,", "syntax"),
        ("f32[2]\t,", "syntax"),
        ("f32[2]\tx", "syntax"),
        ("f32[2]\t+1", "syntax"),
        ("f32[2]\t１", "syntax"),
        ("f32[2]\t@", "syntax"),
        ("f32[2]\t@@1", "syntax"),
        ("f32[2]\t@1,1", "syntax"),
        ("f32[2]\t-1", "index_out_of_bounds"),
        ("f32[2]\t2", "index_out_of_bounds"),
        ("f32[2]\t18446744073709551615", "index_out_of_bounds"),
        ("f32[2]\t18446744073709551616", "overflow"),
        ("f32[2]\t@2", "offset_out_of_range"),
        ("f32[0]\t@0", "offset_out_of_range"),
        ("f32[2]\t@18446744073709551615", "offset_out_of_range"),
        ("f32[2]\t@18446744073709551616", "overflow"),
        ("f32[?]\t0", "unbounded_dimension"),
        ("(f32[2])\t0", "not_an_array"),
        ("token[]\t", "not_an_array"),
        ("f32[2]\t0\t1", "trailing_input"),
    ];
    let text: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
    let found = kinds("index", text);
    for ((line, expected), found) in lines.iter().zip(&found) {
        assert_eq!(found, expected, "{line:?}");
    }
    assert_eq!(found.len(), lines.len());
    assert_eq!(kinds("index", format!("f32[2]\t{}", "0,".repeat(MEGABYTE))), ["syntax"]);
    assert_eq!(kinds("index", format!("f32[2]\t{}", "9".repeat(MEGABYTE))), ["overflow"]);
    assert_eq!(kinds("index", "\t".repeat(MEGABYTE)), ["empty_input"]);
}

/// A line of that many megabytes, then a valid one. At most 4 MiB of a line are kept.
fn long_line(megabytes: usize) {
    let (status, objects) = run(tilewise(320), &["show", "-"], move |stdin| {
        let part = vec![b'1'; MEGABYTE];
        (0..megabytes).try_for_each(|_| stdin.write_all(&part))?;
        stdin.write_all(b"\nf32[2]\n")
    });
    assert_eq!(status.code(), Some(2));
    assert_eq!(objects.iter().map(kind).collect::<Vec<_>>(), ["line_too_long", ""]);
}

#[test]
fn a_line_above_the_limit() {
    long_line(8);
}

#[test]
#[ignore = "slow: `cargo xtask fuzz` runs it"]
fn a_line_of_a_gigabyte() {
    long_line(1024);
}

#[test]
fn files_that_are_no_programs() {
    let cases: [(&str, &[u8], &str); 10] = [
        ("empty", b"", "not_hlo"),
        ("nul", b"\0\0\0\0", "not_hlo"),
        ("latin1", b"x = f32[2] add(caf\xe9)", "not_utf8"),
        ("utf16", b"\xff\xfex\0", "not_hlo"),
        ("half-utf16", b"\xff\xfex", "not_utf8"),
        ("half-gzip", b"\x1f\x8b\x08\0", "truncated"),
        ("header", b"HloModule m, is_scheduled=true\n\nENTRY e {\n", "not_hlo"),
        ("truncated", b"HloModule m\n\nENTRY e {\n  x = f32[8]{0} parameter(0)\n  ROOT y = f32[8]{0", "truncated"),
        ("bom", b"\xef\xbb\xbfHloModule m\n\nENTRY e {\n  x = f32[8]{0} parameter(0)\n}\n", ""),
        (
            "circle",
            b"ENTRY f {\n a = f32[8]{0} call(a), to_apply=g\n}\ng {\n b = f32[8]{0} while(b), body=f, condition=g\n}\n",
            "",
        ),
    ];
    for (name, bytes, expected) in cases {
        let status = if expected.is_empty() { 0 } else { 2 };
        assert_eq!(audit(&file(name, bytes), 256), (Some(status), expected.to_owned()), "{name}");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty-folder");
    fs::create_dir_all(&folder).unwrap();
    assert_eq!(audit(&folder, 256), (Some(2), "no_program".to_owned()), "a folder");
}

/// Compresses that many megabytes of blanks, a member for each, and audits them.
#[cfg(unix)]
fn gzip_bomb(name: &str, megabytes: usize, memory: usize) {
    let blank = file("blank", &vec![b' '; MEGABYTE]);
    let member = Command::new("gzip").arg("-9c").arg(&blank).output().expect("gzip").stdout;
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut bomb = fs::File::create(&path).unwrap();
    (0..megabytes).for_each(|_| bomb.write_all(&member).unwrap());
    assert_eq!(audit(&path, memory), (Some(2), "gzip_too_large".to_owned()));
    fs::remove_file(path).unwrap();
}

/// The buffer of decompressed text grows by doubling, up to the limit of 4 GiB.
#[test]
#[cfg(unix)]
fn a_gzip_bomb() {
    gzip_bomb("bomb.gz", 64, 320);
}

/// Logs have any length, and shrink to little.
#[test]
#[cfg(unix)]
fn a_long_log_in_gzip() {
    let lines = file("lines", "step 17: loss 3.125, one of many lines\n".repeat(1 << 18).as_bytes());
    let last = file(
        "last",
        b"Attempting to reserve 1.00G at the bottom of memory. That was not possible. There are 7.00M free.\n",
    );
    let packed = |path: &Path| Command::new("gzip").arg("-9c").arg(path).output().expect("gzip").stdout;
    let path = file("long.log.gz", &[packed(&lines).repeat(12), packed(&last)].concat());
    let (status, objects) = run(tilewise(96), &["explain", path.to_str().unwrap()], |_| Ok(()));
    assert_eq!((status.code(), objects[0]["used_bytes"].as_u64()), (Some(0), Some(1 << 30)), "120 MB within 96");
}

#[test]
#[cfg(unix)]
#[ignore = "slow: `cargo xtask fuzz` runs it"]
fn a_gzip_bomb_of_a_gigabyte() {
    gzip_bomb("large-bomb.gz", 1024, 3200);
}

/// Arguments of each verb that reads files or lines, where `-` is an input.
const READING: [&[&str]; 12] = [
    &["audit"],
    &["explain"],
    &["kernel"],
    &["relayout", "--from", "f32[8,128]", "--to", "f32[8,128]{0,1}"],
    &["audit", "--against"],
    &["show"],
    &["steps"],
    &["index"],
    &["diff"],
    &["bitcast"],
    &["predict", "--tpu", "v5e"],
    &["edit"],
];

/// The arguments of a verb for an input: as a file, where it reads one.
fn arguments<'a>(verb: &[&'a str], input: &'a str) -> Vec<&'a str> {
    let of_file: &[&str] = match verb {
        ["relayout", ..] => &[input, concat!(env!("CARGO_TARGET_TMPDIR"), "/endless.out")],
        ["audit", "--against"] => &[input, input],
        ["edit"] => &[input, "delete=0"],
        _ => &[input],
    };
    [verb, of_file].concat()
}

/// Every verb before a file or a device, within 2 GB.
#[cfg(target_os = "linux")]
fn every_verb_before(input: &str) {
    for verb in READING {
        let reads_files = matches!(verb[0], "audit" | "explain" | "kernel" | "relayout");
        let mut command = tilewise(2000);
        command.args(arguments(verb, if reads_files { input } else { "-" })).args(["--format", "json"]);
        let given = fs::File::open(input).expect("an input");
        let output = command.stdin(given).stderr(Stdio::null()).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{verb:?} {input}");
        let first = output.stdout.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let object: Value = serde_json::from_slice(first).expect("a JSON object");
        assert!(!kind(&object).is_empty(), "{verb:?} {input}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn devices_without_an_end() {
    for device in ["/dev/zero", "/dev/urandom"] {
        every_verb_before(device);
    }
}

/// A file of six gigabytes takes no room on a disk, since none of them is written.
#[test]
#[cfg(target_os = "linux")]
#[ignore = "slow: `cargo xtask fuzz` runs it"]
fn six_gigabytes_of_nothing() {
    let path = file("nothing", b"");
    fs::File::options().write(true).open(&path).and_then(|file| file.set_len(6 << 30)).expect("room");
    every_verb_before(path.to_str().expect("text"));
    fs::remove_file(path).unwrap();
}

/// A log that goes on for three gigabytes, and ends without a message.
#[test]
#[cfg(target_os = "linux")]
#[ignore = "slow: `cargo xtask fuzz` runs it"]
fn a_log_of_three_gigabytes() {
    for verb in ["explain", "audit", "kernel"] {
        let (status, objects) = run(tilewise(2000), &[verb, "-"], |stdin| {
            let part = "step 17: loss 3.125, one of many lines\n".repeat(1 << 15);
            (0..(3_usize << 30) / part.len()).try_for_each(|_| stdin.write_all(part.as_bytes()))
        });
        assert_eq!((status.code(), objects.len()), (Some(2), 1), "{verb}");
        assert!(!kind(&objects[0]).is_empty(), "{verb}");
    }
}
