//! A progress line on the terminal for work that takes longer than a second.

use super::terminal::screen_width;
use std::{
    io::{self, IsTerminal},
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};
use tilewise_report::style::{bytes, cut};

/// Runs `work`; after a second, shows its progress on standard error, if that is a terminal.
///
/// `work` adds the bytes it has done, of `total`, to the given counter; below 1 % the line has no bar.
pub(crate) fn during<T>(what: &str, total: u64, work: impl FnOnce(&AtomicU64) -> T) -> T {
    let done = AtomicU64::new(0);
    if !io::stderr().is_terminal() {
        return work(&done);
    }
    thread::scope(|scope| {
        let (ended, wait) = mpsc::channel::<()>();
        let start = Instant::now();
        let done = &done;
        let show = move || {
            let mut pause = Duration::from_secs(1);
            let mut shown = false;
            while wait.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let line = line(what, done.load(Relaxed), total, start.elapsed());
                anstream::eprint!("\r{}\x1b[K", cut(&line, screen_width()));
                (pause, shown) = (Duration::from_millis(200), true);
            }
            if shown {
                anstream::eprint!("\r\x1b[K");
            }
        };
        // If no thread can be started, the work is done without a line.
        let _ = thread::Builder::new().spawn_scoped(scope, show);
        let result = work(done);
        drop(ended);
        result
    })
}

fn line(what: &str, done: u64, total: u64, elapsed: Duration) -> String {
    let done = done.min(total);
    let share = |of: u128| of.saturating_mul(done.into()).checked_div(total.into()).unwrap_or(0);
    let (percent, cells) = (share(100), usize::try_from(share(10)).unwrap_or(10));
    if percent == 0 {
        let of = if total == 0 { String::new() } else { format!(" {}", bytes(total)) };
        return format!("{what}{of}  {}", time(elapsed.as_secs().into()));
    }
    let (full, empty) = ("=".repeat(cells), " ".repeat(10 - cells));
    let per_second = |of: u64| u128::from(of) * 1000 / elapsed.as_millis().max(1);
    let speed = bytes(u64::try_from(per_second(done)).unwrap_or(u64::MAX));
    let left = u128::from(total - done).div_ceil(per_second(done).max(1));
    let (done, total) = (bytes(done), bytes(total));
    format!("{what} {done} of {total} [{full}{empty}] {percent} %  {speed}/s  {} left", time(left))
}

fn time(seconds: u128) -> String {
    if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_how_far_it_is() {
        let line = |done, total| line("converting", done, total, Duration::from_secs(6));
        let all = "converting 2.00 GiB of 2.00 GiB [==========] 100 %  341.33 MiB/s  0 s left";
        assert_eq!(line(3 << 29, 2 << 30), "converting 1.50 GiB of 2.00 GiB [=======   ] 75 %  256.00 MiB/s  2 s left");
        assert_eq!(line(2 << 30, 2 << 30), all);
        // The bytes done are capped at the total.
        assert_eq!(line(u64::MAX, 2 << 30), all);
        assert_eq!(
            line(1 << 30, 64 << 30),
            "converting 1.00 GiB of 64.00 GiB [          ] 1 %  170.67 MiB/s  7 min left"
        );
        assert_eq!(line(1 << 20, 2 << 30), "converting 2.00 GiB  6 s");
        assert_eq!(line(0, 0), "converting  6 s");
        assert!(line(u64::MAX / 2, u64::MAX).ends_with("[====      ] 49 %  1.33 EiB/s  7 s left"));
    }
}
