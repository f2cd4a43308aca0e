//! The bases as threads that arm read them.

use hourglass_sys::clock::{ClockId, now_ns};

use crate::engine::{ClockBase, SimTimes, Times};

#[derive(Clone, Debug)]
pub(super) enum ServiceClock {
    Os,
    Sim(SimTimes),
}

impl ServiceClock {
    pub(super) fn is_simulated(&self) -> bool {
        matches!(self, ServiceClock::Sim(_))
    }

    #[inline]
    pub(super) fn now_ns(&self, base: ClockBase) -> i64 {
        match self {
            ServiceClock::Os => i64::try_from(now_ns(clock_id(base))).unwrap_or(i64::MAX),
            ServiceClock::Sim(times) => times.now().ns(base),
        }
    }

    /// When the engine, which lives on the device's time, is to be there for a time of a base, ns.
    #[inline]
    pub(super) fn device_ns(&self, base: ClockBase, at_ns: i64) -> u64 {
        match (self, base) {
            (_, ClockBase::Monotonic) => at_ns.max(0).unsigned_abs(),
            // The device's time first: a preemption in between makes it earlier, not later.
            (ServiceClock::Os, _) => {
                let device = now_ns(ClockId::Monotonic);
                device.saturating_add_signed(at_ns.saturating_sub(self.now_ns(base)))
            }
            (ServiceClock::Sim(times), _) => times.now().to_device_ns(base, at_ns),
        }
    }
}

fn clock_id(base: ClockBase) -> ClockId {
    match base {
        ClockBase::Monotonic => ClockId::Monotonic,
        ClockBase::Boottime => ClockId::Boottime,
        ClockBase::Realtime => ClockId::Realtime,
        ClockBase::Tai => ClockId::Tai,
    }
}
