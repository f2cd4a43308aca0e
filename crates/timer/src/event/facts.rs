//! What a clock event device is.

use super::period::Period;
use super::periods::Periods;

/// What a device is and can do; constant while it lives. The data structure of *Hrtimers and
/// Beyond*, section 6.1, without its functions (those are [`super::ClockEvent`]'s).
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

/// Facts that contradict themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadFacts {
    /// It can neither tick nor be programmed.
    #[error("{0} can neither tick nor be programmed")]
    Useless(&'static str),
    /// The shortest distance is 0 or above the longest.
    #[error("{name} can be programmed from {min_ns} ns to {max_ns} ns: that is not a range")]
    Deltas {
        /// Name of the device.
        name: &'static str,
        /// Shortest distance of an event, ns.
        min_ns: u64,
        /// Longest distance of an event, ns.
        max_ns: u64,
    },
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
    /// [`BadFacts`], naming what does not.
    pub fn check(&self) -> Result<(), BadFacts> {
        let name = self.name;
        if !self.is_periodic() {
            return Err(BadFacts::Useless(name));
        }
        let (min_ns, max_ns) = (self.min_delta_ns, self.max_delta_ns);
        if self.one_shot && (min_ns == 0 || min_ns > max_ns) {
            return Err(BadFacts::Deltas { name, min_ns, max_ns });
        }
        Ok(())
    }
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
