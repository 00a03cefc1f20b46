//! Texts that no compiler printed: nothing may panic, overflow the stack or take more than linear time.

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

use tilewise_hlo::{ErrorKind, Module, WarningKind};
use tilewise_testing::programs;

/// Asks everything of everything.
fn walk(module: &Module) -> usize {
    let mut seen = module.warnings().iter().map(|warning| warning.to_string().len()).sum::<usize>();
    seen += module.input_output_aliases().map_or(0, |aliases| aliases.len());
    seen += module.entry_computation_layout().map_or(0, str::len);
    for computation in module.computations() {
        seen += computation.signature().len() + computation.execution_thread().map_or(0, str::len);
        seen += usize::from(computation.owns_buffers()) + usize::from(computation.root().is_some());
    }
    for instruction in module.instructions() {
        seen += instruction.operands().filter(|operand| operand.instruction().is_some()).count();
        seen += instruction.operands().filter_map(|operand| operand.shape_text()).count();
        seen += instruction.attributes().count() + instruction.calls().count() + instruction.frames().count();
        seen += instruction.metadata().and_then(|metadata| metadata.op_name()).map_or(0, |name| name.len());
        seen += instruction.parameter_number().unwrap_or_default() % 2;
        seen += usize::from(instruction.defines(&[0]).is_ok());
    }
    seen + module.buffers().filter(Result::is_ok).count()
}

fn try_text(text: &str) {
    if let Ok(module) = Module::parse(text) {
        walk(&module);
    }
}

fn real() -> String {
    programs::text("pallas_kernel.v5e.hlo")
}

#[test]
fn cut_anywhere() {
    let text = real();
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        try_text(&text[..end]);
        if end % 7 == 0 {
            try_text(&text[end..]);
        }
    }
}

#[test]
fn changed_anywhere() {
    let text = real();
    let mut state = 1_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let noise = [
        "{", "}", "(", ")", "[", "]", "\"", "\\", "\n", ",", "=", "/*", "*/", "//", "é", "\0", "%", "ROOT ", " ",
        "\r\n",
    ];
    for _ in 0..2000 {
        let mut changed = text.clone();
        for _ in 0..1 + next(4) {
            let at = next(changed.len());
            if changed.is_char_boundary(at) {
                let end = (at + next(3)).min(changed.len());
                let end = if changed.is_char_boundary(end) { end } else { at };
                changed.replace_range(at..end, noise[next(noise.len())]);
            }
        }
        try_text(&changed);
    }
}

#[test]
fn large_and_nested() {
    const MANY: usize = 100_000;
    let one = "x = f32[] add(a)\n";
    for text in [
        format!("x = {}f32[]{} add(a)\n{one}", "(".repeat(MANY), ")".repeat(MANY)),
        format!("{one}y = f32[] add(a), b={}", "{".repeat(MANY)),
        format!("{one}{}", "y = (\n".repeat(MANY)),
        format!("{one}{}", "y = f32[] add(\"\n".repeat(MANY)),
        format!("{one}{}", "y = f32[] add(\\\"\n".repeat(MANY)),
        format!("{one}{}", "y = f32[] add(a), b={\n".repeat(MANY)),
        format!("{one}{}", ", b={\n".repeat(MANY)),
        format!("{one}{}", "f (\n".repeat(MANY)),
        format!("{one}{}", "f (\"\n".repeat(MANY)),
        format!("{one}{}", "f {\n".repeat(MANY)),
        format!("{one}{}", "}\n".repeat(MANY)),
        format!("{one}{}", "junk\n\n".repeat(MANY)),
        format!("{one}{}", "/* \n".repeat(MANY)),
        format!("{one}y = (f32[], {} add(a)", "/*".repeat(MANY)),
        format!("{one}y = f32[] add(a), {}", "/*".repeat(MANY)),
        format!("{one}{}", "HloModule ".repeat(MANY)),
        format!("{}{one}", "xHloModule ".repeat(MANY)),
        format!("{}{one}", "HloModule/*\n".repeat(MANY)),
        format!("{}*/ ){one}", "HloModule/*\n".repeat(MANY)),
        format!("{}*/", "a/*\n".repeat(MANY)),
        format!("HloModule m\n{one}{}", "a/*\n".repeat(MANY)),
        format!("{}{one}", "FileNames\n1 \"a\"\n".repeat(MANY)),
        format!("{one}y = f32[] add({})", "%a, ".repeat(MANY)),
        format!("{one}y = f32[] add(a){}", ", k=v".repeat(MANY)),
        format!(
            "y = ({}) custom-call(), output_to_operand_aliasing={{{}}}",
            "f32[],".repeat(MANY),
            "{0}: (0, {}),".repeat(MANY)
        ),
        (0..MANY).map(|i| format!("f{i} {{ x = f32[] call(), to_apply=f{}\n}}\n", (i + 1) % MANY)).collect(),
    ] {
        try_text(&text);
    }
}

