//! Inputs of `explain`: texts in other encodings, several files, logs; and its advice.

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tilewise_oom::Message;
use tilewise_report::{AsJson, Page, WriteText};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tilewise-oom/tests/data").join(name)
}

fn explain(paths: &[PathBuf]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewise"));
    let output = command.args(["explain", "--format", "json"]).args(paths).output().unwrap();
    let lines = output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("a JSON object")).collect()
}

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// An explanation without the name of its file.
fn facts(mut explained: Value) -> Value {
    explained.as_object_mut().unwrap().remove("input");
    explained
}

#[test]
fn encodings_change_nothing() {
    let path = data("gnn_edges_f32.txt");
    let text = fs::read_to_string(&path).unwrap();
    let plain = facts(explain(&[path]).remove(0));
    assert_eq!(plain["verdict"], "padding");
    let units = |to: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(to).collect::<Vec<u8>>();
    let marked: Vec<u8> = [0xff, 0xfe].into_iter().chain(units(u16::to_le_bytes)).collect();
    // Not UTF-8 around the message.
    let torn = [b"\xff\xfe\xfa log\n".as_slice(), text.as_bytes(), b"\n\xc3\x28 end"].concat();
    let objects: String =
        text.lines().map(|line| format!("{}\n", serde_json::json!({"level": "E", "message": line}))).collect();
    let paths = [
        file("marked.txt", &marked),
        file("little.txt", &units(u16::to_le_bytes)),
        file("big.txt", &units(u16::to_be_bytes)),
        file("torn.txt", &torn[3..]),
        file("objects.txt", objects.as_bytes()),
    ];
    let explained = explain(&paths);
    assert_eq!(explained.len(), paths.len());
    for (object, path) in explained.into_iter().zip(paths) {
        assert_eq!(facts(object), plain, "{}", path.display());
    }
}

#[test]
fn a_file_without_a_message_leaves_the_others() {
    let explained = explain(&[data("README.md"), data("bound_v4.txt")]);
    assert_eq!(explained[0]["error"]["kind"], "not_an_oom_message");
    assert_eq!(explained[1]["verdict"], "size");
}

#[test]
fn arrays_inside_a_program_get_no_layout() {
    for name in ["gnn_edges_f32.txt", "painted_mesh_s32.txt", "complex_fft.txt", "kv_cache_one_head.txt"] {
        let explained = explain(&[data(name)]).remove(0);
        for hint in explained["advice"].as_array().unwrap() {
            let is_of_layout = ["order", "transpose", "reshape"].contains(&hint["kind"].as_str().unwrap());
            let is_outside = ["argument", "result"].contains(&hint["target"].as_str().unwrap());
            assert!(!is_of_layout || is_outside, "{name} {hint}");
            // The savings of inner arrays are bounds, never promises.
            assert!(is_outside || hint["peak_bytes_saved"].is_null() || hint["is_bound"] == true, "{name} {hint}");
        }
    }
}

#[test]
fn arguments_go_by_their_own_name() {
    let text = "Ran out of memory in memory space hbm. Used 2.00G of 1.00G hbm. Exceeded hbm capacity by 1.00G.
  Largest program arguments and outputs in hbm:
  1. Size: 1.50G
     Operator: op_name=\"params['table']\"
     Shape: u32[3145728,1]{1,0:T(8,128)}
     XLA label: Argument 3 index {}
     ==========================
";
    let explained = explain(&[file("named.txt", text.as_bytes())]).remove(0);
    let hint = &explained["advice"][0];
    assert_eq!((hint["kind"].as_str(), hint["is_bound"].as_bool()), (Some("order"), Some(false)));
    let code = hint["code"].as_str().unwrap();
    assert!(code.starts_with("params['table'] = jax.device_put(params['table'], Format(Layout("), "{code}");
    assert!(hint["imports"].as_str().unwrap().contains("from jax.experimental.layout import Format, Layout"));
    assert_eq!(hint["peak_bytes_saved"], 3_145_728 * 512 - 3_145_728 * 4);
}

#[test]
fn frameworks_get_their_own_code() {
    let list = "Ran out of memory in memory space hbm. Used 9.00G of 8.00G hbm. Exceeded hbm capacity by 1.00G.
  Largest program allocations in hbm:
  1. Size: 4.00G
     Shape: bf16[2048,2,2048,128]{0,1,3,2:T(4,128)(2,1)}
     XLA label: broadcast.1 = broadcast(x)
     ==========================

  2. Size: 4.00G
     Shape: bf16[2048,64,128]{0,2,1:T(4,128)(2,1)}
     XLA label: copy.1 = copy(x)
     ==========================
";
    for (sign, import) in [
        ("File \"torch_xla/core/xla_model.py\"\n", "torch_xla"),
        ("jaxlib.XlaRuntimeError: ", "import jax"),
        ("", "import jax"),
    ] {
        let explained = explain(&[file("framework.txt", format!("{sign}{list}").as_bytes())]).remove(0);
        let hint = &explained["advice"][0];
        assert!(hint["imports"].as_str().unwrap().contains(import), "{sign} {hint}");
    }
    // Parts of a training step would all be kept for the gradient, so TensorFlow has none.
    let text = format!("File \"tensorflow/python/training.py\"\n{list}");
    let explained = explain(&[file("framework.txt", text.as_bytes())]).remove(0);
    assert!(explained["advice"][0]["code"].is_null(), "{explained}");
}

