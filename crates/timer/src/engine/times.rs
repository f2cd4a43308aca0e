//! Where an engine reads its time bases, and those of this machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hourglass_sys::clock::{ClockId, now_ns};

use super::ClockReadings;
use super::clock_set_watcher::Watcher;
use crate::event::{DeviceError, Kick};

/// A source of readings of all time bases.
///
/// An implementation MUST
/// - have [`ClockBase::Monotonic`](super::ClockBase::Monotonic) be the time base of the engine's device, and
///   never set or turn it back;
/// - read the other bases not after it, or at the same moment, and say within what time
///   ([`ClockReadings::with_gap`]);
/// - count the settings of the wall clock that it knows of, and read that count before the clocks;
/// - neither allocate nor take a lock in [`Times::now`] and [`Times::monotonic_ns`].
pub trait Times: Send {
    /// One reading of all bases.
    fn now(&self) -> ClockReadings;

    /// [`ClockBase::Monotonic`](super::ClockBase::Monotonic) alone, ns.
    fn monotonic_ns(&self) -> u64 {
        self.now().device_ns()
    }

    /// From now on `kick` is to be kicked when the wall clock is set or the machine comes back from
    /// a suspension, since a device on [`ClockBase::Monotonic`](super::ClockBase::Monotonic) does not notice.
    /// Called before the first wait with a timer on another base, again after an error only, at
    /// most once a tick.
    ///
    /// # Errors
    /// What the operating system answers. The engine goes on without.
    fn watch(&mut self, kick: &Kick) -> Result<(), DeviceError> {
        let _ = kick;
        Ok(())
    }
}

/// The operating system's four clocks.
///
/// They are read one after the other in some 100 ns, `CLOCK_MONOTONIC` last; again if the thread
/// was preempted in between. Settings of the wall clock are counted from [`Times::watch`] on, by a
/// small thread that sleeps until there is one; dropping this ends it. Linux does not report when
/// only the difference between TAI and the wall clock is changed: timers on
/// [`ClockBase::Tai`](super::ClockBase::Tai) take note of it at the next poll. After `fork` the child
/// has no such thread, and makes its own engine.
#[derive(Debug, Default)]
pub struct OsTimes {
    sets: Arc<AtomicU64>,
    watcher: Option<Watcher>,
}

/// A reading that took longer was interrupted.
const UNDISTURBED_NS: u64 = 500;

/// How often a reading is tried: a machine whose clocks take longer is read as it is.
const TRIES: usize = 4;

impl OsTimes {
    /// Nothing is watched yet.
    #[must_use]
    pub fn new() -> OsTimes {
        OsTimes::default()
    }
}

fn read() -> ClockReadings {
    let clock = |clock| i64::try_from(now_ns(clock)).unwrap_or(i64::MAX);
    let before_ns = now_ns(ClockId::Monotonic);
    let others = [ClockId::Boottime, ClockId::Realtime, ClockId::Tai].map(clock);
    let after_ns = clock(ClockId::Monotonic);
    let gap_ns = after_ns.unsigned_abs().saturating_sub(before_ns);
    ClockReadings::new([after_ns, others[0], others[1], others[2]]).with_gap(gap_ns)
}

pub(super) fn read_all() -> ClockReadings {
    let mut best = read();
    for _ in 1..TRIES {
        if best.gap_ns() <= UNDISTURBED_NS {
            break;
        }
        let other = read();
        if other.gap_ns() < best.gap_ns() {
            best = other;
        }
    }
    best
}

impl Times for OsTimes {
    fn now(&self) -> ClockReadings {
        let sets = self.sets.load(Ordering::Acquire);
        read_all().with_sets(sets)
    }

    fn monotonic_ns(&self) -> u64 {
        now_ns(ClockId::Monotonic)
    }

    fn watch(&mut self, kick: &Kick) -> Result<(), DeviceError> {
        if self.watcher.is_none() {
            self.watcher = Some(Watcher::start(kick.clone(), &self.sets)?);
        }
        Ok(())
    }
}
