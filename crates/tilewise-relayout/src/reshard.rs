//! Runs a resharding over buffers of this process.

use crate::{Error, ErrorKind, Plan, plan::length_mismatch};
use std::{borrow::Cow, iter::Peekable, ops::Range};
use tilewise::{Layout, Resharding, RunOrder, Shape, ShardCopy, Tiled};

/// A [`Resharding`] to be run over buffers: made once, run any number of times.
///
/// If both layouts have long runs in a common order, those are copied from shard to shard. Otherwise the engine takes
/// shards through row-major arrays: those of all sources are held meanwhile, with the bytes of the whole array.
///
/// ```
/// use tilewise::Resharding;
/// use tilewise_relayout::Reshard;
///
/// let array = "s8[2,4]{1,0}".parse()?;
/// let copies = Resharding::new(&array, &"{devices=[2,1]<=[2]}".parse()?, &array, &"{devices=[1,2]<=[2]}".parse()?)?;
/// let reshard = Reshard::new(copies)?;
/// let (mut left, mut right) = ([0; 4], [0; 4]);
/// reshard.run(&[&[0, 1, 2, 3], &[4, 5, 6, 7]], &mut [&mut left, &mut right])?;
/// assert_eq!((left, right), ([0, 1, 4, 5], [2, 3, 6, 7]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reshard {
    resharding: Resharding,
    sides: [Side; 2],
    /// From shard to shard, if both have the same dimensions.
    whole: Option<Plan>,
}

/// The shards of one side: before or after.
#[derive(Clone, Debug)]
struct Side {
    tiled: Tiled,
    /// The shard in row-major order.
    rows: Tiled,
    /// The plan to or from row-major order; `None` if the shard has it already.
    plan: Option<Plan>,
}

impl Side {
    fn new(shard: &Shape, is_source: bool) -> Result<Self, Error> {
        let rows = shard.with_layout(Layout::row_major(shard.dimensions().len()))?;
        let (tiled, row_major) = (Tiled::new(shard)?, Tiled::new(&rows)?);
        let is_itself = *shard == rows && tiled.stored_bits().is_multiple_of(8);
        let plan = if is_source { Plan::new(shard, &rows) } else { Plan::new(&rows, shard) };
        Ok(Self { tiled, rows: row_major, plan: if is_itself { None } else { Some(plan?) } })
    }

    fn bytes(&self) -> u64 {
        self.tiled.physical_bytes()
    }
}

impl Reshard {
    /// Plans the copies.
    ///
    /// # Errors
    /// As for [`Plan::new`] of a shard.
    pub fn new(resharding: Resharding) -> Result<Self, Error> {
        let (from, to) = (resharding.source_shard(), resharding.destination_shard());
        let sides = [Side::new(from, true)?, Side::new(to, false)?];
        let is_same = sides[0].tiled.logical_dimensions() == sides[1].tiled.logical_dimensions();
        let whole = if is_same { Some(Plan::new(from, to)?) } else { None };
        Ok(Self { resharding, sides, whole })
    }

    /// The copies.
    #[must_use]
    pub fn resharding(&self) -> &Resharding {
        &self.resharding
    }

    /// The exact length of every source shard's buffer, in bytes.
    #[must_use]
    pub fn source_bytes(&self) -> u64 {
        self.sides[0].bytes()
    }

    /// The exact length of every destination shard's buffer, in bytes.
    #[must_use]
    pub fn destination_bytes(&self) -> u64 {
        self.sides[1].bytes()
    }

    /// Writes every device's new shard from the old ones, one buffer per device. Padding and elements past the array's
    /// end, which no copy writes, become zero. A device that holds nothing still has a buffer, which may be empty.
    ///
    /// # Errors
    /// [`ErrorKind::BufferLengthMismatch`] unless there is a buffer of the right length for each device; nothing is written then.
    pub fn run(&self, sources: &[&[u8]], destinations: &mut [&mut [u8]]) -> Result<(), Error> {
        let copies = self.resharding.copies();
        self.check(sources.iter().map(|source| source.len()), "source", 0, |copy| copy.source)?;
        self.check(destinations.iter().map(|one| one.len()), "destination", 1, |copy| copy.destination)?;
        let mut rows: Vec<Option<Cow<'_, [u8]>>> = vec![None; sources.len()];
        for (device, destination) in destinations.iter_mut().enumerate() {
            let start = copies.partition_point(|copy| copy.destination < device as u64);
            let own = copies[start..].partition_point(|copy| copy.destination == device as u64);
            self.write(&copies[start..start + own], sources, destination, &mut rows)?;
        }
        Ok(())
    }

