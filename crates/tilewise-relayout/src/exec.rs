//! Runs plans: checks the buffers, and divides the work into parts and between threads.

use crate::{
    Error, Plan,
    kernels::KernelState,
    leaf::{Chain, Leaf, Loop, Transpose},
    nest::Nest,
    part::{Part, Split},
    plan::{Clear, length_mismatch},
    walk::{Target, Walk},
};
use std::{
    fmt, iter,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

/// Maximum number of threads of a run, more than machines have cores: asking for more makes no difference.
pub(crate) const MOST_THREADS: usize = 1024;

/// Called with numbers of destination bytes written, from any thread.
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// Options of a run: threads, and a callback for progress.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
/// use tilewise_relayout::{Plan, RunOptions};
///
/// let plan = Plan::new(&"s8[2,3]{1,0}".parse()?, &"s8[2,3]{1,0:T(2,2)}".parse()?)?;
/// let (mut destination, written) = ([0; 8], AtomicU64::new(0)); // for another thread to show
/// let progress = |bytes| {
///     written.fetch_add(bytes, Relaxed);
/// };
/// let options = RunOptions { threads: 2, progress: Some(&progress) };
/// plan.run_with(&[1, 2, 3, 4, 5, 6], &mut destination, &options)?;
/// assert_eq!(written.into_inner(), plan.destination_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// Most threads. They start and end with the run. Fewer are used if the work is too small or the system has no
    /// more; the result is the same. Transposes of large arrays gain; most other conversions keep memory busy with one.
    pub threads: usize,
    /// Called after each part with its number of destination bytes, from any of the threads; their sum is
    /// [`Plan::destination_bytes`]. Parts take 16 MiB at least, so that a run takes no longer for them, and more if
    /// loops can't be divided that finely. Layouts without common loops may be one part.
    pub progress: Option<Progress<'a>>,
}

impl Default for RunOptions<'_> {
    /// One thread, without a callback.
    fn default() -> Self {
        Self { threads: 1, progress: None }
    }
}

impl fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl Plan {
    /// Converts a buffer, on one thread.
    ///
    /// # Errors
    /// [`ErrorKind::BufferLengthMismatch`](crate::ErrorKind::BufferLengthMismatch) if a buffer's length isn't exactly
    /// its layout's; nothing is written then.
    pub fn run(&self, source: &[u8], destination: &mut [u8]) -> Result<(), Error> {
        self.run_with_threads(source, destination, 1)
    }

    /// Converts a buffer, on up to that many threads.
    ///
    /// # Errors
    /// As for [`run`](Plan::run).
    pub fn run_with_threads(&self, source: &[u8], destination: &mut [u8], threads: usize) -> Result<(), Error> {
        if let Some(small) = &self.work.small {
            self.check_lengths(source, destination)?;
            small.run(source, destination);
            return Ok(());
        }
        /// Least bytes for a thread to write: starting one takes as long.
        const SHARE: usize = 64 << 10;
        let threads = threads.min(destination.len() / SHARE + 1).min(MOST_THREADS);
        match self.one_for_each(threads) {
            // A constant, so that the run of a small array is compiled without parts.
            Division { parts: 1, .. } => {
                self.run_divided(self.is_non_temporal(), source, destination, Division::WHOLE, &|_| ())
            }
            division => self.run_divided(self.is_non_temporal(), source, destination, division, &|_| ()),
        }
    }

    /// Converts a buffer.
    ///
    /// # Errors
    /// As for [`run`](Plan::run).
    pub fn run_with(&self, source: &[u8], destination: &mut [u8], options: &RunOptions<'_>) -> Result<(), Error> {
        /// Least bytes for a part to write: against them its start costs nothing.
        const LEAST: u64 = 16 << 20;
        let Some(progress) = options.progress else {
            return self.run_with_threads(source, destination, options.threads);
        };
        if self.destination_bytes() < 2 * LEAST {
            self.run_with_threads(source, destination, options.threads)?;
            progress(self.destination_bytes());
            return Ok(());
        }
        let threads = options.threads.min(MOST_THREADS);
        self.run_in_parts(LEAST, self.is_non_temporal(), source, destination, threads, progress)
    }

