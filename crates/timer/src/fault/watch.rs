//! A thread that watches its own deadlines.
//!
//! Owns: the thread's side: settings, deadlines, jobs, safepoints, the handle for others.
//! Must not: decide what becomes of a thread that is late.

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::posix_timer::realtime_signals;
use hourglass_sys::stop::{DisarmOutcome, NEVER, SeatError, StopGate, StopHandle, WatchedThread};
use hourglass_time::Span;

use super::error::{FaultError, ThreadTerminated};
use super::jobs::{Deadline, Deadlines, EndedJob, Periodic, Side};
use super::verdict::FaultAction;

/// The default signal, counted from the first real-time signal that programs may use.
const DEFAULT_SIGNAL: i32 = 4;

/// How a thread is to be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchSettings {
    /// What is done to the thread when it passes a deadline.
    pub strength: FaultAction,
    /// How long it stands at most before it goes on without an answer; without a limit by default.
    /// A way out of a handler that waits for what the suspended thread holds.
    pub longest_stop: Option<Span>,
    /// The signal of its timer; the fifth real-time signal if not given. All threads may use the same.
    pub signal: Option<i32>,
}

impl WatchSettings {
    /// With this strength.
    #[must_use]
    pub const fn with_strength(strength: FaultAction) -> WatchSettings {
        WatchSettings { strength, longest_stop: None, signal: None }
    }
}

impl Default for WatchSettings {
    fn default() -> Self {
        WatchSettings::with_strength(FaultAction::Notify)
    }
}

/// The calling thread's deadlines. One a thread; dropped in it, and not later than its end.
///
/// It holds a POSIX timer (one queued signal of `RLIMIT_SIGPENDING`) and the signal, which stays the
/// process' for this purpose. See the module for an example.
///
/// Do not leak it (`std::mem::forget`): a handler takes a leaked thread for alive, also when the
/// thread has ended and the kernel has given its number to another one, which the handler would
/// then demote.
#[derive(Debug)]
pub struct DeadlineWatch {
    deadlines: Deadlines<WatchedThread>,
    settings: WatchSettings,
}

impl Side for WatchedThread {
    fn now_ns(&self) -> u64 {
        now()
    }

    fn gate(&self) -> &StopGate {
        self.gate()
    }

    fn arm(&self, at_ns: u64) -> bool {
        self.arm(at_ns)
    }

    fn disarm(&self) -> (DisarmOutcome, u64) {
        self.disarm()
    }
}

impl DeadlineWatch {
    /// Watches the calling thread.
    ///
    /// # Errors
    /// [`FaultError::Watched`], [`FaultError::SignalsExhausted`], [`FaultError::SignalTaken`],
    /// [`FaultError::NotRealTime`].
    pub fn new(settings: WatchSettings) -> Result<DeadlineWatch, FaultError> {
        let (first, last) = realtime_signals();
        let signal = settings.signal.unwrap_or(first + DEFAULT_SIGNAL);
        if !(first..=last).contains(&signal) {
            return Err(FaultError::NotRealTime { asked: signal, first, last });
        }
        let deadlines = Deadlines::new(WatchedThread::take(signal)?);
        let watch = DeadlineWatch { deadlines, settings };
        watch.set_up();
        Ok(watch)
    }

    /// Watches on in another way, from the next fault on. The signal stays.
    pub fn set(&mut self, settings: WatchSettings) {
        self.settings = WatchSettings { signal: self.settings.signal, ..settings };
        self.set_up();
    }

    fn watched(&self) -> &WatchedThread {
        &self.deadlines.side
    }

    fn set_up(&self) {
        let WatchSettings { strength, longest_stop, .. } = self.settings;
        let longest_ns = longest_stop.map_or(NEVER, Span::nanos_or_zero);
        self.watched().gate().set_longest_stop_ns(longest_ns);
        self.watched().gate().set_strength(strength.done());
    }

    /// For installing a handler for this thread.
    #[must_use]
    pub fn thread(&self) -> WatchedHandle {
        WatchedHandle { stops: self.watched().stops() }
    }

    /// Takes a deadline, instead of the one in force. When it is passed there is a fault; if it is past
    /// already, at once, which is before this returns.
    ///
    /// # Errors
    /// [`FaultError::Ended`] before and after; [`FaultError::OutOfRange`], [`FaultError::Forked`].
    pub fn arm(&mut self, deadline: Deadline) -> Result<(), FaultError> {
        self.deadlines.arm(deadline)
    }

    /// Gives the deadline up; whether it was still ahead. One that was passed just now is a fault.
    ///
    /// # Errors
    /// [`ThreadTerminated`].
    pub fn disarm(&mut self) -> Result<bool, ThreadTerminated> {
        self.deadlines.disarm()
    }

