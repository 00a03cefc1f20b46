//! The names of each number's changes, the pairs of owners, and the damage of a lock.

use serde_json::{Value, json};
use std::{collections::BTreeMap, slice};
use tilewise_audit::{Audit, Content, Program, audit};
use tilewise_hlo::Module;
use tilewise_report::{Allowed, ComparedProgram, Comparison, Lock, Outcome};
use tilewise_testing::programs;

const EXACT: Allowed = Allowed { tolerance: 0.01, exact: true, any_compiler: false };
const ANY_COMPILER: Allowed = Allowed { tolerance: 0.01, exact: false, any_compiler: true };

/// A lock's entry of an example, as JSON.
fn entry() -> Value {
    let text = std::fs::read_to_string(programs::example("gnn_large.v5e.hlo")).expect("an example");
    let program = Program::parse(text).expect("a program");
    let kept = ComparedProgram::of(&Audit::new(&program).run()).kept(None);
    let mut entry = serde_json::to_value(kept).expect("JSON");
    entry["hlo"] = json!("sha256:0");
    entry["compiler"] = json!({ "libtpu": "0.0.51" });
    entry
}

fn program(entry: &Value) -> ComparedProgram {
    serde_json::from_value(entry.clone()).expect("a program")
}

fn compared(before: &Value, after: &Value, allowed: Allowed) -> Comparison {
    Comparison::of("f", program(before), program(after), allowed)
}

/// Adds `by` bytes of temporaries, and of all: the plan of a program that is another.
fn grown(entry: &Value, by: i64) -> Value {
    let mut entry = entry.clone();
    for part in ["temporary", "total"] {
        let bytes = entry["bytes"][part].as_u64().expect("bytes");
        entry["bytes"][part] = json!(bytes.saturating_add_signed(by));
    }
    entry["hlo"] = json!("sha256:1");
    entry
}

#[test]
fn each_change_has_its_verdict() {
    let before = entry();
    let verdict = |after: &Value, allowed| compared(&before, after, allowed).verdict;
    assert_eq!((verdict(&before, Allowed::default()), verdict(&before, EXACT)), (Outcome::Same, Outcome::Same));
    let total = before["bytes"]["total"].as_i64().expect("bytes");
    let little = grown(&before, 1 << 19);
    assert_eq!((verdict(&little, Allowed::default()), verdict(&little, EXACT)), (Outcome::Same, Outcome::Worse));
    let more = grown(&before, total / 50);
    let tolerant = Allowed { tolerance: 0.05, ..Allowed::default() };
    assert_eq!((verdict(&more, Allowed::default()), verdict(&more, tolerant)), (Outcome::Worse, Outcome::Same));
    assert_eq!(verdict(&grown(&before, -total / 20), Allowed::default()), Outcome::Better);
    for (change, value) in [
        ("/recomputed", json!(1)),
        ("/collectives", json!({ "all-gather": { "count": 1, "bytes": 1 << 30 } })),
        ("/copies/bytes", json!(1_u64 << 40)),
        // A program that takes all of the limit does not fit.
        ("/bytes/limit", before["bytes"]["total"].clone()),
    ] {
        let mut after = before.clone();
        *after.pointer_mut(change).expect("a field") = value;
        assert_eq!(verdict(&after, Allowed::default()), Outcome::Worse, "{change}");
    }
    let mut renamed = before.clone();
    for owner in renamed["owners"].as_array_mut().expect("owners") {
        owner["file"] = json!("renamed.py");
    }
    assert_eq!(verdict(&renamed, EXACT), Outcome::Same);
}

/// By more than a tenth, and only where what nothing is known of is the same on both sides.
#[test]
fn times_are_compared_where_they_can_be() {
    let before = entry();
    let seconds = before["time"]["estimate_seconds"].as_f64().expect("a time");
    let with = |pointer: &str, value: Value, share: f64| {
        let mut after = before.clone();
        after["time"]["estimate_seconds"] = json!(seconds * share);
        *after.pointer_mut(pointer).expect("a field") = value;
        compared(&before, &after, Allowed::default())
    };
    let times = |comparison: &Comparison| comparison.changes.iter().filter(|change| change.what == "time").count();
    let slower = |share: f64| with("/recomputed", json!(0), share);
    assert_eq!([0.91, 1.09, 0.89, 1.11].map(|share| times(&slower(share))), [0, 0, 1, 1]);
    let twice = slower(2.0);
    assert_eq!((twice.verdict, twice.changes.len()), (Outcome::Same, 1));
    // Its gathers and scatters are only bounded, so no share is said.
    let words = "time: at least ≈860 µs → at least ≈1.7 ms a run, estimated from the compiler's own cycle counts, not measured, changed";
    assert!(twice.to_string().contains(words), "{twice}");
    assert!(Comparison::to_markdown(&[twice]).contains(&format!("- {words}")));
    for (pointer, value) in [
        ("/tpu", json!("v6e")),
        ("/time/unpriced", json!({})),
        ("/time/unpriced/gather_scatter_sort", json!(1)),
        ("/time", Value::Null),
    ] {
        assert_eq!(times(&with(pointer, value, 2.0)), 0, "{pointer}");
    }
    let mut known = before.clone();
    known["time"] = json!({ "estimate_seconds": 0.16 });
    let mut faster = known.clone();
    faster["time"]["estimate_seconds"] = json!(0.08);
    let words = "time: ≈160 ms → ≈80 ms (-50%) a run, estimated";
    let comparison = compared(&known, &faster, Allowed::default());
    assert!(comparison.to_string().contains(words), "{comparison}");
    let read: Comparison = serde_json::from_value(serde_json::to_value(&comparison).expect("JSON")).expect("read");
    assert_eq!(read, comparison);
}

