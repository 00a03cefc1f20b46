//! Runs plans: checks the buffers, and divides the work between threads.

use crate::{
    Error, Plan,
    kernels::{Level, Stream},
    nest::{Convert, Leaf, Loop, Transpose},
    plan::{Clear, length_mismatch},
    walk::{Target, Walk},
};
use std::thread;

/// More threads than machines have cores: asking for more is the same as asking for these.
pub(crate) const MOST_THREADS: usize = 1024;

impl Plan {
    /// Converts a buffer, on one thread.
    ///
    /// # Errors
    /// [`ErrorKind::BufferLengthMismatch`](crate::ErrorKind::BufferLengthMismatch) if a buffer has not exactly the length its
    /// layout takes; nothing is written then.
    pub fn run(&self, source: &[u8], destination: &mut [u8]) -> Result<(), Error> {
        self.run_with_threads(source, destination, 1)
    }

    /// Converts a buffer, on up to `threads` threads. They are started for this call and end with it.
    ///
    /// There are fewer where the work is too small to be worth more, or where the system has no more; the result is the same.
    /// Transposes of large arrays gain; most other conversions keep memory busy with a single thread.
    ///
    /// # Errors
    /// As for [`run`](Plan::run).
    pub fn run_with_threads(&self, source: &[u8], destination: &mut [u8], threads: usize) -> Result<(), Error> {
        if let Some(moves) = &self.work.moves {
            self.check_lengths(source, destination)?;
            moves.run(source, destination);
            return Ok(());
        }
        /// What a thread should at least write, in bytes: starting it takes as long.
        const SHARE: usize = 64 << 10;
        let threads = threads.min(destination.len() / SHARE + 1).min(MOST_THREADS);
        self.run_at(Level::detect(), source, destination, threads)
    }

    /// For tests: the same by the loops, whatever the size, with the kernels of one level, which must be available.
    ///
    /// # Errors
    /// As for [`run`](Plan::run).
    ///
    /// # Panics
    /// If the CPU has not the level.
    #[doc(hidden)]
    pub fn run_at(&self, level: Level, source: &[u8], destination: &mut [u8], threads: usize) -> Result<(), Error> {
        let past_caches = self.passes_caches();
        self.run_as(level, past_caches, source, destination, threads)
    }

    /// For tests: the same with or without stores past the caches, whatever the size.
    ///
    /// # Errors
    /// As for [`run`](Plan::run).
    ///
    /// # Panics
    /// If the CPU has not the level.
    #[doc(hidden)]
    pub fn run_as(
        &self,
        level: Level,
        past_caches: bool,
        source: &[u8],
        destination: &mut [u8],
        threads: usize,
    ) -> Result<(), Error> {
        assert!(level.is_available(), "this CPU has no {level:?}");
        self.check_lengths(source, destination)?;
        if matches!(self.work.clear, Clear::Everything) {
            destination.fill(0);
        }
        let to = Target::new(destination);
        let alone = |nest, only_padding| {
            let (stream, part, split) = (Stream::new(false), Part { index: 0, of: 1 }, Split::None);
            Walk { nest, source, to, level, stream, past_caches: false, only_padding, part, split }
        };
        if let Clear::Around(nest) = &self.work.clear {
            alone(nest, true).all(0, 0, None);
        }
        let walk = |part: Part| {
            let stream = Stream::new(past_caches);
            let split = self.split(part.of);
            let nest = &self.work.nest;
            let mut walk = Walk { nest, source, to, level, stream, past_caches, only_padding: false, part, split };
            walk.all(0, 0, self.work.irregular.as_deref());
        };
        let threads = if self.split(threads) == Split::None { 1 } else { threads.max(1) };
        if threads == 1 {
            walk(Part { index: 0, of: 1 });
        } else {
            thread::scope(|scope| {
                let walk = &walk;
                for index in 1..threads {
                    let part = Part { index, of: threads };
                    if thread::Builder::new().spawn_scoped(scope, move || walk(part)).is_err() {
                        walk(part);
                    }
                }
                walk(Part { index: 0, of: threads });
            });
        }
        for edge in &self.work.edges {
            alone(&edge.nest, false).all(edge.source, edge.destination, None);
        }
        Ok(())
    }

    fn check_lengths(&self, source: &[u8], destination: &[u8]) -> Result<(), Error> {
        self.check_source(source)?;
        if u64::try_from(destination.len()) != Ok(self.destination_bytes()) {
            return Err(length_mismatch("destination", destination.len(), self.destination_bytes()));
        }
        Ok(())
    }

    pub(crate) fn check_source(&self, source: &[u8]) -> Result<(), Error> {
        if u64::try_from(source.len()) == Ok(self.source_bytes()) {
            Ok(())
        } else {
            Err(length_mismatch("source", source.len(), self.source_bytes()))
        }
    }

    /// Whether the buffers are so large that stores had better pass the caches.
    fn passes_caches(&self) -> bool {
        /// Both buffers together, in bytes.
        const LARGE: u64 = 24 << 20;
        const LARGE_TRANSPOSE: u64 = 12 << 20;
        let transposes = matches!(self.work.nest.leaf, Leaf::Transpose { kind: Transpose::Blocks, .. });
        self.source_bytes() + self.destination_bytes() >= if transposes { LARGE_TRANSPOSE } else { LARGE }
    }

    /// What threads divide between them: the outermost loop that has a value for each, or else the one with the most.
    fn split(&self, threads: usize) -> Split {
        if threads <= 1 {
            return Split::None;
        }
        let nest = &self.work.nest;
        // Loops around the divided one must keep bytes apart as well: a value's offsets are sums of theirs.
        let whole_bytes = |depth: usize| match &nest.leaf {
            Leaf::Elements(elements) => {
                let whole = |l: &Loop| (l.destination * elements.destination).is_multiple_of(8);
                self.work.irregular.is_none() && nest.loops[..=depth].iter().all(whole)
            }
            _ => true,
        };
        let loops = || nest.loops.iter().enumerate().filter(|(depth, l)| l.count > 1 && whole_bytes(*depth));
        let enough = loops().find(|(_, l)| l.count >= threads as u64);
        match (enough.or_else(|| loops().max_by_key(|(_, l)| l.count)), &nest.leaf) {
            (Some((depth, _)), _) => Split::Loop(depth),
            (
                None,
                Leaf::Run { run: None, convert: Convert::Copy, .. } | Leaf::Transpose { kind: Transpose::Blocks, .. },
            ) => Split::Leaf,
            _ => Split::None,
        }
    }
}

/// Where the work of threads parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    None,
    Loop(usize),
    Leaf,
}

/// Which share of the work.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) index: usize,
    pub(crate) of: usize,
}

impl Part {
    /// This part's share of `0..n`, in whole multiples of `grain` but for the end.
    pub(crate) fn share(self, n: u64, grain: u64) -> (u64, u64) {
        let bound = |index: usize| {
            let cut = u128::from(n.div_ceil(grain)) * index as u128 / self.of as u128;
            u64::try_from(cut).map_or(n, |cut| (cut * grain).min(n))
        };
        (bound(self.index), bound(self.index + 1))
    }

    pub(crate) fn is_last(self) -> bool {
        self.index + 1 == self.of
    }
}
