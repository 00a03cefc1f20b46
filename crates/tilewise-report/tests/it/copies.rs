//! Copies: their class, how often they run, which lines they cost, why they are there and what makes them needless.

use super::advice::{advice, code, kind};
use std::collections::HashMap;
use tilewise::tpu::Generation;
use tilewise_audit::{Audit, CopyClass, CopyEndKind, CopyReason, Machine, Program, audit, copies_by_line};
use tilewise_hlo::Module;
use tilewise_report::{why, words};
use tilewise_testing::programs;

/// A copy in a loop of 12 turns that each hold a loop of 5, one in a loop of unknown length, and four in the entry.
const PROGRAM: &str = r#"
HloModule m

inner { p = (f32[256,512]{1,0:T(8,128)}) parameter(0)
  x = f32[256,512]{1,0:T(8,128)} get-tuple-element(p), index=0
  turned = f32[256,512]{0,1:T(8,128)} copy(x), metadata={source_file="m.py" source_line=7}
  ROOT t = (f32[256,512]{1,0:T(8,128)}) tuple(x)
}
inner_condition { p = (f32[256,512]{1,0:T(8,128)}) parameter(0)
  ROOT c = pred[] constant(true)
}
outer { p = (f32[256,512]{1,0:T(8,128)}) parameter(0)
  ROOT w = (f32[256,512]{1,0:T(8,128)}) while(p), condition=inner_condition, body=inner, backend_config={"known_trip_count":{"n":"5"}}
}
until { p = (f32[256,512]{1,0:T(8,128)}) parameter(0)
  x = f32[256,512]{1,0:T(8,128)} get-tuple-element(p), index=0
  again = f32[256,512]{1,0:T(8,128)} copy(x), metadata={source_file="m.py" source_line=9}
  ROOT t = (f32[256,512]{1,0:T(8,128)}) tuple(again)
}
ENTRY main { x = f32[256,512]{1,0:T(8,128)} parameter(0)
  fetch = (f32[256,512]{1,0:T(8,128)S(1)}, f32[256,512]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(x)
  fetched = f32[256,512]{1,0:T(8,128)S(1)} copy-done(fetch)
  part = ((f32[256,512]{1,0:T(8,128)}), f32[8,512]{1,0:T(8,128)S(1)}, s32[]) slice-start(x), slice={[0:8], [0:512]}
  all = ((f32[256,512]{1,0:T(8,128)}), f32[256,512]{1,0:T(8,128)S(1)}, s32[]) slice-start(x), slice={[0:256], [0:512]}
  init = (f32[256,512]{1,0:T(8,128)}) tuple(x)
  loop = (f32[256,512]{1,0:T(8,128)}) while(init), condition=inner_condition, body=outer, backend_config={"known_trip_count":{"n":"12"}}
  rest = (f32[256,512]{1,0:T(8,128)}) while(loop), condition=inner_condition, body=until
  small = f32[]{:T(128)} constant(0)
  ROOT same = f32[]{:T(128)} copy(small)
}"#;

#[test]
fn copies_have_a_class_and_run_as_often_as_their_loops() {
    let report = audit(&Module::parse(PROGRAM).expect("a module"));
    let rows: Vec<_> =
        report.copies.iter().map(|row| (&*row.instruction, row.class.as_str(), row.trips, row.moved_bytes)).collect();
    let once = 2 * 256 * 512 * 4;
    assert_eq!(
        rows,
        [
            ("turned", "relayout", Some(60), 60 * once),
            ("again", "duplicate", None, once),
            ("fetch", "transfer", Some(1), once),
            ("all", "transfer", Some(1), once),
            ("same", "duplicate", Some(1), 2 * 512),
        ]
    );
}

#[test]
fn lines_of_copies_that_cost_more_than_a_hundredth() {
    let report = audit(&Module::parse(PROGRAM).expect("a module"));
    // The five copies, and the part of a slice that is read and written; semaphores are 4 bytes each.
    let once: u64 = 2 * 256 * 512 * 4;
    let moved = 63 * once + 2 * 512 + 2 * 8 * 512 * 4 + 5 * 4;
    assert_eq!(report.moved_bytes(), moved);
    let lines = copies_by_line(&report.copies, moved);
    let rows: Vec<_> = lines
        .iter()
        .map(|line| (line.source.as_ref().map(|s| s.line), line.class, line.copies, line.is_lower_bound))
        .collect();
    assert_eq!(
        rows,
        [
            (Some(7), CopyClass::Relayout, 1, false),
            (None, CopyClass::Transfer, 2, false),
            (Some(9), CopyClass::Duplicate, 1, true)
        ]
    );
    assert!(lines[0].share > 0.951 && lines[0].share < 0.953, "60 of 63");
    assert_eq!(lines[1].instruction, "fetch");
}

#[test]
fn classes_follow_the_bytes() {
    let class = |from: &str, to: &str| CopyClass::of(&from.parse().expect(from), &to.parse().expect(to));
    // A dimension of 1 lies anywhere.
    assert_eq!(class("f32[1,128]{1,0:T(1,128)}", "f32[1,128]{1,0:T(128)}"), Some(CopyClass::Bitcast));
    assert_eq!(class("f32[1,128]{1,0:T(1,128)}", "f32[1,128]{0,1}"), Some(CopyClass::Bitcast));
    assert_eq!(class("f32[1,128]{1,0:T(1,128)}", "f32[1,128]{0,1:S(1)}"), Some(CopyClass::Transfer));
    // Rows of two-byte elements lie in pairs, those of four bytes do not.
    assert_eq!(class("bf16[16,128]{1,0:T(8,128)(2,1)}", "bf16[16,128]{1,0:T(8,128)}"), Some(CopyClass::Relayout));
    assert_eq!(class("bf16[16,128]{1,0:T(8,128)}", "f32[16,128]{1,0:T(8,128)}"), Some(CopyClass::Relayout));
    assert_eq!(class("s4[16,128]{1,0:T(8,128)E(4)}", "s4[16,128]{1,0:T(8,128)}"), Some(CopyClass::Relayout));
    assert_eq!(class("(f32[])", "f32[]"), None);
}

#[test]
fn sums_beyond_the_largest_number_stand_there() {
    let text = PROGRAM.replace("\"12\"", "\"9223372036854775807\"").replace("\"5\"", "\"9223372036854775807\"");
    let report = audit(&Module::parse(text).expect("a module"));
    assert_eq!((report.copies[0].moved_bytes, report.moved_bytes()), (u64::MAX, u64::MAX));
}

/// Of the frames that led to it, the innermost that is a user's own.
#[test]
fn lines_are_the_users_own() {
    let text = r#"HloModule m

FileNames
1 "/usr/lib/python3/site-packages/flax/linear.py"
2 "train.py"

FunctionNames
1 "Dense.__call__"
2 "loss"

FileLocations
1 {file_name_id=1 function_name_id=1 line=271 end_line=271 column=1 end_column=2}
2 {file_name_id=2 function_name_id=2 line=12 end_line=12 column=1 end_column=2}

StackFrames
1 {file_location_id=2 parent_frame_id=1}
2 {file_location_id=1 parent_frame_id=2}

ENTRY main { x = f32[256,512]{1,0:T(8,128)} parameter(0)
  y = f32[256,512]{0,1:T(8,128)} copy(x), metadata={op_name="jit(f)/copy" stack_frame_id=2}
}"#;
    let report = audit(&Module::parse(text).unwrap());
    let source = report.copies[0].source.as_ref().unwrap();
    assert_eq!((source.file.as_str(), source.line, source.function.as_deref()), ("train.py", 12, Some("loss")));
}

/// The reasons of the copies in the entry of a program with these lines.
fn reasons(head: &str, lines: &str) -> Vec<Found> {
    let text = format!("HloModule jit_f, is_scheduled=true{head}\n\nENTRY main {{\n{lines}\n}}");
    let report = audit(&Module::parse(text).expect("a module"));
    let copies = report.copies.iter().zip(report.copy_reasons());
    copies.map(|(row, reason)| Found { why: why(row, reason), reason: reason.clone() }).collect()
}

/// Why a copy is there, as data and in words.
struct Found {
    reason: CopyReason,
    why: String,
}

impl std::ops::Deref for Found {
    type Target = CopyReason;

    fn deref(&self) -> &CopyReason {
        &self.reason
    }
}

fn fix(reason: &CopyReason) -> Option<(String, Option<String>)> {
    let fix = reason.fix.as_ref()?;
    let requested = fix.array.as_ref().and_then(|array| array.requested.as_ref()).expect("a layout");
    Some((requested.to_string(), words(fix).code))
}

const ARGUMENT: &str = r#"
  w = f32[1024,1024]{0,1:T(8,128)} parameter(0), metadata={op_name="w"}
  c = f32[1024,1024]{1,0:T(8,128)} copy(w)"#;

#[test]
fn an_argument_is_handed_over_as_all_read_it() {
    let found = reasons(
        "",
        &format!("{ARGUMENT}\nROOT r = f32[1024]{{0:T(1024)}} custom-call(c), custom_call_target=\"rows\""),
    );
    let code = "w = jax.device_put(w, Format(Layout(major_to_minor=(0, 1)), w.sharding))";
    assert_eq!(fix(&found[0]), Some(("f32[1024,1024]{1,0:T(8,128)}".to_owned(), Some(code.to_owned()))));
    assert_eq!((found[0].origin.kind, found[0].origin.number), (CopyEndKind::Argument, Some(0)));
    assert_eq!(found[0].reader.as_ref().map(|reader| &*reader.instruction), Some("r"));
    // The argument's own order is wanted, too.
    let others = "r = f32[1024]{0:T(1024)} custom-call(c, w), custom_call_target=\"both\"";
    let found = reasons("", &format!("{ARGUMENT}\nROOT {others}"));
    assert_eq!(fix(&found[0]), None);
    assert!(found[0].why.ends_with("it is also read in another layout"), "{}", found[0].why);
    // A returned argument is copied in any case.
    let found = reasons("", &ARGUMENT.replace("c = ", "ROOT c = "));
    assert_eq!(fix(&found[0]), None);
    assert_eq!(found[0].reader.as_ref().map(|reader| reader.kind), Some(CopyEndKind::Result));
}

/// As weights of layers are, which are copied to VMEM one by one, so that no fix frees memory.
#[test]
fn parts_of_a_parameter_are_handed_over_together() {
    let weights = |layers: usize| {
        let lines = (0..layers).map(|at| {
            format!(
                r#"  w{at} = f32[1024,1024]{{0,1:T(8,128)}} parameter({at}), metadata={{op_name="w['{at}']"}}
  c{at} = f32[1024,1024]{{1,0:T(8,128)S(1)}} copy(w{at})
  {} = f32[1024]{{0:T(1024)}} custom-call(c{at}), custom_call_target="rows""#,
                if at + 1 == layers { "ROOT r".to_owned() } else { format!("r{at}") },
            )
        });
        let lines: Vec<String> = lines.collect();
        reasons("", &lines.join("\n"))
    };
    let found = weights(2);
    let code = fix(&found[0]).and_then(|(_, code)| code).expect("code");
    let put = |at: usize| {
        format!("w['{at}'] = jax.device_put(w['{at}'], Format(Layout(major_to_minor=(0, 1)), w['{at}'].sharding))")
    };
    assert_eq!(code, format!("{}\n{}", put(0), put(1)));
    assert_eq!(fix(&found[1]).and_then(|(_, code)| code), Some(code));
    let code = fix(&weights(8)[0]).and_then(|(_, code)| code).expect("code");
    assert!(code.starts_with("layouts = {\n    \"['0']\": Layout(major_to_minor=(0, 1)),\n"), "{code}");
    assert!(code.ends_with("w = jax.tree_util.tree_map_with_path(put, w)"), "{code}");
}

/// The update that overwrites a copy would destroy an argument, unless that is donated.
#[test]
fn a_donated_argument_takes_its_result_along() {
    let update = |root: &str| {
        format!(
            r#"{ARGUMENT}
  i = s32[]{{:T(128)}} parameter(1), metadata={{op_name="i"}}
  row = f32[1,1024]{{1,0:T(1,128)}} parameter(2), metadata={{op_name="row"}}
  u = f32[1024,1024]{{1,0:T(8,128)}} dynamic-update-slice(c, row, i, i)
  {root}"#
        )
    };
    let back = "ROOT b = f32[1024,1024]{0,1:T(8,128)} copy(u)";
    let donated = ", input_output_alias={ {}: (0, {}, may-alias) }";
    let found = reasons(donated, &update(back));
    let code = "w = jax.device_put(w, Format(Layout(major_to_minor=(0, 1)), w.sharding))\n\
                f = jax.jit(f, donate_argnames=(\"w\",), out_shardings=Format(Layout(major_to_minor=(0, 1)), w.sharding))";
    let shape = || "f32[1024,1024]{1,0:T(8,128)}".to_owned();
    assert_eq!(
        [fix(&found[0]), fix(&found[1])],
        [Some((shape(), Some(code.to_owned()))), Some((shape(), Some(code.to_owned())))]
    );
    // Nothing of this is a pair that could be left out: the value has changed in between.
    assert_eq!([&found[0].cancels, &found[1].cancels], [&None, &None]);

    let found = reasons("", &update(back));
    assert!(found[0].why.ends_with("the copy is overwritten, and the argument isn't donated"), "{}", found[0].why);
    let code = "f = jax.jit(f, out_shardings=Format(Layout(major_to_minor=(0, 1)), w.sharding))";
    assert_eq!([fix(&found[0]), fix(&found[1])], [None, Some((shape(), Some(code.to_owned())))]);
    // It isn't known how the result is divided.
    let found = reasons(", num_partitions=4", &update(back));
    assert_eq!(fix(&found[1]), Some((shape(), None)));

    let other = "ROOT b = f32[1024,1024]{0,1:T(8,128)} custom-call(u), custom_call_target=\"turn\"";
    let found = reasons(donated, &update(other));
    assert!(found[0].why.ends_with("a result in another layout"), "{}", found[0].why);
}

/// An argument in another layout than its result has can't lend it its memory: recompiled so, a donated state of 26 MiB was
/// held twice.
#[test]
fn an_argument_that_is_to_be_donated_keeps_its_layout() {
    let text = |name: &str| {
        format!(
            r#"HloModule jit_f, is_scheduled=true

ENTRY main (a.1: f32[4096,1024], b.1: f32[1024,1024]) -> (f32[4096,1024], f32[1024,1024]) {{
  a.1 = f32[4096,1024]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="states['a']"}}
  b.1 = f32[1024,1024]{{0,1:T(8,128)}} parameter(1), metadata={{op_name="{name}"}}
  c = f32[1024,1024]{{1,0:T(8,128)}} copy(b.1)
  d = f32[4096,1024]{{1,0:T(8,128)}} custom-call(a.1, c), custom_call_target="step"
  new = f32[4096,1024]{{1,0:T(8,128)}} add(a.1, d)
  other = f32[1024,1024]{{0,1:T(8,128)}} custom-call(d), custom_call_target="other"
  ROOT r = (f32[4096,1024]{{1,0:T(8,128)}}, f32[1024,1024]{{0,1:T(8,128)}}) tuple(new, other)
}}"#
        )
    };
    let kinds = |name: &str| advice(&text(name)).iter().map(|piece| kind(piece).0).collect::<Vec<_>>();
    assert_eq!(kinds("states['b']"), ["donate"]);
    assert_eq!(kinds("b"), ["donate", "order"]);
    // A lambda has no name that code could call it by.
    let donated = |module: &str| code(&advice(&text("b").replace("jit_f", module))[0]);
    assert!(donated("jit_f").is_some_and(|code| code.starts_with("f = jax.jit(f, ")));
    assert_eq!(donated("jit__lambda"), donated("jit_f"));
}

