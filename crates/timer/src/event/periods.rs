//! The periods that a device can tick at, and which one is granted.

use hourglass_time::Span;

use super::period::Period;

/// The periods that a device can tick at without help.
///
/// *Time Services in RT-Mach*, section 2.2: "there is a great variance in the timing hardware,
/// especially with respect to achievable interrupt resolutions".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Periods {
    /// None: a one-shot device.
    None,
    /// Multiples of a unit.
    Multiples {
        /// Unit of the periods.
        unit: Period,
        /// The fewest units, at least 1.
        fewest: u64,
        /// Longest period in units.
        most: u64,
    },
    /// 2^n in a second.
    PowersOfTwo {
        /// Exponent of the slowest rate.
        slowest: u32,
        /// The n of the fastest, at most 31.
        fastest: u32,
    },
}

/// A resolution that cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolutionError {
    /// The resolution is zero or negative.
    #[error("invalid resolution {0}: must be greater than zero")]
    NotPositive(Span),
    /// The skew is negative.
    #[error("invalid skew {0}: must not be negative")]
    NegativeSkew(Span),
    /// The device has no periods.
    #[error("this device does not tick: take one with periods")]
    NoPeriods,
    /// No period is near enough.
    #[error(
        "no period within {skew} of {desired}: the nearest is {nearest}; allow a skew of {}",
        .nearest.skew_from(*.desired)
    )]
    TooFar {
        /// Requested period.
        desired: Span,
        /// How far off it may be.
        skew: Span,
        /// Nearest period of the device.
        nearest: Period,
    },
    /// The device ticks more often than it may.
    #[error("no period of this device is {finest} or longer: its longest is {longest}")]
    NoneSoLong {
        /// Shortest period that is allowed.
        finest: Span,
        /// Longest period of the device.
        longest: Period,
    },
    /// The device refused the new rate.
    #[error("the device refused the new rate: {0}")]
    Refused(super::error::DeviceError),
}

impl Periods {
    /// Every whole number of nanoseconds to 2^62, as the kernel's timers.
    pub const NANOSECONDS: Periods =
        Periods::Multiples { unit: Period::NANOSECOND, fewest: 1, most: 1 << 62 };
    /// The MC146818's periodic interrupt, 2 Hz to 8192 Hz.
    pub const MC146818: Periods = Periods::PowersOfTwo { slowest: 1, fastest: 13 };
    /// The i8254's, 2 to 65,536 counts.
    pub const I8254: Periods = Periods::Multiples { unit: Period::I8254, fewest: 2, most: 65_536 };

    /// Whether the device can tick at exactly this period.
    #[must_use]
    pub fn contains(self, period: Period) -> bool {
        self.at_most(period) == Some(period)
    }

    /// The shortest period.
    #[must_use]
    pub fn shortest(self) -> Option<Period> {
        match self {
            Periods::None => None,
            Periods::Multiples { unit, fewest, .. } => unit.times(fewest),
            Periods::PowersOfTwo { fastest, .. } => power_of_two(fastest),
        }
    }

    /// The longest period.
    #[must_use]
    pub fn longest(self) -> Option<Period> {
        match self {
            Periods::None => None,
            Periods::Multiples { unit, most, .. } => unit.times(most),
            Periods::PowersOfTwo { slowest, .. } => power_of_two(slowest),
        }
    }

    /// The longest period that is not above `limit`.
    #[must_use]
    pub fn at_most(self, limit: Period) -> Option<Period> {
        match self {
            Periods::None => None,
            Periods::Multiples { unit, fewest, most } => {
                let count = limit.whole(unit).min(most);
                if count < fewest { None } else { unit.times(count) }
            }
            Periods::PowersOfTwo { slowest, fastest } => {
                (slowest..=fastest).filter_map(power_of_two).find(|period| *period <= limit)
            }
        }
    }

    /// The period nearest to `desired`, the shorter of two as near; `None` only where there are
    /// no periods.
    #[must_use]
    pub fn nearest(self, desired: Span) -> Option<Period> {
        let (shortest, longest) = (self.shortest()?, self.longest()?);
        let Ok(wanted) = Period::from_span(desired) else { return Some(shortest) };
        let Some(below) = self.at_most(wanted) else { return Some(shortest) };
        let above = match self {
            Periods::None => None,
            Periods::Multiples { unit, .. } => unit.times(below.whole(unit) + 1),
            Periods::PowersOfTwo { .. } => below.times(2),
        };
        let above = above.unwrap_or(longest).min(longest);
        Some(Period::nearer(below, above, desired))
    }