    /// Raises a fault when the thread has used this budget of CPU time from now on; it replaces an
    /// earlier budget. That is the cost overrun of a job that runs ([`super::Fault::is_over_budget`]).
    /// The deadline stays. The first call makes a second POSIX timer (`RLIMIT_SIGPENDING`).
    ///
    /// Never early, and late by up to one tick of the kernel (1 to 10 ms), at which it looks at CPU
    /// clocks. For what is to be exact a deadline is the better bound.
    ///
    /// # Errors
    /// [`FaultError::Budget`] for one of nothing or less, [`FaultError::SignalsExhausted`],
    /// [`FaultError::Forked`].
    pub fn arm_budget(&mut self, budget: Span) -> Result<(), FaultError> {
        if !budget.is_positive() {
            return Err(FaultError::Budget(budget));
        }
        if self.is_inherited() {
            return Err(FaultError::Forked);
        }
        let armed = self.deadlines.side.arm_budget(budget.nanos_or_zero());
        armed.map_err(|error| SeatError::Os(error).into())
    }

    /// Gives the budget up.
    pub fn disarm_budget(&mut self) {
        self.watched().disarm_budget();
    }

    /// Begins a single job with a deadline, an aperiodic one.
    ///
    /// # Errors
    /// As [`DeadlineWatch::arm`].
    pub fn begin_job(&mut self, deadline: Deadline) -> Result<(), FaultError> {
        self.deadlines.begin_job(deadline)
    }

    /// Begins the first of a series of jobs; [`DeadlineWatch::end_job`] goes on to the next.
    ///
    /// # Errors
    /// As [`DeadlineWatch::arm`]; [`FaultError::Period`].
    pub fn begin_jobs(&mut self, series: Periodic) -> Result<(), FaultError> {
        self.deadlines.begin_jobs(series)
    }

    /// Ends the job. If its deadline was passed just now, that is a fault first. In a series the next
    /// deadline is in force from here on; if that is past as well, it is a fault at once.
    /// `None` if no job was begun; then a deadline that is in force stays so.
    ///
    /// # Errors
    /// As [`DeadlineWatch::arm`].
    pub fn end_job(&mut self) -> Result<Option<EndedJob>, FaultError> {
        self.deadlines.end_job()
    }

    /// Where this thread may be ended. [`super::safepoint`] is the same without the watch at hand.
    ///
    /// # Errors
    /// [`ThreadTerminated`] from a handler's verdict on.
    pub fn safepoint(&self) -> Result<(), ThreadTerminated> {
        self.deadlines.safepoint()
    }

    /// The deadline in force, ns.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        self.watched().gate().deadline_ns()
    }

    /// Deadlines passed so far.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.watched().gate().faults()
    }

    /// How many of those reached no handler.
    #[must_use]
    pub fn undelivered(&self) -> u64 {
        self.watched().gate().undelivered()
    }

    /// How often this thread went on without an answer, after [`WatchSettings::longest_stop`].
    #[must_use]
    pub fn overstayed(&self) -> u64 {
        self.watched().gate().overstayed()
    }

    /// Whether this is a child made by `fork`, where nothing can be armed.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.watched().is_inherited()
    }
}

/// A watched thread, as others see it: what [`super::deadline_handler`] is installed for.
#[derive(Clone, Debug)]
pub struct WatchedHandle {
    pub(super) stops: StopHandle,
}

impl WatchedHandle {
    /// The kernel's number of the thread.
    #[must_use]
    pub fn tid(&self) -> u32 {
        self.stops.tid()
    }

    /// The time on the clock of deadlines, ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        now()
    }

    /// Raises a fault of the thread from another one, for a deadline that is tracked elsewhere, ns:
    /// as if the thread had passed a deadline of its own, which stays. Returns whether the thread
    /// is still watched; in a child made by `fork` it is not.
    ///
    /// The thread runs on until the signal reaches it, some 40 us if it is on another CPU; what is
    /// to be stopped at once arms its own [`DeadlineWatch`]. Calls that it has not seen yet are one. Takes
    /// a system call, and a lock that the thread's handler holds for as long as one.
    pub fn fault(&self, deadline_ns: u64) -> bool {
        if self.stops.is_inherited() || self.is_gone() {
            return false;
        }
        self.stops.gate().call(deadline_ns);
        self.stops.nudge()
    }

    /// Deadlines that it has passed.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.stops.gate().faults()
    }

    /// How many of those reached no handler.
    #[must_use]
    pub fn undelivered(&self) -> u64 {
        self.stops.gate().undelivered()
    }

    /// Whether it has a deadline handler, or one whose thread has not ended yet.
    #[must_use]
    pub fn is_handled(&self) -> bool {
        self.stops.gate().is_occupied()
    }

    /// Whether its watch was dropped.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.stops.gate().is_gone()
    }
}

pub(super) fn now() -> u64 {
    now_ns(ClockId::Monotonic)
}
