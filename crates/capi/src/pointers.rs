//! Conversion of arguments of C: addresses that may be NULL, texts, lists.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::error::{CapiError, guard, hg_error, hg_status};

/// Copies a value from an address.
///
/// # Errors
/// `HG_NULL`.
///
/// # Safety
/// `from` is NULL or the address of a `T`.
pub(crate) unsafe fn read<T: Copy>(from: *const T, name: &str) -> Result<T, CapiError> {
    if from.is_null() {
        return Err(CapiError::null(name));
    }
    // SAFETY: not NULL, and the caller promises the rest.
    Ok(unsafe { from.read() })
}

/// Copies a value from an address; the default for NULL.
///
/// # Safety
/// `from` is NULL or the address of a `T`.
pub(crate) unsafe fn read_or_default<T: Copy + Default>(from: *const T) -> T {
    // SAFETY: not NULL where it is read, and the caller promises the rest.
    if from.is_null() { T::default() } else { unsafe { from.read() } }
}

/// Writes a value to an address.
///
/// # Errors
/// `HG_NULL`.
///
/// # Safety
/// `to` is NULL or the address of room for a `T`.
pub(crate) unsafe fn write<T>(to: *mut T, value: T, name: &str) -> Result<(), CapiError> {
    if to.is_null() {
        return Err(CapiError::null(name));
    }
    // SAFETY: not NULL, and the caller promises the rest.
    unsafe { to.write(value) };
    Ok(())
}

/// The border of calls that write one value: calls `make` if `to` is not NULL. Drops what `make` owns in
/// any case.
///
/// # Safety
/// `to` is NULL or the address of room for a `T`; `error` as [`guard`] wants it.
pub(crate) unsafe fn give<T>(
    to: *mut T,
    name: &str,
    error: *mut hg_error,
    make: impl FnOnce() -> Result<T, CapiError>,
) -> hg_status {
    let work = move || {
        is_there(to, name)?;
        let made = make()?;
        // SAFETY: as the caller promises.
        unsafe { write(to, made, name) }
    };
    // SAFETY: as the caller promises.
    unsafe { guard(error, work) }
}

/// Writes a value unless the address is NULL.
///
/// # Safety
/// `to` is NULL or the address of room for a `T`.
pub(crate) unsafe fn offer<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: not NULL, and the caller promises the rest.
        unsafe { to.write(value) };
    }
}

/// Checks that an address is not NULL, before work whose result could not be returned.
///
/// # Errors
/// `HG_NULL`.
pub(crate) fn is_there<T>(to: *const T, name: &str) -> Result<(), CapiError> {
    if to.is_null() { Err(CapiError::null(name)) } else { Ok(()) }
}

/// Writes as many values as fit, and stores their whole number in `count`.
///
/// # Errors
/// `HG_NULL` for a NULL `count`, or for a NULL `to` with `room` above 0.
///
/// # Safety
/// `to` is NULL or has room for `room` of them; `count` is NULL or room for a number.
pub(crate) unsafe fn write_all<T>(
    to: *mut T,
    room: usize,
    count: *mut usize,
    values: impl Iterator<Item = T>,
) -> Result<(), CapiError> {
    is_there(count, "count")?;
    if room > 0 {
        is_there(to, "list")?;
    }
    let mut found = 0;
    for value in values {
        if found < room {
            // SAFETY: below `room`, and the caller promises that.
            unsafe { to.add(found).write(value) };
        }
        found += 1;
    }
    // SAFETY: not NULL, and the caller promises the rest.
    unsafe { count.write(found) };
    Ok(())
}

/// Checks that reserved fields are 0: a later version may give them a meaning.
///
/// # Errors
/// `HG_INVALID`.
pub(crate) fn unused<T: Default + PartialEq>(reserved: T, of: &str) -> Result<(), CapiError> {
    if reserved == T::default() {
        return Ok(());
    }
    Err(CapiError::invalid(format!("`reserved` of {of} is not 0: begin with all zero")))
}

/// A time or a length of time, ns. C can give values up to 2^64.
///
/// # Errors
/// `HG_INVALID` beyond 2^63 - 1 ns: a number that was computed and went wrong.
pub(crate) fn nanoseconds(ns: u64, name: &str) -> Result<i64, CapiError> {
    i64::try_from(ns).map_err(|_| {
        CapiError::invalid(format!("{name} of {ns} ns: give at most {} ns, 292 years", i64::MAX))
    })
}

/// A text, copied; `otherwise` for NULL.
///
/// # Errors
/// `HG_INVALID` if it is no UTF-8.
///
/// # Safety
/// `text` is NULL or a terminated text.
pub(crate) unsafe fn text(text: *const c_char, otherwise: &str) -> Result<String, CapiError> {
    if text.is_null() {
        return Ok(otherwise.to_owned());
    }
    // SAFETY: not NULL, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map(str::to_owned)
        .map_err(|_| CapiError::invalid(format!("the name {text:?} is not UTF-8")))
}

/// A path, copied, in whatever bytes; `None` for NULL.
///
/// # Errors
/// `HG_INVALID` for an empty one, which no file has.
///
/// # Safety
/// `path` is NULL or a terminated text.
pub(crate) unsafe fn path(path: *const c_char, name: &str) -> Result<Option<PathBuf>, CapiError> {
    if path.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL, and the caller promises the rest.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    if bytes.is_empty() {
        return Err(CapiError::invalid(format!(
            "`{name}` is empty: name a folder, or give NULL for none"
        )));
    }
    Ok(Some(OsStr::from_bytes(bytes).into()))
}

/// Releases the data of a call-back.
pub(crate) type hg_release_fn = Option<unsafe extern "C" fn(*mut c_void)>;

/// Data of the caller, with the function that releases it.
///
/// It is released once, when nothing calls with it any more.
pub(crate) struct User {
    data: *mut c_void,
    release: hg_release_fn,
}

// SAFETY: the header requires that any thread may use the data of a call-back there.
unsafe impl Send for User {}

// SAFETY: as for `Send`; nothing of ours reads it.
unsafe impl Sync for User {}

impl User {
    /// Takes ownership of `data`.
    ///
    /// # Safety
    /// `release` may be called with `data`, once, on any thread.
    pub(crate) unsafe fn new(data: *mut c_void, release: hg_release_fn) -> User {
        User { data, release }
    }

    pub(crate) fn data(&self) -> *mut c_void {
        self.data
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as its maker promised; it is dropped once.
            unsafe { release(self.data) };
        }
    }
}
