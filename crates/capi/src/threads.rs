//! Threads of the program: the number of the caller, and threads that wait until they are woken.
//!
//! Must not: wait by the standard library's `park`, whose one token any call of this library may take.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use hourglass_time::Span;
use hourglass_timer::Sleeper;
use hourglass_timer::sleep::{Interrupter, SleepPolicy, SleeperSettings};

use crate::error::{CapiError, answer, guard, hg_error, hg_status};
use crate::pointers::give;
use crate::table::{HandleTable, handles};

handles! {
    hg_thread, "A thread that actions wake.";
}

static NEXT: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// Without a destructor, so that it is there until the thread's end.
    static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    /// Sleeper of the thread's `hg_park`, made at its first use.
    static PARKED: RefCell<Option<Sleeper>> = const { RefCell::new(None) };
}

/// A number that is the calling thread's and no other's, ever; never 0.
pub(crate) fn thread_number() -> u64 {
    NUMBER.try_with(|number| *number).unwrap_or(u64::MAX)
}

/// Calls `work` with the sleeper of `hg_park`; `None` while the thread ends, or waits already.
fn with_parked<T>(work: impl FnOnce(&mut Sleeper) -> T) -> Option<T> {
    PARKED
        .try_with(|parked| {
            let mut parked = parked.try_borrow_mut().ok()?;
            let in_kernel = || Sleeper::with(SleeperSettings::with_policy(SleepPolicy::KernelOnly));
            Some(work(parked.get_or_insert_with(in_kernel)))
        })
        .ok()
        .flatten()
}

static THREADS: HandleTable<Interrupter> = HandleTable::new(7, "thread");

/// The calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_thread_current(
    thread: *mut hg_thread,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let own = with_parked(|parked| parked.interrupter());
        let own = own.ok_or_else(|| CapiError::invalid("this thread is about to end"))?;
        Ok(hg_thread { handle: THREADS.insert(own)? })
    };
    // SAFETY: as the header says of `thread` and `error`.
    unsafe { give(thread, "thread", error, work) }
}

/// The interrupter that wakes the thread of a handle.
pub(crate) fn waker_of(thread: hg_thread) -> Result<Interrupter, CapiError> {
    THREADS.get(thread.handle).map(|thread| thread.clone())
}

/// Waits until the calling thread is woken.
#[unsafe(no_mangle)]
pub extern "C" fn hg_park(limit_ns: u64) {
    answer((), || {
        let limit = Span::saturating_from_nanos(limit_ns);
        with_parked(|parked| {
            let _ = parked.sleep_for(limit);
            // Each wake-up ends one wait.
            parked.clear();
        });
    });
}

/// Wakes a thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_unpark(thread: hg_thread, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || THREADS.get(thread.handle).map(|thread| thread.interrupt())) }
}

/// Frees a thread's handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_thread_free(thread: hg_thread, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || THREADS.remove(thread.handle).map(drop)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_each_threads_own() {
        let own = thread_number();
        assert_eq!(thread_number(), own);
        let other = std::thread::spawn(thread_number).join().unwrap();
        assert!(other != own && own != 0 && other != 0);
    }
}
