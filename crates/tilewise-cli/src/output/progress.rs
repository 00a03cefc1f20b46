//! A line on the terminal for what takes longer than a second.

use super::human::bytes;
use std::{
    io::{self, IsTerminal},
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

/// Runs `work`, and after a second says on standard error, if that is a terminal, what is being done and how far it has come.
///
/// `work` adds to the number it is given what it has done of `total`, in bytes; as long as it adds nothing, the line has no bar.
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
                anstream::eprint!("\r{}\x1b[K", line(what, done.load(Relaxed), total, start.elapsed()));
                (pause, shown) = (Duration::from_millis(200), true);
            }
            if shown {
                anstream::eprint!("\r\x1b[K");
            }
        };
        // Without a thread there is no line, and the work is done all the same.
        let _ = thread::Builder::new().spawn_scoped(scope, show);
        let result = work(done);
        drop(ended);
        result
    })
}

fn line(what: &str, done: u64, total: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    let Some(percent) = u128::from(done.min(total)).saturating_mul(100).checked_div(total.into()) else {
        return format!("{what}  {seconds} s");
    };
    if percent == 0 {
        return format!("{what} {}  {seconds} s", bytes(total));
    }
    let cells = usize::try_from(percent / 5).unwrap_or(20);
    let (full, empty) = ("=".repeat(cells), " ".repeat(20 - cells));
    format!("{what} {} [{full}{empty}] {percent} %  {seconds} s", bytes(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_how_far_it_is() {
        let at = Duration::from_secs(7);
        assert_eq!(line("checking", 3 << 29, 2 << 30, at), "checking 2.00 GiB [===============     ] 75 %  7 s");
        assert_eq!(line("checking", u64::MAX, u64::MAX, at), "checking 16.00 EiB [====================] 100 %  7 s");
        assert_eq!(line("converting", 0, 2 << 30, at), "converting 2.00 GiB  7 s");
        assert_eq!(line("converting", 0, 0, at), "converting  7 s");
    }
}
