//! `docs/json.md` lists what is printed: every field that is, and no other, each of its type, null and absent only where
//! it says so.

use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
    process::Command,
};
use tilewise_audit::recommendation::{Change, Target};
use tilewise_testing::programs;

/// A row of the document: `number`, `list of text`, `` list of [`Leaf`](#leaf) ``, …, and when it is null or absent.
#[derive(Clone, Copy)]
struct Field<'a> {
    /// The type whose table it is in.
    owner: &'a str,
    kind: &'a str,
    missing: &'a str,
}

impl<'a> Field<'a> {
    fn is_of_its_type(self, value: &Value) -> bool {
        match self.kind {
            _ if value.is_null() => self.missing.contains("null"),
            "number" => value.is_u64(),
            "ratio" => value.is_number(),
            "text" => value.is_string(),
            "flag" => value.is_boolean(),
            "object" => value.is_object(),
            "value" => !value.is_array(),
            kind if kind.starts_with("list of ") => value.is_array(),
            kind => kind.starts_with('[') && value.is_object(),
        }
    }

    /// The type of the objects in it.
    fn of_objects(self) -> Option<&'a str> {
        linked(self.kind)
    }
}

/// The target of ``[`Leaf`](#leaf)``.
fn linked(text: &str) -> Option<&str> {
    text.split_once("[`")?.1.split_once("`]").map(|(name, _)| name)
}

/// The fields of each type, those of the type that it includes among them.
fn types(document: &str) -> BTreeMap<&str, BTreeMap<&str, Field<'_>>> {
    let sections = document.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'));
    let sections: Vec<(&str, &str)> = sections.collect();
    let rows = |name: &str| {
        let &(owner, body) = sections.iter().find(|(section, _)| *section == name).expect("a type");
        body.lines().filter(|line| line.starts_with("| `")).map(move |line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, field, kind, _, missing, _] = cells[..] else { panic!("{line}") };
            (field.trim_matches('`'), Field { owner, kind, missing })
        })
    };
    let all = sections.iter().map(|&(name, body)| {
        let included = body.lines().find(|line| line.starts_with("All of ")).and_then(linked);
        (name, included.into_iter().flat_map(rows).chain(rows(name)).collect())
    });
    all.collect()
}

struct Checker<'a> {
    types: BTreeMap<&'a str, BTreeMap<&'a str, Field<'a>>>,
    seen: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Checker<'a> {
    fn check(&mut self, name: &'a str, object: &Map<String, Value>) {
        let fields = self.types.get(name).unwrap_or_else(|| panic!("{name} is no type")).clone();
        for (field, value) in object {
            let Some((&field, kind)) = fields.get_key_value(field.as_str()) else { panic!("{name} has no {field}") };
            assert!(kind.is_of_its_type(value), "{name}: {field} is {value}");
            self.seen.insert((kind.owner, field));
            let Some(objects) = kind.of_objects() else { continue };
            let listed = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            listed.iter().filter_map(Value::as_object).for_each(|object| self.check(objects, object));
        }
        for (field, kind) in fields.iter().filter(|(field, _)| !object.contains_key(**field)) {
            assert!(kind.missing.contains("absent"), "{name}: {field} is missing");
        }
    }

    /// Runs the command line with these arguments: each line it prints is an object of that type, or an error.
    fn run(&mut self, name: &'a str, arguments: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewise"));
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).args(arguments);
        let output = command.args(["--format", "json"]).output().expect("the program runs");
        assert!(!output.stdout.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        for line in String::from_utf8(output.stdout).expect("text").lines() {
            let Ok(Value::Object(object)) = serde_json::from_str(line) else { panic!("{line}") };
            let is_line = |field: &str| ["schema", "input", "error", "part"].contains(&field);
            let (line, rest): (Map<_, _>, Map<_, _>) = object.into_iter().partition(|(field, _)| is_line(field));
            self.check("Line", &line);
            if line.contains_key("error") {
                assert!(rest.is_empty(), "{rest:?}");
            } else {
                self.check(name, &rest);
            }
        }
    }
}

