//! The page in which a program reports its progress. The header writes it inline.

use std::sync::Mutex;

use hourglass_reserve::progress::{PageError, Progress};

use crate::error::{
    CapiError, HG_EXHAUSTED, HG_OTHER_VERSION, HG_PAGE, guard, hg_error, hg_status,
};
use crate::pointers::{give, read, write};
use crate::table::HandleTable;

/// A page of progress: the address of its words, the job, and the handle of its mapping.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hg_progress_page {
    /// The words.
    pub words: *mut u64,
    /// The job's number.
    pub job: u64,
    /// Handle of the mapping.
    pub handle: u64,
    /// Whether the job is done, so that the next call begins another.
    pub over: bool,
    /// Reserved: 0.
    pub reserved: [u8; 7],
}

/// The mutex is never locked: it makes the writer of one thread `Sync`, as the table requires.
static PAGES: HandleTable<Mutex<Progress>> = HandleTable::new(14, "page of progress");

fn failure(error: &PageError) -> CapiError {
    let kind = match error {
        PageError::Version { .. } => HG_OTHER_VERSION,
        PageError::Make(_) => HG_EXHAUSTED,
        _ => HG_PAGE,
    };
    CapiError::new(kind, error.to_string())
}

/// Opens the page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_progress_open(
    page: *mut hg_progress_page,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let progress = Progress::open().map_err(|error| failure(&error))?;
        let (words, job) = (progress.page().address().cast_mut().cast(), progress.job());
        let handle = PAGES.insert(Mutex::new(progress))?;
        let page = hg_progress_page { words, job, handle, over: true, reserved: [0; 7] };
        Ok(page)
    };
    // SAFETY: as the header says of `page` and `error`.
    unsafe { give(page, "page", error, work) }
}

/// Closes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_progress_close(
    page: *mut hg_progress_page,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `page`.
        let before = unsafe { read(page.cast_const(), "page") }?;
        let progress = PAGES.remove(before.handle)?;
        let closed = hg_progress_page { words: std::ptr::null_mut(), ..before };
        // SAFETY: as above, not NULL.
        unsafe { write(page, closed, "page") }?;
        drop(progress);
        Ok(())
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}