/// White space and comments are XLA's lexer's (`HloLexer::LexToken` in xla/hlo/parser/hlo_lexer.cc).
#[test]
fn a_header_takes_any_blank_before_its_name() {
    let rest = "m, is_scheduled=true\n\nENTRY e {\n  ROOT a = f32[2]{0} parameter(0)\n}\n";
    for blank in ["\t", "\n", "\r\n", "\r", "\n\n  ", "/* a */", " /* a\n*/ ", " // a\n", "  ", " \t\n"] {
        let text = format!("HloModule{blank}{rest}");
        let mut modules = Module::parse_all(text.clone());
        assert_eq!(modules.len(), 1, "{blank:?}");
        let module = modules.pop().unwrap().unwrap();
        assert_eq!((module.name(), module.is_scheduled(), module.warnings()), ("m", true, &[][..]), "{blank:?}");
        let two = Module::parse_all(format!("{text}{text}"));
        assert!(two.len() == 2 && two.iter().all(Result::is_ok), "{blank:?}");
    }
}

#[test]
fn a_carriage_return_ends_a_comment() {
    let text = "HloModule m\rENTRY e {\r  a = f32[2]{0} parameter(0) // \"\r  ROOT b = f32[2]{0} negate(a), metadata={op_name=\"a\rb\"}\r}\r";
    let module = Module::parse(text).unwrap();
    assert_eq!(module.warnings(), []);
    let names: Vec<_> =
        module.instructions().map(|it| (it.name(), it.metadata().and_then(|it| it.op_name()))).collect();
    assert_eq!(names, [("a", None), ("b", Some("a\\rb".into()))]);
}

#[test]
fn every_list_of_modules_ends() {
    for text in [
        "HloModule\tm",
        "HloModule\nm",
        "HloModule/**/m",
        "HloModule\nm = f32[] add()",
        " HloModule\nm=",
        "HloModule % HloModule x",
        "HloModule a HloModule\tb HloModule\nc",
        "x = f32[] add() HloModule\ty HloModule z",
        "\u{feff}HloModule\tm\nHloModule\tm",
    ] {
        assert!((1..=4).contains(&Module::parse_all(text).len()), "{text:?}");
    }
}

#[test]
fn frames_in_a_circle() {
    let text = "HloModule m
FileNames
1 \"a\\\"b.py\"

FileLocations
1 {file_name_id=1 function_name_id=9 line=3 end_line=3}

StackFrames
1 {file_location_id=1 parent_frame_id=3}
2 {file_location_id=1 parent_frame_id=2}
7 {file_location_id=1 parent_frame_id=8}

ENTRY e {
  x = f32[] custom-call(), metadata={stack_frame_id=1}
  y = f32[] custom-call(), metadata={stack_frame_id=7}
  ROOT z = f32[] custom-call(), metadata={stack_frame_id=5}
}";
    let module = Module::parse(text).unwrap();
    assert_eq!(module.warnings(), []);
    let counts: Vec<_> = module.instructions().map(|instruction| instruction.frames().count()).collect();
    assert_eq!(counts, [3, 1, 0]);
    let source = module.instructions().next().unwrap().source().unwrap();
    assert_eq!((&*source.file, source.line, source.function), ("a\"b.py", 3, None));
}

