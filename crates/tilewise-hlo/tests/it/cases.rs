//! Unusual texts that a reader must judge rightly. XLA's own parser reads all of them but the cut one.

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

use tilewise_hlo::{Module, WarningKind, read_text};
use tilewise_testing::programs;

/// An alias of operand −1, which XLA takes and prints.
const ALIAS_MINUS1: &str = r#"HloModule m

ENTRY e {
  p = ((f32[8]{0}), f32[8]{0}) parameter(0)
  ROOT %async-update = ((f32[8]{0}), f32[8]{0}) custom-call(p), custom_call_target="x", output_to_operand_aliasing={{0,0}: (-1, {})}
}
"#;

/// An attribute on a line of its own, as XLA prints some programs for GPUs.
const ATTR_NEXT_LINE: &str = r"HloModule m

f (a: f32[4], b: f32[4]) -> f32[4] {
  a = f32[4]{0} parameter(0)
  b = f32[4]{0} parameter(1)
  ROOT c = f32[4]{0} add(a, b)
}

ENTRY e {
  p = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} fusion(p, p), kind=kLoop,
    calls=f
}
";

/// `HloModule` within a comment.
const COMMENT_HEADER: &str = r"// CHECK-LABEL: HloModule a
HloModule b

ENTRY e {
  ROOT p = f32[2]{0} parameter(0)
}
";

/// As XLA prints it: a module inside a string.
const ORIGIN: &str = r#"HloModule module, entry_computation_layout={(f32[4]{0})->f32[4]{0}}, origin_recovery_table={
  {"orig"} : {"orig__ovp0"},
  "
    HloModule rec, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

    ENTRY %r (p: f32[4]) -> f32[4] {
      ROOT %p = f32[4]{0} parameter(0)
    }


  "
}


ENTRY %main (p: f32[4]) -> f32[4] {
  ROOT %p = f32[4]{0} parameter(0)
}
"#;

fn text(name: &str) -> String {
    programs::text(&format!("cases/{name}"))
}

fn modules(text: &str) -> Vec<Module> {
    Module::parse_all(text).into_iter().map(Result::unwrap).collect()
}

fn only(text: &str) -> Module {
    let mut modules = modules(text);
    assert_eq!(modules.len(), 1, "{text}");
    modules.pop().unwrap()
}

fn one(name: &str) -> Module {
    only(&text(name))
}

/// Cut off within a computation.
fn one_half() -> Module {
    let whole = read_text(programs::example("gnn_large.v5e.hlo")).unwrap();
    only(&whole[..whole.len() / 2])
}

fn kinds(module: &Module) -> Vec<WarningKind> {
    module.warnings().iter().map(|warning| warning.kind()).collect()
}

#[test]
fn a_program_without_tiles_is_no_tpus() {
    for name in ["before_optimizations.v5e.txt", "cpu.hlo"] {
        assert!(!one(name).has_tiles(), "{name}");
    }
    assert!(one_half().has_tiles());
}

#[test]
fn a_cut_text_says_so_wherever_it_is_cut() {
    assert!(one_half().is_truncated());
    let whole = programs::text("rigid_frames.v5e.hlo");
    assert!(!modules(&whole)[0].is_truncated());
    let brace = whole.rfind('}').unwrap();
    for cut in (0..=brace).step_by(97) {
        let Some(start) = whole.get(..cut) else { continue };
        // Without any instruction it is an error.
        assert!(Module::parse(start).map_or(true, |module| module.is_truncated()), "cut at {cut}");
    }
}

#[test]
fn what_xla_prints_is_read() {
    let module = only(ORIGIN);
    assert_eq!((module.name(), module.instructions().len(), kinds(&module)), ("module", 1, vec![]));
    assert!(module.attribute("origin_recovery_table").unwrap().contains("HloModule rec"));

    let module = only(ATTR_NEXT_LINE);
    assert_eq!(kinds(&module), []);
    let fusion = module.entry().unwrap().root().unwrap();
    assert_eq!(fusion.calls().next().unwrap().computation().unwrap().name(), "f");

    let module = only(ALIAS_MINUS1);
    assert_eq!(module.entry().unwrap().root().unwrap().output_to_operand_aliasing().unwrap(), []);
}

#[test]
fn comments_hold_no_modules() {
    for text in [
        COMMENT_HEADER.to_owned(),
        COMMENT_HEADER.replace("// CHECK-LABEL: HloModule a", "/* HloModule a */"),
        COMMENT_HEADER.replace("// CHECK-LABEL: HloModule a", "/*\n HloModule a\nHloModule c\n*/"),
    ] {
        assert_eq!(modules(&text).iter().map(Module::name).collect::<Vec<_>>(), ["b"], "{text}");
    }
}

#[test]
fn every_module_of_a_text_is_read() {
    let text = text("two_modules.hlo");
    let found = modules(&text);
    assert_eq!(found.iter().map(Module::name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(found.iter().map(Module::source).collect::<String>(), text);
    assert!(found.iter().all(|module| kinds(module).is_empty()));
    assert_eq!(kinds(&Module::parse(text.clone()).unwrap()), [WarningKind::SeveralModules]);

    let logged = text.replace("HloModule", "I0101 00:00:00 dump.cc:7] HloModule");
    assert_eq!(modules(&logged).iter().map(Module::name).collect::<Vec<_>>(), ["a", "b"]);

    let cut = text.replacen("}\n", "", 1);
    let found = modules(&cut);
    assert_eq!(found.iter().map(Module::is_truncated).collect::<Vec<_>>(), [true, false]);

    let results = Module::parse_all(format!("HloModule empty\n{text}"));
    assert!(results[0].is_err() && results[1..].iter().all(Result::is_ok));
}

#[test]
fn what_is_read_of_a_module_lies_in_its_own_text() {
    // An operand of the first is open where the second begins, behind a log's prefix.
    let cut = "HloModule a\n\nENTRY e {\n  x = f32[4]{0} negate(y\n  I0101 00:00:00 dump.cc:7] HloModule b, is_scheduled=true\n\nENTRY e {\n  ROOT p = f32[4]{0} parameter(0)\n}\n";
    for module in Module::parse_all(cut).into_iter().flatten() {
        assert!(module.warnings().iter().all(|warning| module.source().get(warning.span()).is_some()));
    }
    // Instructions without names get some, which stand behind the text.
    let unnamed =
        "HloModule a\n\nENTRY e {\n  ROOT r = f32[4]{0} add(f32[4]{0} parameter(0), f32[4]{0} parameter(1))\n}\n";
    let names = |module: &Module| module.instructions().map(|each| each.name().to_owned()).collect::<Vec<_>>();
    let alone = names(&only(unnamed));
    assert!(alone.len() == 3 && alone.iter().all(|name| !name.is_empty()), "{alone:?}");
    for module in modules(&format!("{unnamed}{unnamed}")) {
        assert_eq!(names(&module), alone);
    }
}

#[test]
fn many_modules_are_read_in_linear_time() {
    const MANY: usize = 100_000;
    assert_eq!(modules(&"HloModule m\nx = f32[] add()\n".repeat(MANY)).len(), MANY);
    assert_eq!(modules(&"HloModule m, a={\nx = f32[] add()\n".repeat(MANY)).len(), MANY);
    assert!(Module::parse_all("/*\nHloModule m\n".repeat(MANY))[0].is_err());
}