#[test]
fn the_document_lists_what_is_printed() {
    let document = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md"));
    let document = document.expect("docs/json.md");
    let mut checker = Checker { types: types(&document), seen: BTreeSet::new() };
    let path = |name: &str| programs::path(name).display().to_string();
    let out = |name: &str| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).display().to_string();

    let tuple = "(f32[3,5]{1,0:T(2,2)}, token[], s32[])";
    checker
        .run("Show", &["show", "f32[3,?]{1,0}", "bf16[300,<=500]{1,0:T(8,128)(2,1)}", "opaque[]", tuple, "f32[", "x"]);
    checker.run("Rendered", &["show", "f32[3,5]{1,0:T(2,2)}", "--as", "pjrt"]);
    checker.run("Show", &["show", "%f = bf16[8,128]{1,0} fusion(bf16[8]{0} %a, %b), kind=kLoop, calls=%c"]);
    checker.run("Index", &["index", "f32[3,5]{1,0:T(2,2)}", "2,3", "--offset", "9"]);
    checker.run("Index", &["index", "f32[3,5]{1,0:T(2,2)}", "2,3", "--explain"]);
    checker.run("Index", &["index", "f32[3]{0:L(8)}", "--offset", "7"]);
    checker.run("Equation", &["index", "linear_index_with_tile((2,3), (3,5), (2,2)) = 17 = 18"]);
    checker.run("Equation", &["show", "(1,2) = (1,2)"]);
    checker.run("Equation", &["index", "linear_index(e, d)"]);
    checker.run("Show", &["show", "S(1)", "{1,0}"]);
    checker.run("Edit", &["edit", "f32[3,5]{1,0:T(2,2)}", "permute=1,0", "append-major=7"]);
    checker.run("Prose", &["explain", "docs/layouts.md"]);
    checker.run("Bitcast", &["bitcast", "f32[64,128]{1,0:T(8,128)}", "f32[64,128]{0,1:T(8,128)}"]);
    checker.run("Bitcast", &["bitcast", "f32[8,3]{1,0:T(8,128)}", "f32[8,128]{1,0:T(8,128)}"]);
    checker.run("Bitcast", &["bitcast", "f32[8,128]{1,0}", "f32[128,8]{0,1}"]);
    checker.run("Bitcast", &["bitcast", "f32[6,4]{0,1}", "f32[8,3]{1,0}"]);
    checker.run("FreeViews", &["bitcast", "f32[64,128]{0,1:T(8,128)}", "f32[64,128]", "--views"]);
    checker.run("FreeLayouts", &["bitcast", "f32[8,128]{1,0}", "--reshape", "1024"]);
    checker.run("FreeLayouts", &["bitcast", "f32[512,1280]{1,0:T(8,128)}", "--reshape", "512,32,40"]);
    checker.run("Diff", &["diff", "f32[3,5]{1,0:T(2,2)}", "bf16[3,5]{0,1}"]);
    checker.run("Diff", &["diff", "(f32[3], s8[])", "(f32[4], s8[])"]);
    checker.run("Steps", &["steps", "f32[3,5]{0,1:T(2,2)}"]);
    checker.run("Draw", &["draw", "f32[3,5]{1,0:T(2,2)}"]);
    checker.run("Draw", &["draw", "f32[3,5]{1,0:T(2,2)}", "-o", &out("json.svg")]);
    checker.run("Predict", &["predict", "f32[400000,12]", "f32[4,5]{0,1}", "--tpu", "v5e"]);
    fs::write(out("json.bin"), [0; 60]).expect("a folder");
    let layouts = ["--from", "f32[3,5]{1,0}", "--to", "f32[3,5]{1,0:T(2,2)}", "--check", "--verbose"];
    checker.run("Relayout", &[&["relayout", &out("json.bin"), &out("json.tiles")][..], &layouts].concat());
    checker.run("TileFormat", &["tiles"]);
    let kernels =
        "tpu v5e\ngrid 4\nin f32[8,500] block -,100 @ -,0\nin s32[8] smem\nin f32[8] any\nprefetch s32[8]\nscratch dma
        scratch vmem f32[8,128]\nbody 1MiB\n---\nname k\ntpu v2\ngrid 4\n---\ngrid x\n";
    fs::write(out("kernels.txt"), kernels).expect("a folder");
    checker.run("Kernel", &["kernel", &out("kernels.txt")]);
    checker.run("Kernel", &["kernel", "examples/matmul.kernel", "--tpu", "all"]);
    let table = "f32[65536,64]{0,1:T(8,128)}";
    checker.run("OperandCost", &["kernel", "examples/boundaries/rotary.kernel", "--operand", table]);

    let dump = path("dump");
    for program in [
        "examples/gnn_large.v5e.hlo",
        "testing/programs/pallas_kernel.v5e.hlo",
        "testing/programs/cases/cpu.hlo",
        &path("copies.hlo.gz"),
        &dump,
    ] {
        checker.run("Audit", &["audit", "--all", program, "--hbm-limit", "16GiB"]);
    }
    checker.run("Audit", &["audit", "testing/programs/sampler_loop.v6e.hlo"]);
    let [copying, spared] =
        ["before", "after"].map(|which| format!("examples/boundaries/rotary_table.{which}.v6e.hlo"));
    checker.run("Audit", &["audit", &copying]);
    checker.run("Comparison", &["audit", &copying, "--against", &spared]);
    checker.run("Audit", &["audit", "examples/kv_decode_row_major.v5e.hlo", "README.md"]);
    let cut = "HloModule m\n\nENTRY e {\n  x = f33[8]{0} parameter(0)\n}\n";
    fs::write(out("json.hlo"), cut).expect("a folder");
    checker.run("Audit", &["audit", &out("json.hlo")]);
    let kernel = "HloModule jit_f, is_scheduled=true\nENTRY main {\n  q = f32[1024,512]{1,0:T(8,128)} parameter(0)\n  ROOT \
                  RPAm-p_128-bq_32_32-bkv_512_256.1 = f32[1024,512]{1,0:T(8,128)} custom-call(q), \
                  custom_call_target=\"tpu_custom_call\"\n}\n";
    fs::write(out("kernel.hlo"), kernel).expect("a folder");
    checker.run("Audit", &["audit", &out("kernel.hlo"), "--tpu", "v5e"]);
    let step = "HloModule jit_step, entry_computation_layout={(f32[4096]{0:T(1024)})->f32[4096]{0:T(1024)}}, is_scheduled=true\n\n\
                ENTRY main {\n  x = f32[4096]{0:T(1024)} parameter(0), metadata={op_name=\"x\"}\n  ROOT r = f32[4096]{0:T(1024)} \
                add(x, x), metadata={op_name=\"jit(step)/add\" source_file=\"json_step.py\" source_line=1}\n}\n";
    fs::write(out("step.hlo"), step).expect("a folder");
    fs::write(out("json_step.py"), "step = jax.jit(step)\n").expect("a folder");
    checker.run("Audit", &["audit", &out("step.hlo"), "--source", env!("CARGO_TARGET_TMPDIR"), "--hbm-limit", "20KiB"]);
    let pairs = "HloModule jit_near, is_scheduled=true\n\nENTRY main {\n  x = f32[32768,64]{1,0:T(8,128)} parameter(0), metadata={op_name=\"x\"}\n  \
                 d = f32[32768,32768]{1,0:T(8,128)} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}, \
                 metadata={op_name=\"jit(near)/dot_general\" source_file=\"near.py\" source_line=2}\n  \
                 e = f32[32768,32768]{1,0:T(8,128)} exponential(d), metadata={op_name=\"jit(near)/exp\" source_file=\"near.py\" source_line=2}\n  \
                 one = f32[32768]{0:T(1024)} constant({...})\n  ROOT r = f32[32768]{0:T(1024)} dot(e, one), lhs_contracting_dims={1}, \
                 rhs_contracting_dims={0}, metadata={op_name=\"jit(near)/dot_general\" source_file=\"near.py\" source_line=3}\n}\n";
    fs::write(out("near.hlo"), pairs).expect("a folder");
    checker.run("Audit", &["audit", &out("near.hlo"), "--tpu", "v5e"]);
    let mut files = fs::read_dir(&dump).expect("the dump").map(|file| file.expect("an entry").path());
    let plan = files.find(|file| file.to_string_lossy().ends_with("buffer-assignment.txt")).expect("a plan");
    checker.run("Plan", &["audit", &plan.display().to_string()]);

    let [before, after] = ["examples/gnn_large.v5e.hlo", "examples/kv_decode_row_major.v5e.hlo"];
    checker.run("Comparison", &["audit", after, "--against", before]);
    checker.run("Comparison", &["audit", &out("json.hlo"), "--against", before]);
    let server = ["small", "undonated"].map(|name| format!("examples/server/{name}.v6e.hlo.gz"));
    checker.run("ProgramSet", &["audit", "--together", &server[0], &server[1], "--hbm-limit", "1GiB"]);

    // The total of the other program, and what makes it, in a lock.
    let lock = r#"{"schema": "tilewise.plan.lock/1", "compiler": {"libtpu": "0.0.51"}, "programs": {"f": {"program": "a.py:f",
        "tpu": "v5e", "topology": null, "settings": {}, "hlo": null, "owners": [], "collectives": {}, "recomputed": 1,
        "bytes": {"argument": 1, "output": 0, "alias": 0, "constant": 1, "temporary": 0, "total": 2, "padding": 0, "limit": 9},
        "copies": {"count": 0, "bytes": 0},
        "time": {"estimate_seconds": 0.16, "cores": 1, "uncounted_loops": 1}}}}"#;
    fs::write(out("plan.lock"), lock).expect("a folder");
    checker.run("Comparison", &["audit", before, "--against", &out("plan.lock")]);

    checker.run("Explain", &["explain", "examples/out_of_memory.txt", "examples/README.md"]);
    let log = "File \"train.py\", line 88, in main\n    state = step(state)\nCan't reduce memory use below 2.58GiB (2766640263 bytes) by rematerialization; only reduced to 2.76TiB \
               (3038617035172 bytes)\nRESOURCE_EXHAUSTED: Out of memory while trying to allocate 3038615961416 bytes.\n";
    fs::write(out("json.txt"), log).expect("a folder");
    checker.run("Explain", &["explain", &out("json.txt")]);
    checker.run("Page", &["explain", "E1001"]);

    let all = checker.types.values().flatten().map(|(&name, field)| (field.owner, name));
    let never: Vec<_> =
        all.filter(|field| !checker.seen.contains(field) && !OF_THE_PACKAGE.contains(&field.0)).collect();
    assert!(never.is_empty(), "never printed: {never:?}");
}