    /// For tests: runs the loops, with or without non-temporal stores; in parts if given their least destination bytes.
    ///
    /// # Errors
    /// As for [`run`](Plan::run).
    #[cfg(feature = "unstable-testing")]
    pub fn run_loops(
        &self,
        nt: bool,
        source: &[u8],
        destination: &mut [u8],
        threads: usize,
        parts: Option<(u64, Progress<'_>)>,
    ) -> Result<(), Error> {
        match parts {
            None => self.run_divided(nt, source, destination, self.one_for_each(threads), &|_| ()),
            Some((least, progress)) => self.run_in_parts(least, nt, source, destination, threads, progress),
        }
    }

    fn run_in_parts(
        &self,
        least: u64,
        is_non_temporal: bool,
        source: &[u8],
        destination: &mut [u8],
        threads: usize,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let report = |part: Part| {
            let (start, end) = part.share(self.destination_bytes(), 1);
            progress(end - start);
        };
        self.run_divided(is_non_temporal, source, destination, self.many_for_each(threads, least), &report)
    }

    #[inline(always)]
    fn run_divided(
        &self,
        non_temporal: bool,
        source: &[u8],
        destination: &mut [u8],
        Division { split, parts, threads }: Division,
        done: &(dyn Fn(Part) + Sync),
    ) -> Result<(), Error> {
        self.check_lengths(source, destination)?;
        if matches!(self.work.clear, Clear::Everything) {
            destination.fill(0);
        }
        let to = Target::new(destination);
        if let Clear::Around(nest) = &self.work.clear {
            self.alone(nest, source, to, true).all(0, 0, None);
        }
        let walk = |index: usize| {
            let part = Part { index, of: parts };
            self.pass(non_temporal, source, to, split, part).all(0, 0, self.work.irregular.as_deref());
            done(part);
        };
        if threads == 1 {
            (0..parts).for_each(walk);
        } else {
            let next = AtomicUsize::new(0);
            let work =
                || iter::repeat_with(|| next.fetch_add(1, Relaxed)).take_while(|&index| index < parts).for_each(walk);
            thread::scope(|scope| {
                for _ in 1..threads {
                    // If the system has no more threads, the existing ones do all the work.
                    if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                        break;
                    }
                }
                work();
            });
        }
        for edge in &self.work.edges {
            self.alone(&edge.nest, source, to, false).all(edge.source_offset, edge.destination_offset, None);
        }
        Ok(())
    }

