//! Programs that are loaded at once: sums of the compiler's own numbers.

use std::collections::BTreeSet;
use tilewise::{ByteSize, Shape, tpu::Generation};
use tilewise_audit::{Audit, Content, Member, PagesOf, Program, Report, SetChange, Together};
use tilewise_hlo::Document;
use tilewise_memory::Machine;
use tilewise_testing::programs;

/// `memory_analysis()` of libtpu 0.0.52 for the programs of `examples/server`: arguments, results, aliases,
/// temporaries, code.
const SAID: [(&str, [u64; 5]); 3] = [
    ("small", [184_554_496, 134_479_904, 134_217_728, 0, 2_469_888]),
    ("large", [184_559_616, 142_606_368, 134_217_728, 134_774_784, 4_475_392]),
    ("undonated", [184_554_496, 136_314_912, 0, 18_087_936, 3_930_624]),
];

/// As above for `small` and `large` with a cache of 3000 pages instead of 1024, without the code.
const SAID_OF_3000: [[u64; 4]; 2] =
    [[443_552_768, 393_478_176, 393_216_000, 0], [443_557_888, 401_604_640, 393_216_000, 134_807_552]];

fn text(name: &str) -> String {
    let file = std::fs::read(programs::example(&format!("server/{name}.v6e.hlo.gz"))).expect("an example");
    let document = Document::decode(file, u64::MAX).expect("a document");
    let contents = Content::of(document).into_iter();
    let program = contents.filter_map(|content| match content {
        Ok(Content::Program(program)) => Some(program.module.source().to_owned()),
        _ => None,
    });
    program.into_iter().next().expect("a program")
}

fn report(text: &str) -> Report {
    Audit::new(&Program::parse(text).expect("a program")).machine(Machine::Tpu(Generation::V6e)).run()
}

fn reports(names: &[&str]) -> Vec<Report> {
    names.iter().map(|name| report(&text(name))).collect()
}

