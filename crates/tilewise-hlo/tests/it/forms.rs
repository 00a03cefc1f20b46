//! Forms that XLA's parser takes and no compiler prints, and texts that it refuses
//! (xla/hlo/parser/hlo_parser.cc and its tests).

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

use tilewise_hlo::{ErrorKind, Module, WarningKind};

/// Each instruction as `name = shape opcode(operands)`, after the name of its computation where that begins.
fn read(text: &str) -> Vec<String> {
    let module = Module::parse(text).unwrap();
    assert_eq!(module.warnings(), [], "{text}");
    module.check().unwrap();
    let mut lines = Vec::new();
    for computation in module.computations() {
        lines.push(format!("{}{}", if computation.is_entry() { "ENTRY " } else { "" }, computation.name()));
        for instruction in computation.instructions() {
            assert_eq!(instruction.computation(), computation);
            assert_eq!(computation.instruction(instruction.name()), Some(instruction));
            let operands: Vec<_> =
                instruction.operands().map(|operand| operand.instruction().unwrap().name()).collect();
            let called: Vec<_> = instruction.calls().map(|call| call.computation().unwrap().name()).collect();
            let called = if called.is_empty() { String::new() } else { format!(" calls {}", called.join(", ")) };
            let shape = instruction.shape().unwrap();
            lines.push(format!(
                "{}{} = {shape} {}({}){called}",
                if computation.root() == Some(instruction) { "ROOT " } else { "" },
                instruction.name(),
                instruction.opcode_text(),
                operands.join(", "),
            ));
        }
    }
    lines
}

/// Of a module whose entry has these lines, the lines of the entry.
fn entry(lines: &str) -> Vec<String> {
    let read = read(&format!("HloModule m\n\nENTRY e {{\n{lines}\n}}\n"));
    let start = read.iter().position(|line| line == "ENTRY e").unwrap();
    read[start + 1..].to_vec()
}

