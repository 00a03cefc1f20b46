//! An audit costs what its text does: of each shape of program, four times the text takes about four times the steps
//! and the memory.
//!
//! Steps are looks at instructions, positions and values, and bytes of shapes and attributes that are read
//! (`tilewise_hlo::steps`); memory is all bytes that are ever allocated. Time is not measured.
//!
//! A program of its own, since its allocator counts.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    fmt::Write as _,
};
use tilewise_audit::{Audit, Content, Report};
use tilewise_draw::{Options, Scene};
use tilewise_hlo::{Module, dataflow::Dataflow};
use tilewise_report::{
    AuditOutput, Csv, Exporter, Github, Html, Json, Markdown, MemoryViz, Reader, Sarif, ShapeSummary, Terminal, Text,
    Trace, WriteText,
};

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

/// Counts the bytes that a thread allocates.
struct Counting;

// SAFETY: all is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // While a thread ends, its allocations aren't counted.
        let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + layout.size() as u64));
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises, the pointer is of `alloc` above with the same layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const A: &str = "f32[16,128]{1,0:T(8,128)}";
/// The array in another order: between the two a copy moves bytes.
const B: &str = "f32[16,128]{0,1:T(8,128)}";

/// Lines, one for each number.
fn each(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut lines, k| {
        let _ = writeln!(lines, "  {}", line(k));
        lines
    })
}

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(", ")
}

fn tuple(count: usize) -> String {
    format!("({})", list(count, |_| A.to_owned()))
}

fn program(head: &str, computations: &str, entry: &str) -> String {
    format!("HloModule m, is_scheduled=true{head}\n\n{computations}ENTRY e {{\n{entry}}}\n")
}

/// A loop that passes on a tuple of `width` arrays, each computed anew by `made`.
fn loop_of(name: &str, width: usize, made: impl Fn(usize) -> String) -> String {
    let wide = tuple(width);
    let got = each(width, |k| format!("g{k} = {A} get-tuple-element(b), index={k}"));
    let results = list(width, |k| format!("m{k}"));
    format!(
        "{name} {{\n  b = {wide} parameter(0)\n{got}{}  ROOT t = {wide} tuple({results})\n}}\n\
         {name}_goes_on {{\n  d = {wide} parameter(0)\n  ROOT p = pred[]{{:T(512)}} custom-call(d)\n}}\n",
        each(width, made)
    )
}

fn repeat_in_entry(count: usize, line: impl Fn(usize) -> String) -> String {
    program("", "", &format!("  a = {A} parameter(0)\n{}  ROOT r = {A} add(a, a)\n", each(count, line)))
}

