//! The service on simulated time, in one thread.
//!
//! Owns: when a simulated engine looks, and what comes after what.
//! Must not: do anything with timers that the threads do not do; the same keeper, worker, owner and
//! timer work here.

use std::fmt;
use std::sync::Arc;

use hourglass_time::Span;

use super::arm::Expiry;
use super::class::{ActionClass, ClassSettings, Worker};
use super::clock::ServiceClock;
use super::dispatcher::Dispatcher;
use super::error::ServiceError;
use super::owner::Owner;
use super::service::{Classes, Core};
use super::statistics::ServiceStatistics;
use super::table::TimerTable;
use super::timer::Timer;
use crate::engine::{ClockBase, EngineTimers, SimTimes, Times};

/// A [`TimerService`](super::TimerService) whose time is simulated and passes only on request:
/// hours take milliseconds, and the same calls give the same outcome, always.
///
/// Immediate actions run in the step in which they are due, deferred ones right after, class by
/// class in the order in which the classes were made, within a class as on threads.
///
/// ```
/// use std::sync::Arc;
/// use hourglass_clock::source::SimSource;
/// use hourglass_time::Span;
/// use hourglass_timer::engine::{ClockBase, SimTimes};
/// use hourglass_timer::service::{Action, TimerSpec, Port, ServiceError, SimService};
///
/// let times = SimTimes::new(&Arc::new(SimSource::default()));
/// let mut service = SimService::new(&times);
/// let owner = service.owner("test");
/// let port = Port::new(4).expect("a descriptor is left");
/// let noon = owner.timer(ClockBase::Realtime, Action::send(&port, 12))?;
/// noon.arm(TimerSpec::at(12 * 3_600_000_000_000))?;
///
/// // The wall clock is set to one minute before noon.
/// times.set_realtime((12 * 3_600 - 60) * 1_000_000_000);
/// assert!(service.step());
/// assert_eq!(port.try_receive().unwrap().tag, 12);
/// assert_eq!(service.now_ns(ClockBase::Monotonic), 60_000_000_000);
/// # Ok::<(), ServiceError>(())
/// ```
pub struct SimService {
    core: Arc<Core>,
    table: Arc<TimerTable>,
    times: SimTimes,
    timers: EngineTimers<u32>,
    dispatcher: Dispatcher,
    workers: Vec<Worker>,
}

/// Timers that expire before what changed is looked at again, as on threads.
const BUDGET: usize = 256;

impl SimService {
    /// With one engine on these clocks. Its device is exact: it comes back when the first timer is
    /// due.
    #[must_use]
    pub fn new(times: &SimTimes) -> SimService {
        let table = Arc::new(TimerTable::new(0, ServiceClock::Sim(times.clone())));
        let classes = Classes::new();
        SimService {
            core: Arc::new(Core::new(vec![Arc::clone(&table)], Arc::clone(&classes))),
            dispatcher: Dispatcher::new(&table, &classes),
            timers: EngineTimers::new(&times.now()),
            table,
            times: times.clone(),
            workers: Vec::new(),
        }
    }

    /// A new owner of timers.
    #[must_use]
    pub fn owner(&self, name: &str) -> Owner {
        Owner::new(name, &self.core)
    }

    /// A new class of deferred actions. No thread's priority is raised here.
    ///
    /// # Errors
    /// [`ServiceError::TooManyClasses`].
    pub fn class(
        &mut self,
        name: &str,
        settings: ClassSettings,
    ) -> Result<ActionClass, ServiceError> {
        let place = self.core.classes.reserve()?;
        let class = ActionClass::new(name, settings, place.number());
        place.set(&class);
        self.workers.push(Worker::new(&class, self.core.tables()));
        Ok(class)
    }

    /// Time of a clock, ns.
    #[must_use]
    pub fn now_ns(&self, base: ClockBase) -> i64 {
        self.times.now().ns(base)
    }

    /// When the engine would look by itself, ns on [`ClockBase::Monotonic`]; `None` if nothing is armed.
    pub fn next_ns(&mut self) -> Option<u64> {
        self.dispatcher.take_changes(&mut self.timers);
        self.timers.earliest(&self.times.now())
    }

    /// Lets time pass until the next timer is due, and does what is due then; false if nothing is
    /// armed.
    pub fn step(&mut self) -> bool {
        let Some(next_ns) = self.next_ns() else { return false };
        self.pass_until(next_ns);
        self.poll();
        true
    }

    /// Lets `length` pass, and does all that is due until then, each when it is due.
    pub fn run_for(&mut self, length: Span) {
        let end_ns = self.times.monotonic_ns().saturating_add(length.nanos_or_zero());
        self.poll();
        while self.next_ns().is_some_and(|next_ns| next_ns <= end_ns) {
            self.step();
        }
        self.pass_until(end_ns);
    }

    /// Does what is due now, as an engine that looks late would. If actions let time pass, what
    /// comes due by that is left for the next look.
    pub fn poll(&mut self) {
        let now = self.times.now();
        loop {
            self.dispatcher.take_changes(&mut self.timers);
            let dispatcher = &mut self.dispatcher;
            let expired = self
                .timers
                .expire(&now, BUDGET, |timers, fired| dispatcher.expired(timers, &fired));
            let mut ran = false;
            for worker in &mut self.workers {
                while worker.step() {
                    ran = true;
                }
            }
            if expired < BUDGET && !ran && !self.table.any_changed() {
                return;
            }
        }
    }

    /// Sleeps on a timer: time passes until the sleep is over.
    ///
    /// # Errors
    /// As [`Timer::sleep_until`]. A sleep that nothing ends any more is cancelled.
    pub fn sleep(&mut self, timer: &Timer, expiry: Expiry) -> Result<(), ServiceError> {
        timer.begin_sleep(expiry)?;
        loop {
            if let Some(end) = timer.end_sleep() {
                return end;
            }
            if !self.step() {
                timer.cancel(super::CancelScope::All)?;
            }
        }
    }

    /// What the engine did so far.
    #[must_use]
    pub fn statistics(&self) -> ServiceStatistics {
        self.table.counters.read()
    }

    /// Number of live timers.
    #[must_use]
    pub fn timers(&self) -> usize {
        self.table.timers()
    }

    fn pass_until(&self, ns: u64) {
        let length = ns.saturating_sub(self.times.monotonic_ns());
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        self.times.source().advance(Span::from_nanos(length));
    }
}

impl fmt::Debug for SimService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimService")
            .field("now", &self.times.now())
            .field("timers", &self.timers())
            .finish_non_exhaustive()
    }
}
