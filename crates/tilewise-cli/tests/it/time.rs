//! Sentences about time: it is estimated, and they claim nothing that an estimate can't tell.

use std::process::Command;
use tilewise_testing::programs;

fn audited(arguments: &[&str], program: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewise"));
    let output = command.arg("audit").args(arguments).arg(programs::path(program)).output().expect("the program runs");
    String::from_utf8(output.stdout).expect("text")
}

/// The programs of the table of cycles.
fn all() -> Vec<String> {
    programs::table("cycles.csv").into_iter().map(|row| row[0].clone()).collect()
}

#[test]
fn no_answer_claims_what_an_estimate_cannot_tell() {
    const NEVER: [&str; 7] = ["profile", "tokens/s", "mfu", "throughput", "speedup", "faster", "costs $"];
    let mut estimated = 0;
    for program in all() {
        for arguments in [&["--time"][..], &["--time", "--all"], &[], &["--format", "json"]] {
            let answer = audited(arguments, &program).split_whitespace().collect::<Vec<_>>().join(" ");
            let lower = answer.to_lowercase();
            let claimed: Vec<_> = NEVER.iter().filter(|word| lower.contains(**word)).collect();
            assert!(claimed.is_empty(), "{program} {arguments:?} says {claimed:?}");
            let has_times = answer.contains(" a run") || answer.contains("est. time");
            let is_told = answer.contains("estimated from the compiler's") && answer.contains("not measured");
            assert!(!answer.contains(" 0.0 % of that"), "{program} {arguments:?}: a bound of nothing");
            assert!(!has_times || is_told, "{program} {arguments:?}: a time without \"estimated\"");
            estimated += usize::from(has_times);
        }
    }
    assert!(estimated > 40, "{estimated} answers with times");
}

#[test]
fn a_text_without_cycle_counts_is_refused() {
    let refused = audited(&["--time"], "gnn.v6e.hlo").split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["No time estimate", "after_codegen.txt", "as_text()", "after_optimizations.txt"] {
        assert!(refused.contains(words), "{refused}");
    }
    let json = audited(&["--format", "json"], "gnn.v6e.hlo");
    assert!(json.contains(r#""time":null,"no_time":"this text was written before code generation"#), "{json}");
}

#[test]
fn one_core_of_two_is_told() {
    let one = audited(&["--time"], "reductions_kinds.v4.hlo").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one.contains("of one core") && one.contains("megacore"), "{one}");
    let both = audited(&["--time"], "ragged_all_to_all.v5p.hlo");
    assert!(!both.contains("of one core"), "{both}");
}
