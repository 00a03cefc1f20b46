//! Inputs of `audit`: cut, foreign and unusual texts, protos, dump folders.

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tilewise_testing::programs;

const STEM: &str = "module_0054.jit_f.cl_1003875606.after_optimizations";

struct Run {
    status: Option<i32>,
    objects: Vec<Value>,
    stderr: String,
}

impl Run {
    fn error_kind(&self) -> &str {
        self.objects[0]["error"]["kind"].as_str().unwrap_or_default()
    }

    fn message(&self) -> &str {
        self.objects[0]["error"]["message"].as_str().unwrap_or_default()
    }
}

fn audit(path: &Path, flags: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewise"));
    let output = command.args(["audit", "--format", "json"]).args(flags).arg(path).output().unwrap();
    let lines = output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    Run {
        status: output.status.code(),
        objects: lines.map(|line| serde_json::from_slice(line).expect("a JSON object")).collect(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The rows and totals of a report, without the names of files.
fn facts(run: &Run) -> Value {
    let mut report = run.objects[0].clone();
    // Its name tells the compiler, too.
    for name in ["input", "source", "libtpu"] {
        report.as_object_mut().unwrap().remove(name);
    }
    // A plan in text may lack its end unseen, a proto can't.
    if let Some(plan) = report["compiler_plan"].as_object_mut() {
        plan.remove("is_whole");
    }
    report
}

/// An empty folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_program_of_another_machine_never_passes() {
    for name in ["cases/cpu.hlo", "cases/before_optimizations.v5e.txt"] {
        for flags in [["--tpu", "v5e"], ["--fail-above", "10%"]] {
            let run = audit(&programs::path(name), &flags);
            assert_eq!((run.status, run.error_kind()), (Some(2), "not_tpu"), "{name}");
            let help = run.objects[0]["error"]["help"].as_str().unwrap();
            assert!(help.contains("pip install") && help.contains("get_topology_desc"), "{help}");
        }
        let run = audit(&programs::path(name), &[]);
        assert_eq!((run.status, run.objects[0]["warnings"][0]["kind"].as_str()), (Some(0), Some("not_tpu")), "{name}");
        assert!(run.stderr.starts_with("warning: "), "{}", run.stderr);
    }
}

#[test]
fn a_cut_text_is_an_error_that_names_its_file_first() {
    let whole = fs::read(programs::example("gnn_large.v5e.hlo")).unwrap();
    let path = folder("cut").join("half.hlo");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let run = audit(&path, &[]);
    assert_eq!((run.status, run.error_kind()), (Some(2), "truncated"));
    assert!(run.message().starts_with(&format!("{}: the HLO text is cut off: it ends in line ", path.display())));
}

#[test]
fn every_module_of_a_text_is_reported() {
    let run = audit(&programs::path("cases/two_modules.hlo"), &[]);
    let modules: Vec<_> = run.objects.iter().map(|object| object["module"].as_str().unwrap()).collect();
    assert_eq!((run.status, modules), (Some(0), vec!["a", "b"]));
}

#[test]
fn a_proto_is_audited_as_its_text() {
    for name in ["rigid_frames.v6e.hlo", "host_weights_scan.v7x.hlo"] {
        let text = audit(&programs::path(name), &["--all"]);
        let proto = audit(&programs::path(&format!("{name}.pb")), &["--all"]);
        assert_eq!((text.status, facts(&text)), (Some(0), facts(&proto)), "{name}");
    }
}

#[test]
fn a_dump_is_one_report_and_says_what_was_taken_and_left() {
    let run = audit(&programs::path("dump"), &[]);
    assert_eq!((run.status, run.objects.len()), (Some(0), 1));
    let taken = format!("  {STEM}.txt, with the plan in {STEM}-buffer-assignment.txt\n");
    assert!(run.stderr.contains(": 1 program\n") && run.stderr.contains(&taken), "{}", run.stderr);
    let left = "live ranges (1), memory-usage reports (2), the same programs again (1), values of assignments (1)\n";
    assert!(run.stderr.ends_with(left), "the plans are the same: {}", run.stderr);

    let proto = folder("proto-of-a-dump");
    fs::copy(programs::path(&format!("dump/{STEM}.hlo.pb")), proto.join("renamed")).unwrap();
    assert_eq!(facts(&audit(&proto, &["--all"])), facts(&audit(&programs::path("dump"), &["--all"])));
}

/// A folder with a program whose `a` and `b` are alive together, and a plan that puts both at 0.
fn two_temporaries(folder_name: &str, first: &str) -> Run {
    let dump = folder(folder_name);
    let array = "f32[1024]{0:T(1024)}";
    let program = format!(
        "HloModule m, is_scheduled=true\n\nENTRY e {{\n  p = {array} parameter(0)\n  a = {array} negate(p)\n  \
         b = {array} negate(p)\n  c = {array} add(a, b)\n  ROOT d = {array} negate(c)\n}}\n"
    );
    let plan = format!(
        "BufferAssignment:\nallocation 0: size 4096, page 0, preallocated-temp:\n \
         value: <0 {first} @0> (size=4096,offset=0): {array}\n value: <1 b @0> (size=4096,offset=0): {array}\n"
    );
    fs::write(dump.join("m.hlo"), program).unwrap();
    fs::write(dump.join("m-buffer-assignment.txt"), plan).unwrap();
    audit(&dump, &[])
}

#[test]
fn a_plan_that_differs_is_reported() {
    let run = two_temporaries("another-plan", "a");
    let differences = run.objects[0]["compiler_plan"]["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{differences:?}");
}

#[test]
fn a_plan_of_another_program_is_left() {
    let run = two_temporaries("plan-of-another", "no_such_instruction");
    assert!(run.stderr.ends_with("  left: plans of other programs (1)\n"), "{}", run.stderr);
}

#[test]
fn a_buffer_assignment_alone_is_summed() {
    let run = audit(&programs::path(&format!("dump/{STEM}-buffer-assignment.txt")), &[]);
    let hbm = &run.objects[0]["memory_spaces"][0];
    assert_eq!(run.status, Some(0));
    // 964608 + 2 × 321536, and the results with their table, as the text says.
    assert_eq!((hbm["argument_bytes"].as_u64(), hbm["output_bytes"].as_u64()), (Some(1_607_680), Some(1_286_656)));
    assert_eq!(hbm["temporary_bytes"].as_u64(), Some(49_664));
    assert_eq!(run.objects[0]["allocations"][0]["bytes"].as_u64(), Some(102_721_536));
    let run = audit(&programs::path(&format!("dump/{STEM}-buffer-assignment.txt")), &["--fail-above", "1%"]);
    assert_eq!((run.status, run.error_kind()), (Some(2), "no_program"));
}

#[test]
fn other_files_of_a_dump_are_named() {
    for (end, what) in [
        ("-memory-usage-report.txt", "memory-usage report"),
        ("-memory-usage-report.pb", "memory-usage report"),
        ("-live-range.txt", "live ranges"),
        ("-buffer-assignment-values.txt", "list of values"),
    ] {
        let path = programs::path(&format!("dump/{STEM}{end}"));
        let run = audit(&path, &[]);
        assert_eq!((run.status, run.error_kind()), (Some(2), "not_hlo"), "{end}");
        assert!(run.message().starts_with(&path.display().to_string()) && run.message().contains(what), "{end}");
    }
}

#[test]
fn damaged_files_have_a_plain_answer() {
    let folder = folder("damaged");
    let text = fs::read(programs::path("rigid_frames.v6e.hlo")).unwrap();
    let proto = fs::read(programs::path("rigid_frames.v6e.hlo.pb")).unwrap();
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(text.iter().flat_map(|&byte| [byte, 0])).collect();
    let mut bad = text.clone();
    bad[5000] = 0xff;
    for (name, bytes, kind, words) in [
        ("utf16", utf16.as_slice(), "", ""),
        ("bad-byte", &bad, "not_utf8", "not UTF-8 text: a byte in line "),
        ("half-gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b", "truncated", "the gzip data ends too early"),
        ("half-proto", &proto[..8000], "truncated", "damaged or cut off"),
        ("noise", b"\x07\x00\xfe\xff", "not_utf8", "neither text nor a proto"),
    ] {
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        let run = audit(&path, &[]);
        assert_eq!(run.error_kind(), kind, "{name}");
        assert!(kind.is_empty() || run.message().starts_with(&format!("{}: ", path.display())), "{name}");
        assert!(run.message().contains(words), "{name}: {}", run.message());
        fs::remove_file(path).unwrap();
    }
    let run = audit(&folder, &[]);
    assert_eq!((run.status, run.error_kind()), (Some(2), "no_program"));
    assert!(run.message().starts_with(&folder.display().to_string()));
}

#[test]
fn programs_of_a_profile_are_audited_as_files_of_a_folder_are() {
    let path = programs::example("train.xplane.pb");
    let run = audit(&path, &[]);
    let modules: Vec<_> = run.objects.iter().map(|object| object["module"].as_str().unwrap()).collect();
    let helpers = ["jit_broadcast_in_dim", "jit_broadcast_in_dim", "jit_convert_element_type"];
    assert_eq!((run.status, modules), (Some(0), [&helpers[..], &["jit_evaluate", "jit_train_step"]].concat()));

    let named = |module: &str| audit(&path, &["--module", module]);
    let step = named("jit_train_step");
    assert_eq!((step.objects.len(), facts(&step)), (1, facts(&named("jit_train_step(6)"))));
    let source = path.join("jit_train_step(6)");
    assert_eq!(step.objects[0]["source"], source.to_str().unwrap());
    assert_eq!(named("jit_broadcast_in_dim").objects.len(), 2);
    // The profiler's own copy of the compiler's plan: all temporaries lie where it has them.
    let plan = &step.objects[0]["compiler_plan"];
    assert!(plan["values"].as_u64() > Some(40) && plan["differences"] == serde_json::json!([]), "{plan}");

    let missing = named("jit_train");
    assert_eq!((missing.status, missing.error_kind()), (Some(2), "no_such_module"));
    assert!(missing.message().contains("jit_train_step(6)"), "{}", missing.message());
    let text = audit(&programs::path("rigid_frames.v6e.hlo"), &["--module", "jit_f"]);
    assert_eq!((text.status, text.error_kind()), (Some(2), "usage"));

    let logs = folder("profiler-logs");
    let at = logs.join("plugins/profile/2026_01_01");
    fs::create_dir_all(&at).unwrap();
    fs::copy(&path, at.join("host.xplane.pb")).unwrap();
    fs::write(at.join("host.trace.json"), "{}").unwrap();
    let folder = audit(&logs, &["--module", "jit_train_step"]);
    assert_eq!((folder.status, facts(&folder)), (Some(0), facts(&step)));
    assert_eq!(audit(&logs, &[]).objects.len(), 5);

    let cut = logs.join("cut");
    fs::write(&cut, &fs::read(&path).unwrap()[..30_000]).unwrap();
    let run = audit(&cut, &[]);
    assert_eq!((run.status, run.error_kind()), (Some(2), "truncated"));
}

#[test]
fn a_picture_never_replaces_what_is_read() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replaced");
    fs::create_dir_all(&folder).expect("a folder");
    let (program, link) = (folder.join("program.html"), folder.join("link.html"));
    let text = "HloModule m, is_scheduled=true\n\nENTRY e {\n  ROOT a = f32[8,128]{1,0:T(8,128)} parameter(0)\n}\n";
    fs::write(&program, text).expect("a file");
    let _ = fs::remove_file(&link);
    #[cfg(unix)]
    std::os::unix::fs::symlink(&program, &link).expect("a link");
    for out in [&program, &link] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewise"));
        let done = command.args(["audit", "-o"]).arg(out).arg(&program).output().expect("the program runs");
        assert_eq!((done.status.code(), fs::read_to_string(&program).expect("a file").as_str()), (Some(2), text));
    }
}

