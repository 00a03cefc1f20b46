//! A run of a plan from C beside the engine's, in one process.

#![allow(unsafe_code, reason = "C's functions")]

use super::{
    Work,
    cases::{FAMILIES, SMALL},
};
use crate::{
    measure::{Effort, median},
    report::Report,
};
use anyhow::ensure;
use std::{
    ptr,
    time::{Duration, Instant},
};
use tilewise::Shape;
use tilewise_capi::{
    tw_layout, tw_layout_free, tw_layout_parse, tw_relayout, tw_relayout_free, tw_relayout_new, tw_relayout_run,
};
use tilewise_relayout::Plan;

/// The approximate time of a turn of either: a change in the machine's speed then mostly affects both of a pair.
const TURN: Duration = Duration::from_millis(2);

pub(crate) fn run(effort: &Effort, report: &mut Report) -> anyhow::Result<()> {
    let pairs = effort.rounds * 23;
    let mut rows = Vec::new();
    for (from, to) in [SMALL[2], SMALL[0]] {
        rows.push(row(format!("`{from}` → `{to}`"), &(from.parse()?, to.parse()?), pairs)?);
    }
    for family in &FAMILIES {
        rows.push(row(format!("{}, 8 MiB", family.name), &family.member(8 << 20)?, pairs)?);
    }
    let words = format!(
        "`Plan::run`, and `tw_relayout_run` of the same plan over the same buffers on one thread: {pairs} turns each, of some milliseconds, \
         one after the other. The ratio is the median of pairs, and half of all pairs lie between the two others."
    );
    report.table(&words, &["conversion", "`Plan::run`", "`tw_relayout_run`", "C ÷ Rust", "half of the pairs"], &rows);
    Ok(())
}

fn row(name: String, shapes: &(Shape, Shape), pairs: usize) -> anyhow::Result<Vec<String>> {
    let work = Work::new(shapes)?;
    let plan = FromC::new(shapes)?;
    let engine = || work.run(Plan::run);
    let library = || {
        work.run(|_, source, destination| {
            plan.run(source, destination);
            Ok(())
        });
    };
    let start = Instant::now();
    engine();
    let calls = u32::try_from(TURN.as_nanos() / start.elapsed().as_nanos().max(1))?.clamp(1, 20_000);
    let timed = |work: &dyn Fn()| {
        let start = Instant::now();
        (0..calls).for_each(|_| work());
        start.elapsed().as_secs_f64() / f64::from(calls)
    };
    let (mut times, mut ratios) = ([Vec::new(), Vec::new()], Vec::new());
    for number in 0..pairs {
        // Each goes first as often as the other.
        let (rust, c) = if number % 2 == 0 {
            let rust = timed(&engine);
            (rust, timed(&library))
        } else {
            let c = timed(&library);
            (timed(&engine), c)
        };
        times[0].push(rust);
        times[1].push(c);
        ratios.push(c / rust);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let [rust, c] = times.map(|times| format!("{:.2} µs", median(times) * 1e6));
    let [low, middle, high] = [1, 2, 3].map(|quarter| format!("{:.3}", ratios[(ratios.len() - 1) * quarter / 4]));
    Ok(vec![name, rust, c, middle, format!("{low} to {high}")])
}

/// A plan of the C library.
struct FromC(*mut tw_relayout);

impl FromC {
    fn new((from, to): &(Shape, Shape)) -> anyhow::Result<Self> {
        let layout = |shape: &Shape| {
            let (text, mut layout) = (shape.to_string(), ptr::null_mut());
            // SAFETY: A text and its length, and a place that may be written.
            let code = unsafe { tw_layout_parse(text.as_ptr().cast(), text.len(), &raw mut layout, ptr::null_mut()) };
            ensure!(code == 0, "{text}: error {code}");
            Ok(Layout(layout))
        };
        let (from, to, mut plan) = (layout(from)?, layout(to)?, ptr::null_mut());
        // SAFETY: Layouts, and a place that may be written.
        let code = unsafe { tw_relayout_new(from.0, to.0, &raw mut plan, ptr::null_mut()) };
        ensure!(code == 0, "no plan: error {code}");
        Ok(Self(plan))
    }

    fn run(&self, source: &[u8], destination: &mut [u8]) {
        let (from, to) = (source.as_ptr().cast(), destination.as_mut_ptr().cast());
        // SAFETY: A plan, and buffers with their lengths.
        unsafe { tw_relayout_run(self.0, from, source.len(), to, destination.len(), 1, ptr::null_mut()) };
    }
}

impl Drop for FromC {
    fn drop(&mut self) {
        // SAFETY: A plan that this made.
        unsafe { tw_relayout_free(self.0) };
    }
}

struct Layout(*mut tw_layout);

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: A layout that this made.
        unsafe { tw_layout_free(self.0) };
    }
}
