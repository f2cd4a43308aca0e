//! Jobs of periodic threads: the data of their call-backs, and calls from within a body.
//!
//! Owns: which periodic thread the code at hand belongs to ([`CallbackData`]).

use std::cell::Cell;
use std::ffi::c_void;
use std::ops::ControlFlow;
use std::sync::Arc;

use hourglass_time::{Instant, Monotonic, Span};
use hourglass_timer::periodic::{CompletedJob, RunningJob};

use crate::error::{CapiError, HG_STALE, answer, guard, hg_error, hg_status};
use crate::pointers::{User, give, is_there};
use crate::sleep::{hg_slept, store_outcome};

/// A job that is complete.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_completed {
    /// Number of the job, from 0.
    pub number: u64,
    /// When it was released, ns.
    pub release_ns: u64,
    /// When its body was entered, ns.
    pub started_ns: u64,
    /// Its deadline, ns.
    pub deadline_ns: u64,
    /// When it was complete, ns.
    pub completed_ns: u64,
    /// CPU time that it took, ns.
    pub cost_ns: u64,
    /// Releases that were lost by it.
    pub lost: u64,
    /// Shift of the grid of releases, ns.
    pub moved_ns: u64,
    /// Whether its release had passed when the job before was complete.
    pub late: bool,
    /// Whether it was running at the next release.
    pub overrun: bool,
    /// Whether it missed its deadline.
    pub missed: bool,
    /// Whether it took more CPU time than its budget.
    pub cost_overrun: bool,
    /// Reserved: 0.
    pub reserved: [u8; 4],
}

/// A job that runs.
#[repr(C)]
pub struct hg_job {
    /// Number of the job, from 0.
    pub number: u64,
    /// When it was released, ns.
    pub release_ns: u64,
    /// When its body was entered, ns.
    pub started_ns: u64,
    /// Its deadline, ns.
    pub deadline_ns: u64,
    /// Releases that were lost before it.
    pub lost_before: u64,
    /// Whether its release had passed when the job before was complete.
    pub late: bool,
    /// Whether `previous` holds a job.
    pub has_previous: bool,
    /// Reserved: 0.
    pub reserved: [u8; 6],
    /// The job before this one.
    pub previous: hg_completed,
    /// Private to the library.
    pub inner: *mut c_void,
}

/// Remaining time of a job.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_standing {
    /// Time until the deadline, ns; negative if it has passed.
    pub until_deadline_ns: i64,
    /// CPU time until the budget is used, ns; `INT64_MAX` without one.
    pub budget_left_ns: i64,
}

/// Body of a job; returns whether another job follows.
pub type hg_body_fn = Option<unsafe extern "C" fn(*mut hg_job, *mut c_void) -> bool>;
/// Receives a job that missed its deadline or overran its cost.
pub type hg_completed_fn = Option<unsafe extern "C" fn(*const hg_completed, *mut c_void)>;

impl From<&CompletedJob> for hg_completed {
    fn from(job: &CompletedJob) -> hg_completed {
        hg_completed {
            number: job.number,
            release_ns: job.release_ns,
            started_ns: job.started_ns,
            deadline_ns: job.deadline_ns,
            completed_ns: job.completed_ns,
            cost_ns: job.cost_ns,
            lost: job.lost,
            moved_ns: job.moved_ns,
            late: job.late,
            overrun: job.overrun,
            missed: job.missed(),
            cost_overrun: job.is_cost_overrun(),
            reserved: [0; 4],
        }
    }
}

/// Identifies a periodic thread: marks are equal if they have one address.
#[derive(Clone, Default)]
pub(crate) struct Mark(Arc<u8>);

impl Mark {
    /// Whether the caller runs code of that thread: its body, one of its call-backs, or the release of their
    /// data.
    pub(crate) fn is_here(&self) -> bool {
        HERE.get() == Arc::as_ptr(&self.0)
    }

    /// Runs code of the thread's.
    fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = HERE.replace(Arc::as_ptr(&self.0));
        // Call-backs of C do not unwind.
        let done = work();
        HERE.set(before);
        done
    }
}

/// Data of the call-backs of a periodic thread, and its mark. The last call-back releases the data.
#[derive(Clone)]
pub(crate) struct CallbackData {
    /// `None` only while it is dropped.
    user: Option<Arc<User>>,
    mark: Mark,
}

impl CallbackData {
    pub(crate) fn new(user: User, mark: &Mark) -> CallbackData {
        CallbackData { user: Some(Arc::new(user)), mark: mark.clone() }
    }

