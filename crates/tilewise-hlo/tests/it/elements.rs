//! Elements of tuples as operands. What is right was asked of jaxlib 0.12.0.1's parser, which printed each of these texts
//! again with the `get-tuple-element`s that it had made.

#![allow(clippy::unwrap_used, reason = "in helpers, which the lint does not take for tests")]

use tilewise_hlo::{ErrorKind, Module, Opcode, WarningKind};

const PARAMETER: &str = "p = (f32[2], (f32[3], f32[4])) parameter(0)";

fn module(lines: &str) -> Module {
    Module::parse(format!("HloModule m\n\nENTRY e {{\n  {PARAMETER}\n  {lines}\n}}")).unwrap()
}

/// Instructions but the parameter, as `name = shape opcode(operands)`.
fn instructions(lines: &str) -> Vec<String> {
    let module = module(lines);
    assert_eq!(module.warnings(), [], "{lines}");
    let text = |instruction: tilewise_hlo::Instruction<'_>| {
        let operands: Vec<_> = instruction.operands().map(|operand| operand.instruction().unwrap().name()).collect();
        let (name, shape, opcode) = (instruction.name(), instruction.shape_text(), instruction.opcode_text());
        let index = instruction.attribute("index").map(|index| format!(", index={index}")).unwrap_or_default();
        format!("{name} = {shape} {opcode}({}){index}", operands.join(", "))
    };
    module.instructions().skip(1).map(text).collect()
}

#[test]
fn each_distinct_element_is_one_instruction_before_its_first_reader() {
    assert_eq!(
        instructions(
            "a = f32[3] negate(p#1#0)\n  b = f32[3] add(p#1#0, a)\n  ROOT r = (f32[3], (f32[3], f32[4])) tuple(b, p#1)"
        ),
        [
            "p_1 = (f32[3], f32[4]) get-tuple-element(p), index=1",
            "p_1_0 = f32[3] get-tuple-element(p_1), index=0",
            "a = f32[3] negate(p_1_0)",
            "b = f32[3] add(p_1_0, a)",
            "r = (f32[3], (f32[3], f32[4])) tuple(b, p_1)",
        ]
    );
}

#[test]
fn blanks_comments_sigils_and_shapes_as_xla_takes_them() {
    let expected = ["p_0 = f32[2] get-tuple-element(p), index=0", "r = f32[2] negate(p_0)"];
    for operand in [
        "p#0",
        "%p#0",
        "p #0",
        "p # 0",
        "p\n  #0",
        "p#00",
        "p/*c*/#0",
        "p#/*c*/0",
        "p#0 /*#1*/",
        "/*#1*/p#0",
        "f32[2] p#0",
        "f32[2]{0} %p#0",
    ] {
        assert_eq!(instructions(&format!("ROOT r = f32[2] negate({operand})")), expected, "{operand}");
    }
    // The grammar reads what isn't printed on a line of its own.
    assert_eq!(instructions("ROOT r = f32[2] negate(\n p#0), k={\n }"), expected);
    assert_eq!(
        instructions("ROOT r = f32[2] add(negate(p#0), p#0)"),
        [
            "p_0 = f32[2] get-tuple-element(p), index=0",
            "negate.anon.1 = f32[2] negate(p_0)",
            "r = f32[2] add(negate.anon.1, p_0)"
        ]
    );
    // A shape that is left out is inferred through it.
    assert_eq!(instructions("ROOT r = negate(p#1#1)").last().unwrap(), "r = f32[4] negate(p_1_1)");
}

/// XLA gives the name to whichever comes first, and the other another; here what the text names keeps its name.
#[test]
fn names_that_are_taken_stay() {
    assert_eq!(
        instructions("p_0 = f32[2] constant({1, 2})\n  ROOT r = f32[2] add(p#0, p_0)"),
        ["p_0 = f32[2] constant()", "p_0.1 = f32[2] get-tuple-element(p), index=0", "r = f32[2] add(p_0.1, p_0)"]
    );
}

#[test]
fn what_xla_refuses() {
    for (lines, kind, text) in [
        ("ROOT r = f32[2] negate(p#2)", WarningKind::NoElement, "p#2"),
        ("ROOT r = f32[2] negate(p#0#0)", WarningKind::NoElement, "p#0#0"),
        ("ROOT r = f32[2] negate(%q#0)", WarningKind::UndefinedOperand, "q"),
        ("ROOT r = f32[2] negate(p#)", WarningKind::OperandSyntax, "p#"),
        ("ROOT r = f32[2] negate(p#-1)", WarningKind::OperandSyntax, "p#-1"),
        ("ROOT r = f32[2] negate(p#0.)", WarningKind::OperandSyntax, "p#0."),
        ("ROOT r = f32[2] negate(p#99999999999999999999)", WarningKind::OperandSyntax, "p#99999999999999999999"),
        // Of no parser yet: not an operand that isn't defined, but one that this reader doesn't understand.
        ("ROOT r = f32[2] negate(%p@0)", WarningKind::OperandSyntax, "%p@0"),
        ("ROOT r = f32[2] add(negate(p#0), %p@0)", WarningKind::OperandSyntax, "@"),
    ] {
        let module = module(lines);
        let error = module.check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused(kind), "{lines}");
        assert_eq!(module.source().get(error.span().unwrap()), Some(text), "{lines}");
    }
    let module = module("q = f32[2] negate(p#0)\n  ROOT r = f32[2] negate(q), control-predecessors={p#0}");
    assert_eq!(module.warnings()[0].kind(), WarningKind::UnreadLines);
}

/// Of a line on its own, operands may be left out.
#[test]
fn a_line_on_its_own() {
    let module = Module::parse("%copy.1 = f32[2]{0} copy(f32[2]{0} %while.1#2)").unwrap();
    assert_eq!(module.warnings(), []);
    let copy = module.instructions().next().unwrap();
    assert_eq!((copy.opcode(), copy.operand_names().collect::<Vec<_>>()), (Opcode::Copy, vec!["while.1"]));
    let module = Module::parse("w = (f32[2], f32[3]) custom-call(a)\nc = f32[3] copy(w#1)").unwrap();
    assert_eq!(
        module.instructions().map(|instruction| instruction.name().to_owned()).collect::<Vec<_>>(),
        ["w", "w_1", "c"]
    );
}

#[test]
fn an_element_is_where_it_is_read_first() {
    let module = module("ROOT a = f32[3] negate(p#1#0)");
    let written = |instruction: tilewise_hlo::Instruction<'_>| &module.source()[instruction.span()];
    let all: Vec<_> = module.instructions().map(|each| (each.name(), written(each))).collect();
    let root = "a = f32[3] negate(p#1#0)";
    assert_eq!(all, [("p", PARAMETER), ("p_1", root), ("p_1_0", root), ("a", root)]);
}
