//! The C library, called as C calls it.

#![allow(unsafe_code, reason = "C's functions")]

use std::{ffi::CStr, ptr};
use tilewise_capi::{
    tw_cost, tw_error, tw_layout, tw_layout_free, tw_layout_index_of, tw_layout_offset_of, tw_layout_parse,
    tw_layout_physical_bytes, tw_layout_physical_elements, tw_layout_rank, tw_layout_stored_bits, tw_layout_text,
    tw_relayout_cost, tw_relayout_free, tw_relayout_new, tw_relayout_run, tw_relayout_run_part, tw_reshard,
    tw_reshard_copies, tw_reshard_devices, tw_reshard_free, tw_reshard_new, tw_reshard_run, tw_reshard_shard, tw_run,
    tw_slice, tw_slice_describe, tw_slice_runs_strided,
};

/// Longer buffers are not moved, nor are offsets looked at one by one.
const LARGEST: u64 = 1 << 12;

/// Lines: two shapes, two shardings, and numbers for a slice, each a byte. Whatever they are, each call succeeds, or
/// has an error that points into the text; runs agree with `index_of` offset by offset.
pub fn c_border(data: &[u8]) {
    let mut lines = data.splitn(5, |&byte| byte == b'\n');
    let [from, to, before, after, numbers] = [(); 5].map(|()| lines.next().unwrap_or_default());
    let Some(from) = parsed(from) else { return };
    let numbers = &mut numbers.iter().copied();
    slice(&from, numbers);
    if let Some(to) = parsed(to) {
        relayout(&from, &to);
        reshard(&from, before, &to, after);
    }
}

/// A layout that frees itself.
struct Owned(*mut tw_layout);

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: A layout that this made.
        unsafe { tw_layout_free(self.0) };
    }
}

fn no_error() -> tw_error {
    tw_error { code: -1, start: 0, end: 0, message: [1; 256] }
}

/// An error of a text of that length.
fn check(code: i32, error: &tw_error, length: usize) {
    assert!(code > 0 && code < 8 && error.code == code, "{error:?}");
    assert!(error.start <= error.end && error.end as usize <= length, "{error:?}");
    let message: Vec<u8> = error.message.iter().map(|&c| c.to_ne_bytes()[0]).collect();
    let message = CStr::from_bytes_until_nul(&message).expect("an end");
    assert!(!message.to_str().expect("UTF-8").is_empty());
}

fn parsed(text: &[u8]) -> Option<Owned> {
    let (mut layout, mut error) = (ptr::null_mut(), no_error());
    // SAFETY: A text and its length, and places that may be written.
    let code = unsafe { tw_layout_parse(text.as_ptr().cast(), text.len(), &raw mut layout, &raw mut error) };
    if code != 0 {
        check(code, &error, text.len());
        assert!(layout.is_null());
        return None;
    }
    let mut words = [0; 64];
    let mut length = 0;
    // SAFETY: A layout, and places that may be written.
    assert_eq!(unsafe { tw_layout_text(layout, words.as_mut_ptr(), words.len(), &raw mut length, ptr::null_mut()) }, 0);
    assert!(words.contains(&0) && length > 0);
    Some(Owned(layout))
}

