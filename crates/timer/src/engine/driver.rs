//! Timers on several bases over one clock event device.
//!
//! Owns: when the device is programmed for what, and how precise it may be.
//! Must not: start threads (its times may), take a lock or allocate while it waits and expires.

use std::fmt;

use super::device::EngineDevice;
use super::{
    ClockBase, ClockReadings, EngineError, EngineTimers, ExpiredTimer, OsTimes, SimTimes, Times,
};
use crate::event::{
    DeviceError, DeviceWaitEnd, EventDevice, InvalidDevice, Kick, Period, Resolution, SimEvent,
    SimEventConfig, ValidationReport, validate_source,
};

/// Timers of one thread, and the device that wakes it.
///
/// One thread arms, waits and expires; others hand it what they want by means of their own, and
/// kick it ([`Engine::kick`]). No locks, and no allocation while arming
/// within the room reserved, waiting and expiring.
///
/// **Device.** One, for as long as the engine lives. It is programmed when the engine waits, and only
/// if the first of all bases changed. Once it has failed or was found broken, every wait is refused.
///
/// **Resolution.** With a validated device of its own ([`Engine::validate`]) and a valid clock source
/// ([`Engine::source_valid`]) each expiry is programmed (*Hrtimers and Beyond*, section 8); otherwise
/// the engine is bound to its tick: timers expire in polls at tick boundaries only, late by up to a
/// tick. It changes over while it runs, with timers armed. Ticks at which nothing is due are left
/// out, so that an idle engine is not woken at all.
///
/// ```
/// use std::sync::Arc;
/// use hourglass_clock::source::SimSource;
/// use hourglass_timer::engine::{ClockBase, DEFAULT_TICK, Engine, EngineError, SimTimes};
/// use hourglass_timer::event::SimEventConfig;
///
/// // Virtual time: an hour passes at once.
/// let time = Arc::new(SimSource::default());
/// let times = SimTimes::new(&time);
/// let mut engine = Engine::simulated(DEFAULT_TICK, SimEventConfig::exact(), &times)?;
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
    tick: Period,
    /// `None` once it has failed.
    device: Option<EngineDevice>,
    kick: Kick,
    device_is_valid: bool,
    source_is_valid: bool,
    watched: bool,
    /// Device time from which on that is tried again.
    watch_again_ns: u64,
    planned: Option<ProgrammedExpiry>,
    /// The tick boundary of the last poll that left nothing due behind; `None` in high resolution.
    boundary_ns: Option<u64>,
    statistics: EngineStatistics,
}

/// What an engine did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStatistics {
    /// Waits that returned.
    pub wakes: u64,
    /// Polls of the timers.
    pub polls: u64,
    /// Ticks of a tick-bound engine at which nothing was due, so that it slept on (*Hrtimers and
    /// Beyond*, section 9: dynamic tick). 0 in high resolution, which has no tick.
    pub ticks_skipped: u64,
    /// Timers that expired.
    pub fired: u64,
    /// Times that the clocks could not be watched for being set, for want of file descriptors or
    /// threads: until it succeeds the engine polls them each tick, and does not know of a
    /// setting that is over ([`ClockSetPolicy::Expire`](super::ClockSetPolicy::Expire)).
    pub watch_failures: u64,
}

/// What the device is programmed for, as far as timers go.
#[derive(Clone, Copy, Debug)]
struct ProgrammedExpiry {
    base: ClockBase,
    latest_ns: i64,
    sets: u64,
    gap_ns: u64,
    at_ns: u64,
}

/// A base is mapped to device time anew at each wait. Two results no further apart than the two
/// readings took are one, but no further than this, should a thread have been preempted in between.
const SAME_NS: u64 = 1_000;

/// The usual tick of an engine without high resolution: 4 ms, as most kernels.
pub const DEFAULT_TICK: Period = match Period::new(4_000_000, 1) {
    Ok(period) => period,
    Err(_) => Period::NANOSECOND,
};

const TRIALS: u32 = 3;

