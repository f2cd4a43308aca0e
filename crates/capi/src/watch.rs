//! The calling thread's own deadlines. A thread has one watch, so that there is no handle.

use std::cell::RefCell;

use hourglass_time::Span;
use hourglass_timer::fault::{
    Deadline, DeadlineWatch, EndedJob, FaultError, Periodic, Region, safepoint,
};

use crate::error::{CapiError, HG_ENDED, HG_INVALID, HG_OK, answer, guard, hg_error, hg_status};
use crate::fault::{hg_watch_settings, hg_watched, watched};
use crate::pointers::{give, offer, read, read_or_default};

/// End of a job.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_ending {
    /// Its number, from 0.
    pub number: u64,
    /// Its deadline, ns.
    pub deadline_ns: u64,
    /// When it was ended, ns.
    pub finished_ns: u64,
    /// The next job's deadline, ns; 0 for a single job.
    pub next_deadline_ns: u64,
    /// Whether it was ended at its deadline or after.
    pub missed: bool,
    /// Whether a job was in progress.
    pub was_job: bool,
    /// Reserved: 0.
    pub reserved: [u8; 6],
}

/// State of the calling thread's watch.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_watch_state {
    /// The deadline in force, ns; `UINT64_MAX` without one.
    pub deadline_ns: u64,
    /// Deadlines passed.
    pub faults: u64,
    /// Passed deadlines that no handler received.
    pub untold: u64,
    /// Times that the thread went on without a verdict.
    pub overstayed: u64,
}

thread_local! {
    static OWN: RefCell<Option<DeadlineWatch>> = const { RefCell::new(None) };
    /// Regions that C entered. They have no size, so that none of this allocates.
    static REGIONS: RefCell<Vec<Region>> = const { RefCell::new(Vec::new()) };
}

fn unwatched() -> CapiError {
    CapiError::new(HG_INVALID, "this thread is not watched: call hg_watch_begin in it first")
}

/// Calls `work` with the calling thread's watch.
fn with<T>(work: impl FnOnce(&mut DeadlineWatch) -> Result<T, FaultError>) -> Result<T, CapiError> {
    let done = OWN.try_with(|own| {
        let mut own = own.try_borrow_mut().map_err(|_| unwatched())?;
        let watch = own.as_mut().ok_or_else(unwatched)?;
        work(watch).map_err(|error| match error {
            // Expected, and asked for again and again: without a text.
            FaultError::Ended(_) => CapiError::new(HG_ENDED, ""),
            other => other.into(),
        })
    });
    done.unwrap_or_else(|_| Err(unwatched()))
}

/// Watches the calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watch_begin(
    settings: *const hg_watch_settings,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `settings`.
        let settings = unsafe { read_or_default(settings) };
        let watch = DeadlineWatch::new(settings.settings()?)?;
        let kept = OWN.try_with(|own| own.replace(Some(watch)));
        kept.map(drop).map_err(|_| CapiError::invalid("this thread is about to end"))
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Changes the settings of the watch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watch_set(
    settings: *const hg_watch_settings,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `settings`.
        let settings = unsafe { read(settings, "settings") }?.settings()?;
        with(|watch| {
            watch.set(settings);
            Ok(())
        })
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Ends the watch of the calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watch_end(error: *mut hg_error) -> hg_status {
    let work = || {
        let taken = OWN.try_with(|own| own.try_borrow_mut().ok().and_then(|mut own| own.take()));
        taken.ok().flatten().map(drop).ok_or_else(unwatched)
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// A handle of the calling thread for others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watch_thread(
    thread: *mut hg_watched,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let found = with(|watch| Ok(watch.thread()))?;
        watched(found)
    };
    // SAFETY: as the header says of `thread` and `error`.
    unsafe { give(thread, "thread", error, work) }
}

/// Arms a deadline at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watch_arm_at(deadline_ns: u64, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || with(|watch| watch.arm(Deadline::At(deadline_ns)))) }
}

/// Arms a deadline at a distance from now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watch_arm_in(length_ns: u64, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe {
        guard(error, || {
            with(|watch| watch.arm(Deadline::In(Span::saturating_from_nanos(length_ns))))
        })
    }
}

