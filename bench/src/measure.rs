//! Timing: many rounds in which the contenders take turns, and the median of each.

use crate::copy::{Copy, IN_CACHE, time};
use std::time::{Duration, Instant};

/// The extent of measurements.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    /// Turns of each mover in a contest.
    pub(crate) turns: usize,
    /// The most time a mover may take in all its turns.
    pub(crate) budget: Duration,
}

impl Effort {
    pub(crate) fn new(quick: bool) -> Self {
        let (rounds, turns, milliseconds) = if quick { (3, 3, 50) } else { (9, 21, 700) };
        Self { quick, rounds, turns, budget: Duration::from_millis(milliseconds) }
    }
}

/// One contender: does its work once.
pub(crate) type Contender<'a> = Box<dyn FnMut() + 'a>;

/// The median time of each contender. They take turns, so that a change in the machine's speed affects all of them.
pub(crate) fn medians(rounds: usize, contenders: &mut [Contender<'_>]) -> Vec<Duration> {
    let mut times = vec![Vec::with_capacity(rounds); contenders.len()];
    for contender in contenders.iter_mut() {
        contender();
    }
    for _ in 0..rounds {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            let start = Instant::now();
            contender();
            times.push(start.elapsed());
        }
    }
    times.into_iter().map(median).collect()
}

pub(crate) fn median<T: PartialOrd + Clone>(mut values: Vec<T>) -> T {
    values.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values[values.len() / 2].clone()
}

/// Nanoseconds per call: the median of rounds of enough calls to take some milliseconds.
pub(crate) fn nanoseconds_a_call(rounds: usize, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut calls = 0u32;
    while start.elapsed() < Duration::from_millis(5) {
        work();
        calls += 1;
    }
    let mut batch: Contender<'_> = Box::new(|| (0..calls).for_each(|_| work()));
    let median = medians(rounds, std::slice::from_mut(&mut batch))[0];
    median.as_secs_f64() * 1e9 / f64::from(calls)
}

/// Moves bytes: returns the time of that many calls.
pub(crate) type Mover<'a> = Box<dyn FnMut(u32) -> anyhow::Result<Duration> + 'a>;

/// A mover of this process.
pub(crate) fn mover<'a>(mut work: impl FnMut() + 'a) -> Mover<'a> {
    Box::new(move |calls| Ok(time(calls, &mut work)))
}

/// A mover's medians.
#[derive(Clone, Copy)]
pub(crate) struct Figure {
    /// Its speed divided by that of the fastest copy just before.
    pub(crate) ratio: f64,
    /// The time of one call.
    pub(crate) seconds: f64,
}

/// Movers of the same bytes take turns, each right after the fastest copy of as many bytes.
///
/// Buffers that fit in the caches are moved many times per turn.
pub(crate) fn contest(effort: &Effort, bytes: u64, movers: &mut [Mover<'_>]) -> anyhow::Result<Vec<Figure>> {
    /// Copies of more bytes are no faster.
    const LARGEST_COPY: usize = 256 << 20;
    let side = usize::try_from(bytes / 2)?.max(1);
    let calls = if side > IN_CACHE { 1 } else { u32::try_from((64 << 20) / side)? };
    let mut copy = Copy::new(side.min(LARGEST_COPY));
    let mut figures = vec![(Vec::new(), Duration::ZERO); movers.len()];
    for _ in 0..effort.turns {
        for (mover, (figures, spent)) in movers.iter_mut().zip(&mut figures) {
            if *spent >= effort.budget {
                continue;
            }
            let fastest = copy.fastest(1, calls).as_secs_f64() / (2 * copy.bytes()) as f64;
            let time = mover(calls)?;
            *spent += time;
            let seconds = time.as_secs_f64();
            figures.push((fastest / (seconds / bytes as f64), seconds / f64::from(calls)));
        }
    }
    let figures = figures.into_iter().map(|(turns, _)| {
        let (ratios, seconds) = turns.into_iter().unzip();
        Figure { ratio: median(ratios), seconds: median(seconds) }
    });
    Ok(figures.collect())
}
