//! C's pointers as Rust's slices and references, and back, with all checks of pointers.

use crate::error::{Failure, Result};
use std::{
    ffi::{CStr, c_char},
    slice,
};

/// A slice to read.
///
/// # Safety
/// The pointer is NULL, or `length` values may be read there, and are not written, for as long as the result is used.
pub(crate) unsafe fn read<'a, T>(pointer: *const T, length: usize, what: &str) -> Result<&'a [T]> {
    if length == 0 {
        return Ok(&[]);
    }
    check(pointer, length, what)?;
    // SAFETY: Neither NULL nor badly aligned, and no longer than memory can be; the rest is the caller's promise.
    Ok(unsafe { slice::from_raw_parts(pointer, length) })
}

/// A slice to write.
///
/// # Safety
/// The pointer is NULL, or `length` values may be written there, and have no other users, for as long as the result is
/// used.
pub(crate) unsafe fn write<'a, T>(pointer: *mut T, length: usize, what: &str) -> Result<&'a mut [T]> {
    if length == 0 {
        return Ok(&mut []);
    }
    check(pointer, length, what)?;
    // SAFETY: As in `read`. Bytes that C never wrote have some value: the compiler can't see across the C interface.
    Ok(unsafe { slice::from_raw_parts_mut(pointer, length) })
}

fn check<T>(pointer: *const T, length: usize, what: &str) -> Result<()> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{what} is NULL")));
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument(format!("{what} is not aligned to {} bytes", align_of::<T>())));
    }
    if length.checked_mul(size_of::<T>()).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(Failure::argument(format!("{what} is longer than memory")));
    }
    Ok(())
}

/// The object of a handle.
///
/// # Safety
/// The pointer is NULL, or one that this library made and that is not freed while the result is used.
pub(crate) unsafe fn handle<'a, T>(pointer: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: The caller's promise; handles are boxes, so they are aligned.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::argument(format!("{what} is NULL")))
}

/// A text with a given length.
///
/// # Safety
/// As for [`read`].
pub(crate) unsafe fn text<'a>(pointer: *const c_char, length: usize, what: &str) -> Result<&'a str> {
    // SAFETY: The caller's promise; a `c_char` is a byte.
    let bytes = unsafe { read(pointer.cast::<u8>(), length, what) }?;
    std::str::from_utf8(bytes).map_err(|error| {
        let start = error.valid_up_to();
        let end = start + error.error_len().unwrap_or(bytes.len() - start);
        Failure::argument(format!("{what} isn't UTF-8 from byte {start} on")).at(start, end)
    })
}

/// A word that ends with NUL.
///
/// # Safety
/// The pointer is NULL, or bytes up to a NUL may be read there while the result is used.
pub(crate) unsafe fn word<'a>(pointer: *const c_char, what: &str) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{what} is NULL")));
    }
    // SAFETY: Not NULL; the rest is the caller's promise.
    unsafe { CStr::from_ptr(pointer) }.to_str().map_err(|_| Failure::argument(format!("{what} isn't UTF-8")))
}

/// Writes a result, unless the pointer is NULL.
///
/// # Safety
/// The pointer is NULL, or a value may be written there.
pub(crate) unsafe fn put_if_wanted<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() {
        // SAFETY: The caller's promise. The pointer may be unaligned, which this write allows.
        unsafe { pointer.write_unaligned(value) };
    }
}

/// Writes a result; NULL is an error.
///
/// # Safety
/// As for [`put_if_wanted`].
pub(crate) unsafe fn put<T>(pointer: *mut T, value: T, what: &str) -> Result<()> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{what} is NULL")));
    }
    // SAFETY: Not NULL; the rest is the caller's promise.
    unsafe { put_if_wanted(pointer, value) };
    Ok(())
}

/// Makes an object and gives its handle to the caller.
///
/// # Safety
/// As for [`put_if_wanted`].
pub(crate) unsafe fn give<T>(out: *mut *mut T, make: impl FnOnce() -> Result<T>) -> Result<()> {
    if out.is_null() {
        return Err(Failure::argument("out is NULL"));
    }
    let made = make()?;
    // SAFETY: Not NULL; the rest is the caller's promise.
    unsafe { put_if_wanted(out, Box::into_raw(Box::new(made))) };
    Ok(())
}

/// Takes a handle back and frees it; NULL is fine.
///
/// # Safety
/// The pointer is NULL, or came from [`give`] and was not taken back before.
pub(crate) unsafe fn take<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: The caller's promise.
        drop(unsafe { Box::from_raw(pointer) });
    }
}

/// Writes a text as `snprintf` does: the part that fits, and a NUL. Its whole length goes to `length`.
///
/// # Safety
/// `capacity` bytes may be written at `buffer`, and `length` is NULL or may be written.
pub(crate) unsafe fn put_text(text: &str, buffer: *mut c_char, capacity: usize, length: *mut usize) -> Result<()> {
    // SAFETY: The caller's promise.
    let room = unsafe { write(buffer.cast::<u8>(), capacity, "buffer") }?;
    if let Some(most) = capacity.checked_sub(1) {
        let mut fits = text.len().min(most);
        while !text.is_char_boundary(fits) {
            fits -= 1;
        }
        room[..fits].copy_from_slice(&text.as_bytes()[..fits]);
        room[fits] = 0;
    }
    // SAFETY: The caller's promise.
    unsafe { put_if_wanted(length, text.len()) };
    Ok(())
}
