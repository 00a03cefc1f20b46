//! Resharding: the copies between devices, and running them over buffers of this process.

use crate::{
    error::{Failure, Result, answer, look, tw_error},
    layout::tw_layout,
    pointers::{give, handle, put, read, take, text, write},
};
use std::ffi::{c_char, c_void};
use tilewise::{Resharding, ShardCopy, Sharding};
use tilewise_relayout::Reshard;

/// A plan from one sharding to another: opaque, immutable, usable from any thread.
pub struct tw_reshard(Reshard);

/// One copy from a shard to another.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tw_copy {
    /// The device whose shard is read.
    pub source: u64,
    /// The device whose shard is written; where it is the same, nothing goes over a link.
    pub destination: u64,
    /// How many elements are copied.
    pub elements: u64,
}

/// Plans how an array's shards become those of another sharding.
///
/// `from` and `to` are the whole array, with the layouts of its shards; the shardings are in XLA's notation, such as
/// `{devices=[2,2]<=[4]}`. `devices` is how many there are; 0 where the shardings say it. Every element comes from the device itself where it has it already, so no fewer bytes could go over links.
///
/// # Safety
/// `from` and `to` are layouts that are not freed; `from_length` and `to_length` bytes may be read at the shardings; `out` may be written;
/// `error` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_reshard_new(
    from: *const tw_layout,
    from_sharding: *const c_char,
    from_length: usize,
    to: *const tw_layout,
    to_sharding: *const c_char,
    to_length: usize,
    devices: u64,
    out: *mut *mut tw_reshard,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let (from, to) = (handle(from, "from")?, handle(to, "to")?);
        let from_sharding: Sharding = text(from_sharding, from_length, "from_sharding")?.parse()?;
        let to_sharding: Sharding = text(to_sharding, to_length, "to_sharding")?.parse()?;
        give(out, || {
            let (from, to) = (&from.0.shape, &to.0.shape);
            let copies = match devices {
                0 => Resharding::new(from, &from_sharding, to, &to_sharding)?,
                _ => Resharding::on(devices, from, &from_sharding, to, &to_sharding)?,
            };
            Ok(tw_reshard(Reshard::new(copies)?))
        })
    })
}

/// How many devices there are; 0 for NULL.
///
/// # Safety
/// `plan` is NULL or a plan that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_reshard_devices(plan: *const tw_reshard) -> u64 {
    // SAFETY: The caller's promise.
    look(0, || unsafe { plan.as_ref() }.map_or(0, |plan| plan.0.resharding().devices()))
}

/// The layout of every device's shard: before (`after` false), or afterwards.
///
/// # Safety
/// `plan` is a plan that is not freed; `out` may be written; `error` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_reshard_shard(
    plan: *const tw_reshard,
    after: bool,
    out: *mut *mut tw_layout,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let copies = handle(plan, "plan")?.0.resharding();
        let shard = if after { copies.destination_shard() } else { copies.source_shard() };
        give(out, || tw_layout::of(shard.clone()))
    })
}

/// The copies, by destination. `count` is set to how many there are; at most `capacity` are written, from the `first`'th on; `copies` may be
/// NULL.
///
/// # Safety
/// `plan` is a plan that is not freed; `copies` is NULL or `capacity` of them may be written there; `count` may be written; `error` is NULL
/// or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_reshard_copies(
    plan: *const tw_reshard,
    first: u64,
    copies: *mut tw_copy,
    capacity: usize,
    count: *mut u64,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let all = handle(plan, "plan")?.0.resharding().copies();
        let places = write(copies, if copies.is_null() { 0 } else { capacity }, "copies")?;
        put(count, all.len() as u64, "count")?;
        let later = usize::try_from(first).ok().and_then(|first| all.get(first..)).unwrap_or_default();
        for (place, copy) in places.iter_mut().zip(later) {
            *place = tw_copy { source: copy.source, destination: copy.destination, elements: copy.elements() };
        }
        Ok(())
    })
}

