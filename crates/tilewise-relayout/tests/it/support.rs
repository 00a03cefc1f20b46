//! Plans run in every way they can be, and compared with a naive relayout.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tilewise::Shape;
use tilewise_relayout::{Cpu, Padding, Plan};
use tilewise_testing::{Guarded, NaiveRelayout, Random, Tight};

/// One way to run a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) cpu: Cpu,
    pub(crate) is_non_temporal: bool,
    pub(crate) threads: usize,
    pub(crate) source_at: usize,
    pub(crate) destination_at: usize,
}

/// The first fault of a run, if any.
pub(crate) fn fault(from: &Shape, to: &Shape, padding: Padding, random: &mut Random, ways: &[Way]) -> Option<String> {
    let plan = match Plan::new(from, to) {
        Ok(plan) => plan.with_padding(padding),
        Err(error) => return Some(format!("no plan: {error}")),
    };
    let source = random.bytes(plan.source_bytes());
    let before = random.bytes(plan.destination_bytes());
    let mut wanted = if padding == Padding::Zero { vec![0; before.len()] } else { before.clone() };
    NaiveRelayout::new(from, to).run(&source, &mut wanted);
    for way in ways {
        let source = Tight::new(&source, way.source_at);
        let mut destination = Guarded::new(&before, way.destination_at);
        let plan = plan.clone().with_cpu(way.cpu);
        let run = plan.run_loops(way.is_non_temporal, source.content(), destination.content(), way.threads, None);
        if let Err(error) = run {
            return Some(format!("{way:?}: {error}"));
        }
        if !destination.guards_hold() {
            return Some(format!("{way:?}: wrote outside the destination"));
        }
        let got = destination.content();
        if let Some(at) = (0..got.len()).find(|&at| got[at] != wanted[at]) {
            return Some(format!("{way:?}: byte {at} is {:#04x}, wanted {:#04x}\n{plan}", got[at], wanted[at]));
        }
    }
    for threads in 1..5 {
        let (least, is_non_temporal) = (random.choose(&[1, 64, 1000]), random.below(2) == 0);
        let source = Tight::new(&source, random.below(64));
        let mut destination = Guarded::new(&before, random.below(64));
        let written = AtomicU64::new(0);
        let progress = |bytes| {
            written.fetch_add(bytes, Relaxed);
        };
        let parts = Some((least, &progress as &(dyn Fn(u64) + Sync)));
        let run = plan.run_loops(is_non_temporal, source.content(), destination.content(), threads, parts);
        if let Err(error) = run {
            return Some(error.to_string());
        }
        let right = destination.content() == wanted && destination.guards_hold();
        if !right || written.into_inner() != plan.destination_bytes() {
            return Some(format!("differs in parts of {least}, non-temporal {is_non_temporal}, on {threads}\n{plan}"));
        }
    }
    let parts = 1 + random.below(6);
    if let Some(fault) = fault_of_stages(&plan, parts, &source, before.clone(), &wanted) {
        return Some(format!("{fault}\n{plan}"));
    }
    let mut got = before;
    if let Err(error) = plan.run(&source, &mut got) {
        return Some(error.to_string());
    }
    (got != wanted).then(|| format!("the public way differs\n{plan}"))
}

/// The first fault of the destination's parts, made one after the other: each must be whole once it is reported.
pub(crate) fn fault_of_stages(
    plan: &Plan,
    parts: usize,
    source: &[u8],
    mut destination: Vec<u8>,
    wanted: &[u8],
) -> Option<String> {
    let mut done = 0;
    for part in 0..parts {
        let made = match plan.run_part(part, parts, source, &mut destination) {
            Ok(made) => made,
            Err(error) => return Some(error.to_string()),
        };
        if made.is_empty() {
            continue;
        }
        let follows = made.start == done;
        done = made.end;
        let whole = usize::try_from(done).expect("a buffer's length");
        if !follows || destination[..whole] != wanted[..whole] {
            return Some(format!("part {part} of {parts} is said to make {made:?}"));
        }
    }
    (done != plan.destination_bytes() || destination != wanted).then(|| format!("{parts} parts make {done} bytes"))
}

/// Every instruction set and every maker's tuning, with plain and with non-temporal stores, one thread and three.
pub(crate) fn all_ways(random: &mut Random) -> Vec<Way> {
    let mut ways = Vec::new();
    for cpu in Cpu::available() {
        for is_non_temporal in [false, true] {
            for threads in [1, 3] {
                let [source_at, destination_at] = [(); 2].map(|()| {
                    let any = random.below(64);
                    random.choose(&[0, 16, any])
                });
                ways.push(Way { cpu, is_non_temporal, threads, source_at, destination_at });
            }
        }
    }
    ways
}
