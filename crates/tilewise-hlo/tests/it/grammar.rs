//! Every way of writing that XLA prints or its parser's own tests use, in small.

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

use tilewise_hlo::{Instruction, Module};

fn clean(text: &str) -> Module {
    let module = Module::parse(text).unwrap();
    assert_eq!(module.warnings(), [], "{text}");
    module
}

fn names(module: &Module) -> Vec<&str> {
    module.instructions().map(|instruction| instruction.name()).collect()
}

#[test]
fn computations_in_every_form() {
    let module = clean(
        "HloModule m

short {
  lhs = f32[] parameter(0)
  ROOT add.1 = f32[] add(lhs, lhs)
}

%scalar (p.1: f32[42]) -> f32[42] {
  ROOT %p.1 = f32[42]{0} parameter(0)
}

%tuple (p: (f32[2], (s8[], /*index=5*/token[]))) -> (f32[2], (s8[], token[])) { // remark
  %p = (f32[2]{0}, (s8[], /*index=5*/token[])) parameter(0)
}, execution_thread=\"sparsecore\"

ENTRY %main.2-3 () -> f32[] {
  ROOT %c = f32[] constant(1)
}
",
    );
    let found: Vec<_> =
        module.computations().map(|computation| (computation.name(), computation.instructions().len())).collect();
    assert_eq!(found, [("short", 2), ("scalar", 1), ("tuple", 1), ("main.2-3", 1)]);
    assert_eq!(module.computation("scalar").unwrap().signature(), "(p.1: f32[42]) -> f32[42]");
    assert_eq!(module.computation("tuple").unwrap().execution_thread(), Some("sparsecore"));
    assert_eq!(module.entry().unwrap().name(), "main.2-3");
    assert_eq!(module.computation("tuple").unwrap().root().unwrap().name(), "p");
}

#[test]
fn carriage_returns_marks_and_prefixes() {
    let text = "\u{feff}I0101 compiler.cc:12] dumping\n\nI0101 compiler.cc:13] HloModule m.1, buffer_donor={1}\r\n\r\nENTRY e {\r\n  x = f32[] constant(1), k=v\r\n}\r\n";
    let module = clean(text);
    assert_eq!((module.name(), module.attribute("buffer_donor")), ("m.1", Some("{1}")));
    assert_eq!(module.instructions().next().unwrap().attribute("k"), Some("v"));
    assert_eq!(names(&clean("\u{feff}x = f32[] add(a), op=\"HloModule x\"\ny = f32[] add(a)")), ["x", "y"]);
}

#[test]
fn instructions_over_several_lines() {
    let module = clean(
        "ENTRY e {
  c = f32[2,2]{1,0} constant({
    { 1, 2 },
    { 3, 4 }
  })
  d = f32[2] custom-call(c), custom_call_target=\"t\",
    backend_config={
      \"a\": [
        1
      ],
      \"b\": \"}\"
    }, metadata={op_name=\"d\"}

  /* a remark
     of two lines */
  // and one of one
  e =
    f32[2]
    add(c,
      d)
    , metadata={op_name=\"e\"}
}",
    );
    assert_eq!(names(&module), ["c", "d", "e"]);
    let [c, d, e] = &module.instructions().collect::<Vec<_>>()[..] else { unreachable!() };
    assert!(c.operands_text().ends_with("{ 3, 4 }\n  }"));
    assert_eq!(c.operands().count(), 0);
    assert!(d.attribute("backend_config").unwrap().ends_with("\"}\"\n    }"));
    assert_eq!(e.operand_names().collect::<Vec<_>>(), ["c", "d"]);
    for instruction in [d, e] {
        assert_eq!(instruction.metadata().unwrap().op_name().unwrap(), instruction.name());
    }
}

#[test]
fn operands_in_every_form() {
    let module = clean(
        "x = (f32[2], (s8[])) fusion(f32[2]{0:T(8)} %a.1, (f32[2], /*index=1*/s8[]) b-2, /*index=2*/%c_3, f32[] %d), calls=%f
y = f32[] parameter(7)
z = s32[] constant(-inf)
w = pred[] opt-barrier()",
    );
    let [x, y, z, w] = &module.instructions().collect::<Vec<_>>()[..] else { unreachable!() };
    assert_eq!(x.operand_names().collect::<Vec<_>>(), ["a.1", "b-2", "c_3", "d"]);
    let shapes: Vec<_> = x.operands().map(|operand| operand.shape_text()).collect();
    assert_eq!(shapes, [Some("f32[2]{0:T(8)}"), Some("(f32[2], /*index=1*/s8[])"), None, Some("f32[]")]);
    assert_eq!((y.parameter_number(), y.operands().count()), (Some(7), 0));
    assert_eq!((z.operands_text(), z.operands().count()), ("-inf", 0));
    assert_eq!((w.operands().count(), x.operands().next().unwrap().instruction()), (0, None));
}

#[test]
fn modules_are_shared_between_threads() {
    let module = clean("x = f32[] add(a)");
    let other = module.clone();
    let name =
        std::thread::spawn(move || other.instructions().map(|instruction| instruction.name().len()).sum::<usize>());
    assert_eq!(name.join().unwrap(), 1);
    assert!(module.instructions().next().map(|instruction: Instruction<'_>| instruction.span()) == Some(0..16));
}
