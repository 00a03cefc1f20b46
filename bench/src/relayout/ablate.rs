//! The gain of each mechanism of the relayout engine: the time without it over the time with it.

use super::{CASES, FAMILIES, MIB, SMALL, Work};
use crate::{
    copy::time,
    measure::{Effort, median, nanoseconds_a_call},
    report::Report,
};
use std::{collections::BTreeMap, time::Duration};
use tilewise::Shape;
use tilewise_relayout::{Cpu, Mechanism, Plan};

/// The least time without ÷ time with at which a mechanism shows.
const SHOWS: f64 = 1.05;

pub(crate) fn run(effort: &Effort, report: &mut Report) -> anyhow::Result<()> {
    let mut cases = Vec::new();
    for case in &CASES {
        let (from, to) = case.shapes()?;
        cases.push((case.name.to_owned(), Work::new(&(from.clone(), to.clone()))?));
        if !effort.quick {
            cases.push((format!("{}, back", case.name), Work::new(&(to, from))?));
        }
    }
    for family in &FAMILIES {
        for (bytes, size) in [(256 << 10, "256 KiB"), (8 * MIB, "8 MiB")] {
            for past in [0, 16] {
                let work = Work::in_lines(&family.member(bytes)?, past)?;
                cases.push((format!("{}, {size}, {past} behind a line", family.name), work));
            }
        }
    }
    // Runs that jump, and short columns, are in XLA's own benchmark.
    for (shape, order) in
        [("u8[256,256,256]", "{2,0,1}"), ("f32[256,256,256]", "{2,0,1}"), ("f32[512,512,256]", "{2,0,1}")]
    {
        let (from, to) = (shape.parse()?, format!("{shape}{order}").parse()?);
        cases.push((format!("`{shape}` → `{order}`"), Work::new(&(from, to))?));
    }
    let mut rows = BTreeMap::new();
    let mut names = Vec::new();
    for (name, work) in cases {
        names.push(name.clone());
        let ratios = large(effort, &work);
        rows.insert(name, ratios);
    }
    for (from, to) in SMALL {
        let name = format!("`{from}` → `{to}`");
        names.push(name.clone());
        rows.insert(name, small(effort, &(from.parse()?, to.parse()?))?);
    }
    report.heading("Most that each mechanism brings");
    let best = Mechanism::ALL.iter().enumerate().map(|(number, mechanism)| {
        let ratio = |name: &&String| rows[*name][number].unwrap_or(1.0);
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
        let listed = sorted.iter().take(3).map(|name| format!("{} {:.2}", name, ratio(name)));
        let cells =
            if Cpu::detects(*mechanism) { listed.collect::<Vec<_>>().join("; ") } else { "not on this CPU".to_owned() };
        vec![format!("{mechanism:?}"), cells]
    });
    report.table(
        "Time without the mechanism ÷ time with it, in the three cases where that is most: medians of runs in turns on the same buffers.",
        &["mechanism", "cases"],
        &best.collect::<Vec<_>>(),
    );
    report.heading("Case by case");
    let titles: Vec<String> = Mechanism::ALL.iter().map(|mechanism| format!("{mechanism:?}")).collect();
    let header: Vec<&str> = ["case"].into_iter().chain(titles.iter().map(String::as_str)).collect();
    let cells = names.iter().map(|name| {
        let ratios = rows[name].iter().map(|ratio| match ratio {
            None => "–".to_owned(),
            Some(ratio) if *ratio >= SHOWS => format!("**{ratio:.2}**"),
            Some(ratio) => format!("{ratio:.2}"),
        });
        [name.clone()].into_iter().chain(ratios).collect::<Vec<_>>()
    });
    let words =
        format!("The same for every case; bold from {SHOWS} on, – where this CPU's tuning has no such mechanism.");
    report.table(&words, &header, &cells.collect::<Vec<_>>());
    Ok(())
}

/// A ratio for each of [`Mechanism::ALL`].
type Ratios = Vec<Option<f64>>;

/// A case that is run in turns with each mechanism left out.
fn large(effort: &Effort, work: &Work) -> Ratios {
    let plans = without_each(&work.plan);
    // Work inside the caches is done many times a turn.
    let calls = u32::try_from((32 * MIB / work.bytes()).clamp(1, 1 << 20)).unwrap_or(1);
    let run = |plan: &Plan| work.run(|_, source, destination| plan.run(source, destination));
    let mut ratios = vec![Vec::new(); plans.len()];
    for _ in 0..effort.turns.min(11) {
        for (plan, ratios) in plans.iter().zip(&mut ratios) {
            if let Some(plan) = plan {
                // Pairs, so that a machine that drifts drifts for both.
                let with = time(calls, || run(&work.plan));
                let without = time(calls, || run(plan));
                ratios.push(without.as_secs_f64() / with.max(Duration::from_nanos(1)).as_secs_f64());
            }
        }
    }
    ratios.into_iter().map(|ratios| (!ratios.is_empty()).then(|| median(ratios))).collect()
}

/// The ratios of an array whose run takes nanoseconds.
fn small(effort: &Effort, shapes: &(Shape, Shape)) -> anyhow::Result<Ratios> {
    let work = Work::new(shapes)?;
    let rounds = effort.rounds.min(3);
    let measure =
        |plan: &Plan| nanoseconds_a_call(rounds, || work.run(|_, source, destination| plan.run(source, destination)));
    let ratio = |plan: &Plan| median((0..effort.turns.min(7)).map(|_| measure(plan) / measure(&work.plan)).collect());
    Ok(without_each(&work.plan).iter().map(|plan| plan.as_ref().map(ratio)).collect())
}

/// The plan without each mechanism that this CPU's tuning has.
fn without_each(plan: &Plan) -> Vec<Option<Plan>> {
    let without = |mechanism: Mechanism| plan.clone().with_cpu(Cpu::without(mechanism));
    Mechanism::ALL.iter().map(|&mechanism| Cpu::detects(mechanism).then(|| without(mechanism))).collect()
}
