//! Periodic threads: their settings, start, counts and end.

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, PoisonError};

use hourglass_time::{Instant, Monotonic, Span};
use hourglass_timer::fault::Fault;
use hourglass_timer::periodic::{
    Builder, Distribution, LoopEnd, OverrunPolicy, PeriodicThread, RunningJob, Stop, TaskStatistics,
};
use hourglass_timer::sleep::{SleepPolicy, SleeperSettings};

use crate::error::{
    CapiError, HG_OK, HG_PANIC, HG_WRONG_THREAD, answer, guard, hg_error, hg_status,
};
use crate::fault::{call_handler, hg_fault_fn, hg_handler_settings, hg_watch_settings};
use crate::interrupt::{hg_interrupt, interrupt_at};
use crate::job::{CallbackData, Mark, hg_body_fn, hg_completed_fn, run, tells};
use crate::pointers::hg_release_fn;
use crate::pointers::{User, give, is_there, nanoseconds, offer, read, text, unused};
use crate::scheduling::hg_scheduling;
use crate::sleep::{hg_sleep_settings, settings_or};
use crate::table::{HandleTable, handles};

handles! {
    hg_periodic, "A periodic thread.";
}

/// Settings of a periodic thread. All but the period may be zero.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hg_periodic_settings {
    /// Its name; NULL for "periodic".
    pub name: *const c_char,
    /// Time between releases, ns; 0 with `hertz`.
    pub period_ns: u64,
    /// Releases a second; 0 with `period_ns`.
    pub hertz: u32,
    /// `HG_OVERRUN_*`.
    pub on_overrun: u32,
    /// Deadline of a job after its release, ns; 0 for the period.
    pub deadline_ns: u64,
    /// Time from the epoch to the first release, ns.
    pub phase_ns: u64,
    /// CPU time of a job, ns; 0 without a budget.
    pub budget_ns: u64,
    /// Start of the grid of releases, ns; 0 for the start of the thread.
    pub epoch_ns: u64,
    /// Policy of the thread.
    pub scheduling: hg_scheduling,
    /// CPUs that it may use.
    pub cpus: *const u32,
    /// Number of `cpus`; 0 for the CPUs of the caller.
    pub cpu_count: usize,
    /// How the thread waits; NULL for in the kernel only.
    pub waiting: *const hg_sleep_settings,
    /// Interrupt that also stops the thread; NULL without one.
    pub stop_on: *mut hg_interrupt,
    /// Called after a job that missed its deadline.
    pub on_miss: hg_completed_fn,
    /// Called after a job that used more than its budget.
    pub on_cost_overrun: hg_completed_fn,
    /// Called when a deadline is passed, on a thread of its own.
    pub on_fault: hg_fault_fn,
    /// How the thread is watched, with `on_fault`.
    pub watch: hg_watch_settings,
    /// How the thread of `on_fault` runs.
    pub handler: hg_handler_settings,
    /// Whether `on_fault` is also called for a budget overrun.
    pub watch_budget: bool,
    /// Reserved: 0.
    pub reserved: [u8; 7],
}

/// Times of jobs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_distribution {
    /// Number of times.
    pub count: u64,
    /// Minimum, ns.
    pub min_ns: u64,
    /// Mean, ns.
    pub mean_ns: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// 99.9th percentile, ns.
    pub p999_ns: u64,
    /// Maximum, ns.
    pub max_ns: u64,
}

/// Counts of a periodic thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_periodic_statistics {
    /// Jobs begun.
    pub releases: u64,
    /// Jobs complete.
    pub jobs: u64,
    /// Jobs that completed after their deadline.
    pub misses: u64,
    /// Jobs that completed after the next release.
    pub overruns: u64,
    /// Jobs that started late since the job before overran.
    pub late: u64,
    /// Periods without a job.
    pub lost: u64,
    /// Shift of the grid of releases, ns.
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

/// A periodic thread and its counts, behind a handle.
struct PeriodicHandle {
    thread: Mutex<Option<PeriodicThread>>,
    stop: Stop,
    statistics: TaskStatistics,
    tid: u32,
    /// Recognises calls from the thread's own code.
    mark: Mark,
}

