//! The sources of arrays: the user's line and a library's, and names for arrays that have none of their own.

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use tilewise_audit::{PeakRow, SpacePeak, audit};
use tilewise_hlo::Module;

/// A step that calls a model of `transformers`, whose layer calls one of Flax.
const TABLES: &str = r#"
FileNames
1 "train.py"
2 "/usr/lib/python3/site-packages/transformers/models/bert/modeling_flax_bert.py"
3 "/usr/lib/python3/site-packages/flax/linen/linear.py"

FunctionNames
1 "loss"
2 "FlaxBertSelfAttention.__call__"
3 "Dense.__call__"

FileLocations
1 {file_name_id=1 function_name_id=1 line=25 end_line=25 column=1 end_column=2}
2 {file_name_id=2 function_name_id=2 line=212 end_line=212 column=1 end_column=2}
3 {file_name_id=3 function_name_id=3 line=271 end_line=271 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=3}
"#;

fn peak(program: &str) -> SpacePeak {
    peak_with(TABLES, program)
}

fn peak_with(tables: &str, program: &str) -> SpacePeak {
    let text = format!("HloModule jit_f, is_scheduled=true\n{tables}\n{program}");
    let report = audit(&Module::parse(text).unwrap());
    report.memory_space(0).unwrap().peak.clone().unwrap()
}

fn row<'a>(peak: &'a SpacePeak, instruction: &str) -> &'a PeakRow {
    peak.rows.iter().find(|row| row.instruction == instruction).unwrap()
}

#[test]
fn the_users_line_leads_to_that_of_a_model() {
    let program = |metadata: &str| {
        format!(
            r#"ENTRY main (x: f32[256,512]) -> f32[512] {{
  x = f32[256,512]{{1,0:T(8,128)}} parameter(0)
  y = f32[256,512]{{1,0:T(8,128)}} custom-call(x), custom_call_target="f"{metadata}
  ROOT r = f32[512]{{0:T(512)}} custom-call(y), custom_call_target="g"
}}"#
        )
    };
    let found = peak(&program(", metadata={op_name=\"jit(f)/dot\" stack_frame_id=3}"));
    let source = row(&found, "y").source.clone().unwrap();
    assert_eq!((&*source.file, source.line), ("train.py", 25));
    let library = source.library.unwrap();
    assert_eq!((library.line, library.function.as_deref()), (212, Some("FlaxBertSelfAttention.__call__")));
    // A framework's line isn't listed as a library's.
    let found = peak(&program(", metadata={op_name=\"jit(f)/dot\" stack_frame_id=1}"));
    assert_eq!(row(&found, "y").source.as_ref().unwrap().library, None);
    // A program run by `python -c` has no lines: only the model's is left.
    let tables = TABLES.replace("\"train.py\"", "\"<string>\"");
    let found = peak_with(&tables, &program(", metadata={op_name=\"jit(f)/dot\" stack_frame_id=3}"));
    assert_eq!(row(&found, "y").source.as_ref().map(|source| source.line), Some(212));
    // A value without a name gets its reader's.
    let found = peak(&program("").replace("\"g\"", "\"g\", metadata={op_name=\"jit(f)/sum\" stack_frame_id=1}"));
    assert_eq!(row(&found, "y").op_name.as_deref(), Some("jit(f)/sum"));
}

#[test]
fn a_carry_is_named_after_its_loop() {
    let found = peak(
        r#"body (c.1: (s32[], f32[256,512])) -> (s32[], f32[256,512]) {
  c.1 = (s32[]{:T(128)}, f32[256,512]{1,0:T(8,128)}) parameter(0)
  i.1 = s32[]{:T(128)} get-tuple-element(c.1), index=0
  x.1 = f32[256,512]{1,0:T(8,128)} get-tuple-element(c.1), index=1
  y.1 = f32[256,512]{1,0:T(8,128)} custom-call(x.1), custom_call_target="f"
  ROOT t.1 = (s32[]{:T(128)}, f32[256,512]{1,0:T(8,128)}) tuple(i.1, y.1)
}

condition (c.2: (s32[], f32[256,512])) -> pred[] {
  c.2 = (s32[]{:T(128)}, f32[256,512]{1,0:T(8,128)}) parameter(0)
  ROOT go = pred[]{:T(512)} custom-call(c.2), custom_call_target="go"
}

ENTRY main (x: f32[256,512]) -> f32[256,512] {
  x = f32[256,512]{1,0:T(8,128)} parameter(0)
  i = s32[]{:T(128)} constant(0)
  own = f32[256,512]{1,0:T(8,128)} custom-call(x), custom_call_target="f"
  t = (s32[]{:T(128)}, f32[256,512]{1,0:T(8,128)}) tuple(i, own)
  l = (s32[]{:T(128)}, f32[256,512]{1,0:T(8,128)}) while(t), condition=condition, body=body, metadata={op_name="jit(f)/while" stack_frame_id=2}
  ROOT r = f32[256,512]{1,0:T(8,128)} get-tuple-element(l), index=1
}"#,
    );
    assert_eq!(found.op_name.as_deref(), Some("jit(f)/while"));
    assert_eq!(found.source.as_ref().map(|source| source.line), Some(25));
}