/// Which elements a copy takes: from where in the source's shard to where in the destination's, and how many along each dimension. The runs
/// are those of `tw_slice_runs` on the shards' layouts.
///
/// # Safety
/// `plan` is a plan that is not freed; as many numbers as the array has dimensions may be written at each of the three; `error` is NULL or
/// may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_reshard_copy_bounds(
    plan: *const tw_reshard,
    number: u64,
    source_start: *mut u64,
    destination_start: *mut u64,
    sizes: *mut u64,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let all = handle(plan, "plan")?.0.resharding().copies();
        let copy: &ShardCopy = usize::try_from(number).ok().and_then(|number| all.get(number)).ok_or_else(|| {
            Failure::new(
                crate::tw_code::TW_OUT_OF_RANGE,
                format!("there are {} copies, so none is number {number}", all.len()),
            )
        })?;
        let rank = copy.start.len();
        let from = write(source_start, rank, "source_start")?;
        let to = write(destination_start, rank, "destination_start")?;
        let counts = write(sizes, rank, "sizes")?;
        from.copy_from_slice(&copy.source_start);
        to.copy_from_slice(&copy.destination_start);
        for ((count, start), limit) in counts.iter_mut().zip(&copy.start).zip(&copy.limit) {
            *count = limit - start;
        }
        Ok(())
    })
}

/// Does all copies between buffers of this process: `devices` pointers on either side, each to as many bytes as a shard takes
/// (`tw_layout_physical_bytes` of `tw_reshard_shard`). A device that neither gives nor gets anything may have NULL. What no copy writes becomes
/// zero. The destinations must overlap nothing; on an error nothing is written.
///
/// # Safety
/// `plan` is a plan that is not freed; `devices` pointers may be read at `sources` and at `destinations`; each that
/// isn't NULL points to a shard's bytes, which aren't written meanwhile, those of destinations not used at all
/// otherwise; `error` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_reshard_run(
    plan: *const tw_reshard,
    sources: *const *const c_void,
    destinations: *const *mut c_void,
    devices: usize,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let plan = &handle(plan, "plan")?.0;
        let lengths = [plan.source_bytes(), plan.destination_bytes()].map(usize::try_from);
        let [Ok(from), Ok(to)] = lengths else { return Err(Failure::argument("a shard is longer than memory")) };
        let sources = read(sources, devices, "sources")?;
        let destinations = read(destinations, devices, "destinations")?;
        apart(sources, from, destinations, to)?;
        let length = |is_null: bool, bytes: usize| if is_null { 0 } else { bytes };
        let sources = sources.iter().map(|&at| read(at.cast::<u8>(), length(at.is_null(), from), "a source"));
        let sources = sources.collect::<Result<Vec<_>>>()?;
        let places = destinations.iter().map(|&at| write(at.cast::<u8>(), length(at.is_null(), to), "a destination"));
        let mut places = places.collect::<Result<Vec<_>>>()?;
        Ok(plan.run(&sources, &mut places)?)
    })
}

/// Checks that no destination overlaps another buffer. Sources may overlap each other.
fn apart(sources: &[*const c_void], from: usize, destinations: &[*mut c_void], to: usize) -> Result<()> {
    let sources = sources.iter().filter(|at| !at.is_null() && from > 0).map(|at| (at.addr(), from, false));
    let destinations = destinations.iter().filter(|at| !at.is_null() && to > 0).map(|at| (at.addr(), to, true));
    let mut buffers: Vec<(usize, usize, bool)> = sources.chain(destinations).collect();
    buffers.sort_unstable();
    let (mut end, mut end_of_destinations) = (0, 0);
    for (start, length, is_destination) in buffers {
        if start < if is_destination { end } else { end_of_destinations } {
            return Err(Failure::argument("a destination overlaps another buffer"));
        }
        let own = start.saturating_add(length);
        end = end.max(own);
        end_of_destinations = if is_destination { end_of_destinations.max(own) } else { end_of_destinations };
    }
    Ok(())
}

/// Frees a plan; NULL is fine.
///
/// # Safety
/// `plan` is NULL, or a plan that is not freed and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_reshard_free(plan: *mut tw_reshard) {
    // SAFETY: The caller's promise.
    look((), || unsafe { take(plan) });
}