/// A line of a program, alone: `audit` and `show` say the same of it, on one line or on several.
#[test]
fn a_line_alone_is_what_show_says_of_it() {
    let path = folder("a_line_alone").join("line.txt");
    for line in [
        "ROOT %add = f32[400000,12]{1,0:T(8,128)} add(%a, %b)",
        "%fusion.1 = bf16[8,128]{1,0:T(8,128)(2,1)S(1)} fusion(%p0, %p1), kind=kLoop,\n    calls=%fused",
        "add = F32[3,5]{1,0:T(2,2)} add(a,\n  b)",
        "sort.1 = (f32[3,5]{1,0:T(4,128)}, s32[3,5]{1,0:T(4,128)}) sort(x, y), dimensions={1}",
    ] {
        fs::write(&path, line).unwrap();
        let shown = Command::new(env!("CARGO_BIN_EXE_tilewise")).args(["show", "--format", "json", line]).output();
        let shown: Value = serde_json::from_slice(&shown.unwrap().stdout).expect("a JSON object");
        let audited = audit(&path, &[]);
        let total = &audited.objects[0]["memory_spaces"][0];
        assert_eq!(audited.objects[0]["memory_spaces"].as_array().map(Vec::len), Some(1), "{line}");
        for size in ["logical_bytes", "physical_bytes", "padding_bytes"] {
            assert_eq!((size, &total[size]), (size, &shown[size]), "{line}");
        }
    }
    fs::write(&path, "%bitcast.8 = f32[64,128]{1,0:T(8,128)} bitcast(%x)").unwrap();
    let told = Command::new(env!("CARGO_BIN_EXE_tilewise")).arg("audit").arg(&path).output().unwrap();
    assert!(String::from_utf8_lossy(&told.stdout).contains("No instruction here takes memory: `bitcast`"));
}