fn slice(layout: &Owned, numbers: &mut impl Iterator<Item = u8>) {
    // SAFETY: A layout.
    let (rank, bits) = unsafe { (tw_layout_rank(layout.0) as usize, tw_layout_stored_bits(layout.0)) };
    let mut more = || (0..rank).map(|_| u64::from(numbers.next().unwrap_or(1))).collect::<Vec<u64>>();
    let (start, limit, strides) = (more(), more(), more());
    let (mut some, mut count, mut error) = ([tw_run { offset_bits: 0, length_bits: 0 }; 3], 0, no_error());
    let mut runs: Vec<tw_run> = Vec::new();
    loop {
        // SAFETY: A layout, as many numbers as it has dimensions, and places that may be written.
        let code = unsafe {
            let (start, limit, strides) = (start.as_ptr(), limit.as_ptr(), strides.as_ptr());
            let (first, places) = (runs.len() as u64, some.as_mut_ptr());
            tw_slice_runs_strided(
                layout.0,
                start,
                limit,
                strides,
                0,
                first,
                places,
                some.len(),
                &raw mut count,
                &raw mut error,
            )
        };
        if code != 0 {
            return check(code, &error, 0);
        }
        let left = usize::try_from(count - runs.len() as u64).expect("small").min(some.len());
        runs.extend(&some[..left]);
        if left < some.len() || runs.len() > 300 {
            break;
        }
    }
    let mut told = tw_slice { runs: 0, elements: 0, bits: 0, shortest_bits: 0, longest_bits: 0, alignment_bits: 0 };
    // SAFETY: As above.
    let code = unsafe {
        let (start, limit, strides) = (start.as_ptr(), limit.as_ptr(), strides.as_ptr());
        tw_slice_describe(layout.0, start, limit, strides, &raw mut told, ptr::null_mut())
    };
    assert!(code == 0 && told.runs == count && told.bits == told.elements * bits);
    // SAFETY: A layout.
    let elements = unsafe { tw_layout_physical_elements(layout.0) };
    if elements > LARGEST || runs.len() as u64 != count {
        return;
    }
    let mut index = vec![0; rank];
    for offset in 0..elements {
        let (mut is_padding, mut again) = (true, 0);
        // SAFETY: As above.
        unsafe {
            let found = tw_layout_index_of(layout.0, offset, index.as_mut_ptr(), &raw mut is_padding, ptr::null_mut());
            assert_eq!(found, 0);
            assert!(is_padding || tw_layout_offset_of(layout.0, index.as_ptr(), &raw mut again, ptr::null_mut()) == 0);
        }
        let is_in =
            |d: usize| (start[d]..limit[d]).contains(&index[d]) && (index[d] - start[d]).is_multiple_of(strides[d]);
        let is_taken = !is_padding && (0..rank).all(is_in);
        let at = offset * bits;
        let is_told = runs.iter().any(|run| (run.offset_bits..run.offset_bits + run.length_bits).contains(&at));
        assert!(is_padding || again == offset);
        assert_eq!(is_told, is_taken, "offset {offset}");
    }
}

fn relayout(from: &Owned, to: &Owned) {
    let (mut plan, mut error) = (ptr::null_mut(), no_error());
    // SAFETY: Layouts, and places that may be written.
    let code = unsafe { tw_relayout_new(from.0, to.0, &raw mut plan, &raw mut error) };
    if code != 0 {
        return check(code, &error, 0);
    }
    // SAFETY: Layouts.
    let bytes = unsafe { [tw_layout_physical_bytes(from.0), tw_layout_physical_bytes(to.0)] };
    let mut cost = tw_cost { read_bytes: 0, written_bytes: 0, pieces: 0, most_parts: 0 };
    // SAFETY: A plan, and a place that may be written.
    assert_eq!(unsafe { tw_relayout_cost(plan, &raw mut cost, ptr::null_mut()) }, 0);
    assert!(cost.read_bytes <= bytes[0] && cost.written_bytes <= bytes[1] && cost.most_parts > 0, "{cost:?}");
    if bytes.iter().all(|&bytes| bytes <= LARGEST) {
        let [source, mut destination] = bytes.map(|bytes| vec![0x5A_u8; usize::try_from(bytes).expect("small")]);
        // SAFETY: A plan, and buffers with their lengths.
        unsafe {
            let (at, place) = (source.as_ptr().cast(), destination.as_mut_ptr().cast());
            assert_eq!(tw_relayout_run(plan, at, source.len(), place, destination.len(), 2, ptr::null_mut()), 0);
            let mut parts = vec![0xA5_u8; destination.len()];
            let (mut done, part_place) = (0, parts.as_mut_ptr().cast());
            for part in 0..3 {
                let (mut start, mut end) = (0, 0);
                let (starts, ends) = (&raw mut start, &raw mut end);
                let (from_length, to_length) = (source.len(), destination.len());
                let code = tw_relayout_run_part(
                    plan,
                    part,
                    3,
                    at,
                    from_length,
                    part_place,
                    to_length,
                    starts,
                    ends,
                    ptr::null_mut(),
                );
                assert!(code == 0 && start <= end && (start == end || start == done));
                done = done.max(end);
            }
            assert!(done == destination.len() as u64 && parts == destination);
            if let Some(shorter) = destination.len().checked_sub(1) {
                assert_eq!(tw_relayout_run(plan, at, source.len(), place, shorter, 1, &raw mut error), 7);
            }
        }
    }
    // SAFETY: A plan that this made.
    unsafe { tw_relayout_free(plan) };
}