impl<T> Engine<T> {
    /// An engine on this device, for the calling thread. It is bound to its tick, the longest of the device
    /// that is not above `tick`, until the device is found valid and a clock source is announced.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn new(
        tick: Period,
        device: EventDevice,
        times: impl Times + 'static,
    ) -> Result<Engine<T>, EngineError> {
        let kick = device.kick();
        Ok(Engine {
            timers: EngineTimers::new(&times.now()),
            times: Box::new(times),
            tick,
            device: Some(EngineDevice::new(device, tick)?),
            kick,
            device_is_valid: false,
            source_is_valid: false,
            watched: false,
            watch_again_ns: 0,
            planned: None,
            boundary_ns: None,
            statistics: EngineStatistics::default(),
        })
    }

    /// An engine in virtual time on one simulated device, in high resolution if that belongs to
    /// the engine and can be programmed. (Not tried out first: time stays where it is.)
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn simulated(
        tick: Period,
        device: SimEventConfig,
        times: &SimTimes,
    ) -> Result<Engine<T>, EngineError> {
        let device = EventDevice::new(SimEvent::new(times.source(), device))?;
        let mut engine = Engine::new(tick, device, times.clone())?;
        engine.device_is_valid = engine.device.as_ref().is_some_and(EngineDevice::is_suited);
        engine.source_valid();
        Ok(engine)
    }

    /// An engine on a device and the clocks of this machine, for the calling thread. Both layers are
    /// tried out first, for 3 ms, and a late device up to three times; where one is not fit the engine
    /// is bound to its tick.
    ///
    /// # Errors
    /// As [`Engine::new`]; [`EngineError::Invalid`] for a device that is broken.
    pub fn native(tick: Period, device: EventDevice) -> Result<Engine<T>, EngineError> {
        let times = OsTimes::new();
        let source = validate_source(|| times.monotonic_ns());
        let mut engine = Engine::new(tick, device, times)?;
        engine.validate_device().map_err(|why| match why {
            InvalidDevice::Device(error) => EngineError::Device(error),
            broken => EngineError::Invalid(broken),
        })?;
        if source.is_ok() {
            engine.source_valid();
        }
        Ok(engine)
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
        let ticks_skipped = self.device.as_ref().map_or(0, EngineDevice::ticks_skipped);
        EngineStatistics { ticks_skipped, ..self.statistics }
    }

    /// Its device, unless that has failed.
    #[must_use]
    pub fn device(&self) -> Option<&EventDevice> {
        self.device.as_ref().map(EngineDevice::device)
    }

    /// How it works now.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        self.device.as_ref().map_or(Resolution::TickBound, EngineDevice::resolution)
    }

    /// The clock layer announces a source that it validated ([`crate::event::validate_source`]).
    pub fn source_valid(&mut self) {
        self.source_is_valid = true;
        self.decide_resolution();
    }

    /// The clock layer has no source that is fit for high resolution, or a tick is wanted: the engine
    /// is bound to its tick.
    pub fn source_lost(&mut self) {
        self.source_is_valid = false;
        self.decide_resolution();
    }

    /// Tries its device out, which takes some milliseconds: without that a device is never used for
    /// high resolution.
    ///
    /// # Errors
    /// [`InvalidDevice`]: why it is not fit. The engine stays bound to its tick; with a broken device
    /// ([`InvalidDevice::is_broken`]) every wait is refused from now on.
    pub fn validate(&mut self) -> Result<ValidationReport, InvalidDevice> {
        let Some(device) = &mut self.device else {
            return Err(DeviceError::Unsupported("an engine without a device").into());
        };
        let validated = device.validate();
        self.planned = None;
        self.device_is_valid = validated.is_ok();
        match &validated {
            Err(why) if why.is_broken() => self.device = None,
            Ok(_) | Err(_) => self.decide_resolution(),
        }
        validated
    }

    /// Validates up to three times if the device is late: other threads may have been in its way.
    ///
    /// # Errors
    /// [`InvalidDevice`]: why it is broken.
    pub fn validate_device(&mut self) -> Result<(), InvalidDevice> {
        for _ in 0..TRIALS {
            match self.validate() {
                Err(InvalidDevice::Late { .. }) => {}
                Err(why) if why.is_broken() => return Err(why),
                Ok(_) | Err(_) => break,
            }
        }
        Ok(())
    }

    fn decide_resolution(&mut self) {
        let Some(device) = &mut self.device else { return };
        let is_high = self.device_is_valid && self.source_is_valid;
        if device.set_resolution(if is_high { Resolution::High } else { Resolution::TickBound }) {
            self.start_over();
        }
    }

    /// A handle that makes the engine come back from its wait.
    #[must_use]
    pub fn kick(&self) -> Kick {
        self.kick.clone()
    }

    /// Device time for which the device was last asked, ns; `u64::MAX` for none.
    #[must_use]
    pub fn next_wake_ns(&self) -> u64 {
        self.device.as_ref().and_then(EngineDevice::next_wake_ns).unwrap_or(u64::MAX)
    }

    /// Takes the device out of the calling thread, so that another one may go on: its first wait
    /// attaches it again. Timers stay armed. To be called by the thread that waited.
    pub fn detach(&mut self) {
        self.start_over();
        if let Some(device) = &mut self.device {
            device.detach();
        }
    }

    /// Waits until a timer is due, a kick arrives, a signal is handled, or the device's time reaches
    /// `limit_ns`. What is due already is returned at once. Timers expire in [`Engine::expire`], which
    /// is to be called whatever this returned.
    ///
    /// The first wait with a timer on another base than [`ClockBase::Monotonic`] has the clocks watched
    /// for being set; on this machine that starts a thread. While that fails, which is counted
    /// ([`EngineStatistics::watch_failures`]) and tried again, no wait is longer than a tick: it then
    /// returns [`DeviceWaitEnd::Kicked`], so that a clock that was set is seen.
    ///
    /// # Errors
    /// What the device said that failed; [`EngineError::NoDevice`] after that.
    pub fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, EngineError> {
        self.wait_with(limit_ns, |_, _, _| false)
    }

    /// As [`Engine::wait`], for an engine that other threads hand something to. Before it waits,
    /// `again` is given the device time at which the engine will wake, ns (`u64::MAX` if it will not):
    /// it publishes that, and takes what was handed over. It returns whether there was something,
    /// and is then called again; but once a timer or the limit is due, this returns all the same,
    /// however much is handed over.
    ///
    /// # Errors
    /// As [`Engine::wait`].
    pub fn wait_with(
        &mut self,
        limit_ns: Option<u64>,
        mut again: impl FnMut(&mut EngineTimers<T>, &ClockReadings, u64) -> bool,
    ) -> Result<DeviceWaitEnd, EngineError> {
        self.device_mut()?.attach()?;
        let mut until_ns = self.watch_clocks(limit_ns);
        loop {
            let (now, wake_ns) = self.plan(until_ns)?;
            if !again(&mut self.timers, &now, wake_ns) {
                break;
            }
            let now_ns = now.device_ns();
            if now_ns >= wake_ns {
                // No longer: the rest of what is handed over is taken after what is due.
                until_ns = Some(limit_ns.map_or(now_ns, |limit_ns| limit_ns.min(now_ns)));
                break;
            }
            // What was handed over may need them.
            until_ns = self.watch_clocks(limit_ns);
        }
        let waited = self.device_mut()?.wait(until_ns);
        self.statistics.wakes += 1;
        match waited {
            // Not the caller's limit.
            Ok(DeviceWaitEnd::Limit) if until_ns != limit_ns => Ok(DeviceWaitEnd::Kicked),
            Ok(woken) => Ok(woken),
            // Misuse is not the device's failure.
            Err(error @ (DeviceError::NeverEnds(_) | DeviceError::NotAttached(_))) => {
                Err(error.into())
            }
            Err(error) => {
                self.device = None;
                Err(error.into())
            }
        }
    }

    /// Expires what is due, `budget` timers at most; how many there were. If that is
    /// the budget, more may be due, and the next wait comes back at once.
    ///
    /// All expire as of one reading of the clocks; bound to a tick, as of the last tick.
    pub fn expire(
        &mut self,
        budget: usize,
        fire: impl FnMut(&mut EngineTimers<T>, ExpiredTimer),
    ) -> usize {
        let Some(now) = self.poll_time() else { return 0 };
        self.statistics.polls += 1;
        let count = self.timers.expire(&now, budget, fire);
        self.statistics.fired += count as u64;
        if count < budget && self.resolution() == Resolution::TickBound {
            self.boundary_ns = Some(now.device_ns());
        }
        count
    }

    /// The reading that timers expire by: bound to a tick, that of the last tick; `None` if its
    /// poll is complete.
    fn poll_time(&self) -> Option<ClockReadings> {
        let device = self.device.as_ref()?;
        let actual = self.times.now();
        if device.resolution() == Resolution::High {
            return Some(actual);
        }
        let boundary_ns = device.boundary_ns(actual.device_ns());
        (self.boundary_ns != Some(boundary_ns)).then(|| actual.at_device_ns(boundary_ns))
    }

    fn device_mut(&mut self) -> Result<&mut EngineDevice, EngineError> {
        self.device.as_mut().ok_or(EngineError::NoDevice)
    }

    /// Has the clocks watched if timers need that; until when may be waited. A clock that is not
    /// watched is polled after a tick.
    fn watch_clocks(&mut self, limit_ns: Option<u64>) -> Option<u64> {
        let others = [ClockBase::Boottime, ClockBase::Realtime, ClockBase::Tai];
        if self.watched || others.into_iter().all(|base| self.timers.armed(base) == 0) {
            return limit_ns;
        }
        let now_ns = self.times.monotonic_ns();
        let tick_ns = now_ns.saturating_add(self.tick.span_ceil().nanos_or_zero());
        if now_ns >= self.watch_again_ns {
            self.watched = self.times.watch(&self.kick).is_ok();
            if self.watched {
                return limit_ns;
            }
            self.statistics.watch_failures += 1;
            self.watch_again_ns = tick_ns;
        }
        Some(limit_ns.map_or(tick_ns, |limit_ns| limit_ns.min(tick_ns)))
    }

    /// Tells the device what the timers want; the clocks, and when the engine wakes.
    fn plan(&mut self, limit_ns: Option<u64>) -> Result<(ClockReadings, u64), EngineError> {
        let now = self.times.now();
        let at_ns = self.timers_want(&now);
        let device = self.device_mut()?;
        device.set_next_event(at_ns);
        let wake_ns = device.next_wake_ns().unwrap_or(u64::MAX);
        let wake_ns = limit_ns.map_or(wake_ns, |limit_ns| wake_ns.min(limit_ns));
        Ok((now, wake_ns))
    }

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
            let (base, latest_ns, sets) = (first.base, first.latest_ns, now.sets());
            let gap_ns = now.gap_ns();
            let same = self.planned.filter(|planned| {
                let apart_ns = planned.gap_ns.saturating_add(gap_ns).min(SAME_NS);
                (planned.base, planned.latest_ns, planned.sets) == (base, latest_ns, sets)
                    && planned.at_ns.abs_diff(at_ns) <= apart_ns
            });
            let planned = same.unwrap_or(ProgrammedExpiry { base, latest_ns, sets, gap_ns, at_ns });
            self.planned = Some(planned);
            planned.at_ns
        };
        // What a tick's poll left behind waits for the next tick.
        Some(match (self.resolution(), self.boundary_ns) {
            (Resolution::TickBound, Some(boundary_ns)) => at_ns.max(boundary_ns.saturating_add(1)),
            _ => at_ns,
        })
    }

    fn start_over(&mut self) {
        self.planned = None;
        self.boundary_ns = None;
    }
}

impl<T> fmt::Debug for Engine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("device", &self.device)
            .field("timers", &self.timers.count())
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}
