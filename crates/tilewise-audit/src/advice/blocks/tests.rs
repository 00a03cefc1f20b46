//! Arrays in blocks of rows that nothing joins.

use crate::{Audit, Program, recommendation::finding::Finding};

/// A matrix of 64 MiB with a number for each of 4,096 rows of `x` and of `y`, which `w` is made of; `END` are its readers.
const TEXT: &str = r#"HloModule jit_f, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
place {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  c = f32[] maximum(a, b)
  k = s32[] minimum(i, j)
  ROOT s = (f32[], s32[]) tuple(c, k)
}
both {
  a = f32[] parameter(0)
  c = f32[] parameter(1)
  b = f32[] parameter(2)
  d = f32[] parameter(3)
  e = f32[] add(a, b)
  f = f32[] add(c, d)
  ROOT s = (f32[], f32[]) tuple(e, f)
}
ENTRY main {
  x.1 = f32[4096,16]{1,0:T(8,128)} parameter(0), metadata={op_name="state['x']"}
  y.1 = f32[16,4096]{1,0:T(8,128)} parameter(1), metadata={op_name="y"}
  zero = f32[] constant(0)
  p = f32[4096,4096]{1,0:T(8,128)} dot(x.1, y.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  w = f32[4096,4096]{1,0:T(8,128)} exponential(p)
  END
}"#;

/// The dimension, the rows, and the number of sums.
fn found(end: &str) -> Option<(usize, Option<String>, usize)> {
    let program = Program::parse(TEXT.replace("END", end)).expect("a module");
    Audit::new(&program).run().advice().iter().find_map(|one| match &one.finding {
        Finding::Blocks(blocks) => Some((blocks.dimension, blocks.of.clone(), blocks.sums)),
        _ => None,
    })
}

#[test]
fn rows_are_alone_and_columns_meet() {
    // Forces on the rows, and a sum of all.
    let sums = "f = f32[4096,16]{1,0:T(8,128)} dot(w, x.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[] reduce(w, zero), dimensions={0,1}, to_apply=add
  ROOT r = (f32[4096,16]{1,0:T(8,128)}, f32[]) tuple(f, s)";
    assert_eq!(found(sums), Some((0, Some("state['x']".to_owned()), 1)));
    // Each row is divided by its sum, so columns meet.
    let softmax = "s = f32[4096]{0:T(1024)} reduce(w, zero), dimensions={1}, to_apply=add
  all = f32[4096,4096]{1,0:T(8,128)} broadcast(s), dimensions={0}
  d = f32[4096,4096]{1,0:T(8,128)} divide(w, all)
  ROOT f = f32[4096,16]{1,0:T(8,128)} dot(d, x.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    assert_eq!(found(softmax).map(|(dimension, ..)| dimension), Some(0));
    // By columns, too: a block of either needs the sums of all.
    let both = softmax
        .replace(
            "all =",
            "c = f32[4096]{0:T(1024)} reduce(w, zero), dimensions={0}, to_apply=add
  t = f32[4096]{0:T(1024)} add(s, c)
  all =",
        )
        .replace("broadcast(s)", "broadcast(t)");
    assert_eq!(found(&both), None);
    // Products of all pairs of rows need all rows.
    let pairs = "f = f32[4096,4096]{1,0:T(8,128)} dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT s = f32[] reduce(f, zero), dimensions={0,1}, to_apply=add";
    assert_eq!(found(pairs), None);
    // A ranking of each row.
    let ranked =
        "k = (f32[4096,8]{1,0:T(8,128)}, s32[4096,8]{1,0:T(8,128)}) custom-call(w), custom_call_target=\"TopK\"
  v = f32[4096,8]{1,0:T(8,128)} get-tuple-element(k), index=0
  s = f32[] reduce(w, zero), dimensions={0,1}, to_apply=add
  ROOT r = (f32[4096,8]{1,0:T(8,128)}, f32[]) tuple(v, s)";
    assert_eq!(found(ranked), Some((0, Some("state['x']".to_owned()), 1)));
    assert_eq!(found(&ranked.replace("TopK", "own")), None);
    // The place of the largest of all is a running one.
    let place = "n = s32[4096,4096]{1,0:T(8,128)} iota(), iota_dimension=0
  none = s32[] constant(0)
  m = (f32[], s32[]) reduce(w, n, zero, none), dimensions={0,1}, to_apply=place, metadata={source_file=\"a.py\" source_line=7}
  ROOT r = s32[] get-tuple-element(m), index=1";
    let lines = |end: &str| {
        let text = TEXT.replace("state['x']", "params['x']").replace("\"y\"", "\"params['y']\"").replace("END", end);
        let report = Audit::new(&Program::parse(text).expect("a module")).run();
        report.advice().iter().find_map(|one| match &one.finding {
            Finding::Blocks(blocks) => Some(blocks.joined.iter().map(|line| line.line).collect::<Vec<_>>()),
            _ => None,
        })
    };
    assert_eq!(lines(place), Some(vec![7]));
    assert_eq!(lines(place.split(", metadata").next().unwrap_or_default()), None);
    // Two sums, as of complex numbers.
    let two = "m = (f32[], f32[]) reduce(w, p, zero, zero), dimensions={0,1}, to_apply=both
  ROOT r = f32[] get-tuple-element(m), index=1";
    assert_eq!(lines(two), Some(vec![]));
    // The matrix itself is returned.
    assert_eq!(found("ROOT r = f32[4096,4096]{1,0:T(8,128)} negate(w)"), None);
}

/// A line that calls a function with both the rows and a sum over them, such as a solver, can't be taken in blocks.
#[test]
fn rows_are_joined_in_a_call() {
    let tables = r#"HloModule jit_f, is_scheduled=true

FileNames
1 "f.py"

FunctionNames
1 "step"
2 "solve"

FileLocations
1 {file_name_id=1 function_name_id=1 line=6 end_line=6 column=1 end_column=2}
2 {file_name_id=1 function_name_id=2 line=2 end_line=2 column=1 end_column=2}
3 {file_name_id=1 function_name_id=2 line=3 end_line=3 column=1 end_column=2}
4 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=2}
4 {file_location_id=4 parent_frame_id=1}
"#;
    let at = |line: &str| r#", metadata={op_name="jit(f)/op" stack_frame_id=LINE}"#.replace("LINE", line);
    let end = "m = f32[4096,16]{1,0:T(8,128)} multiply(x.1, x.1)JOINT
  s = f32[16]{0:T(128)} reduce(m, zero), dimensions={0}, to_apply=addJOINT
  f = f32[4096,16]{1,0:T(8,128)} dot(w, x.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}READ
  ROOT r = (f32[4096,16]{1,0:T(8,128)}, f32[16]{0:T(128)}) tuple(f, s)";
    let text = TEXT.replace("HloModule jit_f, is_scheduled=true\n", tables);
    let text = text.replace("rhs_contracting_dims={0}\n", "rhs_contracting_dims={0}MADE\n").replace("(p)", "(p)MADE");
    let text = text.replace("END", end).replace("MADE", &at("2")).replace("READ", &at("4"));
    let blocks = |joint: &str| {
        let text = text.replace("JOINT", &at(joint));
        let program = Program::parse(text).expect("a module");
        let report = Audit::new(&program).run();
        let mut found = report.advice().iter().filter_map(|one| match &one.finding {
            Finding::Blocks(_) => one.edited.as_ref().map(|edited| (edited.line.line, edited.more.clone())),
            _ => None,
        });
        found.next()
    };
    assert_eq!(blocks("4"), Some((6, vec![7])));
    assert_eq!(blocks("3"), None);
}

/// An argument in a wider type, which each turn of a loop reads twice.
#[test]
fn an_argument_in_a_wider_type_is_made_anew() {
    let found = |element: &str| {
        let text = r#"HloModule jit_f, is_scheduled=true

widen {
  p = ELEMENT[8192,4096]{1,0:T(8,128)} parameter(0)
  m = f32[4096]{0:T(1024)} parameter(1)
  c = f32[8192,4096]{1,0:T(8,128)} convert(p)
  b = f32[8192,4096]{1,0:T(8,128)} broadcast(m), dimensions={1}
  ROOT d = f32[8192,4096]{1,0:T(8,128)} subtract(c, b)
}
goes_on {
  s = (s32[], f32[8192,16]{1,0:T(8,128)}, f32[8192,4096]{1,0:T(8,128)}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT l = pred[] compare(i, n), direction=LT
}
turn {
  s = (s32[], f32[8192,16]{1,0:T(8,128)}, f32[8192,4096]{1,0:T(8,128)}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  q = f32[8192,16]{1,0:T(8,128)} get-tuple-element(s), index=1
  x = f32[8192,4096]{1,0:T(8,128)} get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  z = f32[4096,16]{1,0:T(8,128)} dot(x, q), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  y = f32[8192,16]{1,0:T(8,128)} dot(x, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[8192,16]{1,0:T(8,128)}, f32[8192,4096]{1,0:T(8,128)}) tuple(j, y, x)
}
ENTRY main {
  x.1 = ELEMENT[8192,4096]{1,0:T(8,128)} parameter(0), metadata={op_name="genotypes"}
  m.1 = f32[4096]{0:T(1024)} parameter(1), metadata={op_name="mean"}
  q.1 = f32[8192,16]{1,0:T(8,128)} parameter(2), metadata={op_name="q"}
  wide = f32[8192,4096]{1,0:T(8,128)} fusion(x.1, m.1), kind=kLoop, calls=widen, metadata={source_file="a.py" source_line=3}
  zero = s32[] constant(0)
  start = (s32[], f32[8192,16]{1,0:T(8,128)}, f32[8192,4096]{1,0:T(8,128)}) tuple(zero, q.1, wide)
  w = (s32[], f32[8192,16]{1,0:T(8,128)}, f32[8192,4096]{1,0:T(8,128)}) while(start), condition=goes_on, body=turn
  ROOT r = f32[8192,16]{1,0:T(8,128)} get-tuple-element(w), index=1
}"#;
        let report = Audit::new(&Program::parse(text.replace("ELEMENT", element)).expect("a module")).run();
        report.advice().iter().find_map(|one| match &one.finding {
            Finding::Blocks(found) => Some((found.dimension, found.of.clone(), found.sums, found.is_of_step)),
            _ => None,
        })
    };
    assert_eq!(found("s8"), Some((0, Some("genotypes".to_owned()), 1, true)));
    // It takes no more than the argument itself.
    assert_eq!(found("f32"), None);
}