    fn data(&self) -> *mut c_void {
        self.user.as_ref().map_or(std::ptr::null_mut(), |user| user.data())
    }

    pub(crate) fn with<T>(&self, call: impl FnOnce(*mut c_void) -> T) -> T {
        self.mark.within(|| call(self.data()))
    }
}

impl Drop for CallbackData {
    fn drop(&mut self) {
        let user = self.user.take();
        self.mark.within(|| drop(user));
    }
}

thread_local! {
    /// The mark of the periodic thread whose code runs in this thread.
    static HERE: Cell<*const u8> = const { Cell::new(std::ptr::null()) };
    /// The job that runs in this thread.
    static JOB: Cell<*const hg_job> = const { Cell::new(std::ptr::null()) };
}

/// Wraps a C call-back that receives completed jobs.
pub(crate) fn tells(
    call: hg_completed_fn,
    user: &CallbackData,
) -> Option<impl FnMut(&CompletedJob) + Send + 'static> {
    let (call, user) = (call?, user.clone());
    Some(move |job: &CompletedJob| {
        let completed = hg_completed::from(job);
        // SAFETY: the header asks that it may be called so, on the periodic thread.
        user.with(|user| unsafe { call(&raw const completed, user) });
    })
}

/// Runs a body.
pub(crate) fn run(
    call: unsafe extern "C" fn(*mut hg_job, *mut c_void) -> bool,
    user: &CallbackData,
    job: &mut RunningJob<'_>,
) -> ControlFlow<()> {
    let previous = job.previous().map(hg_completed::from);
    let mut handle = hg_job {
        number: job.number(),
        release_ns: job.release_ns(),
        started_ns: job.started_ns(),
        deadline_ns: job.deadline_ns(),
        lost_before: job.lost_before(),
        late: job.is_late(),
        has_previous: previous.is_some(),
        reserved: [0; 6],
        previous: previous.unwrap_or_default(),
        inner: (&raw mut *job).cast(),
    };
    JOB.set(&raw const handle);
    // SAFETY: the header asks that it may be called so, on the periodic thread.
    let goes_on = user.with(|user| unsafe { call(&raw mut handle, user) });
    JOB.set(std::ptr::null());
    if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// Finds the job that runs in this thread.
///
/// # Errors
/// `HG_NULL`; `HG_STALE` if `job` does not run in this thread.
///
/// # Safety
/// Called from within the body that was given `job`, if that is the job of this thread.
unsafe fn job_of<'a>(job: *const hg_job) -> Result<&'a mut RunningJob<'static>, CapiError> {
    is_there(job, "job")?;
    if JOB.get() != job {
        let text = "no such job runs in this thread: a job ends when its body returns";
        return Err(CapiError::new(HG_STALE, text));
    }
    // SAFETY: the body of this very job runs, whose caller holds the only reference to it; `run` set
    // `inner`, and C must not change it.
    Ok(unsafe { &mut *(*job).inner.cast::<RunningJob<'static>>() })
}

/// Reads the remaining time of a job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_job_check(
    job: *const hg_job,
    standing: *mut hg_standing,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `job`.
        let found = unsafe { job_of(job) }?.check();
        let standing = hg_standing {
            until_deadline_ns: found.until_deadline.nanos(),
            budget_left_ns: found.budget_left.map_or(i64::MAX, Span::nanos),
        };
        Ok(standing)
    };
    // SAFETY: as the header says of `standing` and `error`.
    unsafe { give(standing, "standing", error, work) }
}

/// Whether the thread is asked to stop.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_job_is_stopping(job: *const hg_job) -> bool {
    // SAFETY: as the header says of `job`.
    answer(false, || unsafe { job_of(job) }.is_ok_and(|job| job.is_stopping()))
}

/// Moves the grid of the job's thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_job_shift(
    job: *const hg_job,
    by_ns: i64,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `job`.
        unsafe { job_of(job) }?.shift(Span::from_nanos(by_ns));
        Ok(())
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Pauses within a job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_job_sleep_until(
    job: *const hg_job,
    deadline_ns: u64,
    slept: *mut hg_slept,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `job`.
        let job = unsafe { job_of(job) }?;
        let deadline = i64::try_from(deadline_ns).unwrap_or(i64::MAX);
        let found = job.sleeper().sleep_until(Instant::<Monotonic>::from_nanos(deadline));
        // SAFETY: as the header says of `slept`.
        unsafe { store_outcome(found, slept) }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}
