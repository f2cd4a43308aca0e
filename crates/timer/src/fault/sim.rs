//! A thread with deadlines and its handler on virtual time.
//!
//! Owns: a world in which hours pass in milliseconds, for the same gate, jobs and verdicts as on real
//! threads. Must not: know more of the gate than its two sides do.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, Ordering};

use hourglass_sys::stop::{
    DisarmOutcome, FaultMessage, FaultResponse, GatePlatform, LateThread, NEVER, OVERDUE_NS,
    StopGate,
};
use hourglass_time::Span;

use super::error::{FaultError, ThreadTerminated};
use super::jobs::{Deadline, Deadlines, EndedJob, Periodic, Side};
use super::verdict::{Fault, FaultAction, FaultVerdict};

/// How long things take, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// From a deadline to the signal.
    pub signal_ns: u64,
    /// From a message to the handler that runs.
    pub handler_ns: u64,
    /// How long its entry takes.
    pub entry_ns: u64,
    /// From the answer to the thread that runs.
    pub resume_ns: u64,
}

#[derive(Clone, Copy, Debug)]
enum HandlerStep {
    Nothing,
    Look { at_ns: u64 },
    Answer { at_ns: u64, mail: FaultMessage, verdict: FaultVerdict },
}

impl HandlerStep {
    fn at_ns(self) -> Option<u64> {
        match self {
            HandlerStep::Nothing => None,
            HandlerStep::Look { at_ns } | HandlerStep::Answer { at_ns, .. } => Some(at_ns),
        }
    }
}

#[derive(Debug)]
struct FaultSimState<F> {
    gate: StopGate,
    depth: AtomicU32,
    now_ns: Cell<u64>,
    timer_ns: Cell<Option<u64>>,
    next: Cell<HandlerStep>,
    entry: RefCell<F>,
    delays: Delays,
    demoted: Cell<bool>,
    hung: Cell<bool>,
}

impl<F: FnMut(&Fault) -> FaultVerdict> FaultSimState<F> {
    fn own(&self) -> LateThread<'_, FaultSimState<F>> {
        LateThread { gate: &self.gate, depth: &self.depth, machine: self }
    }

    /// Lets the handler do what it does next. Its time has come.
    fn handle(&self) {
        let at_ns = self.now_ns.get();
        match self.next.replace(HandlerStep::Nothing) {
            look @ (HandlerStep::Nothing | HandlerStep::Look { .. }) => {
                let mail_found = match look {
                    HandlerStep::Look { .. } => self.gate.take(self),
                    _ => self.gate.take_overdue(|| self.is_within(), self),
                };
                let Some(mail) = mail_found else { return };
                if mail.strength == FaultAction::Demote.done() {
                    self.demoted.set(true);
                    self.gate.release(mail.number, self);
                }
                let fault = Fault::new(&mail, 1, self.gate.undelivered(), at_ns);
                let verdict = (self.entry.borrow_mut())(&fault);
                let at_ns = at_ns.saturating_add(self.delays.entry_ns);
                self.next.set(HandlerStep::Answer { at_ns, mail, verdict });
            }
            HandlerStep::Answer { mail, verdict, .. } => {
                if verdict != FaultVerdict::KeepDemoted {
                    self.demoted.set(false);
                }
                let deadline = verdict.change().deadline;
                let deadline_ns = deadline.and_then(|deadline| deadline.at_ns(at_ns).ok());
                let answer = FaultResponse { deadline_ns, end: verdict == FaultVerdict::End };
                if self.gate.answer(&mail, answer, self) {
                    self.timer_ns.set(Some(at_ns));
                }
                self.gate.finish();
                self.next.set(HandlerStep::Look { at_ns });
            }
        }
    }

    fn events(&self) -> (u64, u64) {
        let signal_ns = self.timer_ns.get().map(|at| at.saturating_add(self.delays.signal_ns));
        let handler_ns = self.next.get().at_ns().unwrap_or_else(|| self.overdue_ns());
        (signal_ns.unwrap_or(NEVER), handler_ns)
    }

    /// When the handler looks by itself.
    fn overdue_ns(&self) -> u64 {
        let looks = match FaultAction::from(self.gate.strength()) {
            FaultAction::Notify => true,
            FaultAction::Demote => !self.is_within(),
            FaultAction::Suspend => false,
        };
        let deadline_ns = self.gate.deadline_ns().filter(|_| looks);
        deadline_ns.map_or(NEVER, |at_ns| at_ns.saturating_add(OVERDUE_NS))
    }

    fn is_within(&self) -> bool {
        self.depth.load(Ordering::Relaxed) != 0
    }

    /// The thread works or sleeps for this length; the time that it stands comes on top.
    fn pass(&self, length_ns: u64) {
        let mut left_ns = length_ns;
        loop {
            let (signal_ns, handler_ns) = self.events();
            let now_ns = self.now_ns.get();
            let next_ns = signal_ns.min(handler_ns).max(now_ns);
            if next_ns - now_ns > left_ns {
                self.now_ns.set(now_ns.saturating_add(left_ns));
                return;
            }
            left_ns -= next_ns - now_ns;
            self.now_ns.set(next_ns);
            if handler_ns <= signal_ns {
                self.handle();
            } else {
                self.timer_ns.set(None);
                self.own().expired();
            }
        }
    }
}

impl<F: FnMut(&Fault) -> FaultVerdict> GatePlatform for FaultSimState<F> {
    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    fn set_timer(&self, at_ns: u64) -> bool {
        self.timer_ns.set(Some(at_ns));
        true
    }

    fn stop_timer(&self) {
        self.timer_ns.set(None);
    }

