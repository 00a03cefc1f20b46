//! Timing: many rounds in which the contenders take turns, and the median of each.

use std::time::{Duration, Instant};

/// One contender: does its work once.
pub(crate) type Contender<'a> = Box<dyn FnMut() + 'a>;

/// The median time of each contender. They take turns, so that a machine that drifts drifts for all of them.
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

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Calls `work` often enough to fill some milliseconds, and gives nanoseconds a call: the median of the rounds.
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