#[test]
fn there_and_back_is_a_pair() {
    let lines = r#"
  x = f32[1024,1024]{1,0:T(8,128)} parameter(0)
  a = f32[1024,1024]{1,0:T(8,128)} negate(x)
  there = f32[1024,1024]{0,1:T(8,128)} copy(a)
  start = (f32[1024,1024]{0,1:T(8,128)S(1)}, f32[1024,1024]{0,1:T(8,128)}, u32[]{:S(2)}) copy-start(there)
  done = f32[1024,1024]{0,1:T(8,128)S(1)} copy-done(start)
  back = f32[1024,1024]{1,0:T(8,128)S(1)} copy(done)
  ROOT r = f32[1024]{0:T(1024)} custom-call(back), custom_call_target="rows""#;
    let found = reasons("", lines);
    let pairs: Vec<_> = found.iter().map(|reason| reason.cancels.as_deref()).collect();
    assert_eq!(pairs, [Some("back"), None, Some("there")]);
    assert_eq!(found[1].why, "`a` is copied to VMEM for `r`, same layout");
    assert!(found[2].why.ends_with("`there` undoes it"), "{}", found[2].why);
}

/// An argument passed on by a loop is handed over as its body reads it; the order is of the argument's own dimensions.
#[test]
fn loops_and_bitcasts_are_seen_through() {
    let text = r#"HloModule jit_f, is_scheduled=true

body { p = (s32[]{:T(128)}, bf16[1,2048,1024]{1,2,0:T(8,128)(2,1)}, bf16[2048]{0:T(1024)(128)(2,1)}) parameter(0)
  i = s32[]{:T(128)} get-tuple-element(p), index=0
  w = bf16[1,2048,1024]{1,2,0:T(8,128)(2,1)} get-tuple-element(p), index=1
  flat = bf16[2048,1024]{0,1:T(8,128)(2,1)} bitcast(w)
  c = bf16[2048,1024]{1,0:T(8,128)(2,1)S(1)} copy(flat)
  y = bf16[2048]{0:T(1024)(128)(2,1)} custom-call(c), custom_call_target="rows"
  ROOT t = (s32[]{:T(128)}, bf16[1,2048,1024]{1,2,0:T(8,128)(2,1)}, bf16[2048]{0:T(1024)(128)(2,1)}) tuple(i, w, y)
}
condition { p = (s32[]{:T(128)}, bf16[1,2048,1024]{1,2,0:T(8,128)(2,1)}, bf16[2048]{0:T(1024)(128)(2,1)}) parameter(0)
  ROOT c = pred[]{:T(512)} constant(true)
}
ENTRY main { w = bf16[1,2048,1024]{1,2,0:T(8,128)(2,1)} parameter(0), metadata={op_name="params['w']"}
  i = s32[]{:T(128)} constant(0)
  y = bf16[2048]{0:T(1024)(128)(2,1)} custom-call(), custom_call_target="zeros"
  init = (s32[]{:T(128)}, bf16[1,2048,1024]{1,2,0:T(8,128)(2,1)}, bf16[2048]{0:T(1024)(128)(2,1)}) tuple(i, w, y)
  loop = (s32[]{:T(128)}, bf16[1,2048,1024]{1,2,0:T(8,128)(2,1)}, bf16[2048]{0:T(1024)(128)(2,1)}) while(init), condition=condition, body=body, backend_config={"known_trip_count":{"n":"12"}}
  ROOT r = bf16[2048]{0:T(1024)(128)(2,1)} get-tuple-element(loop), index=2
}"#;
    let report = audit(&Module::parse(text).expect("a module"));
    assert_eq!(report.copies[0].trips, Some(12));
    let found = report.copy_reasons();
    assert_eq!(
        (found[0].origin.kind, found[0].origin.op_name.as_deref()),
        (CopyEndKind::Argument, Some("params['w']"))
    );
    let (shape, _) = fix(&found[0]).expect("a fix");
    assert_eq!(shape, "bf16[1,2048,1024]{2,1,0:T(8,128)(2,1)}");
}