    /// The thread stands: only the handler goes on.
    fn wait(&self, _word: &AtomicU32, _expected: u32, until_ns: u64) {
        let at_ns = self.events().1;
        if at_ns > until_ns || at_ns == NEVER {
            self.now_ns.set(self.now_ns.get().max(until_ns.min(NEVER - 1)));
            if until_ns == NEVER {
                // No handler will release the thread: record that, and release it.
                self.hung.set(true);
                self.gate.close(self);
            }
            return;
        }
        self.now_ns.set(self.now_ns.get().max(at_ns));
        let answers = matches!(self.next.get(), HandlerStep::Answer { .. });
        self.handle();
        if answers {
            self.now_ns.set(self.now_ns.get().saturating_add(self.delays.resume_ns));
        }
    }

    fn wake(&self, _word: &AtomicU32) {
        if matches!(self.next.get(), HandlerStep::Nothing) {
            let at_ns = self.now_ns.get().saturating_add(self.delays.handler_ns);
            self.next.set(HandlerStep::Look { at_ns });
        }
    }

    fn is_child(&self) -> bool {
        false
    }
}

impl<F: FnMut(&Fault) -> FaultVerdict> Side for FaultSimState<F> {
    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    fn gate(&self) -> &StopGate {
        &self.gate
    }

    fn arm(&self, at_ns: u64) -> bool {
        self.own().arm(at_ns)
    }

    fn disarm(&self) -> (DisarmOutcome, u64) {
        self.own().disarm()
    }
}

/// A thread on virtual time, watched as [`super::DeadlineWatch`] does it, with a handler of its own.
///
/// ```
/// use hourglass_time::Span;
/// use hourglass_timer::fault::sim::{Delays, SimThread};
/// use hourglass_timer::fault::{Deadline, FaultAction, FaultVerdict};
///
/// let delays = Delays { entry_ns: 5_000, ..Delays::default() };
/// let mut thread = SimThread::new(FaultAction::Suspend, delays, |_| FaultVerdict::Resume);
/// thread.begin_job(Deadline::In(Span::from_millis(1)))?;
/// thread.work(Span::from_millis(3));
/// let ending = thread.end_job()?.unwrap();
/// assert!(ending.has_missed() && thread.faults() == 1);
/// assert_eq!(thread.now_ns(), 3_005_000);
/// # Ok::<(), hourglass_timer::fault::FaultError>(())
/// ```
#[derive(Debug)]
pub struct SimThread<F> {
    deadlines: Deadlines<FaultSimState<F>>,
}

impl<F: FnMut(&Fault) -> FaultVerdict> SimThread<F> {
    /// At time 0, with nothing armed.
    pub fn new(strength: FaultAction, delays: Delays, entry: F) -> SimThread<F> {
        let world = FaultSimState {
            gate: StopGate::new(),
            depth: AtomicU32::new(0),
            now_ns: Cell::new(0),
            timer_ns: Cell::new(None),
            next: Cell::new(HandlerStep::Nothing),
            entry: RefCell::new(entry),
            delays,
            demoted: Cell::new(false),
            hung: Cell::new(false),
        };
        world.gate.set_strength(strength.done());
        world.gate.open();
        SimThread { deadlines: Deadlines::new(world) }
    }

    fn world(&self) -> &FaultSimState<F> {
        &self.deadlines.side
    }

    /// What time it is, ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.world().now_ns.get()
    }

    /// Works or sleeps for this length; the time that it stands comes on top.
    pub fn work(&mut self, length: Span) {
        self.world().pass(length.nanos_or_zero());
    }

    /// As [`super::defer`].
    pub fn defer<R>(&mut self, work: impl FnOnce(&mut SimThread<F>) -> R) -> R {
        self.world().own().enter();
        let done = work(self);
        self.world().own().leave();
        done
    }

    /// As [`super::DeadlineWatch::arm`].
    pub fn arm(&mut self, deadline: Deadline) -> Result<(), FaultError> {
        self.deadlines.arm(deadline)
    }

    /// As [`super::DeadlineWatch::disarm`].
    pub fn disarm(&mut self) -> Result<bool, ThreadTerminated> {
        self.deadlines.disarm()
    }

    /// As [`super::DeadlineWatch::begin_job`].
    pub fn begin_job(&mut self, deadline: Deadline) -> Result<(), FaultError> {
        self.deadlines.begin_job(deadline)
    }

    /// As [`super::DeadlineWatch::begin_jobs`].
    pub fn begin_jobs(&mut self, series: Periodic) -> Result<(), FaultError> {
        self.deadlines.begin_jobs(series)
    }

    /// As [`super::DeadlineWatch::end_job`].
    pub fn end_job(&mut self) -> Result<Option<EndedJob>, FaultError> {
        self.deadlines.end_job()
    }

    /// As [`super::DeadlineWatch::safepoint`].
    pub fn safepoint(&self) -> Result<(), ThreadTerminated> {
        self.deadlines.safepoint()
    }

    /// The deadline in force, ns.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        self.world().gate.deadline_ns()
    }

    /// Deadlines passed so far.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.world().gate.faults()
    }

    /// How many of those did not reach the handler.
    #[must_use]
    pub fn undelivered(&self) -> u64 {
        self.world().gate.undelivered()
    }

    /// Whether it is demoted.
    #[must_use]
    pub fn is_demoted(&self) -> bool {
        self.world().demoted.get()
    }

    /// Whether the thread ever stood without a handler to release it, which must not happen.
    #[must_use]
    pub fn has_hung(&self) -> bool {
        self.world().hung.get()
    }
}