#[test]
fn a_cut_anywhere_is_explained() {
    let mut texts: Vec<String> = Vec::new();
    for folder in [data(""), data("public"), data("../../../../docs/errors/texts")] {
        let files = fs::read_dir(folder).unwrap().flatten().map(|file| file.path());
        let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "txt"));
        texts.extend(files.map(|path| fs::read_to_string(path).unwrap()));
    }
    let mut explained = 0;
    for text in &texts {
        for end in (0..text.len()).step_by(97).chain([text.len()]) {
            let Some(Ok(message)) = text.get(..end).map(Message::parse) else { continue };
            let explanation = tilewise_audit::explain(message, None);
            assert!(explanation.to_text(72).starts_with(|c: char| c.is_ascii_uppercase()));
            serde_json::to_value(AsJson(&explanation)).unwrap();
            explained += 1;
        }
    }
    assert!(texts.len() >= 34 && explained > 300, "{} {explained}", texts.len());
}

#[test]
fn absurd_figures_overflow_nothing() {
    let row =
        "1. Size: 15.99E\n Shape: f32[9,9]{1,0:T(8,128)}\n Unpadded size: 1.0K\n Tag: input window of f32[2].\n ====\n";
    for head in [
        "Ran out of memory in memory space hbm. Used 15.99E of 0B hbm. Exceeded hbm capacity by 15.99E.",
        "Ran out of memory in memory space vmem. Used 15.99E of 15.99E vmem. Exceeded vmem capacity by 15.99E.",
        "Attempting to reserve 15.99E at the bottom of memory. That was not possible. There are 15.99E free.",
    ] {
        let tables = "Total hbm usage >= 15.99E: reserved 15.99E program 15.99E arguments 15.99E\nOutput size 15.99E; \
                      shares 0B with arguments.\nProgram hbm requirement 15.99E: HLO temp 15.99E (0.0% utilization: \
                      Unpadded (0B) Padded (15.99E), 99999999999999999999.9% fragmentation (15.99E))\nLargest \
                      program allocations in hbm:\n";
        let text = format!("{head}\n{tables}{row}{row}{row}");
        let message = Message::parse(&text).unwrap();
        assert!(!tilewise_audit::explain(message, None).to_text(72).is_empty());
    }
    let (largest, none) = (u64::MAX, 0);
    for text in [
        format!(
            "Operand of shape ({largest}, {largest}) has tiling (16, 128), but its block shape ({largest}, {largest})"
        ),
        format!("Operand of shape (8, 8) has tiling ({none}, {none}), but its block shape (1, {none})"),
        format!("Slice shape along dimension {largest} must be aligned to tiling (8), but is {largest}."),
        format!("Slice shape along dimension 0 must be aligned to tiling ({none}), but is {none}."),
        format!("statically prove that index in dimension {largest} is a multiple of {none}"),
        format!(
            "KV cache page size calculated by vLLM ({none} Bytes) does not match with actual page size used by RPA kernel ({largest} Bytes)"
        ),
        format!(
            "KV cache page size calculated by vLLM ({largest} Bytes) does not match with actual page size used by RPA kernel (1 Bytes)"
        ),
        format!(
            "Executable(f) expected parameter 0 of size {largest} (f32[{0},{0}]) but got buffer with incompatible size {none} (f32[{0},{0}])",
            u64::MAX / 2
        ),
        format!("Executable(f) expected parameter 0 of size {none} but got buffer with incompatible size {largest}"),
        format!("UserWarning: Some donated buffers were not usable: f32[{0},{0}], f32[{0}].", u64::MAX / 2),
        format!(
            "Can't reduce memory use below -25.62GiB (-{largest} bytes) by rematerialization; only reduced to 1.00GiB ({none} bytes)"
        ),
        format!(
            "bytes_in_use: {largest}, bytes_reserved: {largest}, bytes_limit: {none}, largest_free_block_bytes: {largest}"
        ),
        format!("TPU Memory profiling: max_tokens={largest}, cell_size={largest}bytes"),
        format!("Allocation (size={largest}) would exceed memory (size={none})"),
        format!("Out of memory while trying to allocate {largest} bytes."),
    ] {
        let message = Message::parse(&text).unwrap_or_else(|_| panic!("{text}"));
        let explanation = tilewise_audit::explain(message, None);
        assert!(!explanation.to_text(72).is_empty() && serde_json::to_value(AsJson(&explanation)).is_ok(), "{text}");
    }
}

/// Each page begins with a title and two paragraphs or three, which `explain E1001` prints, and each message has one.
#[test]
fn pages_begin_with_what_is_printed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let mut count = 0;
    for page in Page::errors().chain(Page::advice()) {
        assert!(!page.title.is_empty() && (2..=3).contains(&page.paragraphs.len()), "{page:?}");
        count += usize::from(page.file() != "docs/advice.md");
    }
    let pages = fs::read_dir(&folder).expect("the folder").filter_map(Result::ok);
    let pages = pages.filter(|file| file.path().extension().is_some_and(|extension| extension == "md"));
    assert_eq!(pages.count(), count);
    // Each text is about what its page is about.
    for text in fs::read_dir(folder.join("texts")).expect("the texts").filter_map(Result::ok) {
        let message = Message::parse(&fs::read_to_string(text.path()).expect("a text")).expect("a message");
        let name = text.path().file_stem().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with(message.page()), "{name}: {}", message.page());
        assert!(Page::named(message.page()).is_some());
    }
}
