//! Timers on several bases over one clock event device.
//!
//! Owns: when the device is programmed for what, which device it is, and how precise it may be.
//! Must not: start threads (its times may), take a lock or allocate but when devices come and go.

use std::fmt;
use std::sync::Arc;

#[cfg(target_os = "linux")]
use super::OsTimes;
use super::binding::{DeviceBinding, DeviceChange, KICKED, add};
use super::expired_timer::TimerStore;
use super::poll_history::PollHistory;
use super::statistics::LongCallback;
use super::{
    Cause, ClockBase, ClockReadings, EngineConfig, EngineError, EngineStatistics, EngineTimers,
    ExpiredTimer, NextWake, SimTimes, Times,
};
#[cfg(target_os = "linux")]
use crate::event::native::{SleepEvent, TimerFdEvent};
use crate::event::{
    self, DevicePlan, DeviceWaitEnd, EventDevice, HighRes, InvalidDevice, Kick, Period, Registry,
    Resolution, Service, ServiceDevice, ServiceWait, SimEvent, SimEventConfig, ValidationReport,
};
#[cfg(target_os = "linux")]
use crate::event::{SourcePlan, validate_source};

/// Timers of one thread, and the device that wakes it.
///
/// One thread arms, waits and expires; others hand it what they want by means of their own, and
/// kick it ([`Engine::kick`], [`Engine::next_wake`]). No locks, and no allocation while arming
/// within the room reserved, waiting and expiring.
///
/// **Device.** The best that the [`Registry`] has for this engine, or else the system's ticking
/// one. It is programmed when the engine waits, and only if the first of all bases and services
/// changed. With a new, better device, or when its own is removed or fails, the engine changes over
/// in its next wait, which then returns [`Kicked`](event::DeviceWaitEnd::Kicked).
///
/// **Resolution.** By [`HighRes`]: with a validated device of its own and a validated clock source
/// each expiry is programmed; otherwise the engine is bound to its tick: timers expire in looks at
/// tick boundaries only, late by up to a tick. It changes over while it runs, with timers armed.
/// Ticks at which nothing is due are left out, so that an idle engine is not woken at all.
///
/// ```
/// use std::sync::Arc;
/// use hourglass_clock::source::SimSource;
/// use hourglass_timer::engine::{ClockBase, Engine, EngineConfig, EngineError, SimTimes};
/// use hourglass_timer::event::SimEventConfig;
///
/// // Virtual time: an hour passes at once.
/// let time = Arc::new(SimSource::default());
/// let times = SimTimes::new(&time);
/// let mut engine = Engine::simulated(EngineConfig::DEFAULT, SimEventConfig::exact(), &times)?;
/// let bell = engine.timers().create(ClockBase::Monotonic, "bell")?;
/// engine.timers().arm(bell, 3_600_000_000_000, 0)?;
/// engine.wait(None)?;
/// engine.expire(100, |timers, fired| {
///     assert_eq!(timers.payload(fired.id), Ok(&"bell"));
///     assert_eq!(fired.now_ns, 3_600_000_000_000);
/// });
/// assert_eq!(engine.statistics().wakes, 1);
/// # Ok::<(), EngineError>(())
/// ```
pub struct Engine<T> {
    timers: EngineTimers<T>,
    times: Box<dyn Times>,
    settings: EngineConfig,
    binding: DeviceBinding,
    next_wake: NextWake,
    /// Whether the clocks are watched for being set.
    watched: bool,
    /// Device time from which on that is tried again.
    watch_again_ns: u64,
    planned: Option<ProgrammedExpiry>,
    looks: PollHistory,
    statistics: EngineStatistics,
    last_long: LongCallback,
}

/// What the device is programmed for, as far as timers go.
#[derive(Clone, Copy, Debug)]
struct ProgrammedExpiry {
    home: TimerStore,
    latest_ns: i64,
    sets: u64,
    gap_ns: u64,
    at_ns: u64,
}