    /// What RT-Mach's `set_resolution` grants: the nearest period, if it is at most `skew` away
    /// (section 2.2).
    ///
    /// # Errors
    /// [`ResolutionError`]; [`ResolutionError::TooFar`] names the nearest.
    pub fn grant(self, desired: Span, skew: Span) -> Result<Period, ResolutionError> {
        if !desired.is_positive() {
            return Err(ResolutionError::NotPositive(desired));
        }
        if skew.is_negative() {
            return Err(ResolutionError::NegativeSkew(skew));
        }
        let nearest = self.nearest(desired).ok_or(ResolutionError::NoPeriods)?;
        if nearest.is_within(skew, desired) {
            Ok(nearest)
        } else {
            Err(ResolutionError::TooFar { desired, skew, nearest })
        }
    }
}

fn power_of_two(log2: u32) -> Option<Period> {
    Period::from_hertz(1u32.checked_shl(log2)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: i64) -> Span {
        Span::from_micros(us)
    }

    fn ns(ns: i64) -> Span {
        Span::from_nanos(ns)
    }

    /// RT-Mach section 2.2: the MC146818 "will only interrupt at frequencies which are powers
    /// of 2", so 1 ms becomes 1024 Hz if 24 us are allowed.
    #[test]
    fn the_mc146818_has_powers_of_two() {
        let granted = Periods::MC146818.grant(us(1_000), us(24)).unwrap();
        assert_eq!(granted, Period::from_hertz(1_024).unwrap());
        // 23,437.5 ns away: 23,437 are not enough, 23,438 are.
        let refused = Periods::MC146818.grant(us(1_000), ns(23_437)).unwrap_err();
        assert_eq!(
            refused,
            ResolutionError::TooFar { desired: us(1_000), skew: ns(23_437), nearest: granted }
        );
        assert!(Periods::MC146818.grant(us(1_000), ns(23_438)).is_ok());
        assert!(refused.to_string().contains("976562.500 ns"), "{refused}");
        let slowest = Periods::MC146818.nearest(Span::from_secs(9)).unwrap();
        assert_eq!(slowest, Period::from_hertz(2).unwrap());
        assert_eq!(Periods::MC146818.nearest(ns(1)), Period::from_hertz(8_192).ok());
        // Between 2 Hz and 4 Hz the middle is 375 ms, which goes to the shorter.
        let near = |ms| Periods::MC146818.nearest(Span::from_millis(ms)).unwrap();
        assert_eq!(near(375), Period::from_hertz(4).unwrap());
        assert_eq!(near(376), Period::from_hertz(2).unwrap());
    }

    /// RT-Mach section 2.2: the i8254 interrupts "at any multiple of 838ns up to .055 seconds".
    #[test]
    fn the_i8254_has_multiples() {
        let granted = Periods::I8254.grant(us(1_000), ns(153)).unwrap();
        assert_eq!(granted, Period::I8254.times(1_193).unwrap());
        assert_eq!(granted.to_string(), "999847.466 ns");
        assert!(Periods::I8254.grant(us(1_000), ns(152)).is_err());
        let longest = Periods::I8254.grant(us(55_000), us(75)).unwrap();
        assert_eq!(longest, Period::I8254.times(65_536).unwrap());
        assert!(Periods::I8254.grant(us(55_000), us(74)).is_err());
        assert_eq!(Periods::I8254.nearest(ns(1)), Period::I8254.times(2));
    }

    /// The fast search against trying every multiple.
    #[test]
    fn the_nearest_is_the_nearest() {
        for unit in [(838, 1), (1_000, 3), (1, 7), (500_000_000, 596_591)] {
            let unit = Period::new(unit.0, unit.1).unwrap();
            let periods = Periods::Multiples { unit, fewest: 3, most: 40 };
            let all: Vec<Period> = (3..=40).filter_map(|n| unit.times(n)).collect();
            let end = all[37].nth_ns(1) as i64 + 3;
            for desired in (1..=end).step_by((end / 997).max(1) as usize) {
                let desired = ns(desired);
                let better = |a: &Period, b: &Period| {
                    if Period::nearer(*a, *b, desired) == *a { *a } else { *b }
                };
                let slow = all.iter().copied().reduce(|a, b| better(&a, &b));
                assert_eq!(periods.nearest(desired), slow, "{desired} of {unit}");
            }
            assert!(all.iter().all(|period| periods.contains(*period)));
            assert!(!periods.contains(unit) && !periods.contains(unit.times(41).unwrap()));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_one_line() {
        let periods = Periods::I8254;
        let errors = [
            periods.grant(Span::ZERO, us(1)).unwrap_err(),
            periods.grant(us(-1), us(1)).unwrap_err(),
            periods.grant(us(1), us(-1)).unwrap_err(),
            Periods::None.grant(us(1), us(1)).unwrap_err(),
        ];
        assert_eq!(errors[0], ResolutionError::NotPositive(Span::ZERO));
        assert_eq!(errors[2], ResolutionError::NegativeSkew(us(-1)));
        assert_eq!(errors[3], ResolutionError::NoPeriods);
        assert!(errors.iter().all(|error| error.to_string().lines().count() == 1));
    }
}
