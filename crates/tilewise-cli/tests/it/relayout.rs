//! Files converted by `tilewise relayout`, against the definition; and no other file is left behind.

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use serde_json::Value;
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};
use tempfile::TempDir;
use tilewise::{Shape, Tiled};
use tilewise_testing::{NaiveRelayout, Random};

/// Runs the program in a folder; returns its exit status and JSON object.
fn relayout(folder: &Path, arguments: &[&str]) -> (i32, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewise"));
    command.current_dir(folder).arg("relayout").args(arguments).args(["--format", "json"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    (output.status.code().expect("an exit"), serde_json::from_slice(&output.stdout).expect("a JSON object"))
}

/// The name of the error.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let (status, object) = relayout(folder, arguments);
    assert_eq!(status, 2, "{arguments:?}");
    object["error"]["kind"].as_str().expect("an error").to_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn noise(bytes: u64) -> Vec<u8> {
    Random::new(0).bytes(bytes)
}

/// The destination after a relayout, with zeros as padding.
fn expected(from: &Shape, to: &Shape, source: &[u8]) -> Vec<u8> {
    let mut destination = vec![0; usize::try_from(Tiled::new(to).unwrap().physical_bytes()).unwrap()];
    NaiveRelayout::new(from, to).run(source, &mut destination);
    destination
}

/// An element type, and its names in NumPy and safetensors.
type Kind = (&'static str, &'static str, &'static str);

const DIMENSIONS: [u64; 2] = [45, 67];

/// The header of a file with that extension; `None` where the format can't express the layout.
fn header(extension: &str, shape: &str, (_, descr, dtype): Kind) -> Option<Vec<u8>> {
    let fortran_order = match (extension, shape.split_once('{')?.1) {
        ("bin", _) => return Some(Vec::new()),
        (_, "1,0}") => "False",
        ("npy", "0,1}") => "True",
        _ => return None,
    };
    let [height, width] = DIMENSIONS;
    if extension == "npy" {
        let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran_order}, 'shape': ({height}, {width}), }}");
        return Some([&b"\x93NUMPY\x01\0\x76\0"[..], format!("{text:<117}\n").as_bytes()].concat());
    }
    let bytes = Tiled::new(&shape.parse().unwrap()).unwrap().physical_bytes();
    let text = format!(r#"{{"w":{{"dtype":"{dtype}","shape":[{height},{width}],"data_offsets":[0,{bytes}]}}}}"#);
    let text = format!("{text:<width$}", width = (text.len() + 8).next_multiple_of(64) - 8);
    Some([&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat())
}

/// From every kind of file to every kind, in types with and without a name in NumPy.
#[test]
fn files_hold_what_the_definition_says() {
    let folder = TempDir::new().unwrap();
    let kinds = [("bf16", "<V2", "BF16"), ("f32", "<f4", "F32"), ("s8", "|i1", "I8"), ("pred", "|b1", "BOOL")];
    let layouts = ["{1,0}", "{0,1}", "{1,0:T(8,128)}", "{0,1:T(8,128)(2,1)}", "{1,0:T(4)L(1000)}"];
    let extensions = ["bin", "npy", "safetensors"];
    for kind in kinds {
        for (from, to) in layouts.into_iter().flat_map(|from| layouts.map(|to| (from, to))) {
            let [from, to] = [from, to].map(|layout| format!("{}[45,67]{layout}", kind.0));
            let [source, destination] = [&from, &to].map(|shape| shape.parse::<Shape>().unwrap());
            let bytes = noise(Tiled::new(&source).unwrap().physical_bytes());
            let wanted = expected(&source, &destination, &bytes);
            for (given, made) in extensions.into_iter().flat_map(|given| extensions.map(|made| (given, made))) {
                let (Some(before), Some(head)) = (header(given, &from, kind), header(made, &to, kind)) else {
                    continue;
                };
                let (given, made) = (format!("in.{given}"), format!("out.{made}"));
                fs::write(folder.path().join(&given), [before, bytes.clone()].concat()).unwrap();
                let mut arguments = vec![&*given, &*made, "--from", &*from, "--to", &*to, "--check"];
                if format!("{given}{made}").contains("safetensors") {
                    arguments.extend(["--name", "w"]);
                }
                let (status, object) = relayout(folder.path(), &arguments);
                assert_eq!((status, &object["checked_elements"]), (0, &Value::from(45 * 67)), "{object}");
                assert_eq!(object["bytes"], bytes.len() + wanted.len());
                assert!(
                    fs::read(folder.path().join(&made)).unwrap() == [head, wanted.clone()].concat(),
                    "{arguments:?}"
                );
                fs::remove_file(folder.path().join(given)).unwrap();
                fs::remove_file(folder.path().join(made)).unwrap();
                assert_eq!(names(folder.path()), [""; 0]);
            }
        }
    }
}

#[test]
fn a_failure_leaves_everything_as_it_was() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("in.bin"), noise(60)).unwrap();
    fs::write(path("out.bin"), "old").unwrap();
    let to = "f32[3,5]{1,0:T(2,2)}";
    for (arguments, kind) in [
        (&["in.bin", "out.bin", "--from", "f32[3,6]", "--to", "f32[3,6]"][..], "buffer_length_mismatch"),
        (&["in.bin", "out.bin", "--from", "f32[3,5]", "--to", "f32[5,3]"], "shape_mismatch"),
        (&["in.bin", "out.bin", "--from", "(f32[3,5])", "--to", to], "not_an_array"),
        (&["in.bin", "out.bin", "--from", "f32[3,5", "--to", to], "syntax"),
        (&["in.bin", "out.bin", "--from", "f32[3,5]", "--to", "f32[?,5]"], "unbounded_dimension"),
        (&["in.bin", "out.bin", "--from", "", "--to", to], "empty_input"),
        (&["in.bin", "out.bin", "--from", "f32[3,5]", "--to", to, "--name", "w"], "unknown_name"),
        (&["in.bin", "out.safetensors", "--from", "f32[3,5]", "--to", "f32[3,5]"], "missing_name"),
        (&["in.bin", "o.safetensors", "--from", "f32[3,5]", "--to", to, "--name", "__metadata__"], "unknown_name"),
        (&["in.bin", "o.safetensors", "--from", "c128[3]", "--to", "c128[3]", "--name", "w"], "buffer_length_mismatch"),
        (&["in.bin", "o.safetensors", "--from", "s4[60]", "--to", "s4[60]", "--name", "w"], "unsupported_layout"),
        (&["-", "out.bin", "--from", "f32[3,5]", "--to", to], "not_a_file"),
        (&["in.bin", "-", "--from", "f32[3,5]", "--to", to], "not_a_file"),
        (&["/dev/zero", "out.bin", "--from", "f32[3,5]", "--to", to], "not_a_file"),
        (&[".", "out.bin", "--from", "f32[3,5]", "--to", to], "not_a_file"),
        (&["in.bin", ".", "--from", "f32[3,5]", "--to", to], "io"),
        (&["in.bin", "/dev/null", "--from", "f32[3,5]", "--to", to], "io"),
        (&["in.bin", "none/out.bin", "--from", "f32[3,5]", "--to", to], "io"),
    ] {
        assert_eq!(refused(folder.path(), arguments), kind, "{arguments:?}");
    }
    let high = format!("u8[{}60]", "1,".repeat(70));
    assert_eq!(refused(folder.path(), &["in.bin", "o.npy", "--from", &high, "--to", &high]), "unsupported_layout");
    assert_eq!(names(folder.path()), ["in.bin", "out.bin"]);
    assert_eq!((fs::read(path("in.bin")).unwrap(), fs::read(path("out.bin")).unwrap()), (noise(60), b"old".to_vec()));
}