/// A base is mapped to device time anew at each wait. Two results no further apart than the two
/// readings took are one, but no further than this, should a thread have been preempted in between.
const SAME_NS: u64 = 1_000;

/// How often a device that is late is tried out.
const TRIALS: u32 = 3;

impl<T> Engine<T> {
    /// An engine with the devices that `registry` has for it, for the calling thread. `number` is
    /// the engine's among all that share the registry.
    ///
    /// It is bound to its tick until the device is found valid ([`Registry::set_health`],
    /// [`Engine::validate`]) and a clock source is announced ([`Engine::high_res`]).
    ///
    /// # Errors
    /// [`EngineError::NoDevice`]; what a device refuses; [`EngineError::Timers`] for timeouts finer
    /// than a wheel has.
    pub fn new(
        settings: EngineConfig,
        registry: &Arc<Registry>,
        number: event::EngineId,
        times: impl Times + 'static,
    ) -> Result<Engine<T>, EngineError> {
        let now = times.now();
        let mut engine = Engine {
            timers: EngineTimers::new(settings.timeouts, &now)?,
            times: Box::new(times),
            settings,
            binding: DeviceBinding::new(registry, number, settings.tick),
            next_wake: NextWake::new(),
            watched: false,
            watch_again_ns: 0,
            planned: None,
            looks: PollHistory::from(now),
            statistics: EngineStatistics::default(),
            last_long: LongCallback::default(),
        };
        engine.binding.choose_device()?;
        engine.binding.listen();
        Ok(engine)
    }

    /// An engine in virtual time on one simulated device, in high resolution if that belongs to
    /// the engine and can be programmed. (Not tried out first: time stays where it is.)
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn simulated(
        settings: EngineConfig,
        device: SimEventConfig,
        times: &SimTimes,
    ) -> Result<Engine<T>, EngineError> {
        let registry = Arc::new(Registry::new());
        let number = event::EngineId(0);
        let device = SimEvent::new(times.source(), device);
        let id = add(&registry, number, Box::new(device)).ok_or(EngineError::NoDevice)?;
        let _ = registry.set_health(id, true);
        let mut engine = Engine::new(settings, &registry, number, times.clone())?;
        engine.binding.high_res().source_valid();
        engine.begin()?;
        Ok(engine)
    }

    /// An engine on this machine's devices and clocks, for the calling thread: it sleeps, or if
    /// that should fail waits for a timerfd. Both layers are tried out first, for 3 ms, and a late
    /// device again ([`Engine::validate_device`]); where one is not fit the engine is bound to its tick.
    ///
    /// # Errors
    /// As [`Engine::new`].
    #[cfg(target_os = "linux")]
    pub fn native(settings: EngineConfig) -> Result<Engine<T>, EngineError> {
        let registry = Arc::new(Registry::new());
        let number = event::EngineId(0);
        add(&registry, number, Box::new(SleepEvent::new()));
        if let Ok(spare) = TimerFdEvent::new() {
            add(&registry, number, Box::new(spare));
        }
        let times = OsTimes::new();
        let source = validate_source(&SourcePlan::DEFAULT, || times.monotonic_ns());
        let mut engine = Engine::new(settings, &registry, number, times)?;
        match source {
            Ok(_) => engine.binding.high_res().source_valid(),
            Err(why) => engine.binding.high_res().source_lost(&why.to_string()),
        }
        // The registry keeps no broken one for this engine, so that this ends.
        while engine.validate_device().is_err() {
            engine.binding.follow()?;
        }
        engine.begin()?;
        Ok(engine)
    }

    /// Acts on what was announced while it was made, and takes the kicks of that.
    pub(crate) fn begin(&mut self) -> Result<(), EngineError> {
        self.binding.follow()?;
        let now_ns = self.times.monotonic_ns();
        // Kicked already, so that this does not wait.
        let _ = self.binding.device_mut()?.wait(Some(now_ns));
        Ok(())
    }

