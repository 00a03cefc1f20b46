//! Copies: their class, how often they run, and which lines they cost.

use tilewise_audit::{CopyClass, audit, copies_by_line};
use tilewise_hlo::Module;

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