/// Types that the Python package prints, whose own tests hold it to them.
const OF_THE_PACKAGE: &[&str] =
    &["KernelBudgets", "KernelBudget", "BlockSuggestions", "SuggestedBlocks", "RemovedBlocks"];

/// Types of the page, each with that of the document which it reads.
const OF_THE_PAGE: &[(&str, &[(&str, &str)])] = &[
    (
        "web/src/program/data.ts",
        &[
            ("PeakRow", "PeakBuffer"),
            ("Advice", "Advice"),
            ("Space", "MemorySpace"),
            ("Buffer", "Buffer"),
            ("Report", "Audit"),
            ("Kernel", "KernelUse"),
            ("KernelArray", "KernelOperand"),
            ("BoundaryChange", "BoundaryChange"),
        ],
    ),
    (
        "web/src/program/compare.ts",
        &[("Comparison", "Comparison"), ("Compared", "ComparedProgram"), ("Owner", "Owner"), ("Change", "Change")],
    ),
    ("web/src/message/view.ts", &[("Hint", "Advice"), ("Allocation", "Allocation")]),
];

/// The page's types and the package's literals are those that are printed: a field that the page reads is listed, of its type,
/// and null where it may be.
#[test]
fn the_page_and_the_package_read_what_is_printed() {
    let read =
        |path: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).expect(path);
    let document = read("docs/json.md");
    let types = types(&document);
    for (path, interfaces) in OF_THE_PAGE {
        let source = read(path);
        for (interface, name) in *interfaces {
            let start = format!("interface {interface} {{");
            let (_, rest) = source.split_once(&start).unwrap_or_else(|| panic!("{path} has no {interface}"));
            let (body, _) = rest.split_once("\n}").expect("its end");
            let fields = body.lines().filter_map(|line| line.trim().strip_suffix(';')?.split_once(": "));
            for (field, kind) in fields.filter(|(field, _)| *field != "input") {
                let listed = types[name].get(field).unwrap_or_else(|| panic!("{path}: {interface} reads {field}"));
                let expected = match listed.kind {
                    "text" => kind.contains("string") || kind.contains('"'),
                    "number" | "ratio" => kind.contains("number"),
                    "flag" => kind.contains("boolean"),
                    list if list.starts_with("list of") => kind.contains("[]"),
                    _ => true,
                };
                assert!(expected, "{path}: {interface}.{field} is {kind}, and {} is printed", listed.kind);
                assert_eq!(kind.contains("| null"), listed.missing.contains("null"), "{path}: {interface}.{field}");
            }
        }
    }
    let stub = read("python/package/tilewise/_tilewise.pyi");
    let advice = &document[document.find("## Advice").expect("a section")..];
    let words = |names: &[&str]| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>();
    let (_, recommendation) = stub.split_once("class Recommendation:").expect("a class");
    let literal = |property: &str| {
        let (_, rest) = recommendation.split_once(&format!("def {property}("))?;
        let (list, _) = rest.split_once("Literal[")?.1.split_once(']')?;
        Some(list.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect::<Vec<_>>())
    };
    let kinds: Vec<&str> = Change::ALL.iter().map(|change| change.as_str()).collect();
    let targets: Vec<&str> = Target::ALL.iter().map(|target| target.as_str()).collect();
    assert_eq!(literal("kind"), Some(words(&kinds)));
    assert_eq!(literal("target"), Some(words(&targets)));
    for (field, names) in [("kind", kinds), ("target", targets)] {
        let row = advice.lines().find(|line| line.starts_with(&format!("| `{field}` |"))).expect("a row");
        let listed = row.split('`').skip(3).step_by(2).collect::<Vec<_>>();
        assert_eq!(listed, names, "{field}");
    }
}

/// The JSON of a program and of a message, in `tests/json`. `TRYCMD=overwrite` renews it.
#[test]
fn objects_are_as_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/json");
    for (name, arguments) in [
        ("audit.json", ["audit", "examples/gnn_large.v5e.hlo"]),
        ("explain.json", ["explain", "crates/tilewise-oom/tests/data/smem_prefetch.txt"]),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewise"));
        command.current_dir(folder.join("../../../..")).args(arguments).args(["--format", "json"]);
        let output = command.output().expect("the program runs");
        let printed: Value = serde_json::from_slice(&output.stdout).expect("an object");
        let file = folder.join(name);
        if env::var_os("TRYCMD").is_some_and(|value| value == "overwrite") {
            fs::write(&file, format!("{printed:#}\n")).expect("the folder");
        }
        let recorded: Value = serde_json::from_slice(&fs::read(&file).expect("a record")).expect("an object");
        for (field, value) in printed.as_object().expect("an object") {
            assert_eq!(value, &recorded[field], "{name}: {field}");
        }
        assert_eq!(printed, recorded, "{name} has another field");
    }
}