#[test]
fn a_computation_on_one_line() {
    let text = "HloModule m big { p = f32[2]{0} parameter(0)  ROOT q = f32[2]{0} add(p, p) } ENTRY e {
  a = f32[2]{0} parameter(0)
  ROOT b = f32[2]{0} call(a), to_apply=big, metadata={op_name=\"}\"} }";
    for text in [text.to_owned(), text.replacen(" big", ", is_scheduled=true\nbig", 1), text.replace('\n', " ")] {
        let expected = ["big", "p = f32[2]{0} parameter()", "ROOT q = f32[2]{0} add(p, p)", "ENTRY e"];
        assert_eq!(read(&text)[..4], expected);
        assert_eq!(read(&text)[4..], ["a = f32[2]{0} parameter()", "ROOT b = f32[2]{0} call(a) calls big"]);
    }
}

#[test]
fn braces_at_the_end_of_lines() {
    let text = "HloModule m
f {
  p = f32[] parameter(0)
  ROOT q = f32[] add(p, p), metadata={op_name=\"{\"} }

ENTRY e { a = f32[] parameter(0)
  b = f32[] call(a), to_apply={ p = f32[] parameter(0)
    ROOT c = f32[] call(p), to_apply={ r = f32[] parameter(0)
      ROOT s = f32[] negate(r)}}
  ROOT d = f32[] call(b), to_apply=f}
";
    let expected = [
        "f",
        "p = f32[] parameter()",
        "ROOT q = f32[] add(p, p)",
        "_",
        "r = f32[] parameter()",
        "ROOT s = f32[] negate(r)",
        "_.1",
        "p = f32[] parameter()",
        "ROOT c = f32[] call(p) calls _",
        "ENTRY e",
        "a = f32[] parameter()",
        "b = f32[] call(a) calls _.1",
        "ROOT d = f32[] call(b) calls f",
    ];
    assert_eq!(read(text), expected);
}

#[test]
fn computations_within_instructions() {
    let text = "HloModule m
c { t = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(5)
  ROOT l = pred[] compare(i, n), direction=LT
}
ENTRY e {
  p = (s32[], f32[8]{0}) parameter(0)
  ROOT w = (s32[], f32[8]{0}) while(p), condition=
    c, body={
    t = (s32[], f32[8]{0}) parameter(0)
    i = s32[] get-tuple-element(t), index=0
    x = f32[8]{0} get-tuple-element(t), index=1
    one = s32[] constant(1)
    j = s32[] add(i, one)
    ROOT r = (s32[], f32[8]{0}) tuple(j, x)
  }
}
";
    let read = read(text);
    assert!(read.contains(&"ROOT w = (s32[], f32[8]{0}) while(p) calls c, _".to_owned()), "{read:?}");
    assert!(read.contains(&"ROOT r = (s32[], f32[8]{0}) tuple(j, x)".to_owned()), "{read:?}");

    let branches = "  p = pred[] parameter(0)
  x = f32[] constant(1)
  ROOT c = f32[] conditional(p, x, x, x), branch_computations={
    { a = f32[] parameter(0) ROOT b = f32[] negate(a) }, g, {ROOT a = f32[] parameter(0)} }";
    let text = format!("HloModule m\ng {{ ROOT a = f32[] parameter(0) }}\nENTRY e {{\n{branches}\n}}\n");
    let read = self::read(&text);
    assert!(read.contains(&"ROOT c = f32[] conditional(p, x, x, x) calls _, g, _.1".to_owned()), "{read:?}");

    // A line alone may hold a computation, too, and leave its operands out.
    let line = "f32[] r = f32[] reduce(f32[10]{0}, f32[]), dimensions={0}, to_apply={
      a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }";
    let module = Module::parse(line.strip_prefix("f32[] ").unwrap()).unwrap();
    assert_eq!(module.warnings(), []);
    let reduce = module.instructions().next_back().unwrap();
    assert_eq!(reduce.calls().next().unwrap().computation().unwrap().instructions().len(), 3);
}

#[test]
fn operands_that_are_instructions() {
    assert_eq!(
        entry(
            "  ROOT s = f32[3]{0} add(f32[3]{0} parameter(0), /*b*/ f32[3]{0} multiply(f32[3]{0} constant({1, 2, 3}), f32[3]{0} parameter(1)))"
        ),
        [
            "parameter.anon.1 = f32[3]{0} parameter()",
            "constant.anon.2 = f32[3]{0} constant()",
            "parameter.anon.3 = f32[3]{0} parameter()",
            "multiply.anon.4 = f32[3]{0} multiply(constant.anon.2, parameter.anon.3)",
            "ROOT s = f32[3]{0} add(parameter.anon.1, multiply.anon.4)",
        ]
    );
    assert_eq!(
        entry(
            "  a = f32[2]{0} parameter(0)\n  ROOT r = f32[2]{0} subtract(a,\n    negate(a)), metadata={op_name=\"r\"}"
        ),
        [
            "a = f32[2]{0} parameter()",
            "negate.anon.1 = f32[2]{0} negate(a)",
            "ROOT r = f32[2]{0} subtract(a, negate.anon.1)",
        ]
    );
}

#[test]
fn several_instructions_on_a_line() {
    let expected = ["a = f32[] parameter()", "b = f32[] negate(a)", "ROOT c = f32[] add(a, b)"];
    for lines in [
        "a = f32[] parameter(0) b = f32[] negate(a) ROOT c = f32[] add(a, b)",
        "a = f32[] parameter(0), metadata={op_name=\"a\"} %b=f32[] negate(a), backend_config=\"x\" ROOT %c=f32[] add(a, b)",
        "a\n=\nf32[]\nparameter(0)\nb =\n\tf32[] negate(/* a\n of two lines */a)\n\nROOT\nc = f32[] add(a\n,\nb\n)",
        "a = f32[] parameter(0) // b = f32[] constant(1)\n b = f32[] negate(a), k=v /* } */ ROOT c = f32[] add(a, b)",
    ] {
        assert_eq!(entry(lines), expected, "{lines}");
    }
}

#[test]
fn shapes_that_are_left_out() {
    // Of each, what `ShapeInference` says (xla/service/shape_inference.cc).
    let given = "  p = f32[2,3]{1,0} parameter(0)
  q = f32[2,3]{1,0} parameter(1)
  c = c64[4]{0} parameter(2)
  t = (f32[2]{0}, (s32[], bf16[5]{0})) parameter(3)
  o = f32[] parameter(4)
  m = f32[7,3,5]{2,1,0} parameter(5)
  n = f32[7,5,4]{2,1,0} parameter(6)
  i = s32[2,1]{1,0} parameter(7)";
    for (instruction, shape) in [
        ("negate(p)", "f32[2,3]{1,0}"),
        ("add(p, q)", "f32[2,3]{1,0}"),
        ("compare(p, q), direction=GT", "pred[2,3]{1,0}"),
        ("real(c)", "f32[4]{0}"),
        ("abs(c)", "f32[4]{0}"),
        ("abs(p)", "f32[2,3]{1,0}"),
        ("complex(p, q)", "c64[2,3]{1,0}"),
        ("tuple(p, t)", "(f32[2,3]{1,0}, (f32[2]{0}, (s32[], bf16[5]{0})))"),
        ("tuple()", "()"),
        ("get-tuple-element(t), index=1", "(s32[], bf16[5]{0})"),
        ("select(compare(p, q), p, q)", "f32[2,3]{1,0}"),
        ("broadcast(o), dimensions={4,5}", "f32[4,5]{1,0}"),
        ("transpose(m), dimensions={2,0,1}", "f32[5,7,3]{2,1,0}"),
        ("concatenate(p, q), dimensions={1}", "f32[2,6]{1,0}"),
        ("pad(p, o), padding=1_0x0_2_1", "f32[3,7]{1,0}"),
        ("reduce(m, o), dimensions={0,2}, to_apply=f", "f32[3]{0}"),
        ("reduce(p, q, o, o), dimensions={1}, to_apply=f", "(f32[2]{0}, f32[2]{0})"),
        (
            "dot(m, n), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
            "f32[7,3,4]{2,1,0}",
        ),
        (
            "gather(m, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3,5}",
            "f32[2,3,5]{2,1,0}",
        ),
        ("sort(p, q), dimensions={0}, to_apply=f", "(f32[2,3]{1,0}, f32[2,3]{1,0})"),
        ("map(p), dimensions={0,1}, to_apply=f", "f32[2,3]{1,0}"),
        ("call(o), to_apply=f", "f32[]"),
        ("after-all()", "token[]"),
        ("partition-id()", "u32[]"),
        ("topk(p), k=2", "(f32[2,2]{1,0}, s32[2,2]{1,0})"),
    ] {
        let text = format!(
            "HloModule m\nf {{ a = f32[] parameter(0)\n ROOT b = f32[] negate(a)\n}}\nENTRY e {{\n{given}\n  ROOT r = {instruction}\n}}"
        );
        let module = Module::parse(text.as_str()).unwrap();
        assert_eq!(module.warnings(), [], "{instruction}");
        assert_eq!(module.entry().unwrap().root().unwrap().shape().unwrap().to_string(), shape, "{instruction}");
        assert_eq!(module.source(), text);
    }
    // A shape that nothing implies must be written.
    assert_eq!(refusal("ROOT r = custom-call(), custom_call_target=\"t\""), WarningKind::NoShape);
    assert_eq!(refusal("p = f32[2] parameter(0)\n q = f32[3] parameter(1)\n ROOT r = add(p, q)"), WarningKind::NoShape);
}

#[test]
fn an_entry_without_its_keyword() {
    let text = "HloModule m, entry_computation_layout={(f32[8]{0})->f32[8]{0}}
f (a: f32[]) -> f32[] {
  ROOT a = f32[] parameter(0)
}
main (x: f32[8]) -> f32[8] {
  x = f32[8]{0} parameter(0)
  ROOT y = f32[8]{0} negate(x)
}
";
    assert_eq!(read(text)[2], "ENTRY main");
    // Without the entry, the last computation isn't what the header says.
    let cut = &text[..text.find("main").unwrap()];
    assert!(Module::parse(cut).unwrap().is_truncated());
}

#[test]
fn layouts_that_are_left_out() {
    let text = "HloModule m\nENTRY e {\n  p = f32[2,3] parameter(0)\n  ROOT q = f32[2,3]{0,1} copy(p)\n}";
    let module = Module::parse(text).unwrap();
    assert!(module.leaves_layouts_out());
    assert_eq!(module.instructions().next().unwrap().shape().unwrap().to_string(), "f32[2,3]{1,0}");
    // Where a compiler chose layouts, none is made up.
    let module = Module::parse(text.replace("{0,1}", "{0,1:T(8,128)}")).unwrap();
    assert!(!module.leaves_layouts_out());
    assert!(module.instructions().next().unwrap().shape().unwrap().layout().is_none());
}

/// The first fault of a module whose entry has these lines.
fn refusal(lines: &str) -> WarningKind {
    refusal_of(&format!("HloModule m\n\nENTRY e {{\n{lines}\n}}\n"))
}

fn refusal_of(text: &str) -> WarningKind {
    let module = Module::parse(text).unwrap();
    let Err(error) = module.check() else { panic!("taken: {text}") };
    let span = error.span().unwrap();
    assert!(text.get(span).is_some(), "{error}");
    assert!(error.to_string().starts_with("line "), "{error}");
    match error.kind() {
        ErrorKind::Refused(kind) => kind,
        other => panic!("{other:?}: {error}"),
    }
}

#[test]
fn what_xla_refuses() {
    let p = "p = f32[2] parameter(0)";
    for (lines, kind) in [
        ("b = f32[2] negate(a)\n ROOT a = f32[2] parameter(0)", WarningKind::UndefinedOperand),
        ("ROOT a = f32[2] negate(b c)\n b = f32[2] parameter(0)", WarningKind::OperandSyntax),
        ("a = f32[2] parameter(0)\n a = f32[2] negate(a)", WarningKind::DuplicateName),
        ("a = f32[2] parameter(0)\n b = f32[2] parameter(0)", WarningKind::ParameterNumbers),
        ("a = f32[2] parameter(1)", WarningKind::ParameterNumbers),
        ("a = f32[2] parameter(-1)", WarningKind::ParameterNumbers),
        ("ROOT a = f32[2] parameter(0)\n ROOT b = f32[2] negate(a)", WarningKind::SeveralRoots),
        (&format!("{p}\n ROOT a = f32[2] call(p), to_apply=e"), WarningKind::UndefinedComputation),
        (&format!("{p}\n ROOT a = f32[2] fusion(p), kind=kLoop, calls=gone"), WarningKind::UndefinedComputation),
        (&format!("{p}\n ROOT a = f32[2] fusion(p), kind=kLoop"), WarningKind::MissingAttribute),
        (&format!("{p}\n ROOT a = f32[2] fusion(p), calls"), WarningKind::MissingAttribute),
        (
            &format!("{p}\n ROOT a = f32[2] custom-call(p), output_to_0perand_aliasing={{}}"),
            WarningKind::MisspeltAttribute,
        ),
        ("t = (f32[2]) parameter(0)\n ROOT a = f32[2] get-tuple-element(t)", WarningKind::MissingAttribute),
        ("t = (f32[2]) parameter(0)\n ROOT a = f32[2] get-tuple-element(t), index=x", WarningKind::MissingAttribute),
        (&format!("{p}\n what?"), WarningKind::UnreadLines),
        (
            &format!("{p}\n a = f32[2] negate(p), metadata={{op_name=\"a\n b = f32[2] negate(p)"),
            WarningKind::UnreadLines,
        ),
    ] {
        assert_eq!(refusal(lines), kind, "{lines}");
    }
    let f = "f (a: f32[3]) -> f32[2] {\n  ROOT a = f32[3] parameter(0)\n}\n";
    let e = "ENTRY e {\n  ROOT a = f32[3] parameter(0)\n}\n";
    for (text, kind) in [
        (format!("HloModule m\n{f}{e}"), WarningKind::RootMismatch),
        (format!("HloModule m\n{e}{}", e.replace(" e ", " g ")), WarningKind::SeveralEntries),
        (format!("HloModule m\n{}{e}", e.replace("ENTRY ", "")), WarningKind::DuplicateName),
        (format!("HloModule m, is_scheduled=true, metadata={{}}\n{e}"), WarningKind::UnreadLines),
        (format!("HloModule m, is_scheduled=true junk\n{e}"), WarningKind::UnreadLines),
        (format!("HloModule m, input_0utput_alias={{}}\n{e}"), WarningKind::MisspeltAttribute),
        (format!("HloModule m\n{e}}}\n"), WarningKind::UnreadLines),
    ] {
        assert_eq!(refusal_of(&text), kind, "{text}");
    }
}

#[test]
fn what_only_contradicts_itself() {
    let text = "HloModule m, is_scheduled=true, entry_computation_layout={(f32[8]{0:T(256)})->f32[8]{0:T(256)}}
ENTRY e (x: f32[8]) -> f32[8] {
  ROOT x = f32[8]{0:T(256)} parameter(0)
}
";
    assert_eq!(Module::parse(text).unwrap().warnings(), []);
    for (from, to) in [("(f32[8]", "(f32[9]"), ("->f32[8]{0:T(256)}", "->f32[8]{0:T(512)}"), ("(x: f32[8])", "()")] {
        let module = Module::parse(text.replacen(from, to, 1)).unwrap();
        module.check().unwrap();
        let kinds: Vec<_> = module.warnings().iter().map(|warning| warning.kind()).collect();
        assert_eq!(kinds, [WarningKind::HeaderMismatch], "{to}");
    }
    let unknown = Module::parse(text.replace("parameter(0)", "no-such-thing()").replace("(x: f32[8])", "()")).unwrap();
    assert!(unknown.warnings().iter().any(|warning| warning.kind() == WarningKind::UnknownOpcode));
}

#[test]
fn parts_of_programs_are_not_refused() {
    for text in ["a = f32[2] negate(b)", "f {\n  a = f32[2] negate(b)\n}", "junk\na = f32[2] negate(b)\n}\n"] {
        let module = Module::parse(text).unwrap();
        assert!(module.is_part());
        module.check().unwrap();
    }
}