#[test]
fn plans_of_other_compilers_are_not_compared() {
    let before = entry();
    let mut after = before.clone();
    after["compiler"]["libtpu"] = json!("0.0.52");
    let refused = compared(&before, &after, Allowed::default());
    assert_eq!((refused.verdict, refused.differs()), (Outcome::OtherCompiler, true));
    assert!(refused.to_string().contains("compare with libtpu==0.0.51 or renew"), "{refused}");
    assert_eq!(compared(&before, &after, ANY_COMPILER).verdict, Outcome::Same);
    // A program that is the same has one plan, or it was compiled in another way.
    let mut after = grown(&before, 512);
    after["hlo"] = before["hlo"].clone();
    let refused = compared(&before, &after, Allowed::default());
    assert!(refused.to_string().contains("the same program has other bytes"), "{refused}");
    assert_eq!(compared(&before, &after, ANY_COMPILER).verdict, Outcome::Same);
}

#[test]
fn owners_are_paired_through_what_was_renumbered() {
    let [before, after] = [16_u64, 21].map(|layers| {
        let mut entry = entry();
        let owner = |number| {
            json!({
                "op": format!("jit(f)/layer_{number}/dot_general.{layers}"),
                "shape": format!("f32[{layers},1024,1024]{{2,1,0}}"),
                "bytes": layers << 27,
                "file": "model.py",
                "line": 15,
            })
        };
        entry["owners"] = (0..4).map(owner).collect();
        entry
    });
    let comparison = compared(&before, &after, Allowed::default());
    let [change] = &comparison.changes[..] else { panic!("{:?}", comparison.changes) };
    assert_eq!(serde_json::to_value(change).expect("JSON")["after"], json!(21_u64 << 29));
    let words = "at model.py:15: 8.00 GiB (8589934592) → 10.50 GiB (11274289152) (+31%)";
    assert!(comparison.to_string().contains(words), "{comparison}");
}

#[test]
fn small_owners_are_one_line_and_tuples_have_no_layouts() {
    let [before, after] = [512_u64, 1024].map(|bytes| {
        let mut entry = entry();
        let small = |number| {
            let shape = "(bf16[2000000]{0:T(1024)(128)(2,1)}, u32[]{:S(2)})";
            json!({ "op": format!("copy-start_{number}x"), "shape": shape, "bytes": bytes, "file": format!("{number}.py"), "line": 1 })
        };
        entry["owners"] = (0..3).map(small).collect();
        entry
    });
    let comparison = compared(&before, &after, Allowed::default());
    assert_eq!(comparison.to_string(), "f: same\n  smaller owners: 1.50 KiB (1536) → 3.00 KiB (3072) (+100%), changed");
    // A lock that must be met exactly names each.
    let exact = compared(&before, &after, EXACT).to_string();
    assert_eq!(exact.matches("copy-start_").count(), 3, "{exact}");
    assert!(exact.contains("x (bf16[2000000], u32[]) at 1.py:1: 512 B → 1.00 KiB (1024) (+100%)"), "{exact}");
}