/// Either branch copies what both are handed.
#[test]
fn branches_are_seen_through() {
    let text = r#"HloModule jit_f, is_scheduled=true

one { w = f32[1024,1024]{0,1:T(8,128)} parameter(0)
  c = f32[1024,1024]{1,0:T(8,128)} copy(w)
  ROOT r = f32[1024]{0:T(1024)} custom-call(c), custom_call_target="rows"
}
other { w = f32[1024,1024]{0,1:T(8,128)} parameter(0)
  d = f32[1024,1024]{1,0:T(8,128)} copy(w)
  ROOT r = f32[1024]{0:T(1024)} custom-call(d), custom_call_target="sums"
}
ENTRY main { w = f32[1024,1024]{0,1:T(8,128)} parameter(0), metadata={op_name="w"}
  p = pred[]{:T(512)} parameter(1), metadata={op_name="p"}
  ROOT r = f32[1024]{0:T(1024)} conditional(p, w, w), true_computation=one, false_computation=other
}"#;
    let fixes = |text: &str| {
        let found = audit(&Module::parse(text).expect("a module")).copy_reasons().to_vec();
        found.iter().map(|reason| fix(reason).map(|(shape, _)| shape)).collect::<Vec<_>>()
    };
    let shape = || Some("f32[1024,1024]{1,0:T(8,128)}".to_owned());
    assert_eq!(fixes(text), [shape(), shape()]);
    let as_it_is =
        text.replace("d = f32[1024,1024]{1,0:T(8,128)} copy(w)", "d = f32[1024,1024]{0,1:T(8,128)} negate(w)");
    assert_eq!(fixes(&as_it_is), [None]);
}

