//! Periodic threads.

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use hourglass_time::{Instant, Monotonic, Span};
use hourglass_timer::periodic::{
    Builder, Completed, Distribution, Ended, Job, OverrunPolicy, PeriodicThread, Statistics, Stop,
};
use hourglass_timer::sleep::{Policy, Settings};

use crate::error::{
    Failure, HG_INTERRUPTED, HG_OK, HG_PANIC, HG_STALE, HG_WRONG_THREAD, answer, guard, hg_error,
    hg_status,
};
use crate::fault::{entry, hg_fault_fn, hg_handler_settings, hg_watch_settings};
use crate::pointers::{User, is_there, offer, read, text, write};
use crate::scheduling::hg_scheduling;
use crate::sleep::{hg_interrupt, hg_sleep_settings, hg_slept, interrupt_at, settings_or};
use crate::table::Table;
use crate::timer::hg_release_fn;

/// A periodic thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_periodic {
    /// 0 is none.
    pub handle: u64,
}

/// A job that is complete.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_completed {
    /// How many jobs there were before.
    pub number: u64,
    /// When it was released, ns.
    pub release_ns: u64,
    /// When its body was entered, ns.
    pub started_ns: u64,
    /// By when it was to be complete, ns.
    pub deadline_ns: u64,
    /// When it was complete, ns.
    pub completed_ns: u64,
    /// CPU time that it took, ns.
    pub cost_ns: u64,
    /// Releases that were lost by it.
    pub lost: u64,
    /// By how much the grid moved, ns.
    pub moved_ns: u64,
    /// Whether its release had passed when the job before was complete.
    pub late: bool,
    /// Whether it was running at the next release.
    pub overrun: bool,
    /// Whether it missed its deadline.
    pub missed: bool,
    /// Whether it took more CPU time than its budget.
    pub cost_overrun: bool,
    /// 0.
    pub reserved: [u8; 4],
}

/// A job that runs.
#[repr(C)]
pub struct hg_job {
    /// How many jobs there were before.
    pub number: u64,
    /// When it was released, ns.
    pub release_ns: u64,
    /// When its body was entered, ns.
    pub started_ns: u64,
    /// By when it is to be complete, ns.
    pub deadline_ns: u64,
    /// Releases that were lost before it.
    pub lost_before: u64,
    /// Whether its release had passed when the job before was complete.
    pub late: bool,
    /// Whether `previous` is one.
    pub has_previous: bool,
    /// 0.
    pub reserved: [u8; 6],
    /// The job before.
    pub previous: hg_completed,
    /// The library's.
    pub inner: *mut c_void,
}

/// How a job stands.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_standing {
    /// Time until the deadline, ns; negative if it has passed.
    pub until_deadline_ns: i64,
    /// CPU time until the budget is used, ns; `INT64_MAX` without one.
    pub budget_left_ns: i64,
}

/// A body; whether there is to be another job.
pub type hg_body_fn = Option<unsafe extern "C" fn(*mut hg_job, *mut c_void) -> bool>;
/// Is told of a job that did something wrong.
pub type hg_completed_fn = Option<unsafe extern "C" fn(*const hg_completed, *mut c_void)>;

/// A periodic thread to be; all zero but the period is usual.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hg_periodic_settings {
    /// Its name; NULL for "periodic".
    pub name: *const c_char,
    /// A release every so often, ns; or
    pub period_ns: u64,
    /// So many releases a second.
    pub hertz: u32,
    /// `HG_OVERRUN_*`.
    pub on_overrun: u32,
    /// By when a job is to be complete after its release, ns; 0 for the period.
    pub deadline_ns: u64,
    /// How long after the epoch the first release is, ns.
    pub phase_ns: u64,
    /// CPU time of a job, ns; 0 without.
    pub budget_ns: u64,
    /// Where the grid begins, ns; 0 when it starts.
    pub epoch_ns: u64,
    /// Its policy.
    pub scheduling: hg_scheduling,
    /// CPUs that it may use.
    pub cpus: *const u32,
    /// How many; 0 for those of the starter.
    pub cpu_count: usize,
    /// How it waits; NULL for in the kernel only.
    pub waiting: *const hg_sleep_settings,
    /// What stops it besides; NULL for nothing.
    pub stop_on: *mut hg_interrupt,
    /// Called after a job that missed its deadline.
    pub on_miss: hg_completed_fn,
    /// Called after a job that used more than its budget.
    pub on_cost_overrun: hg_completed_fn,
    /// Called when a deadline is passed, on a thread of its own.
    pub on_fault: hg_fault_fn,
    /// How it is watched, with `on_fault`.
    pub watch: hg_watch_settings,
    /// How that thread runs.
    pub handler: hg_handler_settings,
    /// Whether it is called also when the budget is used up.
    pub watch_budget: bool,
    /// 0.
    pub reserved: [u8; 7],
}

