//! Shapes that contradict each other. `ShapeVerifier` (xla/service/hlo_verifier.cc) refuses each of these; the parser alone
//! takes them.

use tilewise_hlo::{Module, dataflow::Dataflow, read_text};
use tilewise_testing::programs;

const SMALL: &str = "f32[16,128]{1,0:T(8,128)}";
const LARGE: &str = "f32[40000,128]{1,0:T(8,128)}";

/// Computations, and lines of an entry that has `a` and `i`; `$` is the shape that must be `a`'s.
const PROGRAMS: &[(&str, &str)] = &[
    ("", "k = $ bitcast(a)"),
    ("", "k = $ copy(a)"),
    ("", "k = $ add(a, a)"),
    ("", "k = $ opt-barrier(a)"),
    ("", "k = $ domain(a), domain={kind=\"sharding\", entry={replicated}, exit={replicated}}"),
    ("", "k = $ dynamic-update-slice(a, a, i, i)"),
    ("", "k = $ set-dimension-size(a, i), dimensions={0}"),
    ("", "k = $ custom-call(a), custom_call_target=\"x\", output_to_operand_aliasing={{}: (0, {})}"),
    ("", "t = ($) tuple(a)"),
    ("", "t = (A) tuple(a)\n  k = $ get-tuple-element(t), index=0"),
    ("", "s = (A, A, u32[]{:S(2)}) copy-start(a)\n  k = $ copy-done(s)"),
    ("f {\n  p = $ parameter(0)\n  ROOT r = A add(p, p)\n}\n", "k = A call(a), to_apply=f"),
    ("f {\n  p = A parameter(0)\n  ROOT r = A add(p, p)\n}\n", "k = $ call(a), to_apply=f"),
    ("f {\n  p = A parameter(0)\n  ROOT r = A add(p, p)\n}\n", "k = $ fusion(a), kind=kLoop, calls=f"),
    ("f {\n  p = $ parameter(0)\n  ROOT r = A custom-call(p)\n}\n", "k = A fusion(a), kind=kLoop, calls=f"),
    (
        "f {\n  p = A parameter(0)\n  ROOT r = A add(p, p)\n}\n",
        "k = $ conditional(i, a, a), branch_computations={f, f}",
    ),
    (
        "f {\n  p = $ parameter(0)\n  ROOT r = A custom-call(p)\n}\n",
        "k = A conditional(i, a, a), branch_computations={f, f}",
    ),
    (
        "c {\n  p = A parameter(0)\n  ROOT k = pred[]{:T(512)} constant(false)\n}\n\
         f {\n  p = $ parameter(0)\n  ROOT r = A custom-call(p)\n}\n",
        "k = A while(a), condition=c, body=f",
    ),
    (
        "c {\n  p = A parameter(0)\n  ROOT k = pred[]{:T(512)} constant(false)\n}\n\
         f {\n  p = A parameter(0)\n  ROOT r = A add(p, p)\n}\n",
        "k = $ while(a), condition=c, body=f",
    ),
    (
        "f {\n  x = f32[]{:T(128)} parameter(0)\n  y = f32[]{:T(128)} parameter(1)\n  ROOT z = f32[]{:T(128)} add(x, y)\n}\n",
        "k = $ all-reduce-start(a), to_apply=f\n  d = $ all-reduce-done(k)",
    ),
];

fn mismatch(computations: &str, lines: &str, shape: &str) -> Option<String> {
    let text = format!(
        "HloModule m, is_scheduled=true\n\n{computations}ENTRY e {{\n  a = A parameter(0)\n  i = s32[]{{:T(128)}} parameter(1)\n  \
         {lines}\n  ROOT out = A copy(a)\n}}\n"
    );
    let module = Module::parse(
        text.replace(" A ", &format!(" {SMALL} "))
            .replace("(A", &format!("({SMALL}"))
            .replace(" A,", &format!(" {SMALL},"))
            .replace('$', shape),
    )
    .expect("a module");
    module.check().expect("a program");
    Dataflow::new(&module).mismatch().map(|mismatch| mismatch.to_string())
}

#[test]
fn what_holds_one_value_has_one_shape() {
    for (computations, lines) in PROGRAMS {
        assert_eq!(mismatch(computations, lines, SMALL), None, "{lines}");
        for other in [LARGE, "s8[16,128]{1,0:T(8,128)(4,1)}"] {
            assert!(mismatch(computations, lines, other).is_some(), "{other}: {computations}{lines}");
        }
    }
}

#[test]
fn results_have_the_bounds_that_their_operands_make() {
    for (line, wrong) in [
        ("k = f32[2048]{0:T(1024)} reshape(a)", "2047"),
        ("k = f32[128,16]{1,0:T(8,128)} transpose(a), dimensions={1,0}", "128,8"),
        ("k = f32[32,128]{1,0:T(8,128)} concatenate(a, a), dimensions={0}", "16,128"),
        ("k = f32[8,128]{1,0:T(8,128)} slice(a), slice={[0:16:2], [0:128]}", "4,128"),
        ("k = f32[8,128]{1,0:T(8,128)} dynamic-slice(a, i, i), dynamic_slice_sizes={8,128}", "4,128"),
        ("k = f32[16,128,4]{1,0,2:T(8,128)} broadcast(a), dimensions={0,1}", "8,128,4"),
        ("k = f32[16,16]{1,0:T(8,128)} dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}", "8,16"),
        ("k = pred[16,128]{1,0:T(8,128)(4,1)} compare(a, a), direction=LT", "8,128"),
        ("k = bf16[16,128]{1,0:T(8,128)(2,1)} convert(a)", "16,64"),
    ] {
        assert_eq!(mismatch("", line, SMALL), None, "{line}");
        let (start, end) = (line.find('[').expect("bounds") + 1, line.find(']').expect("bounds"));
        let wrong = format!("{}{wrong}{}", &line[..start], &line[end..]);
        let found = mismatch("", &wrong, SMALL).expect(&wrong);
        assert!(found.starts_with("`k` can't have its shape, as `a` has another"), "{found}");
    }
}

#[test]
fn what_meets_is_of_one_type() {
    for (other, is_sound) in [("s32", true), ("s8", false), ("bf16", false)] {
        let lines =
            format!("j = {other}[]{{:T(128)}} constant(1)\n  k = pred[]{{:T(512)}} compare(i, j), direction=LT");
        assert_eq!(mismatch("", &lines, SMALL).is_none(), is_sound, "{other}");
    }
    for (other, is_sound) in [("f32", true), ("bf16", true), ("s4", false), ("s32", false)] {
        let lines = format!(
            "j = {other}[]{{:T(128)}} constant(1)\n  k = f32[17,128]{{1,0:T(8,128)}} pad(a, j), padding=0_1x0_0"
        );
        assert_eq!(mismatch("", &lines, SMALL).is_none(), is_sound, "{other}");
    }
}

#[test]
fn no_compiled_program_contradicts_itself() {
    let mut checked = 0;
    for path in programs::all() {
        let Ok(text) = read_text(&path) else { continue };
        for module in Module::parse_all(text).into_iter().flatten() {
            assert_eq!(Dataflow::new(&module).mismatch(), None, "{} in {}", module.name(), path.display());
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}