/// Programs compiled by libtpu, once as they are and once with arguments and results as the fixes say: no fix is given but
/// those after which the copies were gone, and the program held no more.
#[test]
fn recompiling_confirms_fixes() {
    let text = tilewise_hlo::read_text(programs::path("copies.hlo.gz")).expect("texts");
    let mut measured: HashMap<(&str, &str, usize), (usize, usize)> = HashMap::new();
    let table = programs::text("copies.csv");
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let count = |at: usize| cells[at].parse::<usize>().expect("a number");
        measured.insert((cells[0], cells[1], count(2)), (count(3), count(4)));
    }
    let modules = Module::parse_all(text);
    let (mut fixed, mut programs) = (0, 0);
    for module in &modules {
        let module = module.as_ref().expect("a module");
        let tpu: Generation = module.name().rsplit('.').next().and_then(|tpu| tpu.parse().ok()).expect("a generation");
        let program = Program::from(module.clone());
        let report = Audit::new(&program).machine(Machine::Tpu(tpu)).limit(None).run();
        let mut given: HashMap<(CopyEndKind, usize), usize> = HashMap::new();
        for reason in report.copy_reasons().iter().filter(|reason| reason.fix.is_some()) {
            let end = [Some(&reason.origin), reason.reader.as_ref()].into_iter().flatten();
            let mut end = end.filter(|end| matches!(end.kind, CopyEndKind::Argument | CopyEndKind::Result));
            let end = end.next().expect("an argument or a result");
            *given.entry((end.kind, end.number.expect("its number"))).or_default() += 1;
        }
        for ((kind, number), copies) in given {
            let (before, after) = measured[&(module.name(), kind.as_str(), number)];
            assert!(before - after >= copies, "{}: {} {number}", module.name(), kind.as_str());
            fixed += copies;
        }
        programs += 1;
    }
    // A rule that says nothing is no rule.
    assert_eq!((programs, fixed), (10, 20));
}

/// Each fix plans the program's memory again: of very many copied arguments the largest have one.
#[test]
fn the_largest_of_many_have_fixes() {
    let lines: Vec<String> = (0..100)
        .map(|at| {
            let rows = 1024 + 8 * at;
            format!(
                "  w{at} = f32[{rows},1024]{{0,1:T(8,128)}} parameter({at})
  c{at} = f32[{rows},1024]{{1,0:T(8,128)}} copy(w{at})
  {} = f32[{rows}]{{0:T(1024)}} custom-call(c{at}), custom_call_target=\"rows\"",
                if at == 99 { "ROOT r99".to_owned() } else { format!("r{at}") },
            )
        })
        .collect();
    let found: Vec<bool> = reasons("", &lines.join("\n")).iter().map(|reason| reason.fix.is_some()).collect();
    assert_eq!((found.len(), found.iter().filter(|has| **has).count(), found[99]), (100, 64, true));
}