    /// Whether there is a buffer for each device, as long as a shard, or empty if no copy needs it.
    fn check(
        &self,
        lengths: impl ExactSizeIterator<Item = usize>,
        which: &str,
        side: usize,
        device: impl Fn(&ShardCopy) -> u64,
    ) -> Result<(), Error> {
        let (devices, wanted) = (self.resharding.devices(), self.sides[side].bytes());
        if lengths.len() as u64 != devices {
            let message = format!("there are {} {which} buffers for {devices} devices", lengths.len());
            return Err(Error::new(ErrorKind::BufferLengthMismatch, message));
        }
        let mut is_used = vec![false; lengths.len()];
        for copy in self.resharding.copies() {
            if let Some(used) = usize::try_from(device(copy)).ok().and_then(|device| is_used.get_mut(device)) {
                *used = true;
            }
        }
        for (length, is_used) in lengths.zip(is_used) {
            if length as u64 != wanted && (is_used || length != 0) {
                return Err(length_mismatch(which, length, wanted));
            }
        }
        Ok(())
    }

    /// Writes one destination.
    fn write<'a>(
        &self,
        copies: &[ShardCopy],
        sources: &[&'a [u8]],
        destination: &mut [u8],
        rows: &mut [Option<Cow<'a, [u8]>>],
    ) -> Result<(), Error> {
        let place = |copy: &ShardCopy| usize::try_from(copy.source).unwrap_or(usize::MAX);
        if let (Some(plan), [copy]) = (&self.whole, copies)
            && self.sides.iter().all(|side| copy.elements() == side.tiled.logical_dimensions().iter().product())
        {
            return plan.run(sources[place(copy)], destination);
        }
        if copies.is_empty() {
            destination.fill(0);
            return Ok(());
        }
        let [source, target] = &self.sides;
        let direct: Option<Vec<_>> = copies.iter().map(|copy| runs(copy, &source.tiled, &target.tiled)).collect();
        if let Some(direct) = direct {
            destination.fill(0);
            for (copy, (from, to)) in copies.iter().zip(direct) {
                copy_runs(sources[place(copy)], from, destination, to);
            }
            return Ok(());
        }
        let mut own = vec![0; bytes(&target.rows)?];
        for copy in copies {
            let held = &mut rows[place(copy)];
            if held.is_none() {
                let tiles = sources[place(copy)];
                *held = Some(match &source.plan {
                    None => Cow::Borrowed(tiles),
                    Some(plan) => {
                        let mut made = vec![0; bytes(&source.rows)?];
                        plan.run(tiles, &mut made)?;
                        Cow::Owned(made)
                    }
                });
            }
            let (from, to) = slices(copy, &source.rows, &target.rows)?;
            copy_runs(held.as_deref().unwrap_or_default(), from, &mut own, to);
        }
        match &target.plan {
            None => destination.copy_from_slice(&own),
            Some(plan) => plan.run(&own, destination)?,
        }
        Ok(())
    }
}

type Runs = tilewise::SliceRuns;

/// A copy's runs on both sides, in the order of its indices.
fn slices(copy: &ShardCopy, from: &Tiled, to: &Tiled) -> Result<(Runs, Runs), tilewise::Error> {
    let ones = vec![1; copy.start.len()];
    let of =
        |tiled: &Tiled, start: &[u64], limit: &[u64]| tiled.strided_slice_runs(start, limit, &ones, RunOrder::Slice);
    Ok((
        of(from, &copy.source_start, &copy.source_limit())?,
        of(to, &copy.destination_start, &copy.destination_limit())?,
    ))
}

/// [`slices`], if copying their runs one by one is fastest.
fn runs(copy: &ShardCopy, from: &Tiled, to: &Tiled) -> Option<(Runs, Runs)> {
    /// Bits of the average run below which listing the runs takes longer than the engine.
    const SHORT: u64 = 128 * 8;
    if from.stored_bits() != to.stored_bits() || !from.stored_bits().is_multiple_of(8) {
        return None;
    }
    let both = slices(copy, from, to).ok()?;
    let is_long = |runs: &Runs| runs.bits() / runs.total().max(1) >= SHORT.min(runs.bits());
    (is_long(&both.0) && is_long(&both.1)).then_some(both)
}

/// Copies the bytes of one side's runs into the other's, however each side divides them.
fn copy_runs(source: &[u8], from: Runs, destination: &mut [u8], to: Runs) {
    fn rest(runs: &mut Peekable<impl Iterator<Item = Range<usize>>>, count: usize) {
        if let Some(run) = runs.peek_mut() {
            run.start += count;
        }
        let _ = runs.next_if(|run| run.is_empty());
    }
    let in_bytes = |runs: Runs| runs.map(|run| crate::size::size(run.start / 8)..crate::size::size(run.end / 8));
    let (mut from, mut to) = (in_bytes(from).peekable(), in_bytes(to).peekable());
    while let (Some(a), Some(b)) = (from.peek().cloned(), to.peek().cloned()) {
        let count = a.len().min(b.len());
        destination[b.start..b.start + count].copy_from_slice(&source[a.start..a.start + count]);
        rest(&mut from, count);
        rest(&mut to, count);
    }
}

fn bytes(tiled: &Tiled) -> Result<usize, Error> {
    let bytes = tiled.physical_bytes();
    let too_long = |_| Error::new(ErrorKind::BufferLengthMismatch, format!("{bytes} bytes are more than memory holds"));
    usize::try_from(bytes).map_err(too_long)
}