#[test]
fn what_came_is_named_where_it_is_read() {
    let before = entry();
    let mut after = grown(&before, 1 << 30);
    let came = json!({ "op": "jit(f)/new", "shape": "f32[8]{0}", "bytes": 1 << 30, "file": "a,b.py", "line": 3 });
    after["owners"].as_array_mut().expect("owners").insert(0, came);
    let mut comparison = compared(&before, &after, Allowed::default());
    comparison.advice = Some("Donate it.".to_owned());
    let words = "held by jit(f)/new f32[8] at a,b.py:3: new, 1.00 GiB (1073741824)";
    assert!(comparison.to_string().contains(words), "{comparison}");
    let github = comparison.to_github();
    assert!(github.starts_with("::error file=a%2Cb.py,line=3,title=tilewise%3A f is worse::f: worse%0A"), "{github}");
    assert!(!github.contains('\n'));
    let markdown = Comparison::to_markdown(&[comparison]);
    let lines: Vec<_> = markdown.lines().collect();
    assert!(lines[2].starts_with("| f | 311.37 MiB") && lines[2].ends_with("| worse |"), "{markdown}");
    assert_eq!(lines.last(), Some(&"Try: Donate it."));
}

/// A report that is compared with itself, and with another, both ways.
#[test]
fn reports_differ_by_their_buffers() {
    let report = |shape: &str| audit(&Module::parse(format!("x = {shape} parameter(0)")).expect("a module"));
    let (before, after) = (report("f32[400000,12]{1,0:T(8,128)}"), report("f32[50000,12]{1,0:T(8,128)}"));
    assert!(!Comparison::of_reports(&before, &before, EXACT).differs());
    let comparison = Comparison::of_reports(&before, &after, Allowed::default());
    assert_eq!((comparison.removed[0].bytes, comparison.added[0].bytes), (204_800_000, 25_600_000));
    assert_eq!(Comparison::of_reports(&after, &before, Allowed::default()).removed, comparison.added);
    let text = serde_json::to_string(&comparison).expect("JSON");
    assert_eq!(serde_json::from_str::<Comparison>(&text).expect("the same"), comparison);
    // Rows that are left out are counted.
    let short = comparison.shortened(0);
    assert_eq!((short.counts["added"], short.comparison.added.len()), (1, 0));
}

/// An array in another layout is neither gone nor new.
#[test]
fn layouts_that_differ_are_told() {
    let report = |shape: &str| audit(&Module::parse(format!("x = {shape} parameter(0)")).expect("a module"));
    let (before, after) = (report("f32[400000,12]{1,0:T(8,128)}"), report("f32[400000,12]{0,1:T(8,128)}"));
    let comparison = Comparison::of_reports(&before, &after, Allowed::default());
    assert_eq!((comparison.removed.len(), comparison.added.len()), (0, 0));
    let words = "layout of x f32[400000,12]: {1,0:T(8,128)} → {0,1:T(8,128)}, changed";
    assert!(comparison.to_string().contains(words), "{comparison}");
}

#[test]
fn a_lock_is_the_same_bytes_twice_and_its_damage_has_a_line() {
    let programs = BTreeMap::from(["f", "g"].map(|name| (name.to_owned(), program(&entry()))));
    let compiler = BTreeMap::from([("libtpu".to_owned(), "0.0.51".to_owned())]);
    let whole = Lock::new(compiler, programs).to_string();
    assert_eq!(Lock::parse(&whole).expect("a lock").to_string(), whole);
    assert!(!whole.contains("\"line\"") && !whole.contains("\"source\""), "{whole}");
    // An owner a line.
    assert!(whole.contains("    {\"bytes\": 204800000, \"file\": \"model.py\", \"op\": "), "{whole}");
    let total = &entry()["bytes"]["total"];
    for (damaged, words) in [
        (whole[..whole.len() / 2].to_owned(), "damaged"),
        (whole.replace(" \"programs\"", "<<<<<<< ours\n \"programs\""), "merged"),
        (whole.replacen(&format!("\"total\": {total}"), "\"total\": 1", 1), "in `f`, the total isn't the sum"),
        (whole.replacen("\"recomputed\"", "\"recomputer\"", 1), "in `f`, unknown field `recomputer`"),
        (whole.replace(" \"g\": {", " \"f\": {"), "`f` is given twice"),
        (whole.replacen("\"tpu\": \"v5e\"", "\"tpu\": 5", 1), "in `f`, invalid type"),
    ] {
        assert_ne!(damaged, whole);
        let failure = Lock::parse(&damaged).expect_err(words);
        assert!(failure.message.contains(words) && failure.message.contains(", line "), "{words}: {failure:?}");
    }
    assert_eq!(Lock::parse("{}").expect_err("no lock").kind, "lock");
}