/// Times of jobs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_distribution {
    /// How many.
    pub count: u64,
    /// ns.
    pub min_ns: u64,
    /// ns.
    pub mean_ns: u64,
    /// ns.
    pub p50_ns: u64,
    /// ns.
    pub p99_ns: u64,
    /// ns.
    pub p999_ns: u64,
    /// ns.
    pub max_ns: u64,
}

/// What a periodic thread did.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_periodic_statistics {
    /// Jobs begun.
    pub releases: u64,
    /// Jobs complete.
    pub jobs: u64,
    /// Complete after their deadline.
    pub misses: u64,
    /// Complete after the next release.
    pub overruns: u64,
    /// Begun late since the one before was.
    pub late: u64,
    /// Periods without a job.
    pub lost: u64,
    /// By how much the grid moved, ns.
    pub drift_ns: u64,
    /// Jobs that took more CPU time than the budget.
    pub cost_overruns: u64,
    /// CPU time of all complete jobs, ns.
    pub cpu_ns: u64,
    /// From release to start.
    pub latency: hg_distribution,
    /// From release to completion.
    pub response: hg_distribution,
}

impl From<&Completed> for hg_completed {
    fn from(job: &Completed) -> hg_completed {
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

impl From<&Distribution> for hg_distribution {
    fn from(times: &Distribution) -> hg_distribution {
        let quantile = |ppm| times.quantile_ns(ppm).unwrap_or(0);
        hg_distribution {
            count: times.count(),
            min_ns: times.min_ns().unwrap_or(0),
            mean_ns: times.mean_ns().unwrap_or(0),
            p50_ns: quantile(500_000),
            p99_ns: quantile(990_000),
            p999_ns: quantile(999_000),
            max_ns: times.max_ns().unwrap_or(0),
        }
    }
}

/// What a handle stands for.
struct Kept {
    thread: Mutex<Option<PeriodicThread>>,
    stop: Stop,
    statistics: Statistics,
    tid: u32,
    /// Tells its own thread from others.
    mark: Arc<()>,
}

static PERIODIC: Table<Kept> = Table::new(11, "periodic thread");

thread_local! {
    /// The mark of the periodic thread that this is.
    static OWN: Cell<*const ()> = const { Cell::new(std::ptr::null()) };
    /// The job that runs in this thread.
    static JOB: Cell<*const hg_job> = const { Cell::new(std::ptr::null()) };
}

fn span(ns: u64) -> Span {
    Span::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
}

impl hg_periodic_settings {
    /// The builder that they make, but for `on_fault`.
    ///
    /// # Safety
    /// As the header says of what they point to.
    unsafe fn builder(&self, user: &Arc<User>) -> Result<Builder, Failure> {
        // SAFETY: as the caller promises.
        let mut builder = PeriodicThread::builder(unsafe { text(self.name, "periodic") }?);
        builder = match (self.period_ns, self.hertz) {
            (0, 0) => return Err(Failure::invalid("no period: give period_ns or hertz")),
            (period, 0) => builder.period(span(period)),
            (0, hertz) => builder.hertz(hertz),
            _ => return Err(Failure::invalid("both period_ns and hertz: give one of them")),
        };
        builder = builder.on_overrun(match self.on_overrun {
            0 => OverrunPolicy::Skip,
            1 => OverrunPolicy::CatchUp,
            2 => OverrunPolicy::Delay,
            other => {
                let text = format!("no answer to overruns is {other}: give an HG_OVERRUN_*");
                return Err(Failure::invalid(text));
            }
        });
        builder = builder.phase(span(self.phase_ns)).policy(self.scheduling.periodic()?);
        if self.deadline_ns != 0 {
            builder = builder.deadline(span(self.deadline_ns));
        }
        if self.budget_ns != 0 {
            builder = builder.budget(span(self.budget_ns));
        }
        if self.epoch_ns != 0 {
            let epoch = i64::try_from(self.epoch_ns).unwrap_or(i64::MAX);
            builder = builder.epoch(Instant::<Monotonic>::from_nanos(epoch));
        }
        if self.cpu_count > 0 {
            is_there(self.cpus, "cpus")?;
            // SAFETY: not NULL, and the caller promises that there are so many.
            let cpus = unsafe { std::slice::from_raw_parts(self.cpus, self.cpu_count) };
            builder = builder.cpus(cpus.iter().copied());
        }
        let in_kernel = Settings::with_policy(Policy::KernelOnly);
        // SAFETY: as the caller promises.
        builder = builder.waiting(unsafe { settings_or(self.waiting, in_kernel) }?);
        if !self.stop_on.is_null() {
            // SAFETY: as the caller promises: it stays until the thread is freed.
            builder = builder.stopped_by(unsafe { interrupt_at(self.stop_on) }?);
        }
        if let Some(told) = tells(self.on_miss, user) {
            builder = builder.on_miss(told);
        }
        if let Some(told) = tells(self.on_cost_overrun, user) {
            builder = builder.on_cost_overrun(told);
        }
        Ok(builder)
    }

    fn watched(&self, builder: Builder, user: &Arc<User>) -> Result<Builder, Failure> {
        if self.on_fault.is_none() {
            return Ok(builder);
        }
        let (watch, handler) = (self.watch.settings()?, self.handler.attributes()?);
        // Shares what the body is given; what that is released by is the last of them.
        let shared = Arc::clone(user);
        // SAFETY: nothing releases this one.
        let lent = unsafe { User::new(user.data(), None) };
        let mut entry = entry(self.on_fault, lent)?;
        let entry = move |fault: &_, nothing: &mut ()| {
            let _alive = &shared;
            entry(fault, nothing)
        };
        Ok(match self.watch_budget {
            true => builder.deadline_and_budget_handler(watch, handler, entry, ()),
            false => builder.deadline_handler(watch, handler, entry, ()),
        })
    }
}

fn tells(
    call: hg_completed_fn,
    user: &Arc<User>,
) -> Option<impl FnMut(&Completed) + Send + 'static> {
    let (call, user) = (call?, Arc::clone(user));
    Some(move |job: &Completed| {
        let told = hg_completed::from(job);
        // SAFETY: the header asks that it may be called so, on the periodic thread.
        unsafe { call(&raw const told, user.data()) };
    })
}

/// Runs a body.
fn run(
    call: unsafe extern "C" fn(*mut hg_job, *mut c_void) -> bool,
    user: &User,
    mark: &Arc<()>,
    job: &mut Job<'_>,
) -> ControlFlow<()> {
    OWN.set(Arc::as_ptr(mark));
    let previous = job.previous().map(hg_completed::from);
    let mut told = hg_job {
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
    JOB.set(&raw const told);
    // SAFETY: the header asks that it may be called so, on the periodic thread.
    let goes_on = unsafe { call(&raw mut told, user.data()) };
    JOB.set(std::ptr::null());
    if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// Starts a periodic thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_periodic_start(
    settings: *const hg_periodic_settings,
    body: hg_body_fn,
    user: *mut c_void,
    release: hg_release_fn,
    periodic: *mut hg_periodic,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `user` and `release`.
        let user = Arc::new(unsafe { User::new(user, release) });
        let call = body.ok_or_else(|| Failure::null("body"))?;
        is_there(periodic, "periodic")?;
        // SAFETY: as the header says of `settings`.
        let settings = unsafe { read(settings, "settings") }?;
        // SAFETY: as the header says of what they point to.
        let builder = unsafe { settings.builder(&user) }?;
        let builder = settings.watched(builder, &user)?;
        let mark = Arc::new(());
        let own = Arc::clone(&mark);
        let thread = builder.spawn(move |job: &mut Job<'_>| run(call, &user, &own, job))?;
        let (stop, statistics, tid) = (thread.stopper(), thread.statistics(), thread.id());
        let kept = Kept { thread: Mutex::new(Some(thread)), stop, statistics, tid, mark };
        let handle = PERIODIC.insert(kept)?;
        // SAFETY: as the header says of `periodic`.
        unsafe { write(periodic, hg_periodic { handle }, "periodic") }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Asks it to stop.
#[unsafe(no_mangle)]
pub extern "C" fn hg_periodic_stop(periodic: hg_periodic) -> hg_status {
    answer(HG_PANIC, || match PERIODIC.find(periodic.handle) {
        Ok(kept) => {
            kept.stop.stop();
            HG_OK
        }
        Err(kind) => kind,
    })
}

impl Kept {
    fn take(&self) -> Result<Option<PeriodicThread>, Failure> {
        if OWN.get() == Arc::as_ptr(&self.mark) {
            let text = "a periodic thread cannot wait for its own end: let its body return false";
            return Err(Failure::new(HG_WRONG_THREAD, text));
        }
        Ok(self.thread.lock().unwrap_or_else(PoisonError::into_inner).take())
    }
}

/// Waits for its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_periodic_join(
    periodic: hg_periodic,
    ended: *mut u32,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let kept = PERIODIC.get(periodic.handle)?;
        let thread = kept.take()?;
        let thread = thread
            .ok_or_else(|| Failure::invalid("the thread was waited for before: free it now"))?;
        let (why, _) = thread.join()?;
        let why = match why {
            Ended::Stopped => 0,
            Ended::ByItself => 1,
            Ended::ByWatch => 2,
        };
        // SAFETY: as the header says of `ended`.
        unsafe { offer(ended, why) };
        Ok(())
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// What it did so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_periodic_look(
    periodic: hg_periodic,
    statistics: *mut hg_periodic_statistics,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let found = PERIODIC.get(periodic.handle)?.statistics.read();
        let told = hg_periodic_statistics {
            releases: found.releases,
            jobs: found.jobs,
            misses: found.misses,
            overruns: found.overruns,
            late: found.late,
            lost: found.lost,
            drift_ns: found.drift_ns,
            cost_overruns: found.cost_overruns,
            cpu_ns: found.cpu_ns,
            latency: (&found.latency).into(),
            response: (&found.response).into(),
        };
        // SAFETY: as the header says of `statistics`.
        unsafe { write(statistics, told, "statistics") }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// The kernel's number of it; 0 for none.
#[unsafe(no_mangle)]
pub extern "C" fn hg_periodic_id(periodic: hg_periodic) -> u32 {
    answer(0, || PERIODIC.get(periodic.handle).map_or(0, |kept| kept.tid))
}

/// Stops it, waits for its end, and frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_periodic_free(
    periodic: hg_periodic,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let kept = PERIODIC.get(periodic.handle)?;
        kept.stop.stop();
        // Dropped, it waits for its end.
        drop(kept.take()?);
        drop(kept);
        PERIODIC.remove(periodic.handle).map(drop)
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// With the job that runs in this thread.
///
/// # Errors
/// `HG_NULL`; `HG_STALE` if it is none.
///
/// # Safety
/// Called from within the body that was given `job`, if that is the job of this thread.
unsafe fn job_of<'a>(job: *const hg_job) -> Result<&'a mut Job<'static>, Failure> {
    is_there(job, "job")?;
    if JOB.get() != job {
        let text = "no such job runs in this thread: a job ends when its body returns";
        return Err(Failure::new(HG_STALE, text));
    }
    // SAFETY: the body of this very job runs, whose caller lends it to nobody else meanwhile; what is
    // behind `inner` was put there by `run` and C has no business there.
    Ok(unsafe { &mut *(*job).inner.cast::<Job<'static>>() })
}

/// How a job stands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_job_check(
    job: *const hg_job,
    standing: *mut hg_standing,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `job`.
        let found = unsafe { job_of(job) }?.check();
        let told = hg_standing {
            until_deadline_ns: found.until_deadline.nanos(),
            budget_left_ns: found.budget_left.map_or(i64::MAX, Span::nanos),
        };
        // SAFETY: as the header says of `standing`.
        unsafe { write(standing, told, "standing") }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Whether the thread is asked to stop.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_job_is_stopping(job: *const hg_job) -> bool {
    // SAFETY: as the header says of `job`.
    answer(false, || unsafe { job_of(job) }.is_ok_and(|job| job.is_stopping()))
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
        unsafe { offer(slept, hg_slept::from(found)) };
        if found.interrupted { Err(Failure::new(HG_INTERRUPTED, "")) } else { Ok(()) }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}
