//! The page of a clock in shared memory: shared with other processes, and read.

use std::fs::File;
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use hourglass_clock::process::clock;
use hourglass_clock::timekeeping::{Bounds, PageReader};

use crate::clock::hg_bounds;
use crate::error::{CapiError, guard, hg_error, hg_status, reading};
use crate::pointers::{give, read, write};
use crate::table::HandleTable;

/// A page that another process writes: where it is, by which counter, and the handle of its reader.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hg_page {
    /// The words.
    pub words: *const u64,
    /// The reader.
    pub handle: u64,
    /// Counter of this processor that may be read for it; 0 without a counter.
    pub counter: u32,
    /// Its place in [`hg_page_guards_v1`]; 0 without a guard.
    pub guard: u32,
}

/// Number of guards, one a page; guard 0 is never used.
const GUARDS: usize = 64;
/// No guard has it: an odd number.
const UNGUARDED: u64 = 1;

/// The guards that pages of other processes have in this one, for the inline reads of the header.
#[unsafe(no_mangle)]
pub static hg_page_guards_v1: [AtomicU64; GUARDS] = [const { AtomicU64::new(UNGUARDED) }; GUARDS];

/// Guards in use, one bit each.
static TAKEN: AtomicU64 = AtomicU64::new(1);

/// Takes a guard; 0 if all are in use: each bounded read is then a call.
fn take_guard() -> u32 {
    let taken = TAKEN.fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| {
        (taken != u64::MAX).then(|| taken | 1 << taken.trailing_ones())
    });
    taken.map_or(0, u64::trailing_ones)
}

fn give_guard_back(number: u32) {
    set_guard(number, UNGUARDED);
    if number > 0 {
        TAKEN.fetch_and(!(1 << (number % u64::BITS)), Ordering::AcqRel);
    }
}

/// Stores the guard of a page for the header's inline reads.
fn set_guard(number: u32, guard: u64) {
    if let (1.., Some(place)) = (number, hg_page_guards_v1.get(number as usize)) {
        place.store(guard, Ordering::Relaxed);
    }
}

/// Facts about the writer of a page.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_page_writer {
    /// Its process number, in its own namespace.
    pub pid: u64,
    /// When it last wrote, ns on `CLOCK_MONOTONIC`.
    pub heartbeat_ns: u64,
    /// Events that it counted.
    pub events: u64,
    /// Whether its page is past its validity.
    pub expired: bool,
    /// Reserved: 0.
    pub reserved: [u8; 7],
}

static PAGES: HandleTable<PageReader> = HandleTable::new(1, "page");

/// Shares the page of the clock of the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_clock_share(fd: *mut i32, error: *mut hg_error) -> hg_status {
    let work = || {
        let descriptor = clock().share().map_err(|error| CapiError::os(&error))?;
        Ok(descriptor.into_raw_fd())
    };
    // SAFETY: as the header says of `fd` and `error`.
    unsafe { give(fd, "fd", error, work) }
}

/// A descriptor of its own for a file that C holds.
fn file_of(fd: RawFd) -> Result<File, CapiError> {
    if fd < 0 {
        return Err(CapiError::invalid(format!("no file has the descriptor {fd}: open it first")));
    }
    // SAFETY: not -1; the descriptor is only duplicated, which fails with an error if it is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    borrowed.try_clone_to_owned().map(File::from).map_err(|error| CapiError::os(&error))
}

/// Opens a page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_page_open(
    fd: i32,
    page: *mut hg_page,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let reader = PageReader::open(&file_of(fd)?)?;
        let words = reader.page_address();
        let counter = reader.counter().map_or(0, |source| u32::from(source.0));
        // The header looks for the generation of the kernel's clock in this process' own page, which
        // knows it from the first read on.
        let _ = clock().now();
        // Should another thread be at that first read: waits for it.
        let _ = clock().source();
        let handle = PAGES.insert(reader)?;
        Ok(hg_page { words, handle, counter, guard: take_guard() })
    };
    // SAFETY: as the header says of `page` and `error`.
    unsafe { give(page, "page", error, work) }
}

/// # Safety
/// `page` is NULL or the address of one.
unsafe fn with<T>(page: *const hg_page, look: impl FnOnce(&PageReader) -> T) -> Option<T> {
    // SAFETY: as the caller promises.
    let page = unsafe { page.as_ref() }?;
    // In a signal handler, too: without a text.
    PAGES.find(page.handle).ok().map(|reader| look(&reader))
}

/// `hg_page_now` where the page does not simply give the time; 0 for no page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_page_now_call(page: *const hg_page) -> u64 {
    // SAFETY: as the header says of `page`.
    reading(0, || unsafe { with(page, PageReader::now) }.unwrap_or(0))
}

/// `hg_page_now_ordered`, likewise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_page_now_ordered_call(page: *const hg_page) -> u64 {
    // SAFETY: as the header says of `page`.
    reading(0, || unsafe { with(page, PageReader::now_ordered) }.unwrap_or(0))
}

/// `hg_page_now_bounded`, likewise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_page_now_bounded_call(page: *const hg_page) -> hg_bounds {
    reading(hg_bounds::default(), || {
        // SAFETY: as the header says of `page`.
        let number = unsafe { page.as_ref() }.map_or(0, |page| page.guard);
        let read = |reader: &PageReader| {
            let bounds = reader.now_bounded();
            set_guard(number, reader.guard());
            bounds
        };
        // SAFETY: as above.
        let found: Option<Bounds> = unsafe { with(page, read) };
        found.map(hg_bounds::from).unwrap_or_default()
    })
}

/// Reads the facts about the writer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_page_writer_of(
    page: *const hg_page,
    writer: *mut hg_page_writer,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `page`.
        let handle = unsafe { read(page, "page") }?.handle;
        let found = PAGES.get(handle)?.writer();
        let found = hg_page_writer {
            pid: found.pid,
            heartbeat_ns: found.heartbeat_ns,
            events: found.events,
            expired: found.expired,
            reserved: [0; 7],
        };
        Ok(found)
    };
    // SAFETY: as the header says of `writer` and `error`.
    unsafe { give(writer, "writer", error, work) }
}

/// Closes a page, and marks `page` as closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_page_close(page: *mut hg_page, error: *mut hg_error) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `page`.
        let before = unsafe { read(page.cast_const(), "page") }?;
        let reader = PAGES.remove(before.handle)?;
        give_guard_back(before.guard);
        let closed = hg_page { words: std::ptr::null(), counter: 0, guard: 0, ..before };
        // SAFETY: as above, not NULL.
        unsafe { write(page, closed, "page") }?;
        drop(reader);
        Ok(())
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}