fn reshard(from: &Owned, before: &[u8], to: &Owned, after: &[u8]) {
    let (mut plan, mut error, mut count) = (ptr::null_mut(), no_error(), 0);
    // SAFETY: Layouts, texts and their lengths, and places that may be written.
    let code = unsafe {
        let (before, before_length, after, after_length) =
            (before.as_ptr().cast(), before.len(), after.as_ptr().cast(), after.len());
        tw_reshard_new(from.0, before, before_length, to.0, after, after_length, 0, &raw mut plan, &raw mut error)
    };
    if code != 0 {
        return check(code, &error, before.len().max(after.len()));
    }
    // SAFETY: A plan that this made.
    unsafe {
        assert_eq!(tw_reshard_copies(plan, 0, ptr::null_mut(), 0, &raw mut count, ptr::null_mut()), 0);
        moved(plan);
        tw_reshard_free(plan);
    }
}

/// Runs a resharding over buffers of its own, if they are small: every byte that a device gets is written.
///
/// # Safety
/// The plan isn't freed.
unsafe fn moved(plan: *const tw_reshard) {
    let shard = |after: bool| {
        let mut layout = ptr::null_mut();
        // SAFETY: A plan, and a place that may be written.
        assert_eq!(unsafe { tw_reshard_shard(plan, after, &raw mut layout, ptr::null_mut()) }, 0);
        let layout = Owned(layout);
        // SAFETY: A layout.
        unsafe { tw_layout_physical_bytes(layout.0) }
    };
    // SAFETY: A plan.
    let devices = unsafe { tw_reshard_devices(plan) };
    let lengths = [shard(false), shard(true)];
    if devices > 16 || lengths.iter().any(|&bytes| bytes > LARGEST) {
        return;
    }
    let [from, to] = lengths.map(|bytes| usize::try_from(bytes).expect("small"));
    let devices = usize::try_from(devices).expect("small");
    let held = vec![vec![0x5A_u8; from]; devices];
    let sources: Vec<_> = held.iter().map(|buffer| buffer.as_ptr().cast()).collect();
    let made = |before: u8, devices: usize, error: *mut tw_error| {
        let mut made = vec![vec![before; to]; devices];
        let destinations: Vec<_> = made.iter_mut().map(|buffer| buffer.as_mut_ptr().cast()).collect();
        // SAFETY: A plan, and as many buffers as said, each as long as its shard.
        (unsafe { tw_reshard_run(plan, sources.as_ptr(), destinations.as_ptr(), devices, error) }, made)
    };
    let mut error = no_error();
    check(made(0, devices - 1, &raw mut error).0, &error, 0);
    let ((code, ones), (_, others)) = (made(1, devices, ptr::null_mut()), made(2, devices, ptr::null_mut()));
    assert_eq!(code, 0);
    for (one, other) in ones.iter().zip(&others) {
        let is_untouched = one.iter().all(|byte| *byte == 1) && other.iter().all(|byte| *byte == 2);
        assert!(one == other || is_untouched);
    }
}
