//! Time bases, and one reading of all of them.

/// A clock that timers may be armed on.
///
/// | base | set | suspended |
/// |---|---|---|
/// | [`Monotonic`](ClockBase::Monotonic) | never | stands still: a timer is due later on the wall |
/// | [`Boottime`](ClockBase::Boottime) | never | goes on: a timer that came due expires right after |
/// | [`Realtime`](ClockBase::Realtime) | may be | goes on, likewise |
/// | [`Tai`](ClockBase::Tai) | with `Realtime` | goes on, likewise |
///
/// No timer wakes a suspended machine (that takes `CAP_WAKE_ALARM` and another device).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClockBase {
    /// `CLOCK_MONOTONIC`, the device's own.
    Monotonic,
    /// `CLOCK_BOOTTIME`.
    Boottime,
    /// `CLOCK_REALTIME`: ns since 1970, UTC.
    Realtime,
    /// `CLOCK_TAI`: ns since 1970, TAI.
    Tai,
}

impl ClockBase {
    /// All of them. Timers of equal device time expire in this order.
    pub const ALL: [ClockBase; 4] =
        [ClockBase::Monotonic, ClockBase::Boottime, ClockBase::Realtime, ClockBase::Tai];

    /// Name of the clock in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ClockBase::Monotonic => "monotonic",
            ClockBase::Boottime => "boottime",
            ClockBase::Realtime => "realtime",
            ClockBase::Tai => "tai",
        }
    }

    /// Whether the clock may be set.
    #[must_use]
    pub const fn is_settable(self) -> bool {
        matches!(self, ClockBase::Realtime | ClockBase::Tai)
    }
}

/// One reading of all bases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReadings {
    ns: [i64; 4],
    sets: u64,
    gap_ns: u64,
}

impl ClockReadings {
    /// A reading of the clocks in the order of [`ClockBase::ALL`], ns, taken at one moment, before
    /// any clock was set.
    #[must_use]
    pub const fn new(ns: [i64; 4]) -> ClockReadings {
        ClockReadings { ns, sets: 0, gap_ns: 0 }
    }

    /// These readings, with the number of known settings of the wall clock before them.
    #[must_use]
    pub const fn with_sets(self, sets: u64) -> ClockReadings {
        ClockReadings { sets, ..self }
    }

    /// These readings if the other bases were read up to `gap_ns` before [`ClockBase::Monotonic`]. A time
    /// converted to the device's is then late by up to that, and never early.
    #[must_use]
    pub const fn with_gap(self, gap_ns: u64) -> ClockReadings {
        ClockReadings { gap_ns, ..self }
    }

    /// Time of that clock, ns.
    #[must_use]
    #[inline]
    pub const fn ns(&self, base: ClockBase) -> i64 {
        self.ns[base as usize]
    }

    /// The device's time, which is [`ClockBase::Monotonic`], ns.
    #[must_use]
    #[inline]
    pub const fn device_ns(&self) -> u64 {
        let ns = self.ns(ClockBase::Monotonic);
        if ns < 0 { 0 } else { ns.unsigned_abs() }
    }

    /// How often the wall clock has been set, as far as is known. Only differences mean anything.
    #[must_use]
    pub const fn sets(&self) -> u64 {
        self.sets
    }

    /// Within what time the bases were read, ns.
    #[must_use]
    pub const fn gap_ns(&self) -> u64 {
        self.gap_ns
    }

    /// Device time at which `base` reaches `at_ns`, unless the clock is set; ns, clamped to the
    /// range. In the past if it has.
    #[must_use]
    #[inline]
    pub const fn to_device_ns(&self, base: ClockBase, at_ns: i64) -> u64 {
        self.device_ns().saturating_add_signed(self.until_ns(base, at_ns))
    }

    /// How long until `base` reaches `at_ns`, ns; negative if it has.
    #[inline]
    pub(super) const fn until_ns(&self, base: ClockBase, at_ns: i64) -> i64 {
        at_ns.saturating_sub(self.ns(base))
    }

    /// What the clocks say at another device time, unless they are set.
    pub(super) fn at_device_ns(&self, device_ns: u64) -> ClockReadings {
        let ahead = i128::from(device_ns) - i128::from(self.device_ns());
        let shift = |ns: i64| {
            let shifted = i128::from(ns) + ahead;
            i64::try_from(shifted).unwrap_or(if ahead < 0 { i64::MIN } else { i64::MAX })
        };
        ClockReadings { ns: self.ns.map(shift), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_mapped_to_device_time() {
        let now = ClockReadings::new([1_000, 5_000, -7, 0]);
        assert_eq!(now.to_device_ns(ClockBase::Monotonic, 1_234), 1_234);
        assert_eq!(now.to_device_ns(ClockBase::Boottime, 5_001), 1_001);
        assert_eq!(now.to_device_ns(ClockBase::Boottime, 4_500), 500);
        assert_eq!(now.to_device_ns(ClockBase::Boottime, 0), 0);
        // The end of the range is far, and no time of the device's that means something else.
        let far = now.to_device_ns(ClockBase::Realtime, i64::MAX);
        assert!(far > i64::MAX as u64 && far < u64::MAX, "{far}");
    }

    #[test]
    fn a_reading_is_moved_as_a_whole() {
        let now = ClockReadings::new([1_000, 5_000, 9_000, 9_037]).with_sets(3);
        let before = now.at_device_ns(400);
        assert_eq!(before, ClockReadings::new([400, 4_400, 8_400, 8_437]).with_sets(3));
        assert_eq!(before.at_device_ns(1_000), now);
    }
}