/// Disarms the deadline.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watch_disarm(ahead: *mut bool, error: *mut hg_error) -> hg_status {
    let work = || {
        let found = with(|watch| Ok(watch.disarm()?))?;
        // SAFETY: as the header says of `ahead`.
        unsafe { offer(ahead, found) };
        Ok(())
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Arms a budget of CPU time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watch_arm_budget(budget_ns: u64, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe {
        guard(error, || with(|watch| watch.arm_budget(Span::saturating_from_nanos(budget_ns))))
    }
}

/// Disarms the budget.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watch_disarm_budget(error: *mut hg_error) -> hg_status {
    let work = || {
        with(|watch| {
            watch.disarm_budget();
            Ok(())
        })
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Begins a job with a deadline at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watch_begin_job_at(
    deadline_ns: u64,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || with(|watch| watch.begin_job(Deadline::At(deadline_ns)))) }
}

/// Begins a job with a deadline at a distance from now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watch_begin_job_in(length_ns: u64, error: *mut hg_error) -> hg_status {
    // SAFETY: as the header says of `error`.
    unsafe {
        guard(error, || {
            with(|watch| watch.begin_job(Deadline::In(Span::saturating_from_nanos(length_ns))))
        })
    }
}

/// Begins the first of a series of jobs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watch_begin_jobs(
    first_deadline_ns: u64,
    period_ns: u64,
    error: *mut hg_error,
) -> hg_status {
    let series =
        Periodic { first_ns: first_deadline_ns, period: Span::saturating_from_nanos(period_ns) };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, || with(|watch| watch.begin_jobs(series))) }
}

/// Ends the job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watch_end_job(
    ending: *mut hg_ending,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let found = with(DeadlineWatch::end_job)?;
        let report = found.map_or(hg_ending::default(), |found: EndedJob| hg_ending {
            number: found.number,
            deadline_ns: found.deadline_ns,
            finished_ns: found.finished_ns,
            next_deadline_ns: found.next_deadline_ns.unwrap_or(0),
            missed: found.has_missed(),
            was_job: true,
            reserved: [0; 6],
        });
        // SAFETY: as the header says of `ending`.
        unsafe { offer(ending, report) };
        Ok(())
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Reads the state of the watch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_watch_look(
    state: *mut hg_watch_state,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let found = with(|watch| {
            Ok(hg_watch_state {
                deadline_ns: watch.deadline_ns().unwrap_or(u64::MAX),
                faults: watch.faults(),
                untold: watch.undelivered(),
                overstayed: watch.overstayed(),
            })
        })?;
        Ok(found)
    };
    // SAFETY: as the header says of `state` and `error`.
    unsafe { give(state, "state", error, work) }
}

/// A point at which the calling thread may be ended.
#[unsafe(no_mangle)]
pub extern "C" fn hg_safepoint() -> hg_status {
    answer(HG_OK, || if safepoint().is_err() { HG_ENDED } else { HG_OK })
}

/// Enters a region in which the calling thread is not stopped.
#[unsafe(no_mangle)]
pub extern "C" fn hg_defer_enter() {
    answer((), || {
        let region = Region::enter();
        // Where the thread ends, and in a signal handler within these calls, it is not stopped again.
        let kept = REGIONS.try_with(|regions| match regions.try_borrow_mut() {
            Ok(mut regions) => {
                regions.push(region);
                None
            }
            Err(_) => Some(region),
        });
        if let Ok(Some(region)) = kept {
            std::mem::forget(region);
        }
    });
}

/// Leaves the innermost region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_defer_leave(error: *mut hg_error) -> hg_status {
    let work = || {
        let left =
            REGIONS.try_with(|regions| regions.try_borrow_mut().ok().and_then(|mut r| r.pop()));
        // The drop may stop the thread, with nothing borrowed.
        left.ok().flatten().map(drop).ok_or_else(|| {
            CapiError::invalid("no region was entered by this thread: call hg_defer_enter before")
        })
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}
