//! Several programs: audited side by side, shown in their order.

use crate::output::progress;
use std::{
    collections::BTreeMap,
    io::{self, IsTerminal},
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread,
};

/// Results per thread that may wait for an earlier one: a program's report keeps its text in memory.
const AHEAD: usize = 2;

/// Does the work for every item, on all cores, and shows the results in their order.
///
/// After a second a progress line is shown on the terminal, unless the results go there.
pub(super) fn each<I: Sync, T: Send>(
    items: &[I],
    size: impl Fn(&I) -> u64 + Sync,
    work: impl Fn(&I) -> T + Sync,
    mut show: impl FnMut(&I, T) -> io::Result<()>,
) -> io::Result<()> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    if threads < 2 {
        return items.iter().try_for_each(|item| show(item, work(item)));
    }
    let mut run = |done: &AtomicU64| {
        let (next, shown, turn) = (AtomicUsize::new(0), Mutex::new(0), Condvar::new());
        let (send, receive) = mpsc::channel();
        let stop = || {
            *shown.lock().unwrap_or_else(PoisonError::into_inner) = usize::MAX;
            turn.notify_all();
        };
        thread::scope(|scope| {
            for _ in 0..threads {
                let send = send.clone();
                let (next, shown, turn, work, size) = (&next, &shown, &turn, &work, &size);
                scope.spawn(move || {
                    loop {
                        let at = next.fetch_add(1, Relaxed);
                        let Some(path) = items.get(at) else { return };
                        let guard = shown.lock().unwrap_or_else(PoisonError::into_inner);
                        let is_far = |shown: &mut usize| at >= shown.saturating_add(threads * AHEAD);
                        drop(turn.wait_while(guard, is_far).unwrap_or_else(PoisonError::into_inner));
                        let result = work(path);
                        done.fetch_add(size(path), Relaxed);
                        // The receiver is gone if showing another result failed.
                        if send.send((at, result)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(send);
            let mut waiting = BTreeMap::new();
            let mut at = 0;
            for (number, result) in receive {
                waiting.insert(number, result);
                while let (Some(path), Some(result)) = (items.get(at), waiting.remove(&at)) {
                    if let Err(error) = show(path, result) {
                        next.store(items.len(), Relaxed);
                        stop();
                        return Err(error);
                    }
                    at += 1;
                    *shown.lock().unwrap_or_else(PoisonError::into_inner) = at;
                    turn.notify_all();
                }
            }
            Ok(())
        })
    };
    if io::stdout().is_terminal() {
        return run(&AtomicU64::new(0));
    }
    let total = items.iter().map(&size).fold(0, u64::saturating_add);
    progress::during("auditing", total, run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<PathBuf> = (0..200).map(|number| PathBuf::from(number.to_string())).collect();
        let work = |path: &PathBuf| {
            let number: u64 = path.to_str().and_then(|path| path.parse().ok()).unwrap_or(u64::MAX);
            // The first of a few takes the longest.
            thread::sleep(std::time::Duration::from_micros((7 - number % 8) * 100));
            number
        };
        let mut shown = Vec::new();
        each(
            &items,
            |_| 1,
            work,
            |_, number| {
                shown.push(number);
                Ok(())
            },
        )
        .expect("nothing fails");
        assert!(shown.iter().copied().eq(0..200));
        // A result that can't be shown ends the work.
        let failed = each(
            &items,
            |_| 1,
            work,
            |_, number| if number < 5 { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) },
        );
        assert_eq!(failed.map_err(|error| error.kind()), Err(io::ErrorKind::BrokenPipe));
    }
}