static PERIODIC: HandleTable<PeriodicHandle> = HandleTable::new(11, "periodic thread");

/// Maximum number of CPUs: that of Linux.
const MOST_CPUS: usize = 8192;

fn span(ns: u64, name: &str) -> Result<Span, CapiError> {
    nanoseconds(ns, name).map(Span::from_nanos)
}

impl hg_periodic_settings {
    /// The builder that they make, but for `on_fault`.
    ///
    /// # Safety
    /// As the header says of what they point to.
    unsafe fn builder(&self, user: &CallbackData) -> Result<Builder, CapiError> {
        unused(self.reserved, "hg_periodic_settings")?;
        // SAFETY: as the caller promises.
        let mut builder = PeriodicThread::builder(unsafe { text(self.name, "periodic") }?);
        builder = match (self.period_ns, self.hertz) {
            (0, 0) => return Err(CapiError::invalid("no period: give period_ns or hertz")),
            (period, 0) => builder.period(span(period, "period_ns")?),
            (0, hertz) => builder.hertz(hertz),
            _ => return Err(CapiError::invalid("both period_ns and hertz: give one of them")),
        };
        builder = builder.on_overrun(match self.on_overrun {
            0 => OverrunPolicy::Skip,
            1 => OverrunPolicy::CatchUp,
            2 => OverrunPolicy::Delay,
            other => {
                let text =
                    format!("on_overrun {other} is no answer to overruns: give an HG_OVERRUN_*");
                return Err(CapiError::invalid(text));
            }
        });
        builder =
            builder.phase(span(self.phase_ns, "phase_ns")?).policy(self.scheduling.periodic()?);
        if self.deadline_ns != 0 {
            builder = builder.deadline(span(self.deadline_ns, "deadline_ns")?);
        }
        if self.budget_ns != 0 {
            builder = builder.budget(span(self.budget_ns, "budget_ns")?);
        }
        if self.epoch_ns != 0 {
            let epoch = nanoseconds(self.epoch_ns, "epoch_ns")?;
            builder = builder.epoch(Instant::<Monotonic>::from_nanos(epoch));
        }
        if self.cpu_count > 0 {
            is_there(self.cpus, "cpus")?;
            if self.cpu_count > MOST_CPUS {
                let text = format!("{} CPUs: give at most {MOST_CPUS}", self.cpu_count);
                return Err(CapiError::invalid(text));
            }
            // SAFETY: not NULL, and the caller promises `cpu_count` elements.
            let cpus = unsafe { std::slice::from_raw_parts(self.cpus, self.cpu_count) };
            builder = builder.cpus(cpus.iter().copied());
        }
        let in_kernel = SleeperSettings::with_policy(SleepPolicy::KernelOnly);
        // SAFETY: as the caller promises.
        builder = builder.waiting(unsafe { settings_or(self.waiting, in_kernel) }?);
        if !self.stop_on.is_null() {
            // SAFETY: as the caller promises: it stays until the thread is freed.
            builder = builder.stopped_by(unsafe { interrupt_at(self.stop_on) }?);
        }
        if let Some(notice) = tells(self.on_miss, user) {
            builder = builder.on_miss(notice);
        }
        if let Some(notice) = tells(self.on_cost_overrun, user) {
            builder = builder.on_cost_overrun(notice);
        }
        Ok(builder)
    }

    fn watched(&self, builder: Builder, user: &CallbackData) -> Result<Builder, CapiError> {
        let (watch, handler) = (self.watch.settings()?, self.handler.attributes()?);
        let Some(call) = self.on_fault else { return Ok(builder) };
        let user = user.clone();
        // Of the handler's thread, for which the periodic one waits: its code is that one's, too.
        let entry =
            move |fault: &Fault, (): &mut ()| user.with(|user| call_handler(call, fault, user));
        Ok(match self.watch_budget {
            true => builder.deadline_and_budget_handler(watch, handler, entry, ()),
            false => builder.deadline_handler(watch, handler, entry, ()),
        })
    }
}

/// Adds the first function of the thread.
fn hooked(builder: Builder, on_start: hg_start_fn, user: &CallbackData) -> Builder {
    let Some(call) = on_start else { return builder };
    let user = user.clone();
    builder.on_start(move || {
        // SAFETY: the header asks that it may be called so, on the periodic thread.
        let goes_on = user.with(|user| unsafe { call(user) });
        if goes_on { Ok(()) } else { Err("it said that it failed") }
    })
}

