//! The results of bounded reads.

/// How a reading came about, and so what its bound rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Status {
    /// The OS clock serves: because nothing else was looked at yet, no counter is trusted, it was
    /// chosen by hand, the calibration is past its validity, or the kernel changed its rate since.
    /// The bound is that of one read, and what the clock was ahead.
    OsClock = 0,
    /// A counter serves, calibrated over less than a second: the bound is honest, but wide. It holds
    /// as that of [`Status::Steady`].
    Settling = 1,
    /// A counter serves, calibrated. The bound holds whatever is done to the rate of
    /// `CLOCK_MONOTONIC` (`adjtimex(2)`: frequency, tick, offset), whether or not anybody maintains
    /// the clock: the read saw that the kernel still makes its clock of the counter as when the line
    /// was found to hold.
    Steady = 2,
    /// The counter was found wanting and the OS clock serves since. What the clock was ahead is
    /// being slewed away and is inside the bound.
    FailedOver = 3,
    /// A counter serves that the kernel's clock is not made of, or of which the kernel does not tell
    /// how. The bound holds as long as the rate of `CLOCK_MONOTONIC` stays, from one calibration to
    /// the next, within [`super::ClockSettings::allowance_ppb`], which the user gave. Without an
    /// allowance bounded reads take the OS clock instead.
    Assumed = 4,
}

impl Status {
    pub(super) const fn from_bits(bits: u64) -> Status {
        match bits & 0xff {
            1 => Status::Settling,
            2 => Status::Steady,
            3 => Status::FailedOver,
            4 => Status::Assumed,
            _ => Status::OsClock,
        }
    }
}

/// A moment between two others on `CLOCK_MONOTONIC`'s scale.
///
/// `CLOCK_MONOTONIC` was not before `earliest` nor after `latest` when the counter was sampled,
/// also while a daemon slews it: [`Bounds::status`] says what that rests on. Of an ordered read that
/// is between the beginning and the end of the call; an unordered one may be sampled before earlier
/// loads are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// ns.
    pub earliest: u64,
    /// ns.
    pub latest: u64,
    /// The evidence on which the bound rests.
    pub status: Status,
}

impl Bounds {
    /// Half the distance between the two, ns rounded up.
    #[must_use]
    pub const fn error_ns(&self) -> u64 {
        self.latest.saturating_sub(self.earliest).div_ceil(2)
    }

    /// The middle, ns rounded down.
    #[must_use]
    pub const fn middle(&self) -> u64 {
        self.earliest.saturating_add(self.latest.saturating_sub(self.earliest) / 2)
    }

    /// Whether `ns` has passed for certain.
    #[must_use]
    pub const fn is_after(&self, ns: u64) -> bool {
        self.earliest > ns
    }

    /// Whether `ns` is still to come for certain.
    #[must_use]
    pub const fn is_before(&self, ns: u64) -> bool {
        self.latest < ns
    }
}

/// A read in full: what `now` and `now_bounded` are parts of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) ns: u64,
    pub(super) bounds: Bounds,
}

impl Reading {
    /// A reading with a symmetric bound.
    #[inline(always)]
    pub(super) fn from_center(ns: u64, error_ns: u64, status: Status) -> Reading {
        let earliest = ns.saturating_sub(error_ns);
        let latest = ns.saturating_add(error_ns);
        Reading { ns, bounds: Bounds { earliest, latest, status } }
    }

    /// A reading of the OS clock, raised to `floor_ns`: readers may have received that time already.
    pub(super) fn of_os(os_ns: u64, floor_ns: u64, status: Status) -> Reading {
        let ns = os_ns.max(floor_ns);
        let latest = os_ns.saturating_add(1).max(ns);
        Reading { ns, bounds: Bounds { earliest: os_ns, latest, status } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_and_before_are_certain_or_false() {
        let bounds = Bounds { earliest: 10, latest: 20, status: Status::Steady };
        assert!(bounds.is_after(9) && !bounds.is_after(10));
        assert!(bounds.is_before(21) && !bounds.is_before(20));
        assert_eq!((bounds.middle(), bounds.error_ns()), (15, 5));
    }

    #[test]
    fn a_floor_widens_the_bound_upwards_only() {
        let reading = Reading::of_os(100, 130, Status::FailedOver);
        assert_eq!((reading.ns, reading.bounds.earliest, reading.bounds.latest), (130, 100, 130));
        let status = [
            Status::OsClock,
            Status::Settling,
            Status::Steady,
            Status::FailedOver,
            Status::Assumed,
        ];
        assert!(status.iter().all(|s| Status::from_bits(*s as u64) == *s));
    }
}