    /// A walk over a part of the nest.
    #[inline(always)]
    pub(crate) fn pass<'a>(
        &'a self,
        non_temporal: bool,
        source: &'a [u8],
        to: Target,
        split: Split,
        part: Part,
    ) -> Walk<'a> {
        let (nest, cpu, state) = (&self.work.nest, self.cpu, KernelState::new(non_temporal, self.cpu.tuning));
        Walk { nest, source, to, cpu, state, non_temporal, only_padding: false, part, split }
    }

    /// A walk over all of another nest.
    #[inline(always)]
    pub(crate) fn alone<'a>(&self, nest: &'a Nest, source: &'a [u8], to: Target, only_padding: bool) -> Walk<'a> {
        let (cpu, state) = (self.cpu, KernelState::new(false, self.cpu.tuning));
        let (part, split) = (Part { index: 0, of: 1 }, Split::None);
        Walk { nest, source, to, cpu, state, non_temporal: false, only_padding, part, split }
    }

    pub(crate) fn check_lengths(&self, source: &[u8], destination: &[u8]) -> Result<(), Error> {
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

    /// Whether the buffers are large enough for non-temporal stores.
    pub(crate) fn is_non_temporal(&self) -> bool {
        let Nest { leaf, reads, .. } = &self.work.nest;
        let transposes = matches!(leaf, Leaf::Transpose { kind: Transpose::Blocks, .. });
        let tuning = &self.cpu.tuning;
        let least = if transposes || reads.jumps(leaf) {
            tuning.scattered_non_temporal_bytes
        } else {
            tuning.non_temporal_bytes
        };
        self.source_bytes() + self.destination_bytes() >= least
    }

    /// A part for each thread.
    fn one_for_each(&self, threads: usize) -> Division {
        match self.split(threads) {
            Split::None => Division::WHOLE,
            split => Division { split, parts: threads, threads },
        }
    }

    /// As many parts for each thread as the loops allow, of at least `least` destination bytes.
    fn many_for_each(&self, threads: usize, least: u64) -> Division {
        let nest = &self.work.nest;
        let total = self.destination_bytes();
        let wanted = total / least.max(1);
        // A part of an inner loop passes through all outer loops, and should write a large piece on each pass.
        let pieces = total / (least / 16).max(1);
        let mut passes: u64 = self.work.irregular.as_ref().map_or(1, |irregular| irregular.bounds.iter().product());
        let (mut split, mut parts) = (Split::None, 1);
        let mut consider = |candidate: Split, values: u64, passes: u64| {
            let most = values.min(wanted).min(if passes > 1 { pieces / passes } else { wanted });
            if most > parts {
                (split, parts) = (candidate, most);
            }
        };
        for (depth, outer) in nest.loops.iter().enumerate() {
            if self.keeps_bytes_apart(depth) {
                consider(Split::Loop(depth), outer.count, passes);
            }
            passes = passes.saturating_mul(outer.count);
        }
        match &nest.leaf {
            Leaf::Run { unit, run: None, convert, .. } if nest.loops.is_empty() && !convert.is_across_rows() => {
                consider(Split::Leaf, unit / 4096, passes);
            }
            Leaf::Transpose { unit, rows, columns, kind: Transpose::Blocks, .. } => {
                // In parts of 16 MiB, a page of each row that is read, or of each column that is written.
                let page = (least >> 12).max(64);
                let values = |side: &Chain| side.count().div_ceil(side.grain(*unit)).min(side.count() * unit / page);
                consider(Split::Leaf, values(columns), passes);
                consider(Split::Rows, values(rows), passes);
            }
            _ => {}
        }
        let threads = threads.max(1);
        match usize::try_from(parts) {
            // So that all threads end together.
            Ok(parts) if parts > threads => Division { split, parts: parts - parts % threads, threads },
            _ => self.one_for_each(threads),
        }
    }

    /// The split between threads: the outermost loop with a value for each thread, or else the loop with the most.
    fn split(&self, threads: usize) -> Split {
        if threads <= 1 {
            return Split::None;
        }
        let nest = &self.work.nest;
        let loops = || nest.loops.iter().enumerate().filter(|(depth, l)| l.count > 1 && self.keeps_bytes_apart(*depth));
        let enough = loops().find(|(_, l)| l.count >= threads as u64);
        match (enough.or_else(|| loops().max_by_key(|(_, l)| l.count)), &nest.leaf) {
            (Some((depth, _)), _) => Split::Loop(depth),
            // A run is shared by pages.
            (None, Leaf::Run { unit: 4097.., run: None, convert, .. }) if !convert.is_across_rows() => Split::Leaf,
            (None, Leaf::Transpose { unit, rows, columns, kind: Transpose::Blocks, .. }) => {
                let pages = |side: &Chain| side.count() * unit / threads as u64 >= 4096;
                // Each part should read pages of rows that no other part reads; with few columns, rows of its own.
                if pages(columns) || !pages(rows) { Split::Leaf } else { Split::Rows }
            }
            _ => Split::None,
        }
    }

    /// Whether no two values of a loop share a byte of the destination.
    pub(crate) fn keeps_bytes_apart(&self, depth: usize) -> bool {
        let nest = &self.work.nest;
        let Leaf::Elements(elements) = &nest.leaf else { return true };
        // Nor may those of the loops around it: a value's offsets are sums of theirs.
        let whole = |l: &Loop| (l.destination_stride * elements.destination_bits).is_multiple_of(8);
        self.work.irregular.is_none() && nest.loops[..=depth].iter().all(whole)
    }
}

/// How a run is divided: threads take the next part when they are done with one.
#[derive(Clone, Copy)]
struct Division {
    split: Split,
    parts: usize,
    threads: usize,
}

impl Division {
    const WHOLE: Self = Self { split: Split::None, parts: 1, threads: 1 };
}