/// A destination larger than the disk is an error before anything is written.
#[test]
#[cfg(target_os = "linux")]
fn a_disk_without_room() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("in.bin"), [1; 4]).unwrap();
    let arguments = ["in.bin", "in.bin", "--from", "u8[4]", "--to", "u8[4]{0:T(4611686018427387904)}"];
    let (status, object) = relayout(folder.path(), &arguments);
    assert_eq!(status, 2);
    assert!(object["error"]["message"].as_str().unwrap().contains("4611686018427387904 bytes"), "{object}");
    assert_eq!(
        (names(folder.path()), fs::read(folder.path().join("in.bin")).unwrap()),
        (vec!["in.bin".into()], vec![1; 4])
    );
}

#[test]
#[cfg(unix)]
fn one_file_as_both_through_every_kind_of_link() {
    let [from, to] = ["f32[3,5]{1,0}", "f32[3,5]{0,1}"].map(|shape| shape.parse().unwrap());
    let turned = expected(&from, &to, &noise(60));
    for (source, destination) in
        [("file", "file"), ("file", "soft"), ("soft", "file"), ("hard", "file"), ("file", "hard")]
    {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), noise(60)).unwrap();
        fs::hard_link(path("file"), path("hard")).unwrap();
        std::os::unix::fs::symlink("file", path("soft")).unwrap();
        let arguments = [source, destination, "--from", "f32[3,5]", "--to", "f32[3,5]{0,1}", "--check"];
        assert_eq!(relayout(folder.path(), &arguments).0, 0);
        assert_eq!(names(folder.path()), ["file", "hard", "soft"]);
        assert_eq!(fs::read(path(destination)).unwrap(), turned, "{source} -> {destination}");
        // The other name of a hard link keeps the old bytes, as after any other program that replaces files.
        let other = if destination == "hard" { "file" } else { "hard" };
        assert_eq!(fs::read(path(other)).unwrap(), noise(60), "{source} -> {destination}");
        assert!(path("soft").is_symlink());
    }
}

/// Opening a named pipe would wait for a writer; it must be an error instead.
#[test]
#[cfg(unix)]
fn pipes_are_not_waited_for() {
    let folder = TempDir::new().unwrap();
    assert!(Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
    let arguments = ["pipe", "out.bin", "--from", "f32[3,5]", "--to", "f32[3,5]{0,1}"];
    assert_eq!(refused(folder.path(), &arguments), "not_a_file");
    fs::write(folder.path().join("in.bin"), noise(60)).unwrap();
    let arguments = ["in.bin", "pipe", "--from", "f32[3,5]", "--to", "f32[3,5]{0,1}"];
    assert_eq!(refused(folder.path(), &arguments), "io");
    assert_eq!(names(folder.path()), ["in.bin", "pipe"]);
}

#[test]
fn arrays_of_no_elements_and_of_one() {
    let folder = TempDir::new().unwrap();
    for (from, to, bytes) in [
        ("f32[0,5]", "f32[0,5]{0,1:T(8,128)}", 0),
        ("f32[]", "f32[]{:T(2,128)}", 4),
        ("pred[1,1,1]", "pred[1,1,1]{0,1,2:E(1)}", 1),
    ] {
        fs::write(folder.path().join("in.bin"), noise(bytes)).unwrap();
        let (status, object) = relayout(folder.path(), &["in.bin", "out.bin", "--from", from, "--to", to, "--check"]);
        assert_eq!(status, 0, "{object}");
        assert_eq!(object["checked_elements"], u64::from(bytes > 0));
    }
}
