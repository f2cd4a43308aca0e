//! Clock event devices: what one is, and what every implementation must do.

use super::error::DeviceError;
use super::kick::Kick;
use super::period::Period;
use super::periods::Periods;

/// What a device is and can do; constant while it lives. The data structure of *Hrtimers and
/// Beyond*, section 6.1, without its functions (those are [`ClockEvent`]'s).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFeatures {
    /// Its name, one word.
    pub name: &'static str,
    /// Whether it belongs to one CPU, which here is one engine's thread, or to the system. An engine on
    /// one of the system is bound to its tick.
    pub per_cpu: bool,
    /// Whether it can be programmed for one time.
    pub one_shot: bool,
    /// The periods that it can tick at without help.
    pub periods: Periods,
    /// The shortest distance that it can be programmed for, ns, at least 1.
    pub min_delta_ns: u64,
    /// The longest one, ns; beyond it the device is programmed again underway.
    pub max_delta_ns: u64,
}

impl DeviceFeatures {
    /// A one-shot device on the kernel's timers, one for each engine: any distance to 146 years,
    /// never early. A start for describing others.
    pub const KERNEL: DeviceFeatures = DeviceFeatures {
        name: "kernel",
        per_cpu: true,
        one_shot: true,
        periods: Periods::None,
        min_delta_ns: 1,
        max_delta_ns: 1 << 62,
    };

    /// Whether it ticks, by itself or with its periods emulated.
    #[must_use]
    pub fn is_periodic(&self) -> bool {
        self.one_shot || self.periods != Periods::None
    }

    /// Whether it can give this period, by itself or emulated.
    #[must_use]
    pub fn can_tick_at(&self, period: Period) -> bool {
        self.periods.contains(period) || (self.one_shot && period.nth_ns(1) >= self.min_delta_ns)
    }

    /// The periods that users of its tick can be granted: its own, or where its ticks are emulated
    /// every whole number of nanoseconds from the shortest distance on.
    #[must_use]
    pub fn grantable(&self) -> Periods {
        match self.periods {
            Periods::None if self.one_shot => Periods::Multiples {
                unit: Period::NANOSECOND,
                fewest: self.min_delta_ns,
                most: 1 << 62,
            },
            periods => periods,
        }
    }

    /// Whether they make sense.
    ///
    /// # Errors
    /// [`DeviceError::Useless`], [`DeviceError::Deltas`].
    pub fn check(&self) -> Result<(), DeviceError> {
        let name = self.name;
        if !self.is_periodic() {
            return Err(DeviceError::Useless(name));
        }
        let (min_ns, max_ns) = (self.min_delta_ns, self.max_delta_ns);
        if self.one_shot && (min_ns == 0 || min_ns > max_ns) {
            return Err(DeviceError::Deltas { name, min_ns, max_ns });
        }
        Ok(())
    }
}

/// How an engine works (*Hrtimers and Beyond*, sections 7 and 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// Everything waits for the next tick.
    TickBound,
    /// The device is programmed for each expiry.
    High,
}

impl Resolution {
    /// Name of the resolution in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Resolution::TickBound => "tick_bound",
            Resolution::High => "high",
        }
    }
}

/// How a device operates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It fires nothing.
    Shutdown,
    /// It fires once, at the time that it is programmed for.
    OneShot,
    /// It fires again and again.
    Periodic(Period),
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceWaitEnd {
    /// The device fired.
    Event {
        /// Periods that ended since the last event; 1 in one-shot mode.
        periods: u64,
    },
    /// A [`Kick`] ended the wait; the engine must poll its timers.
    Kicked,
    /// A signal was handled.
    Signal,
    /// The limit of the wait is past, and the device did not fire.
    Limit,
}

/// Something that makes a thread come back at a time: the kernel's clock event device (*Hrtimers
/// and Beyond*, section 6.1).
///
/// An implementation MUST
/// - not fire earlier than programmed, by [`ClockEvent::now_ns`] read after the wait;
/// - fire nothing after [`Mode::Shutdown`] is set, nothing after [`Mode::OneShot`] is set until it
///   is programmed, and once for each time that it is programmed;
/// - forget what it was programmed for when it is programmed again;
/// - keep a kick that comes before the wait, and let it end that wait (see [`super::Kicker`]);
/// - neither allocate nor take a lock in `set_next_event` and `wait`;
/// - in `wait`, give the processor away unless its documentation says otherwise, and come back
///   from it only for a reason that [`DeviceWaitEnd`] has.
///
/// A device is used by one thread at a time, and by one that called [`ClockEvent::attach`].
pub trait ClockEvent: Send {
    /// What the device is. Constant.
    fn facts(&self) -> DeviceFeatures;

    /// The device's time base now, ns. For devices of the operating system `CLOCK_MONOTONIC`.
    fn now_ns(&self) -> u64;

    /// The calling thread will wait from now on.
    fn attach(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// The calling thread, which attached the device, will no longer wait: the device is shut down
    /// and leaves nothing behind in the thread.
    fn detach(&mut self) {}

    /// Sets the mode. Only modes that [`DeviceFeatures`] announce are asked for.
    fn set_mode(&mut self, mode: Mode) -> Result<(), DeviceError>;

    /// Programs the next event for `at_ns` of the device's time base, in one-shot mode. It is ahead, within
    /// the device's limits.
    fn set_next_event(&mut self, at_ns: u64) -> Result<(), DeviceError>;

    /// Waits until the device fires, a kick arrives, a signal is handled, or the time base reaches
    /// `limit_ns` (for ever without).
    fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError>;

    /// A handle that ends waits of this device.
    fn kick(&self) -> Kick;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_that_contradict_themselves_are_refused() {
        let good = DeviceFeatures::KERNEL;
        assert_eq!(good.check(), Ok(()));
        let errors = [
            DeviceFeatures { one_shot: false, ..good }.check(),
            DeviceFeatures { min_delta_ns: 0, ..good }.check(),
            DeviceFeatures { min_delta_ns: 9, max_delta_ns: 8, ..good }.check(),
        ];
        for error in errors {
            let text = error.unwrap_err().to_string();
            assert!(text.contains("kernel") && text.lines().count() == 1, "{text}");
        }
        // A device that only ticks has no distances.
        let ticks =
            DeviceFeatures { one_shot: false, periods: Periods::MC146818, min_delta_ns: 0, ..good };
        assert_eq!(ticks.check(), Ok(()));
        assert!(!ticks.can_tick_at(Period::NANOSECOND) && good.can_tick_at(Period::NANOSECOND));
    }
}
