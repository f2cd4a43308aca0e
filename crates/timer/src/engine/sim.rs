//! Time bases of a simulation: a wall clock that may be set, and suspensions.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use hourglass_clock::source::SimSource;
use hourglass_time::Span;

use super::{ClockReadings, Times};
use crate::event::{DeviceError, Kick};

/// The four bases over one [`SimSource`], whose true time is
/// [`ClockBase::Monotonic`](super::ClockBase::Monotonic). Clones share their clocks, so that a test keeps one
/// and gives the engine another.
///
/// Suspensions that the source itself has among its faults count as well
/// ([`SimSource::suspended`]).
#[derive(Clone)]
pub struct SimTimes {
    source: Arc<SimSource>,
    clocks: Arc<Clocks>,
}

#[derive(Default)]
struct Clocks {
    /// `CLOCK_REALTIME` minus `CLOCK_BOOTTIME`, ns.
    realtime_ns: AtomicI64,
    /// `CLOCK_TAI` minus `CLOCK_REALTIME`, ns.
    tai_ns: AtomicI64,
    /// Suspensions by [`SimTimes::suspend`], ns.
    suspended_ns: AtomicI64,
    sets: AtomicU64,
    kick: OnceLock<Kick>,
}

impl SimTimes {
    /// All bases as the source's true time.
    #[must_use]
    pub fn new(source: &Arc<SimSource>) -> SimTimes {
        SimTimes { source: Arc::clone(source), clocks: Arc::default() }
    }

    /// Where true time comes from.
    #[must_use]
    pub fn source(&self) -> &Arc<SimSource> {
        &self.source
    }

    /// Sets the wall clock, and with it TAI, to `ns` since 1970. The engine is kicked.
    pub fn set_realtime(&self, ns: i64) {
        self.clocks.realtime_ns.store(ns.saturating_sub(self.boottime_ns()), Ordering::Relaxed);
        self.was_set();
    }

    /// Moves the wall clock, and with it TAI, backwards if negative. The engine is kicked.
    pub fn step_realtime(&self, by: Span) {
        add_held(&self.clocks.realtime_ns, by);
        self.was_set();
    }

    /// Sets the difference between TAI and the wall clock; no engine is kicked, as by Linux.
    pub fn set_tai_offset(&self, offset: Span) {
        self.clocks.tai_ns.store(offset.nanos(), Ordering::Relaxed);
    }

    /// The machine was suspended for `length`, and comes back now: every base but
    /// [`ClockBase::Monotonic`](super::ClockBase::Monotonic) is ahead by it. The engine is kicked.
    pub fn suspend(&self, length: Span) {
        add_held(&self.clocks.suspended_ns, length.max(Span::ZERO));
        self.kick();
    }

    fn boottime_ns(&self) -> i64 {
        let suspended = self.clocks.suspended_ns.load(Ordering::Relaxed);
        let by_source = self.source.suspended().nanos();
        self.source.true_time().nanos().saturating_add(suspended).saturating_add(by_source)
    }

    fn was_set(&self) {
        self.clocks.sets.fetch_add(1, Ordering::Release);
        self.kick();
    }

    fn kick(&self) {
        if let Some(kick) = self.clocks.kick.get() {
            kick.kick();
        }
    }
}

/// Adds without wrapping.
fn add_held(value: &AtomicI64, by: Span) {
    let add = |old: i64| Some(old.saturating_add(by.nanos()));
    // The closure never declines.
    let _ = value.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
}

impl Times for SimTimes {
    fn now(&self) -> ClockReadings {
        let sets = self.clocks.sets.load(Ordering::Acquire);
        let monotonic = self.source.true_time().nanos();
        let boottime = self.boottime_ns();
        let realtime = boottime.saturating_add(self.clocks.realtime_ns.load(Ordering::Relaxed));
        let tai = realtime.saturating_add(self.clocks.tai_ns.load(Ordering::Relaxed));
        ClockReadings::new([monotonic, boottime, realtime, tai]).with_sets(sets)
    }

    fn monotonic_ns(&self) -> u64 {
        self.source.true_time().nanos_or_zero()
    }

    fn watch(&mut self, kick: &Kick) -> Result<(), DeviceError> {
        // The first engine's; simulated clocks serve one.
        let _ = self.clocks.kick.set(kick.clone());
        Ok(())
    }
}

impl fmt::Debug for SimTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimTimes").field("now", &self.now()).finish_non_exhaustive()
    }
}