/// Whatever a number or a part of a lock becomes that it can't be is an error with its line.
#[test]
fn a_lock_has_nothing_that_no_program_has() {
    let lock = |entry: &Value| json!({ "compiler": { "libtpu": "0.0.51" }, "programs": { "f": entry }, "schema": "tilewise.plan.lock/1" });
    let mut entry = entry();
    entry.as_object_mut().expect("a program").retain(|part, _| part != "compiler" && part != "source");
    let total = entry["bytes"]["total"].as_u64().expect("bytes");
    let text = |entry: &Value| serde_json::to_string_pretty(&lock(entry)).expect("JSON");
    assert!(Lock::parse(text(&entry)).is_ok());
    for (part, value) in [
        ("/bytes/total", json!(total + 1)),
        ("/bytes/total", json!(u64::MAX)),
        ("/bytes/argument", json!(-1)),
        ("/bytes/limit", json!(0)),
        ("/bytes/limit", json!(1e30)),
        ("/bytes/padding", json!(total + 1)),
        ("/owners/0/bytes", json!(u64::MAX)),
        ("/owners/0/shape", json!(5)),
        ("/copies", json!(null)),
        ("/collectives", json!([])),
        ("/tpu", json!("v9")),
        ("/bytes", json!({ "total": total })),
        ("/settings", json!(5)),
    ] {
        let mut changed = entry.clone();
        *changed.pointer_mut(part).expect("a part") = value;
        let failure = Lock::parse(text(&changed)).expect_err(part);
        assert!(failure.kind == "damaged_lock" && failure.message.contains(", line "), "{part}: {failure:?}");
    }
    for part in ["", "/bytes", "/owners/0", "/copies"] {
        let mut changed = entry.clone();
        changed.pointer_mut(part).expect("a part")["new"] = json!(1);
        assert!(Lock::parse(text(&changed)).expect_err(part).message.contains("unknown field `new`"), "{part}");
    }
    let twice = text(&entry).replacen("\"libtpu\": ", "\"libtpu\": \"0\", \"libtpu\": ", 1);
    assert!(Lock::parse(&twice).expect_err("a key twice").message.contains("`libtpu` is given twice"));
    let gather = r#""collectives": {"all-gather": {"count": 1, "bytes": 1}, "all-gather": {"count": 1, "bytes": 0}}"#;
    let twice = text(&entry).replacen("\"collectives\": {}", gather, 1);
    assert!(Lock::parse(&twice).expect_err("a key twice").message.contains("`all-gather` is given twice"));
    let mut bytes = text(&entry).into_bytes();
    bytes.insert(3, 0xff);
    assert_eq!(
        Lock::parse(&bytes).expect_err("no text").message,
        "the plan lock is damaged: it isn't UTF-8 text, line 2"
    );
}

#[test]
fn a_lock_takes_the_numbers_of_every_program() {
    for path in programs::all() {
        for content in Content::read(std::fs::read(&path).expect("a program")) {
            let Ok(Content::Program(program)) = content else { continue };
            let kept = ComparedProgram::of(&Audit::new(&program).run());
            let text = serde_json::to_string(&kept).expect("JSON");
            assert_eq!(serde_json::from_str::<ComparedProgram>(&text).expect(&text), kept);
        }
    }
}

/// A program that contradicts itself isn't better because little of it can be sized.
#[test]
fn a_program_that_can_not_be_sized_is_worse() {
    let line = |operation: &str| {
        let text = format!(
            "HloModule m, is_scheduled=true\n\nENTRY e {{\n  a = f32[16,128]{{1,0:T(8,128)}} parameter(0)\n  \
             ROOT r = f32[4096,128]{{1,0:T(8,128)}} {operation}\n}}\n"
        );
        audit(&Module::parse(text).expect("a module"))
    };
    let (before, after) = (line("custom-call(a), custom_call_target=\"x\""), line("bitcast(a)"));
    let comparison = Comparison::of_reports(&before, &after, Allowed::default());
    assert_eq!((comparison.verdict, comparison.after.fits()), (Outcome::Worse, None), "{comparison}");
    assert!(comparison.to_string().contains("complete: true → false, worse"), "{comparison}");
    assert!(Comparison::of_reports(&after, &before, Allowed::default()).after.is_complete);
}

/// A lock is somebody's text: what of it a terminal or the log of a job would obey is shown.
#[test]
fn names_of_a_lock_are_shown_and_not_obeyed() {
    let mut before = entry();
    before["owners"][0]["op"] = json!("a\n::error::b\u{1b}[2J");
    before["owners"][0]["file"] = json!("c\n::error::d.py");
    before["collectives"] = json!({ "e\n::error::f": { "count": 1, "bytes": 1 << 30 } });
    before["compiler"] = json!({ "g\n::error::h": "1\n::error::2" });
    for allowed in [ANY_COMPILER, Allowed::default()] {
        let comparison = compared(&before, &entry(), allowed);
        for text in
            [comparison.to_string(), comparison.to_github(), Comparison::to_markdown(slice::from_ref(&comparison))]
        {
            assert!(!text.contains("\n::error") && !text.contains('\u{1b}'), "{text}");
        }
    }
}