/// Line breaks are white space between the tables' rows, too (`HloLexer::LexToken`).
#[test]
fn tables_take_any_blank_between_rows() {
    let text = "HloModule m
FileNames
1 \"a.py\"
2 \"b.py\"

FunctionNames
1 \"f\"

FileLocations
1 {file_name_id=2 function_name_id=1 line=3 end_line=3}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

ENTRY e {
  ROOT x = f32[2]{0} parameter(0), metadata={stack_frame_id=1}
}
";
    let spaced = |by: &str| text.replace('\n', by);
    for text in [
        spaced("\n"),
        spaced("\n\n"),
        spaced(" \n"),
        spaced("\n  "),
        spaced("\r\n"),
        spaced("\n\t\n"),
        spaced("\n/* a */"),
    ] {
        let module = Module::parse(text.as_str()).unwrap();
        assert_eq!((module.warnings(), module.computations().len()), (&[][..], 1), "{text}");
        let source = module.instructions().next().unwrap().source().unwrap();
        assert_eq!((&*source.file, source.line, source.function.as_deref()), ("b.py", 3, Some("f")), "{text}");
    }
}

#[test]
fn other_things_are_named() {
    for (text, hint) in [
        ("", "empty"),
        ("module @jit_f attributes {} {\n  func.func public @main() {\n", "StableHLO"),
        ("{ lambda ; a:f32[]. let b = neg a in (b,) }", "jaxpr"),
        ("BufferAssignment:\nallocation 0: size 4\n", "buffer assignment"),
        ("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm.", "out-of-memory"),
        ("\n\u{5}jit_f\u{12}", "binary"),
        ("hello\n", "no line reads"),
        (
            "\u{1b}]8;;http://a.b\u{7}A line of a terminal that has links, and no program.\u{1b}]8;;\u{7}\n",
            "no line reads",
        ),
        ("{\"text\": \"x = f32[2] add(a)\\nROOT y = f32[2] negate(x)\\n\"}", "in a string of JSON"),
        (&"SGxvTW9kdWxl".repeat(9), "base64"),
        ("HloModule jit_f, is_scheduled=true\n\nENTRY %main () -> f32[] {\n", "cut"),
    ] {
        let error = Module::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotHlo);
        assert!(error.to_string().contains(hint), "{text}: {error}");
    }
}

fn warnings(text: &str) -> Vec<(WarningKind, &str)> {
    let module = Module::parse(text).unwrap();
    walk(&module);
    module.warnings().iter().map(|warning| (warning.kind(), &text[warning.span()])).collect()
}

#[test]
fn nothing_is_lost_in_silence() {
    let unread = WarningKind::UnreadLines;
    assert_eq!(
        warnings("ENTRY f {\n x = f32[2] custom-call()\n what?\n\n ever\n y = f32[] junk\n}\n"),
        [(unread, "what?\n\n ever\n y = f32[] junk")]
    );
    assert_eq!(warnings("ENTRY f {\n x = f32[2] custom-call()\n"), [(WarningKind::UnterminatedComputation, "f")]);
    assert_eq!(
        warnings("HloModule m\nf {\n x = f32[2] custom-call()\n"),
        [(WarningKind::UnterminatedComputation, "f"), (WarningKind::EntryMissing, "")]
    );
    assert_eq!(warnings("HloModule m\nf {\n x = f32[2] custom-call()\n}\ng {\n}"), [(WarningKind::NoEntry, "")]);
    assert_eq!(
        warnings("HloModule m\nENTRY f {\n x = f32[2] custom-call()\n}\nHloModule n\nENTRY g {\n}"),
        [(WarningKind::SeveralModules, "HloModule n")]
    );
    assert_eq!(
        warnings("x = f32[2] custom-call(), b={\ny = f32[2] custom-call()"),
        [(unread, "x = f32[2] custom-call(), b={")]
    );
    assert_eq!(warnings("x = f32[2] custom-call()\n/* y\n"), [(WarningKind::UnterminatedComment, "/* y\n")]);
}

