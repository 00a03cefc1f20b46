//! Truncated or changed programs: one that isn't fully understood never fits, and has no other figures than the whole
//! program.

use tilewise_audit::{Audit, Content, MemoryBounds, Program};
use tilewise_hlo::Module;
use tilewise_testing::{Random, programs::text as program};

const PROGRAMS: [&str; 10] = [
    "fp4_scaled.v6e.hlo",
    "gnn.v6e.hlo",
    "host_weights_scan.v5e.hlo",
    "int4_weights.v4.hlo",
    "pallas_kernel.v5e.hlo",
    "pallas_prefetch_alias.v7x.hlo",
    "ragged_all_to_all.v5e.hlo",
    "reductions_kinds.v4.hlo",
    "rigid_frames.v5e.hlo",
    "sampler_loop.v6e.hlo",
];

/// The program of a text with nothing else in it.
fn read(text: String) -> Option<Program> {
    match <[_; 1]>::try_from(Content::read(text.into_bytes())) {
        Ok([Ok(Content::Program(program))]) => Some(program),
        _ => None,
    }
}

/// The bounds of a text's program, if they are complete.
fn passes(text: String) -> Option<MemoryBounds> {
    let program = read(text)?;
    program.for_tpu().ok()?;
    let bounds = Audit::new(&program).run().memory_bounds;
    bounds.fits(u64::MAX).map(|_| bounds)
}

#[test]
fn a_cut_program_has_the_figures_of_the_whole_or_none() {
    cut_each(90);
}

/// As above, at more places.
#[test]
#[ignore = "slow: `cargo xtask fuzz` runs it"]
fn a_program_cut_at_many_places_has_the_figures_of_the_whole_or_none() {
    cut_each(900);
}

/// Cuts each program at random places: a third of the cuts at its front, at its back, in its middle.
fn cut_each(cuts: usize) {
    let mut random = Random::new(29);
    let mut passed = 0;
    for name in PROGRAMS {
        let text = program(name);
        let whole = passes(text.clone()).expect(name);
        for cut in 0..cuts {
            let (one, other) = (random.below(text.len()), random.below(text.len()));
            let (start, end) = match cut % 3 {
                0 => (0, one),
                1 => (one, text.len()),
                _ => (one.min(other), one.max(other)),
            };
            if !text.is_char_boundary(start) || !text.is_char_boundary(end) {
                continue;
            }
            let rest = [&text[..start], &text[end..]].concat();
            if let Some(bounds) = passes(rest) {
                assert_eq!(bounds, whole, "{name} without {start}..{end}");
                passed += 1;
            }
        }
    }
    // Some cuts remove only blanks, or the source line of an instruction.
    let all = cuts * PROGRAMS.len();
    println!("{passed} of {all} cut texts pass, with the figures of the whole");
    assert!(passed * 20 < all, "{passed} of {all} pass");
}

/// The text of a module, written from its parsed parts.
fn written_again(module: &Module) -> String {
    let source = module.source();
    let first = module.computations().next().map_or("", |computation| computation.name());
    let before = &source[..first.as_ptr() as usize - source.as_ptr() as usize];
    let tables = &before[before.find('\n').expect("a header")..before.rfind('\n').expect("a line")];
    let attributes = |attributes: tilewise_hlo::Attributes<'_>| -> String {
        attributes.map(|attribute| format!(", {}={}", attribute.name, attribute.value)).collect()
    };
    let mut text = format!("HloModule {}{}{tables}", module.name(), attributes(module.attributes()));
    for computation in module.computations() {
        let mark = if computation.is_entry() { "ENTRY " } else { "" };
        text += &format!("\n\n{mark}%{} {} {{", computation.name(), computation.signature());
        for instruction in computation.instructions() {
            let mark = if instruction.is_root() { "ROOT " } else { "" };
            let (name, shape) = (instruction.name(), instruction.shape_text());
            let operands = match instruction.operands().count() {
                0 => instruction.operands_text().to_owned(),
                _ => instruction.operands().map(|operand| operand.text()).collect::<Vec<_>>().join(","),
            };
            let attributes = attributes(instruction.attributes());
            text += &format!("\n{mark}%{name} = {shape} {}({operands}){attributes}", instruction.opcode_text());
        }
        let thread = computation.execution_thread().map(|thread| format!(", execution_thread=\"{thread}\""));
        text += &format!("\n}}{}", thread.unwrap_or_default());
    }
    text
}

/// The text without blanks, comments and sigils.
fn bare(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once("*/").map_or("", |(_, rest)| rest));
    std::iter::once(first).chain(rest).flat_map(str::chars).filter(|c| !c.is_whitespace() && *c != '%').collect()
}

#[test]
fn what_passes_is_understood_to_the_last_byte() {
    let mut random = Random::new(30);
    let (mut passed, mut refused) = (0, 0);
    for name in PROGRAMS {
        let text = program(name);
        assert_eq!(bare(&written_again(&Module::parse(text.clone()).expect(name))), bare(&text), "{name}");
        let lines: Vec<&str> = text.lines().collect();
        for _ in 0..60 {
            let at = random.below(lines.len());
            let line = lines[at];
            let changed = match random.below(5_u32) {
                // The line removed, doubled, replaced by another line, or with one byte changed.
                0 => String::new(),
                1 => format!("{line}\n{line}"),
                2 => lines[random.below(lines.len())].to_owned(),
                _ if line.is_empty() => continue,
                _ => {
                    let mut bytes = line.as_bytes().to_vec();
                    let place = random.below(bytes.len());
                    bytes[place] = random.choose(b"{}()[]\"=,%#x0 \n");
                    let Ok(line) = String::from_utf8(bytes) else { continue };
                    line
                }
            };
            let changed = [&lines[..at], &[&changed], &lines[at + 1..]].concat().join("\n");
            if passes(changed.clone()).is_none() {
                refused += 1;
                continue;
            }
            passed += 1;
            let program = read(changed.clone()).expect("a program that passes");
            let (again, given) = (bare(&written_again(&program.module)), bare(&changed));
            let same = again.bytes().zip(given.bytes()).take_while(|(one, other)| one == other).count();
            let around = |text: &str| text.get(same.saturating_sub(60)..(same + 60).min(text.len())).map(str::to_owned);
            assert!(again == given, "{name}, line {}: {:?} is read as {:?}", at + 1, around(&given), around(&again));
        }
    }
    assert!(passed > 50 && refused > 50, "{passed} pass, {refused} do not");
}
