//! Relayouts: a plan, made once and run any number of times.

use crate::{
    error::{Failure, Result, answer, look, tw_error},
    layout::tw_layout,
    pointers::{give, handle, put, put_if_wanted, put_text, read, take, write},
};
use std::ffi::{c_char, c_void};
use tilewise_relayout::{Cost, Padding, Plan};

/// A plan: opaque, immutable, usable from any thread.
pub struct tw_relayout(Plan);

/// A flag of `tw_relayout_new_with`: the destination's padding keeps what it holds, instead of becoming zero.
pub const TW_LEAVE_PADDING: u32 = 1;

/// Plans how buffers go from one layout of an array to another. The destination's padding becomes zero.
///
/// # Safety
/// `from` and `to` are layouts that are not freed; they are not needed any more afterwards. `out` may be written; `error` is NULL or may be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_relayout_new(
    from: *const tw_layout,
    to: *const tw_layout,
    out: *mut *mut tw_relayout,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises.
    unsafe { tw_relayout_new_with(from, to, 0, out, error) }
}

/// As `tw_relayout_new`, with flags: 0 or TW_LEAVE_PADDING.
///
/// # Safety
/// As for `tw_relayout_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_relayout_new_with(
    from: *const tw_layout,
    to: *const tw_layout,
    flags: u32,
    out: *mut *mut tw_relayout,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let (from, to) = (handle(from, "from")?, handle(to, "to")?);
        let padding = match flags {
            0 => Padding::Zero,
            TW_LEAVE_PADDING => Padding::Leave,
            _ => return Err(Failure::argument(format!("unknown flags: {flags:#x}"))),
        };
        give(out, || {
            let plan = Plan::of_tiled(from.tiled().clone(), to.tiled().clone())?;
            Ok(tw_relayout(if padding == Padding::Zero { plan } else { plan.with_padding(padding) }))
        })
    })
}

/// Bytes of the buffer to read; 0 for NULL.
///
/// # Safety
/// `plan` is NULL or a plan that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_relayout_source_bytes(plan: *const tw_relayout) -> u64 {
    // SAFETY: The caller's promise.
    look(0, || unsafe { plan.as_ref() }.map_or(0, |plan| plan.0.source_bytes()))
}

/// Bytes of the buffer to write; 0 for NULL.
///
/// # Safety
/// `plan` is NULL or a plan that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_relayout_destination_bytes(plan: *const tw_relayout) -> u64 {
    // SAFETY: The caller's promise.
    look(0, || unsafe { plan.as_ref() }.map_or(0, |plan| plan.0.destination_bytes()))
}

/// Writes the plan in words, as snprintf does; `length` is set to the whole text's length and may be NULL.
///
/// # Safety
/// `plan` is a plan that is not freed; `capacity` bytes may be written at `buffer`; `length` and `error` are NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_relayout_text(
    plan: *const tw_relayout,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe { put_text(&handle(plan, "plan")?.0.to_string(), buffer, capacity, length) })
}

/// Converts a buffer on up to `threads` threads (0 is 1). The buffers must have exactly the plan's lengths and must not overlap; on an
/// error nothing is written. Threads live as long as the call.
///
/// # Safety
/// `plan` is a plan that is not freed; `source_bytes` may be read at `source`, and aren't written meanwhile;
/// `destination_bytes` may be written at `destination`, and aren't used otherwise meanwhile; `error` is NULL or may be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_relayout_run(
    plan: *const tw_relayout,
    source: *const c_void,
    source_bytes: usize,
    destination: *mut c_void,
    destination_bytes: usize,
    threads: u32,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let plan = handle(plan, "plan")?;
        let (source, destination) = buffers(source, source_bytes, destination, destination_bytes)?;
        Ok(plan.0.run_with_threads(source, destination, threads.max(1) as usize)?)
    })
}

/// The cost of a run of a plan.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tw_cost {
    /// Bytes of the source that hold elements; its padding isn't read.
    pub read_bytes: u64,
    /// Bytes of the destination that are written.
    pub written_bytes: u64,
    /// How often the innermost work is begun, at most: 1 for a plain copy, the number of elements where each is moved alone.
    pub pieces: u64,
    /// Into how many parts tw_relayout_run_part can cut the destination; 1 where nothing of it is done before the end.
    pub most_parts: u64,
}

/// The cost of a run, without running.
///
/// # Safety
/// `plan` is a plan that is not freed; `cost` may be written; `error` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_relayout_cost(plan: *const tw_relayout, cost: *mut tw_cost, error: *mut tw_error) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let plan = &handle(plan, "plan")?.0;
        let Cost { read_bytes, written_bytes, pieces, .. } = plan.cost();
        put(cost, tw_cost { read_bytes, written_bytes, pieces, most_parts: plan.most_parts() }, "cost")
    })
}

/// Converts part `part` of the `parts` that the destination is cut into, on the calling thread, for pipelines that send what is done while the
/// rest is converted. The buffers are the whole ones. Parts are run in order, each once.
///
/// `start` and `end` are set to the bytes of the destination that this part has made, which no later part writes; they may be NULL. One behind
/// the other, the parts make all of it; of more than the plan's `most_parts`, some make nothing, and of a plan that can't be cut, all but the
/// last.
///
/// # Safety
/// As for `tw_relayout_run`; `start` and `end` are NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_relayout_run_part(
    plan: *const tw_relayout,
    part: usize,
    parts: usize,
    source: *const c_void,
    source_bytes: usize,
    destination: *mut c_void,
    destination_bytes: usize,
    start: *mut u64,
    end: *mut u64,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let plan = handle(plan, "plan")?;
        if part >= parts {
            return Err(Failure::argument(format!("there is no part {part} of {parts}: the first is 0")));
        }
        let (source, destination) = buffers(source, source_bytes, destination, destination_bytes)?;
        let made = plan.0.run_part(part, parts, source, destination)?;
        put_if_wanted(start, made.start);
        put_if_wanted(end, made.end);
        Ok(())
    })
}

/// Two buffers that don't overlap.
///
/// # Safety
/// As for `tw_relayout_run`.
unsafe fn buffers<'a>(
    source: *const c_void,
    source_bytes: usize,
    destination: *mut c_void,
    destination_bytes: usize,
) -> Result<(&'a [u8], &'a mut [u8])> {
    let (from, to) = (source.addr(), destination.addr());
    if from < to.saturating_add(destination_bytes) && to < from.saturating_add(source_bytes) {
        return Err(Failure::argument("the buffers overlap"));
    }
    // SAFETY: The caller's promises; they don't overlap.
    unsafe {
        Ok((read(source.cast(), source_bytes, "source")?, write(destination.cast(), destination_bytes, "destination")?))
    }
}

/// Frees a plan; NULL is fine.
///
/// # Safety
/// `plan` is NULL, or a plan that is not freed and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_relayout_free(plan: *mut tw_relayout) {
    // SAFETY: The caller's promise.
    look((), || unsafe { take(plan) });
}