    /// Its timers: to create, arm and cancel. The next wait programs the device.
    #[must_use]
    pub fn timers(&mut self) -> &mut EngineTimers<T> {
        &mut self.timers
    }

    /// One reading of all bases.
    #[must_use]
    pub fn now(&self) -> ClockReadings {
        self.times.now()
    }

    /// Counts since the engine was made.
    #[must_use]
    pub fn statistics(&self) -> EngineStatistics {
        EngineStatistics {
            device_changes: self.binding.taken().saturating_sub(1),
            ticks_skipped: self.binding.ticks_skipped(),
            ..self.statistics
        }
    }

    /// The device that it has, if it has one.
    #[must_use]
    pub fn device(&self) -> Option<&EventDevice> {
        self.binding.device().map(ServiceDevice::device)
    }

    /// How it works now. What was announced since the last wait is acted upon by the next one.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        self.binding.resolution()
    }

    /// The decision on its resolution; where clock sources are announced.
    #[must_use]
    pub fn high_res(&self) -> &Arc<HighRes> {
        self.binding.high_res()
    }

    /// Tries its device out, which takes some milliseconds, and tells the registry: without that a
    /// device is never used for high resolution.
    ///
    /// # Errors
    /// [`InvalidDevice`]: why it is not fit. The next wait takes another one in place of a broken
    /// one ([`InvalidDevice::is_broken`]); any other stays, and the engine is bound to its tick.
    pub fn validate(&mut self, plan: &DevicePlan) -> Result<ValidationReport, InvalidDevice> {
        self.planned = None;
        self.binding.validate(plan)
    }

    /// Validates by [`DevicePlan::DEFAULT`], up to three times if the device is late: other threads
    /// may have been in its way. Whether the engine may be precise then is for
    /// [`Engine::high_res`] to say.
    ///
    /// # Errors
    /// [`InvalidDevice`]: why it is broken. The next wait takes another one.
    pub fn validate_device(&mut self) -> Result<(), InvalidDevice> {
        for _ in 0..TRIALS {
            match self.validate(&DevicePlan::DEFAULT) {
                Err(InvalidDevice::Late { .. }) => {}
                Err(why) if why.is_broken() => return Err(why),
                Ok(_) | Err(_) => break,
            }
        }
        Ok(())
    }

    /// Serves the tick, accounting or profiling every `period` from now on, beside the timers and
    /// on the same device, or no longer; [`ServiceWait::services`] tells in each wait what is due. Goes on if
    /// the device is exchanged.
    ///
    /// # Errors
    /// [`EngineError::Mode`] if the device cannot tick so fast; then the service is as it was.
    /// [`EngineError::NoDevice`].
    pub fn set_period(
        &mut self,
        service: Service,
        period: Option<Period>,
    ) -> Result<(), EngineError> {
        self.binding.set_period(service, period)
    }

    /// A handle that makes the engine look again, whichever device it has.
    #[must_use]
    pub fn kick(&self) -> Kick {
        self.binding.kick()
    }

    /// When it wakes, for threads that decide whether they need kick it.
    #[must_use]
    pub fn next_wake(&self) -> NextWake {
        self.next_wake.clone()
    }

    /// Device time for which the device was last asked, ns; `u64::MAX` for none.
    #[must_use]
    pub fn next_wake_ns(&self) -> u64 {
        self.binding.device().and_then(ServiceDevice::next_wake_ns).unwrap_or(u64::MAX)
    }

    /// Gives the device back to the registry, so that another thread may go on: its first wait
    /// takes it again. Timers stay armed. To be called by the thread that waited.
    pub fn detach(&mut self) {
        self.planned = None;
        self.binding.release();
    }

    /// Waits until a timer or a service is due, a kick arrives, a signal is handled, or the
    /// device's time reaches `limit_ns`. What is due already is returned at once. Timers expire in
    /// [`Engine::expire`], which is to be called whatever this returned.
    ///
    /// The first wait with a timer on another base than [`ClockBase::Monotonic`] has the clocks watched
    /// for being set; on this machine that starts a thread. While that fails, which is counted
    /// ([`EngineStatistics::watch_failures`]) and tried again, no wait is longer than a tick: it then
    /// returns [`Kicked`](event::DeviceWaitEnd::Kicked), so that a clock that was set is seen.
    ///
    /// # Errors
    /// [`EngineError::NoDevice`], or what the device said that failed as the last one.
    pub fn wait(&mut self, limit_ns: Option<u64>) -> Result<ServiceWait, EngineError> {
        self.wait_with(limit_ns, |_, _| false)
    }

    /// As [`Engine::wait`], for an engine that other threads hand something to: after [`NextWake`] was
    /// published, and before it waits, `again` takes what was handed over; it returns whether there
    /// was something, and is then called again; but once a timer, a service or the limit is due, this
    /// returns all the same, however much is handed over.
    ///
    /// # Errors
    /// As [`Engine::wait`].
    pub fn wait_with(
        &mut self,
        limit_ns: Option<u64>,
        mut again: impl FnMut(&mut EngineTimers<T>, &ClockReadings) -> bool,
    ) -> Result<ServiceWait, EngineError> {
        loop {
            match self.binding.follow()? {
                DeviceChange::Same => {}
                DeviceChange::Resolution => self.start_over(),
                // A kick may still have gone to the device before.
                DeviceChange::Device => {
                    self.start_over();
                    return Ok(KICKED);
                }
            }
            let mut until_ns = self.watch_clocks(limit_ns);
            let (now, wake_ns) = self.plan(until_ns)?;
            if again(&mut self.timers, &now) {
                if now.device_ns() < wake_ns {
                    continue;
                }
                // No longer: the rest of what is handed over is taken after what is due.
                let now_ns = now.device_ns();
                until_ns = Some(limit_ns.map_or(now_ns, |limit_ns| limit_ns.min(now_ns)));
            }
            let served = self.binding.device_mut()?.wait(until_ns);
            self.next_wake.awake();
            self.statistics.wakes += 1;
            return match served {
                // Not the caller's limit.
                Ok(served) if served.reason == DeviceWaitEnd::Limit && until_ns != limit_ns => {
                    Ok(ServiceWait { reason: DeviceWaitEnd::Kicked, ..served })
                }
                Ok(served) => Ok(served),
                Err(error) => {
                    self.binding.lose(error)?;
                    self.start_over();
                    Ok(KICKED)
                }
            };
        }
    }

    /// Expires what is due, `budget` timers and timeouts at most; how many there were. If that is
    /// the budget, more may be due, and the next wait comes back at once.
    ///
    /// All expire as of one reading of the clocks; bound to a tick, as of the last tick. How long
    /// `fire` takes is measured each time, and which timers it delayed ([`EngineStatistics`]).
    pub fn expire(
        &mut self,
        budget: usize,
        mut fire: impl FnMut(&mut EngineTimers<T>, ExpiredTimer),
    ) -> usize {
        let actual = self.times.now();
        let Some(now) = self.look_as_of(&actual) else { return 0 };
        self.statistics.looks += 1;
        self.looks.see(&actual);
        let long_ns = self.settings.long_callback.nanos_or_zero();
        let mut begin_ns = actual.device_ns();
        for count in 0..budget {
            let Some(fired) = self.timers.pop_due(&now) else {
                self.looks.last_ns = now.device_ns();
                if self.binding.resolution() == Resolution::TickBound {
                    self.looks.boundary_ns = Some(now.device_ns());
                }
                return count;
            };
            let due_ns = match fired.cause {
                Cause::Expiry => now.to_device_ns(fired.base, fired.latest_ns),
                Cause::ClockSet => now.device_ns(),
            };
            let due_ns = due_ns.max(self.looks.last_ns);
            let due_ns = due_ns.max(self.looks.steady_ns[fired.base as usize]);
            self.statistics.fired(due_ns, begin_ns, &self.last_long);
            fire(&mut self.timers, fired);
            let end_ns = self.times.monotonic_ns();
            let span = (begin_ns, end_ns);
            self.statistics.callback(fired.id, span, long_ns, &mut self.last_long);
            begin_ns = end_ns;
        }
        budget
    }

    /// The reading that timers expire by: bound to a tick, that of the last tick; `None` if its
    /// look is over.
    fn look_as_of(&self, actual: &ClockReadings) -> Option<ClockReadings> {
        let device = self.binding.device()?;
        if device.resolution() == Resolution::High {
            return Some(*actual);
        }
        let boundary_ns = device.boundary_ns(actual.device_ns());
        (self.looks.boundary_ns != Some(boundary_ns)).then(|| actual.at_device_ns(boundary_ns))
    }

    /// Has the clocks watched if timers need that; until when may be waited. A clock that is not
    /// watched is looked at after a tick.
    fn watch_clocks(&mut self, limit_ns: Option<u64>) -> Option<u64> {
        let others = [ClockBase::Boottime, ClockBase::Realtime, ClockBase::Tai];
        if self.watched || others.into_iter().all(|base| self.timers.armed(base) == 0) {
            return limit_ns;
        }
        let now_ns = self.times.monotonic_ns();
        let tick_ns = now_ns.saturating_add(self.settings.tick.span_ceil().nanos_or_zero());
        if now_ns >= self.watch_again_ns {
            self.watched = self.times.watch(&self.binding.kick()).is_ok();
            if self.watched {
                return limit_ns;
            }
            self.statistics.watch_failures += 1;
            self.watch_again_ns = tick_ns;
        }
        Some(limit_ns.map_or(tick_ns, |limit_ns| limit_ns.min(tick_ns)))
    }

    /// Tells the device what the timers want, and others when the engine wakes; the clocks, and that
    /// time.
    fn plan(&mut self, limit_ns: Option<u64>) -> Result<(ClockReadings, u64), EngineError> {
        let now = self.times.now();
        let at_ns = self.timers_want(&now);
        let device = self.binding.device_mut()?;
        device.set_next_event(at_ns);
        let wake_ns = device.next_wake_ns().unwrap_or(u64::MAX);
        let wake_ns = limit_ns.map_or(wake_ns, |limit_ns| wake_ns.min(limit_ns));
        self.next_wake.publish(wake_ns);
        Ok((now, wake_ns))
    }

    /// When the first timer is to expire, device time.
    fn timers_want(&mut self, now: &ClockReadings) -> Option<u64> {
        let at_ns = if self.timers.has_notice(now) {
            self.planned = None;
            now.device_ns()
        } else {
            let Some(first) = self.timers.first(now) else {
                self.planned = None;
                return None;
            };
            let at_ns = first.device_ns(now);
            let (home, latest_ns, sets) = (first.home, first.latest_ns, now.sets());
            let gap_ns = now.gap_ns();
            let same = self.planned.filter(|planned| {
                let apart_ns = planned.gap_ns.saturating_add(gap_ns).min(SAME_NS);
                (planned.home, planned.latest_ns, planned.sets) == (home, latest_ns, sets)
                    && planned.at_ns.abs_diff(at_ns) <= apart_ns
            });
            let planned = same.unwrap_or(ProgrammedExpiry { home, latest_ns, sets, gap_ns, at_ns });
            self.planned = Some(planned);
            planned.at_ns
        };
        // What a tick's look left behind waits for the next tick.
        Some(match (self.binding.resolution(), self.looks.boundary_ns) {
            (Resolution::TickBound, Some(boundary_ns)) => at_ns.max(boundary_ns.saturating_add(1)),
            _ => at_ns,
        })
    }

    /// The device or the resolution has changed.
    fn start_over(&mut self) {
        self.planned = None;
        self.looks.boundary_ns = None;
    }
}

impl<T> fmt::Debug for Engine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("device", &self.binding.device())
            .field("timers", &self.timers.count())
            .field("next_wake", &self.next_wake)
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}