/// A text may name any path: lines are quoted from files below the folder that is named, and links don't lead out of it.
#[cfg(unix)]
#[test]
fn lines_are_quoted_from_below_the_folder_alone() {
    let all = folder("quoted");
    let root = all.join("root");
    fs::create_dir_all(root.join("src")).unwrap();
    fs::write(root.join("src/net.py"), "import jax\ny = x @ w\n").unwrap();
    fs::write(all.join("secret.py"), "key\nsecret\n").unwrap();
    std::os::unix::fs::symlink(all.join("secret.py"), root.join("link.py")).unwrap();
    let outside = all.join("secret.py").display().to_string();
    for (named, quoted) in [
        ("/home/me/project/src/net.py", Some("y = x @ w")),
        ("src/net.py", Some("y = x @ w")),
        ("../secret.py", None),
        ("src/../../secret.py", None),
        ("link.py", None),
        (&*outside, None),
        ("net.py", None),
    ] {
        let text = format!(
            "HloModule m, is_scheduled=true\nENTRY e {{\n  ROOT x = f32[8,128]{{1,0:T(8,128)}} parameter(0), \
             metadata={{op_name=\"x\" source_file=\"{named}\" source_line=2}}\n}}\n"
        );
        let path = all.join("net.hlo");
        fs::write(&path, text).unwrap();
        let run = audit(&path, &["--source", &root.display().to_string()]);
        assert_eq!(run.objects[0]["causes"][0]["quote"].as_str(), quoted, "{named}");
    }
    let path = all.join("net.hlo");
    assert_eq!(audit(&path, &["--source", "/nowhere"]).status, Some(2));
}