fn together(reports: &[Report], names: &[&'static str], limit: u64) -> Together {
    let code = |name: &str| SAID.iter().find(|(known, _)| *known == name).map(|(_, said)| said[4]);
    let member = |(report, name): (&'_ Report, &&'static str)| (report.clone(), *name);
    let held: Vec<(Report, &'static str)> = reports.iter().zip(names).map(member).collect();
    let members = held.iter().map(|(report, name)| Member { report, name: Some(name), code_bytes: code(name) });
    Together::of(&members.collect::<Vec<_>>(), limit, None).expect("a sum")
}

/// Names and shapes of the entry's parameters, read from the text without a parser.
fn parameters(text: &str) -> BTreeSet<(String, String)> {
    let entry = text.split("\nENTRY ").nth(1).expect("an entry");
    let parameter = |line: &str| {
        let shape = line.split_once(" = ")?.1.split_once(" parameter(")?.0;
        let name = line.split_once("op_name=\"")?.1.split_once('"')?.0;
        Some((name.replace("\\'", "'"), shape.to_owned()))
    };
    entry.lines().filter_map(parameter).collect()
}

#[test]
fn a_set_is_the_sum_of_the_compilers_numbers() {
    let names = ["small", "large", "undonated"];
    let together = together(&reports(&names), &names, 32 << 30);
    for (program, (name, [arguments, outputs, aliases, temporaries, code])) in together.programs.iter().zip(SAID) {
        let found = [program.argument_bytes, program.output_bytes, program.alias_bytes, program.temporary_bytes];
        assert_eq!((&*program.name, found), (name, [arguments, outputs, aliases, temporaries]));
        assert_eq!(program.code_bytes, Some(code));
    }
    // Arrays that all programs share count once; arrays that differ between them are inputs of a call.
    let texts = names.map(|name| parameters(&text(name)));
    let [first, second, third] = &texts;
    let common: BTreeSet<_> = first.intersection(second).filter(|one| third.contains(one)).collect();
    let bytes =
        |shape: &str| shape.parse::<Shape>().expect("a shape").as_array().unwrap().sizes().unwrap().physical_bytes;
    assert_eq!(together.resident_bytes, common.iter().map(|(_, shape)| bytes(shape)).sum::<u64>());
    assert_eq!(together.residents.len(), common.len());
    let call = |at: usize| {
        let [arguments, outputs, aliases, ..] = SAID[at].1;
        outputs - aliases + arguments - together.resident_bytes
    };
    assert_eq!(together.call_bytes, (0..3).map(call).max().unwrap());
    assert_eq!(together.largest_temporaries, 134_774_784);
    assert_eq!(together.code_bytes, Some(SAID.iter().map(|(_, said)| said[4]).sum()));
    let parts = [together.resident_bytes, together.largest_temporaries, together.call_bytes, together.constant_bytes];
    assert_eq!(together.total_bytes, parts.iter().sum::<u64>() + together.code_bytes.unwrap());
    assert_eq!(together.fits(), Some(true));
}

#[test]
fn pages_fit_as_the_compiler_says_of_as_many() {
    let names = ["small", "large"];
    let reports = reports(&names);
    let known = together(&reports, &names, 32 << 30);
    // Both programs with 3000 pages, by the compiler's numbers; inputs and code as with 1024.
    let [small, large] = SAID_OF_3000;
    let resident = known.resident_bytes + small[0] - SAID[0].1[0];
    let limit = resident + large[3] + known.call_bytes + known.constant_bytes + known.code_bytes.unwrap();
    let pages = |limit| together(&reports, &names, limit).pages.expect("pages");
    let all = pages(limit);
    assert_eq!((all.fitting, all.count, all.arrays), (Some(3000), 1024, 4));
    assert_eq!(all.page_bytes * (3000 - 1024), small[0] - SAID[0].1[0]);
    assert_eq!(pages(limit - all.page_bytes).fitting, Some(2999));
    assert_eq!(all.decided_by, Some(1));
    assert_eq!(pages(known.total_bytes - known.resident_bytes).fitting, Some(0));
}

#[test]
fn what_makes_room_is_worked_out_again() {
    let names = ["small", "large", "undonated"];
    let reports = reports(&names);
    let together = together(&reports, &names, 1 << 30);
    let option = |change| together.options.iter().find(|option| option.change == change).copied_pages();
    let fitting = together.pages.as_ref().and_then(|pages| pages.fitting);
    assert_eq!(together.programs[2].undonated_bytes, 134_217_728);
    // Each page is held a second time while `undonated` runs.
    assert!(together.programs[2].bytes_per_page >= together.pages.as_ref().unwrap().page_bytes);
    let alone = self::together(&reports[..2], &names[..2], 1 << 30).pages.and_then(|pages| pages.fitting);
    assert_eq!(option(SetChange::Drop(2)), alone);
    assert!(option(SetChange::Donate(2)) > fitting && option(SetChange::Donate(2)) <= alone);
    assert_eq!(together.programs[2].costs_pages, Some(alone.unwrap() - fitting.unwrap()));
    let largest = together.options.iter().map(|option| option.pages).max();
    assert_eq!(together.options[0].pages, largest.flatten());
}

trait CopiedPages {
    fn copied_pages(self) -> Option<u64>;
}

impl CopiedPages for Option<&tilewise_audit::Alternative> {
    fn copied_pages(self) -> Option<u64> {
        self.expect("an option").pages
    }
}

/// vllm-project/tpu-inference#1285: 19067 blocks of 512 tokens in 18 arrays on each of 8 devices; each device has one
/// fp8 head, padded to four; 735.23 GiB allowed, 64.9 GiB of weights.
#[test]
fn published_blocks_are_found() {
    let gib = |count: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a printed size")]
        let bytes = (count * f64::from(1 << 30) / 8.0) as u64;
        bytes
    };
    let weights = gib(64.9) / 1024 * 1024;
    let mut text = "HloModule jit_serve, is_scheduled=true\n\nENTRY e {\n".to_owned();
    text += &format!("  w = u8[{weights}]{{0:T(1024)(128)(4,1)}} parameter(0), metadata={{op_name=\"weights\"}}\n");
    for layer in 0..18 {
        text += &format!(
            "  c{layer} = f8e4m3fn[64,512,1,4,128]{{4,3,2,1,0:T(4,128)(4,1)}} parameter({}), metadata={{op_name=\"caches[{layer}]\"}}\n",
            layer + 1
        );
    }
    text += "  ROOT r = s32[128]{0:T(128)} custom-call(w, c0), custom_call_target=\"attention\"\n}\n";
    let program = Program::parse(&text).expect("a program");
    let report = Audit::new(&program).machine(Machine::Tpu(Generation::V7x)).run();
    let pages = PagesOf { name: "caches".to_owned(), dimension: 0 };
    let together = Together::of(&[Member::new(&report)], gib(735.23), Some(&pages)).expect("a sum");
    let pages = together.pages.expect("pages");
    assert_eq!(pages.page_bytes, 18 * 2_097_152 / 8);
    // Sizes are printed to 0.01 GiB, which is 0.3 of a block.
    let fitting = pages.fitting.expect("a limit");
    assert!(fitting.abs_diff(19067) <= 1, "{fitting} of {}", ByteSize(gib(735.23)));
}

#[test]
fn what_can_t_be_summed_is_an_error() {
    let small = report(&text("small"));
    let other = Audit::new(&Program::parse(text("large")).unwrap()).machine(Machine::Tpu(Generation::V7x)).run();
    let unscheduled = report("HloModule m\n\nENTRY e {\n  ROOT x = f32[8,128]{1,0:T(8,128)} parameter(0)\n}\n");
    let kind = |members: &[&Report], pages: Option<&str>| {
        let members: Vec<Member<'_>> = members.iter().map(|report| Member::new(report)).collect();
        let pages = pages.map(|pages| pages.parse::<PagesOf>().expect("a name"));
        Together::of(&members, None, pages.as_ref()).map(|_| "fine").unwrap_or_else(|failure| failure.kind)
    };
    assert_eq!(kind(&[], None), "usage");
    assert_eq!(kind(&[&small, &other], None), "other_machine");
    assert_eq!(kind(&[&unscheduled], None), "no_plan");
    assert_eq!(kind(&[&small], Some("nothing")), "no_pages");
    assert_eq!(kind(&[&small], Some("cache:9")), "no_pages");
    assert_eq!(kind(&[&small], Some("cache")), "fine");
    assert!("cache:x".parse::<PagesOf>().is_err() && ":1".parse::<PagesOf>().is_err());
}