/// Beside each is the answer of XLA's parser (jaxlib 0.12), but for values of `num_partitions` and names of the header:
/// those it takes, or those it doesn't know.
#[test]
fn what_xla_refuses_is_named() {
    let head = |head: &str| {
        format!(
            "HloModule m{head}\n\nENTRY e {{\n  a = f32[8]{{0}} parameter(0)\n  ROOT r = f32[8]{{0}} add(a, a)\n}}\n"
        )
    };
    let line = |line: &str| {
        format!(
            "HloModule m\n\nf {{\n  ROOT p = f32[8]{{0}} parameter(0)\n}}\n\nENTRY e {{\n  a = f32[8]{{0}} parameter(0)\n  \
             i = s32[] parameter(1)\n  ROOT r = f32[8]{{0}} {line}\n}}\n"
        )
    };
    use WarningKind::{DuplicateAttribute, HeaderValue, OperandCount, UnknownHeaderAttribute};
    for (text, kind) in [
        // attribute is_scheduled already exists
        (head(", is_scheduled=true, is_scheduled=false"), DuplicateAttribute),
        (
            head(", input_output_alias={}, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }"),
            DuplicateAttribute,
        ),
        // expects true or false
        (head(", is_scheduled=TRUE"), HeaderValue),
        (head(", is_scheduled=true, num_partitions=9223372036854775808"), HeaderValue),
        (head(", is_scheduled=true, num_partitions=0"), HeaderValue),
        // expected primitive type, saw kRbrace
        (head(", is_scheduled=true, entry_computation_layout={((((}"), HeaderValue),
        // unexpected attribute "memory_of"
        (head(", is_scheduled=true, memory_of=2"), UnknownHeaderAttribute),
        // attribute calls already exists
        (line("fusion(a), kind=kLoop, calls=f, calls=f"), DuplicateAttribute),
        (
            line("fusion(a), kind=kLoop, calls=f, backend_config={\"a\":1}, calls=f, sharding={replicated}"),
            DuplicateAttribute,
        ),
        (line("add(a, a), metadata={op_name=\"a\"}, metadata={op_name=\"a\"}"), DuplicateAttribute),
        // unexpected attribute "condition"
        (line("convert(a), condition=f, body=f"), WarningKind::UnexpectedAttribute),
        (line("copy(a), branch_computations={f}"), WarningKind::UnexpectedAttribute),
        // XLA aborts on the rest of an attribute's name.
        (line("custom-call(a), custom_call_target=\"x\",d_computations={f}"), WarningKind::MisspeltAttribute),
        // expects 2 operands, but has 1 operands; and so on
        (line("add(a)"), OperandCount),
        (line("add(a, a, a)"), OperandCount),
        (line("copy(a, a)"), OperandCount),
        (line("iota(a), iota_dimension=0"), OperandCount),
        (line("select(a, a)"), OperandCount),
        (line("reduce(a, a, a), dimensions={}, to_apply=f"), OperandCount),
        (line("scatter(a, a), to_apply=f"), OperandCount),
        (line("dynamic-update-slice(a)"), OperandCount),
        (line("while(a, a), condition=f, body=f"), OperandCount),
        (line("conditional(i, a, a, a), branch_computations={f}"), OperandCount),
        (line("conditional(i, a), branch_computations={f, f}"), OperandCount),
        (line("conditional(i, a, a, a), true_computation=f, false_computation=f"), OperandCount),
    ] {
        let module = Module::parse(&*text).unwrap();
        assert_eq!(module.warnings().first().map(|warning| warning.kind()), Some(kind), "{text}");
        assert_eq!(module.check().is_err(), kind.is_refused_by_xla(), "{text}");
    }
    for text in [
        head(", is_scheduled=true, num_partitions=8, replica_count=1, frontend_attributes={a=\"b\"}"),
        line(
            "fusion(a), kind=kLoop, calls=f, metadata={op_name=\"a, calls=f\"}, backend_config={\"a\":\"b, calls=f\"}",
        ),
        line("conditional(i, a, a), branch_computations={f, f}"),
    ] {
        assert_eq!(Module::parse(&*text).unwrap().warnings(), [], "{text}");
    }
}