/// First function of a periodic thread; returns whether the thread goes on.
pub type hg_start_fn = Option<unsafe extern "C" fn(*mut c_void) -> bool>;

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
    // SAFETY: as the header says.
    unsafe { launch(settings, None, body, user, release, periodic, error) }
}

/// Starts a periodic thread that first does something else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_periodic_start_with(
    settings: *const hg_periodic_settings,
    on_start: hg_start_fn,
    body: hg_body_fn,
    user: *mut c_void,
    release: hg_release_fn,
    periodic: *mut hg_periodic,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says.
    unsafe { launch(settings, on_start, body, user, release, periodic, error) }
}

/// # Safety
/// As the header says of the two functions before.
unsafe fn launch(
    settings: *const hg_periodic_settings,
    on_start: hg_start_fn,
    body: hg_body_fn,
    user: *mut c_void,
    release: hg_release_fn,
    periodic: *mut hg_periodic,
    error: *mut hg_error,
) -> hg_status {
    // SAFETY: as the header says of `user` and `release`; released whatever fails from here on.
    let user = unsafe { User::new(user, release) };
    let work = move || {
        let mark = Mark::default();
        let user = CallbackData::new(user, &mark);
        let call = body.ok_or_else(|| CapiError::null("body"))?;
        // SAFETY: as the header says of `settings`.
        let settings = unsafe { read(settings, "settings") }?;
        // SAFETY: as the header says of what they point to.
        let builder = unsafe { settings.builder(&user) }?;
        let builder = hooked(settings.watched(builder, &user)?, on_start, &user);
        let thread = builder.spawn(move |job: &mut RunningJob<'_>| run(call, &user, job))?;
        let (stop, statistics, tid) = (thread.stopper(), thread.statistics(), thread.id());
        let kept = PeriodicHandle { thread: Mutex::new(Some(thread)), stop, statistics, tid, mark };
        Ok(hg_periodic { handle: PERIODIC.insert(kept)? })
    };
    // SAFETY: as the header says of `periodic` and `error`.
    unsafe { give(periodic, "periodic", error, work) }
}

/// Asks the thread to stop.
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

impl PeriodicHandle {
    /// The thread, to wait for its end; once.
    fn take(&self) -> Option<PeriodicThread> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Checks that the caller is not this thread's own code, which would wait for its own end for ever.
    fn is_not_here(&self) -> Result<(), CapiError> {
        if !self.mark.is_here() {
            return Ok(());
        }
        let text = "a periodic thread cannot wait for its own end, nor can its call-backs: let its body \
                    return false, or stop it and wait in another thread";
        Err(CapiError::new(HG_WRONG_THREAD, text))
    }
}

/// Waits for the end of the thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_periodic_join(
    periodic: hg_periodic,
    ended: *mut u32,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let kept = PERIODIC.get(periodic.handle)?;
        kept.is_not_here()?;
        let thread = kept
            .take()
            .ok_or_else(|| CapiError::invalid("the thread was waited for before: free it now"))?;
        let (why, _) = thread.join()?;
        let why = match why {
            LoopEnd::Stopped => 0,
            LoopEnd::ByItself => 1,
            LoopEnd::ByWatch => 2,
        };
        // SAFETY: as the header says of `ended`.
        unsafe { offer(ended, why) };
        Ok(())
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Reads the counts of a periodic thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_periodic_look(
    periodic: hg_periodic,
    statistics: *mut hg_periodic_statistics,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let found = PERIODIC.get(periodic.handle)?.statistics.read();
        let totals = hg_periodic_statistics {
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
        Ok(totals)
    };
    // SAFETY: as the header says of `statistics` and `error`.
    unsafe { give(statistics, "statistics", error, work) }
}

/// The kernel's number of the thread; 0 without a thread.
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
        kept.is_not_here()?;
        kept.stop.stop();
        // Dropped, it waits for its end.
        drop(kept.take());
        drop(kept);
        PERIODIC.remove(periodic.handle).map(drop)
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}
