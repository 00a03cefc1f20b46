//! Unusual texts; `data/cases/README.md` says what is right.

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

use tilewise_hlo::{Module, WarningKind, read_text};

fn text(name: &str) -> String {
    read_text(format!("{}/tests/data/cases/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn modules(text: &str) -> Vec<Module> {
    Module::parse_all(text).into_iter().map(Result::unwrap).collect()
}

fn one(name: &str) -> Module {
    let mut modules = modules(&text(name));
    assert_eq!(modules.len(), 1, "{name}");
    modules.pop().unwrap()
}

fn kinds(module: &Module) -> Vec<WarningKind> {
    module.warnings().iter().map(|warning| warning.kind()).collect()
}

#[test]
fn a_program_without_tiles_is_no_tpus() {
    for name in ["before_optimizations.v5e.txt", "cpu.hlo"] {
        assert!(!one(name).has_tiles(), "{name}");
    }
    assert!(one("cut_in_half.hlo").has_tiles());
}

#[test]
fn a_cut_text_says_so_wherever_it_is_cut() {
    assert!(one("cut_in_half.hlo").is_truncated());
    let whole = read_text(format!("{}/tests/data/rigid_frames.v5e.hlo", env!("CARGO_MANIFEST_DIR"))).unwrap();
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
    let module = one("origin.hlo");
    assert_eq!((module.name(), module.instructions().len(), kinds(&module)), ("module", 1, vec![]));
    assert!(module.attribute("origin_recovery_table").unwrap().contains("HloModule rec"));

    let module = one("attr_next_line.hlo");
    assert_eq!(kinds(&module), []);
    let fusion = module.entry().unwrap().root().unwrap();
    assert_eq!(fusion.calls().next().unwrap().computation().unwrap().name(), "f");

    let module = one("alias_minus1.hlo");
    assert_eq!(module.entry().unwrap().root().unwrap().output_to_operand_aliasing().unwrap(), []);
}

#[test]
fn comments_hold_no_modules() {
    for text in [
        text("comment_header.hlo"),
        text("comment_header.hlo").replace("// CHECK-LABEL: HloModule a", "/* HloModule a */"),
        text("comment_header.hlo").replace("// CHECK-LABEL: HloModule a", "/*\n HloModule a\nHloModule c\n*/"),
    ] {
        assert_eq!(modules(&text).iter().map(Module::name).collect::<Vec<_>>(), ["b"], "{text}");
    }
}

#[test]
fn handwritten_forms_are_named() {
    assert_eq!(kinds(&one("no_shape.hlo")), [WarningKind::UnreadLines]);
    let module = one("inline_param.hlo");
    assert_eq!(kinds(&module), [WarningKind::NestedInstruction]);
    assert_eq!(&module.source()[module.warnings()[0].span()], "f32[8]{0} parameter(0)");
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
fn many_modules_are_read_in_linear_time() {
    const MANY: usize = 100_000;
    assert_eq!(modules(&"HloModule m\nx = f32[] add()\n".repeat(MANY)).len(), MANY);
    assert_eq!(modules(&"HloModule m, a={\nx = f32[] add()\n".repeat(MANY)).len(), MANY);
    assert!(Module::parse_all("/*\nHloModule m\n".repeat(MANY))[0].is_err());
}
