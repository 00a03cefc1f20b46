//! Into how many parts runs are divided, and what they report. That they write what they should is held against the definition
//! wherever plans are (`support`).

use crate::support::fault_of_stages;
use std::sync::Mutex;
use tilewise_relayout::{Error, ErrorKind, Padding, Plan, RunOptions};

fn plan(from: &str, to: &str) -> Plan {
    Plan::new(&from.parse().expect("a shape"), &to.parse().expect("a shape")).expect("a plan")
}

/// The reports of a run, given how to run a plan on that source and destination.
fn reported(plan: &Plan, run: impl FnOnce(&[u8], &mut [u8], &(dyn Fn(u64) + Sync)) -> Result<(), Error>) -> Vec<u64> {
    let [source, mut destination] =
        [plan.source_bytes(), plan.destination_bytes()].map(|bytes| vec![1; usize::try_from(bytes).expect("small")]);
    let reported = Mutex::new(Vec::new());
    run(&source, &mut destination, &|bytes| reported.lock().expect("nobody panics").push(bytes))
        .expect("right lengths");
    reported.into_inner().expect("nobody panics")
}

/// Every leaf, in as many parts as its loops allow; an inner loop only where a part finds enough in each pass over the outer ones.
#[test]
fn loops_are_divided_as_finely_as_is_worth_it() {
    for (from, to, parts) in [
        // 38 rows of tiles, 16 KiB each.
        ("f32[300,500]", "f32[300,500]{1,0:T(8,128)}", 38),
        // 17 whole pages.
        ("u8[70000]", "u8[70000]", 17),
        ("s4[400,500]", "s4[400,500]{1,0:E(4)}", 24),
        ("s4[400,500]{1,0:E(4)}", "s4[400,500]", 48),
        ("bf16[304,256]", "bf16[304,256]{1,0:T(8,128)(2,1)}", 38),
        ("bf16[304,256]{1,0:T(8,128)(2,1)}", "bf16[304,256]", 38),
        // 64 bytes of each row, which has 1040; or of each column, which has 20000.
        ("f32[260,260]", "f32[260,260]{0,1}", 16),
        ("f32[2,260,260]", "f32[2,260,260]{1,2,0}", 16),
        ("f32[5000,30]", "f32[5000,30]{0,1}", 312),
        // 98 × 2000 bytes.
        ("f32[2,3,64,64]", "f32[2,3,64,64]{3,2,1,0:T(8,128)}", 196),
        ("s4[304,300]", "s4[304,300]{1,0:T(8,128)(8,1)E(4)}", 38),
        // 4095 bytes in all.
        ("s4[90,91]", "s4[90,91]{0,1:E(4)}", 4),
        // 91 × 90 bits: no column but the first starts a byte.
        ("f6e3m2fn[91,90]", "f6e3m2fn[91,90]{0,1:E(6)}", 1),
        // No common loops.
        ("s16[30,500]", "s16[30,500]{0,1:T(*,4)(3)}", 1),
        ("f32[0,5]", "f32[0,5]{0,1:T(8,128)}", 1),
    ] {
        let plan = plan(from, to);
        for threads in 1..4 {
            let bytes = reported(&plan, |source, destination, done| {
                plan.run_loops(false, source, destination, threads, Some((1000, done)))
            });
            // As many for each thread.
            let wanted = if parts > threads { parts - parts % threads } else { parts };
            assert_eq!(bytes.len(), wanted, "{from} -> {to}, {threads} threads\n{plan}");
            assert_eq!(bytes.iter().sum::<u64>(), plan.destination_bytes(), "{from} -> {to}");
            assert!(parts == 1 || bytes.iter().all(|&bytes| bytes >= 1000), "{from} -> {to}: {bytes:?}");
        }
    }
}

#[test]
fn parts_are_of_16_mib_at_least() {
    let run = |plan: &Plan| {
        reported(plan, |source, destination, done| {
            plan.run_with(source, destination, &RunOptions { threads: 2, progress: Some(done) })
        })
    };
    assert_eq!(run(&plan("u8[75497472]", "u8[75497472]")), [75_497_472 / 4; 4]);
    assert_eq!(run(&plan("f32[3]", "f32[3]{0:T(8)}")), [32]);
    assert_eq!(run(&plan("f32[300,500]", "f32[300,500]{0,1}")), [600_000]);
}

#[test]
fn nothing_is_reported_of_what_is_refused() {
    let plan = plan("u8[75497472]", "u8[75497472]");
    let options = RunOptions { threads: 2, progress: Some(&|bytes| panic!("{bytes}")) };
    let error = plan.run_with(&[], &mut [], &options).expect_err("it has no bytes");
    assert_eq!(error.kind(), ErrorKind::BufferLengthMismatch);
}

/// Part after part, for a pipeline: what a part says it has made is as the whole run leaves it, and all parts make all of it.
fn check_stages(from: &str, to: &str, padding: Padding, parts: usize) -> u64 {
    let plan = plan(from, to).with_padding(padding);
    let size = |bytes: u64| usize::try_from(bytes).expect("small");
    let source: Vec<u8> = (0..251).cycle().take(size(plan.source_bytes())).collect();
    let mut whole = vec![0xA5; size(plan.destination_bytes())];
    plan.run(&source, &mut whole).expect("right lengths");
    let fault = fault_of_stages(&plan, parts, &source, vec![0xA5; whole.len()], &whole);
    assert_eq!(fault, None, "{from} -> {to}\n{plan}");
    assert_eq!(plan.run_part(parts, parts, &source, &mut whole).map(|made| made.is_empty()), Ok(true));
    plan.most_parts()
}

#[test]
fn a_destination_is_made_part_by_part() {
    for (from, to, most) in [
        ("f32[300,500]", "f32[300,500]{1,0:T(8,128)}", 38),
        ("f32[300,500]{1,0:T(8,128)}", "f32[300,500]", 38),
        ("bf16[304,256]{1,0:T(8,128)(2,1)}", "bf16[304,256]", 38),
        ("u8[70000]", "u8[70000]", 18),
        ("s4[400,500]{1,0:E(4)}", "s4[400,500]", 49),
        ("f32[5000,30]", "f32[5000,30]{0,1}", 2),
        ("s16[30,500]", "s16[30,500]{0,1:T(*,4)(3)}", 1),
        ("f32[0,5]", "f32[0,5]{0,1:T(8,128)}", 1),
    ] {
        for parts in [1, 2, 3, 7, 64] {
            for padding in [Padding::Zero, Padding::Leave] {
                assert_eq!(check_stages(from, to, padding, parts), most, "{from} -> {to}");
            }
        }
    }
}