/// Each with a name, a program by its size, and that size.
type Growing = (&'static str, fn(usize) -> String, usize);

const SHAPES: &[Growing] = &[
    (
        "deep tuples",
        |n| repeat_in_entry(n, |k| format!("t{k} = {}{A}{} custom-call(a)", "(".repeat(200), ")".repeat(200))),
        10,
    ),
    (
        "arguments",
        |n| {
            program(
                "",
                "",
                &format!(
                    "{}  ROOT r = {A} add(p0, p0)\n",
                    each(n, |k| format!(
                        "p{k} = f32[400,12]{{1,0:T(8,128)}} parameter({k}), metadata={{op_name=\"p[{k}]\"}}"
                    ))
                ),
            )
        },
        200,
    ),
    (
        "donated arguments",
        |n| {
            let aliases = list(n, |k| format!("{{{k}}}: ({k}, {{}}, may-alias)"));
            let lines =
                each(n, |k| format!("p{k} = {A} parameter({k})")) + &each(n, |k| format!("v{k} = {A} add(p{k}, p{k})"));
            let root = format!("  ROOT r = {} tuple({})\n", tuple(n), list(n, |k| format!("v{k}")));
            program(&format!(", input_output_alias={{ {aliases} }}"), "", &(lines + &root))
        },
        200,
    ),
    (
        "results",
        |n| {
            let root = format!("  ROOT r = {} tuple({})\n", tuple(n), list(n, |k| format!("v{k}")));
            program(
                "",
                "",
                &format!("  a = {A} parameter(0)\n{}{root}", each(n, |k| format!("v{k} = {A} custom-call(a)"))),
            )
        },
        200,
    ),
    (
        "readers of a wide argument",
        |n| {
            program(
                "",
                "",
                &format!(
                    "  a = {} parameter(0)\n{}  ROOT r = {A} add(u0, u0)\n",
                    tuple(n),
                    each(n, |k| format!("u{k} = {A} custom-call(a)"))
                ),
            )
        },
        200,
    ),
    (
        "updates in place",
        |n| {
            let updates =
                each(n, |k| format!("u{} = f32[4096,128]{{1,0:T(8,128)}} dynamic-update-slice(u{k}, a, i, i)", k + 1));
            program(
                "",
                "",
                &format!(
                    "  a = {A} parameter(0)\n  i = s32[]{{:T(128)}} parameter(1)\n  u0 = f32[4096,128]{{1,0:T(8,128)}} custom-call(a)\n{updates}  ROOT r = {A} custom-call(u{n})\n"
                ),
            )
        },
        200,
    ),
    (
        "a fusion of many updates",
        |n| {
            let (wide, aliases) = (tuple(n), list(n, |k| format!("{{{k}}}: ({k}, {{}})")));
            let body = format!(
                "f {{\n{}  ROOT d = {wide} custom-call({}), output_to_operand_aliasing={{{aliases}}}\n}}\n",
                each(n, |k| format!("p{k} = {A} parameter({k})")),
                list(n, |k| format!("p{k}"))
            );
            program(
                "",
                &body,
                &format!(
                    "  a = {A} parameter(0)\n{}  u = {wide} fusion({}), kind=kLoop, calls=f\n  ROOT r = {A} get-tuple-element(u), index=0\n",
                    each(n, |k| format!("z{k} = {A} custom-call(a)")),
                    list(n, |k| format!("z{k}"))
                ),
            )
        },
        100,
    ),
    (
        "branches",
        |n| {
            let bodies: String =
                (0..n).map(|k| format!("c{k} {{\n  p = {A} parameter(0)\n  ROOT r = {A} add(p, p)\n}}\n")).collect();
            program(
                "",
                &bodies,
                &format!(
                    "  a = {A} parameter(0)\n  i = s32[]{{:T(128)}} parameter(1)\n  ROOT r = {A} conditional(i, {}), branch_computations={{{}}}\n",
                    list(n, |_| "a".to_owned()),
                    list(n, |k| format!("c{k}"))
                ),
            )
        },
        400,
    ),
    (
        "a chain of calls",
        |n| {
            let bodies: String = (1..n)
                .map(|k| format!("c{k} {{\n  p = {A} parameter(0)\n  ROOT r = {A} call(p), to_apply=c{}\n}}\n", k - 1))
                .collect();
            program(
                "",
                &format!("c0 {{\n  p = {A} parameter(0)\n  ROOT r = {A} add(p, p)\n}}\n{bodies}"),
                &format!("  a = {A} parameter(0)\n  ROOT r = {A} call(a), to_apply=c{}\n", n - 1),
            )
        },
        200,
    ),
    (
        "fusions of fusions",
        |n| {
            let fusion = |operand: &str, k| format!("{A} fusion({operand}), kind=kLoop, calls=f{k}");
            let bodies: String = (1..n)
                .map(|k| {
                    let [first, second] = [fusion("p", k - 1), fusion("q", k - 1)];
                    format!("f{k} {{\n  p = {A} parameter(0)\n  q = {first}\n  ROOT r = {second}\n}}\n")
                })
                .collect();
            program(
                "",
                &format!("f0 {{\n  p = {A} parameter(0)\n  ROOT r = {A} add(p, p)\n}}\n{bodies}"),
                &format!("  a = {A} parameter(0)\n  ROOT r = {}\n", fusion("a", n - 1)),
            )
        },
        200,
    ),
    (
        "loops in a row",
        |n| {
            let loops: String =
                (0..n).map(|k| loop_of(&format!("l{k}"), 2, |at| format!("m{at} = {A} negate(g{at})"))).collect();
            let runs = each(n, |k| format!("w{} = {} while(w{k}), condition=l{k}_goes_on, body=l{k}", k + 1, tuple(2)));
            program(
                "",
                &loops,
                &format!("  w0 = {} parameter(0)\n{runs}  ROOT r = {A} get-tuple-element(w{n}), index=0\n", tuple(2)),
            )
        },
        100,
    ),
    (
        "a wide loop",
        |n| {
            let wide = tuple(n);
            program(
                "",
                &loop_of("l", n, |k| format!("m{k} = {A} negate(g{k})")),
                &format!("  p = {wide} parameter(0)\n  ROOT w = {wide} while(p), condition=l_goes_on, body=l\n"),
            )
        },
        100,
    ),
    (
        "copies in a wide loop",
        |n| {
            let wide = tuple(n);
            program(
                "",
                &loop_of("l", n, |k| format!("m{k} = {A} copy(g{k})")),
                &format!("  p = {wide} parameter(0)\n  ROOT w = {wide} while(p), condition=l_goes_on, body=l\n"),
            )
        },
        100,
    ),
    (
        "asynchronous copies",
        |n| {
            let pair = format!("({}, {A}, u32[]{{:S(2)}})", A.replace("8,128)}", "8,128)S(1)}"));
            let lines = each(n, |k| format!("s{k} = {pair} copy-start(a)"))
                + &each(n, |k| format!("d{k} = {} copy-done(s{k})", A.replace("8,128)}", "8,128)S(1)}")));
            program("", "", &format!("  a = {A} parameter(0)\n{lines}  ROOT r = {A} add(d0, d0)\n"))
        },
        200,
    ),
    (
        "work areas of SparseCores",
        |n| {
            let pair = format!("(({A}), {A}, ({A}))");
            let lines = each(n, |k| {
                format!(
                    "s{k} = {pair} fusion-start(a), calls=f, backend_config={{\"core_ids\":[\"0\"],\"core_type\":\"CORE_TYPE_SC\"}}"
                )
            }) + &each(n, |k| format!("d{k} = {A} fusion-done(s{k})"));
            program(
                "",
                &format!("f {{\n  p = {A} parameter(0)\n  ROOT r = {A} add(p, p)\n}}\n"),
                &format!("  a = {A} parameter(0)\n{lines}  ROOT r = {A} add(d0, d0)\n"),
            )
        },
        100,
    ),
    (
        "results in place of operands",
        |n| {
            let aliases = list(n, |k| format!("{{{k}}}: ({k}, {{}})"));
            let operands = each(n, |k| format!("z{k} = {A} custom-call(a)"));
            let call =
                format!("custom-call({}), output_to_operand_aliasing={{{aliases}}}", list(n, |k| format!("z{k}")));
            program(
                "",
                "",
                &format!(
                    "  a = {A} parameter(0)\n{operands}  u = {} {call}\n  ROOT r = {A} get-tuple-element(u), index=0\n",
                    tuple(n)
                ),
            )
        },
        100,
    ),
    ("copies of an argument", |n| repeat_in_entry(n, |k| format!("k{k} = {B} copy(a)")), 200),
    (
        "a chain of copies",
        |n| {
            repeat_in_entry(n, |k| {
                format!(
                    "k{k} = {} copy({})",
                    if k % 2 == 0 { B } else { A },
                    if k == 0 { "a".to_owned() } else { format!("k{}", k - 1) }
                )
            })
        },
        // Each is followed back to its origin, as far as `REACH`.
        2 * tilewise_hlo::dataflow::REACH,
    ),
    (
        "long names",
        |n| {
            let name = "x".repeat(20 * n);
            repeat_in_entry(2, |k| format!("{name}{k} = {A} negate(a)"))
        },
        400,
    ),
    (
        "long metadata",
        |n| {
            let name = "jit(f)/".repeat(n);
            repeat_in_entry(2, |k| format!("x{k} = {A} negate(a), metadata={{op_name=\"{name}\"}}"))
        },
        400,
    ),
];

fn report(text: String) -> Report {
    let contents = Content::read(text.into_bytes());
    let Ok([Ok(Content::Program(program))]) = <[_; 1]>::try_from(contents) else { panic!("a program") };
    let report = Audit::new(&program).run();
    assert!(report.plan().is_ok(), "{:?}", report.plan().err());
    report
}

/// The cost of some work.
#[derive(Default)]
struct Cost {
    steps: u64,
    bytes: u64,
    written: u64,
}

fn cost(work: impl FnOnce() -> usize) -> Cost {
    let before = (tilewise_hlo::steps(), ALLOCATED.get());
    let written = work() as u64;
    Cost { steps: tilewise_hlo::steps() - before.0, bytes: ALLOCATED.get() - before.1, written }
}

/// The parts of a cost that grew more than the text did.
fn superlinear(name: &str, text: f64, few: &Cost, many: &Cost) -> Vec<String> {
    let each =
        [("steps", few.steps, many.steps), ("bytes", few.bytes, many.bytes), ("output", few.written, many.written)];
    // A part of the same size for all texts must not hide the growth.
    let grown = each.map(|(what, few, many)| (what, many as f64 / few.max(1) as f64, many));
    let grown = grown.into_iter().filter(|(_, growth, many)| *growth > 1.3 * text && *many > 1000);
    grown
        .map(|(what, growth, many)| {
            format!("{name}: {text:.1} times the text takes {growth:.1} times the {what}, {many}")
        })
        .collect()
}

#[test]
fn four_times_the_text_costs_four_times_as_much() {
    let mut found = Vec::new();
    for (name, program, size) in SHAPES {
        let (small, large) = (program(*size), program(4 * size));
        let text = large.len() as f64 / small.len() as f64;
        let audited = |text| {
            cost(|| {
                let report = report(text);
                assert!(report.timeline(0).is_some() && report.copy_reasons().len() == report.copies.len());
                let _ = (report.advice(), report.work(), report.time().map(|time| time.padding_seconds()));
                0
            })
        };
        found.extend(superlinear(name, text, &audited(small), &audited(large)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Texts that cut axes, each with a size.
const CUTS: &[Growing] = &[
    (
        "reshapes of reshapes",
        |n| {
            repeat_in_entry(n, |k| {
                let bounds = ["2048", "2,1024", "4,512", "8,256", "2,2,2,256", "16,128"][k % 6];
                let of = k.checked_sub(1).map_or_else(|| "a".to_owned(), |before| format!("v{before}"));
                format!("v{k} = f32[{bounds}] reshape({of})")
            })
        },
        200,
    ),
    (
        "reshapes that don't divide",
        |n| {
            repeat_in_entry(n, |k| {
                let bounds = ["30,77", "77,30", "42,55", "2310", "14,165", "6,385"][k % 6];
                let of = if k < 6 { "custom-call(a)".to_owned() } else { format!("reshape(v{})", k - 1 - k % 5) };
                format!("v{k} = f32[{bounds}] {of}")
            })
        },
        200,
    ),
    (
        "an asynchronous chain",
        |n| {
            let pair = |count| format!("({}, {A}, u32[])", tuple(count));
            let updates = each(n, |k| format!("s{} = {} custom-call-update(s{k}, a)", k + 1, pair(1)));
            let lines = format!("  s0 = {} custom-call-start(a)\n{updates}", pair(1));
            program("", "", &format!("  a = {A} parameter(0)\n{lines}  ROOT r = {A} custom-call-done(s{n})\n"))
        },
        200,
    ),
];

#[test]
fn axes_of_four_times_the_text_take_four_times_as_much() {
    let mut found = Vec::new();
    for (name, program, size) in SHAPES.iter().chain(CUTS) {
        let (small, large) = (program(*size), program(4 * size));
        let text = large.len() as f64 / small.len() as f64;
        let related = |text: String| {
            let flow = Dataflow::new(&Module::parse(text).expect("a program"));
            cost(|| flow.axes().all().len())
        };
        found.extend(superlinear(name, text, &related(small), &related(large)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn four_times_the_text_is_shown_for_four_times_as_much() {
    type Made = fn() -> Box<dyn Exporter>;
    let formats: [(&str, Made); 10] = [
        ("text", || Box::new(Text(Terminal::plain(100)))),
        ("json", || Box::new(Json)),
        ("csv", || Box::new(Csv)),
        ("markdown", || Box::new(Markdown)),
        ("github", || Box::new(Github)),
        ("sarif", || Box::<Sarif>::default()),
        ("trace", || Box::new(Trace)),
        ("memory-viz", || Box::new(MemoryViz)),
        ("html", || Box::new(Html)),
        ("json of all", || Box::new(Json)),
    ];
    let mut found = Vec::new();
    for (name, program, size) in SHAPES {
        let (small, large) = (program(*size), program(4 * size));
        let text = large.len() as f64 / small.len() as f64;
        let [few, many] = [small, large].map(report);
        for (format, made) in formats {
            let shown = |report: &Report| {
                let output = AuditOutput { all: format.ends_with("all"), ..AuditOutput::new(report.clone()) };
                cost(|| {
                    let (mut format, mut out) = (made(), Vec::new());
                    format.begin(&mut out).expect("a vector takes all");
                    format.write(&output, &mut out).expect("a vector takes all");
                    format.end(&mut out).expect("a vector takes all");
                    out.len()
                })
            };
            found.extend(superlinear(&format!("{name} as {format}"), text, &shown(&few), &shown(&many)));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_layout_of_four_times_the_tiles_is_drawn_and_explained_for_four_times_as_much() {
    let mut found = Vec::new();
    for tile in ["(2,2)", "(2)", "(1,2)", "(*,2)"] {
        let shape = |count: usize| format!("f32[4,8]{{1,0:T{}}}", tile.repeat(count));
        let shown = |count: usize| {
            cost(|| {
                let tiled = tilewise::Tiled::new(&shape(count).parse().expect("a shape")).expect("a layout");
                let scene = Scene::of(&tiled, &Options::new().with_highlight(vec![1, 5])).expect("a picture");
                let summary = ShapeSummary::read(&shape(count), &mut Reader::without_notes()).expect("a shape");
                scene.to_svg().len() + scene.to_terminal(80).len() + summary.to_text(80).len()
            })
        };
        found.extend(superlinear(tile, 4.0, &shown(100), &shown(400)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A line of only words that messages have, as long as a log may be.
#[test]
fn a_line_of_four_times_the_words_is_explained_for_four_times_as_much() {
    let mut found = Vec::new();
    for words in [
        "hbm ",
        "limit exceeds vmem ",
        "Used 16G of 15G hbm ",
        "RESOURCE_EXHAUSTED: out of memory ",
        "Total hbm usage >= 17.00G: ",
        "Size: 1.00G Shape: f32[8,128]{1,0} ",
        "\r",
        "”",
    ] {
        let explained = |count: usize| {
            let line = words.repeat(count);
            cost(|| {
                let Ok(message) = tilewise_oom::Message::parse(&line) else { return 0 };
                tilewise_audit::explain(message, None).to_text(80).len()
            })
        };
        found.extend(superlinear(words, 4.0, &explained(2000), &explained(8000)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
